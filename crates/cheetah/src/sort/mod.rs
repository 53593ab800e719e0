//! External sorting: records by key, in a bounded buffer and in compressed runs on disk.
//!
//! A [`Sorter`] takes records in any order. When its memory is full it sorts what it has and writes
//! it as a *run*; at the end all runs are merged. Files of runs need no durability: they lose their
//! name as soon as they are there, and a startup removes what a crash has left ([`TempFiles`]).

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
