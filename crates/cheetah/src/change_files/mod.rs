//! Change files: what waited in memory for leaves at a checkpoint, so that the checkpoint need not
//! read and write these leaves.
//!
//! Files are `chg/<epoch>.chg`, one for each checkpoint that has saved something. The state of an
//! epoch lists those that belong to it. A file is written once, and synced before the page map
//! commits an epoch whose state lists it; it is unlinked when the newest epoch does not. What its
//! records mean knows the pool.
//!
//! Invariants
//!   F1  A [`ListedFile`] comes from [`Writer::finish`], which has made file and name durable.
//!   F2  Reading gives all records of a listed file, in their order, or `Corruption`.
//! Errors    `DiskFull` and `Io` while a file is written: nothing lists it. Fatal when a sync
//! fails.

use crate::base::{planted, Epoch, Error, Result, TreeId};
use crate::durable::Durable;
use crate::format::change_file::{
    chain_of, check_header, decode_block, encode_block, encode_header, stored_bytes, SavedChanges,
    BLOCK_BYTES_MAX, BLOCK_HEAD_BYTES, HEADER_BYTES,
};
use crate::format::encryption::Key;
use crate::format::state::ListedFile;
use crate::format::{Defect, Reader};
use crate::keys::Keys;
use cheetah_io::File;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

/// Directory of the files.
const DIRECTORY: &str = "chg";
/// Bytes of records after which a block is written.
const BLOCK_BYTES: usize = 64 << 10;
/// Bytes after which the file is synced: a long sync at the end makes the commits of that moment
/// wait for the disk.
const SYNC_BYTES: u64 = 8 << 20;

/// Path of the file of an epoch.
pub fn path_of(epoch: Epoch) -> String {
    format!("{DIRECTORY}/{}.chg", epoch.0)
}

/// A file that is being written.
pub struct Writer {
    durable: Arc<Durable>,
    file: Arc<dyn File>,
    path: String,
    epoch: Epoch,
    end: u64,
    synced: u64,
    chain: u32,
    trees: BTreeSet<TreeId>,
    keys: Arc<Keys>,
    key: Option<Arc<Key>>,
    records: Vec<u8>,
    block: Vec<u8>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} bytes", self.path, self.end)
    }
}

impl Writer {
    /// Begins the file of an epoch.
    pub fn create(durable: &Arc<Durable>, keys: &Arc<Keys>, epoch: Epoch) -> Result<Self> {
        let (durable, path) = (Arc::clone(durable), path_of(epoch));
        let disk = durable.disk();
        let file = disk.create(&path).map_err(|error| Error::io("create", &path, error))?;
        let key = keys.system();
        keys.note_change_file(epoch, key.as_ref().map(|key| key.name()));
        let header = encode_header(keys.database(), epoch, key.as_ref().map(|key| key.name()));
        file.write_at(0, &header).map_err(|error| Error::io("write", &path, error))?;
        Ok(Self {
            durable,
            file,
            path,
            epoch,
            end: HEADER_BYTES as u64,
            synced: 0,
            chain: chain_of(&header),
            trees: BTreeSet::new(),
            keys: Arc::clone(keys),
            key,
            records: Vec::new(),
            block: Vec::new(),
        })
    }

    /// Bytes of the file so far.
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// Adds a record, and writes a block when there are many. Blocks for I/O.
    pub fn push(&mut self, saved: &SavedChanges<'_>) -> Result<()> {
        self.trees.insert(saved.image.tree);
        saved.encode(&mut self.records);
        match self.records.len() >= BLOCK_BYTES {
            true => self.write_block(),
            false => Ok(()),
        }
    }

    fn write_block(&mut self) -> Result<()> {
        assert!(self.records.len() <= BLOCK_BYTES_MAX, "a page has few changes");
        let nonce = self.key.as_ref().map(|_| self.keys.nonce()).transpose()?;
        let chain = encode_block(&self.records, self.chain, self.key.as_deref().zip(nonce), &mut self.block);
        let written = self.file.write_at(self.end, &self.block);
        written.map_err(|error| Error::io("write", &self.path, error))?;
        self.file.start_writeback(self.end, self.block.len() as u64);
        self.end += self.block.len() as u64;
        self.chain = chain;
        self.records.clear();
        if self.end - self.synced > SYNC_BYTES {
            self.durable.change_file_barrier(&*self.file, &self.path)?;
            self.synced = self.end;
        }
        Ok(())
    }

