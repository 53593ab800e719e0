//! Delays of microseconds. Each thread adds them up until the sum is worth a sleep, because even
//! the shortest sleep takes sixty microseconds.

use std::cell::Cell;

const WORTH_SLEEPING_NS: u64 = 1_000_000;

thread_local! {
    static OWED_NS: Cell<u64> = const { Cell::new(0) };
}

/// Adds a delay to the sum of this thread. Returns the time to sleep if the sum is large enough.
pub fn owe(delay_ns: u64) -> Option<u64> {
    let owed_ns = OWED_NS.get() + delay_ns;
    let is_due = owed_ns >= WORTH_SLEEPING_NS;
    OWED_NS.set(if is_due { 0 } else { owed_ns });
    is_due.then_some(owed_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_delays_add_up_and_none_is_lost() {
        let slept: u64 = (0..1_000).filter_map(|_| owe(10_000)).sum();
        assert_eq!(slept, 10_000_000);
        assert_eq!(owe(0), None);
    }
}
