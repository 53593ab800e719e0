//! [`SimDisk`]: the [`Disk`] of tests, with its controls.
//!
//! Invariants
//!   I1  Operations that change something are numbered from 0; power is cut between two of them.
//!   I2  After the power cut every operation fails, with an error that [`is_power_cut`] recognises.
//! Locks     one mutex for the whole disk, held for one operation and never across a call to other
//!           code, nor while an operation is held ([`Hold`]).

use super::content::Content;
use super::crash::{sectors, CrashPolicy};
use super::fault::{Effect, Fault, Faults, Op};
use super::hold::{Held, Hold};
use super::world::{error, join, Inode, World};
use crate::disk::{DirLock, Disk, File, ReadRequest};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A disk in memory. Clones are the same disk; [`SimDisk::snapshot`] and [`SimDisk::crash`] create
/// independent disks.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    /// The directory that is the root of this disk. Empty if this is the whole disk.
    root: String,
}

/// A possible moment of a power cut: just before the operation that it names, or at the end.
pub(super) struct CrashPoint {
    pub(super) operation: u64,
    pub(super) before: String,
    pub(super) acknowledged: u64,
    pub(super) world: World,
}

struct Recorder {
    write_every: u64,
    writes: u64,
    points: Vec<CrashPoint>,
}

struct State {
    world: World,
    locks: BTreeSet<String>,
    faults: Faults,
    holds: Vec<Arc<Held>>,
    calls: u64,
    batches: u64,
    changes: u64,
    cut_at: u64,
    space_bytes: Option<u64>,
    acknowledged: u64,
    trace: Option<Vec<String>>,
    recorder: Option<Recorder>,
}

#[derive(Debug)]
struct PowerCut;

impl std::fmt::Display for PowerCut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("simulated power cut")
    }
}

impl std::error::Error for PowerCut {}

/// Returns whether an error comes from a disk whose power was cut.
pub fn is_power_cut(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<PowerCut>())
}

impl Default for SimDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl SimDisk {
    /// An empty disk without limits or faults.
    pub fn new() -> Self {
        Self::of(World::new())
    }

    pub(super) fn of(world: World) -> Self {
        let state = State {
            world,
            locks: BTreeSet::new(),
            faults: Faults::default(),
            holds: Vec::new(),
            calls: 0,
            batches: 0,
            changes: 0,
            cut_at: u64::MAX,
            space_bytes: None,
            acknowledged: 0,
            trace: None,
            recorder: None,
        };
        Self { state: Arc::new(Mutex::new(state)), root: String::new() }
    }

    /// The disk after a power cut now, as an independent disk without faults, locks or limits. The
    /// same policy and seed give the same image.
    pub fn crash(&self, policy: CrashPolicy, seed: u64) -> SimDisk {
        Self::of(self.state.lock().world.crash(policy, seed))
    }

    /// An independent copy including unsynced state; cheap. Open files stay with the original.
    pub fn snapshot(&self) -> SimDisk {
        let mut world = self.state.lock().world.clone();
        world.files.values_mut().for_each(|file| file.open_count = 0);
        Self::of(world)
    }

    /// The directory `dir` of this disk as a disk with the same files.
    pub fn at(&self, dir: &str) -> SimDisk {
        Self { state: Arc::clone(&self.state), root: self.full(dir) }
    }

    /// The path from the root of the whole disk.
    fn full(&self, path: &str) -> String {
        match path {
            "" => self.root.clone(),
            _ => join(&self.root, path),
        }
    }

    /// The number of unsynced units (see [`CrashPolicy`]).
    pub fn crash_units(&self) -> usize {
        self.state.lock().world.unit_count()
    }

    /// Adds a fault.
    pub fn inject(&self, fault: Fault) {
        self.state.lock().faults.add(fault);
    }

    /// From now until faults are cleared, reads of these bytes fail in files whose path contains
    /// `path`.
    pub fn make_unreadable(&self, path: &str, bytes: Range<u64>) {
        self.state.lock().faults.add_unreadable(path, bytes);
    }

