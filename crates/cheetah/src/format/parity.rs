//! Parity of a file: the XOR of its bytes whose positions are equal modulo [`PARITY_BYTES`].
//!
//! Invariants
//!   I1  Lost bytes within [`PARITY_BYTES`] of each other are the XOR of the parity and all other
//!       bytes, because no two of the lost bytes belong to the same byte of the parity.
//! Source    Patterson, Gibson and Katz, "A Case for Redundant Arrays of Inexpensive Disks", 1988.

/// The length of the parity of a file, unless the file is shorter. It is more than the length of a
/// block plus a bad sector.
pub const PARITY_BYTES: usize = 128 << 10;

/// The largest unit that a disk fails to read.
pub const SECTOR_BYTES: u64 = 4096;

/// Returns the position of the parity of a file of `bytes` bytes. No sector has both file bytes and
/// parity.
pub fn parity_at(bytes: u64) -> u64 {
    bytes.next_multiple_of(SECTOR_BYTES)
}

/// Length of the parity of `bytes` bytes.
pub fn parity_bytes_of(bytes: u64) -> usize {
    bytes.min(PARITY_BYTES as u64) as usize
}

/// The parity of the bytes added so far.
#[derive(Default, Debug)]
pub struct Parity(Vec<u8>);

impl Parity {
    /// Adds the file's bytes at position `at`.
    pub fn add(&mut self, at: u64, bytes: &[u8]) {
        let length = parity_bytes_of(at + bytes.len() as u64).max(self.0.len());
        self.0.resize(length, 0);
        each_piece(at, bytes.len(), |place, piece| xor(&mut self.0[place..], &bytes[piece]));
    }

    /// XORs this parity into the file's bytes at position `at`. This repairs the bytes if `self` is
    /// the XOR of the file's parity and the parity of the damaged file.
    pub fn apply(&self, at: u64, bytes: &mut [u8]) {
        each_piece(at, bytes.len(), |place, piece| {
            let wrong = self.0.get(place..).unwrap_or_default();
            xor(&mut bytes[piece], wrong);
        });
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Cuts file bytes at position `at` into pieces, each contiguous in the parity.
fn each_piece(at: u64, length: usize, mut visit: impl FnMut(usize, std::ops::Range<usize>)) {
    let mut begin = 0;
    while begin < length {
        let place = ((at + begin as u64) % PARITY_BYTES as u64) as usize;
        let end = length.min(begin + PARITY_BYTES - place);
        visit(place, begin..end);
        begin = end;
    }
}

/// XORs `from` into `into`, up to the shorter length.
fn xor(into: &mut [u8], from: &[u8]) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into ^= from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use cheetah_io::Rng;

    fn random(rng: &mut Rng, length: usize) -> Vec<u8> {
        (0..length).map(|_| rng.next_u64() as u8).collect()
    }

    fn parity_of(bytes: &[u8], step: usize) -> Parity {
        let mut parity = Parity::default();
        bytes.chunks(step).enumerate().for_each(|(no, piece)| parity.add((no * step) as u64, piece));
        parity
    }

    #[test]
    fn i1_what_is_damaged_close_together_comes_back() {
        let mut rng = Rng::new(1);
        for length in [1, 64, PARITY_BYTES - 1, PARITY_BYTES, PARITY_BYTES + 1, 3 * PARITY_BYTES + 700] {
            let whole = random(&mut rng, length);
            let parity = parity_of(&whole, 1000);
            assert_eq!(parity.bytes(), parity_of(&whole, length).bytes());
            assert_eq!(parity.bytes().len(), parity_bytes_of(length as u64));
            for _ in 0..20 {
                let from = rng.below(length as u64) as usize;
                let to = length.min(from + PARITY_BYTES);
                let mut damaged = whole.clone();
                for _ in 0..1 + rng.below(9) {
                    damaged[from + rng.below((to - from) as u64) as usize] = rng.next_u64() as u8;
                }
                let mut wrong = parity_of(&damaged, 4096);
                wrong.add(0, parity.bytes());
                wrong.apply(from as u64, &mut damaged[from..to]);
                assert!(damaged == whole, "{length} bytes, damaged between {from} and {to}");
            }
        }
    }
}
