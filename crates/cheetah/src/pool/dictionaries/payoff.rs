//! Decides whether a dictionary pays. The dictionary is built from some pages of a sample, and the
//! other pages of the sample are compressed with it.
//!
//! Trees sample their own pages (`trials`); estimates sample pages of tables that do not exist yet.

use crate::base::{PageId, Result};
use crate::format::image::{dictionary_of, Compression, Primer};
use crate::format::page::content_capacity;
use crate::pool::PageClass;

/// The number of pages in the sample of a trial.
pub(crate) const SAMPLE_PAGES: usize = 96;
/// The minimum number of pages in a sample. Smaller samples are not significant for a tree.
pub(crate) const SAMPLE_PAGES_MIN: usize = 24;
/// One in `TESTED_EVERY` sampled pages measures the savings of the dictionary and is not used to
/// build it.
const TESTED_EVERY: usize = 3;
/// The length of the dictionary is the length of the sampled content divided by `CONTENT_PART`.
const CONTENT_PART: usize = 24;
/// The minimum saving of a dictionary, in percent of the image bytes. Over the whole tree it must
/// also save at least [`SAVED_SIZES_MIN`] times its own size. Compressing with a dictionary takes
/// up to twice the time, so the percentage is higher if the table's compression level does not
/// request small images (decision 36).
const SAVED_PERCENT_MIN: usize = 5;
const SAVED_PERCENT_MIN_IF_DENSE: usize = 3;
const SAVED_SIZES_MIN: usize = 2;

/// A dictionary that is not in the tree yet.
pub(crate) struct TrialDictionary {
    /// Its content.
    pub(crate) content: Vec<u8>,
    /// Compresses the tested pages with the dictionary, which has no page yet.
    pub(crate) primer: Primer,
}

/// The bytes of the tested pages with and without a dictionary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payoff {
    /// Bytes of the images of all tested pages without the new dictionary.
    pub(crate) before: usize,
    /// Bytes of these images with it.
    pub(crate) after: usize,
    /// The number of tested pages.
    pub(crate) pages: usize,
    /// Bytes of the dictionary's own image.
    pub(crate) own: usize,
}

/// Splits a sample into the items from which a dictionary is built, and the items that test it.
pub(crate) fn split_sample<T>(sample: impl Iterator<Item = T>) -> (Vec<T>, Vec<T>) {
    let is_tested = |no: usize| no % TESTED_EVERY == TESTED_EVERY - 1;
    let (tested, sources): (Vec<_>, Vec<_>) = sample.enumerate().partition(|(no, _)| is_tested(*no));
    let items = |numbered: Vec<(usize, T)>| numbered.into_iter().map(|(_, item)| item).collect();
    (items(sources), items(tested))
}

impl TrialDictionary {
    /// Builds a dictionary from `sources`, which are contents of pages before compression.
    /// `sampled_bytes` is the length of these and of the tested contents. `page_bytes` is the size
    /// of the smallest pages.
    pub(crate) fn of(
        sources: &[&[u8]],
        sampled_bytes: usize,
        compression: Compression,
        page_bytes: u32,
    ) -> Result<Self> {
        let capacity = content_capacity(PageClass::Large.bytes(page_bytes));
        let content = dictionary_of(sources, (sampled_bytes / CONTENT_PART).min(capacity));
        let primer = Primer::new(PageId::NONE, &content, compression)?;
        Ok(Self { content, primer })
    }
}

impl Payoff {
    /// Returns whether the dictionary pays in a tree with `pages` pages and this compression.
    pub(crate) fn pays(&self, pages: u64, compression: Compression) -> bool {
        let percent_min = match compression.level <= Compression::default().level {
            true => SAVED_PERCENT_MIN,
            false => SAVED_PERCENT_MIN_IF_DENSE,
        };
        let saved = self.before.saturating_sub(self.after);
        let saved_in_tree = saved / self.pages.max(1) * pages as usize;
        saved > 0 && saved * 100 >= self.before * percent_min && saved_in_tree >= self.own * SAVED_SIZES_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_third_page_is_tested() {
        assert_eq!(split_sample(1..=8), (vec![1, 2, 4, 5, 7, 8], vec![3, 6]));
    }

    #[test]
    fn a_dictionary_pays_from_five_percent_and_twice_its_own_size_on() {
        let outcome = |after, own| Payoff { before: 1000, after, pages: 10, own };
        let pays = |after, own, pages| outcome(after, own).pays(pages, Compression::default());
        // 50 bytes saved on 10 pages mean 500 bytes saved on 100 pages.
        assert!(pays(950, 250, 100));
        assert!(!pays(951, 1, 100));
        assert!(!pays(950, 251, 100) && pays(950, 251, 101));
        assert!(!pays(1000, 0, 100) && !pays(1010, 0, 100));
        assert!(!Payoff { before: 0, after: 0, pages: 0, own: 0 }.pays(100, Compression::default()));
    }

    #[test]
    fn where_small_images_are_asked_for_three_percent_are_enough() {
        let dense = Compression { level: 12, ..Compression::default() };
        let outcome = |after| Payoff { before: 1000, after, pages: 10, own: 1 };
        assert!(outcome(970).pays(100, dense) && !outcome(970).pays(100, Compression::default()));
        assert!(!outcome(971).pays(100, dense));
    }
}