    /// Writes what is left, and makes the file and its name durable. Blocks for I/O.
    pub fn finish(mut self) -> Result<ListedFile> {
        if !self.records.is_empty() {
            self.write_block()?;
        }
        if !planted::is_on("saving: list a file that is not durable") {
            self.durable.change_file_barrier(&*self.file, &self.path)?;
            self.durable.directory_barrier(DIRECTORY)?;
        }
        let trees = self.trees.into_iter().collect();
        Ok(ListedFile { epoch: self.epoch, bytes: self.end, chain: self.chain, trees })
    }
}

/// Hands out the records of a listed file. `Corruption` when it is damaged; records before the
/// damage have been handed out then. `Io` when it is missing: then others may be, and it may come
/// back. Blocks for I/O.
pub fn read(
    durable: &Durable,
    keys: &Keys,
    listed: &ListedFile,
    mut each: impl FnMut(&SavedChanges<'_>) -> Result<()>,
) -> Result<()> {
    let path = path_of(listed.epoch);
    let file = durable.disk().open(&path).map_err(|error| Error::io("open", &path, error))?;
    let damaged = |defect: Defect| defect.in_place(&path);
    let mut header = [0; HEADER_BYTES];
    read_at(&*file, &path, 0, &mut header)?;
    let (mut chain, key) = check_header(&header, keys.database(), listed.epoch).map_err(damaged)?;
    keys.note_change_file(listed.epoch, key);
    let key = key.map(|name| keys.find(&name)).transpose()?;
    let (mut at, mut stored, mut records) = (HEADER_BYTES as u64, Vec::new(), Vec::new());
    while at < listed.bytes {
        let mut head = [0; BLOCK_HEAD_BYTES];
        read_at(&*file, &path, at, &mut head)?;
        at += BLOCK_HEAD_BYTES as u64;
        stored.resize(stored_bytes(&head, listed.bytes.saturating_sub(at)).map_err(damaged)?, 0);
        read_at(&*file, &path, at, &mut stored)?;
        at += stored.len() as u64;
        chain = decode_block(&head, &mut stored, chain, key.as_deref(), &mut records).map_err(damaged)?;
        let mut reader = Reader::new(&records);
        while !reader.is_empty() {
            each(&SavedChanges::decode(&mut reader).map_err(damaged)?)?;
        }
    }
    match chain == listed.chain {
        true => Ok(()),
        false => Err(Error::corrupt(&path, "not the file that the page map names")),
    }
}

fn read_at(file: &dyn File, path: &str, at: u64, bytes: &mut [u8]) -> Result<()> {
    file.read_at(at, bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => Error::corrupt(path, "the file is shorter than the page map says"),
        _ => Error::io("read", path, error),
    })
}

/// Lets go of the file of an epoch, if there is one.
pub fn remove(durable: &Durable, epoch: Epoch) -> Result<()> {
    let path = path_of(epoch);
    match durable.let_go(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("unlink", &path, error)),
        _ => Ok(()),
    }
}

/// Paths of all files that there are. Reads the directory.
pub fn paths(durable: &Durable) -> Result<Vec<String>> {
    let names = durable.disk().list(DIRECTORY).map_err(|error| Error::io("list", DIRECTORY, error))?;
    Ok(names.iter().map(|name| format!("{DIRECTORY}/{name}")).collect())
}

/// For a startup: makes the directory, durably, and unlinks all files but those of `listed`: what a
/// crash has left, or an epoch that was given up.
pub fn prepare(durable: &Durable, listed: &[ListedFile]) -> Result<()> {
    durable.disk().create_dir(DIRECTORY).map_err(|error| Error::io("create", DIRECTORY, error))?;
    durable.directory_barrier("")?;
    let names = durable.disk().list(DIRECTORY).map_err(|error| Error::io("list", DIRECTORY, error))?;
    for name in names {
        let path = format!("{DIRECTORY}/{name}");
        if listed.iter().all(|file| path_of(file.epoch) != path) {
            durable.disk().unlink(&path).map_err(|error| Error::io("unlink", path, error))?;
        }
    }
    Ok(())
}

