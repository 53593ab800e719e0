//! A cursor over the records in key order, in both directions.
//!
//! Invariants
//!   I1  The cursor works on a private copy of one leaf, or of one record after a seek, and holds
//!       no latch between calls. It keeps the leaf pinned, unless the leaf had no frame. If the
//!       version of the leaf has changed, or more changes are pending for it, `next` and `prev`
//!       copy the leaf again and find the position by key. So the owner of the cursor sees its own
//!       changes, and no record is returned twice or after its removal. `run_on` reads the copy
//!       without this check.
//!   I2  Forward, the next leaf must cover the upper fence of the copy. Backward, a search below
//!       the lower fence of the copy finds it. Both are correct after any splits and merges in the
//!       meantime.
//! Source    OrioleDB copies the rows of a leaf in chunks. Copying a whole leaf is simpler, and
//!           takes less than a microsecond for a hundred rows.

use super::ahead::{Ahead, Direction};
use super::descend::{Above, Landing, Target};
use super::look::{Absent, Point};
use super::Tree;
use crate::base::{sound, PageId, Result};
use crate::format::page::{PageView, RecordCopy, RecordRef};
use crate::leaves::{Stored, Unloaded};
use crate::pool::PageRef;
use std::sync::Arc;

/// The record that a seek finds. `p` may be a whole key or a prefix of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeekMode {
    /// The first key that is not below p.
    AtLeast,
    /// The first key above all keys that begin with p.
    After,
    /// The last key that is below p, is p, or begins with p.
    AtMost,
    /// The last key below p.
    Before,
    /// The first key; p is ignored.
    First,
    /// The last key; p is ignored.
    Last,
}

impl SeekMode {
    /// Returns whether the seek finds the first record after a position, not the last one before
    /// it.
    pub fn is_forward(self) -> bool {
        matches!(self, SeekMode::AtLeast | SeekMode::After | SeekMode::First)
    }
}

/// The answer of the closure to a record that [`Cursor::run_on`] offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offered {
    /// The cursor moves to the record and continues.
    Take,
    /// The cursor skips the record.
    Pass,
    /// The cursor stops before the record.
    Stop,
}

/// A position in a tree. See the module.
#[derive(Debug)]
pub struct Cursor {
    tree: Arc<Tree>,
    place: Place,
    leaf: LeafCopy,
    slot: usize,
    /// The key of the current record, if the cursor is on a record.
    key: Vec<u8>,
    /// A copy of a fence, while the copy of its leaf is being replaced.
    bound: Vec<u8>,
    ahead: Ahead,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Before the first seek.
    Nowhere,
    /// Before the first record.
    Start,
    At,
    /// After the last record.
    End,
}

/// The whole leaf, or only the record that a seek found: most seeks need no more.
#[derive(Default, Debug)]
struct LeafCopy {
    source: Option<PageRef>,
    version: u64,
    /// The state of the leaf that was copied, if it had no frame; then `source` is `None`.
    unloaded: Option<Unloaded>,
    /// The content of the whole leaf, if `whole` is set.
    bytes: Vec<u8>,
    /// A copy of a leaf that is not yet known to be the wanted leaf.
    spare: Vec<u8>,
    whole: bool,
    /// The record, if `whole` is not set.
    record: RecordCopy,
}

impl LeafCopy {
    /// Copies `page`. The caller holds its latch.
    fn take(&mut self, page: &PageRef, view: &PageView<'_>) {
        self.note_source(page);
        self.whole = true;
        self.bytes.clear();
        self.bytes.extend_from_slice(view.bytes());
    }

    /// Copies one record of `page`. The caller holds its latch.
    fn take_record(&mut self, page: &PageRef, view: &PageView<'_>, slot: usize) {
        self.note_source(page);
        self.whole = false;
        self.record.take(view.record(slot));
    }

