//! The target fill of segments, which balances disk space against the work of garbage collection.

/// The target under full load, in thousandths: writing is cheapest and uses most space.
const FILL_BUSY: u64 = 560;
/// The target when idle, in thousandths.
const FILL_IDLE: u64 = 920;

/// Returns the fill (live bytes per 1000 bytes of file) that garbage collection aims at. It depends
/// on the bytes per second that users write and that the device can write, and on the disk space.
/// Under load, copying competes with users. When idle, only space matters. If the free space on the
/// disk is less than a tenth of the live bytes, space matters under load too.
pub fn fill_target(
    user_bytes_per_s: u64,
    device_bytes_per_s: u64,
    live_bytes: u64,
    disk_free_bytes: u64,
) -> u64 {
    let device = u128::from(device_bytes_per_s.max(1));
    let range = u128::from(FILL_IDLE - FILL_BUSY);
    // If users take half of the device's rate, no rate remains, because each byte that users write
    // causes about one byte of collection.
    let by_load = FILL_IDLE - (u128::from(user_bytes_per_s) * 2 * range / device).min(range) as u64;
    let enough = u128::from(live_bytes / 10).max(1);
    let short = enough.saturating_sub(u128::from(disk_free_bytes));
    let by_space = FILL_BUSY + (short * range / enough) as u64;
    by_load.max(by_space)
}

#[cfg(test)]
mod tests {
    use super::fill_target;

    #[test]
    fn the_target_falls_with_load_and_rises_when_the_disk_is_short() {
        let check = |user, live, free, expect| assert_eq!(fill_target(user, 1000, live, free), expect);
        check(0, 1 << 30, 1 << 40, 920);
        check(250, 1 << 30, 1 << 40, 740);
        check(500, 1 << 30, 1 << 40, 560);
        check(u64::MAX, 1 << 30, 1 << 40, 560);
        check(500, 1000, 50, 740);
        check(500, 1000, 0, 920);
        check(0, 0, 0, 920);
    }

    #[test]
    fn the_target_is_always_between_its_bounds() {
        for shift in 0..64 {
            for other in 0..64 {
                let target = fill_target(1 << shift, 1 << other, 1 << other, 1 << shift);
                assert!((560..=920).contains(&target));
            }
        }
        assert_eq!(fill_target(0, 0, u64::MAX, u64::MAX), 920);
    }
}
