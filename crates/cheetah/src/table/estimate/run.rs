//! Runs of neighbouring rows in one index, and the estimate for the whole index.
//!
//! Invariants
//!   I1  Only full leaf pages of a run are measured. The rest of a run is measured if there is no
//!       full page, or if the run has reached the end of the index. Rows that were not measured are
//!       assumed to be like the others.

use super::dictionary_saving::{Beside, Sample, Share};
use super::scales::{Scales, TREE};
use crate::base::{Error, PageId, Result};
use crate::format::image::{ALIGN_BYTES, HEADER_BYTES};
use crate::format::page::{max_payload_bytes, PageBuf, PageView, RecordRef};
use crate::format::row::RowFormatVersion;
use crate::tree::{fill_target, Fences, Packing};

/// Leaf pages per run, if it does not cover the index: many positions tell more than many pages.
const PAGES: u32 = 1;
/// Leaf pages of the first run, which may cover the whole index.
const PAGES_AT_START: u32 = 8;
/// Bytes of rows, including large values, after which a run is long enough even without full pages.
const BYTES_MAX: u64 = 40 << 10;
/// The same for the first run.
const BYTES_MAX_AT_START: u64 = 256 << 10;
/// The bytes of an image without its content: the header, and on average half of the padding.
const IMAGE_OVERHEAD_BYTES: f64 = (HEADER_BYTES + ALIGN_BYTES / 2) as f64;

#[derive(Debug)]
pub(super) struct IndexSample {
    page: PageBuf,
    key_bytes_max: usize,
    row_format: RowFormatVersion,
    run: Option<Run>,
    ended: Vec<Ended>,
    fences: Vec<Vec<u8>>,
    leaf_rows: u64,
    /// Leaf pages, the last one by its fill factor, and pages of the large values of all rows.
    leaf_pages: f64,
    large_pages: u64,
    sample: Sample,
    /// Rows of the whole index, if a run covered it.
    counted: Option<u64>,
}

#[derive(Debug)]
struct Run {
    packing: Packing,
    last_key: Vec<u8>,
    rows: u64,
    input_bytes: u64,
    pages: u32,
    /// In the measured leaf pages.
    leaf_rows: u64,
    leaves: Vec<f64>,
    /// Image sizes of large values.
    large: Vec<f64>,
    from_start: bool,
    at_end: bool,
}

#[derive(Debug)]
struct Ended {
    rows: f64,
    leaves: Vec<f64>,
    large: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    pub(super) bytes: f64,
    /// `None` if unknown.
    variance: Option<f64>,
}

impl IndexSample {
    /// `page_bytes`: of leaf pages.
    pub(super) fn new(page_bytes: usize, key_bytes_max: usize, row_format: RowFormatVersion) -> Self {
        Self {
            page: PageBuf::new(page_bytes),
            key_bytes_max,
            row_format,
            run: None,
            ended: Vec::new(),
            fences: Vec::new(),
            leaf_rows: 0,
            leaf_pages: 0.0,
            large_pages: 0,
            sample: Sample::default(),
            counted: None,
        }
    }

    /// The sample that keeps measured pages of large values.
    pub(super) fn sample(&mut self) -> &mut Sample {
        &mut self.sample
    }

    pub(super) fn start(&mut self, scales: &mut Scales, from_start: bool) {
        self.finish(scales);
        self.sample.start_run();
        self.run = Some(Run {
            packing: Packing::default(),
            last_key: Vec::new(),
            rows: 0,
            input_bytes: 0,
            pages: 0,
            leaf_rows: 0,
            leaves: vec![0.0; scales.count()],
            large: vec![0.0; scales.count()],
            from_start,
            at_end: false,
        });
    }

    pub(super) fn reach_end(&mut self) {
        if let Some(run) = &mut self.run {
            run.at_end = true;
        }
    }

    /// Adds a record; one whose key is not above the last one ends the run. Returns whether the run
    /// wants more, or `Limit` for a record that no page can hold.
    pub(super) fn add(&mut self, scales: &mut Scales, key: &[u8], payload: &[u8]) -> Result<bool> {
        check_limit("key length (bytes)", key.len(), self.key_bytes_max)?;
        check_limit(
            "record length (bytes)",
            payload.len(),
            max_payload_bytes(self.page.len(), self.key_bytes_max),
        )?;
        let Some(run) = self.run.as_mut().filter(|run| run.rows == 0 || run.last_key.as_slice() < key) else {
            return Ok(false);
        };
        if run.rows == 0 && !run.from_start {
            run.packing = Packing::above(key.to_vec());
        }
        run.rows += 1;
        run.input_bytes += (key.len() + payload.len()) as u64;
        run.last_key.clear();
        run.last_key.extend_from_slice(key);
        run.packing.push(key, &RecordRef::frozen(payload));
        while self.run.as_ref().is_some_and(|run| run.packing.overflows(fill_target(self.page.len()))) {
            self.cut_page(scales);
        }
        Ok(self.wants_more())
    }

