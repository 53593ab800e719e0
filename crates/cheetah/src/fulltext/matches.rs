//! The result of a query.

use super::documents::Documents;

/// The rows that match a query, with their ranks. No method does I/O.
///
/// Rows are sorted only as far as they are read: reading the first row costs as much as a scan of
/// all rows, and each further row costs little.
#[derive(Debug)]
pub struct Matches {
    documents: Documents,
    /// By row ID; NaN for rows that do not match.
    ranks: Vec<f32>,
    /// A heap with the best row first, followed by the rows already read, with the best last.
    rows: Vec<u32>,
    read_count: usize,
}

impl Matches {
    pub(super) fn none() -> Self {
        Self { documents: Documents::new(), ranks: Vec::new(), rows: Vec::new(), read_count: 0 }
    }

    pub(super) fn new(documents: Documents, ranks: Vec<f32>, rows: Vec<u32>) -> Self {
        let mut matches = Self { documents, ranks, rows, read_count: 0 };
        for parent in (0..matches.rows.len() / 2).rev() {
            matches.sift_down(parent, matches.rows.len());
        }
        matches
    }

    /// Returns the number of rows that match.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether no row matches.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the rank of a row, or `None` if the row does not match. A rank may be 0 or negative.
    pub fn rank(&self, key: &[u8]) -> Option<f32> {
        let document = self.documents.find(key)?;
        self.ranks.get(document as usize).copied().filter(|rank| !rank.is_nan())
    }

    /// Returns the key and rank of the row at this position, from 0, in descending order of ranks,
    /// and in ascending order of keys for equal ranks. `None` after the last row.
    pub fn get(&mut self, place: usize) -> Option<(&[u8], f32)> {
        if place >= self.rows.len() {
            return None;
        }
        while self.read_count <= place {
            let last = self.rows.len() - 1 - self.read_count;
            self.rows.swap(0, last);
            self.read_count += 1;
            self.sift_down(0, last);
        }
        let document = *self.rows.get(self.rows.len() - 1 - place)?;
        Some((self.documents.key(document), self.rank_of(document)))
    }

    fn rank_of(&self, document: u32) -> f32 {
        self.ranks.get(document as usize).copied().unwrap_or(f32::NAN)
    }

    fn is_before(&self, a: u32, b: u32) -> bool {
        let by_rank = self.rank_of(b).total_cmp(&self.rank_of(a));
        by_rank.then_with(|| self.documents.key(a).cmp(self.documents.key(b))).is_lt()
    }

    fn sift_down(&mut self, mut parent: usize, len: usize) {
        loop {
            let children = [2 * parent + 1, 2 * parent + 2].into_iter().filter(|child| *child < len);
            let first =
                children.reduce(|a, b| if self.is_before(self.rows[b], self.rows[a]) { b } else { a });
            let Some(first) = first.filter(|first| self.is_before(self.rows[*first], self.rows[parent]))
            else {
                return;
            };
            self.rows.swap(parent, first);
            parent = first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::budget::Budget;
    use super::*;
    use cheetah_io::rng::Rng;

    #[test]
    fn rows_come_by_rank_then_key_in_any_order_of_asking() {
        let mut rng = Rng::new(3);
        for count in [0, 1, 2, 3, 10, 100] {
            let (mut documents, mut budget) = (Documents::new(), Budget::new(1 << 20));
            let mut keys = (0..count as u8).map(|key| [key]).collect::<Vec<_>>();
            rng.shuffle(&mut keys);
            keys.iter().for_each(|key| {
                documents.add(key, &mut budget).expect("there is room");
            });
            let ranks = keys.iter().map(|_| rng.below(4) as f32 - 1.0).collect::<Vec<_>>();
            let mut expected = keys.iter().copied().zip(ranks.iter().copied()).collect::<Vec<_>>();
            expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let mut matches = Matches::new(documents, ranks, (0..count).collect());
            for _ in 0..3 * count {
                let place = rng.below(u64::from(count)) as usize;
                let (key, rank) = matches.get(place).expect("it is there");
                assert_eq!((key, rank), (&expected[place].0[..], expected[place].1));
                let (key, rank) = expected[place];
                assert_eq!(matches.rank(&key), Some(rank));
            }
            assert_eq!(matches.len(), count as usize);
            assert!(matches.get(count as usize).is_none());
            assert_eq!(matches.rank(b"absent"), None);
        }
    }
}
