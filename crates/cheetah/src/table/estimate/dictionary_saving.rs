//! Estimates the savings of dictionaries by trying one on the sampled pages, as trees do on their
//! own pages.
//!
//! Invariants
//!   I1  Pages of rows and pages of large values are measured separately, because their proportions
//!       in the sample differ from those in the table.

use super::scales::Scales;
use crate::base::Result;
use crate::pool::dictionaries::{split_sample, Payoff, TrialDictionary, PAGES_MIN, SAMPLE_PAGES};

/// Content of one kind that a run may add to the sample, at most, without its last page.
const RUN_BYTES_MAX: usize = 24 << 10;

#[derive(Default, Debug)]
pub(super) struct Sample {
    leaves: Sort,
    large: Sort,
}

#[derive(Default, Debug)]
pub(super) struct Sort {
    pages: Vec<Weighed>,
    run_bytes: usize,
}

#[derive(Debug)]
struct Weighed {
    /// Before compression.
    content: Vec<u8>,
    /// Image sizes, with each compression.
    bytes: Vec<usize>,
}

/// The sizes of images with the dictionary of their index, relative to those without.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    pub(super) leaves: Share,
    pub(super) large: Share,
    pub(super) own_bytes: f64,
}

/// Bytes with a dictionary as a fraction of the bytes without.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) part: f64,
    pub(super) variance: f64,
}

impl Sample {
    pub(super) fn start_run(&mut self) {
        self.leaves.run_bytes = 0;
        self.large.run_bytes = 0;
    }

    pub(super) fn leaves(&mut self) -> &mut Sort {
        &mut self.leaves
    }

    pub(super) fn large(&mut self) -> &mut Sort {
        &mut self.large
    }

    /// For an index of `pages` pages; [`Beside::NONE`] if the tree would get no dictionary.
    pub(super) fn try_dictionary(&self, scales: &mut Scales, no: usize, pages: f64) -> Result<Beside> {
        if pages < PAGES_MIN as f64 || !scales.has_dictionaries(no) {
            return Ok(Beside::NONE);
        }
        let (mut sources, leaves) = self.leaves.split_sample();
        let (more, large) = self.large.split_sample();
        sources.extend(more);
        let sampled = sources.len() + leaves.len() + large.len();
        let contents: Vec<_> = sources.iter().map(|page| page.content.as_slice()).collect();
        // As much as a tree of that size would sample.
        let all_bytes: usize =
            sources.iter().chain(&leaves).chain(&large).map(|page| page.content.len()).sum();
        let sampled_bytes = all_bytes * SAMPLE_PAGES.min(pages as usize) / sampled.max(1);
        let trial = TrialDictionary::of(&contents, sampled_bytes, scales.density(no), scales.page_bytes())?;
        let mut weigh = |tested: &[&Weighed]| -> Vec<(usize, usize)> {
            let mut pair = |page: &&Weighed| {
                (page.bytes[no], scales.bytes_beside(&page.content, no, Some(&trial.primer)))
            };
            tested.iter().map(&mut pair).collect()
        };
        let (leaves, large) = (weigh(&leaves), weigh(&large));
        let sum = |of: fn(&(usize, usize)) -> usize| leaves.iter().chain(&large).map(of).sum();
        let outcome = Payoff {
            before: sum(|pair| pair.0),
            after: sum(|pair| pair.1),
            pages: leaves.len() + large.len(),
            own: scales.bytes_beside(&trial.content, no, None),
        };
        if !outcome.pays(pages as u64, scales.density(no)) {
            return Ok(Beside::NONE);
        }
        Ok(Beside { leaves: Share::of(&leaves), large: Share::of(&large), own_bytes: outcome.own as f64 })
    }
}

impl Sort {
    pub(super) fn keep(&mut self, content: impl FnOnce() -> Vec<u8>, bytes: &[usize]) {
        if self.run_bytes < RUN_BYTES_MAX {
            let content = content();
            self.run_bytes += content.len();
            self.pages.push(Weighed { content, bytes: bytes.to_vec() });
        }
    }

    fn split_sample(&self) -> (Vec<&Weighed>, Vec<&Weighed>) {
        split_sample(self.pages.iter())
    }
}

impl Beside {
    pub(super) const NONE: Beside = Beside { leaves: Share::ALL, large: Share::ALL, own_bytes: 0.0 };
}

impl Share {
    const ALL: Share = Share { part: 1.0, variance: 0.0 };

    /// From the image bytes without and with a dictionary: a ratio of sums (Cochran, 2.11).
    fn of(pairs: &[(usize, usize)]) -> Self {
        let (before, after) = pairs.iter().fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        if before == 0 {
            return Self::ALL;
        }
        let (part, count) = (after as f64 / before as f64, pairs.len() as f64);
        let squares: f64 = pairs.iter().map(|&(one, other)| (other as f64 - part * one as f64).powi(2)).sum();
        let mean = before as f64 / count;
        Self { part, variance: squares / (count * (count - 1.0).max(1.0) * mean * mean) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_ratio_of_sums_whose_error_follows_from_how_pages_differ() {
        let same = Share::of(&[(100, 80), (200, 160), (50, 40)]);
        assert!((same.part - 0.8).abs() < 1e-9 && same.variance < 1e-12);
        // Off by 10 each, of 100 on average: 200 / (2 * 1 * 100^2).
        let differ = Share::of(&[(100, 70), (100, 90)]);
        assert!((differ.part - 0.8).abs() < 1e-9 && (differ.variance - 0.01).abs() < 1e-9);
        assert_eq!(Share::of(&[]).part, 1.0);
    }

    #[test]
    fn a_run_leaves_some_pages_of_each_sort() {
        let mut sample = Sample::default();
        for _ in 0..2 {
            sample.start_run();
            (0..9).for_each(|_| sample.leaves().keep(|| vec![0; 16 << 10], &[1]));
            (0..9).for_each(|_| sample.large().keep(|| vec![0; 64 << 10], &[1]));
        }
        assert_eq!((sample.leaves.pages.len(), sample.large.pages.len()), (4, 2));
    }
}
