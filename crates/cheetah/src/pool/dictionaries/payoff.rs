//! Whether a dictionary pays: it is made of some pages of a sample, and other pages of the sample
//! are compressed beside it.
//!
//! Trees do this with their own pages (`trials`), estimates with pages of tables that are not
//! there.

use crate::base::{PageId, Result};
use crate::format::image::{dictionary_of, Compression, Primer};
use crate::format::page::content_capacity;
use crate::pool::PageClass;

/// Pages that a trial looks at.
pub(crate) const SAMPLE_PAGES: usize = 96;
/// From fewer nothing follows for a tree.
pub(crate) const SAMPLE_PAGES_MIN: usize = 24;
/// One in `TESTED_EVERY` of the sampled pages is not used for the dictionary, but to see how much
/// it saves.
const TESTED_EVERY: usize = 3;
/// Part of the sampled content that becomes the dictionary.
const CONTENT_PART: usize = 24;
/// A dictionary is made if it saves at least this part of the images, and in the whole tree
/// [`SAVED_SIZES_MIN`] times its own size. To compress beside it takes up to twice the time:
/// without a wish for small images it has to save more (decision 36).
const SAVED_PERCENT_MIN: usize = 5;
const SAVED_PERCENT_MIN_IF_DENSE: usize = 3;
const SAVED_SIZES_MIN: usize = 2;

/// A dictionary that may be made.
pub(crate) struct TrialDictionary {
    /// Its content.
    pub(crate) content: Vec<u8>,
    /// To compress the tested pages with, in no page yet.
    pub(crate) primer: Primer,
}

/// The bytes of the tested pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payoff {
    /// Images of all tested pages as they would be without the dictionary.
    pub(crate) before: usize,
    /// The same beside it.
    pub(crate) after: usize,
    /// The number of tested pages.
    pub(crate) pages: usize,
    /// The image of the dictionary.
    pub(crate) own: usize,
}

/// The items of a sample that a dictionary is made of, and those that it is tested on.
pub(crate) fn split_sample<T>(sample: impl Iterator<Item = T>) -> (Vec<T>, Vec<T>) {
    let is_tested = |no: usize| no % TESTED_EVERY == TESTED_EVERY - 1;
    let (tested, sources): (Vec<_>, Vec<_>) = sample.enumerate().partition(|(no, _)| is_tested(*no));
    let items = |numbered: Vec<(usize, T)>| numbered.into_iter().map(|(_, item)| item).collect();
    (items(sources), items(tested))
}

impl TrialDictionary {
    /// Makes a dictionary of `sources`, which are contents of pages before compression.
    /// `sampled_bytes`: of these and of the tested ones together. `page_bytes`: of the smallest
    /// pages.
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
    /// Whether the dictionary pays in a tree of `pages` pages that is compressed in that way.
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
        // 50 of 10 pages: 500 of 100.
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
