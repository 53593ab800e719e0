//! Reads a listed file. Parity repairs damage once: the repair assumes that the damage begins at
//! the first wrong checksum, and covers [`PARITY_BYTES`] from there.

use super::path_of;
use crate::base::{reach, Error, Result};
use crate::durable::Durable;
use crate::format::change_file::{
    check_block, check_header, open_block, stored_bytes, SavedChanges, BLOCK_HEAD_BYTES, HEADER_BYTES,
};
use crate::format::encryption::KeyName;
use crate::format::parity::{parity_at, parity_bytes_of, Parity, PARITY_BYTES};
use crate::format::state::ListedFile;
use crate::format::{Defect, Reader};
use crate::keys::Keys;
use cheetah_io::{read_sectors, File};
use std::io::ErrorKind;
use std::sync::Arc;

/// The number of bytes read at a time to compute parity, in whole sectors.
const PIECE_BYTES: usize = 64 << 10;

/// Passes the records of a listed file to `each`. Returns the damage if parity repaired it. Fails
/// with `Corruption` on other damage, and with `Io` if the disk cannot read, after `each` has
/// received the records before it. A missing file is an `Io` error too: other files may be missing
/// with it, and all of them may reappear. Blocks for I/O.
pub fn read(
    durable: &Durable,
    keys: &Keys,
    listed: &ListedFile,
    mut each: impl FnMut(&SavedChanges<'_>) -> Result<()>,
) -> Result<Option<Error>> {
    let mut file = Reading::open(durable, listed)?;
    let (mut key, mut records) = (None, Vec::new());
    while let Some(part) = file.next(keys.database())? {
        match part {
            Part::Header(name) => {
                keys.note_change_file(listed.epoch, name);
                key = name.map(|name| keys.find(&name)).transpose()?;
            }
            Part::Block { head, mut stored } => {
                let opened = open_block(&head, &mut stored, key.as_deref(), &mut records);
                opened.map_err(|defect| file.damaged(&defect))?;
                let mut reader = Reader::new(&records);
                while !reader.is_empty() {
                    let saved = SavedChanges::decode(&mut reader);
                    each(&saved.map_err(|defect| file.damaged(&defect))?)?;
                }
            }
        }
    }
    Ok(file.damage)
}

/// A part of a file whose checksum was verified.
enum Part {
    /// The header, with the key's name if the file is encrypted.
    Header(Option<KeyName>),
    Block {
        head: [u8; BLOCK_HEAD_BYTES],
        stored: Vec<u8>,
    },
}

/// A listed file that is read from beginning to end. It can be checked without its key.
pub struct Reading {
    file: Arc<dyn File>,
    path: String,
    listed: ListedFile,
    /// The offset of the next part, and the checksum that this part must continue.
    at: u64,
    chain: u32,
    /// The repaired bytes and their offset.
    mended: Option<(u64, Vec<u8>)>,
    damage: Option<Error>,
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.path, self.at)
    }
}

impl Reading {
    /// Opens the file. Fails with `Io` if it is missing.
    pub fn open(durable: &Durable, listed: &ListedFile) -> Result<Self> {
        let (path, listed) = (path_of(listed.epoch), listed.clone());
        let file = durable.disk().open(&path).map_err(|error| Error::io("open", &path, error))?;
        Ok(Self { file, path, listed, at: 0, chain: 0, mended: None, damage: None })
    }

    /// Checks the next part. Returns whether there was a next part. Errors are those of [`read`].
    /// Blocks for I/O.
    pub fn check_next(&mut self, database: &[u8; 16]) -> Result<bool> {
        Ok(self.next(database)?.is_some())
    }

    /// The file's entry in the list.
    pub fn listed(&self) -> &ListedFile {
        &self.listed
    }

    /// The offset of the next part.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Ends the reading. Returns the damage that was repaired.
    pub fn end(self) -> Option<Error> {
        self.file.leave_cache();
        self.damage
    }

