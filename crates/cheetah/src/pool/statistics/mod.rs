//! The pool in numbers: counters for status, and what is in memory.

mod cache_curve;
mod cached;
mod counters;
mod pool_stats;

pub use cache_curve::CurvePoint;
pub(in crate::pool) use cache_curve::{CacheCurve, CacheNow};
pub use cached::Cached;
pub(crate) use counters::Counter;
pub(in crate::pool) use counters::Counters;
pub use pool_stats::{PoolFlow, PoolStats};
