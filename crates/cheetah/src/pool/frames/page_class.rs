//! The three sizes of pages in memory.

/// Size class of a page: one, two or four times the database's `page_bytes`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub enum PageClass {
    /// `page_bytes`: ordinary trees, undo, small parts of large values.
    #[default]
    Base,
    /// Twice `page_bytes`: trees whose keys can be long.
    Wide,
    /// Four times `page_bytes`: large values only.
    Large,
}

impl PageClass {
    /// All classes, smallest first.
    pub const ALL: [PageClass; 3] = [PageClass::Base, PageClass::Wide, PageClass::Large];

    /// Bytes of a page of this class.
    pub fn bytes(self, page_bytes: u32) -> usize {
        (page_bytes as usize) << self as usize
    }

    /// Returns the class of pages with `bytes` bytes, if there is one.
    pub fn of(bytes: usize, page_bytes: u32) -> Option<PageClass> {
        Self::ALL.into_iter().find(|class| class.bytes(page_bytes) == bytes)
    }

    /// Guesses the class of a page whose image has `image_bytes` bytes, because the page map does
    /// not store the class. Few images are longer than their page, and most pages above the
    /// smallest class are full pages of large values.
    pub(in crate::pool) fn guess(image_bytes: u32, page_bytes: u32) -> PageClass {
        if image_bytes > page_bytes {
            PageClass::Large
        } else {
            PageClass::Base
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::pool::PageClass;

    #[test]
    fn each_class_is_found_again_by_its_size() {
        for class in PageClass::ALL {
            assert_eq!(PageClass::of(class.bytes(512), 512), Some(class));
        }
        assert_eq!(PageClass::of(4096, 512), None);
    }

    #[test]
    fn a_long_image_is_taken_for_that_of_a_large_value() {
        assert_eq!(PageClass::guess(512, 512), PageClass::Base);
        assert_eq!(PageClass::guess(576, 512), PageClass::Large);
    }
}
