//! A pool without frames, which writes pages as soon as they change, and the history that the tests
//! compare it with.

use cheetah::testing::base::{Config, Epoch, Error, Health, Lsn, PageId, Result, TreeId};
use cheetah::testing::durable::Durable;
use cheetah::testing::page_map::{Commit, MapEntry, MapStore};
use cheetah::testing::segment::{ImageBuffer, Segments, Stream};
use cheetah_io::sim::SimDisk;
use cheetah_io::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const UUID: [u8; 16] = *b"a test database.";
const PAGES: u64 = 40;

/// The content of an epoch.
#[derive(Clone, Default, Debug)]
pub(crate) struct Snapshot {
    pages: BTreeMap<PageId, Vec<u8>>,
    state: Vec<u8>,
    /// The number of operations on the disk before the epoch switch.
    pub(crate) attempted_at: u64,
}

/// Every epoch attempted so far.
pub(crate) type History = BTreeMap<u64, Snapshot>;

/// The history of a new database.
pub(crate) fn empty_history() -> History {
    History::from([(0, Snapshot::default())])
}

/// Small segments and logs.
pub(crate) fn config() -> Config {
    Config { segment_bytes: 8 << 10, ..Config::tiny() }
}

/// An epoch between its switch and its commit.
struct Frozen {
    epoch: Epoch,
    changes: BTreeMap<PageId, Option<MapEntry>>,
    state: Vec<u8>,
}

pub(crate) struct Store {
    pub(crate) durable: Arc<Durable>,
    pub(crate) map: MapStore,
    pub(crate) segments: Segments,
    pages: BTreeMap<PageId, (MapEntry, Vec<u8>)>,
    changes: BTreeMap<PageId, Option<MapEntry>>,
    epoch: Epoch,
    frozen: Option<Frozen>,
}

impl Store {
    /// Opens the store, loads it, and compares it with the history.
    pub(crate) fn open(disk: &SimDisk, history: &History) -> Result<Store> {
        let durable = Arc::new(Durable::new(Arc::new(disk.clone()), Arc::new(Health::default())));
        let opened = MapStore::open(durable.clone(), &config(), UUID)?;
        let mut entries = BTreeMap::new();
        let state = opened.store.load(&mut |pid, entry| {
            match entry {
                Some(entry) => entries.insert(pid, entry),
                None => entries.remove(&pid),
            };
        })?;
        let (identity, next_segment) = (opened.identity, opened.next_segment);
        let segments = Segments::open(durable.clone(), &opened.config, identity, next_segment)?;
        entries.values().for_each(|entry| segments.retain(&entry.location));
        segments.end_startup(opened.epoch)?;
        let mut store = Store {
            durable,
            map: opened.store,
            segments,
            pages: BTreeMap::new(),
            changes: BTreeMap::new(),
            epoch: opened.first_epoch,
            frozen: None,
        };
        store.read_pages(entries)?;
        let expected = history.get(&opened.epoch.0).expect("the epoch was attempted");
        let found = (&store.contents(), &state);
        assert_eq!(found, (&expected.pages, &expected.state), "epoch {}", opened.epoch);
        assert!(opened.first_epoch.0 > *history.keys().next_back().unwrap(), "numbers are not reused");
        assert_eq!(opened.log_start, Lsn(opened.epoch.0));
        Ok(store)
    }

    fn read_pages(&mut self, entries: BTreeMap<PageId, MapEntry>) -> Result<()> {
        let mut image = ImageBuffer::default();
        for (pid, entry) in entries {
            self.segments.read(&entry.image(pid), &mut image)?;
            self.pages.insert(pid, (entry, payload(&image)));
        }
        Ok(())
    }

    fn contents(&self) -> BTreeMap<PageId, Vec<u8>> {
        self.pages.iter().map(|(pid, (_, content))| (*pid, content.clone())).collect()
    }

    /// Writes and removes some pages.
    pub(crate) fn change_some(&mut self, rng: &mut Rng) -> Result<()> {
        for _ in 0..rng.below(25) {
            let pid = PageId(1 + rng.below(PAGES));
            if rng.chance(0.2) {
                self.remove(pid);
            } else {
                let len = rng.below(700) as usize;
                let content = rng.bytes(len);
                let stream = Stream::ALL[rng.below(3) as usize];
                self.put(pid, content, stream)?;
            }
        }
        Ok(())
    }

    pub(crate) fn put(&mut self, pid: PageId, content: Vec<u8>, stream: Stream) -> Result<()> {
        let location = self.segments.append(stream, &mut image(pid, &content))?;
        let entry = MapEntry { tree: TreeId(1 + pid.0 as u32 % 3), location };
        if let Some((old, _)) = self.pages.insert(pid, (entry, content)) {
            self.segments.release(&old.location, self.epoch);
        }
        self.changes.insert(pid, Some(entry));
        Ok(())
    }

