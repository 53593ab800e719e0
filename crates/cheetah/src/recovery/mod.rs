//! Startup recovery: its last epoch, the log since then, and rolling back what was not committed.

mod lanes;
mod open;
mod redo;
mod window;

pub(crate) use open::{open, Crew, Rest};
