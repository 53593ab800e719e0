//! What a thread is about when it does not get on, or does something that takes long: told to the
//! observer that the caller of the engine has named, so that it can show it.
//!
//! One observer for the process: it finds out by the calling thread whose work it is, so that no
//! layer has to hand it down. Threads of the engine tell of their stages too; the observer knows
//! nobody to show these to.
//!
//! Invariants
//!   I1  Stages of a thread end in the reverse order in which they began, also when a panic ends
//!       them, and each end gets what its begin returned.

use std::sync::OnceLock;

/// What is waited for, or done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Waits for the lock of a row or a range.
    RowLock,
    /// Waits for the lock of a table.
    TableLock,
    /// Waits until a checkpoint makes room in the log, or is slowed down on account of it.
    LogSpace,
    /// Writes, or waits until others have written, what fills the memory.
    Memory,
    /// Rolls changes back.
    RollingBack,
}

/// What an observer wants to have back at the end of a stage.
pub type Before = [u64; 3];

/// Is told when stages begin and end. It must not wait, nor use the engine.
pub trait Observer: Send + Sync {
    /// The calling thread begins a stage.
    fn begin(&self, stage: Stage) -> Before;
    /// It ends; `before` is what its begin has returned.
    fn end(&self, stage: Stage, before: &Before);
}

static OBSERVER: OnceLock<Box<dyn Observer>> = OnceLock::new();

/// Names the observer, for all databases of the process; only the first one counts.
pub fn observe(observer: impl Observer + 'static) {
    let _ = OBSERVER.set(Box::new(observer));
}

/// A stage of this thread; it ends when this is dropped.
#[derive(Debug)]
pub struct InStage(Stage, Before);

/// Begins a stage.
#[must_use]
pub fn begin(stage: Stage) -> InStage {
    InStage(stage, OBSERVER.get().map_or([0; 3], |observer| observer.begin(stage)))
}

impl Drop for InStage {
    fn drop(&mut self) {
        if let Some(observer) = OBSERVER.get() {
            observer.end(self.0, &self.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static TOLD: RefCell<Vec<(bool, Stage, u64)>> = const { RefCell::new(Vec::new()) };
    }

    struct Teller;

    impl Observer for Teller {
        fn begin(&self, stage: Stage) -> Before {
            TOLD.with_borrow_mut(|told| {
                let count = told.len() as u64;
                told.push((true, stage, count));
                [count, 0, 0]
            })
        }
        fn end(&self, stage: Stage, before: &Before) {
            TOLD.with_borrow_mut(|told| told.push((false, stage, before[0])));
        }
    }

    #[test]
    fn stages_end_in_reverse_order_with_what_they_began_with() {
        observe(Teller);
        let ended = std::panic::catch_unwind(|| {
            let _outer = begin(Stage::RollingBack);
            let _inner = begin(Stage::LogSpace);
            panic!("within two stages");
        });
        assert!(ended.is_err());
        let told = TOLD.with_borrow(Clone::clone);
        let wanted = [
            (true, Stage::RollingBack, 0),
            (true, Stage::LogSpace, 1),
            (false, Stage::LogSpace, 1),
            (false, Stage::RollingBack, 0),
        ];
        assert_eq!(told, wanted);
    }
}
