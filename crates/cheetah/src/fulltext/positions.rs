//! The positions of a word in a row: the value of a posting.
//!
//! A position consists of the ordinal of the word among all words of the row's text, counted
//! through all columns of the index, and of the column. Stop words and words that are too short or
//! too long count, too. So a phrase is a run of positions in one column, and proximity is a
//! difference of ordinals, whatever the columns.
//!
//! Encoding: a sequence of variable-length integers, seven bits per byte, lowest first, in as few
//! bytes as possible. A value above 0 is the distance from the previous position, which is -1 at
//! first. A 0 says that the following positions are in the next column.

use crate::base::{Error, Result};

/// The bits of an integer in each byte; the highest bit says that more bytes follow.
const BITS: u32 = 7;
const MORE: u8 = 1 << BITS;

/// The place of a word in the text of a row. Positions sort in the order of the text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Position {
    /// The number of words before it in the row, in all columns. Less than `u32::MAX`.
    pub ordinal: u32,
    /// The column of the index, from 0.
    pub column: u8,
}

/// Encodes the positions of one word, which are added one by one.
#[derive(Clone, Default, Debug)]
pub struct PositionList {
    bytes: Vec<u8>,
    /// The ordinal after the last position.
    next: u32,
    column: u8,
}

impl PositionList {
    /// Adds a position.
    ///
    /// # Panics
    /// If it is not after the last position, or its ordinal is `u32::MAX`.
    pub fn push(&mut self, position: Position) {
        assert!(position.ordinal >= self.next && position.column >= self.column, "positions ascend");
        assert!(position.ordinal < u32::MAX, "a row has fewer words");
        for _ in self.column..position.column {
            self.bytes.push(0);
        }
        put_number(position.ordinal - self.next + 1, &mut self.bytes);
        self.next = position.ordinal + 1;
        self.column = position.column;
    }

    /// Returns the encoded positions: the value of a posting. Empty if no position was added.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all positions; keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.next, self.column) = (0, 0);
    }
}

fn put_number(mut number: u32, out: &mut Vec<u8>) {
    while number >= u32::from(MORE) {
        out.push(number as u8 | MORE);
        number >>= BITS;
    }
    out.push(number as u8);
}

/// The value of a posting.
#[derive(Clone, Copy, Debug)]
pub struct Positions<'a>(&'a [u8]);

impl<'a> Positions<'a> {
    /// Takes the bytes as they are; damage is found when they are read.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the encoded bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the positions in ascending order. Damaged bytes yield an error as the last element.
    pub fn iter(self) -> PositionsIter<'a> {
        PositionsIter { rest: self.0, next: 0, column: 0 }
    }

    /// Returns the number of times that the word occurs in the row.
    ///
    /// # Errors
    /// [`Error::Corruption`] if the bytes are damaged, or hold no position.
    pub fn count(self) -> Result<u32> {
        let mut count = 0;
        for position in self.iter() {
            position?;
            count += 1;
        }
        if count == 0 {
            return Err(damaged("the list is empty"));
        }
        Ok(count)
    }
}

/// The positions of a posting, in ascending order.
#[derive(Clone, Debug)]
pub struct PositionsIter<'a> {
    rest: &'a [u8],
    next: u32,
    column: u8,
}

impl PositionsIter<'_> {
    fn read(&mut self) -> Result<Position> {
        let mut distance = self.number()?;
        while distance == 0 {
            self.column = self.column.checked_add(1).ok_or_else(|| damaged("there are too many columns"))?;
            distance = self.number()?;
        }
        let next = self.next.checked_add(distance).ok_or_else(|| damaged("a position is too large"))?;
        self.next = next;
        Ok(Position { ordinal: next - 1, column: self.column })
    }

    fn number(&mut self) -> Result<u32> {
        let mut number = 0u64;
        for (index, byte) in self.rest.iter().enumerate().take(5) {
            number |= u64::from(byte & !MORE) << (BITS * index as u32);
            if byte & MORE == 0 {
                if *byte == 0 && index > 0 {
                    return Err(damaged("a number has too many bytes"));
                }
                self.rest = self.rest.get(index + 1..).unwrap_or_default();
                return u32::try_from(number).map_err(|_| damaged("a number is too large"));
            }
        }
        Err(damaged("a number does not end"))
    }
}

impl Iterator for PositionsIter<'_> {
    type Item = Result<Position>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.rest = &[];
        }
        Some(read)
    }
}

fn damaged(detail: &str) -> Error {
    Error::Corruption {
        place: "positions of a word in a full-text index".into(),
        detail: format!("{detail}; drop the index and add it again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cheetah_io::rng::Rng;

    fn at(ordinal: u32, column: u8) -> Position {
        Position { ordinal, column }
    }

    fn bytes_of(positions: &[Position]) -> Vec<u8> {
        let mut list = PositionList::default();
        positions.iter().for_each(|position| list.push(*position));
        list.bytes
    }

    fn check(positions: &[Position], expected: &[u8]) {
        let bytes = bytes_of(positions);
        assert_eq!(bytes, expected);
        let read = Positions::new(&bytes).iter().collect::<Result<Vec<_>>>();
        assert_eq!(read.expect("these are positions"), positions);
    }

    #[test]
    fn positions_have_these_bytes() {
        check(&[], &[]);
        check(&[at(0, 0)], &[1]);
        check(&[at(0, 0), at(1, 0), at(128, 0)], &[1, 1, 127]);
        check(&[at(127, 0)], &[0x80, 1]);
        check(&[at(3, 2), at(4, 3)], &[0, 0, 4, 0, 1]);
        check(&[at(u32::MAX - 1, 0)], &[0xff, 0xff, 0xff, 0xff, 0x0f]);
    }

    #[test]
    fn damaged_bytes_give_errors() {
        let cases: [&[u8]; 8] = [
            &[],
            &[0],
            &[1, 0],
            &[0x80],
            &[0x81, 0],
            &[0xff; 5],
            &[0xff, 0xff, 0xff, 0xff, 0x1f],
            &[0xff, 0xff, 0xff, 0xff, 0x0f, 1],
        ];
        for bytes in cases {
            let error = Positions::new(bytes).count().expect_err("the bytes are damaged");
            assert!(matches!(error, Error::Corruption { .. }), "{bytes:?}: {error}");
        }
        let columns = [vec![0; 256], vec![1]].concat();
        assert!(Positions::new(&columns).count().is_err());
        assert_eq!(Positions::new(&columns[1..]).count().expect("255 columns are read"), 1);
    }

    #[test]
    fn random_positions_come_back_and_random_bytes_do_no_harm() {
        let mut rng = Rng::new(7);
        for _ in 0..2000 {
            let (mut positions, mut ordinal, mut column) = (Vec::new(), 0u32, 0u8);
            for _ in 0..rng.below(20) {
                let bits = rng.below(20);
                ordinal += rng.below(1 << bits) as u32;
                column += rng.below(8).saturating_sub(6) as u8;
                positions.push(at(ordinal, column));
                ordinal += 1;
            }
            let bytes = bytes_of(&positions);
            let read = Positions::new(&bytes).iter().collect::<Result<Vec<_>>>();
            assert_eq!(read.expect("these are positions"), positions);
            let noise = (0..rng.below(12)).map(|_| rng.below(256) as u8 & rng.below(256) as u8);
            let noise = noise.collect::<Vec<_>>();
            let read = Positions::new(&noise).iter().collect::<Result<Vec<_>>>();
            if let Ok(positions) = read {
                assert_eq!(bytes_of(&positions), noise, "what is read has these bytes and no others");
            }
        }
    }
}
