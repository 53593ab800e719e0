//! CHECK TABLE: walks every tree of a table and compares the trees with each other.
//!
//! Proof
//!   Each tree is sound by itself (see [`Tree::check_with`](crate::tree::Tree::check_with)). The
//!   clustered tree has as many rows as were counted, every large value that a row refers to can be
//!   read, and every page that belongs to the table is used. Each secondary tree has as many
//!   entries as there are rows, and each entry leads to a row. If the caller can compute entries,
//!   each entry has the key and the payload that its row should have. Together with the equal
//!   counts this means that rows and entries match exactly. Disabled indexes are skipped.
//!
//! Invariants
//!   I1  CHECK neither blocks other transactions nor waits for them. Rows, entries and the count
//!       are those of one snapshot, opened before the first page is copied. So concurrent changes
//!       are neither seen nor the cause of misses; purge keeps the versions that the snapshot sees.
//!   I2  The check that all pages are used runs only if no transaction was active at the start,
//!       and none has begun since.
//!
//! How it reads
//!   It reads each tree once, in order, even if the tree is larger than memory: sums of hashes show
//!   whether an index has what its rows should have. Only if a sum differs does it look up each row
//!   and each entry, to name the faulty ones.

use crate::base::hash::HashSum;
use crate::base::{sound, Error, ErrorKind, PageId, Result, TreeId};
use crate::format::page::{RecordCopy, RecordRef};
use crate::format::row::LOCATOR_BYTES;
use crate::format::varint;
use crate::table::history::visible::{read_row, EntryFound, EntryVersion, Found, View};
use crate::table::rows::large;
use crate::table::rows::locker::Locker;
use crate::table::rows::stored_row::{find_values, inline_row, Value};
use crate::table::shared::parts::Core;
use crate::table::Table;
pub use crate::table::{ExpectedEntries, ExpectedEntry};
use crate::tree::TreeReport;
use crate::txn::ReadView;

/// Findings kept for one table; further findings are only counted.
const FINDINGS_MAX: usize = 100;
/// Records between two checks for an interrupt.
const RECORDS_PER_LOOK: u64 = 256;

/// The findings of CHECK.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CheckReport {
    /// Descriptions of the faults.
    pub findings: Vec<String>,
    /// The number of faults.
    pub findings_count: u64,
    /// The number of rows seen.
    pub rows: u64,
    /// The number of entries seen in all secondary indexes.
    pub entries: u64,
    /// The number of pages seen, including those of large values.
    pub pages: u64,
}

impl CheckReport {
    /// Whether there are no faults.
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

#[derive(Clone, Copy)]
pub(crate) struct Checker<'a> {
    pub(crate) locker: &'a Locker,
    pub(crate) table: &'a Table,
    pub(crate) view: &'a ReadView,
    /// The rows that the snapshot sees according to the table's counter, if known.
    pub(crate) counted: Option<u64>,
}

impl Checker<'_> {
    fn core(&self) -> &Core {
        &self.locker.core
    }

    fn seen(&self) -> View<'_> {
        View {
            core: self.core(),
            table: self.table,
            reader: self.view.reader(),
            own: self.view.own_of(self.table.id()),
        }
    }

    /// Checks an index, and passes the key and payload of each record that the snapshot sees to
    /// `visit`, whose first error ends the check. A part that cannot be read is a finding.
    fn each_record(
        &self,
        index_no: usize,
        findings: &mut Vec<String>,
        mut visit: impl FnMut(&[u8], &[u8], &mut Vec<String>) -> Result<()>,
    ) -> Result<TreeReport> {
        let (mut older, mut records) = (EntryVersion::default(), 0);
        self.table.tree(index_no)?.check_with(&mut |key, record| {
            records += 1;
            if records % RECORDS_PER_LOOK == 0 {
                self.locker.check_interrupted()?;
            }
            if !sound!(true, "check: read what is newest") {
                return if record.is_marked() { Ok(()) } else { visit(key, record.payload, findings) };
            }
            let seen = match index_no {
                0 => self.seen_row(key, record, &mut older),
                _ => match clustered_part(key, record.payload) {
                    // `visit` reports the malformed payload.
                    None => Ok(Some(record.payload)),
                    Some(clustered) => self.seen_entry(index_no, key, clustered, record, &mut older),
                },
            };
            match seen.or_else(|error| damage_as_finding(error, &format!("record {}", hex(key)), findings))? {
                Some(payload) => visit(key, payload, findings),
                None => Ok(()),
            }
        })
    }

    /// The stored row of `key` that the snapshot sees: `record`, or an older version in the buffer.
    fn seen_row<'r>(
        &self,
        key: &[u8],
        record: RecordRef<'r>,
        older: &'r mut EntryVersion,
    ) -> Result<Option<&'r [u8]>> {
        Ok(match self.seen().row_version(key, record, &mut older.row)? {
            Found::AsIs => Some(record.payload),
            Found::Older => Some(&older.row),
            Found::Absent => None,
        })
    }

    /// Like [`seen_row`](Self::seen_row), for the stored payload of an entry.
    fn seen_entry<'r>(
        &self,
        index_no: usize,
        key: &[u8],
        clustered: &[u8],
        record: RecordRef<'r>,
        older: &'r mut EntryVersion,
    ) -> Result<Option<&'r [u8]>> {
        Ok(match self.seen().entry_version(index_no, key, clustered, record, older)? {
            EntryFound::AsIs => Some(record.payload),
            EntryFound::Visible => Some(&older.payload),
            EntryFound::Gone => None,
        })
    }
}

