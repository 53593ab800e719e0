//! CHECK: walks every tree of a table and compares them with each other.
//!
//! What is proven
//!   Each tree is sound by itself (see [`Tree::check`](crate::tree::Tree::check)). The clustered
//!   tree has as many rows as the counter says, every large value that a row refers to can be read,
//!   and no page belongs to the table without being used. Each secondary tree has as many entries
//!   as there are rows, and each entry leads to a row. What is marked as deleted counts as gone.
//!   With a caller that can compute entries, each has the key and the payload that its row should
//!   have; together with the equal counts this makes rows and entries match exactly. Disabled
//!   indexes are passed by.
//!
//! How it reads
//!   Each tree once, in order, also where it is larger than memory: sums of hashes tell whether an
//!   index has what its rows should have. Only where a sum differs, each row and each entry is
//!   looked up, to name them.

use crate::base::hash::HashSum;
use crate::base::{planted, ErrorKind, PageId, Result, TreeId};
use crate::format::page::RecordRef;
use crate::format::row::LOCATOR_BYTES;
use crate::format::varint;
use crate::table::rows::large;
use crate::table::rows::stored_row::{find_values, inline_row, Value};
use crate::table::shared::parts::Core;
use crate::table::Table;
pub use crate::table::{ExpectedEntries, ExpectedEntry};
use crate::tree::{Tree, TreeReport};

/// Findings kept of one table; the rest are counted.
const FINDINGS_MAX: usize = 100;

/// What CHECK has found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CheckReport {
    /// What is wrong, in words; empty when all is well.
    pub findings: Vec<String>,
    /// How many things are wrong.
    pub findings_count: u64,
    /// Rows seen.
    pub rows: u64,
    /// Entries of all secondary indexes seen.
    pub entries: u64,
    /// Pages seen, those of large values included.
    pub pages: u64,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.findings_count == 0
    }

    fn find(&mut self, finding: String) {
        self.findings_count += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }

    fn add_tree(&mut self, tree: &TreeReport) {
        self.pages += tree.pages;
        tree.problems.iter().for_each(|problem| self.find(problem.clone()));
        self.findings_count += tree.problems_count.saturating_sub(tree.problems.len() as u64);
    }
}

/// Checks a table on which the caller has at least a shared lock. Reads every page: blocks for I/O.
pub(crate) fn check_table(
    core: &Core,
    table: &Table,
    extended: bool,
    expected: Option<&mut ExpectedEntries<'_>>,
) -> Result<CheckReport> {
    let _usage = table.use_it()?;
    // Writers are kept out by the caller's lock, but purge takes none.
    let _purge = (!planted::is_on("check: let purge go on")).then(|| core.purge.pause());
    let mut report = CheckReport::default();
    let mut walk = RowWalk::new(core, table, extended, expected);
    check_rows(&mut walk, &mut report)?;
    for index_no in (1..table.indexes().len()).filter(|&index_no| !table.is_disabled(index_no)) {
        check_index(&mut walk, index_no, &mut report)?;
    }
    check_change_files(core, table, &mut report);
    let counted = table.row_count();
    if counted != report.rows {
        report.find(format!("the row counter says {counted}, but there are {} rows", report.rows));
    }
    Ok(report)
}

fn check_rows(walk: &mut RowWalk<'_, '_>, report: &mut CheckReport) -> Result<()> {
    let (core, table) = (walk.core, walk.table);
    let was_quiet = is_quiet(core);
    let mut rows = 0;
    let mut findings = Vec::new();
    let tree = each_record(table.clustered(), |key, payload| {
        rows += 1;
        walk.sum_up(key, payload, &mut findings)
    })?;
    report.rows = rows;
    report.add_tree(&tree);
    report.pages += walk.pages;
    check_owned_pages(core, table, 0, tree.pages + walk.pages, was_quiet, report);
    findings.into_iter().for_each(|finding| report.find(finding));
    Ok(())
}

