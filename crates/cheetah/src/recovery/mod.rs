//! Opening a database: its last generation, the log since then, and taking back what was not committed.

mod open;
mod redo;

pub(crate) use open::{open, Rest};
