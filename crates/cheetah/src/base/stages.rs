//! The reason why a thread is held up, or its long work: told to the observer that the caller of
//! the engine has named, so that it can show it.
//!
//! One observer for the process: it finds out by the calling thread whose work it is, so that no
//! layer has to hand it down. Threads of the engine tell of their stages too; the observer knows
//! nobody to show these to.
//!
//! Invariants
//!   I1  Stages of a thread end in the reverse order in which they began, also when a panic ends
//!       them, and each end gets what its begin returned.

use std::sync::OnceLock;

/// The reason of the wait, or the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Waits for the lock of a row or a range.
    RowLock,
    /// Waits for the lock of a table.
    TableLock,
    /// Waits until a checkpoint makes room in the log, or is slowed down on account of it.
    LogSpace,
    /// Writes the pages that fill the memory, or waits until others have written them.
    Memory,
    /// Rolls changes back.
    RollingBack,
}

/// State that an observer wants to have back at the end of a stage.
pub type Before = [u64; 3];

/// An observer's answer when a stage begins.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Begun {
    /// The number of the connection whose thread it is; 0 when it is nobody's.
    pub connection: u64,
    /// For the end of the stage.
    pub before: Before,
}

/// Is told when stages begin and end. It must not wait, nor use the engine.
pub trait Observer: Send + Sync {
    /// The calling thread begins a stage.
    fn begin(&self, stage: Stage) -> Begun;
    /// It ends; `before` is what its begin has returned.
    fn end(&self, stage: Stage, before: &Before);
    /// The number of the connection whose thread calls; 0 when it is nobody's.
    fn connection(&self) -> u64;
}

static OBSERVER: OnceLock<Box<dyn Observer>> = OnceLock::new();

/// Names the observer, for all databases of the process; only the first one counts.
pub fn observe(observer: impl Observer + 'static) {
    let _ = OBSERVER.set(Box::new(observer));
}

/// The number of the connection whose thread this is; 0 when it is nobody's.
pub fn connection() -> u64 {
    OBSERVER.get().map_or(0, |observer| observer.connection())
}

/// A stage of this thread; it ends when this is dropped.
#[derive(Debug)]
pub struct InStage(Stage, Begun);

/// Begins a stage.
#[must_use]
pub fn begin(stage: Stage) -> InStage {
    InStage(stage, OBSERVER.get().map(|observer| observer.begin(stage)).unwrap_or_default())
}

impl InStage {
    /// Which stage it is.
    pub fn stage(&self) -> Stage {
        self.0
    }

    /// The number of the connection whose thread this is; 0 when it is nobody's.
    pub fn connection(&self) -> u64 {
        self.1.connection
    }
}

impl Drop for InStage {
    fn drop(&mut self) {
        if let Some(observer) = OBSERVER.get() {
            observer.end(self.0, &self.1.before);
        }
    }
}

/// The observer of all tests of this crate.
#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use std::cell::{Cell, RefCell};

    thread_local! {
        static CONNECTION: Cell<u64> = const { Cell::new(0) };
        static TOLD: RefCell<Vec<(bool, Stage, u64)>> = const { RefCell::new(Vec::new()) };
    }

    struct Teller;

    impl Observer for Teller {
        fn begin(&self, stage: Stage) -> Begun {
            TOLD.with_borrow_mut(|told| {
                let count = told.len() as u64;
                told.push((true, stage, count));
                Begun { connection: CONNECTION.get(), before: [count, 0, 0] }
            })
        }
        fn end(&self, stage: Stage, before: &Before) {
            TOLD.with_borrow_mut(|told| told.push((false, stage, before[0])));
        }
        fn connection(&self) -> u64 {
            CONNECTION.get()
        }
    }

    /// From now on this thread is that of a connection.
    pub(in crate::base) fn become_connection(number: u64) {
        observe(Teller);
        CONNECTION.set(number);
    }

    /// The calls to the observer by this thread: begins and ends of stages, with the results of the
    /// begins.
    pub(in crate::base) fn told() -> Vec<(bool, Stage, u64)> {
        TOLD.with_borrow(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{become_connection, told};
    use super::*;

    #[test]
    fn stages_end_in_reverse_order_with_what_they_began_with() {
        become_connection(71);
        let ended = std::panic::catch_unwind(|| {
            let _outer = begin(Stage::RollingBack);
            let inner = begin(Stage::LogSpace);
            assert_eq!((inner.stage(), inner.connection()), (Stage::LogSpace, 71));
            panic!("within two stages");
        });
        assert!(ended.is_err());
        let wanted = [
            (true, Stage::RollingBack, 0),
            (true, Stage::LogSpace, 1),
            (false, Stage::LogSpace, 1),
            (false, Stage::RollingBack, 0),
        ];
        assert_eq!(told(), wanted);
    }
}
