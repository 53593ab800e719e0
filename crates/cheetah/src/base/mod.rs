//! What every layer shares: identifiers, errors, configuration, the health of the engine, hashing
//! and delays; and what tests hook into: `planted`, `reach`, `sync` and `model`.

mod background_errors;
pub mod brake;
pub mod config;
pub mod error;
pub(crate) mod hash;
pub mod health;
pub mod ids;
#[cfg(test)]
pub(crate) mod model;
pub mod planted;
pub mod reach;
pub(crate) mod sync;
mod threads;
mod xid;

pub use background_errors::BackgroundErrors;
pub use config::Config;
pub use error::{ConstraintProblem, Error, ErrorKind, Result, SearchProblem};
pub use health::Health;
pub use ids::{Epoch, Lsn, PageId, SegmentId, SessionId, TableId, TreeId, TxnId, UndoPtr};
pub use threads::statement_threads;
#[cfg(test)]
pub(crate) use threads::RaisedAtEnd;
pub use xid::Xid;
