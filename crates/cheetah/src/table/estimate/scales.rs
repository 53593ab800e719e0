//! Measures pages: the sizes of their images with each compression, and the times to encode and
//! decode these.

use super::dictionary_saving::Sort;
use crate::base::{opaque, Epoch, PageId, TreeId, TxnId};
use crate::format::image::{seal, Compression, Encoding, Primer, Workspace, ALIGN_BYTES};
use crate::format::page::{build_content, PageBuf, PageKind};
use crate::format::row::RowFormatVersion;
use crate::format::{ImageRef, Location};
use cheetah_io::time::Clock;
use std::sync::Arc;

/// A fictitious page: the images are never written.
const PAGE: PageId = PageId(1);
/// The fictitious tree of the pages.
pub(super) const TREE: TreeId = TreeId::FIRST_USER;
const ADDRESS: u64 = ALIGN_BYTES as u64;

/// Encodes pages with each compression, and decodes them again.
pub(super) struct Scales {
    clock: Arc<dyn Clock>,
    /// Bytes of the smallest page class.
    page_bytes: u32,
    densities: Vec<Compression>,
    times: Vec<Times>,
    pages: u64,
    workspace: Workspace,
    image: Vec<u8>,
    /// Buffer for a page to measure.
    content: PageBuf,
    decoded: PageBuf,
}

#[derive(Clone, Copy, Default)]
struct Times {
    encode_ns: u64,
    decode_ns: u64,
}

impl Scales {
    pub(super) fn new(clock: Arc<dyn Clock>, page_bytes: u32, densities: Vec<Compression>) -> Self {
        let times = vec![Times::default(); densities.len()];
        let page = || PageBuf::new(512);
        let (workspace, image) = (Workspace::default(), Vec::new());
        let (content, decoded) = (page(), page());
        Self { clock, page_bytes, densities, times, pages: 0, workspace, image, content, decoded }
    }

    pub(super) fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    pub(super) fn density(&self, no: usize) -> Compression {
        self.densities[no]
    }

    pub(super) fn has_dictionaries(&self, no: usize) -> bool {
        Primer::suits(self.densities[no])
    }

    pub(super) fn bytes_beside(&mut self, content: &[u8], no: usize, dictionary: Option<&Primer>) -> usize {
        self.workspace.image_bytes(content, self.densities[no], dictionary)
    }

    pub(super) fn count(&self) -> usize {
        self.densities.len()
    }

    /// Adds a page's image sizes, `times` times, to the sums, and offers the page to the sample.
    pub(super) fn weigh(
        &mut self,
        page: &[u8],
        row_format: &RowFormatVersion,
        times: f64,
        sums: &mut [f64],
        sample: &mut Sort,
    ) {
        self.pages += 1;
        let bytes: Vec<_> =
            (0..self.densities.len()).map(|no| self.image_bytes(page, row_format, no)).collect();
        sums.iter_mut().zip(&bytes).for_each(|(sum, bytes)| *sum += *bytes as f64 * times);
        sample.keep(|| self.workspace.content(page, row_format, TxnId(0)).to_vec(), &bytes);
    }

    /// Like [`weigh`](Self::weigh), for a page with a piece of a large value.
    pub(super) fn weigh_content(
        &mut self,
        page_bytes: usize,
        piece: &[u8],
        times: f64,
        sums: &mut [f64],
        sample: &mut Sort,
    ) {
        let mut page = std::mem::replace(&mut self.content, PageBuf::new(512));
        page.resize(page_bytes);
        let written = build_content(&mut page, PageKind::Blob, TREE, PageId::NONE, 0).append_content(piece);
        debug_assert!(written.is_ok(), "a piece is cut to the size of its page");
        self.weigh(&page, &RowFormatVersion::opaque(), times, sums, sample);
        self.content = page;
    }

    pub(super) fn image_bytes(&mut self, page: &[u8], row_format: &RowFormatVersion, no: usize) -> usize {
        let how = Encoding {
            row_format,
            compression: self.densities[no],
            freeze_below: TxnId(0),
            dictionary: None,
            lock: None,
        };
        let start = self.clock.now_ns();
        self.workspace.encode(page, PAGE, Epoch(1), &how, &mut self.image);
        let encoded = self.clock.now_ns();
        let crc = seal(&mut self.image, ADDRESS);
        let location = Location::of_address(ADDRESS, self.image.len() as u32, crc);
        let expected = ImageRef { pid: PAGE, tree: TREE, location };
        let before = self.clock.now_ns();
        let decoded = self.workspace.decode(&self.image, &expected, &mut self.decoded);
        debug_assert!(decoded.is_ok(), "what was just encoded can be decoded");
        let times = &mut self.times[no];
        times.decode_ns += self.clock.now_ns().saturating_sub(before);
        times.encode_ns += encoded.saturating_sub(start);
        self.image.len()
    }

    /// The pages measured, and the mean times to encode and to decode one.
    pub(super) fn times(&self, no: usize) -> (u64, u64, u64) {
        let Times { encode_ns, decode_ns } = self.times[no];
        let pages = self.pages.max(1);
        (self.pages, encode_ns / pages, decode_ns / pages)
    }
}

opaque!(Scales);
