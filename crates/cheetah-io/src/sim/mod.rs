//! The simulated disk, and the exploration of what a power cut may leave of it.
//!
//! Fault model: the effects of a power cut
//!   F1  Data. Writes since the last `sync_data` of a file are lost or kept *per 512-byte sector*,
//!       each on its own and in any combination; a sector itself never tears. Of several unsynced
//!       writes to a sector any may be the last that survives.
//!   F2  Length. The length of a file is an outcome of its own: the synced one, the newest, or one
//!       between. Bytes that a kept length covers and no kept write filled are zero.
//!   F3  Names. Creating, renaming and removing a file is lost or kept *per entry* until `sync_dir`
//!       of its directory, whatever happened to the contents. A rename inside a directory is
//!       atomic; one between directories is two changes. A new directory is an entry of its parent.
//!   F4  There is no order between files, or between data, length and names, other than through the
//!       syncs.
//!   F5  After a failed `sync_data` the writes it was for stay lost or kept per sector for ever,
//!       although later syncs succeed, unless their 4 KiB block is written again (the kernel
//!       reports a lost page once and marks it clean). After a failed `sync_dir` no later change of
//!       that directory becomes durable.
//!
//! Fault model: the other faults of a device ([`Fault`], [`SimDisk::flip`], [`SimDisk::set_space`])
//!   fail an operation once or for ever; write a part and fail; run out of space; acknowledge a
//!   write and not do it, leave one sector of it as it was, or put it elsewhere; flip a bit at rest
//!   or on the way.
//!
//! Not modelled: sectors that tear, a sync that lies unless asked to ([`Effect::Ignore`]), file
//! systems that expose the former contents of blocks.
//!
//! Everything is deterministic: the same calls and seeds give the same disk.

mod clock;
mod content;
mod crash;
mod disk;
mod explore;
mod fault;
mod hold;
mod world;

pub use clock::SimClock;
pub use crash::CrashPolicy;
pub use disk::{is_power_cut, SimDisk};
pub use explore::{explore, Failure, Image, Plan, Report};
pub use fault::{Effect, Fault, Op};
pub use hold::Hold;
