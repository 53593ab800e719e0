//! The manifest of a snapshot of the database lists its files with their lengths and checksums. It
//! is text, so that programs without this library can read it.
//!
//! Invariants
//!   I1  The last line has the CRC-32C of all lines before it, so a partly written manifest is
//!       refused.
//! Layout    docs/developers/format.md, "MANIFEST".

use super::bytes::{check_version, ensure, Defect};
use crate::base::{Epoch, Lsn};
use std::fmt::Write as _;
use std::str::FromStr;

/// The path of the manifest in the snapshot.
pub const PATH: &str = "MANIFEST";
/// The first line, without the version.
const TITLE: &str = "cheetah snapshot";
const VERSION: u32 = 1;

type Parsed<T> = std::result::Result<T, Defect>;

/// How a file of a snapshot was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Made {
    /// It is a hard link to a file of the database.
    Linked,
    /// It shares blocks with a file of the database.
    Cloned,
    /// Its bytes were written.
    Copied,
}

impl Made {
    const ALL: [Made; 3] = [Made::Linked, Made::Cloned, Made::Copied];

    fn name(self) -> &'static str {
        match self {
            Made::Linked => "linked",
            Made::Cloned => "cloned",
            Made::Copied => "copied",
        }
    }

    fn of(name: &str) -> Parsed<Self> {
        Self::ALL.into_iter().find(|made| made.name() == name).ok_or(Defect::new("unknown word"))
    }
}

/// A file of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestFile {
    /// Its path, without spaces.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// CRC-32C of its bytes, if they were read.
    pub crc: Option<u32>,
    /// How it was made.
    pub made: Made,
}

/// The description of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// The database.
    pub database: [u8; 16],
    /// The epoch from which redo starts.
    pub epoch: Epoch,
    /// The position in the log at which redo starts.
    pub log_start: Lsn,
    /// The position in the log at which the snapshot ends.
    pub log_end: Lsn,
    /// The number of prepared transactions that are rolled back in the snapshot.
    pub withdrawn_count: u64,
    /// The caller's notes: each is a word and a line of text.
    pub notes: Vec<(String, String)>,
    /// All files except the manifest.
    pub files: Vec<ManifestFile>,
}

impl Manifest {
    /// The bytes on disk.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = String::new();
        let database: String = self.database.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(text, "{TITLE} {VERSION}");
        let _ = writeln!(text, "database {database}");
        let _ = writeln!(text, "epoch {}", self.epoch.0);
        let _ = writeln!(text, "log {} {}", self.log_start.0, self.log_end.0);
        let _ = writeln!(text, "withdrawn {}", self.withdrawn_count);
        for (word, note) in &self.notes {
            let note: String = note.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let _ = writeln!(text, "note {word} {note}");
        }
        for file in &self.files {
            let crc = file.crc.map_or("-".into(), |crc| format!("{crc:08x}"));
            let _ = writeln!(text, "file {} {} {crc} {}", file.path, file.bytes, file.made.name());
        }
        let crc = crc32c::crc32c(text.as_bytes());
        let _ = writeln!(text, "end {crc:08x}");
        text.into_bytes()
    }

    /// Reads a manifest. Works on any bytes.
    pub fn decode(bytes: &[u8]) -> Parsed<Self> {
        let text = std::str::from_utf8(bytes).map_err(|_| NOT_TEXT)?;
        ensure(text.chars().all(|c| c == '\n' || !c.is_control()), "not text")?;
        let end = text.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
        let (covered, last) = text.split_at(end);
        let mut lines = Lines(covered.lines());
        // The version is checked before the checksum, so that a newer version is not reported as
        // damage.
        let version = number(lines.values(TITLE)?.first())?;
        check_version("manifest", u32::try_from(version).unwrap_or(u32::MAX), VERSION)?;
        let crc = last.strip_prefix("end ").map(str::trim_end).map(hex);
        ensure(crc == Some(Ok(crc32c::crc32c(covered.as_bytes()))), "it was not written to its end")?;
        let database = lines.values("database")?;
        let epoch = number(lines.values("epoch")?.first())?;
        let log = lines.values("log")?;
        let mut manifest = Self {
            database: identity(database.first().copied().unwrap_or_default())?,
            epoch: Epoch(epoch),
            log_start: Lsn(number(log.first())?),
            log_end: Lsn(number(log.get(1))?),
            withdrawn_count: number(lines.values("withdrawn")?.first())?,
            notes: Vec::new(),
            files: Vec::new(),
        };
        for line in lines.0 {
            manifest.take_line(line)?;
        }
        Ok(manifest)
    }

    fn take_line(&mut self, line: &str) -> Parsed<()> {
        if let Some(note) = line.strip_prefix("note ") {
            let (word, text) = note.split_once(' ').ok_or(ENDS_EARLY)?;
            self.notes.push((word.to_owned(), text.to_owned()));
            return Ok(());
        }
        let fields = line.strip_prefix("file ").ok_or(Defect::new("unknown line"))?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let [path, bytes, crc, made] = fields[..] else { return Err(Defect::new("a file has four fields")) };
        self.files.push(ManifestFile {
            path: path.to_owned(),
            bytes: number(Some(&bytes))?,
            crc: if crc == "-" { None } else { Some(hex(crc)?) },
            made: Made::of(made)?,
        });
        Ok(())
    }
}

