//! The paths of the files that pinned snapshots name, and the files kept only for them.
//!
//! Invariants (docs/developers/durability.md)
//!   Z2  A file that a pin names is not unlinked. If the database no longer needs the file, it is
//!       *held*, and unlinked when the last pin that names it ends.
//!   Z8  Another thread may end all pins at once. After that [`Pin::check`] fails.
//!   Z9  Pins are not stored on disk. A startup removes held files.
//! Locks     `named`, never across I/O.

use super::Durable;
use crate::base::{opaque, sound, Error, Result};
use cheetah_io::Disk;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::Arc;

/// Each pin keeps files that the database may no longer need.
const PINS_MAX: usize = 8;

#[derive(Default)]
pub(super) struct Pins {
    named: Mutex<Named>,
}

#[derive(Default)]
struct Named {
    /// The paths that each pin names, by the pin's number.
    by_pin: BTreeMap<u64, HashSet<String>>,
    next_pin: u64,
    /// Files that are kept only for pins, with their lengths.
    held: BTreeMap<String, u64>,
}

impl Named {
    fn has(&self, path: &str) -> bool {
        self.by_pin.values().any(|paths| paths.contains(path))
    }

    /// Takes out of `held` the files that no pin names any more. With the planted bug, takes all
    /// held files that the pin with the paths `ended` named.
    fn take_free(&mut self, ended: &HashSet<String>) -> Vec<String> {
        let is_free = |path: &String| {
            !self.has(path) || ended.contains(path) && !sound!(true, "backup: release what another pin names")
        };
        let free: Vec<String> = self.held.keys().filter(|path| is_free(path)).cloned().collect();
        for path in &free {
            self.held.remove(path);
        }
        free
    }
}

impl Pins {
    pub(super) fn let_go(&self, disk: &dyn Disk, path: &str) -> io::Result<bool> {
        if !sound!(self.names(path), "backup: unlink what is pinned") {
            return disk.unlink(path).map(|()| true);
        }
        let bytes = disk.open(path)?.len()?;
        let mut named = self.named.lock();
        if named.has(path) {
            named.held.insert(path.to_owned(), bytes);
            return Ok(false);
        }
        drop(named);
        disk.unlink(path).map(|()| true)
    }

    pub(super) fn names(&self, path: &str) -> bool {
        self.named.lock().has(path)
    }

    pub(super) fn counts(&self) -> (usize, u64) {
        let named = self.named.lock();
        (named.by_pin.len(), named.held.values().sum())
    }

    pub(super) fn give_up(&self, durable: &Durable) {
        let pins = self.named.lock().by_pin.keys().copied().collect::<Vec<_>>();
        pins.into_iter().for_each(|pin| self.end(durable, pin));
    }

    fn end(&self, durable: &Durable, pin: u64) {
        let free = {
            let mut named = self.named.lock();
            let Some(paths) = named.by_pin.remove(&pin) else { return };
            named.take_free(&paths)
        };
        // If the engine has stopped, the next startup removes the files.
        if !sound!(durable.health().check().is_ok(), "backup: keep what was released") {
            return;
        }
        // If unlinking fails, the next startup removes the files.
        free.iter().for_each(|path| drop(durable.disk().unlink(path)));
    }
}

/// Keeps files from being unlinked. Dropping the pin unlinks the files that were kept only for it.
pub struct Pin {
    durable: Arc<Durable>,
    number: u64,
}

impl Pin {
    pub(super) fn new(durable: &Arc<Durable>, paths: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut named = durable.pins.named.lock();
        if named.by_pin.len() >= PINS_MAX {
            let (actual, limit) = (PINS_MAX as u64 + 1, PINS_MAX as u64);
            return Err(Error::Limit { what: "snapshots being pinned or written", actual, limit });
        }
        let number = named.next_pin;
        named.next_pin += 1;
        named.by_pin.insert(number, paths.into_iter().collect());
        Ok(Self { durable: Arc::clone(durable), number })
    }

    /// The disk of the files, with its barriers.
    pub fn durable(&self) -> &Durable {
        &self.durable
    }

    /// Fails with `DiskFull` if the pin had to be ended.
    pub fn check(&self) -> Result<()> {
        match self.durable.pins.named.lock().by_pin.contains_key(&self.number) {
            true => Ok(()),
            false => Err(Error::DiskFull(
                "the snapshot was abandoned: the disk was full, and it kept files that the database no longer \
                 needs"
                    .into(),
            )),
        }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.durable.pins.end(&self.durable, self.number);
    }
}

opaque!(Pin);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Health;
    use cheetah_io::sim::SimDisk;

    fn files(names: &[&str]) -> (SimDisk, Arc<Durable>) {
        let disk = SimDisk::new();
        for name in names {
            disk.create(name).unwrap().write_at(0, &[1; 100]).unwrap();
        }
        let durable = Durable::new(Arc::new(disk.clone()), Arc::new(Health::default()));
        (disk, Arc::new(durable))
    }

    fn pin(durable: &Arc<Durable>, names: &[&str]) -> Pin {
        durable.pin(names.iter().map(|name| (*name).to_owned())).unwrap()
    }

    #[test]
    fn a_file_goes_when_it_is_let_go_and_no_pin_names_it() {
        let (disk, durable) = files(&["a", "b", "c"]);
        let (first, second) = (pin(&durable, &["a", "b"]), pin(&durable, &["b"]));
        assert!(!durable.let_go("a").unwrap() && !durable.let_go("b").unwrap());
        assert!(durable.let_go("c").unwrap());
        assert_eq!((durable.pinned(), disk.paths().join(" ")), ((2, 200), "a b".into()));
        drop(first);
        assert_eq!((durable.pinned(), disk.paths().join(" ")), ((1, 100), "b".into()));
        drop(second);
        assert_eq!((durable.pinned(), disk.paths().len()), ((0, 0), 0));
    }

    #[test]
    fn what_was_not_let_go_stays_when_a_pin_ends() {
        let (disk, durable) = files(&["a"]);
        drop(pin(&durable, &["a"]));
        assert_eq!(disk.paths(), ["a"]);
    }

    #[test]
    fn pins_that_are_given_up_say_so_and_free_their_files() {
        let (disk, durable) = files(&["a"]);
        let pin = pin(&durable, &["a"]);
        durable.let_go("a").unwrap();
        pin.check().unwrap();
        durable.give_up_pins();
        assert!(matches!(pin.check(), Err(Error::DiskFull(_))));
        assert!(disk.paths().is_empty());
    }

    #[test]
    fn there_are_only_so_many_pins() {
        let (_disk, durable) = files(&[]);
        let pins = (0..PINS_MAX).map(|_| pin(&durable, &[])).collect::<Vec<_>>();
        assert!(matches!(durable.pin([]), Err(Error::Limit { .. })));
        drop(pins);
        durable.pin([]).unwrap();
    }
}
