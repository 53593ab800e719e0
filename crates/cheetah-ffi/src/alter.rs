//! Changes of definitions that do not rewrite the stored rows.

use crate::barrier::{entry, value};
use crate::tables::compression;
use crate::types::*;
use crate::{
    CheetahBuild, CheetahConstraints, CheetahDb, CheetahFulltextSpec, CheetahPostings, CheetahTable,
};
use cheetah::server::{
    Alteration, AlteredFulltext, AlteredIndex, BitRun, FormatChange, FulltextFrom, IndexFrom, NewRows,
};
use cheetah::Result;
use std::sync::Arc;

/// An index of a new definition: an existing index of the table, or one that was built.
#[repr(C)]
pub struct CheetahAlteredIndex {
    /// Its new name.
    pub name: CheetahBytes,
    /// Its position in the old definition.
    pub from: u32,
    /// Its number among the built indexes, from 1; 0 if the table already has it.
    pub built: u32,
}

/// A run of bits in the NULL bytes, and its new position. Bit 0 is the lowest bit of the first
/// byte.
#[repr(C)]
pub struct CheetahBitRun {
    /// The old position of the first bit.
    pub from: u32,
    /// The new position of the first bit.
    pub to: u32,
    /// The number of bits.
    pub count: u32,
}

/// The columns of a new definition: the format of new rows, and the conversion of existing rows
/// when they are read.
#[repr(C)]
pub struct CheetahNewRows {
    /// The format of new rows.
    pub row_format: CheetahRowFormatVersion,
    /// The bits of the NULL bytes that are kept.
    pub bits: *const CheetahBitRun,
    /// The number of runs of bits.
    pub bit_count: usize,
    /// For each fixed column of the new format, its old number; -1 for an added column.
    pub fixed: *const i32,
    /// For each variable-length column of the new format, its old number; -1 for an added column.
    pub vars: *const i32,
    /// A row of the new format, with the values of added columns.
    pub defaults: CheetahBytes,
}

impl CheetahNewRows {
    unsafe fn get(&self) -> NewRows {
        let columns = |was: &[i32]| was.iter().map(|&was| u16::try_from(was).ok()).collect();
        let run = |run: &CheetahBitRun| BitRun { from: run.from, to: run.to, count: run.count };
        // SAFETY: by the contract of the crate what is pointed to is initialised.
        unsafe {
            let row_format = self.row_format.get();
            let bits = slice(self.bits, self.bit_count).iter().map(run).collect();
            let fixed = columns(slice(self.fixed, row_format.fixed.len()));
            let vars = columns(slice(self.vars, row_format.var_count.into()));
            let defaults = self.defaults.get().to_vec();
            NewRows { row_format, change: FormatChange { bits, fixed, vars, defaults } }
        }
    }
}

/// A full-text index of a new definition.
#[repr(C)]
pub struct CheetahAlteredFulltext {
    /// Its new name and the caller's bytes.
    pub index: CheetahFulltextSpec,
    /// Its position in the old definition, from 0.
    pub from: usize,
    /// Its postings, if it was built; null if the table already has the index.
    pub built: *const CheetahPostings,
}

/// A new definition of a table whose stored rows are not rewritten.
#[repr(C)]
pub struct CheetahAlteration {
    /// The table.
    pub table: *const CheetahTable,
    /// Its new indexes, the clustered index first. Indexes that are not listed are dropped.
    pub indexes: *const CheetahAlteredIndex,
    /// The number of indexes.
    pub index_count: usize,
    /// The build of its new indexes; may be null.
    pub build: *const CheetahBuild,
    /// Its new columns; null if they do not change.
    pub rows: *const CheetahNewRows,
    /// Its new columns, keys and constraints; if null, the table keeps its constraints, and its
    /// columns and keys are not described.
    pub constraints: *const CheetahConstraints,
    /// Its new full-text indexes. Indexes that are not listed are dropped.
    pub fulltext: *const CheetahAlteredFulltext,
    /// The number of full-text indexes.
    pub fulltext_count: usize,
    /// The caller's own bytes.
    pub extra: CheetahBytes,
    /// Bytes by which the caller identifies the change (`cheetah_has_mark`).
    pub mark: CheetahBytes,
    /// Level of the codec for newly written images; 0: the codec's default.
    pub compression_level: i32,
    /// The codec: 0 none, 1 lz4, 2 zstd.
    pub compression: u8,
    /// Whether compression stays as it is. If so, the two previous fields are ignored.
    pub keeps_compression: u8,
}