/// Checks a tree, and visits its records that are not marked as deleted: key and payload. Ends with
/// the first error of a visit.
fn each_record(tree: &Tree, mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<TreeReport> {
    let mut failure = None;
    let report = tree.check(&mut |key, record| {
        if failure.is_none() && !record.is_marked() {
            failure = visit(key, record.payload).err();
        }
    })?;
    failure.map_or(Ok(report), Err)
}

/// Reads the change files that a startup after a crash would need for the table.
fn check_change_files(core: &Core, table: &Table, report: &mut CheckReport) {
    let trees = table.indexes().iter().map(|index| index.tree).collect::<Vec<_>>();
    if planted::is_on("check: leave change files unread") {
        return;
    }
    for error in core.pool.check_change_files(&trees) {
        report.find(format!("changes that were saved for the table: {error}"));
    }
}

/// Whether no transaction is around and nothing is to be purged.
fn is_quiet(core: &Core) -> bool {
    core.transactions.active.is_empty() && core.transactions.undo.is_purged()
}

/// When it was quiet from before the tree was walked until now, every page that it owns must have
/// been seen.
fn check_owned_pages(
    core: &Core,
    table: &Table,
    index_no: usize,
    seen: u64,
    was_quiet: bool,
    report: &mut CheckReport,
) {
    let Some(index) = table.indexes().get(index_no) else { return };
    let (dictionaries, owned) = core.pool.dictionaries_and_pages(index.tree);
    let seen = seen + dictionaries.len() as u64;
    if was_quiet && is_quiet(core) && owned != seen && report.is_ok() {
        report.find(format!("index '{}' owns {owned} pages, but uses {seen}", index.name));
    }
    check_dictionaries(core, index.tree, &dictionaries, &index.name, report);
}

/// Reads the dictionaries of a tree, also those that no image that was read names.
fn check_dictionaries(core: &Core, tree: TreeId, pages: &[PageId], index: &str, report: &mut CheckReport) {
    report.pages += pages.len() as u64;
    for page in pages {
        if let Err(error) = core.pool.check_dictionary(tree, *page) {
            report.find(format!("index '{index}', of which pages need dictionary {page}: {error}"));
        }
    }
}

/// What reads rows, and knows what each index should have.
struct RowWalk<'a, 'e> {
    core: &'a Core,
    table: &'a Table,
    extended: bool,
    expected: Option<&'a mut ExpectedEntries<'e>>,
    values: Vec<Value>,
    row: Vec<u8>,
    entries: Vec<ExpectedEntry>,
    /// By the number of the index: what the entries of all rows sum up to.
    sums: Vec<HashSum>,
    /// Rows that could not be read.
    unreadable: u64,
    /// Pages of large values.
    pages: u64,
}

impl<'a, 'e> RowWalk<'a, 'e> {
    fn new(
        core: &'a Core,
        table: &'a Table,
        extended: bool,
        expected: Option<&'a mut ExpectedEntries<'e>>,
    ) -> Self {
        let sums = vec![HashSum::default(); table.indexes().len()];
        let (values, row, entries) = Default::default();
        Self { core, table, extended, expected, values, row, entries, sums, unreadable: 0, pages: 0 }
    }

    /// Reads a row, and adds its entries to the sums.
    fn sum_up(&mut self, key: &[u8], stored: &[u8], findings: &mut Vec<String>) -> Result<()> {
        if let Err(error) = self.read_row(stored) {
            if error.kind() == ErrorKind::Fatal {
                return Err(error);
            }
            self.unreadable += 1;
            findings.push(format!("row {}: {error}", hex(key)));
            return Ok(());
        }
        self.compute_entries(key)?;
        if self.expected.is_none() {
            self.sums.iter_mut().for_each(|sum| sum.add([key, &[], &[]]));
        }
        for ExpectedEntry { index_no, key: entry, payload } in &self.entries {
            if let Some(sum) = self.sums.get_mut(*index_no) {
                sum.add([&[entry.as_slice(), key].concat(), key, payload]);
            }
        }
        Ok(())
    }

    /// What an entry of an index adds to its sum. A caller who computes no entries leaves only the
    /// row that it leads to.
    fn add_entry(&self, sum: &mut HashSum, key: &[u8], clustered: &[u8], payload: &[u8]) {
        match self.expected {
            Some(_) => sum.add([key, clustered, caller_payload(payload)]),
            None => sum.add([clustered, &[], &[]]),
        }
    }

    /// Looks for the entry of a row in one index.
    fn look_up(
        &mut self,
        key: &[u8],
        stored: &[u8],
        of_index: usize,
        findings: &mut Vec<String>,
    ) -> Result<()> {
        match self.read_row(stored) {
            Err(error) if error.kind() == ErrorKind::Fatal => return Err(error),
            Err(_) => return Ok(()), // it has been told
            Ok(()) => self.compute_entries(key)?,
        }
        let row = hex(key);
        for ExpectedEntry { index_no, key: entry, payload } in &self.entries {
            if *index_no != of_index {
                continue;
            }
            let stored_key = [entry.as_slice(), key].concat();
            let same = |record: RecordRef<'_>| {
                (!record.is_marked()).then(|| caller_payload(record.payload) == payload.as_slice())
            };
            match self.table.tree(*index_no)?.get(&stored_key, same)?.flatten() {
                None => findings.push(format!("row {row} has no entry in index {index_no}")),
                Some(false) => findings.push(format!("row {row} differs from its entry in index {index_no}")),
                Some(true) => {}
            }
        }
        Ok(())
    }

    /// Puts what the indexes should have of the row that was read into `self.entries`.
    fn compute_entries(&mut self, key: &[u8]) -> Result<()> {
        self.entries.clear();
        match &mut self.expected {
            Some(expected) => expected(key, &self.row, &mut self.entries),
            None => Ok(()),
        }
    }

    /// Puts the row with its large values in place into `self.row`, in the newest row-format
    /// version; all that are stored are looked at.
    fn read_row(&mut self, stored: &[u8]) -> Result<()> {
        let (older, stored) = self.table.format_and_row(stored)?;
        let row_format = older.map_or(self.table.row_format(), |older| &older.row_format);
        find_values(row_format, stored, &mut self.values)?;
        self.row.clear();
        let (pool, owner, extended) = (&self.core.pool, self.table.blob_owner(), self.extended);
        let (mut data, mut index): (Vec<PageId>, Vec<PageId>) = (Vec::new(), Vec::new());
        let fetch = |locator: &[u8], value: &mut Vec<u8>| {
            debug_assert_eq!(locator.len(), LOCATOR_BYTES, "find_values has checked it");
            large::pages_of(pool, owner, locator, &mut data, &mut index)?;
            if extended {
                large::read_value(pool, owner, locator, value)?;
            }
            Ok(())
        };
        inline_row(row_format, stored, &self.values, &mut self.row, fetch)?;
        if older.is_some() {
            let whole = std::mem::take(&mut self.row);
            self.table.put_in_format(older, &whole, &mut self.row)?;
        }
        self.pages += (data.len() + index.len()) as u64;
        Ok(())
    }
}