    /// Takes the record that a search found without its leaf; returns `false` if it found none.
    fn take_stored(&mut self, stored: Stored) -> bool {
        let place = stored.place();
        let Some(record) = stored.record else { return false };
        (self.source, self.unloaded) = (None, Some(place));
        self.whole = false;
        self.record = record;
        true
    }

    /// Copies the first record of `page` at or above `key`, and its key to `current`; the whole
    /// leaf if there is none. Returns the slot. The caller holds the latch of the page.
    fn take_at_least(
        &mut self,
        page: &PageRef,
        view: &PageView<'_>,
        key: &[u8],
        current: &mut Vec<u8>,
    ) -> usize {
        let (Ok(slot) | Err(slot)) = view.search(key);
        if slot < view.count() {
            self.take_record(page, view, slot);
            view.key_into(slot, current);
        } else {
            self.take(page, view);
        }
        slot
    }

    fn note_source(&mut self, page: &PageRef) {
        self.version = page.version();
        (self.source, self.unloaded) = (Some(page.clone()), None);
    }

    /// Copies the leaf `pid` without a frame if it is the leaf of `target` and needs none. Returns
    /// whether it did; if not, or after an error, the present copy is unchanged.
    fn take_unloaded(&mut self, tree: &Tree, pid: PageId, target: Target<'_>) -> Result<bool> {
        let copied = tree.leaves.copy_leaf(pid, &mut self.spare)?;
        let Some(leaf) = copied.filter(|_| covers(tree, &PageView::new(&self.spare), target)) else {
            return Ok(false);
        };
        std::mem::swap(&mut self.bytes, &mut self.spare);
        (self.source, self.unloaded, self.whole) = (None, Some(leaf), true);
        Ok(true)
    }

    fn view(&self) -> PageView<'_> {
        PageView::new(&self.bytes)
    }

    fn record(&self, slot: usize) -> RecordRef<'_> {
        if self.whole {
            return self.view().record(slot);
        }
        self.record.as_ref()
    }

    /// Returns whether the leaf is unchanged since it, or its record, was copied.
    fn is_fresh(&self, tree: &Tree) -> bool {
        match (&self.source, &self.unloaded) {
            (Some(page), _) => page.version() == self.version,
            (None, Some(leaf)) => tree.leaves.is_unloaded(leaf),
            (None, None) => false,
        }
    }

    /// Returns whether the copy has the whole leaf and is fresh.
    fn is_current(&self, tree: &Tree) -> bool {
        self.whole && self.is_fresh(tree)
    }
}

impl Tree {
    /// Creates a cursor without a position.
    pub fn cursor(self: &Arc<Self>) -> Cursor {
        Cursor {
            tree: self.clone(),
            place: Place::Nowhere,
            leaf: LeafCopy::default(),
            slot: 0,
            key: Vec::new(),
            bound: Vec::new(),
            ahead: Ahead::default(),
        }
    }
}

impl Cursor {
    /// Moves to the record that `mode` and `p` describe. Returns `false` if no such record exists.
    /// Like `next` and `prev`, it loads pages and may do I/O.
    pub fn seek(&mut self, mode: SeekMode, p: &[u8]) -> Result<bool> {
        self.ahead.stop();
        match mode {
            SeekMode::First => self.seek_at_least(b""),
            SeekMode::AtLeast => self.seek_at_least(p),
            SeekMode::Last => self.seek_last(),
            SeekMode::Before => self.seek_before(p),
            SeekMode::After => match successor(p) {
                Some(above) => self.seek_at_least(&above),
                None => Ok(self.end()),
            },
            SeekMode::AtMost => match successor(p) {
                Some(above) => self.seek_before(&above),
                None => self.seek_last(),
            },
        }
    }

    /// Promises that the caller needs no records from `limit` on until the next seek: pages after
    /// `limit` are not read ahead.
    pub fn expect_end(&mut self, limit: Option<Vec<u8>>) {
        self.ahead.set_limit(limit);
    }

