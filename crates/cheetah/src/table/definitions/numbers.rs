//! Auto-increment values, with the same numbers and gaps as InnoDB's.

/// The values of a counter that a session takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stride {
    /// The difference between two values; 0 counts as 1.
    pub increment: u64,
    /// The start of the sequence: values differ from it by multiples of the increment. 0 if larger
    /// than the increment.
    pub offset: u64,
}

/// The values that a statement requests from a table's counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbers {
    /// The increment and the offset of the values.
    pub stride: Stride,
    /// The largest value that the column can hold.
    pub largest: u64,
    /// The number of values requested.
    pub count: u64,
}

/// Values reserved for the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reserved {
    /// The first value; greater than the largest one if all values are used up.
    pub first: u64,
    /// The number of values.
    pub count: u64,
    /// The next counter value.
    pub next: u64,
}

impl Stride {
    /// `u64::MAX` if none is left.
    fn first_from(self, at_least: u64) -> u64 {
        if self.increment <= 1 {
            return at_least;
        }
        let offset = if self.offset > self.increment { 0 } else { self.offset };
        if at_least <= offset {
            return offset;
        }
        let steps = (at_least - offset).div_ceil(self.increment);
        steps.checked_mul(self.increment).and_then(|way| way.checked_add(offset)).unwrap_or(u64::MAX)
    }

    /// `u64::MAX` if none is left.
    pub(in crate::table) fn next_after(self, used: u64) -> u64 {
        used.checked_add(1).map_or(u64::MAX, |next| self.first_from(next))
    }
}

impl Numbers {
    /// The values for a caller that reads `counter`. A counter beyond the largest value shows that
    /// all are used up.
    pub(in crate::table) fn reserve(&self, counter: u64) -> Reserved {
        let fitting = if counter < self.largest { self.stride.first_from(counter) } else { counter };
        let first = if fitting < self.largest { fitting } else { counter };
        if first > self.largest {
            return Reserved { first, count: 0, next: counter };
        }
        let way = self.count.saturating_sub(1).checked_mul(self.stride.increment.max(1));
        let last = way.and_then(|way| first.checked_add(way));
        let next = last.map_or(u64::MAX, |last| self.stride.next_after(last));
        Reserved { first, count: self.count, next: next.max(counter) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserve(counter: u64, (increment, offset, largest, count): (u64, u64, u64, u64)) -> (u64, u64, u64) {
        let reserved = Numbers { stride: Stride { increment, offset }, largest, count }.reserve(counter);
        (reserved.first, reserved.count, reserved.next)
    }

    #[test]
    fn numbers_follow_the_counter_in_steps() {
        assert_eq!(reserve(1, (1, 1, 127, 3)), (1, 3, 4));
        assert_eq!(reserve(4, (10, 5, 127, 2)), (5, 2, 25));
        assert_eq!(reserve(6, (10, 5, 127, 1)), (15, 1, 25));
        assert_eq!(reserve(3, (2, 5, 127, 1)), (4, 1, 6));
    }

    #[test]
    fn the_counter_stops_behind_the_largest_number() {
        assert_eq!(reserve(127, (1, 1, 127, 1)), (127, 1, 128));
        assert_eq!(reserve(128, (1, 1, 127, 1)), (128, 0, 128));
        assert_eq!(reserve(u64::MAX, (1, 1, u64::MAX, 1)), (u64::MAX, 1, u64::MAX));
        assert_eq!(reserve(u64::MAX - 1, (5, 1, u64::MAX, 9)), (u64::MAX - 1, 9, u64::MAX));
    }

    #[test]
    fn a_number_given_by_hand_is_followed_by_the_next_one_of_the_stride() {
        let after = |used, (increment, offset)| Stride { increment, offset }.next_after(used);
        assert_eq!([after(7, (1, 1)), after(7, (1, 0)), after(7, (0, 0))], [8; 3]);
        assert_eq!(
            [after(7, (10, 5)), after(15, (10, 5)), after(3, (10, 5)), after(3, (2, 5))],
            [15, 25, 5, 4]
        );
        assert_eq!([after(u64::MAX, (1, 1)), after(u64::MAX - 2, (10, 1))], [u64::MAX; 2]);
    }
}