    /// Removes all faults; their damage remains.
    pub fn clear_faults(&self) {
        self.state.lock().faults.clear();
    }

    /// Holds the next operation of this kind on a path that contains `path`, before it takes
    /// effect.
    pub fn hold(&self, op: Op, path: &str) -> Hold {
        let (hold, held) = Hold::new(op, path);
        self.state.lock().holds.push(held);
        hold
    }

    /// The number of operations that have met a fault.
    pub fn faults_met(&self) -> u64 {
        self.state.lock().faults.met()
    }

    /// Limits the space of the disk; `None` for no limit.
    pub fn set_space(&self, bytes: Option<u64>) {
        self.state.lock().space_bytes = bytes;
    }

    /// Space that files use.
    pub fn used_bytes(&self) -> u64 {
        self.state.lock().world.used_bytes()
    }

    /// Cuts power before the changing operation with this number.
    pub fn power_cut_at(&self, operation: u64) {
        self.state.lock().cut_at = operation;
    }

    /// The number of changing operations so far.
    pub fn operations(&self) -> u64 {
        self.state.lock().changes
    }

    /// The number of operations of any kind so far.
    pub fn calls(&self) -> u64 {
        self.state.lock().calls
    }

    /// The number of calls of `read_many` so far. Each of their reads counts as an operation too.
    pub fn read_batches(&self) -> u64 {
        self.state.lock().batches
    }

    /// Stores a promise to the workload, such as its last acknowledged commit, for crash images
    /// (see [`super::explore`]).
    pub fn acknowledge(&self, what: u64) {
        self.state.lock().acknowledged = what;
    }

    /// The number that was last acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.state.lock().acknowledged
    }

    /// Starts (or stops) recording every operation.
    pub fn set_trace(&self, on: bool) {
        self.state.lock().trace = on.then(Vec::new);
    }

    /// The operations recorded since tracing started or since the last call, one per line: number
    /// of earlier changes, operation, path, arguments.
    pub fn take_trace(&self) -> Vec<String> {
        self.state.lock().trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Flips a bit at rest, both in the current and in the durable content.
    pub fn flip(&self, path: &str, offset: u64, bit: u8) -> io::Result<()> {
        self.edit_at_rest(path, |content| {
            let mut byte = [0];
            content.read(offset, &mut byte);
            content.write(offset, &[byte[0] ^ (1 << (bit % 8))]);
        })
    }

    /// Overwrites bytes at rest, both in the current and in the durable content.
    pub fn overwrite(&self, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.edit_at_rest(path, |content| content.write(offset, bytes))
    }

    fn edit_at_rest(&self, path: &str, edit: impl Fn(&mut Content)) -> io::Result<()> {
        let mut state = self.state.lock();
        let inode = state.world.find(&self.full(path))?;
        let file = state.world.file(inode)?;
        edit(&mut file.current);
        edit(&mut file.synced);
        Ok(())
    }

    /// The bytes of a file.
    pub fn contents(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut state = self.state.lock();
        let inode = state.world.find(&self.full(path))?;
        Ok(state.world.file(inode)?.current.to_vec())
    }

    /// Creates a durable file, replacing an existing one.
    pub fn put(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let mut content = Content::default();
        content.write(0, bytes);
        self.state.lock().world.put(&self.full(path), content)
    }

    /// Removes a file at once and durably.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        self.state.lock().world.remove(&self.full(path))
    }

    /// Paths of all files, sorted by directory and name.
    pub fn paths(&self) -> Vec<String> {
        let all = self.state.lock().world.paths();
        if self.root.is_empty() {
            return all;
        }
        let inside = all.iter().filter_map(|path| path.strip_prefix(&self.root)?.strip_prefix('/'));
        inside.map(str::to_owned).collect()
    }

    /// From now on keeps a copy of the disk before every changing operation other than a write, and
    /// before every `write_every`-th write (0: before none).
    pub(super) fn start_recording(&self, write_every: u64) {
        self.state.lock().recorder = Some(Recorder { write_every, writes: 0, points: Vec::new() });
    }

    pub(super) fn finish_recording(&self) -> Vec<CrashPoint> {
        let mut state = self.state.lock();
        let last = state.crash_point("the end".to_owned());
        let mut points = state.recorder.take().map(|r| r.points).unwrap_or_default();
        points.push(last);
        points
    }

    /// The state, unless power has been cut (I2).
    fn powered(&self) -> io::Result<parking_lot::MutexGuard<'_, State>> {
        let state = self.state.lock();
        if state.changes >= state.cut_at {
            return Err(io::Error::other(PowerCut));
        }
        Ok(state)
    }

    /// Counts and records an operation, and decides whether it may proceed and which fault it
    /// meets.
    fn begin(&self, op: Op, path: &str, args: std::fmt::Arguments<'_>) -> io::Result<Begun<'_>> {
        let mut state = self.powered()?;
        if let Some(held) = state.held(op, path) {
            drop(state);
            held.wait();
            state = self.powered()?;
        }
        state.calls += 1;
        let changes = state.changes;
        if let Some(trace) = &mut state.trace {
            let mut line = format!("{changes} {op:?} {path}");
            let _ = write!(line, "{args}");
            trace.push(line);
        }
        if op.is_change() {
            state.record(op, path);
            state.changes += 1;
        }
        let effect = state.faults.next(op, path);
        if let Some(Effect::Fail(kind)) = effect {
            return Err(error(kind, &format!("injected failure of {op:?} {path}")));
        }
        Ok(Begun { state, ignored: effect == Some(Effect::Ignore), effect })
    }

    fn handle(&self, inode: Inode, path: &str) -> Arc<dyn File> {
        Arc::new(SimFile { disk: self.clone(), inode, path: path.to_owned() })
    }
}

