//! Reading a listed file. What is damaged is mended by the parity behind it, once: where the first
//! checksum is wrong, damage begins, and parity reaches [`PARITY_BYTES`] from there.

use super::{path_of, PLACE};
use crate::base::{reach, Error, Result};
use crate::durable::Durable;
use crate::format::change_file::{
    check_header, decode_block, stored_bytes, SavedChanges, BLOCK_HEAD_BYTES, HEADER_BYTES,
};
use crate::format::encryption::{Key, KeyName};
use crate::format::parity::{parity_at, parity_bytes_of, Parity, PARITY_BYTES, SECTOR_BYTES};
use crate::format::state::ListedFile;
use crate::format::{Defect, Reader};
use crate::keys::Keys;
use cheetah_io::File;
use std::io::ErrorKind;
use std::sync::Arc;

/// Bytes that are read at a time to compute parity; whole sectors.
const PIECE_BYTES: usize = 64 << 10;

/// Hands out the records of a listed file; whether anything was damaged that parity has mended,
/// which is a background error. `Corruption` when it has not; records before the damage have been
/// handed out then. `Io` when the file is missing: then others may be, and it may come back. Blocks
/// for I/O.
pub fn read(
    durable: &Durable,
    keys: &Keys,
    listed: &ListedFile,
    mut each: impl FnMut(&SavedChanges<'_>) -> Result<()>,
) -> Result<bool> {
    let mut file = ListedReader::open(durable, listed)?;
    let (mut chain, key) = file.mending(0, |file| file.header(keys))?;
    keys.note_change_file(listed.epoch, key);
    let key = key.map(|name| keys.find(&name)).transpose()?;
    let (mut at, mut records) = (HEADER_BYTES as u64, Vec::new());
    while at < listed.bytes {
        (at, chain) = file.mending(at, |file| file.block(at, chain, key.as_deref(), &mut records))?;
        let mut reader = Reader::new(&records);
        while !reader.is_empty() {
            let saved = SavedChanges::decode(&mut reader);
            each(&saved.map_err(|defect| defect.in_place(&file.path))?)?;
        }
    }
    if chain != listed.chain {
        return Err(Error::corrupt(&file.path, "not the file that the page map names"));
    }
    let errors = durable.health().background_errors();
    file.damage.iter().for_each(|error| errors.note(PLACE, error));
    Ok(file.damage.is_some())
}

struct ListedReader<'a> {
    file: Arc<dyn File>,
    path: String,
    listed: &'a ListedFile,
    /// Where what has been mended begins, and its bytes.
    mended: Option<(u64, Vec<u8>)>,
    /// What was damaged.
    damage: Option<Error>,
}

impl<'a> ListedReader<'a> {
    fn open(durable: &Durable, listed: &'a ListedFile) -> Result<Self> {
        let path = path_of(listed.epoch);
        let file = durable.disk().open(&path).map_err(|error| Error::io("open", &path, error))?;
        Ok(Self { file, path, listed, mended: None, damage: None })
    }

    /// The checksum that the first block goes on from, and the name of the key.
    fn header(&self, keys: &Keys) -> Result<(u32, Option<KeyName>)> {
        let mut header = [0; HEADER_BYTES];
        self.read_at(0, &mut header)?;
        check_header(&header, keys.database(), self.listed.epoch).map_err(|defect| self.damaged(&defect))
    }

    /// Reads the records of the block at that place; where the next one begins, and the checksum
    /// that it goes on from.
    fn block(&self, at: u64, chain: u32, key: Option<&Key>, records: &mut Vec<u8>) -> Result<(u64, u32)> {
        let mut head = [0; BLOCK_HEAD_BYTES];
        self.read_at(at, &mut head)?;
        let at = at + BLOCK_HEAD_BYTES as u64;
        let length = stored_bytes(&head, self.listed.bytes.saturating_sub(at));
        let mut stored = vec![0; length.map_err(|defect| self.damaged(&defect))?];
        self.read_at(at, &mut stored)?;
        let next = at + stored.len() as u64;
        let chain = decode_block(&head, &mut stored, chain, key, records);
        Ok((next, chain.map_err(|defect| self.damaged(&defect))?))
    }

    fn damaged(&self, defect: &Defect) -> Error {
        defect.clone().in_place(&self.path)
    }

    /// Reads what begins at that place. If it is damaged it is mended and read again, unless that
    /// was done before.
    fn mending<T>(&mut self, at: u64, mut read: impl FnMut(&Self) -> Result<T>) -> Result<T> {
        let error = match read(self) {
            Err(error) if self.mended.is_none() && is_damage(&error) => error,
            done => return done,
        };
        match self.mend(at).and_then(|()| read(self)) {
            Ok(done) => {
                reach::mark("mended change file");
                let detail =
                    format!("{error}; mended from its parity, and written anew by the next checkpoint");
                self.damage = Some(Error::corrupt(&self.path, detail));
                Ok(done)
            }
            Err(_) => Err(error),
        }
    }

    /// Finds what the bytes from that place on should be, if no others are damaged.
    fn mend(&mut self, from: u64) -> Result<()> {
        let bytes = self.listed.bytes;
        let mut wrong = Parity::default();
        let mut piece = vec![0; parity_bytes_of(bytes)];
        let read = self.file.read_at(parity_at(bytes), &mut piece);
        read.map_err(|error| Error::io("read", &self.path, error))?;
        wrong.add(0, &piece);
        for at in (0..bytes).step_by(PIECE_BYTES) {
            piece.resize((bytes - at).min(PIECE_BYTES as u64) as usize, 0);
            self.read_sectors(at, &mut piece);
            wrong.add(at, &piece);
        }
        let mut mended = vec![0; (bytes - from).min(PARITY_BYTES as u64) as usize];
        self.read_sectors(from, &mut mended);
        wrong.apply(from, &mut mended);
        self.mended = Some((from, mended));
        Ok(())
    }

    /// Reads what can be read, and zeros for what cannot.
    fn read_sectors(&self, at: u64, bytes: &mut [u8]) {
        if self.file.read_at(at, bytes).is_ok() {
            return;
        }
        let mut done = 0;
        while done < bytes.len() {
            let place = at + done as u64;
            let length = (SECTOR_BYTES - place % SECTOR_BYTES) as usize;
            let end = bytes.len().min(done + length);
            if self.file.read_at(place, &mut bytes[done..end]).is_err() {
                bytes[done..end].fill(0);
            }
            done = end;
        }
    }

    /// Reads the bytes there, as mended.
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

/// Whether other bytes may help.
fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corruption { .. } | Error::Io { .. })
}
