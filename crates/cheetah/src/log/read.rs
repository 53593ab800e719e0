//! Reading the log after a restart: finding its frames, and detecting missing ones.
//!
//! Proof
//!   A log file that ends before its successor starts is damaged (L3). A missing file is detected
//!   if it is between two others or before the first. In the last file, two things distinguish
//!   damage from the torn end of a crash: a later sync mark, and `reach`, a position that the
//!   caller knows was durable. Damage to the last synced bytes looks like a torn end if neither
//!   exists.
//! Errors    Corruption, which names the file; Unsupported for a newer format; errors of the
//!           callback.

use super::files::{path_of, read_header, sequences, LiveFile, DIR};
use super::frames::{Frame, FrameReader};
use crate::base::{Error, Lsn, Result};
use crate::format::log_frame::{FileHeader, KIND_SYNC_MARK};
use crate::keys::Keys;
use cheetah_io::{Disk, File};
use std::sync::Arc;

/// The result of [`read_from`], from which [`super::Log::open`] continues.
#[derive(Debug)]
pub struct Recovered {
    /// The end of the log.
    pub end: Lsn,
    /// The number of frames passed to the callback.
    pub frames_count: u64,
    pub(super) chain: u32,
    pub(super) incarnation: u64,
    /// Used bytes of the last file, including the header.
    pub(super) last_file_bytes: u64,
    /// Files in use, oldest first.
    pub(super) live: Vec<LiveFile>,
}