const NOT_TEXT: Defect = Defect::new("not text");
const ENDS_EARLY: Defect = Defect::new("a line ends early");

struct Lines<'t>(std::str::Lines<'t>);

impl<'t> Lines<'t> {
    /// The values after `name` in the next line, which must begin with `name`.
    fn values(&mut self, name: &'static str) -> Parsed<Vec<&'t str>> {
        let line = self.0.next().ok_or(Defect::new("ends early"))?;
        let rest = line.strip_prefix(name).ok_or(Defect::new(name))?;
        Ok(rest.split_whitespace().collect())
    }
}

fn number(text: Option<&&str>) -> Parsed<u64> {
    u64::from_str(text.ok_or(ENDS_EARLY)?).map_err(|_| Defect::new("not a number"))
}

fn hex(text: &str) -> Parsed<u32> {
    u32::from_str_radix(text, 16).map_err(|_| Defect::new("not a checksum"))
}

fn identity(text: &str) -> Parsed<[u8; 16]> {
    ensure(text.len() == 32, "not an identity")?;
    u128::from_str_radix(text, 16).map(u128::to_be_bytes).map_err(|_| Defect::new("not an identity"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let file = |path: &str, crc, made| ManifestFile { path: path.into(), bytes: 70, crc, made };
        Manifest {
            database: [0xa5; 16],
            epoch: Epoch(9),
            log_start: Lsn(100),
            log_end: Lsn(250),
            withdrawn_count: 1,
            notes: vec![("server".into(), "10.11 on\na host".into())],
            files: vec![file("seg/1", None, Made::Linked), file("CONTROL", Some(7), Made::Copied)],
        }
    }

    #[test]
    fn a_manifest_is_read_back_with_notes_on_one_line() {
        let bytes = manifest().encode();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.starts_with("cheetah snapshot 1\ndatabase a5a5"), "{text}");
        assert!(text.contains("\nfile CONTROL 70 00000007 copied\nend "), "{text}");
        let mut expected = manifest();
        expected.notes[0].1 = "10.11 on a host".into();
        assert_eq!(Manifest::decode(&bytes).unwrap(), expected);
    }

    #[test]
    fn every_beginning_and_every_flipped_bit_is_refused() {
        let bytes = manifest().encode();
        for end in 0..bytes.len() - 1 {
            assert!(Manifest::decode(&bytes[..end]).is_err(), "{end} bytes");
        }
        for bit in 0..(bytes.len() - 1) * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // A letter of the checksum may be in the other case.
            let same = Manifest::decode(&damaged).is_ok_and(|read| read == Manifest::decode(&bytes).unwrap());
            assert!(same || Manifest::decode(&damaged).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let text = String::from_utf8(manifest().encode()).unwrap().replace("snapshot 1", "snapshot 2");
        let error = Manifest::decode(text.as_bytes()).unwrap_err().in_place(PATH);
        assert!(error.to_string().contains("newer"), "{error}");
    }
}
