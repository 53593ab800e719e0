//! Changes of definitions that leave rows as they are stored.

use crate::barrier::{entry, value};
use crate::codes::*;
use crate::tables::compression;
use crate::types::*;
use crate::{
    CheetahBuild, CheetahConstraints, CheetahDb, CheetahFulltextSpec, CheetahPostings, CheetahTable,
};
use cheetah::server::{
    Alteration, AlteredFulltext, AlteredIndex, BitRun, FormatChange, FulltextFrom, IndexFrom, NewRows,
};
use cheetah::{FulltextSpec, Result};
use std::sync::Arc;

/// An index of a new definition: its position so far, or its number among those that were built.
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

/// Neighbouring bits of the NULL bytes, and where they get. Bit 0 is the lowest one of the first
/// byte.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahBitRun {
    /// The first bit; bit 0 is the lowest one of the first byte.
    pub from: u32,
    /// Where it gets.
    pub to: u32,
    /// How many follow each other.
    pub count: u32,
}

/// Columns of a new definition: how rows are stored from now on, and what becomes of the stored
/// ones when they are read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahNewRows {
    /// How rows are stored from now on.
    pub row_format: CheetahRowFormatVersion,
    /// Bits of the NULL bytes that are kept.
    pub bits: *const CheetahBitRun,
    /// Their number.
    pub bit_count: usize,
    /// For each fixed column of the row-format version the one that it was; -1 for one that has
    /// come.
    pub fixed: *const i32,
    /// For each column of variable length of the row-format version the one that it was; -1 for one
    /// that has come.
    pub vars: *const i32,
    /// A row of the row-format version: columns that are not kept have its values.
    pub defaults: CheetahBytes,
}

impl CheetahNewRows {
    unsafe fn get(&self) -> NewRows {
        // SAFETY: by the contract of the crate what is pointed to is initialised.
        let (row_format, bits) = unsafe { (self.row_format.get(), slice(self.bits, self.bit_count)) };
        // SAFETY: as above.
        let (fixed, vars) = unsafe {
            (slice(self.fixed, row_format.fixed.len()), slice(self.vars, row_format.var_count.into()))
        };
        let columns = |was: &[i32]| was.iter().map(|&was| u16::try_from(was).ok()).collect();
        let run = |run: &CheetahBitRun| BitRun { from: run.from, to: run.to, count: run.count };
        let change = FormatChange {
            bits: bits.iter().map(run).collect(),
            fixed: columns(fixed),
            vars: columns(vars),
            // SAFETY: as above.
            defaults: unsafe { self.defaults.get() }.to_vec(),
        };
        NewRows { row_format, change }
    }
}

/// A full-text index of a new definition.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahAlteredFulltext {
    /// Its name and the caller's bytes from now on.
    pub index: CheetahFulltextSpec,
    /// Its position so far, from 0.
    pub from: usize,
    /// Its postings, if it has been built; null if the table has it already.
    pub built: *const CheetahPostings,
}

/// A new definition of a table, whose rows stay as they are stored.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahAlteration {
    /// The table.
    pub table: *const CheetahTable,
    /// Its indexes from now on, the clustered one first. Those that are not named are dropped.
    pub indexes: *const CheetahAlteredIndex,
    /// Their number.
    pub index_count: usize,
    /// Indexes that were built for it; may be null.
    pub build: *const CheetahBuild,
    /// Its columns from now on; null if they stay.
    pub rows: *const CheetahNewRows,
    /// Its columns, keys and constraints from now on; null: it keeps its constraints, and nobody
    /// has described it.
    pub constraints: *const CheetahConstraints,
    /// Its full-text indexes from now on. Those that are not named are dropped.
    pub fulltext: *const CheetahAlteredFulltext,
    /// Their number.
    pub fulltext_count: usize,
    /// The caller's own bytes.
    pub extra: CheetahBytes,
    /// The caller's mark of the change.
    pub mark: CheetahBytes,
    /// Level of the codec for images that are written from now on; 0: its default.
    pub compression_level: i32,
    /// 0 none, 1 lz4, 2 zstd.
    pub compression: u8,
    /// Whether compression stays as it is: the two above then mean nothing.
    pub keeps_compression: u8,
}