/// Puts an empty file in the place of each listed one that is missing: it is taken for damaged. For
/// a copy of what is left of a database.
pub fn replace_missing(durable: &Durable, listed: &[ListedFile]) -> Result<()> {
    for path in listed.iter().map(|file| path_of(file.epoch)) {
        match durable.disk().open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                durable.disk().create(&path).map_err(|error| Error::io("create", &path, error))?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Health, PageId, SegmentId};
    use crate::format::{ImageRef, Location};
    use cheetah_io::sim::{SimClock, SimDisk};

    fn no_keys() -> Arc<Keys> {
        Keys::none(Arc::new(SimClock::default()), [5; 16])
    }

    fn saved(pid: u64, changes: &[u8]) -> SavedChanges<'_> {
        let location = Location { segment: SegmentId(3), offset: 640, stored_bytes: 900, crc: 77 };
        let image = ImageRef { pid: PageId(pid), tree: TreeId(20 + pid as u32 % 2), location };
        SavedChanges { image, begins: true, room: 4000, growth_bytes: 120, changes }
    }

    fn on(disk: &SimDisk) -> Arc<Durable> {
        let durable = Durable::new(Arc::new(disk.clone()), Arc::new(Health::default()));
        prepare(&durable, &[]).unwrap();
        Arc::new(durable)
    }

    fn write(durable: &Arc<Durable>, epoch: Epoch, count: u64) -> ListedFile {
        remove(durable, epoch).unwrap();
        let mut writer = Writer::create(durable, &no_keys(), epoch).unwrap();
        for pid in 0..count {
            writer.push(&saved(pid, &[pid as u8; 300])).unwrap();
        }
        writer.finish().unwrap()
    }

    fn pids(durable: &Durable, listed: &ListedFile) -> Result<Vec<u64>> {
        let mut pids = Vec::new();
        read(durable, &no_keys(), listed, |saved| {
            assert_eq!(saved.changes, [saved.image.pid.0 as u8; 300]);
            pids.push(saved.image.pid.0);
            Ok(())
        })?;
        Ok(pids)
    }

    #[test]
    fn all_records_come_back_after_a_power_cut() {
        let disk = SimDisk::new();
        let listed = write(&on(&disk), Epoch(7), 1000);
        assert_eq!(listed.trees, [TreeId(20), TreeId(21)]);
        let left = disk.crash(cheetah_io::sim::CrashPolicy::SyncedOnly, 1);
        let durable = Durable::new(Arc::new(left), Arc::new(Health::default()));
        assert_eq!(pids(&durable, &listed).unwrap(), (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_file_that_is_not_the_listed_one_is_refused() {
        let disk = SimDisk::new();
        let durable = on(&disk);
        let listed = write(&durable, Epoch(7), 1000);
        let longer = write(&durable, Epoch(7), 1001);
        assert!(pids(&durable, &listed).is_err());
        assert_eq!(pids(&durable, &longer).unwrap().len(), 1001);
        let file = durable.disk().open(&path_of(Epoch(7))).unwrap();
        for at in [10, 70, longer.bytes - 1] {
            let mut byte = [0];
            file.read_at(at, &mut byte).unwrap();
            file.write_at(at, &[byte[0] ^ 4]).unwrap();
            assert!(pids(&durable, &longer).is_err(), "byte {at}");
            file.write_at(at, &byte).unwrap();
        }
        remove(&durable, Epoch(7)).unwrap();
        assert!(pids(&durable, &longer).unwrap_err().to_string().contains("open"));
    }

    #[test]
    fn only_listed_files_stay() {
        let disk = SimDisk::new();
        let durable = on(&disk);
        let listed = [1, 2, 3].map(|epoch| write(&durable, Epoch(epoch), 5));
        prepare(&durable, &listed[1..2]).unwrap();
        assert_eq!(durable.disk().list(DIRECTORY).unwrap(), ["2.chg"]);
    }
}