/// Turns damage into a finding and returns `None`; other errors end the check.
fn damage_as_finding<T>(error: Error, place: &str, findings: &mut Vec<String>) -> Result<Option<T>> {
    match error.kind() {
        ErrorKind::Corruption => {
            findings.push(format!("{place}: {error}"));
            Ok(None)
        }
        _ => Err(error),
    }
}

/// Reads every page; blocks for I/O.
pub(crate) fn check_table(
    checker: Checker<'_>,
    extended: bool,
    expected: Option<Expected<'_, '_>>,
) -> Result<CheckReport> {
    let table = checker.table;
    let _usage = table.use_it()?;
    let mut report = CheckReport::default();
    let mut walk = RowWalk::new(checker, extended, expected);
    check_rows(&mut walk, &mut report)?;
    for index_no in (1..table.indexes().len()).filter(|&index_no| !table.is_disabled(index_no)) {
        check_index(&mut walk, index_no, &mut report)?;
    }
    check_change_files(checker.core(), table, &mut report);
    if let Some(counted) = checker.counted.filter(|counted| *counted != report.rows) {
        report.find(format!("the row counter says {counted}, but there are {} rows", report.rows));
    }
    Ok(report)
}

/// Checks the pages above the leaves of each index, and the change files, with few page reads.
pub(crate) fn check_inner_pages(locker: &Locker, table: &Table) -> Result<CheckReport> {
    let _usage = table.use_it()?;
    let mut report = CheckReport::default();
    for index_no in (0..table.indexes().len()).filter(|&index_no| !table.is_disabled(index_no)) {
        let tree = table.tree(index_no)?.check_inner_pages(&mut || locker.check_interrupted())?;
        report.add_tree(&tree);
    }
    check_change_files(&locker.core, table, &mut report);
    Ok(report)
}

fn check_rows(walk: &mut RowWalk<'_, '_>, report: &mut CheckReport) -> Result<()> {
    let checker = walk.checker;
    let quiet = quiet_moment(checker.core());
    let mut rows = 0;
    let mut findings = Vec::new();
    let tree = checker.each_record(0, &mut findings, |key, payload, findings| {
        rows += 1;
        walk.sum_up(key, payload, findings)
    })?;
    report.rows = rows;
    report.add_tree(&tree);
    report.pages += walk.pages;
    check_owned_pages(checker, 0, tree.pages + walk.pages, quiet, report);
    findings.into_iter().for_each(|finding| report.find(finding));
    Ok(())
}

/// Reads the change files that a startup after a crash would need for the table.
fn check_change_files(core: &Core, table: &Table, report: &mut CheckReport) {
    let trees = table.indexes().iter().map(|index| index.tree).collect::<Vec<_>>();
    if !sound!(true, "check: leave change files unread") {
        return;
    }
    for error in core.leaves.check_change_files(&trees) {
        report.find(format!("saved changes of the table: {error}"));
    }
}

/// Returns the next transaction ID and stamp if no transaction is active and nothing remains to be
/// purged; any later transaction changes one of them. Waits for a step of purge.
fn quiet_moment(core: &Core) -> Option<(u64, u64)> {
    let transactions = &core.transactions;
    let moment = (transactions.versions.next_txn().0, transactions.versions.next_stamp());
    // The last step of purge may still be merging pages.
    drop(core.purge.pause());
    (transactions.active.is_empty() && transactions.undo.is_purged()).then_some(moment)
}