    fn remove(&mut self, pid: PageId) {
        if let Some((old, _)) = self.pages.remove(&pid) {
            self.segments.release(&old.location, self.epoch);
            self.changes.insert(pid, None);
        }
    }

    /// Moves the live images of a victim segment, if there is one.
    pub(crate) fn collect_garbage(&mut self, rng: &mut Rng) -> Result<()> {
        let Some(victim) = self.segments.victim() else { return Ok(()) };
        if rng.chance(0.3) {
            return Ok(());
        }
        let mut live = Vec::new();
        self.segments.iterate(victim, &mut |image| {
            if self.pages.get(&image.pid).is_some_and(|(entry, _)| entry.location == image.location) {
                live.push((image.pid, payload(image.bytes)));
            }
            Ok(())
        })?;
        let expected = self.pages.values().filter(|(entry, _)| entry.location.segment == victim).count();
        assert_eq!(live.len(), expected, "every live image of a segment is found in the segment");
        live.into_iter().try_for_each(|(pid, content)| self.put(pid, content, Stream::Cold))
    }

    /// Ends the epoch, and records its content in the history. The content includes the changes of
    /// failed epochs.
    pub(crate) fn switch_epoch(&mut self, disk: &SimDisk, rng: &mut Rng, history: &mut History) {
        let len = if rng.chance(0.2) { 3000 } else { rng.below(100) };
        let state = rng.bytes(len as usize);
        let (pages, attempted_at) = (self.contents(), disk.operations());
        history.insert(self.epoch.0, Snapshot { pages, state: state.clone(), attempted_at });
        let mut changes = std::mem::take(&mut self.changes);
        if let Some(failed) = self.frozen.take() {
            for (pid, entry) in failed.changes {
                changes.entry(pid).or_insert(entry);
            }
        }
        self.frozen = Some(Frozen { epoch: self.epoch, changes, state });
        self.epoch = Epoch(self.epoch.0 + 1);
    }

    /// Commits the ended epoch. Returns its number.
    pub(crate) fn commit(&mut self) -> Result<u64> {
        let frozen = self.frozen.as_ref().expect("the epoch was switched before");
        self.segments.sync()?;
        let mut changes: Vec<_> = frozen.changes.iter().map(|(pid, entry)| (*pid, *entry)).collect();
        self.map.commit(Commit {
            epoch: frozen.epoch,
            changes: &mut changes,
            state: &frozen.state,
            log_start: Lsn(frozen.epoch.0),
            next_segment: self.segments.next_segment(),
        })?;
        let epoch = frozen.epoch.0;
        self.frozen = None;
        Ok(epoch)
    }

    /// Removes dead files. Returns their number.
    pub(crate) fn remove_dead(&self) -> Result<u64> {
        self.segments.remove_dead(self.map.epoch()).map(|unlinked| unlinked.files_count)
    }
}

/// The epochs of `all` that were attempted before operation `operation` of the current life.
/// `before` has the epochs of earlier lives; the current life has added the other epochs.
pub(crate) fn attempted(before: &History, all: &History, operation: u64) -> History {
    let known =
        |number: &u64, snapshot: &Snapshot| before.contains_key(number) || snapshot.attempted_at <= operation;
    all.iter().filter(|(number, s)| known(number, s)).map(|(number, s)| (*number, s.clone())).collect()
}

/// Opens a disk after a power cut or damage and checks it. Returns the epoch found.
pub(crate) fn verify(
    disk: &SimDisk,
    history: &History,
    acknowledged: u64,
) -> std::result::Result<u64, String> {
    let store = Store::open(disk, history).map_err(|e: Error| e.to_string())?;
    let epoch = store.map.epoch().0;
    if epoch < acknowledged {
        return Err(format!("epoch {epoch}, but {acknowledged} was acknowledged"));
    }
    Ok(epoch)
}

const HEADER: usize = cheetah::testing::format::image::HEADER_BYTES;

fn image(pid: PageId, content: &[u8]) -> Vec<u8> {
    let mut image = vec![0; HEADER];
    image[..4].copy_from_slice(b"IMG1");
    image[4..8].copy_from_slice(&((HEADER + content.len()) as u32).to_le_bytes());
    image[8..16].copy_from_slice(&pid.0.to_le_bytes());
    image.extend_from_slice(content);
    image
}

fn payload(image: &[u8]) -> Vec<u8> {
    image[HEADER..].to_vec()
}
