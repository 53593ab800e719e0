//! State of a simulated disk: files with their synced and unsynced parts, and directories likewise.
//!
//! Invariants
//!   I1  `current` = `synced` with all of `pending` applied in order, unless a sync failed or was
//!       ignored.
//!   I2  A file exists as long as it has a current or durable name, a pending name, or an open
//!       handle.
//!   I3  `used_bytes` counts the files with a current name or an open handle.

use super::content::{pieces, Content, BLOCK_BYTES};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// ID of a file, independent of its names.
pub(super) type Inode = u64;

/// A change of contents or length that is not synced yet.
#[derive(Clone)]
pub(super) enum Change {
    Write { offset: u64, bytes: Arc<[u8]> },
    SetLen(u64),
}

#[derive(Clone, Default)]
pub(super) struct FileState {
    pub(super) current: Content,
    pub(super) synced: Content,
    pub(super) pending: Arc<Vec<Change>>,
    /// Writes whose sync failed: they may or may not be on the disk, whatever is synced later (F5).
    pub(super) limbo: Arc<Vec<Change>>,
    /// Blocks reserved from the start of the file.
    pub(super) reserved_blocks: u64,
    pub(super) open_count: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    File(Inode),
    Dir,
}

/// A change of a directory that is not synced yet.
#[derive(Clone)]
pub(super) enum EntryChange {
    Link { name: String, node: Node },
    Unlink { name: String },
    Rename { to: String, inode: Inode },
}

/// The objects in a directory by name. Copies share the map until one of them changes.
pub(super) type Entries = Arc<BTreeMap<String, Node>>;

#[derive(Clone, Default)]
pub(super) struct DirState {
    pub(super) current: Entries,
    pub(super) durable: Entries,
    pub(super) pending: Arc<Vec<EntryChange>>,
    pub(super) poisoned: bool,
}

#[derive(Clone)]
pub(super) struct World {
    pub(super) files: BTreeMap<Inode, FileState>,
    pub(super) dirs: BTreeMap<String, DirState>,
    pub(super) next_inode: Inode,
    /// Whether a file may have lost its last name: most files are closed without losing one.
    pub(super) may_have_nameless: bool,
}

impl FileState {
    pub(super) fn durable(content: Content) -> Self {
        Self { current: content.clone(), synced: content, ..Self::default() }
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.current.write(offset, bytes);
        Arc::make_mut(&mut self.pending).push(Change::Write { offset, bytes: bytes.into() });
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.current.len() {
            self.reserved_blocks = self.reserved_blocks.min(len.div_ceil(BLOCK_BYTES));
        }
        self.current.set_len(len);
        Arc::make_mut(&mut self.pending).push(Change::SetLen(len));
    }

    pub(super) fn sync(&mut self) {
        let synced = match self.limbo.is_empty() {
            true => self.current.clone(),
            false => self.synced_around_limbo(),
        };
        self.synced = synced;
        self.pending = Arc::default();
    }

    /// The durable content after a sync that follows a failed one. Blocks in limbo become durable,
    /// and leave the limbo, only if they were written again.
    fn synced_around_limbo(&mut self) -> Content {
        let dirty = blocks(&self.pending);
        let lost = |change: &Change| blocks(std::slice::from_ref(change)).is_disjoint(&dirty);
        Arc::make_mut(&mut self.limbo).retain(lost);
        let mut synced = self.current.clone();
        for index in blocks(&self.limbo) {
            let mut block = [0; BLOCK_BYTES as usize];
            self.synced.read(index * BLOCK_BYTES, &mut block);
            synced.write(index * BLOCK_BYTES, &block);
        }
        synced.set_len(self.current.len());
        synced
    }

    /// The kernel has marked the blocks clean, and it is unknown which of them are on the disk.
    pub(super) fn fail_sync(&mut self) {
        let limbo = Arc::make_mut(&mut self.limbo);
        for change in self.pending.iter() {
            if let Change::Write { offset, bytes } = change {
                for (index, within, range) in pieces(*offset, bytes.len()) {
                    let offset = index * BLOCK_BYTES + within as u64;
                    limbo.push(Change::Write { offset, bytes: bytes[range].into() });
                }
            }
        }
        Arc::make_mut(&mut self.pending).retain(|change| matches!(change, Change::SetLen(_)));
        Arc::make_mut(&mut self.pending).push(Change::SetLen(self.current.len()));
    }

    /// All writes that may be lost, in order.
    pub(super) fn unsynced(&self) -> impl Iterator<Item = &Change> {
        self.limbo.iter().chain(self.pending.iter())
    }

    pub(super) fn used_bytes(&self) -> u64 {
        (self.reserved_blocks + self.current.blocks_from(self.reserved_blocks)) * BLOCK_BYTES
    }

