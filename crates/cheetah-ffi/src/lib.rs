//! The C ABI of the Cheetah engine, for the MariaDB plugin.
//!
//! Many files: one for each group of calls in `plugin/cheetah.h`. Each file can be read alone;
//! `barrier`, `callbacks`, `codes` and `types` are shared by all files.
//!
//! Invariants
//!   I1  No panic crosses the ABI: every function that calls the engine does so inside `barrier`;
//!       other functions only read an existing value.
//!   I2  Functions that can fail return a [`codes::Code`]; the message and the duplicate key are
//!       stored per thread.
//!   I3  `plugin/cheetah.h` is what cbindgen generates from the declarations here. A test compares
//!       them, and `UPDATE=1 cargo test -p cheetah-ffi --test header` updates the header.
//! Safety    Callers pass pointers that this library returned and has not freed, or that point to
//!           initialised values of the declared type; byte ranges are readable in their whole
//!           length. A handle is used by one thread at a time; `CheetahDb` and `CheetahTable` may
//!           be shared. So parameters are references where C sees pointers, and a handle that is
//!           freed is a box.
#![expect(clippy::missing_safety_doc, reason = "one contract for all functions, in the head of the crate")]

mod alter;
mod barrier;
mod builds;
mod callbacks;
mod cardinalities;
mod codes;
mod cursors;
mod database;
mod encryption;
mod estimates;
mod foreign_keys;
mod formats;
mod fulltext;
mod keys;
mod listing;
mod loads;
mod rows;
mod snapshots;
mod stages;
mod statistics;
mod tables;
mod transactions;
mod two_phase;
mod types;
mod waits;

pub use alter::*;
pub use barrier::*;
pub use builds::*;
pub use cardinalities::*;
pub use codes::*;
pub use cursors::*;
pub use database::*;
pub use encryption::*;
pub use estimates::*;
pub use foreign_keys::*;
pub use formats::*;
pub use fulltext::*;
pub use keys::*;
pub use listing::*;
pub use loads::*;
pub use rows::*;
pub use snapshots::*;
pub use stages::*;
pub use statistics::*;
pub(crate) use tables::STORED_KEY_BYTES_MAX;
pub use tables::*;
pub use transactions::*;
pub use two_phase::*;
pub use types::*;
pub use waits::*;
