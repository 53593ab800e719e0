//! Transactions without their tables: identities, table locks, and the undo log.

mod active;
mod locks;
mod undo_log;

pub use active::{Active, Slot};
pub use locks::{Answer, LockMode, LockTable, Owner, Ticket};
pub use undo_log::{start_record, UndoLog, UndoStart};