    /// Moves to the next record. Returns `false` at the end, where the cursor stays. From the
    /// position before the first record it moves to the first record.
    #[expect(clippy::should_implement_trait, reason = "it can fail, goes both ways and lends its record")]
    pub fn next(&mut self) -> Result<bool> {
        match self.place {
            Place::Nowhere | Place::End => Ok(false),
            Place::Start => self.seek_at_least(b""),
            Place::At => {
                let slot = match self.find_again()? {
                    Ok(slot) => slot + 1,
                    Err(slot) => slot,
                };
                self.stop_forward(slot)
            }
        }
    }

    /// Offers `f` the records after the current one in the cursor's copy of the leaf. The arguments
    /// of `f` are the common prefix of the keys, the rest of the key, and the record. Moves to the
    /// last record that `f` takes, if any.
    pub fn run_on(&mut self, mut f: impl FnMut(&[u8], &[u8], RecordRef<'_>) -> Offered) {
        if !self.valid() || !self.leaf.whole {
            return;
        }
        let view = self.leaf.view();
        let prefix = view.prefix();
        let mut last = self.slot;
        for slot in self.slot + 1..view.count() {
            let (suffix, record) = view.entry(slot);
            match f(prefix, suffix, record) {
                Offered::Take => last = slot,
                Offered::Pass => {}
                Offered::Stop => break,
            }
        }
        if last > self.slot {
            self.stop(last);
        }
    }

    /// Moves to the previous record: the mirror image of [`next`](Self::next).
    pub fn prev(&mut self) -> Result<bool> {
        match self.place {
            Place::Nowhere | Place::Start => Ok(false),
            Place::End => self.seek_last(),
            Place::At => {
                let (Ok(slot) | Err(slot)) = self.find_again()?;
                self.stop_backward(slot)
            }
        }
    }

    /// Returns whether the cursor is on a record.
    pub fn valid(&self) -> bool {
        self.place == Place::At
    }

    /// The key of the current record, or an empty key if the cursor is on no record.
    pub fn key(&self) -> &[u8] {
        if self.valid() {
            &self.key
        } else {
            &[]
        }
    }

    /// The current record in the state in which the cursor copied it.
    pub fn record(&self) -> Option<RecordRef<'_>> {
        self.valid().then(|| self.leaf.record(self.slot))
    }

    /// Returns whether the leaf is unchanged since the cursor copied the record.
    pub fn is_fresh(&self) -> bool {
        self.leaf.is_fresh(&self.tree)
    }

    /// The tree.
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Forgets the position and unpins the leaf. Keeps buffers for the next use.
    pub fn release(&mut self) {
        (self.leaf.source, self.leaf.unloaded) = (None, None);
        self.place = Place::Nowhere;
    }

    fn seek_at_least(&mut self, key: &[u8]) -> Result<bool> {
        if self.leaf.is_current(&self.tree) && covers(&self.tree, &self.leaf.view(), Target::Key(key)) {
            let slot = self.slot_of(key);
            return self.stop_forward(slot);
        }
        self.place = Place::Nowhere;
        let (leaf, current) = (&mut self.leaf, &mut self.key);
        let may_copy = !self.ahead.is_scan();
        let visited = visit(&self.tree, leaf, Target::Key(key), may_copy, |leaf, page, view| {
            leaf.take_at_least(page, view, key, current)
        })?;
        match visited {
            Visited::Page(slot) => self.stop_at(slot),
            Visited::Copied => self.stop_forward(self.slot_of(key)),
        }
    }

