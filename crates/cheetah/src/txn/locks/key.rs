//! Keys, and the places between keys.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;

/// Keys up to this length need no heap memory.
const INLINE_BYTES: usize = 22;

#[derive(Clone)]
pub(super) enum KeyBytes {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Heap(Box<[u8]>),
}

impl KeyBytes {
    pub(super) fn new(key: &[u8]) -> Self {
        let mut bytes = [0; INLINE_BYTES];
        match bytes.get_mut(..key.len()) {
            Some(part) => {
                part.copy_from_slice(key);
                KeyBytes::Inline { len: key.len() as u8, bytes }
            }
            None => KeyBytes::Heap(key.into()),
        }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            KeyBytes::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            KeyBytes::Heap(bytes) => bytes,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            KeyBytes::Inline { .. } => 0,
            KeyBytes::Heap(bytes) => bytes.len() + 16,
        }
    }
}

impl PartialEq for KeyBytes {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for KeyBytes {}

impl PartialOrd for KeyBytes {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyBytes {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl fmt::Debug for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, self.as_slice())
    }
}

pub(super) fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// A place between keys: right before a key, right after it, or after all keys (the supremum).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Cut {
    At { key: KeyBytes, after: bool },
    Supremum,
}

impl Cut {
    pub(super) fn before(key: &[u8]) -> Self {
        Cut::At { key: KeyBytes::new(key), after: false }
    }

    fn after(key: &[u8]) -> Self {
        Cut::At { key: KeyBytes::new(key), after: true }
    }

    pub(super) fn low(bound: Bound<&[u8]>) -> Self {
        match bound {
            Bound::Included(key) => Cut::before(key),
            Bound::Excluded(key) => Cut::after(key),
            Bound::Unbounded => Cut::before(b""),
        }
    }

    pub(super) fn high(bound: Bound<&[u8]>) -> Self {
        match bound {
            Bound::Included(key) => Cut::after(key),
            Bound::Excluded(key) => Cut::before(key),
            Bound::Unbounded => Cut::Supremum,
        }
    }

    pub(super) fn to_low(&self) -> Bound<Vec<u8>> {
        match self {
            Cut::At { key, after: false } if key.as_slice().is_empty() => Bound::Unbounded,
            Cut::At { key, after: false } => Bound::Included(key.as_slice().to_vec()),
            Cut::At { key, after: true } => Bound::Excluded(key.as_slice().to_vec()),
            Cut::Supremum => Bound::Unbounded,
        }
    }

    pub(super) fn to_high(&self) -> Bound<Vec<u8>> {
        match self {
            Cut::At { key, after: true } => Bound::Included(key.as_slice().to_vec()),
            Cut::At { key, after: false } => Bound::Excluded(key.as_slice().to_vec()),
            Cut::Supremum => Bound::Unbounded,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Cut::At { key, .. } => key.heap_bytes(),
            Cut::Supremum => 0,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct KeySpan {
    pub(super) low: Cut,
    pub(super) high: Cut,
}

impl KeySpan {
    pub(super) fn new(range: (Bound<&[u8]>, Bound<&[u8]>)) -> Self {
        Self { low: Cut::low(range.0), high: Cut::high(range.1) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.low >= self.high
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        let before = Cut::before(key);
        self.low <= before && before < self.high
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.low.heap_bytes() + self.high.heap_bytes()
    }
}