/// Passes the frames that start at or after `from` to `apply`, in order, and finds the end of the
/// log.
///
/// `reach` is a position up to which the caller knows the log was durable (at least `from`); a log
/// that ends before it is damaged. Blocks for I/O.
pub fn read_from(
    disk: &dyn Disk,
    keys: &Keys,
    from: Lsn,
    reach: Lsn,
    mut apply: impl FnMut(Frame<'_>) -> Result<()>,
) -> Result<Recovered> {
    let needed = needed_files(disk, keys, from)?;
    let live = needed.iter().map(|(h, _)| LiveFile::of(h)).collect();
    let mut recovered =
        Recovered { end: from, frames_count: 0, chain: 0, incarnation: 0, last_file_bytes: 0, live };
    for (number, (header, file)) in needed.iter().enumerate() {
        if number > 0 {
            joins(&recovered, header)?;
        }
        let mut reader = FrameReader::new(Arc::clone(file), *header, keys)?;
        let stop = needed.get(number + 1).map(|(next, _)| next.start);
        read_file(&mut reader, from, stop, &mut recovered.frames_count, &mut apply)?;
        complete(&mut reader, stop)?;
        recovered.end = reader.end;
        recovered.chain = reader.chain;
        recovered.incarnation = header.incarnation;
        recovered.last_file_bytes = reader.offset();
    }
    if recovered.end < reach.max(from) {
        let place = recovered.live.last().map_or(DIR.to_owned(), |file| path_of(file.sequence));
        let (end, reach) = (recovered.end, reach.max(from));
        return Err(Error::corrupt(
            place,
            format!("the log ends at {end}, but it was durable up to {reach}"),
        ));
    }
    Ok(recovered)
}

/// Like [`read_from`], for salvaging a damaged database: passes the frames before the first damage
/// to `apply`, and returns the damage. Fails if `apply` fails, if a key is missing, or if the
/// format is newer.
pub fn read_undamaged(
    disk: &dyn Disk,
    keys: &Keys,
    from: Lsn,
    mut apply: impl FnMut(Frame<'_>) -> Result<()>,
) -> Result<Option<Error>> {
    let (files, mut missing) = undamaged_files(disk, keys.database(), from)?;
    let (mut frames_count, mut refused, mut before) = (0, None, None);
    for (number, (header, file)) in files.iter().enumerate() {
        let is_next = |(end, chain): (Lsn, u32)| header.start == end && header.previous_chain == chain;
        if !before.is_none_or(is_next) {
            missing = Some(Error::corrupt(path_of(header.sequence), "does not continue the previous file"));
            break;
        }
        let mut reader = match FrameReader::new(Arc::clone(file), *header, keys) {
            Ok(reader) => reader,
            Err(error @ Error::Key { .. }) => return Err(error),
            Err(error) => return Ok(Some(error)),
        };
        let stop = files.get(number + 1).map(|(next, _)| next.start);
        let read = read_file(&mut reader, from, stop, &mut frames_count, &mut |frame| {
            apply(frame).map_err(|error| {
                let told = Error::corrupt(DIR, error.to_string());
                refused = Some(error);
                told
            })
        });
        if let Some(error) = refused.take() {
            return Err(error);
        }
        if let Err(error) = read.and_then(|()| complete(&mut reader, stop)) {
            return Ok(Some(error));
        }
        before = Some((reader.end, reader.chain));
    }
    Ok(missing)
}

/// Returns the headers and files from the one that contains `from`, up to the first that is missing
/// or has a damaged header, and the fault that ends the list.
#[expect(clippy::type_complexity, reason = "a list, and what ends it")]
fn undamaged_files(
    disk: &dyn Disk,
    database: &[u8; 16],
    from: Lsn,
) -> Result<(Vec<(FileHeader, Arc<dyn File>)>, Option<Error>)> {
    let mut files: Vec<(FileHeader, Arc<dyn File>)> = Vec::new();
    let mut damage = None;
    for sequence in sequences(disk).unwrap_or_default() {
        let path = path_of(sequence);
        let opened = disk.open(&path).map_err(|e| Error::io("open", &path, e));
        let read = opened.and_then(|file| Ok((read_header(&*file, sequence, database)?, file)));
        match read {
            Err(error @ Error::Unsupported { .. }) => return Err(error),
            Err(error) => damage = damage.or(Some(error)),
            Ok((header, file)) if header.start <= from => {
                (files, damage) = (vec![(header, file)], None);
            }
            Ok((header, file)) => match files.last() {
                Some((last, _)) if damage.is_none() && last.sequence + 1 == sequence => {
                    files.push((header, file));
                }
                _ => damage = damage.or_else(|| Some(missing_file(sequence.saturating_sub(1), from))),
            },
        }
    }
    if files.is_empty() && damage.is_none() {
        damage = Some(Error::corrupt(DIR, format!("the log file with position {from} is missing")));
    }
    Ok((files, damage))
}

/// Returns the headers and files from the one that contains `from` to the last, oldest first.
fn needed_files(disk: &dyn Disk, keys: &Keys, from: Lsn) -> Result<Vec<(FileHeader, Arc<dyn File>)>> {
    let mut needed: Vec<(FileHeader, Arc<dyn File>)> = Vec::new();
    let mut missing = None;
    for sequence in sequences(disk)?.into_iter().rev() {
        if let Some(missing) = missing.filter(|missing| *missing != sequence) {
            return Err(missing_file(missing, from));
        }
        let path = path_of(sequence);
        let file = disk.open(&path).map_err(|e| Error::io("open", &path, e))?;
        let header = read_header(&*file, sequence, keys.database())?;
        needed.push((header, file));
        if header.start <= from {
            needed.reverse();
            return Ok(needed);
        }
        missing = Some(sequence.saturating_sub(1));
    }
    match missing {
        Some(missing) => Err(missing_file(missing, from)),
        None => {
            Err(Error::corrupt(DIR, format!("there is no log file; the one with position {from} is needed")))
        }
    }
}

fn missing_file(sequence: u64, from: Lsn) -> Error {
    let detail =
        format!("the file is missing; the log from position {from} on is needed to open the database");
    Error::corrupt(path_of(sequence), detail)
}

/// Checks that a file starts where the previous one ended, with its chain.
fn joins(before: &Recovered, header: &FileHeader) -> Result<()> {
    if header.start == before.end
        && header.previous_chain == before.chain
        && header.incarnation >= before.incarnation
    {
        return Ok(());
    }
    let detail = format!(
        "starts at {} and does not continue the previous file, which ends at {}",
        header.start, before.end
    );
    Err(Error::corrupt(path_of(header.sequence), detail))
}

fn read_file(
    reader: &mut FrameReader,
    from: Lsn,
    stop: Option<Lsn>,
    frames_count: &mut u64,
    apply: &mut impl FnMut(Frame<'_>) -> Result<()>,
) -> Result<()> {
    while stop.is_none_or(|stop| reader.end < stop) {
        let Some(frame) = reader.next()? else { break };
        if frame.start >= from {
            if frame.kind != KIND_SYNC_MARK {
                *frames_count += 1;
                apply(frame)?;
            }
        } else if frame.end > from {
            let place = reader.path();
            return Err(Error::corrupt(place, format!("position {from} is not the start of a frame")));
        }
    }
    Ok(())
}

/// Checks that a file is complete up to the start of the next file. The last file must be complete
/// up to the position that its marks prove durable.
fn complete(reader: &mut FrameReader, stop: Option<Lsn>) -> Result<()> {
    let proven = match stop {
        Some(stop) if stop == reader.end => None,
        Some(stop) => Some(stop),
        None => reader.proof_of_damage()?,
    };
    match proven {
        None => Ok(()),
        Some(proven) => {
            let place = format!("{}, offset {}", reader.path(), reader.offset());
            let detail =
                format!("bad frame at position {}, but the log was durable up to {proven}", reader.end);
            Err(Error::corrupt(place, detail))
        }
    }
}
