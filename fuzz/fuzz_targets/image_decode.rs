//! Fuzzes the decoder of images: any content in an image with a correct length and checksum decodes
//! to an error, or to a page that passes verification. Searching the image for a record never
//! panics.
#![no_main]

use cheetah::testing::base::{PageId, TreeId};
use cheetah::testing::format::image::{Means, 
    check, seal, Dictionary, LeafImage, Workspace, ALIGN_BYTES, HEADER_BYTES,
};
use cheetah::testing::format::page::{PageBuf, PageView};
use cheetah::testing::format::{ImageRef, Location};
use libfuzzer_sys::fuzz_target;

const PID: u64 = 5;
const TREE: u32 = 16;

/// The page of the dictionary that images with codec 3 name.
const DICTIONARY: u64 = 9;

/// An image around `content`. The fuzzer chooses kind, codec, page size and the length before
/// compression.
fn image_around(choices: &[u8; 6], content: &[u8], dictionary: &Dictionary) -> Vec<u8> {
    let mut image = vec![0; HEADER_BYTES];
    let has_dictionary = choices[1] == 3;
    if has_dictionary {
        image.extend_from_slice(&DICTIONARY.to_le_bytes()[..5]);
        image.extend_from_slice(&dictionary.name().crc.to_le_bytes());
    }
    let payload_at = image.len();
    image.extend_from_slice(content);
    image.resize(image.len().next_multiple_of(ALIGN_BYTES), 0);
    let length = image.len() as u32;
    let padding = (image.len() - payload_at - content.len()) as u8;
    image[..4].copy_from_slice(b"IMG1");
    image[4..8].copy_from_slice(&length.to_le_bytes());
    image[8..16].copy_from_slice(&PID.to_le_bytes());
    image[24..28].copy_from_slice(&[2, choices[0], choices[1], choices[2]]);
    image[40..44].copy_from_slice(&TREE.to_le_bytes());
    image[44..48].copy_from_slice(&[choices[3], choices[4], choices[5], padding]);
    image
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choices, content)) = bytes.split_first_chunk() else { return };
    let like_all = b"what all pages are like ".repeat(20);
    let dictionary = Dictionary::new(PageId(DICTIONARY), &like_all)
        .expect("the content is not like a trained dictionary");
    let mut image = image_around(choices, content, &dictionary);
    let crc = seal(&mut image, 64);
    let location = Location::of_address(64, image.len() as u32, crc);
    let expected = ImageRef { pid: PageId(PID), tree: TreeId(TREE), location };
    let mut page = PageBuf::new(512);
    let Ok(header) = check(&image, &expected) else { return };
    let means = Means { dictionary: header.dictionary.map(|_| &dictionary), key: None };
    let key = content.get(..choices[0].into()).unwrap_or_default();
    let look = |leaf: &LeafImage<'_>| leaf.find(key);
    let _ = Workspace::default().look_into(&header, &image, &expected, means, look);
    if Workspace::default().rebuild(&header, &image, &expected, means, &mut page).is_ok() {
        assert_eq!(PageView::new(&page).verify(), Ok(()));
    }
});
