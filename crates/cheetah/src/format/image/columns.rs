//! Regroups the bytes of equally wide values, as byte planes, and as differences of ascending
//! big-endian numbers.
//!
//! Byte planes put all first bytes together, then all second bytes, and so on. The high bytes of
//! numbers are often equal and the low bytes are not. A compressor detects this only if the bytes
//! do not alternate.

/// The maximum width of a value that is split into byte planes. Wider values are mostly text and
/// are not split.
pub(super) const PLANES_MAX: usize = 8;
/// The maximum width of a key that is split into byte planes. Keys are sorted, so even text keys
/// begin with similar bytes.
pub(super) const KEY_PLANES_MAX: usize = 32;
/// The maximum width of a number that is stored as a difference.
pub(super) const DELTA_MAX: usize = 8;

/// Appends the byte planes of `values`, each of at least `width` bytes.
pub(super) fn put_planes<'a>(
    out: &mut Vec<u8>,
    width: usize,
    values: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
) {
    match width {
        2 => put_planes_of::<2>(out, values),
        3 => put_planes_of::<3>(out, values),
        4 => put_planes_of::<4>(out, values),
        5 => put_planes_of::<5>(out, values),
        6 => put_planes_of::<6>(out, values),
        7 => put_planes_of::<7>(out, values),
        8 => put_planes_of::<8>(out, values),
        _ => (0..width).for_each(|b| out.extend(values.clone().map(|value| value[b]))),
    }
}

/// Writes all planes in one pass over the values.
fn put_planes_of<'a, const W: usize>(out: &mut Vec<u8>, values: impl ExactSizeIterator<Item = &'a [u8]>) {
    let (start, count) = (out.len(), values.len());
    out.resize(start + W * count, 0);
    let mut planes = out[start..].chunks_exact_mut(count.max(1));
    let planes: [&mut [u8]; W] = std::array::from_fn(|_| planes.next().unwrap_or_default());
    for (i, value) in values.enumerate() {
        let value: &[u8; W] = value.first_chunk().expect("values have the width of their column");
        for b in 0..W {
            if let Some(target) = planes[b].get_mut(i) {
                *target = value[b];
            }
        }
    }
}

/// Reverses [`put_planes`]: writes value `i` to `target[starts[i] + add..]`. `planes` has `width`
/// bytes for each of `starts`.
pub(super) fn scatter_planes(planes: &[u8], width: usize, starts: &[u32], add: usize, target: &mut [u8]) {
    let count = starts.len();
    if count == 0 {
        return;
    }
    match width {
        2 => scatter_planes_of::<2>(planes, starts, add, target),
        3 => scatter_planes_of::<3>(planes, starts, add, target),
        4 => scatter_planes_of::<4>(planes, starts, add, target),
        5 => scatter_planes_of::<5>(planes, starts, add, target),
        6 => scatter_planes_of::<6>(planes, starts, add, target),
        7 => scatter_planes_of::<7>(planes, starts, add, target),
        8 => scatter_planes_of::<8>(planes, starts, add, target),
        _ => {
            for (b, plane) in planes.chunks_exact(count).enumerate().take(width) {
                for (&byte, &start) in plane.iter().zip(starts) {
                    target[start as usize + add + b] = byte;
                }
            }
        }
    }
}

fn scatter_planes_of<const W: usize>(planes: &[u8], starts: &[u32], add: usize, target: &mut [u8]) {
    let count = starts.len();
    let planes: [&[u8]; W] = std::array::from_fn(|b| &planes[b * count..(b + 1) * count]);
    for (i, &start) in starts.iter().enumerate() {
        let value: [u8; W] = std::array::from_fn(|b| planes[b][i]);
        let at = start as usize + add;
        target[at..at + W].copy_from_slice(&value);
    }
}

/// Returns the first `width` bytes of `value` as a big-endian number. `width` is at most 8.
#[inline]
pub(super) fn number(value: &[u8], width: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[8 - width..].copy_from_slice(&value[..width]);
    u64::from_be_bytes(bytes)
}