    fn next(&mut self, database: &[u8; 16]) -> Result<Option<Part>> {
        if self.at == 0 {
            let (chain, key) = self.mending(|file| file.header(database))?;
            (self.at, self.chain) = (HEADER_BYTES as u64, chain);
            return Ok(Some(Part::Header(key)));
        }
        if self.at >= self.listed.bytes {
            return match self.chain == self.listed.chain {
                true => Ok(None),
                false => Err(Error::corrupt(&self.path, "not the file that the page map names")),
            };
        }
        let (head, stored, chain) = self.mending(Self::block)?;
        self.at += (BLOCK_HEAD_BYTES + stored.len()) as u64;
        self.chain = chain;
        Ok(Some(Part::Block { head, stored }))
    }

    /// Returns the checksum that the first block continues, and the name of the key.
    fn header(&self, database: &[u8; 16]) -> Result<(u32, Option<KeyName>)> {
        let mut header = [0; HEADER_BYTES];
        self.read_at(0, &mut header)?;
        check_header(&header, database, self.listed.epoch).map_err(|defect| self.damaged(&defect))
    }

    /// Returns the next block with its checksum.
    fn block(&self) -> Result<([u8; BLOCK_HEAD_BYTES], Vec<u8>, u32)> {
        let mut head = [0; BLOCK_HEAD_BYTES];
        self.read_at(self.at, &mut head)?;
        let at = self.at + BLOCK_HEAD_BYTES as u64;
        let length = stored_bytes(&head, self.listed.bytes.saturating_sub(at));
        let mut stored = vec![0; length.map_err(|defect| self.damaged(&defect))?];
        self.read_at(at, &mut stored)?;
        let chain = check_block(&head, &stored, self.chain).map_err(|defect| self.damaged(&defect))?;
        Ok((head, stored, chain))
    }

    fn damaged(&self, defect: &Defect) -> Error {
        defect.in_place(&self.path)
    }

    /// Reads the next part, and repairs it if it is damaged and nothing was repaired before.
    fn mending<T>(&mut self, read: impl Fn(&Self) -> Result<T>) -> Result<T> {
        let error = match read(self) {
            Err(error) if self.mended.is_none() && error.is_of_unreadable_bytes() => error,
            done => return done,
        };
        match self.mend(self.at).and_then(|()| read(self)) {
            Ok(done) => {
                reach::mark("mended change file");
                self.damage = Some(error.as_damage_of(&self.path).with_words("repaired from its parity"));
                Ok(done)
            }
            Err(_) => Err(error),
        }
    }

    /// Computes the original bytes from `from` on, provided that no other bytes are damaged.
    fn mend(&mut self, from: u64) -> Result<()> {
        let bytes = self.listed.bytes;
        let mut wrong = Parity::default();
        let mut piece = vec![0; parity_bytes_of(bytes)];
        let read = self.file.read_at(parity_at(bytes), &mut piece);
        read.map_err(|error| Error::io("read", &self.path, error))?;
        wrong.add(0, &piece);
        for at in (0..bytes).step_by(PIECE_BYTES) {
            piece.resize((bytes - at).min(PIECE_BYTES as u64) as usize, 0);
            read_sectors(&*self.file, at, &mut piece);
            wrong.add(at, &piece);
        }
        let mut mended = vec![0; (bytes - from).min(PARITY_BYTES as u64) as usize];
        read_sectors(&*self.file, from, &mut mended);
        wrong.apply(from, &mut mended);
        self.mended = Some((from, mended));
        Ok(())
    }

    /// Reads bytes, with repaired bytes in place of damaged ones.
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> Result<()> {
        let mended = self.mended.as_ref().and_then(|(from, mended)| mended.get((at - from) as usize..));
        let mended = mended.unwrap_or_default();
        let count = mended.len().min(bytes.len());
        let (inside, behind) = bytes.split_at_mut(count);
        inside.copy_from_slice(&mended[..count]);
        if behind.is_empty() {
            return Ok(());
        }
        self.file.read_at(at + count as u64, behind).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                Error::corrupt(&self.path, "the file is shorter than the page map says")
            }
            _ => Error::io("read", &self.path, error),
        })
    }
}
