//! Statistics of the number of distinct keys in indexes.

use crate::barrier::{entry, value};
use crate::codes::*;
use crate::types::*;
use crate::{CheetahDb, CheetahTable};
use cheetah::server::{KeyEncoding, KeyPartEncoding, StatisticsOptions, TextLevel, ValueEncoding};
use cheetah::Result;

/// The encoding of a part of a stored key, as far as it is needed to find the part's end.
#[repr(C)]
pub struct CheetahKeyPartEncoding {
    /// For each level of a string, the weight of the space; empty if the level is not padded.
    pub levels: *const CheetahBytes,
    /// The number of levels; 0 if the part is not a string.
    pub level_count: usize,
    /// The length of a part that is not a string.
    pub bytes: u32,
    /// Whether the part begins with a byte that is 0 for NULL.
    pub nullable: u8,
    /// Whether all bytes are inverted.
    pub descending: u8,
    /// Whether no earlier part of the index has the same column.
    pub is_counted: u8,
    /// A number that describes to the caller how to show values of the part (`CheetahShowValue`).
    pub shown_as: u32,
}

/// The encoding of the stored keys of an index.
#[repr(C)]
pub struct CheetahKeyEncoding {
    /// The parts of the index, followed by the parts of the clustered key.
    pub parts: *const CheetahKeyPartEncoding,
    /// The number of parts.
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

/// Describes the keys of an open table, with one encoding for each index, and the statistics
/// options of its definition. `places`: the number of places to sample in an index; 0: the setting
/// of the database. `recalc`: a `CheetahRecalc`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_describe_keys(
    db: &CheetahDb,
    table: &CheetahTable,
    keys: *const CheetahKeyEncoding,
    key_count: usize,
    places: u32,
    recalc: u8,
    is_temporary: u8,
) -> i32 {
    entry(|| {
        // SAFETY: by the contract of the crate the encodings are initialised.
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
        Ok(())
    })
}

fn recalc_of(code: u8) -> Result<Option<bool>> {
    let codes = [
        (CheetahRecalc::AsDatabase as u8, None),
        (CheetahRecalc::On as u8, Some(true)),
        (CheetahRecalc::Off as u8, Some(false)),
    ];
    meaning_in("code of a recalculation", code, &codes)
}

/// Sets whether statistics are collected automatically, and the number of places that are sampled
/// in each index. Options in the definition of a table override these settings.
#[no_mangle]
pub extern "C" fn cheetah_set_statistics(db: &CheetahDb, by_themselves: u8, places: u32) {
    value((), || db.0.set_statistics(by_themselves != 0, places));
}

/// Collects statistics of all indexes and stores them.
#[no_mangle]
pub extern "C" fn cheetah_analyze_table(db: &CheetahDb, table: &CheetahTable) -> i32 {
    entry(|| db.0.analyze_table(&table.table))
}

/// Returns a number that changes whenever the table's statistics change.
#[no_mangle]
pub extern "C" fn cheetah_statistics_version(table: &CheetahTable) -> u64 {
    value(0, || table.table.statistics_version())
}

/// Returns the approximate number of rows that have the same values in the first `parts` parts of
/// an index; 0 if it is unknown.
#[no_mangle]
pub extern "C" fn cheetah_rows_per_value(table: &CheetahTable, index_no: u32, parts: u32) -> u64 {
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
        // SAFETY: the levels exist.
        let part = unsafe { told.get() };
        assert!(part.nullable && !part.descending && part.is_counted);
        assert!(matches!(&part.value, ValueEncoding::Text(levels)
            if matches!(&levels[..], [TextLevel::Padded(space), TextLevel::Unpadded] if space == b"\0 ")));
        let told = CheetahKeyPartEncoding { level_count: 0, bytes: 4, ..told };
        // SAFETY: there are no levels.
        assert!(matches!(unsafe { told.get() }.value, ValueEncoding::Fixed(4)));
    }
}