/// If no transaction was active from before the walk until now, checks that it saw every page that
/// the tree owns (I2). `quiet`: the result of [`quiet_moment`] before the walk.
fn check_owned_pages(
    checker: Checker<'_>,
    index_no: usize,
    seen: u64,
    quiet: Option<(u64, u64)>,
    report: &mut CheckReport,
) {
    let core = checker.core();
    let Some(index) = checker.table.indexes().get(index_no) else { return };
    let (dictionaries, owned) = core.pool.dictionaries_and_pages(index.tree);
    let seen = seen + dictionaries.len() as u64;
    let is_quiet = quiet.is_some() && quiet == quiet_moment(core);
    if is_quiet && owned != seen && report.is_ok() {
        report.find(format!("index '{}' owns {owned} pages, but uses {seen}", index.name));
    }
    check_dictionaries(core, index.tree, &dictionaries, &index.name, report);
}

/// Also reads dictionaries that no image read so far refers to.
fn check_dictionaries(core: &Core, tree: TreeId, pages: &[PageId], index: &str, report: &mut CheckReport) {
    report.pages += pages.len() as u64;
    for page in pages {
        if let Err(error) = core.pool.check_dictionary(tree, *page) {
            report.find(format!("index '{index}', whose pages need dictionary {page}: {error}"));
        }
    }
}

/// The entries that the rows should have, as their caller computes them.
pub struct Expected<'a, 'e> {
    /// Computes the entries of a row.
    pub entries: &'a mut ExpectedEntries<'e>,
    /// Returns whether a payload of an index repeats its entry's key. Then the entry equals one
    /// without a payload.
    pub repeats: &'a dyn Fn(usize, &[u8]) -> bool,
}

/// Reads rows, and computes the entries that each index should have.
struct RowWalk<'a, 'e> {
    checker: Checker<'a>,
    extended: bool,
    expected: Option<Expected<'a, 'e>>,
    values: Vec<Value>,
    row: Vec<u8>,
    entries: Vec<ExpectedEntry>,
    /// By index position.
    sums: Vec<HashSum>,
    unreadable: u64,
    /// Pages of large values.
    pages: u64,
}

impl<'a, 'e> RowWalk<'a, 'e> {
    fn new(checker: Checker<'a>, extended: bool, expected: Option<Expected<'a, 'e>>) -> Self {
        let sums = vec![HashSum::default(); checker.table.indexes().len()];
        let (values, row, entries) = Default::default();
        Self { checker, extended, expected, values, row, entries, sums, unreadable: 0, pages: 0 }
    }

    fn sum_up(&mut self, key: &[u8], stored: &[u8], findings: &mut Vec<String>) -> Result<()> {
        if let Err(error) = self.read_row(stored) {
            if error.kind() == ErrorKind::Stopped {
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

    /// Adds an entry to the sum of its index: if the caller computes none, only the clustered key.
    fn add_entry(&self, sum: &mut HashSum, index_no: usize, key: &[u8], clustered: &[u8], payload: &[u8]) {
        match self.expected {
            Some(_) => sum.add([key, clustered, self.counted(index_no, payload)]),
            None => sum.add([clustered, &[], &[]]),
        }
    }

    fn look_up(
        &mut self,
        key: &[u8],
        stored: &[u8],
        of_index: usize,
        findings: &mut Vec<String>,
    ) -> Result<()> {
        match self.read_row(stored) {
            Err(error) if error.kind() == ErrorKind::Stopped => return Err(error),
            Err(_) => return Ok(()), // already reported
            Ok(()) => self.compute_entries(key)?,
        }
        let row = hex(key);
        for ExpectedEntry { index_no, key: entry, payload } in &self.entries {
            if *index_no != of_index {
                continue;
            }
            let stored_key = [entry.as_slice(), key].concat();
            match self.entry_payload(*index_no, &stored_key, key) {
                Ok(None) => findings.push(format!("row {row} has no entry in index {index_no}")),
                Ok(Some(found)) if found != *payload => {
                    findings.push(format!("row {row} differs from its entry in index {index_no}"))
                }
                Ok(Some(_)) => {}
                Err(error) => drop(damage_as_finding::<()>(error, &format!("row {row}"), findings)?),
            }
        }
        Ok(())
    }

    /// The part of the caller's payload that counts, if the snapshot sees the entry.
    fn entry_payload(&self, index_no: usize, key: &[u8], clustered: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut copy = RecordCopy::default();
        if self.checker.table.tree(index_no)?.get(key, |record| copy.take(record))?.is_none() {
            return Ok(None);
        }
        let mut older = EntryVersion::default();
        let seen = self.checker.seen_entry(index_no, key, clustered, copy.as_ref(), &mut older)?;
        Ok(seen.map(|payload| self.counted(index_no, payload).to_vec()))
    }

    /// The caller's part of a stored payload; empty if it repeats the key.
    fn counted<'p>(&self, index_no: usize, payload: &'p [u8]) -> &'p [u8] {
        let payload = caller_payload(payload);
        let repeats = |expected: &Expected<'_, '_>| (expected.repeats)(index_no, payload);
        match !payload.is_empty() && self.expected.as_ref().is_some_and(repeats) {
            true => &[],
            false => payload,
        }
    }

    /// Sets `self.entries` to those of the row in `self.row`.
    fn compute_entries(&mut self, key: &[u8]) -> Result<()> {
        self.entries.clear();
        match &mut self.expected {
            Some(expected) => (expected.entries)(key, &self.row, &mut self.entries),
            None => Ok(()),
        }
    }

    /// Sets `self.row` to the row in the newest version, with its large values inline and checked.
    fn read_row(&mut self, stored: &[u8]) -> Result<()> {
        let (core, table) = (self.checker.core(), self.checker.table);
        let (older, stored) = table.format_and_row(stored)?;
        let row_format = older.map_or(table.row_format(), |older| &older.row_format);
        find_values(row_format, stored, &mut self.values)?;
        self.row.clear();
        let (pool, owner, extended) = (&core.pool, table.blob_owner(), self.extended);
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
            table.put_in_format(older, &whole, &mut self.row)?;
        }
        self.pages += (data.len() + index.len()) as u64;
        Ok(())
    }
}

