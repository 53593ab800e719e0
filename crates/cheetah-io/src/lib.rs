//! The outside world of the engine: files and time behind traits, randomness that can be repeated,
//! and memory that goes back to the system.
//!
//! Invariants
//!   I1  No other crate of the engine touches files, clocks or randomness.
//!   I2  Every fault that the tests inject is an implementation or a wrapper of [`Disk`].
//!
//! Two implementations of [`Disk`] exist: [`posix`], the real one, and [`sim`], which knows for
//! each file which bytes are durable and which a power cut may still take away. [`overlay`] wraps
//! one that is only to be read.

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
