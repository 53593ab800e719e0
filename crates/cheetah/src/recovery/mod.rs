//! Opening a database: its last generation, the log since then, and taking back what was not committed.

mod lanes;
mod open;
mod redo;
mod window;

pub(crate) use open::{open, Crew, Rest};
