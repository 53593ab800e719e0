//! Stages say why a thread waits, or which long work it does, for an observer that shows them.
//!
//! The process has one observer. It identifies the connection by the calling thread, so that no
//! layer has to pass it down. The engine's own threads report their stages too, but belong to no
//! connection.
//!
//! Invariants
//!   I1  The stages of a thread end in reverse order, even if a panic ends them. Each end gets the
//!       value that its begin returned.

use std::sync::OnceLock;

/// The reason for a wait, or a kind of long work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Waits for the lock of a row or a range.
    RowLock,
    /// Waits for the lock of a table.
    TableLock,
    /// Waits until a checkpoint frees space in the log, or is delayed because the log fills up.
    LogSpace,
    /// Writes dirty pages to free memory, or waits until other threads have written them.
    Memory,
    /// Rolls changes back.
    RollingBack,
}

/// State that an observer stores for the end of a stage.
pub type Before = [u64; 3];

/// The result of [`Observer::begin`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Begun {
    /// The ID of the connection of this thread, or 0 if it has none.
    pub connection: u64,
    /// State for the end of the stage.
    pub before: Before,
}

/// The observer is notified when stages begin and end. It must not wait, and must not call the
/// engine.
pub trait Observer: Send + Sync {
    /// The calling thread begins a stage.
    fn begin(&self, stage: Stage) -> Begun;
    /// The calling thread ends a stage, whose begin returned `before`.
    fn end(&self, stage: Stage, before: &Before);
    /// The ID of the connection of the calling thread, or 0 if it has none.
    fn connection(&self) -> u64;
}

static OBSERVER: OnceLock<Box<dyn Observer>> = OnceLock::new();

/// Sets the observer for all databases of the process. Only the first observer is used.
pub fn observe(observer: impl Observer + 'static) {
    let _ = OBSERVER.set(Box::new(observer));
}

/// The ID of the connection of this thread, or 0 if it has none.
pub fn connection() -> u64 {
    OBSERVER.get().map_or(0, |observer| observer.connection())
}

/// A stage of this thread. It ends on drop.
#[derive(Debug)]
pub struct InStage(Stage, Begun);

/// Begins a stage.
#[must_use]
pub fn begin(stage: Stage) -> InStage {
    InStage(stage, OBSERVER.get().map(|observer| observer.begin(stage)).unwrap_or_default())
}

impl InStage {
    /// The stage.
    pub fn stage(&self) -> Stage {
        self.0
    }

    /// The ID of the connection of this thread, or 0 if it has none.
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

    pub(in crate::base) fn become_connection(number: u64) {
        observe(Teller);
        CONNECTION.set(number);
    }

    /// The begins and ends of stages that this thread reported, with the values that the begins
    /// returned.
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
