//! Re-encrypts an image without decompressing it.

use super::header::ImageHeader;
use super::ALIGN_BYTES;
use crate::format::bytes::Defect;
use crate::format::encryption::{BoxHead, Key, NONCE_BYTES};

/// Replaces `out` with a copy of `image`, whose header is `header`. Decrypts the content with `key`
/// if it is encrypted, and encrypts it with `lock` if there is one. The result is not sealed yet
/// ([`super::seal`]).
pub fn reclose(
    header: &ImageHeader,
    image: &[u8],
    key: Option<&Key>,
    lock: Option<(&Key, [u8; NONCE_BYTES])>,
    out: &mut Vec<u8>,
) -> Result<(), Defect> {
    let mut opened = Vec::new();
    let (dictionary, content) = match header.closed {
        Some(_) => (header.open(image, key, &mut opened)?, opened.as_slice()),
        None => (header.dictionary, header.payload(image)),
    };
    let closed = lock.map(|(key, nonce)| BoxHead { key: key.name(), nonce });
    let new = ImageHeader { dictionary, closed, ..*header };
    out.clear();
    out.resize(new.payload_at(), 0);
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(ALIGN_BYTES), 0);
    new.write(out);
    if let Some((key, _)) = lock {
        new.close(out, key);
    }
    Ok(())
}
