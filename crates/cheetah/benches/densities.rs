//! Measures the size and cost of a database's pages at several levels of compression.
//!
//! `cargo bench --bench densities -- DIRECTORY [LEVEL ..]`
//!
//! DIRECTORY is the `#cheetah` of a stopped server. For each index, and for the large values of
//! each table, the bench encodes and decodes a sample of at most 400 pages at each level (-1: LZ4).
//! It prints the bytes of the images, including headers and padding, relative to the first level.
//! Times are processor times for one page. The last lines are the totals of each database.

use cheetah::testing::base::{Config, Epoch, PageId, Result, TreeId, TxnId};
use cheetah::testing::db::{Db, Env};
use cheetah::testing::format::image::{
    check, glance, is_intact, seal, Codec, Compression, Dictionary, Encoding, ImageHeader, Means, Primer,
    Workspace,
};
use cheetah::testing::format::location::ALIGN_BYTES;
use cheetah::testing::format::page::{PageBuf, PageKind, PageView};
use cheetah::testing::format::row::RowFormatVersion;
use cheetah::testing::format::segment_header::{SegmentHeader, HEADER_BYTES};
use cheetah::testing::format::{ImageRef, Location};
use cheetah_io::posix::PosixDisk;
use cheetah_io::time::RealClock;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod common;

const SAMPLE_PAGES: usize = 400;
const ENOUGH_US: f64 = 100_000.0;
const LEVELS: &[i32] = &[1, -1, 3, 6, 9, 12, 15, 19];

/// Pages of one index, or large values of one table.
struct Group {
    name: String,
    row_format: RowFormatVersion,
    /// The newest image of each page.
    images: BTreeMap<PageId, Vec<u8>>,
}

type Groups = BTreeMap<(TreeId, bool), Group>;
/// Contents of dictionaries by tree and page. The newest dictionary of a tree usually has the
/// highest page number.
type Dictionaries = BTreeMap<(TreeId, PageId), Vec<u8>>;

fn main() -> Result<()> {
    let mut arguments = common::arguments();
    let directory = common::directory(&mut arguments);
    let levels: Vec<i32> = arguments.map(|level| level.parse().expect("a level is a number")).collect();
    let levels = if levels.is_empty() { LEVELS } else { &levels };
    let (mut groups, mut dictionaries) = (groups(&directory)?, Dictionaries::new());
    collect(&directory, &mut groups, &mut dictionaries);
    println!("{:<44} {:>7}  level: bytes, encode us, decode us", "", "pages");
    let mut databases = BTreeMap::<String, Vec<Measured>>::new();
    for group in groups.values().filter(|group| !group.images.is_empty()) {
        let measured: Vec<_> = group.measure(levels, &dictionaries);
        print_line(&group.name, levels, &measured);
        let database = group.name.split('/').next().unwrap_or_default().to_owned();
        let total = databases.entry(database).or_insert_with(|| vec![Measured::default(); levels.len()]);
        total.iter_mut().zip(&measured).for_each(|(total, measured)| total.add(measured));
    }
    for (name, total) in &databases {
        print_line(&format!("{name} (all)"), levels, total);
    }
    Ok(())
}

fn print_line(name: &str, levels: &[i32], measured: &[Measured]) {
    let Some(first) = measured.first() else { return };
    print!("{name:<44} {:>7.0}", first.pages);
    for (level, measured) in levels.iter().zip(measured) {
        let Measured { pages, bytes, encode_us, decode_us, .. } = measured;
        print!("  {level}: {:.3} {:.0} {:.0}", bytes / first.bytes, encode_us / pages, decode_us / pages);
    }
    println!("  ({:.3} of {:.1} MB)", first.bytes / first.page_bytes, first.page_bytes / 1e6);
}

/// The trees of all tables. Opening the database also writes all changes to segment files.
fn groups(directory: &Path) -> Result<Groups> {
    let disk = PosixDisk::open(directory).expect("the directory can be opened");
    let db =
        Db::open(Env { disk: Arc::new(disk), clock: Arc::new(RealClock::default()) }, Config::default())?;
    let mut groups = Groups::new();
    for name in db.table_names() {
        let table = db.table(&name)?;
        for index in table.indexes() {
            for is_large in [false, true] {
                let name = format!("{name} {}", if is_large { "(large values)" } else { &index.name });
                let group = Group { name, row_format: index.row_format.clone(), images: BTreeMap::new() };
                groups.insert((index.tree, is_large), group);
            }
        }
    }
    db.close()?;
    Ok(groups)
}

/// Finds the images in the segment files. Keeps the newest image of each page.
fn collect(directory: &Path, groups: &mut Groups, dictionaries: &mut Dictionaries) {
    for file in segment_files(directory) {
        let bytes = std::fs::read(&file).expect("a segment can be read");
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { continue };
        let Ok(header) = SegmentHeader::decode(header) else { continue };
        let mut at = HEADER_BYTES;
        while at < bytes.len() {
            let address = u64::from(header.segment.0) << 32 | at as u64;
            let found =
                glance(&bytes[at..]).and_then(|(length, _, crc)| Some((bytes.get(at..at + length)?, crc)));
            match found.filter(|(image, crc)| is_intact(image, address, *crc)) {
                Some((image, _)) => {
                    keep(image, groups, dictionaries);
                    at += image.len();
                }
                None => at += ALIGN_BYTES as usize,
            }
        }
    }
}

fn segment_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the directory can be read").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(segment_files(&path));
        } else {
            files.push(path);
        }
    }
    files
}

