//! Large values: values in pages of their own, which a row refers to by a locator.
//!
//! A value is written in steps of a few pages. Each step is one mini-transaction: it allocates and
//! fills pages, appends an undo record that names them, and logs the bytes. The last step also
//! writes the index pages, a tree of page numbers over the value's pages, and completes the
//! locator. The transaction's next row operation then claims the finished values, in order.
//!
//! Invariants
//!   I1  The log has no page numbers: redo takes the same steps and may use other pages
//!       (durability::C4).
//!   I2  Until its row operation is done, a value belongs to the undo records of its steps;
//!       afterwards, it belongs to the row. Undoing the row operation returns the value to those
//!       undo records. So a crash or a rollback at any moment frees each page exactly once.
//!   I3  The values that an update or delete drops belong to its undo record's `freed` list from
//!       the commit on (durability::H6). A value is either on that list or kept by the new row,
//!       never both. When redo applies an operation as separate record changes, there is no undo
//!       record, and redo frees the values at once.
//!   I4  A locator has the length of the value and the ID of its root page. The number of levels of
//!       index pages follows from the length.

use super::request::Target;
use super::writer::{Buffers, Unclaimed};
use crate::base::{sound, Error, PageId, Result, TableId, TreeId};
use crate::format::log_record::LogRecord;
use crate::format::page::{build_content, content_capacity, PageKind, PageView};
use crate::format::row::{Locator, LOCATOR_BYTES};
use crate::format::undo_record::{self, UndoBlob};
use crate::pool::{MiniTransaction, PageClass, Pool};
use crate::table::shared::counters::Counters;
use crate::table::shared::parts::Core;
use crate::table::shared::room::Need;
use crate::txn::{start_record, Slot};

/// Full pages per step: bounds the time of a mini-transaction and the length of a record.
const PAGES_PER_STEP: usize = 4;

/// Base pages that one step may allocate, including index pages and undo pages.
pub(crate) const PAGES_NEEDED_PER_STEP: usize = 4 * PAGES_PER_STEP + 4;

/// Pages freed in one mini-transaction: bounds the time that an epoch switch waits.
pub(crate) const FREED_PER_STEP: usize = 64;

const PAGE_NUMBER_BYTES: usize = 5;

/// A locator that needs more levels of index pages is damaged: three levels reach 10^16 bytes.
const LEVELS_MAX: usize = 4;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LargePiece<'a> {
    pub(crate) table: TableId,
    pub(crate) total_bytes: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
}

/// The value becomes the transaction's next unclaimed one. Outside mini-transactions.
pub(crate) fn write_value(
    on: Target<'_>,
    unclaimed: &mut Unclaimed,
    value: &[u8],
    buffers: &mut Buffers,
) -> Result<()> {
    let Target { core, slot, table, interrupted, .. } = on;
    let step_bytes = step_bytes(core);
    for (step_no, bytes) in value.chunks(step_bytes).enumerate() {
        let offset = (step_no * step_bytes) as u64;
        let piece = LargePiece { table: table.id(), total_bytes: value.len() as u64, offset, bytes };
        core.make_room_unless(Need::New, PAGES_NEEDED_PER_STEP, interrupted)?;
        write_step(core, slot, unclaimed, table.blob_owner(), &piece, buffers)?;
    }
    Counters::add(&core.counters.large_values_written);
    Ok(())
}

/// The bytes of a value that one step writes: at most a quarter of the shortest log file. A longer
/// record might need a longer file, which is not preallocated: on a full disk, the log would fail
/// in the middle of a mini-transaction.
fn step_bytes(core: &Core) -> usize {
    let page_bytes = page_capacity(&core.pool, PageClass::Large);
    let file_bytes = core.config.log_file_bytes.min(core.config.log_file_bytes_min);
    let log_pages = file_bytes as usize / 4 / page_bytes;
    log_pages.clamp(1, PAGES_PER_STEP) * page_bytes
}

/// Writes a value of a table that is being loaded, without undo and log, and returns its locator.
/// `owner` is a tree that is freed as a whole if the load fails. Outside mini-transactions.
pub(crate) fn write_unlogged(core: &Core, owner: TreeId, value: &[u8]) -> Result<[u8; LOCATOR_BYTES]> {
    let step_bytes = PAGES_PER_STEP * page_capacity(&core.pool, PageClass::Large);
    let mut pages = Vec::new();
    for (step_no, bytes) in value.chunks(step_bytes).enumerate() {
        core.pool.make_room(PAGES_NEEDED_PER_STEP)?;
        let mtr = core.pool.enter();
        write_pages(core, &mtr, owner, (step_no * step_bytes) as u64, bytes, &mut pages);
    }
    core.pool.make_room(PAGES_NEEDED_PER_STEP)?;
    let root = write_index(core, &core.pool.enter(), owner, &pages, &mut Vec::new());
    Counters::add(&core.counters.large_values_written);
    core.pool.trial(owner).finish_late()?;
    // Pages written before the compression trial ends wait for the checkpoint.
    if core.pool.trial(owner).may_write_early() {
        core.pool.note_finished(pages.iter().copied());
    }
    Ok(Locator { value_bytes: value.len() as u64, first_page: root }.encode())
}

