//! External sorting of records by key, in a buffer of limited size and in compressed runs on disk.
//!
//! A [`Sorter`] takes records in any order. When its memory is full it sorts its records and writes
//! them as a *run*; at the end all runs are merged. Files of runs need not be durable. They are
//! unlinked as soon as they are created, and a startup removes files that are left over from a
//! crash ([`TempFiles`]).

mod ahead;
mod batch;
mod buffer;
mod filling;
mod memory;
mod merge;
mod runs;
mod sorter;
#[cfg(test)]
mod tests;
mod writing;

pub use filling::Filling;
pub use memory::{Share, SortMemory};
pub use merge::Merge;
pub use runs::TempFiles;
pub use sorter::Sorter;