    /// Adds the large values of the last row. Returns whether the run wants more.
    pub(super) fn add_large(&mut self, large: &[f64], pages: u64, row_bytes: u64) -> bool {
        self.large_pages += pages;
        if let Some(run) = &mut self.run {
            run.large.iter_mut().zip(large).for_each(|(sum, bytes)| *sum += bytes);
            run.input_bytes += row_bytes;
        }
        self.wants_more()
    }

    fn wants_more(&self) -> bool {
        self.run.as_ref().is_some_and(|run| match run.from_start {
            true => run.pages < PAGES_AT_START && run.input_bytes < BYTES_MAX_AT_START,
            false => run.pages < PAGES && run.input_bytes < BYTES_MAX,
        })
    }

    pub(super) fn finish(&mut self, scales: &mut Scales) {
        if self.run.as_ref().is_some_and(|run| run.leaf_rows == 0 || run.at_end) {
            self.weigh_rest(scales);
        }
        let Some(run) = self.run.take() else { return };
        if run.from_start && run.at_end {
            self.counted = Some(run.rows);
        }
        if run.leaf_rows > 0 {
            let share = run.rows as f64 / run.leaf_rows as f64;
            let leaves = run.leaves.iter().map(|bytes| bytes * share).collect();
            self.ended.push(Ended { rows: run.rows as f64, leaves, large: run.large });
        }
    }

    fn cut_page(&mut self, scales: &mut Scales) {
        let Some(run) = &mut self.run else { return };
        let (count, high) = run.packing.cut(true, fill_target(self.page.len()));
        let fences = Fences { low: run.packing.low(), high: Some(&high), right: PageId(2) };
        run.packing.write(&mut self.page, TREE, 0, count, &fences);
        self.fences.push(run.packing.low().to_vec());
        run.packing = run.packing.rest(count, high);
        run.pages += 1;
        run.leaf_rows += count as u64;
        self.leaf_rows += count as u64;
        self.leaf_pages += 1.0;
        scales.weigh(&self.page, &self.row_format, 1.0, &mut run.leaves, self.sample.leaves());
    }

    /// Measures the last page, which is not full. In the middle of an index it would be filled, so
    /// the overhead of its image counts in proportion to its fill factor. It has no upper fence and
    /// so a shorter common prefix, and may need two pages.
    fn weigh_rest(&mut self, scales: &mut Scales) {
        while self.run.as_ref().is_some_and(|run| !run.packing.fits_as_last(self.page.len())) {
            self.cut_page(scales);
        }
        let Some(run) = self.run.as_mut().filter(|run| run.packing.count() > 0) else { return };
        let fences = Fences { low: run.packing.low(), high: None, right: PageId::NONE };
        run.packing.write(&mut self.page, TREE, 0, run.packing.count(), &fences);
        self.fences.push(run.packing.low().to_vec());
        run.leaf_rows += run.packing.count() as u64;
        self.leaf_rows += run.packing.count() as u64;
        scales.weigh(&self.page, &self.row_format, 1.0, &mut run.leaves, self.sample.leaves());
        let used = PageView::new(&self.page).used_bytes() as f64 / fill_target(self.page.len()) as f64;
        self.leaf_pages += used.min(1.0);
        if !run.at_end {
            let too_much = IMAGE_OVERHEAD_BYTES * (1.0 - used).max(0.0);
            run.leaves.iter_mut().for_each(|bytes| *bytes -= too_much);
        }
    }

    /// The number of rows of the whole index, if the sample covers it.
    pub(super) fn counted(&self) -> Option<u64> {
        self.counted
    }

    pub(super) fn sampled_rows(&self) -> u64 {
        self.ended.iter().map(|run| run.rows as u64).sum()
    }

    /// The size of an index of `rows` rows with compression `no`.
    pub(super) fn total(&mut self, scales: &mut Scales, no: usize, rows: u64) -> Result<Total> {
        let beside = match self.counted {
            Some(_) => Beside::NONE,
            None => self.sample.try_dictionary(scales, no, self.pages(rows))?,
        };
        let inner = self.inner_bytes(scales, no) * rows as f64 / self.leaf_rows.max(1) as f64;
        let sure = Total { bytes: inner + beside.own_bytes, variance: Some(0.0) };
        if self.counted.is_some() {
            let bytes = self.ended.first().map_or(0.0, |run| run.leaves[no] + run.large[no]);
            return Ok(Total { bytes: bytes + sure.bytes, ..sure });
        }
        let one =
            |run: &Ended| (run.rows, run.leaves[no] * beside.leaves.part + run.large[no] * beside.large.part);
        let runs: Vec<_> = self.ended.iter().map(one).collect();
        let of_rows = mean(&runs).times(rows as f64);
        // The dictionary ratios are from a sample, too.
        let error = |bytes: fn(&Ended, usize) -> f64, share: Share| {
            let runs: Vec<_> = self.ended.iter().map(|run| (run.rows, bytes(run, no))).collect();
            Total { bytes: 0.0, variance: Some((mean(&runs).bytes * rows as f64).powi(2) * share.variance) }
        };
        let of_leaves = error(|run, no| run.leaves[no], beside.leaves);
        let of_large = error(|run, no| run.large[no], beside.large);
        Ok(Total::sum([of_rows, sure, of_leaves, of_large].into_iter()))
    }