    /// Moves to the record of `key`, or to the next record if the key has none, like
    /// [`seek`](Self::seek), for callers that need only this record: a cold leaf may stay cold.
    pub fn seek_point(&mut self, key: &[u8]) -> Result<bool> {
        self.ahead.stop();
        let is_pinned = |page: &PageRef| covers(&self.tree, &PageView::new(&page.read()), Target::Key(key));
        if self.leaf.source.as_ref().is_some_and(is_pinned) {
            return self.seek_at_least(key);
        }
        self.place = Place::Nowhere;
        let (leaf, current) = (&mut self.leaf, &mut self.key);
        let found = self
            .tree
            .point(key, Absent::LoadsLeaf, |page, view| leaf.take_at_least(page, view, key, current))?;
        match found {
            Point::Page(slot) => self.stop_at(slot),
            Point::Stored(stored) => {
                if !self.leaf.take_stored(stored) {
                    return self.seek_at_least(key);
                }
                self.key.clear();
                self.key.extend_from_slice(key);
                self.slot = 0;
                self.place = Place::At;
                Ok(true)
            }
        }
    }

    fn stop_at(&mut self, slot: usize) -> Result<bool> {
        if self.leaf.whole {
            return self.stop_forward(slot);
        }
        self.slot = slot;
        self.place = Place::At;
        Ok(true)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<bool> {
        if key.is_empty() {
            return Ok(self.start());
        }
        self.go(Target::Below(key))?;
        let slot = self.slot_of(key);
        self.stop_backward(slot)
    }

    fn seek_last(&mut self) -> Result<bool> {
        self.go(Target::Last)?;
        self.stop_backward(self.leaf.view().count())
    }

    fn go(&mut self, target: Target<'_>) -> Result<()> {
        if self.leaf.is_current(&self.tree) && covers(&self.tree, &self.leaf.view(), target) {
            return Ok(());
        }
        self.place = Place::Nowhere;
        let may_copy = !self.ahead.is_scan();
        visit(&self.tree, &mut self.leaf, target, may_copy, LeafCopy::take).map(drop)
    }

    /// Refreshes the copy if necessary. Returns the current key's slot, or the one it would have.
    fn find_again(&mut self) -> Result<std::result::Result<usize, usize>> {
        if self.leaf.is_current(&self.tree) {
            return Ok(Ok(self.slot));
        }
        let may_copy = !self.ahead.is_scan();
        visit(&self.tree, &mut self.leaf, Target::Key(&self.key), may_copy, LeafCopy::take)?;
        Ok(self.leaf.view().search(&self.key))
    }

    /// Stops at `slot`, or, after the last slot, at the first record of the following leaves.
    fn stop_forward(&mut self, mut slot: usize) -> Result<bool> {
        while slot >= self.leaf.view().count() {
            let view = self.leaf.view();
            let Some(high) = view.high() else { return Ok(self.end()) };
            let mut bound = std::mem::take(&mut self.bound);
            bound.clear();
            bound.extend_from_slice(high);
            let hopped = self.hop(view.right(), &bound);
            slot = self.slot_of(&bound);
            self.bound = bound;
            hopped?;
            if self.leaf.view().count() == 0 && !sound!(true, "cursor: end at an empty leaf") {
                return Ok(self.end());
            }
            self.ask_ahead(Direction::Forward);
        }
        Ok(self.stop(slot))
    }

    /// Copies the leaf that covers `bound`. It is probably the page `right`.
    fn hop(&mut self, right: PageId, bound: &[u8]) -> Result<()> {
        self.place = Place::Nowhere;
        // For a long scan the pool reads pages ahead, into frames.
        let is_short = !self.ahead.is_scan() && self.tree.leaves.may_peek();
        if is_short && self.leaf.take_unloaded(&self.tree, right, Target::Key(bound))? {
            return Ok(());
        }
        if let Some(page) = self.tree.pool.fetch_for_scan(right)? {
            let guard = page.read();
            let view = PageView::new(&guard);
            if covers(&self.tree, &view, Target::Key(bound)) {
                self.leaf.take(&page, &view);
                return Ok(());
            }
        }
        self.go(Target::Key(bound))
    }

    /// Like [`stop_forward`](Self::stop_forward), from the slot before `slot` backward.
    fn stop_backward(&mut self, mut slot: usize) -> Result<bool> {
        while slot == 0 {
            let low = self.leaf.view().low();
            if low.is_empty() {
                return Ok(self.start());
            }
            let mut bound = std::mem::take(&mut self.bound);
            bound.clear();
            bound.extend_from_slice(low);
            let hopped = self.go(Target::Below(&bound));
            slot = self.slot_of(&bound);
            self.bound = bound;
            hopped?;
            self.ask_ahead(Direction::Backward);
        }
        Ok(self.stop(slot - 1))
    }

    /// Requests the leaves after the present one, to which the cursor has just crossed.
    fn ask_ahead(&mut self, direction: Direction) {
        let view = self.leaf.view();
        let fence = match direction {
            Direction::Forward => view.high().unwrap_or_default(),
            Direction::Backward => view.low(),
        };
        let pid = self.leaf.source.as_ref().map_or(PageId::NONE, PageRef::pid);
        self.ahead.reached(&self.tree, direction, pid, fence);
    }

    fn slot_of(&self, key: &[u8]) -> usize {
        let (Ok(slot) | Err(slot)) = self.leaf.view().search(key);
        slot
    }

    fn stop(&mut self, slot: usize) -> bool {
        self.slot = slot;
        PageView::new(&self.leaf.bytes).key_into(slot, &mut self.key);
        self.place = Place::At;
        true
    }

    fn start(&mut self) -> bool {
        self.place = Place::Start;
        false
    }

    fn end(&mut self) -> bool {
        self.place = Place::End;
        false
    }
}

fn covers(tree: &Tree, page: &PageView<'_>, target: Target<'_>) -> bool {
    tree.landing(page, Some(0), target) == Landing::Here
}

enum Visited<R> {
    /// The closure ran on the leaf and returned this.
    Page(R),
    /// The whole leaf was copied without being loaded into a frame.
    Copied,
}

/// Runs `f` under the latch of the leaf of `target`, which is the pinned leaf or the one that a
/// search finds. With `may_copy`, copies the leaf instead if it is not in memory and need not be
/// loaded.
fn visit<R>(
    tree: &Tree,
    leaf: &mut LeafCopy,
    target: Target<'_>,
    may_copy: bool,
    f: impl FnOnce(&mut LeafCopy, &PageRef, &PageView<'_>) -> R,
) -> Result<Visited<R>> {
    let mut f = Some(f);
    let mut run = |leaf: &mut LeafCopy, page: &PageRef, view: &PageView<'_>| {
        f.take().map(|f| f(leaf, page, view)).expect("one leaf is visited")
    };
    if let Some(page) = leaf.source.clone() {
        if let Some(result) = tree.on_leaf(&page, target, |page, view| run(leaf, page, view)) {
            return Ok(Visited::Page(result));
        }
    }
    if may_copy && tree.leaves.may_peek() {
        if let Some(pid) = tree.above_leaf(target, &mut (), |above: Above<'_>| above.child())? {
            if leaf.take_unloaded(tree, pid, target)? {
                return Ok(Visited::Copied);
            }
            let page = tree.pool.fetch(pid)?;
            let result =
                page.and_then(|page| tree.on_leaf(&page, target, |page, view| run(leaf, page, view)));
            if let Some(result) = result {
                return Ok(Visited::Page(result));
            }
        }
    }
    tree.with_page(target, 0, &mut (), |page, view| run(leaf, page, view)).map(Visited::Page)
}

/// The smallest key above all keys that begin with `p`; `None` if no key can be above them.
pub fn successor(p: &[u8]) -> Option<Vec<u8>> {
    let last = p.iter().rposition(|&byte| byte != 0xff)?;
    let mut above = p[..=last].to_vec();
    above[last] += 1;
    Some(above)
}

#[cfg(test)]
mod tests {
    use super::successor;

    #[test]
    fn the_successor_of_a_prefix_is_above_all_its_keys() {
        assert_eq!(successor(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(successor(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(successor(b"\xff"), None);
        assert_eq!(successor(b""), None);
    }
}