struct Begun<'a> {
    state: parking_lot::MutexGuard<'a, State>,
    ignored: bool,
    effect: Option<Effect>,
}

impl State {
    fn crash_point(&self, before: String) -> CrashPoint {
        let (operation, acknowledged) = (self.changes, self.acknowledged);
        CrashPoint { operation, before, acknowledged, world: self.world.clone() }
    }

    fn held(&mut self, op: Op, path: &str) -> Option<Arc<Held>> {
        self.holds.retain(|held| held.is_pending());
        self.holds.iter().find(|held| held.takes(op, path)).cloned()
    }

    fn record(&mut self, op: Op, path: &str) {
        let Some(recorder) = &mut self.recorder else { return };
        if op == Op::Write {
            recorder.writes += 1;
            if recorder.write_every == 0 || recorder.writes % recorder.write_every != 0 {
                return;
            }
        }
        let point = self.crash_point(format!("{op:?} {path}"));
        if let Some(recorder) = &mut self.recorder {
            recorder.points.push(point);
        }
    }

    fn free_blocks(&self) -> u64 {
        match self.space_bytes {
            Some(space) => space.saturating_sub(self.world.used_bytes()) / super::content::BLOCK_BYTES,
            None => u64::MAX,
        }
    }
}

fn no_space(path: &str) -> io::Error {
    error(io::ErrorKind::StorageFull, &format!("no space left for {path}"))
}

