//! Faults of a device, as rules that match operations.

use std::io;
use std::ops::Range;

/// Kinds of operation of a disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "each is the method of the same name of Disk or File")]
pub enum Op {
    Create,
    Open,
    Read,
    Write,
    SyncData,
    SetLen,
    Allocate,
    Rename,
    Unlink,
    List,
    CreateDir,
    SyncDir,
    Lock,
    CreateDisk,
    Link,
    CloneFile,
    RemoveDir,
}

impl Op {
    /// Returns whether the operation changes the contents of the disk, or their durable part.
    pub fn is_change(self) -> bool {
        !matches!(self, Op::Open | Op::Read | Op::List | Op::Lock)
    }
}

/// The fault that happens instead of the operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Effect {
    /// It fails, without effect. A failed sync has the consequences of F5 (head of `sim`).
    Fail(io::ErrorKind),
    /// Only this many bytes of a write are written, and the write fails.
    ShortWrite(usize),
    /// Succeeds without effect, even a write or a sync. Operations that return a file fail instead.
    Ignore,
    /// A write succeeds, but the sector with this number within it keeps its old content.
    StaleSector(usize),
    /// A write succeeds at a position that is higher by this many bytes, or lower, but not below 0.
    Misdirect(i64),
    /// A read succeeds with one bit flipped: the byte (modulo the length) and the bit.
    FlipRead(usize, u8),
}

/// A rule: the `nth` matching operation since the injection meets `effect`.
#[derive(Clone, Debug)]
pub struct Fault {
    op: Option<Op>,
    path: Option<String>,
    nth: u64,
    forever: bool,
    effect: Effect,
    seen: u64,
}

impl Fault {
    /// The next operation of kind `op` fails with an I/O error.
    pub fn on(op: Op) -> Self {
        Self { op: Some(op), ..Self::any() }
    }

    /// The next operation of any kind fails with an I/O error.
    pub fn any() -> Self {
        let effect = Effect::Fail(io::ErrorKind::Other);
        Self { op: None, path: None, nth: 0, forever: false, effect, seen: 0 }
    }

    /// Lets `n` matching operations pass first.
    pub fn after(self, n: u64) -> Self {
        Self { nth: n, ..self }
    }

    /// Matches only paths that contain `part`.
    pub fn path(self, part: &str) -> Self {
        Self { path: Some(part.to_owned()), ..self }
    }

    /// All later matching operations meet the effect too.
    pub fn forever(self) -> Self {
        Self { forever: true, ..self }
    }

    /// Replaces the effect.
    pub fn effect(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    fn meets(&mut self, op: Op, path: &str) -> bool {
        if self.op.is_some_and(|o| o != op) || self.path.as_ref().is_some_and(|p| !path.contains(p)) {
            return false;
        }
        self.seen += 1;
        self.seen == self.nth + 1 || (self.forever && self.seen > self.nth)
    }
}

#[derive(Default)]
pub(super) struct Faults {
    rules: Vec<Fault>,
    /// A part of the path of a file, and the unreadable bytes.
    unreadable: Vec<(String, Range<u64>)>,
    met: u64,
}

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.rules.push(fault);
    }

    pub(super) fn add_unreadable(&mut self, path: &str, bytes: Range<u64>) {
        self.unreadable.push((path.to_owned(), bytes));
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
        self.unreadable.clear();
    }

    pub(super) fn touches_unreadable(&self, path: &str, read: &Range<u64>) -> bool {
        self.unreadable
            .iter()
            .any(|(part, bytes)| path.contains(part) && bytes.start < read.end && read.start < bytes.end)
    }

    pub(super) fn met(&self) -> u64 {
        self.met
    }

    /// The effect for this operation. All matching rules count it; the first that takes effect
    /// decides.
    pub(super) fn next(&mut self, op: Op, path: &str) -> Option<Effect> {
        let mut effect = None;
        for rule in &mut self.rules {
            if rule.meets(op, path) {
                effect = effect.or(Some(rule.effect));
            }
        }
        self.met += u64::from(effect.is_some());
        effect
    }
}