/// Takes one step, also for redo. The caller has made room for [`PAGES_NEEDED_PER_STEP`].
pub(crate) fn write_step(
    core: &Core,
    slot: &Slot,
    unclaimed: &mut Unclaimed,
    owner: TreeId,
    piece: &LargePiece<'_>,
    buffers: &mut Buffers,
) -> Result<()> {
    let &LargePiece { table, total_bytes, offset, bytes } = piece;
    if offset == 0 {
        unclaimed.pages.clear();
    }
    buffers.log.clear();
    LogRecord::Blob { txn: slot.txn(), table, total_bytes, offset, bytes }.encode(&mut buffers.log);
    let mtr = core.pool.enter();
    let end = offset + bytes.len() as u64;
    let mut blob =
        UndoBlob { table, total_bytes, end, locator: &[], pages: Vec::new(), index_pages: Vec::new() };
    write_pages(core, &mtr, owner, offset, bytes, &mut blob.pages);
    unclaimed.pages.extend_from_slice(&blob.pages);
    if end == total_bytes {
        let root = write_index(core, &mtr, owner, &unclaimed.pages, &mut blob.index_pages);
        unclaimed.finished.push(Locator { value_bytes: total_bytes, first_page: root }.encode());
        unclaimed.pages.clear();
        blob.locator = unclaimed.finished.last().map_or(&[], |locator| locator);
    }
    let mut state = slot.state();
    start_record(&state, &mut buffers.undo);
    undo_record::put_blob(&mut buffers.undo, &blob);
    undo_record::finish(&mut buffers.undo);
    core.transactions.undo.append(&mtr, &mut state, &buffers.undo);
    if sound!(slot.is_logged(), "large: keep the pieces out of the log") {
        core.journal.append(&mtr, &buffers.log)?;
    }
    // The background threads compress and write the pages while transactions wait for the log.
    // Pages of a table that is too small for a dictionary wait for the checkpoint.
    if core.pool.trial(owner).may_write_early() {
        core.pool.note_value(blob.pages.iter().copied());
    }
    Ok(())
}

/// The piece begins at byte `position` of its value.
fn write_pages(
    core: &Core,
    mtr: &MiniTransaction<'_>,
    owner: TreeId,
    mut position: u64,
    bytes: &[u8],
    pages: &mut Vec<PageId>,
) {
    for piece in bytes.chunks(page_capacity(&core.pool, PageClass::Large)) {
        pages.push(write_page(core, mtr, owner, position, piece));
        position += piece.len() as u64;
    }
}

pub(in crate::table) fn page_capacity(pool: &Pool, class: PageClass) -> usize {
    content_capacity(class.bytes(pool.page_bytes()))
}

/// Writes one page of the smallest class that holds `content`.
fn write_page(
    core: &Core,
    mtr: &MiniTransaction<'_>,
    owner: TreeId,
    position: u64,
    content: &[u8],
) -> PageId {
    let fits = |class: &PageClass| page_capacity(&core.pool, *class) >= content.len();
    let class = PageClass::ALL.into_iter().find(fits).unwrap_or(PageClass::Large);
    let page = core.pool.allocate(mtr, owner, class);
    let mut bytes = page.write(mtr);
    let written =
        build_content(&mut bytes, PageKind::Blob, owner, PageId::NONE, position).append_content(content);
    assert!(written.is_ok(), "a piece is cut to the size of its page");
    page.pid()
}

/// Returns the root.
fn write_index(
    core: &Core,
    mtr: &MiniTransaction<'_>,
    owner: TreeId,
    pages: &[PageId],
    index_pages: &mut Vec<PageId>,
) -> PageId {
    let mut level = pages.to_vec();
    while level.len() > 1 {
        let write = |children: &[PageId]| {
            let number = |page: &PageId| page.0.to_le_bytes().into_iter().take(PAGE_NUMBER_BYTES);
            let content: Vec<u8> = children.iter().flat_map(number).collect();
            write_page(core, mtr, owner, 0, &content)
        };
        level = level.chunks(index_fanout(&core.pool)).map(write).collect();
        index_pages.extend_from_slice(&level);
    }
    level.first().copied().unwrap_or(PageId::NONE)
}

fn index_fanout(pool: &Pool) -> usize {
    page_capacity(pool, PageClass::Large) / PAGE_NUMBER_BYTES
}

