//! The rate of background writing, and the delay of writers when background writing is too slow.
//!
//! Both rise smoothly with the pressure, so that throughput falls gradually.

/// The share of dirty pages from which on the cleaner's rate is not 0, in percent of the bytes of
/// the frames. The rate is used only when the pressure is high.
const DIRTY_LOW_PERCENT: u64 = 10;
/// At this share the cleaner uses the whole I/O capacity, and above this share more than that.
const PRESSING_PERCENT: u64 = 75;
/// From this share on writers are delayed, because the cleaner is too slow.
const DELAYING_PERCENT: u64 = 85;
/// At this share the delay is the longest.
const FULL_PERCENT: u64 = 97;
/// The longest delay of one operation.
const DELAY_MAX_NS: u64 = 500_000;

/// The amounts that cause pressure, in percent of their limits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pressure {
    /// Bytes of the dirty pages, in percent of the frames' limit.
    pub dirty_percent: u64,
    /// The log written since the last checkpoint began, in percent of its limit.
    pub log_percent: u64,
}

impl Pressure {
    fn worst(self) -> u64 {
        self.dirty_percent.max(self.log_percent)
    }

    /// Returns whether the share of dirty pages is so high that the cleaner writes any dirty page.
    pub fn is_high(self) -> bool {
        self.dirty_percent >= PRESSING_PERCENT
    }

    /// The number of pages that the cleaner may write in a second. `io_capacity` bounds it until
    /// the pressure is high.
    pub fn cleaner_pages_per_second(self, io_capacity: u32) -> u64 {
        let capacity = u64::from(io_capacity);
        match self.dirty_percent {
            0..DIRTY_LOW_PERCENT => 0,
            dirty @ DIRTY_LOW_PERCENT..PRESSING_PERCENT => {
                capacity * (dirty - DIRTY_LOW_PERCENT + 1) / (PRESSING_PERCENT - DIRTY_LOW_PERCENT)
            }
            dirty => capacity * (1 + (dirty - PRESSING_PERCENT)),
        }
    }

    /// The number of pages a second that a checkpoint with `pages_left` must write to end within
    /// `seconds_left`, or more when the log or the pool fills up.
    pub fn checkpoint_pages_per_second(self, pages_left: usize, seconds_left: u64, io_capacity: u32) -> u64 {
        let in_time = pages_left as u64 * 5 / (4 * seconds_left.max(1));
        let pressed = u64::from(io_capacity) * self.worst() / 50;
        in_time.max(pressed).max(u64::from(io_capacity) / 4)
    }

    /// The delay of a writer before its next operation because of dirty pages, in nanoseconds. The
    /// log delays writers separately.
    pub fn delay_ns(self) -> u64 {
        let over = self.dirty_percent.clamp(DELAYING_PERCENT, FULL_PERCENT) - DELAYING_PERCENT;
        let range = FULL_PERCENT - DELAYING_PERCENT;
        DELAY_MAX_NS * over * over / (range * range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirty(dirty_percent: u64) -> Pressure {
        Pressure { dirty_percent, log_percent: 0 }
    }

    #[test]
    fn the_cleaner_speeds_up_without_a_step_back() {
        let rates: Vec<u64> =
            (0..=100).map(|percent| dirty(percent).cleaner_pages_per_second(2000)).collect();
        assert_eq!(rates[9], 0);
        assert!(rates.windows(2).all(|pair| pair[0] <= pair[1]), "{rates:?}");
        assert!(rates[74] <= 2000 && rates[95] >= 20_000, "{rates:?}");
    }

    #[test]
    fn writers_feel_nothing_before_the_cleaner_falls_behind_and_then_ever_more() {
        assert_eq!(dirty(85).delay_ns(), 0);
        assert_eq!(dirty(91).delay_ns(), DELAY_MAX_NS / 4);
        assert_eq!(dirty(100).delay_ns(), DELAY_MAX_NS);
    }

    #[test]
    fn a_checkpoint_goes_as_fast_as_its_time_or_the_pressure_asks() {
        assert_eq!(dirty(0).checkpoint_pages_per_second(100_000, 100, 2000), 1250);
        assert_eq!(dirty(0).checkpoint_pages_per_second(10, 100, 2000), 500);
        assert_eq!(dirty(80).checkpoint_pages_per_second(10, 100, 2000), 3200);
    }
}