fn keep(image: &[u8], groups: &mut Groups, dictionaries: &mut Dictionaries) {
    let Ok(header) = ImageHeader::read(image) else { return };
    if header.kind == PageKind::Dictionary {
        let page = decoded(image, &mut Workspace::default(), dictionaries);
        dictionaries.insert((header.tree, header.pid), PageView::new(&page).content().to_vec());
        return;
    }
    let Some(group) = groups.get_mut(&(header.tree, header.kind == PageKind::Blob)) else { return };
    let known = group.images.entry(header.pid).or_default();
    let older = ImageHeader::read(known).is_ok_and(|known| known.epoch > header.epoch);
    if !older {
        *known = image.to_vec();
    }
}

impl Group {
    /// The results of a sample, scaled to all pages of the group.
    fn measure(&self, levels: &[i32], dictionaries: &Dictionaries) -> Vec<Measured> {
        let every = self.images.len().div_ceil(SAMPLE_PAGES);
        let mut workspace = Workspace::default();
        let sample = self.images.values().step_by(every);
        let pages: Vec<_> = sample.map(|image| decoded(image, &mut workspace, dictionaries)).collect();
        let tree = pages.first().map_or(TreeId(0), |page| PageView::new(page).tree());
        let own = dictionaries.iter().rfind(|((of, _), _)| *of == tree);
        let scale = self.images.len() as f64 / pages.len() as f64;
        let one = |&level: &i32| {
            let codec = if level == -1 { Codec::Lz4 } else { Codec::Zstd };
            let compression = Compression { codec, level };
            let own = own.map(|((_, page), content)| {
                let primer =
                    Primer::new(*page, content, compression).expect("the engine has written the dictionary");
                (primer, Dictionary::new(*page, content).expect("the engine has written the dictionary"))
            });
            measure(&pages, &self.row_format, compression, own.as_ref()).times(scale)
        };
        levels.iter().map(one).collect()
    }
}

fn decoded(image: &[u8], workspace: &mut Workspace, dictionaries: &Dictionaries) -> PageBuf {
    let header = ImageHeader::read(image).expect("read before");
    let (_, _, crc) = glance(image).expect("read before");
    let address = u64::from_le_bytes(image[16..24].try_into().expect("eight bytes"));
    let location = Location::of_address(address, image.len() as u32, crc);
    let expected = ImageRef { pid: header.pid, tree: header.tree, location };
    let mut page = PageBuf::new(header.page_bytes);
    let needed = header.dictionary.map(|name| {
        let content = dictionaries.get(&(header.tree, name.page)).expect("the segments have the dictionary");
        Dictionary::new(name.page, content).expect("the engine has written the dictionary")
    });
    let rebuilt = workspace.rebuild(
        &header,
        image,
        &expected,
        Means { dictionary: needed.as_ref(), key: None },
        &mut page,
    );
    rebuilt.expect("an intact image can be decoded");
    page
}

/// Sums over pages.
#[derive(Clone, Default)]
struct Measured {
    pages: f64,
    page_bytes: f64,
    bytes: f64,
    encode_us: f64,
    decode_us: f64,
}

impl Measured {
    fn times(mut self, factor: f64) -> Self {
        for sum in
            [&mut self.pages, &mut self.page_bytes, &mut self.bytes, &mut self.encode_us, &mut self.decode_us]
        {
            *sum *= factor;
        }
        self
    }

    fn add(&mut self, other: &Self) {
        self.pages += other.pages;
        self.page_bytes += other.page_bytes;
        self.bytes += other.bytes;
        self.encode_us += other.encode_us;
        self.decode_us += other.decode_us;
    }
}

fn measure(
    pages: &[PageBuf],
    row_format: &RowFormatVersion,
    compression: Compression,
    own: Option<&(Primer, Dictionary)>,
) -> Measured {
    let dictionary = own.map(|(primer, _)| primer);
    let how = Encoding { row_format, compression, freeze_below: TxnId(0), dictionary, lock: None };
    let mut workspace = Workspace::default();
    let mut images = vec![Vec::new(); pages.len()];
    let encode_us = processor_us_of(pages.len(), |i| {
        workspace.encode(&pages[i], PageId(1), Epoch(1), &how, &mut images[i]);
    });
    let crcs: Vec<_> = images.iter_mut().map(|image| seal(image, 64)).collect();
    let mut page = PageBuf::new(512);
    let decode_us = processor_us_of(pages.len(), |i| {
        let tree = ImageHeader::read(&images[i]).expect("just encoded").tree;
        let location = Location::of_address(64, images[i].len() as u32, crcs[i]);
        let expected = ImageRef { pid: PageId(1), tree, location };
        let header = check(&images[i], &expected).expect("just encoded");
        let beside = own.filter(|_| header.dictionary.is_some()).map(|(_, dictionary)| dictionary);
        let rebuilt = workspace.rebuild(
            &header,
            &images[i],
            &expected,
            Means { dictionary: beside, key: None },
            &mut page,
        );
        rebuilt.expect("just encoded");
        black_box(&mut page);
    });
    Measured {
        pages: pages.len() as f64,
        page_bytes: pages.iter().map(|page| page.len()).sum::<usize>() as f64,
        bytes: images.iter().map(Vec::len).sum::<usize>() as f64,
        encode_us,
        decode_us,
    }
}

/// The processor time of `call` for all numbers below `count`. The calls are repeated until their
/// time is long enough to measure.
fn processor_us_of(count: usize, mut call: impl FnMut(usize)) -> f64 {
    let (start, mut rounds) = (processor_us(), 0.0);
    loop {
        (0..count).for_each(&mut call);
        rounds += 1.0;
        let used = processor_us() - start;
        if used > ENOUGH_US {
            return used / rounds;
        }
    }
}

/// The processor time of this thread. (The clock would also count other work of the machine.)
fn processor_us() -> f64 {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux kernel reports the time");
    let ns: f64 = text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("the first number");
    ns / 1e3
}
