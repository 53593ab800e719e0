//! Decodes an image to the page. Works on any bytes.

use super::compression::decompress;
use super::dictionary::Dictionary;
use super::header::{claimed_version, is_intact, ImageHeader, FORMAT_VERSION};
use super::rebuild;
use super::workspace::Workspace;
use crate::base::{Error, Result};
use crate::format::bytes::{ensure, Defect};
use crate::format::encryption::Key;
use crate::format::page::{PageBuf, PageView, PAGE_BYTES_MAX};
use crate::format::ImageRef;

/// Checks that `image` is the complete and unchanged image that the map names. Does not decode the
/// content.
///
/// Fails with `Corruption` if it is not, and with `Unsupported` if a newer version wrote it.
pub fn check(image: &[u8], expected: &ImageRef) -> Result<ImageHeader> {
    let corrupt = |defect: Defect| defect.in_place(expected.to_string());
    let intact = is_intact(image, expected.location.address(), expected.location.crc);
    ensure(intact, "not the image that the map names").map_err(corrupt)?;
    match claimed_version(image).filter(|&version| version > FORMAT_VERSION) {
        Some(version) => Err(Error::newer(expected.to_string(), format!("image format {version}"))),
        None => read_header(image, expected).map_err(corrupt),
    }
}

fn read_header(image: &[u8], expected: &ImageRef) -> std::result::Result<ImageHeader, Defect> {
    let header = ImageHeader::read(image)?;
    ensure(header.pid == expected.pid, "image of another page")?;
    ensure(header.tree == expected.tree, "image of another tree")?;
    Ok(header)
}

/// The dictionary and the key needed to read an image.
#[derive(Clone, Copy, Default, Debug)]
pub struct Means<'a> {
    /// The dictionary that its header names.
    pub dictionary: Option<&'a Dictionary>,
    /// The key that its header names.
    pub key: Option<&'a Key>,
}

impl Workspace {
    /// Rebuilds the page of `image` in `page`. The image must be the one that the map names, and
    /// must not need a dictionary or a key. `page` is resized; after an error its bytes are
    /// unspecified.
    ///
    /// Fails with `Corruption` if anything is wrong, and with `Unsupported` if a newer version
    /// wrote the image.
    pub fn decode(&mut self, image: &[u8], expected: &ImageRef, page: &mut PageBuf) -> Result<ImageHeader> {
        let header = check(image, expected)?;
        self.rebuild(&header, image, expected, Means::default(), page)?;
        Ok(header)
    }

    /// Like [`decode`](Self::decode), for an image that [`check`] accepted. `header` is the header
    /// that `check` returned. Does not compute the checksum of the image again.
    pub fn rebuild(
        &mut self,
        header: &ImageHeader,
        image: &[u8],
        expected: &ImageRef,
        means: Means<'_>,
        page: &mut PageBuf,
    ) -> Result<()> {
        self.rebuild_page(header, image, means, page).map_err(|defect| defect.in_place(expected.to_string()))
    }

    fn rebuild_page(
        &mut self,
        header: &ImageHeader,
        image: &[u8],
        means: Means<'_>,
        page: &mut PageBuf,
    ) -> std::result::Result<(), Defect> {
        let raw = self.decompress(header, image, means)?;
        page.resize(header.page_bytes);
        if header.kind.is_tree() {
            rebuild::tree_page(raw, header.kind, header.tree, page)?;
        } else {
            rebuild::content_page(raw, header.kind, header.tree, page)?;
        }
        PageView::new(page).verify()
    }

    /// The content of an image.
    pub(super) fn decompress(
        &mut self,
        header: &ImageHeader,
        image: &[u8],
        means: Means<'_>,
    ) -> std::result::Result<&[u8], Defect> {
        let Self { raw, contexts, opened } = self;
        let (name, payload) = match header.closed {
            Some(_) => (header.open(image, means.key, opened)?, opened.as_slice()),
            None => (header.dictionary, header.payload(image)),
        };
        let dictionary = means.dictionary;
        ensure(name == dictionary.map(Dictionary::name), "not the dictionary of the image")?;
        let fits_kind = !header.kind.is_tree() || header.page_bytes < PAGE_BYTES_MAX;
        ensure(fits_kind, "tree page larger than 32 KiB")?;
        raw.resize(header.raw_bytes, 0);
        decompress(contexts, header.codec, dictionary, payload, raw)?;
        Ok(raw)
    }
}
