//! Changes of definitions that leave rows as they are.

use crate::barrier::{entry, value};
use crate::tables::compression;
use crate::types::*;
use crate::{CheetahBuild, CheetahDb, CheetahTable};
use cheetah::base::Result;
use cheetah::table::{Alteration, AlteredIndex, IndexFrom};
use std::sync::Arc;

/// An index of a new definition.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahAlteredIndex {
    /// Its name from now on.
    pub name: CheetahBytes,
    /// Its position so far.
    pub from: u32,
    /// Its number among those that were built, from 1; 0 if the table has it already.
    pub built: u32,
}

/// A new definition of a table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahAlteration {
    /// The table.
    pub table: *const CheetahTable,
    /// Its indexes from now on, the clustered one first.
    pub indexes: *const CheetahAlteredIndex,
    /// Their number.
    pub index_count: usize,
    /// Indexes that were built for it; may be null.
    pub build: *const CheetahBuild,
    /// The caller's own bytes.
    pub extra: CheetahBytes,
    /// The caller's mark of the change.
    pub mark: CheetahBytes,
    /// Level of the codec; 0: its default.
    pub compression_level: i32,
    /// 0 none, 1 lz4, 2 zstd.
    pub compression: u8,
    /// Whether compression stays as it is.
    pub keeps_compression: u8,
}

unsafe fn alteration(from: &CheetahAlteration) -> Result<Alteration> {
    // SAFETY: by the contract of the crate the handle is open, and what is pointed to is initialised.
    let (table, indexes) = unsafe { (&*from.table, slice(from.indexes, from.index_count)) };
    let index = |index: &CheetahAlteredIndex| AlteredIndex {
        // SAFETY: as above.
        name: unsafe { index.name.text() },
        from: match index.built {
            0 => IndexFrom::Kept(index.from as usize),
            no => IndexFrom::Built(no as usize),
        },
    };
    // SAFETY: as above.
    let (extra, mark) = unsafe { (from.extra.get().to_vec(), from.mark.get().to_vec()) };
    Ok(Alteration {
        table: Arc::clone(&table.table),
        indexes: indexes.iter().map(index).collect(),
        // SAFETY: as above.
        built: unsafe { from.build.as_ref() }.and_then(|build| build.0.indexes()),
        compression: match from.keeps_compression {
            0 => Some(compression(from.compression, from.compression_level)?),
            _ => None,
        },
        extra,
        mark,
    })
}

/// Gives tables new definitions, all of them or none. Their handles are of no more use afterwards.
#[no_mangle]
pub unsafe extern "C" fn cheetah_alter_tables(
    db: *mut CheetahDb,
    alterations: *const CheetahAlteration,
    count: usize,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open and the alterations are initialised.
    let (db, alterations) = unsafe { (&*db, slice(alterations, count)) };
    entry(|| {
        // SAFETY: as above.
        let all = alterations.iter().map(|each| unsafe { alteration(each) }).collect::<Result<Vec<_>>>()?;
        db.0.alter_tables(&all).map(|()| Code::Ok)
    })
}

/// Whether the stored rows of a table are just what a definition with that shape has.
#[no_mangle]
pub unsafe extern "C" fn cheetah_table_fits(table: *const CheetahTable, shape: *const CheetahShape) -> u8 {
    // SAFETY: by the contract of the crate the handle is open and the shape is initialised.
    let (table, shape) = unsafe { (&*table, (&*shape).get()) };
    value(0, || u8::from(table.table.fits(&shape)))
}

/// Whether the last change of the table's definition has that mark.
#[no_mangle]
pub unsafe extern "C" fn cheetah_has_mark(db: *mut CheetahDb, name: CheetahBytes, mark: CheetahBytes) -> u8 {
    // SAFETY: by the contract of the crate the handle is open and the bytes are readable.
    let (db, name, mark) = unsafe { (&*db, name.text(), mark.get()) };
    value(0, || u8::from(db.0.table(&name).is_ok_and(|table| table.mark() == mark)))
}
