//! Converts between the bytes of a frame and its image. These functions pass the pool's data about
//! a page to `format::image`.

use crate::base::{Epoch, Error, PageId, Result, TxnId};
use crate::format::encryption::{Key, NONCE_BYTES};
use crate::format::image::{self, Compression, Encoding, ImageHeader, Primer, Workspace};
use crate::format::page::{PageKind, PageView};
use crate::format::row::RowFormatVersion;
use crate::format::ImageRef;
use crate::pool::PageClass;
use crate::pool::TreeDef;
use crate::segment::Stream;

/// Replaces `image` with the image of `page`. Pages of unregistered trees are compressed as opaque
/// bytes. Records of transactions below `freeze_below` lose their version. `def` includes the
/// dictionary of the tree. `lock` is the key and nonce that encrypt the image.
#[expect(clippy::too_many_arguments, reason = "the properties of a page, and two buffers")]
pub(in crate::pool) fn encode(
    def: Option<(&TreeDef, Option<&Primer>)>,
    page: &[u8],
    pid: PageId,
    epoch: Epoch,
    freeze_below: TxnId,
    lock: Option<(&Key, [u8; NONCE_BYTES])>,
    workspace: &mut Workspace,
    image: &mut Vec<u8>,
) {
    let opaque = RowFormatVersion::opaque();
    let how = match def {
        Some((def, dictionary)) => {
            let compression = def.compression;
            Encoding { row_format: &def.row_format, compression, freeze_below, dictionary, lock }
        }
        None => {
            let compression = Compression::default();
            Encoding { row_format: &opaque, compression, freeze_below, dictionary: None, lock }
        }
    };
    workspace.encode(page, pid, epoch, &how, image);
}

/// The stream to which a page's images are appended.
pub(in crate::pool) fn stream_of(page: &[u8]) -> Stream {
    match PageView::new(page).kind() {
        PageKind::Blob => Stream::Blob,
        _ => Stream::Hot,
    }
}

/// Checks that an image is the expected one. Returns its header, and the class of its page.
pub(in crate::pool) fn check(
    image: &[u8],
    expected: &ImageRef,
    page_bytes: u32,
) -> Result<(ImageHeader, PageClass)> {
    let header = image::check(image, expected)?;
    let bytes = header.page_bytes;
    let class = PageClass::of(bytes, page_bytes)
        .ok_or_else(|| Error::corrupt(expected.to_string(), format!("a page of {bytes} bytes")))?;
    Ok((header, class))
}