impl Disk for SimDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>> {
        let path = &self.full(path);
        let mut begun = self.begin(Op::Create, path, format_args!(""))?;
        if begun.ignored {
            return Err(error(io::ErrorKind::Other, path));
        }
        let inode = begun.state.world.create(path)?;
        begun.state.world.file(inode)?.open_count += 1;
        Ok(self.handle(inode, path))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn File>> {
        let path = &self.full(path);
        let mut begun = self.begin(Op::Open, path, format_args!(""))?;
        let inode = begun.state.world.find(path)?;
        begun.state.world.file(inode)?.open_count += 1;
        Ok(self.handle(inode, path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (&self.full(from), &self.full(to));
        let mut begun = self.begin(Op::Rename, from, format_args!(" -> {to}"))?;
        if begun.ignored {
            return Ok(());
        }
        begun.state.world.rename(from, to)
    }

    fn unlink(&self, path: &str) -> io::Result<()> {
        let path = &self.full(path);
        let mut begun = self.begin(Op::Unlink, path, format_args!(""))?;
        if begun.ignored {
            return Ok(());
        }
        begun.state.world.unlink(path)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let dir = &self.full(dir);
        let begun = self.begin(Op::List, dir, format_args!(""))?;
        Ok(begun.state.world.dir(dir)?.current.keys().cloned().collect())
    }

    fn create_dir(&self, dir: &str) -> io::Result<()> {
        let dir = &self.full(dir);
        let mut begun = self.begin(Op::CreateDir, dir, format_args!(""))?;
        if begun.ignored {
            return Ok(());
        }
        begun.state.world.create_dir(dir)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        let dir = &self.full(dir);
        let mut begun = self.begin(Op::SyncDir, dir, format_args!("")).inspect_err(|error| {
            if !is_power_cut(error) {
                self.state.lock().world.poison_dir(dir);
            }
        })?;
        if begun.ignored {
            return Ok(());
        }
        begun.state.world.sync_dir(dir)
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn DirLock>> {
        let path = &self.full(path);
        let mut begun = self.begin(Op::Lock, path, format_args!(""))?;
        if !begun.state.locks.insert(path.clone()) {
            return Err(error(io::ErrorKind::WouldBlock, path));
        }
        if begun.state.world.find(path).is_err() {
            begun.state.world.put(path, Content::default())?;
        }
        Ok(Box::new(SimLock { disk: self.clone(), path: path.clone() }))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = self.powered()?;
        Ok(state.free_blocks().saturating_mul(super::content::BLOCK_BYTES))
    }

    fn total_bytes(&self) -> io::Result<u64> {
        Ok(self.powered()?.space_bytes.unwrap_or(u64::MAX))
    }

    fn create_disk(&self, path: &Path, _outside_of: &Path) -> io::Result<Arc<dyn Disk>> {
        let path = path.to_string_lossy().trim_start_matches('/').to_owned();
        let mut begun = self.begin(Op::CreateDisk, &path, format_args!(""))?;
        if begun.state.world.dir(&path).is_ok() {
            return Err(error(io::ErrorKind::AlreadyExists, &path));
        }
        begun.state.world.create_dir(&path)?;
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        begun.state.world.sync_dir(parent)?;
        drop(begun);
        Ok(Arc::new(Self { state: Arc::clone(&self.state), root: path }))
    }

    fn system_path(&self, path: &str) -> io::Result<PathBuf> {
        Ok(self.full(path).into())
    }

    fn link(&self, path: &str, target: &dyn Disk, target_path: &str) -> io::Result<()> {
        let (path, to) = (self.full(path), target.system_path(target_path)?);
        let to = to.to_string_lossy();
        let mut begun = self.begin(Op::Link, &path, format_args!(" -> {to}"))?;
        begun.state.world.link(&path, &to)
    }

    fn clone_file(&self, path: &str, _: &dyn Disk, _: &str) -> io::Result<Arc<dyn File>> {
        self.begin(Op::CloneFile, &self.full(path), format_args!(""))?;
        Err(error(io::ErrorKind::Unsupported, path))
    }

    fn remove_dir(&self, dir: &str) -> io::Result<()> {
        let dir = self.full(dir);
        let mut begun = self.begin(Op::RemoveDir, &dir, format_args!(""))?;
        begun.state.world.remove_dir(&dir)
    }
}

struct SimLock {
    disk: SimDisk,
    path: String,
}

impl DirLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.state.lock().locks.remove(&self.path);
    }
}

struct SimFile {
    disk: SimDisk,
    inode: Inode,
    path: String,
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if let Ok(file) = state.world.file(self.inode) {
            file.open_count -= 1;
            if file.open_count == 0 && state.world.may_have_nameless {
                state.world.drop_nameless();
            }
        }
    }
}