unsafe fn alteration(from: &CheetahAlteration) -> Result<Alteration> {
    // SAFETY: by the contract of the crate the handle is open, and the memory behind the pointers
    // is initialised.
    let (table, indexes) = unsafe { (&*from.table, slice(from.indexes, from.index_count)) };
    let index = |index: &CheetahAlteredIndex| AlteredIndex {
        // SAFETY: as above.
        name: unsafe { index.name.text() },
        from: match index.built {
            0 => IndexFrom::Kept(index.from as usize),
            no => IndexFrom::Built(no as usize),
        },
    };
    let fulltext = |altered: &CheetahAlteredFulltext| {
        // SAFETY: as above.
        let (FulltextSpec { name, extra, .. }, built) =
            unsafe { (altered.index.get(), altered.built.as_ref()) };
        let from = match built {
            Some(built) => FulltextFrom::Built(built.0.table()),
            None => FulltextFrom::Kept(altered.from),
        };
        AlteredFulltext { name, extra, from }
    };
    // SAFETY: as above.
    let altered = unsafe { slice(from.fulltext, from.fulltext_count) };
    // SAFETY: as above.
    let (extra, mark) = unsafe { (from.extra.get().to_vec(), from.mark.get().to_vec()) };
    Ok(Alteration {
        table: Arc::clone(&table.table),
        indexes: indexes.iter().map(index).collect(),
        // SAFETY: as above.
        built: unsafe { from.build.as_ref() }.and_then(|build| build.0.indexes()),
        // SAFETY: as above.
        rows: unsafe { from.rows.as_ref().map(|rows| rows.get()) },
        compression: match from.keeps_compression {
            0 => Some(compression(from.compression, from.compression_level)?),
            _ => None,
        },
        // SAFETY: as above.
        constraints: unsafe { from.constraints.as_ref().map(|constraints| constraints.get()).transpose()? },
        fulltext: Some(altered.iter().map(fulltext).collect()),
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

/// Whether the stored rows of a table are just what a definition with that row-format version has.
#[no_mangle]
pub unsafe extern "C" fn cheetah_table_fits(
    table: *const CheetahTable,
    row_format: *const CheetahRowFormatVersion,
) -> u8 {
    // SAFETY: by the contract of the crate the handle is open and the row-format version is
    // initialised.
    let (table, row_format) = unsafe { (&*table, (&*row_format).get()) };
    value(0, || u8::from(table.table.fits(&row_format)))
}

/// Whether rows may have been stored with other columns than the table has now.
#[no_mangle]
pub unsafe extern "C" fn cheetah_has_older_rows(table: *const CheetahTable) -> u8 {
    // SAFETY: by the contract of the crate the handle is open.
    let table = unsafe { &*table };
    value(0, || u8::from(!table.table.def().older_formats.is_empty()))
}

/// Whether rows of a table can get those columns without being written anew.
#[no_mangle]
pub unsafe extern "C" fn cheetah_can_change_rows(
    table: *const CheetahTable,
    rows: *const CheetahNewRows,
) -> u8 {
    // SAFETY: by the contract of the crate the handle is open, and the memory behind the pointers
    // is initialised.
    let (table, rows) = unsafe { (&*table, (&*rows).get()) };
    value(0, || u8::from(table.table.check_new_rows(&rows).is_ok()))
}

/// Whether the last change of the table's definition has that mark.
#[no_mangle]
pub unsafe extern "C" fn cheetah_has_mark(db: *mut CheetahDb, name: CheetahBytes, mark: CheetahBytes) -> u8 {
    // SAFETY: by the contract of the crate the handle is open and the bytes are readable.
    let (db, name, mark) = unsafe { (&*db, name.text(), mark.get()) };
    value(0, || u8::from(db.0.table(&name).is_ok_and(|table| table.mark() == mark)))
}
