//! The outside world of the engine: files and time behind traits, reproducible randomness, and
//! memory that is returned to the system.
//!
//! Invariants
//!   I1  No other crate of the engine uses files, clocks or randomness directly.
//!   I2  Every fault that the tests inject is an implementation or a wrapper of [`Disk`].
//!
//! [`posix`] is the real disk. [`sim`] is a simulated disk, which knows for each file which bytes
//! are durable and which a power cut may still lose. [`overlay`] wraps a disk that must not change.

pub mod aligned;
pub mod blocks;
mod direct;
pub mod disk;
pub mod heap;
pub mod overlay;
pub mod posix;
pub mod rng;
pub mod sim;
pub mod time;

pub use aligned::AlignedBytes;
pub use blocks::{Block, Blocks};
pub use disk::{read_sectors, DirLock, Disk, File, ReadRequest, SNAPSHOTS};
pub use overlay::OverlayDisk;
pub use rng::Rng;
pub use time::Clock;