fn index_levels(pool: &Pool, total_bytes: u64) -> usize {
    let mut pages = total_bytes.div_ceil(page_capacity(pool, PageClass::Large) as u64);
    let mut levels = 0;
    while pages > 1 {
        pages = pages.div_ceil(index_fanout(pool) as u64);
        levels += 1;
    }
    levels
}

/// Appends the value to `value`. May do I/O.
pub(crate) fn read_value(pool: &Pool, owner: TreeId, locator: &[u8], value: &mut Vec<u8>) -> Result<()> {
    let locator = parse_locator(pool, locator)?;
    let start = value.len() as u64;
    let end = start + locator.value_bytes;
    walk(pool, owner, locator.first_page, index_levels(pool, locator.value_bytes), &mut |visit| {
        if let Visit::Data(page) = visit {
            with_content(pool, owner, page, |content| value.extend_from_slice(content))?;
            if value.len() as u64 > end {
                return Err(damaged(page, "more bytes than the value has"));
            }
        }
        Ok(())
    })?;
    if value.len() as u64 != end {
        return Err(damaged(locator.first_page, "fewer bytes than the value has"));
    }
    Ok(())
}

/// The data pages and index pages of a value. Reads only the index pages.
pub(crate) fn pages_of(
    pool: &Pool,
    owner: TreeId,
    locator: &[u8],
    data: &mut Vec<PageId>,
    index: &mut Vec<PageId>,
) -> Result<()> {
    let locator = parse_locator(pool, locator)?;
    walk(pool, owner, locator.first_page, index_levels(pool, locator.value_bytes), &mut |visit| {
        match visit {
            Visit::Data(page) => data.push(page),
            Visit::Index(page) => index.push(page),
        }
        Ok(())
    })
}

/// Frees the pages of a value that no snapshot sees. Outside mini-transactions: takes several, and
/// is not redone, so an epoch in which only some of the pages are free must never be committed.
pub(crate) fn free_value(core: &Core, owner: TreeId, locator: &[u8]) -> Result<()> {
    let (mut data, mut index) = (Vec::new(), Vec::new());
    pages_of(&core.pool, owner, locator, &mut data, &mut index)?;
    data.append(&mut index);
    check_owner(core, owner, &data)?;
    for pages in data.chunks(FREED_PER_STEP) {
        core.make_room(Need::Back, FREED_PER_STEP)?;
        let mtr = core.pool.enter();
        pages.iter().for_each(|&page| core.pool.free(&mtr, page));
    }
    Ok(())
}

enum Visit {
    Data(PageId),
    Index(PageId),
}

fn walk(
    pool: &Pool,
    owner: TreeId,
    page: PageId,
    levels: usize,
    visit: &mut dyn FnMut(Visit) -> Result<()>,
) -> Result<()> {
    if levels == 0 {
        return visit(Visit::Data(page));
    }
    let number = |bytes: &[u8]| {
        let mut number = [0u8; 8];
        number.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        PageId(u64::from_le_bytes(number))
    };
    let children: Vec<PageId> =
        with_content(pool, owner, page, |content| content.chunks(PAGE_NUMBER_BYTES).map(number).collect())?;
    for child in children {
        walk(pool, owner, child, levels - 1, visit)?;
    }
    visit(Visit::Index(page))
}

fn with_content<R>(pool: &Pool, owner: TreeId, page: PageId, f: impl FnOnce(&[u8]) -> R) -> Result<R> {
    let frame = pool.fetch(page)?.ok_or_else(|| damaged(page, "the page has been freed"))?;
    let guard = frame.read();
    let view = PageView::new(&guard);
    if view.kind() != PageKind::Blob || view.tree() != owner {
        return Err(damaged(page, "the page is not part of a large value of this table"));
    }
    Ok(f(view.content()))
}

fn parse_locator(pool: &Pool, bytes: &[u8]) -> Result<Locator> {
    let locator = Locator::decode(bytes).map_err(|defect| defect.in_place("locator of a large value"))?;
    if index_levels(pool, locator.value_bytes) > LEVELS_MAX || locator.value_bytes == 0 {
        return Err(damaged(locator.first_page, "impossible length"));
    }
    Ok(locator)
}

fn damaged(page: PageId, detail: &str) -> Error {
    Error::corrupt(format!("large value, page {page}"), detail)
}

/// Refuses to free pages that the table does not own: a second free must not take a page from its
/// new owner (durability::C4).
pub(crate) fn check_owner<'p>(
    core: &Core,
    owner: TreeId,
    pages: impl IntoIterator<Item = &'p PageId>,
) -> Result<()> {
    let stranger = |page: &&PageId| core.pool.owner(**page) != Some(owner);
    match pages.into_iter().find(stranger) {
        None => Ok(()),
        Some(page) => {
            let detail = "a large value to be freed names it, but the table does not own it";
            Err(Error::corrupt(format!("page {page}"), detail))
        }
    }
}
