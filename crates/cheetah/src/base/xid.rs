//! The name that an external coordinator gives to a prepared transaction.

use std::fmt;

/// An XID as defined by X/Open: a format and a name in two parts, the global transaction and its
/// branch.
///
/// Like MariaDB, [`names_same`](Xid::names_same) ignores the format.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Xid {
    format: u64,
    global_bytes: u8,
    name_bytes: u8,
    name: [u8; Self::NAME_BYTES_MAX],
}

impl Xid {
    /// The maximum length of a part in bytes.
    pub const PART_BYTES_MAX: usize = 64;
    const NAME_BYTES_MAX: usize = 2 * Self::PART_BYTES_MAX;

    /// Creates an XID. Returns `None` if a part is too long.
    pub fn new(format: u64, global: &[u8], branch: &[u8]) -> Option<Self> {
        if global.len().max(branch.len()) > Self::PART_BYTES_MAX {
            return None;
        }
        let mut name = [0; Self::NAME_BYTES_MAX];
        let bytes = global.iter().chain(branch);
        name.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        let name_bytes = (global.len() + branch.len()) as u8;
        Some(Self { format, global_bytes: global.len() as u8, name_bytes, name })
    }

    /// The format.
    pub fn format(&self) -> u64 {
        self.format
    }

    /// The name of the global transaction.
    pub fn global(&self) -> &[u8] {
        self.parts().0
    }

    /// The name of the branch.
    pub fn branch(&self) -> &[u8] {
        self.parts().1
    }

    /// Returns whether both parts of the name are equal.
    pub fn names_same(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        self.name.split_at(self.name_bytes.into()).0.split_at(self.global_bytes.into())
    }
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (global, branch) = self.parts();
        write!(f, "'{}','{}',{}", global.escape_ascii(), branch.escape_ascii(), self.format)
    }
}

impl fmt::Debug for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Xid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_read_back_and_the_format_does_not_tell_names_apart() {
        let xid = Xid::new(7, b"global", b"\x00branch").unwrap();
        assert_eq!((xid.format(), xid.global(), xid.branch()), (7, &b"global"[..], &b"\x00branch"[..]));
        assert!(xid.names_same(&Xid::new(8, b"global", b"\x00branch").unwrap()));
        assert!(!xid.names_same(&Xid::new(7, b"global\x00", b"branch").unwrap()));
        assert_eq!(xid.to_string(), "'global','\\x00branch',7");
    }

    #[test]
    fn parts_have_at_most_64_bytes() {
        assert!(Xid::new(1, &[1; 64], &[2; 64]).is_some());
        assert!(Xid::new(1, &[1; 65], b"").is_none());
        assert!(Xid::new(1, b"", &[1; 65]).is_none());
    }
}