impl SimFile {
    fn begin(&self, op: Op, args: std::fmt::Arguments<'_>) -> io::Result<Begun<'_>> {
        self.disk.begin(op, &self.path, args)
    }
}

impl File for SimFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut begun = self.begin(Op::Read, format_args!(" {offset}+{}", buf.len()))?;
        let end = offset.saturating_add(buf.len() as u64);
        if begun.state.faults.touches_unreadable(&self.path, &(offset..end)) {
            return Err(error(io::ErrorKind::Other, &format!("bad sector of {}", self.path)));
        }
        let file = begun.state.world.file(self.inode)?;
        if end > file.current.len() {
            return Err(error(io::ErrorKind::UnexpectedEof, &self.path));
        }
        file.current.read(offset, buf);
        if let (Some(Effect::FlipRead(byte, bit)), false) = (begun.effect, buf.is_empty()) {
            let byte = byte % buf.len();
            buf[byte] ^= 1 << (bit % 8);
        }
        Ok(())
    }

    /// Does one read after the other, so that the same calls meet the same faults.
    fn read_many(&self, reads: &mut [ReadRequest<'_>]) {
        self.disk.state.lock().batches += 1;
        for read in reads {
            read.result = self.read_at(read.offset, read.bytes);
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut begun = self.begin(Op::Write, format_args!(" {offset}+{}", bytes.len()))?;
        if begun.ignored || bytes.is_empty() {
            return Ok(());
        }
        let free = begun.state.free_blocks();
        let effect = begun.effect;
        let file = begun.state.world.file(self.inode)?;
        let room = file.room_for(offset, bytes.len(), free);
        if room < bytes.len() {
            if room > 0 {
                file.write(offset, &bytes[..room]);
            }
            return Err(no_space(&self.path));
        }
        match effect {
            Some(Effect::ShortWrite(len)) => {
                let len = len.min(bytes.len());
                if len > 0 {
                    file.write(offset, &bytes[..len]);
                }
                return Err(error(io::ErrorKind::Other, &format!("injected short write of {}", self.path)));
            }
            Some(Effect::StaleSector(stale)) => {
                for (number, range) in sectors(offset, bytes.len()).enumerate() {
                    if number != stale {
                        file.write(offset + range.start as u64, &bytes[range]);
                    }
                }
            }
            Some(Effect::Misdirect(by)) => file.write(offset.saturating_add_signed(by), bytes),
            _ => file.write(offset, bytes),
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut begun = self.begin(Op::SyncData, format_args!("")).inspect_err(|error| {
            if let (false, Ok(file)) = (is_power_cut(error), self.disk.state.lock().world.file(self.inode)) {
                file.fail_sync();
            }
        })?;
        if !begun.ignored {
            begun.state.world.file(self.inode)?.sync();
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.disk.powered()?;
        Ok(state.world.file(self.inode)?.current.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut begun = self.begin(Op::SetLen, format_args!(" {len}"))?;
        if !begun.ignored {
            begun.state.world.file(self.inode)?.set_len(len);
        }
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut begun = self.begin(Op::Allocate, format_args!(" {len}"))?;
        if begun.ignored {
            return Ok(());
        }
        let blocks = len.div_ceil(super::content::BLOCK_BYTES);
        let free = begun.state.free_blocks();
        let file = begun.state.world.file(self.inode)?;
        let missing = (file.reserved_blocks..blocks).filter(|index| !file.current.has_block(*index)).count();
        if missing as u64 > free {
            return Err(no_space(&self.path));
        }
        file.reserved_blocks = file.reserved_blocks.max(blocks);
        if file.current.len() < len {
            file.set_len(len);
        }
        Ok(())
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        let mut state = self.disk.powered()?;
        Ok(state.world.file(self.inode)?.used_bytes())
    }
}
