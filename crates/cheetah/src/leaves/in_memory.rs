//! Leaves on a simulated disk without a page map or checkpoints: for benchmarks, and for tests of
//! the layers above.

use crate::base::{Config, Epoch, Health, SegmentId};
use crate::durable::Durable;
use crate::keys::Keys;
use crate::leaves::{ColdLeaves, Leaves};
use crate::memory::MemoryBudget;
use crate::page_map::Identity;
use crate::pool::{Pool, PoolParts};
use crate::segment::Segments;
use cheetah_io::sim::{SimClock, SimDisk};
use std::sync::Arc;

impl Leaves {
    /// Creates the leaves of a new pool on a new simulated disk without a page map. Pages are
    /// evicted and read again, but there are no checkpoints.
    ///
    /// # Panics
    /// If the configuration is not valid.
    pub fn in_memory(config: &Config) -> Self {
        let health = Arc::new(Health::default());
        let durable = Arc::new(Durable::new(Arc::new(SimDisk::new()), health.clone()));
        let identity = Identity { uuid: [0; 16], incarnation: 1 };
        let segments = Segments::open(durable, config, identity, SegmentId(1)).expect("an empty disk opens");
        let clock = Arc::new(SimClock::default());
        let memory = Arc::new(MemoryBudget::new(config.buffer_pool_bytes));
        let keys = Keys::none(clock.clone(), identity.uuid);
        let (cold, segments) = (ColdLeaves::new(&memory, config), Arc::new(segments));
        let parts = PoolParts { health, clock, keys, memory, segments, beside: cold.clone() };
        Self::new(Pool::open(config, parts, Epoch(1), []), cold)
    }
}
