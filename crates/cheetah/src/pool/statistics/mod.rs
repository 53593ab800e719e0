//! Statistics of the pool: its contents and its work.

mod cache_curve;
mod cached;
mod pool_stats;

pub use cache_curve::CurvePoint;
pub(in crate::pool) use cache_curve::{CacheCurve, CacheNow};
pub use cached::Cached;
pub use pool_stats::{PoolFlow, PoolStats};