/// Returns the number of leading bytes of the sorted `keys` to store as differences. All keys are
/// `width` bytes wide. The choice needs the fewest bits, estimated by the entropy of byte planes of
/// a sample.
pub(super) fn best_delta_width(keys: &[&[u8]], width: usize) -> usize {
    let sample = Sample::new(keys);
    if sample.pairs.is_empty() {
        return 0;
    }
    let plain: Vec<u32> = (0..width.min(DELTA_MAX)).map(|b| sample.plain_cost(b)).collect();
    let (mut best, mut best_cost) = (0, plain.iter().sum::<u32>());
    for delta_width in 1..=plain.len() {
        // A number does not end where a byte that hardly varies is followed by a byte that varies.
        if plain.get(delta_width).is_some_and(|&next| next > 2 * plain[delta_width - 1]) {
            continue;
        }
        let rest: u32 = plain[delta_width..].iter().sum();
        let cost = rest + sample.delta_cost(delta_width);
        // A saving below 3 % may be due to the sample.
        if cost < best_cost - best_cost / 32 {
            (best, best_cost) = (delta_width, cost);
        }
    }
    best
}

const SAMPLE_PAIRS: usize = 64;

/// Pairs of neighbouring keys, sampled from all parts of a page.
struct Sample<'a> {
    pairs: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Sample<'a> {
    fn new(keys: &[&'a [u8]]) -> Self {
        let step = keys.len().div_ceil(SAMPLE_PAIRS).max(1);
        let pairs = keys.windows(2).step_by(step).map(|pair| (pair[0], pair[1])).collect();
        Self { pairs }
    }

    fn plain_cost(&self, byte: usize) -> u32 {
        entropy_bits(self.pairs.iter().map(|(_, key)| key[byte]))
    }

    fn delta_cost(&self, width: usize) -> u32 {
        let deltas = self.pairs.iter().map(|(a, b)| number(b, width).wrapping_sub(number(a, width)));
        let deltas: Vec<u64> = deltas.collect();
        (0..width).map(|b| entropy_bits(deltas.iter().map(|delta| (delta >> (8 * b)) as u8))).sum()
    }
}

/// Estimates the bits needed to encode these bytes one by one, in sixteenths of a bit.
fn entropy_bits(bytes: impl ExactSizeIterator<Item = u8> + Clone) -> u32 {
    let total = log2_16(bytes.len());
    let mut counts = [0u8; 256];
    bytes.clone().for_each(|byte| counts[usize::from(byte)] += 1);
    bytes.map(|byte| total - log2_16(usize::from(counts[usize::from(byte)]))).sum()
}

/// Returns sixteen times the binary logarithm of a number up to [`SAMPLE_PAIRS`].
fn log2_16(n: usize) -> u32 {
    const LOG2_16: [u8; SAMPLE_PAIRS + 1] = [
        0, 0, 16, 25, 32, 37, 41, 45, 48, 51, 53, 55, 57, 59, 61, 63, 64, 65, 67, 68, 69, 70, 71, 72, 73, 74,
        75, 76, 77, 78, 79, 79, 80, 81, 81, 82, 83, 83, 84, 85, 85, 86, 86, 87, 87, 88, 88, 89, 89, 90, 90,
        91, 91, 92, 92, 93, 93, 93, 94, 94, 95, 95, 95, 96, 96,
    ];
    LOG2_16[n.min(SAMPLE_PAIRS)].into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cheetah_io::rng::Rng;

    #[test]
    fn planes_scatter_back_at_every_width() {
        let mut rng = Rng::new(1);
        for width in 0..=40 {
            for count in [0usize, 1, 2, 77] {
                let values: Vec<Vec<u8>> = (0..count).map(|_| rng.bytes(width)).collect();
                let mut planes = Vec::new();
                put_planes(&mut planes, width, values.iter().map(Vec::as_slice));
                assert_eq!(planes.len(), width * count);
                let starts: Vec<u32> = (0..count).map(|i| (i * (width + 3)) as u32).collect();
                let mut target = vec![0; count * (width + 3) + 3];
                scatter_planes(&planes, width, &starts, 2, &mut target);
                for (value, &start) in values.iter().zip(&starts) {
                    assert_eq!(target[start as usize + 2..][..width], value[..]);
                }
            }
        }
    }

    #[test]
    fn ascending_numbers_are_worth_differences_and_noise_is_not() {
        let mut rng = Rng::new(2);
        let mut check = |make: &mut dyn FnMut(u32, u32) -> Vec<u8>, expect: &[usize]| {
            let keys: Vec<Vec<u8>> = (0..500).map(|i| make(i, rng.next_u64() as u32)).collect();
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let width = best_delta_width(&keys, keys[0].len());
            assert!(expect.contains(&width), "{width}");
        };
        check(&mut |i, _| (i * 3).to_be_bytes().to_vec(), &[4]);
        check(&mut |i, r| [(i * 1001).to_be_bytes(), r.to_be_bytes()].concat(), &[4]);
        check(&mut |_, r| r.to_be_bytes().to_vec(), &[0]);
    }
}
