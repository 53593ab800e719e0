//! A clock that advances only on request.

use crate::Clock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Simulated time, starting at 0. Clones share the time.
#[derive(Clone, Default, Debug)]
pub struct SimClock(Arc<AtomicU64>);

impl SimClock {
    /// Advances the time.
    pub fn advance_ns(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::SeqCst);
    }
}

impl Clock for SimClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
    fn sleep_ns(&self, ns: u64) {
        self.advance_ns(ns);
    }
    /// Returns the time and advances it by one, so that a repeated run gives the same bytes.
    fn unique(&self) -> [u8; 16] {
        let now = self.0.fetch_add(1, Ordering::SeqCst);
        u128::from(now).to_be_bytes()
    }
    /// Returns random bytes derived from the time, so that a repeated run gives the same bytes.
    fn random(&self) -> std::io::Result<[u8; 16]> {
        let now = self.0.fetch_add(1, Ordering::SeqCst);
        let mut rng = crate::Rng::new(now);
        Ok((u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())).to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_moves_the_shared_time() {
        let clock = SimClock::default();
        let other = clock.clone();
        clock.sleep_ns(5);
        clock.advance_ns(2);
        assert_eq!(other.now_ns(), 7);
    }
}
