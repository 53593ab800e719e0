//! [`Key`]: encodes parts as bytes that sort in the order of the parts.
//!
//! | part | bytes |
//! |---|---|
//! | unsigned integer | 8, most significant first |
//! | signed integer | the same, with the sign bit inverted |
//! | bytes, string | each 0x00 becomes 0x00 0xFF; 0x00 0x01 follows at the end |
//!
//! So the end of a string sorts before any byte that a longer string has there. (The idea is that
//! of FoundationDB's tuple layer, with an end mark that no longer string can continue.)

use std::ops::Deref;

const ESCAPED: [u8; 2] = [0x00, 0xFF];
const END: [u8; 2] = [0x00, 0x01];
const SIGN_BIT: u64 = 1 << 63;

/// A key of an index, built from its parts in order.
///
/// All keys of one index must have the same kinds of parts in the same order. A search may leave
/// out trailing parts: [`Cursor::seek`](crate::db::Cursor::seek) with
/// [`AtLeast`](crate::db::SeekMode::AtLeast) then finds the first key that begins with the given
/// parts.
///
/// ```
/// use cheetah::Key;
/// let key = |town: &str, born: i32| Key::new().text(town).signed(born);
/// assert!(key("Ulm", -3) < key("Ulm", 1879));
/// assert!(key("Ulm", 1879) < key("Ulm\0", -3));
/// assert!(key("Ulm", 1879).starts_with(&Key::from("Ulm")));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Key(Vec<u8>);

impl Key {
    /// Creates a key without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an unsigned integer of any width: 8 bytes.
    pub fn unsigned(mut self, value: impl Into<u64>) -> Self {
        self.0.extend_from_slice(&value.into().to_be_bytes());
        self
    }

    /// Appends a signed integer of any width: 8 bytes.
    pub fn signed(self, value: impl Into<i64>) -> Self {
        self.unsigned(value.into() as u64 ^ SIGN_BIT)
    }

    /// Appends bytes. The encoding has two bytes more, and one more for each 0x00.
    pub fn bytes(mut self, value: &[u8]) -> Self {
        for &byte in value {
            match byte {
                0 => self.0.extend_from_slice(&ESCAPED),
                byte => self.0.push(byte),
            }
        }
        self.0.extend_from_slice(&END);
        self
    }

    /// Appends a string, which sorts by its UTF-8 bytes; otherwise like [`bytes`](Self::bytes).
    pub fn text(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }
}

impl Deref for Key {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

macro_rules! key_from {
    ($($part:ty: $append:ident),+) => {$(
        impl From<$part> for Key {
            fn from(part: $part) -> Self {
                Self::new().$append(part)
            }
        }
    )+};
}

key_from!(u64: unsigned, i64: signed, &str: text, &[u8]: bytes);

#[cfg(test)]
mod tests {
    use super::*;
    use cheetah_io::rng::Rng;

    /// The encoding is stored on users' disks.
    #[test]
    fn the_encoding_does_not_change() {
        assert_eq!(*Key::from(0x0102_u64), [0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(*Key::from(-1_i64), [0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
        assert_eq!(*Key::from(1_i64), [0x80, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(*Key::from("Ulm"), [b'U', b'l', b'm', 0, 1]);
        assert_eq!(*Key::from(&[0, 1, 0xFF][..]), [0, 0xFF, 1, 0xFF, 0, 1]);
        assert_eq!(*Key::from("").unsigned(7_u8), [0, 1, 0, 0, 0, 0, 0, 0, 0, 7]);
    }

    #[test]
    fn keys_sort_as_their_parts_and_none_begins_another() {
        let mut rng = Rng::new(7);
        let mut part = || {
            let bytes = (0..rng.below(4)).map(|_| [0, 1, 0xFE, 0xFF][rng.below(4) as usize]);
            let bytes = bytes.collect::<Vec<u8>>();
            (bytes, rng.below(5) as i64 - 2, rng.below(3))
        };
        let key = |(bytes, signed, unsigned): &(Vec<u8>, i64, u64)| {
            Key::new().bytes(bytes).signed(*signed).unsigned(*unsigned)
        };
        for _ in 0..20_000 {
            let (one, other) = (part(), part());
            assert_eq!(key(&one).cmp(&key(&other)), one.cmp(&other), "{one:?} {other:?}");
            assert!(one == other || !key(&one).starts_with(&key(&other)), "{one:?} {other:?}");
        }
    }

    #[test]
    fn integers_sort_over_their_whole_range() {
        let signed = [i64::MIN, -256, -1, 0, 1, 255, i64::MAX];
        assert!(signed.windows(2).all(|pair| Key::from(pair[0]) < Key::from(pair[1])));
        let unsigned = [0, 1, 255, 256, u64::MAX];
        assert!(unsigned.windows(2).all(|pair| Key::from(pair[0]) < Key::from(pair[1])));
    }
}
