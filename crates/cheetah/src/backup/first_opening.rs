//! The first opening of a snapshot as a database (durability::Z10).

use crate::base::{sound, Error, Result};
use crate::durable::Durable;
use crate::format::manifest::{Manifest, ManifestFile, PATH};
use cheetah_io::{Disk, File};
use std::io::ErrorKind;

const READ_BYTES: u64 = 1 << 20;
/// A longer manifest is not read: it would name millions of files.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;
const ADVICE: &str = "this copy of a snapshot is incomplete or damaged: copy it again, with all files";

/// Compares the files with the manifest, if the disk has one. Fails with `Corruption` if a file is
/// not as it says. Writes nothing. Blocks for I/O: reads all copied files except segments, whose
/// images have checksums of their own.
pub fn check_manifest(durable: &Durable) -> Result<()> {
    let disk = durable.disk();
    let file = match disk.open(PATH) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(|error| Error::io("open", PATH, error))?,
    };
    let bytes = read_whole(&*file, PATH)?;
    let manifest = Manifest::decode(&bytes).map_err(|defect| defect.in_place(PATH))?;
    if sound!(true, "backup: open what is not whole") {
        manifest.files.iter().try_for_each(|file| check(disk, file))?;
    }
    match sound!(true, "backup: remove MANIFEST before it is known who may open it") {
        true => Ok(()),
        false => remove_manifest(durable),
    }
}

/// Removes the manifest, durably. Must be called before anything else is written, after the version
/// of CONTROL and the keys were checked. Damage found later may still make the startup fail.
pub fn remove_manifest(durable: &Durable) -> Result<()> {
    match durable.disk().unlink(PATH) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::io("unlink", PATH, error));
        }
        // A startup that was killed may have removed the manifest, perhaps not yet durably.
        _ => {}
    }
    match sound!(true, "backup: remove MANIFEST without a barrier") {
        true => durable.directory_barrier(""),
        false => Ok(()),
    }
}

fn read_whole(file: &dyn File, path: &str) -> Result<Vec<u8>> {
    let read_error = |error| Error::io("read", path, error);
    let bytes = file.len().map_err(read_error)?;
    if bytes > MANIFEST_BYTES_MAX {
        return Err(Error::corrupt(path, format!("it has {bytes} bytes")));
    }
    let mut content = vec![0; bytes as usize];
    file.read_at(0, &mut content).map_err(read_error)?;
    Ok(content)
}

fn check(disk: &dyn Disk, named: &ManifestFile) -> Result<()> {
    let ManifestFile { path, bytes, crc, .. } = named;
    let not_whole = |what: String| Error::corrupt(path, format!("{what}; {ADVICE}"));
    let file = match disk.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(not_whole("MANIFEST names this file, but it is missing".into()));
        }
        opened => opened.map_err(|error| Error::io("open", path, error))?,
    };
    let there = file.len().map_err(|error| Error::io("read", path, error))?;
    if there != *bytes {
        return Err(not_whole(format!("it has {there} bytes, and MANIFEST says {bytes}")));
    }
    match crc.filter(|_| !path.starts_with("seg/")) {
        Some(crc) if checksum(&*file, path, *bytes)? != crc => {
            Err(not_whole("its checksum is not that in MANIFEST".into()))
        }
        _ => Ok(()),
    }
}

fn checksum(file: &dyn File, path: &str, bytes: u64) -> Result<u32> {
    let (mut at, mut crc, mut buffer) = (0, 0, Vec::new());
    while at < bytes {
        buffer.resize((bytes - at).min(READ_BYTES) as usize, 0);
        file.read_at(at, &mut buffer).map_err(|error| Error::io("read", path, error))?;
        crc = crc32c::crc32c_append(crc, &buffer);
        at += buffer.len() as u64;
    }
    Ok(crc)
}
