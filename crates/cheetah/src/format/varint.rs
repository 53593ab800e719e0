//! Unsigned integers in 1 to 10 bytes: seven bits per byte, lowest first; the top bit means that
//! more bytes follow.
//!
//! Invariants
//!   I1  Each number has exactly one valid encoding: longer encodings are rejected. So equal values
//!       have equal bytes.

/// The longest encoding of a `u64`.
pub const MAX_BYTES: usize = 10;

/// Appends `value`.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes `value` at the start of `out`, which must be long enough. Returns the number of bytes
/// written.
#[inline]
pub fn write(out: &mut [u8], mut value: u64) -> usize {
    let mut at = 0;
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

/// Returns the number of bytes that `value` takes.
#[inline]
pub const fn len(value: u64) -> usize {
    if value < 0x80 {
        return 1;
    }
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Encodes `value` in a buffer that the caller provides.
pub fn bytes_of(value: u64, buffer: &mut [u8; MAX_BYTES]) -> &[u8] {
    let used = write(buffer, value);
    buffer.get(..used).unwrap_or_default()
}

/// Returns the number at the start of `bytes`, and the number of bytes it takes. Returns `None` if
/// the number ends early, is not in its shortest form or exceeds 64 bits.
#[inline]
pub fn get(bytes: &[u8]) -> Option<(u64, usize)> {
    match bytes.first() {
        Some(&first) if first < 0x80 => Some((u64::from(first), 1)),
        Some(_) => get_long(bytes),
        None => None,
    }
}

fn get_long(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().enumerate().take(MAX_BYTES) {
        let bits = u64::from(byte & 0x7f);
        if at == MAX_BYTES - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * at);
        if byte < 0x80 {
            return (byte != 0).then_some((value, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_round_trips() {
        let edges = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) | 1]);
        for value in edges.chain([u64::MAX]) {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            let mut written = [0; MAX_BYTES];
            assert_eq!(write(&mut written, value), bytes.len());
            assert_eq!(written[..bytes.len()], bytes);
            assert_eq!(len(value), bytes.len());
            assert_eq!(get(&bytes), Some((value, bytes.len())));
            assert_eq!(get(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn longer_than_needed_or_than_64_bits_is_refused() {
        assert_eq!(get(&[0x80, 0]), None);
        assert_eq!(get(&[0xff, 0x80, 0]), None);
        assert_eq!(get(&[0xff; 10]), None);
        assert_eq!(get(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), None);
        assert_eq!(get(&[]), None);
    }
}