unsafe fn alteration(from: &CheetahAlteration) -> Result<Alteration> {
    // SAFETY: by the contract of the crate the handle is open, and the memory behind the pointers
    // is initialised.
    let (table, indexes, fulltext, extra, mark) = unsafe {
        let indexes = slice(from.indexes, from.index_count);
        let fulltext = slice(from.fulltext, from.fulltext_count);
        (&*from.table, indexes, fulltext, from.extra.get().to_vec(), from.mark.get().to_vec())
    };
    // SAFETY: as above.
    let (build, rows, constraints) =
        unsafe { (from.build.as_ref(), from.rows.as_ref(), from.constraints.as_ref()) };
    let index = |index: &CheetahAlteredIndex| AlteredIndex {
        // SAFETY: as above.
        name: unsafe { index.name.text() },
        from: match index.built {
            0 => IndexFrom::Kept(index.from as usize),
            no => IndexFrom::Built(no as usize),
        },
    };
    let altered = |altered: &CheetahAlteredFulltext| {
        // SAFETY: as above.
        let (index, built) = unsafe { (altered.index.get(), altered.built.as_ref()) };
        let kept = FulltextFrom::Kept(altered.from);
        let from = built.map_or(kept, |built| FulltextFrom::Built(built.0.table()));
        AlteredFulltext { name: index.name, extra: index.extra, from }
    };
    let compression = || compression(from.compression, from.compression_level);
    Ok(Alteration {
        table: Arc::clone(&table.table),
        indexes: indexes.iter().map(index).collect(),
        built: build.and_then(|build| build.0.indexes()),
        // SAFETY: as above, here and below.
        rows: rows.map(|rows| unsafe { rows.get() }),
        compression: (from.keeps_compression == 0).then(compression).transpose()?,
        // SAFETY: as above.
        constraints: constraints.map(|constraints| unsafe { constraints.get() }).transpose()?,
        fulltext: Some(fulltext.iter().map(altered).collect()),
        extra,
        mark,
    })
}

/// Changes the definitions of all these tables, or of none. Afterwards the open handles of these
/// tables must not be used.
#[no_mangle]
pub unsafe extern "C" fn cheetah_alter_tables(
    db: &CheetahDb,
    alterations: *const CheetahAlteration,
    count: usize,
) -> i32 {
    // SAFETY: by the contract of the crate the alterations are initialised.
    let alterations = unsafe { slice(alterations, count) };
    entry(|| {
        // SAFETY: as above.
        let all = alterations.iter().map(|each| unsafe { alteration(each) }).collect::<Result<Vec<_>>>()?;
        db.0.alter_tables(&all)
    })
}

/// Returns whether the stored rows of a table have exactly this row-format version.
#[no_mangle]
pub unsafe extern "C" fn cheetah_table_fits(
    table: &CheetahTable,
    row_format: &CheetahRowFormatVersion,
) -> u8 {
    // SAFETY: by the contract of the crate the row-format version is initialised.
    let row_format = unsafe { row_format.get() };
    value(0, || u8::from(table.table.fits(&row_format)))
}

/// Returns whether the table may have rows that were stored with a different set of columns.
#[no_mangle]
pub extern "C" fn cheetah_has_older_rows(table: &CheetahTable) -> u8 {
    value(0, || u8::from(!table.table.def().older_formats.is_empty()))
}

/// Returns whether the columns of a table can change to `rows` without rewriting its rows.
#[no_mangle]
pub unsafe extern "C" fn cheetah_can_change_rows(table: &CheetahTable, rows: &CheetahNewRows) -> u8 {
    // SAFETY: by the contract of the crate the memory behind the pointers is initialised.
    let rows = unsafe { rows.get() };
    value(0, || u8::from(table.table.check_new_rows(&rows).is_ok()))
}

/// Returns whether the last change of the table's definition has this mark.
#[no_mangle]
pub unsafe extern "C" fn cheetah_has_mark(db: &CheetahDb, name: CheetahBytes, mark: CheetahBytes) -> u8 {
    // SAFETY: by the contract of the crate the bytes are readable.
    let (name, mark) = unsafe { (name.text(), mark.get()) };
    value(0, || u8::from(db.0.table(&name).is_ok_and(|table| table.mark() == mark)))
}
