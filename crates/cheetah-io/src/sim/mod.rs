//! The simulated disk, and the exploration of the possible results of a power cut.
//!
//! Fault model: the effects of a power cut
//!   F1  Data. Writes since the last `sync_data` of a file are lost or kept *per 512-byte sector*,
//!       independently and in any combination; a sector itself never tears. Of several unsynced
//!       writes to a sector any may be the last that survives.
//!   F2  Length. The length of a file is a separate outcome: the synced length, the newest, or one
//!       between. Bytes within a kept length that no kept write filled are zero.
//!   F3  Names. Creating, renaming and removing a file is lost or kept *per entry* until `sync_dir`
//!       of its directory, whatever happens to the contents. A rename within a directory is atomic;
//!       a rename between directories is two changes. A new directory is an entry of its parent.
//!   F4  Only syncs order changes between files, or between data, length and names.
//!   F5  After a failed `sync_data` its writes stay lost or kept per sector forever, although later
//!       syncs succeed, unless their 4 KiB block is written again (the kernel reports a lost page
//!       once and marks it clean). After a failed `sync_dir` no later change of that directory
//!       becomes durable.
//!
//! Fault model: the other faults of a device ([`Fault`], [`SimDisk::flip`], [`SimDisk::set_space`])
//!   fail an operation once or forever; write a part and fail; run out of space; acknowledge a
//!   write and lose it, leave one sector of it unchanged, or write it elsewhere; flip a bit at rest
//!   or in transit.
//!
//! Not modelled: torn sectors, a successful sync that makes nothing durable, unless requested
//! ([`Effect::Ignore`]), file systems that expose the former contents of blocks.
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