fn check_index(walk: &mut RowWalk<'_, '_>, index_no: usize, report: &mut CheckReport) -> Result<()> {
    let (core, table) = (walk.core, walk.table);
    let name = table.indexes().get(index_no).map_or("", |index| index.name.as_str());
    let mut entries = 0u64;
    let mut findings = Vec::new();
    let mut sum = HashSum::default();
    let was_quiet = is_quiet(core);
    let tree = each_record(table.tree(index_no)?, |key, payload| {
        entries += 1;
        match clustered_part(key, payload) {
            None => findings.push(format!("index '{name}': entry {} is malformed", hex(key))),
            Some(clustered) => walk.add_entry(&mut sum, key, clustered, payload),
        }
        Ok(())
    })?;
    report.entries += entries;
    report.add_tree(&tree);
    if walk.sums.get(index_no) != Some(&sum) {
        find_differences(walk, index_no, name, &mut findings)?;
    }
    findings.into_iter().for_each(|finding| report.find(finding));
    if entries != report.rows {
        report.find(format!("index '{name}' has {entries} entries for {} rows", report.rows));
    }
    check_owned_pages(core, table, index_no, tree.pages, was_quiet, report);
    Ok(())
}

/// Looks up each row of an index that differs from the rows, and each entry's row, to name what is
/// wrong.
fn find_differences(
    walk: &mut RowWalk<'_, '_>,
    index_no: usize,
    name: &str,
    findings: &mut Vec<String>,
) -> Result<()> {
    let table = walk.table;
    if walk.expected.is_some() {
        each_record(table.clustered(), |key, payload| walk.look_up(key, payload, index_no, findings))?;
    }
    each_record(table.tree(index_no)?, |key, payload| {
        let Some(clustered) = clustered_part(key, payload) else { return Ok(()) };
        match table.clustered().get(clustered, |row| !row.is_marked()) {
            Ok(None | Some(false)) => {
                findings.push(format!("index '{name}': entry {} leads to no row", hex(key)))
            }
            Err(error) if error.kind() == ErrorKind::Fatal => return Err(error),
            // Damage of the clustered tree has been told by its own walk.
            Ok(Some(true)) | Err(_) => {}
        }
        Ok(())
    })?;
    if findings.is_empty() && walk.unreadable == 0 {
        findings.push(format!("index '{name}' differs from the rows"));
    }
    Ok(())
}

/// The clustered key at the end of a secondary entry's stored key.
fn clustered_part<'k>(key: &'k [u8], payload: &[u8]) -> Option<&'k [u8]> {
    let (len, _) = varint::get(payload)?;
    key.get(key.len().checked_sub(usize::try_from(len).ok()?)?..)
}

/// The caller's part of a secondary entry's payload.
fn caller_payload(payload: &[u8]) -> &[u8] {
    let head = varint::get(payload).map_or(0, |(_, used)| used);
    payload.get(head..).unwrap_or_default()
}

fn hex(key: &[u8]) -> String {
    key.iter().take(32).map(|byte| format!("{byte:02x}")).collect()
}