    /// The part of `len` bytes at `offset` that can be written with `free_blocks` more blocks.
    pub(super) fn room_for(&self, offset: u64, len: usize, mut free_blocks: u64) -> usize {
        let end = offset + len as u64;
        for index in offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES) {
            if index >= self.reserved_blocks && !self.current.has_block(index) {
                if free_blocks == 0 {
                    return (index * BLOCK_BYTES).saturating_sub(offset) as usize;
                }
                free_blocks -= 1;
            }
        }
        len
    }
}

impl DirState {
    fn link(&mut self, name: &str, node: Node) {
        Arc::make_mut(&mut self.current).insert(name.to_owned(), node);
        Arc::make_mut(&mut self.pending).push(EntryChange::Link { name: name.to_owned(), node });
    }

    fn unlink(&mut self, name: &str) {
        Arc::make_mut(&mut self.current).remove(name);
        Arc::make_mut(&mut self.pending).push(EntryChange::Unlink { name: name.to_owned() });
    }

    /// Applies one change to the durable entries (after a power cut that kept it).
    pub(super) fn apply(entries: &mut BTreeMap<String, Node>, change: &EntryChange) {
        match change {
            EntryChange::Link { name, node } => {
                entries.insert(name.clone(), *node);
            }
            EntryChange::Unlink { name } => {
                entries.remove(name);
            }
            // All earlier names go, even one whose own rename was lost: a file never has two names.
            EntryChange::Rename { to, inode } => {
                entries.retain(|_, node| *node != Node::File(*inode));
                entries.insert(to.clone(), Node::File(*inode));
            }
        }
    }
}

impl World {
    pub(super) fn new() -> Self {
        let dirs = BTreeMap::from([(String::new(), DirState::default())]);
        Self { files: BTreeMap::new(), dirs, next_inode: 1, may_have_nameless: false }
    }

    pub(super) fn used_bytes(&self) -> u64 {
        let named: BTreeSet<Inode> = self.dirs.values().flat_map(|d| inodes(&d.current)).collect();
        let counted = self.files.iter().filter(|(inode, file)| file.open_count > 0 || named.contains(inode));
        counted.map(|(_, file)| file.used_bytes()).sum()
    }

    pub(super) fn find(&self, path: &str) -> io::Result<Inode> {
        let (dir, name) = split(path)?;
        match self.dir(dir)?.current.get(name) {
            Some(Node::File(inode)) => Ok(*inode),
            Some(Node::Dir) => Err(error(io::ErrorKind::IsADirectory, path)),
            None => Err(error(io::ErrorKind::NotFound, path)),
        }
    }

    pub(super) fn file(&mut self, inode: Inode) -> io::Result<&mut FileState> {
        self.files.get_mut(&inode).ok_or_else(|| error(io::ErrorKind::NotFound, "a file of another disk"))
    }

    pub(super) fn dir(&self, dir: &str) -> io::Result<&DirState> {
        self.dirs.get(dir).ok_or_else(|| error(io::ErrorKind::NotFound, dir))
    }

    fn dir_mut(&mut self, dir: &str) -> io::Result<&mut DirState> {
        self.may_have_nameless = true;
        self.dirs.get_mut(dir).ok_or_else(|| error(io::ErrorKind::NotFound, dir))
    }

    pub(super) fn create(&mut self, path: &str) -> io::Result<Inode> {
        let (dir, name) = split(path)?;
        let inode = self.next_inode;
        let directory = self.dir_mut(dir)?;
        if directory.current.contains_key(name) {
            return Err(error(io::ErrorKind::AlreadyExists, path));
        }
        directory.link(name, Node::File(inode));
        self.next_inode += 1;
        self.files.insert(inode, FileState::default());
        Ok(inode)
    }

    pub(super) fn create_dir(&mut self, path: &str) -> io::Result<()> {
        let (parent, name) = split(path)?;
        match self.dir(parent)?.current.get(name) {
            Some(Node::Dir) => return Ok(()),
            Some(Node::File(_)) => return Err(error(io::ErrorKind::AlreadyExists, path)),
            None => {}
        }
        self.dir_mut(parent)?.link(name, Node::Dir);
        self.dirs.insert(path.to_owned(), DirState::default());
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let inode = self.find(from)?;
        let ((from_dir, from_name), (to_dir, to_name)) = (split(from)?, split(to)?);
        if self.dir(to_dir)?.current.get(to_name) == Some(&Node::Dir) {
            return Err(error(io::ErrorKind::IsADirectory, to));
        }
        if from == to {
            return Ok(());
        }
        if from_dir == to_dir {
            let directory = self.dir_mut(to_dir)?;
            let entries = Arc::make_mut(&mut directory.current);
            entries.remove(from_name);
            entries.insert(to_name.to_owned(), Node::File(inode));
            let change = EntryChange::Rename { to: to_name.to_owned(), inode };
            Arc::make_mut(&mut directory.pending).push(change);
        } else {
            self.dir_mut(to_dir)?.link(to_name, Node::File(inode));
            self.dir_mut(from_dir)?.unlink(from_name);
        }
        Ok(())
    }

