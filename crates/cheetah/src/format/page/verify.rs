//! The complete check of a page's structure, run after decoding and by CHECK TABLE. Works on any
//! bytes.

use super::layout::*;
use super::view::{parts_at, PageView};
use crate::base::PageId;
use crate::format::bytes::{ensure, Defect};

type Check = Result<(), Defect>;

impl PageView<'_> {
    /// Returns `Ok` if the bytes are a page whose invariants hold, so that all other methods may be
    /// called.
    pub fn verify(&self) -> Check {
        self.verify_header()?;
        if !self.kind().is_tree() {
            return self.verify_content();
        }
        self.verify_areas()?;
        self.verify_fences()?;
        self.verify_records()?;
        ensure(self.is_leaf() || self.verify_first_child(), "an inner page's first key is not its low fence")
    }

    fn verify_header(&self) -> Check {
        let bytes = self.bytes;
        let size = bytes.len();
        let size_known = size.is_power_of_two() && (PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&size);
        ensure(size_known, "page size is not a power of two from 512 to 65536")?;
        ensure(bytes[AT_VERSION] == FORMAT_VERSION, "unknown page format version")?;
        let kind = PageKind::from_code(bytes[AT_KIND]).ok_or(Defect::new("unknown page kind"))?;
        ensure((bytes[AT_LEVEL] > 0) == (kind == PageKind::Inner), "level does not suit the page kind")?;
        ensure(bytes[AT_FLAGS] & !(FLAG_DEAD | FLAG_HAS_HIGH) == 0, "unknown page flags")?;
        ensure(self.right() <= PageId::MAX, "right neighbour beyond 40 bits")?;
        let unused = [&bytes[36..40], &bytes[48..HEADER_BYTES]];
        ensure(unused.iter().all(|part| part.iter().all(|&b| b == 0)), "unused header bytes are not zero")
    }

    fn verify_content(&self) -> Check {
        let length = u32_at(self.bytes, AT_CONTENT_LEN) as usize;
        ensure(length <= self.bytes.len() - HEADER_BYTES, "content longer than its page")?;
        ensure(self.bytes[AT_FLAGS] & FLAG_HAS_HIGH == 0, "a content page has a fence")?;
        let slots_unused = self.bytes[AT_COUNT..AT_LAST_INSERT].iter().all(|&b| b == 0);
        ensure(slots_unused, "a content page has slots")
    }

    fn verify_areas(&self) -> Check {
        let size = self.bytes.len();
        ensure(size <= TREE_PAGE_BYTES_MAX, "tree page larger than 32 KiB")?;
        let content_unused = self.bytes[AT_CONTENT_LEN..AT_CONTENT_POSITION + 8].iter().all(|&b| b == 0);
        ensure(content_unused, "a tree page has content")?;
        let fences =
            usize::from(u16_at(self.bytes, AT_LOW_LEN)) + usize::from(u16_at(self.bytes, AT_HIGH_LEN));
        ensure(fences <= size - HEADER_BYTES, "fences longer than their page")?;
        let slots_end = HEADER_BYTES + self.count() * SLOT_BYTES;
        ensure(slots_end <= self.heap_start(), "slots overlap the heap")?;
        ensure(self.heap_start() <= self.heap_end(), "heap starts after its end")?;
        ensure(self.garbage() <= self.heap_end() - self.heap_start(), "more garbage than heap")
    }

    fn verify_fences(&self) -> Check {
        match self.high() {
            None => {
                ensure(self.heap_end() == self.low_at(), "a length of the high fence without the fence")?;
                ensure(self.prefix_len() == 0, "a prefix without a high fence")
            }
            Some(high) => {
                ensure(self.low() < high, "low fence not below the high one")?;
                let common = common_prefix(self.low(), high);
                ensure(self.prefix_len() == common, "prefix is not the common one of the fences")
            }
        }
    }

    /// Checks that records are well formed and inside the heap, keys ascend within the fences, and
    /// heads are right.
    fn verify_records(&self) -> Check {
        let heap = &self.bytes[..self.heap_end()];
        let leaf = self.is_leaf();
        let mut previous: Option<(u32, &[u8])> = None;
        let (mut in_order, mut next_end) = (true, self.heap_end());
        for i in 0..self.count() {
            let at = self.record_at(i);
            let parts = (at >= self.heap_start()).then(|| parts_at(heap, at)).flatten();
            let parts = parts.ok_or(Defect::at("record not inside the heap", i))?;
            let flags = parts.flags & !RecordFlags::VERSIONED_BIT;
            let flags_known = RecordFlags::from_bits(flags).is_some() && (leaf || parts.flags == 0);
            let child_known =
                leaf || (parts.payload.len() == CHILD_BYTES && parts.payload != [0; CHILD_BYTES]);
            if !flags_known || !child_known {
                return Err(Defect::at("record with unknown flags or without a child", i));
            }
            // Ascending heads prove the order, so the keys are compared only if the heads are
            // equal.
            let head = head_of(parts.suffix);
            let ascends = previous.is_none_or(|(before, key)| before < head || key < parts.suffix);
            if self.head(i) != head || !ascends {
                return Err(Defect::at("key out of order", i));
            }
            previous = Some((head, parts.suffix));
            in_order &= at + parts.bytes == next_end;
            next_end = at;
        }
        self.verify_ends(previous.map(|(_, suffix)| suffix))?;
        // The records are adjacent from the top of the heap, as in a fresh page, so there can be
        // neither overlaps nor garbage.
        if in_order && next_end == self.heap_start() {
            return ensure(self.garbage() == 0, "garbage is miscounted");
        }
        self.verify_heap()
    }

    /// Checks the first and the last key against the fences. The keys ascend, so the others are
    /// inside the fences too.
    fn verify_ends(&self, last: Option<&[u8]>) -> Check {
        let Some(last) = last else { return Ok(()) };
        let (low, prefix_len) = (self.low(), self.prefix_len());
        ensure(self.suffix(0) >= &low[prefix_len..], "first key below the low fence")?;
        let below = self.high().is_none_or(|high| last < &high[prefix_len..]);
        ensure(below, "last key not below the high fence")
    }

    /// Checks that records do not overlap, and that the remaining bytes of the heap are counted as
    /// garbage.
    fn verify_heap(&self) -> Check {
        let mut areas: Vec<_> = (0..self.count()).map(|i| (self.record_at(i), self.parts(i).bytes)).collect();
        areas.sort_unstable();
        let (mut end, mut records) = (self.heap_start(), 0);
        for (at, bytes) in areas {
            ensure(at >= end, "records overlap")?;
            end = at + bytes;
            records += bytes;
        }
        let heap = self.heap_end() - self.heap_start();
        ensure(records + self.garbage() == heap, "garbage is miscounted")
    }

    fn verify_first_child(&self) -> bool {
        let low = &self.low()[self.prefix_len()..];
        if self.count() == 0 {
            return self.is_dead();
        }
        self.suffix(0) == low
    }
}