fn check_index(walk: &mut RowWalk<'_, '_>, index_no: usize, report: &mut CheckReport) -> Result<()> {
    let checker = walk.checker;
    let name = checker.table.indexes().get(index_no).map_or("", |index| index.name.as_str());
    let mut entries = 0u64;
    let mut findings = Vec::new();
    let mut sum = HashSum::default();
    let quiet = quiet_moment(checker.core());
    let tree = checker.each_record(index_no, &mut findings, |key, payload, findings| {
        entries += 1;
        match clustered_part(key, payload) {
            None => findings.push(format!("index '{name}': entry {} is malformed", hex(key))),
            Some(clustered) => walk.add_entry(&mut sum, index_no, key, clustered, payload),
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
    check_owned_pages(checker, index_no, tree.pages, quiet, report);
    Ok(())
}

/// Looks up the entries of all rows, and the rows of all entries, of an index that differs from the
/// rows, to name the faulty ones.
fn find_differences(
    walk: &mut RowWalk<'_, '_>,
    index_no: usize,
    name: &str,
    findings: &mut Vec<String>,
) -> Result<()> {
    let checker = walk.checker;
    // Damage of the trees was already reported by their own walks.
    let mut told_before = Vec::new();
    if walk.expected.is_some() {
        checker.each_record(0, &mut told_before, |key, payload, _| {
            walk.look_up(key, payload, index_no, findings)
        })?;
    }
    let view = Some(checker.view);
    let mut row = Vec::new();
    checker.each_record(index_no, &mut told_before, |key, payload, told_before| {
        let Some(clustered) = clustered_part(key, payload) else { return Ok(()) };
        match read_row(checker.core(), checker.table, clustered, view, &mut row) {
            Ok(true) => {}
            Ok(false) => findings.push(format!("index '{name}': entry {} leads to no row", hex(key))),
            Err(error) => drop(damage_as_finding::<()>(error, "", told_before)?),
        }
        Ok(())
    })?;
    if findings.is_empty() && walk.unreadable == 0 {
        findings.push(format!("index '{name}' differs from the rows"));
    }
    Ok(())
}

fn clustered_part<'k>(key: &'k [u8], payload: &[u8]) -> Option<&'k [u8]> {
    let (len, _) = varint::get(payload)?;
    key.get(key.len().checked_sub(usize::try_from(len).ok()?)?..)
}

fn caller_payload(payload: &[u8]) -> &[u8] {
    let head = varint::get(payload).map_or(0, |(_, used)| used);
    payload.get(head..).unwrap_or_default()
}

fn hex(key: &[u8]) -> String {
    key.iter().take(32).map(|byte| format!("{byte:02x}")).collect()
}