    /// The pages of rows and their large values in an index of `rows` rows.
    fn pages(&self, rows: u64) -> f64 {
        let leaves = self.leaf_pages / self.leaf_rows.max(1) as f64;
        let large = self.large_pages as f64 / self.sampled_rows().max(1) as f64;
        (leaves + large) * rows as f64
    }

    /// The pages above the sample's leaf pages; slightly too large, as these are far apart.
    fn inner_bytes(&mut self, scales: &mut Scales, no: usize) -> f64 {
        self.fences.sort_unstable();
        self.fences.dedup();
        if self.fences.len() < 2 {
            return 0.0;
        }
        let target = fill_target(self.page.len());
        let mut packing = Packing::above(self.fences.first().cloned().unwrap_or_default());
        let mut bytes = 0.0;
        for (child, low) in (1u64..).zip(&self.fences) {
            packing.push(low, &RecordRef::frozen(child.to_le_bytes().get(..5).unwrap_or_default()));
            while packing.overflows(target) || !packing.fits_as_last(self.page.len()) {
                let (count, high) = packing.cut(false, target);
                let fences = Fences { low: packing.low(), high: Some(&high), right: PageId(2) };
                packing.write(&mut self.page, TREE, 1, count, &fences);
                packing = packing.rest(count, high);
                bytes += scales.image_bytes(&self.page, &self.row_format, no) as f64;
            }
        }
        let fences = Fences { low: packing.low(), high: None, right: PageId::NONE };
        packing.write(&mut self.page, TREE, 1, packing.count(), &fences);
        bytes + scales.image_bytes(&self.page, &self.row_format, no) as f64
    }
}

fn check_limit(what: &'static str, actual: usize, limit: usize) -> Result<()> {
    if actual > limit {
        return Err(Error::Limit { what, actual: actual as u64, limit: limit as u64 });
    }
    Ok(())
}

/// The bytes per row, from the rows and bytes of runs: the mean of their means. A run has more rows
/// if they are short, so the quotient of the sums would favour short rows.
fn mean(runs: &[(f64, f64)]) -> Total {
    let means: Vec<_> = runs.iter().map(|(rows, bytes)| bytes / rows).collect();
    let count = means.len() as f64;
    if means.is_empty() {
        return Total { bytes: 0.0, variance: None };
    }
    let bytes = means.iter().sum::<f64>() / count;
    let squares: f64 = means.iter().map(|mean| (mean - bytes).powi(2)).sum();
    Total { bytes, variance: (means.len() > 1).then(|| squares / (count * (count - 1.0))) }
}

impl Total {
    fn times(self, factor: f64) -> Self {
        Self {
            bytes: self.bytes * factor,
            variance: self.variance.map(|variance| variance * factor * factor),
        }
    }

    /// The sum of several indexes, sampled independently.
    pub(super) fn sum(totals: impl Iterator<Item = Total>) -> Self {
        let none = Total { bytes: 0.0, variance: Some(0.0) };
        totals.fold(none, |sum, total| Total {
            bytes: sum.bytes + total.bytes,
            variance: sum.variance.zip(total.variance).map(|(one, other)| one + other),
        })
    }

    /// As a fraction of the bytes.
    pub(super) fn relative_error(&self) -> Option<f64> {
        self.variance.map(|variance| if self.bytes > 0.0 { variance.sqrt() / self.bytes } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::{mean, Total};

    #[test]
    fn runs_that_are_alike_tell_the_bytes_of_a_row_without_error() {
        let all = mean(&[(10.0, 100.0), (20.0, 200.0), (5.0, 50.0)]).times(1000.0);
        assert!((all.bytes - 10_000.0).abs() < 1e-6);
        assert!(all.relative_error().unwrap_or(1.0) < 1e-9);
        assert_eq!(mean(&[(10.0, 100.0)]).relative_error(), None, "one run does not tell how runs differ");
        assert_eq!(mean(&[]).times(7.0).bytes, 0.0);
    }

    #[test]
    fn short_rows_count_no_more_for_being_many_in_a_run() {
        // Means of 9 and 11: 10 per row, squares of 1 each, variance 2 / (2 * 1) = 1.
        let all = mean(&[(100.0, 900.0), (10.0, 110.0)]);
        assert!((all.bytes - 10.0).abs() < 1e-9);
        assert!((all.relative_error().unwrap_or(0.0) - 0.1).abs() < 1e-9);
        let two = Total::sum([all, all].into_iter());
        assert!((two.relative_error().unwrap_or(0.0) - 0.1 / 2f64.sqrt()).abs() < 1e-9);
    }
}
