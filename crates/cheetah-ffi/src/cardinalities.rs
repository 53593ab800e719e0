//! How many different keys indexes have: the calls to find out, and the findings.

use crate::barrier::{entry, value};
use crate::codes::*;
use crate::types::*;
use crate::{CheetahDb, CheetahTable};
use cheetah::server::{KeyEncoding, KeyPartEncoding, StatisticsOptions, TextLevel, ValueEncoding};
use cheetah::Result;

/// How a part of a stored key is encoded, as far as it takes to find its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahKeyPartEncoding {
    /// Of each level of a text the weight of the space, or nothing where it is not padded.
    pub levels: *const CheetahBytes,
    /// Their number; 0 for what is no text.
    pub level_count: usize,
    /// Length of what is no text.
    pub bytes: u32,
    /// Whether a byte comes first that is 0 for NULL.
    pub nullable: u8,
    /// Whether all bytes are inverted.
    pub descending: u8,
    /// Whether the index has its column in no part before.
    pub is_counted: u8,
    /// A number by which the caller knows how to show its values (`CheetahShowValue`).
    pub shown_as: u32,
}

/// How stored keys of an index are encoded: the parts of the index, and those of the clustered key
/// behind them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahKeyEncoding {
    /// Its parts, and those of the clustered key behind them.
    pub parts: *const CheetahKeyPartEncoding,
    /// Their number.
    pub part_count: usize,
}

impl CheetahKeyPartEncoding {
    unsafe fn get(&self) -> KeyPartEncoding {
        let level = |space: &CheetahBytes| {
            // SAFETY: passed on.
            match unsafe { space.get() } {
                [] => TextLevel::Unpadded,
                space => TextLevel::Padded(space.to_vec()),
            }
        };
        // SAFETY: passed on.
        let levels = unsafe { slice(self.levels, self.level_count) };
        KeyPartEncoding {
            nullable: self.nullable != 0,
            descending: self.descending != 0,
            is_counted: self.is_counted != 0,
            shown_as: self.shown_as,
            value: match levels {
                [] => ValueEncoding::Fixed(self.bytes as usize),
                levels => ValueEncoding::Text(levels.iter().map(level).collect()),
            },
        }
    }
}

/// Tells how keys of a table that was opened are encoded, one encoding for each index, and the
/// statistics options of its definition: places of an index to look at (0: as many as the database
/// says), a `CheetahRecalc`, and whether the table is temporary.
#[no_mangle]
pub unsafe extern "C" fn cheetah_describe_keys(
    db: *mut CheetahDb,
    table: *const CheetahTable,
    keys: *const CheetahKeyEncoding,
    key_count: usize,
    places: u32,
    recalc: u8,
    is_temporary: u8,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open.
    let (db, table) = unsafe { (&*db, &*table) };
    entry(|| {
        // SAFETY: by the contract of the crate what is told is initialised.
        let part = |part: &CheetahKeyPartEncoding| unsafe { part.get() };
        let key = |key: &CheetahKeyEncoding| {
            // SAFETY: as above.
            let parts = unsafe { slice(key.parts, key.part_count) };
            KeyEncoding { parts: parts.iter().map(part).collect() }
        };
        // SAFETY: as above.
        let keys = unsafe { slice(keys, key_count) }.iter().map(key).collect();
        let by_themselves = recalc_of(recalc)?;
        let options = StatisticsOptions { places, by_themselves, is_temporary: is_temporary != 0 };
        db.0.describe_keys(&table.table, keys, options);
        Ok(Code::Ok)
    })
}

fn recalc_of(code: u8) -> Result<Option<bool>> {
    let codes = [
        (CheetahRecalc::AsDatabase as u8, None),
        (CheetahRecalc::On as u8, Some(true)),
        (CheetahRecalc::Off as u8, Some(false)),
    ];
    meaning("code of a recalculation", code, &codes)
}

/// Sets whether statistics are taken by themselves, and from how many places of each index, where a
/// definition does not say.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_statistics(db: *mut CheetahDb, by_themselves: u8, places: u32) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    value((), || db.0.set_statistics(by_themselves != 0, places));
}

/// Takes statistics of all indexes and keeps them.
#[no_mangle]
pub unsafe extern "C" fn cheetah_analyze_table(db: *mut CheetahDb, table: *const CheetahTable) -> i32 {
    // SAFETY: by the contract of the crate the handles are open.
    let (db, table) = unsafe { (&*db, &*table) };
    entry(|| db.0.analyze_table(&table.table).map(|()| Code::Ok))
}

/// A number that changes with the table's statistics.
#[no_mangle]
pub unsafe extern "C" fn cheetah_statistics_version(table: *const CheetahTable) -> u64 {
    // SAFETY: by the contract of the crate the handle is open.
    let table = unsafe { &*table };
    value(0, || table.table.statistics_version())
}

/// About how many rows have the same values in the first `parts` parts of an index; 0 when that is
/// not known.
#[no_mangle]
pub unsafe extern "C" fn cheetah_rows_per_value(
    table: *const CheetahTable,
    index_no: u32,
    parts: u32,
) -> u64 {
    // SAFETY: by the contract of the crate the handle is open.
    let table = unsafe { &*table };
    value(0, || table.table.rows_per_value(index_no as usize, parts as usize).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_codes_of_a_recalculation_are_refused() {
        let words = (0..=2).map(|code| recalc_of(code).unwrap()).collect::<Vec<_>>();
        assert_eq!(words, [None, Some(true), Some(false)]);
        assert!(recalc_of(3).is_err());
    }

    #[test]
    fn encodings_come_as_they_were_told() {
        let levels = [CheetahBytes::of(b"\0 "), CheetahBytes::EMPTY];
        let told = CheetahKeyPartEncoding {
            levels: levels.as_ptr(),
            level_count: levels.len(),
            bytes: 0,
            nullable: 1,
            descending: 0,
            is_counted: 1,
            shown_as: 0,
        };
        // SAFETY: the levels are there.
        let part = unsafe { told.get() };
        assert!(part.nullable && !part.descending && part.is_counted);
        assert!(matches!(&part.value, ValueEncoding::Text(levels)
            if matches!(&levels[..], [TextLevel::Padded(space), TextLevel::Unpadded] if space == b"\0 ")));
        let told = CheetahKeyPartEncoding { level_count: 0, bytes: 4, ..told };
        // SAFETY: there are no levels.
        assert!(matches!(unsafe { told.get() }.value, ValueEncoding::Fixed(4)));
    }
}
