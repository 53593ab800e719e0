//! Reads and writes little-endian numbers, and defines the error that all decoders return.

use super::varint;
use crate::base::Error;
use std::fmt;

/// A fault that a decoder found. It does not name the file or page that was decoded; the caller
/// adds that with [`Defect::in_place`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Defect {
    what: &'static str,
    at: Option<usize>,
    is_newer: bool,
}

impl Defect {
    /// Creates a defect that concerns the bytes as a whole.
    pub const fn new(what: &'static str) -> Self {
        Self { what, at: None, is_newer: false }
    }

    /// Creates a defect of item number `at`. `what` names the kind of item, such as a record or a
    /// column.
    pub const fn at(what: &'static str, at: usize) -> Self {
        Self { what, at: Some(at), is_newer: false }
    }

    /// Creates the defect for intact bytes of a newer version. `what` names the layout.
    pub const fn newer(what: &'static str, version: usize) -> Self {
        Self { what, at: Some(version), is_newer: true }
    }

    /// Converts this defect, found in `place`, to an error of the engine: corruption, or a newer
    /// version.
    pub fn in_place(&self, place: impl Into<String>) -> Error {
        match (self.is_newer, self.at) {
            (true, Some(version)) => Error::newer(place, format!("{} {version}", self.what)),
            _ => Error::corrupt(place, self.to_string()),
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            None => f.write_str(self.what),
            Some(at) => write!(f, "{} (number {at})", self.what),
        }
    }
}

/// Returns an error with `what` unless `condition` holds.
pub fn ensure(condition: bool, what: &'static str) -> Result<(), Defect> {
    if condition {
        Ok(())
    } else {
        Err(Defect::new(what))
    }
}

const ENDS_EARLY: Defect = Defect::new("ends early");
const BAD_VARINT: Defect = Defect::new("bad variable-length number");

/// Returns an error unless `version` of `what` is the version that this engine writes.
pub fn check_version(what: &'static str, version: u32, known: u32) -> Result<(), Defect> {
    match version {
        _ if version == known => Ok(()),
        0 => Err(Defect::at(what, 0)),
        _ => Err(Defect::newer(what, version as usize)),
    }
}

/// Gives each value of an enum a code on disk.
macro_rules! codes {
    ($name:ident { $($variant:ident = $code:literal),+ }) => {
        impl $name {
            /// Returns its code on disk.
            pub fn code(self) -> u8 {
                match self {
                    $($name::$variant => $code),+
                }
            }

            /// Returns the value with this code.
            pub fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some($name::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use codes;

/// Reads values from the front of a byte string. Works on any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from the start.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that have not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns an error unless everything has been read.
    pub fn finish(self) -> Result<(), Defect> {
        ensure(self.rest.is_empty(), "bytes after the end")
    }

    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Defect> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Defect> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Defect> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, Defect> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, Defect> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Five bytes: a page number.
    pub fn u40(&mut self) -> Result<u64, Defect> {
        Ok(from_low_bytes(self.array::<5>()?))
    }

    /// Six bytes: a transaction ID or an undo position.
    pub fn u48(&mut self) -> Result<u64, Defect> {
        Ok(from_low_bytes(self.array::<6>()?))
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64, Defect> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A variable-length number.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Defect> {
        let (value, used) = varint::get(self.rest).ok_or(BAD_VARINT)?;
        self.rest = self.rest.get(used..).ok_or(ENDS_EARLY)?;
        Ok(value)
    }

    /// A variable-length number that is a length or count, at most `limit`.
    #[inline]
    pub fn length(&mut self, limit: usize) -> Result<usize, Defect> {
        let value = self.varint()?;
        match usize::try_from(value) {
            Ok(length) if length <= limit => Ok(length),
            _ => Err(Defect::new("length beyond its limit")),
        }
    }

    /// A variable-length length of at most `limit`, then a byte string of that length.
    pub fn prefixed(&mut self, limit: usize) -> Result<&'a [u8], Defect> {
        let length = self.length(limit)?;
        self.take(length)
    }
}

/// Appends a variable-length length, then `bytes`.
pub fn put_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The lowest five bytes of `value`.
pub fn u40_bytes(value: u64) -> [u8; 5] {
    debug_assert!(value < 1 << 40);
    let b = value.to_le_bytes();
    [b[0], b[1], b[2], b[3], b[4]]
}

/// The lowest six bytes of `value`.
pub fn u48_bytes(value: u64) -> [u8; 6] {
    debug_assert!(value < 1 << 48);
    let b = value.to_le_bytes();
    [b[0], b[1], b[2], b[3], b[4], b[5]]
}

/// The number whose low bytes are `low`.
#[inline]
pub fn from_low_bytes<const N: usize>(low: [u8; N]) -> u64 {
    let mut all = [0; 8];
    all[..N].copy_from_slice(&low);
    u64::from_le_bytes(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_takes_what_was_written_and_stops_at_the_end() {
        let mut bytes = vec![7, 1, 2];
        bytes.extend_from_slice(&u40_bytes(0x12_3456_789a));
        bytes.extend_from_slice(&u48_bytes(0xffff_ffff_fffe));
        put_prefixed(&mut bytes, b"abc");
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.u8(), Ok(7));
        assert_eq!(reader.u16(), Ok(0x201));
        assert_eq!(reader.u40(), Ok(0x12_3456_789a));
        assert_eq!(reader.u48(), Ok(0xffff_ffff_fffe));
        assert!(reader.prefixed(2).is_err());
        assert_eq!(reader.take(3), Ok(&b"abc"[..]));
        assert!(reader.u8().is_err());
        assert_eq!(reader.finish(), Ok(()));
    }
}