    pub(super) fn unlink(&mut self, path: &str) -> io::Result<()> {
        self.find(path)?;
        let (dir, name) = split(path)?;
        self.dir_mut(dir)?.unlink(name);
        Ok(())
    }

    pub(super) fn link(&mut self, from: &str, to: &str) -> io::Result<()> {
        let inode = self.find(from)?;
        let (dir, name) = split(to)?;
        let directory = self.dir_mut(dir)?;
        if directory.current.contains_key(name) {
            return Err(error(io::ErrorKind::AlreadyExists, to));
        }
        directory.link(name, Node::File(inode));
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &str) -> io::Result<()> {
        if !self.dir(path)?.current.is_empty() {
            return Err(error(io::ErrorKind::DirectoryNotEmpty, path));
        }
        let (parent, name) = split(path)?;
        self.dir_mut(parent)?.unlink(name);
        self.dirs.remove(path);
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, dir: &str) -> io::Result<()> {
        let directory = self.dir_mut(dir)?;
        if !directory.poisoned {
            directory.durable = Arc::clone(&directory.current);
            directory.pending = Arc::default();
            self.drop_nameless();
        }
        Ok(())
    }

    pub(super) fn poison_dir(&mut self, dir: &str) {
        if let Some(directory) = self.dirs.get_mut(dir) {
            directory.poisoned = true;
        }
    }

    /// Removes files that can no longer be reached (I2).
    pub(super) fn drop_nameless(&mut self) {
        let mut kept: BTreeSet<Inode> = BTreeSet::new();
        for dir in self.dirs.values() {
            kept.extend(inodes(&dir.current).chain(inodes(&dir.durable)));
            kept.extend(dir.pending.iter().filter_map(|change| match change {
                EntryChange::Link { node: Node::File(inode), .. } | EntryChange::Rename { inode, .. } => {
                    Some(*inode)
                }
                _ => None,
            }));
        }
        self.files.retain(|inode, file| file.open_count > 0 || kept.contains(inode));
        self.may_have_nameless = self.files.keys().any(|inode| !kept.contains(inode));
    }

    /// Creates a durable file with a durable name, replacing an existing one.
    pub(super) fn put(&mut self, path: &str, content: Content) -> io::Result<()> {
        let (dir, name) = split(path)?;
        let inode = self.next_inode;
        let directory = self.dir_mut(dir)?;
        Arc::make_mut(&mut directory.current).insert(name.to_owned(), Node::File(inode));
        Arc::make_mut(&mut directory.durable).insert(name.to_owned(), Node::File(inode));
        self.next_inode += 1;
        self.files.insert(inode, FileState::durable(content));
        Ok(())
    }

    /// Removes a name at once and durably.
    pub(super) fn remove(&mut self, path: &str) -> io::Result<()> {
        self.find(path)?;
        let (dir, name) = split(path)?;
        let directory = self.dir_mut(dir)?;
        Arc::make_mut(&mut directory.current).remove(name);
        Arc::make_mut(&mut directory.durable).remove(name);
        self.drop_nameless();
        Ok(())
    }

    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for (dir, state) in &self.dirs {
            for (name, node) in state.current.iter() {
                if let Node::File(_) = node {
                    paths.push(join(dir, name));
                }
            }
        }
        paths
    }
}

fn blocks(changes: &[Change]) -> BTreeSet<u64> {
    let mut blocks = BTreeSet::new();
    for change in changes {
        if let Change::Write { offset, bytes } = change {
            blocks.extend(pieces(*offset, bytes.len()).map(|(index, _, _)| index));
        }
    }
    blocks
}

fn inodes(entries: &BTreeMap<String, Node>) -> impl Iterator<Item = Inode> + '_ {
    entries.values().filter_map(|node| match node {
        Node::File(inode) => Some(*inode),
        Node::Dir => None,
    })
}

/// `dir/name`, without a leading slash for the root.
pub(super) fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() {
        return name.to_owned();
    }
    format!("{dir}/{name}")
}

/// Refuses the paths that the real disk refuses.
fn split(path: &str) -> io::Result<(&str, &str)> {
    if path.split('/').any(|part| part.is_empty() || part == "." || part == "..") || path.contains('\0') {
        return Err(error(io::ErrorKind::InvalidInput, path));
    }
    Ok(path.rsplit_once('/').unwrap_or(("", path)))
}

pub(super) fn error(kind: io::ErrorKind, what: &str) -> io::Error {
    io::Error::new(kind, format!("simulated disk: {what}"))
}
