//! Types that all layers share: identifiers, errors, configuration, the health of the engine,
//! hashing, delays, statistics about the work and the waits of threads, and the test hooks
//! `planted`, `reach`, `sync` and `model`.
//!
//! Many files: one for each thing that layers share.

mod background_errors;
pub(crate) mod bloom;
pub mod brake;
pub mod config;
pub mod error;
pub(crate) mod hash;
pub mod health;
pub mod ids;
pub mod key_service;
pub mod latency;
#[cfg(test)]
pub(crate) mod model;
mod opaque;
pub mod page_work;
pub mod planted;
pub mod reach;
mod settings;
pub mod stages;
pub mod stalls;
pub(crate) mod sync;
mod threads;
mod xid;

pub use background_errors::BackgroundErrors;
pub use config::Config;
pub use error::{ConstraintProblem, Error, ErrorKind, Result, SearchProblem};
pub use health::Health;
pub use ids::{Epoch, Lsn, PageId, SegmentId, SessionId, TableId, TreeId, TxnId, UndoPtr};
pub use key_service::{KeyService, KeySource};
pub(crate) use opaque::opaque;
pub(crate) use planted::sound;
pub use settings::{Adjustment, ServerSettings};
pub use threads::statement_threads;
#[cfg(test)]
pub(crate) use threads::RaisedAtEnd;
pub use xid::Xid;
