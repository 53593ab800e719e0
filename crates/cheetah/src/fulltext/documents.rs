//! IDs for rows: a row gets an ID when the query first sees it, and keeps it during the query.

use super::budget::Budget;
use crate::base::Result;
use std::hash::{BuildHasher, RandomState};

/// The number `u32::MAX` marks an empty slot.
#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    number: u32,
}

const EMPTY: Slot = Slot { hash: 0, number: u32::MAX };
const SLOTS_MIN: usize = 64;

/// The bytes of a row besides its key: the end of the key, and at least four thirds of a slot.
const ROW_BYTES: usize = size_of::<usize>() + 2 * size_of::<Slot>();

/// The rows that a query has seen. Users choose keys, so the hash function uses a secret.
#[derive(Debug)]
pub(super) struct Documents {
    keys: Vec<u8>,
    /// Where each key ends in `keys`.
    ends: Vec<usize>,
    /// A power of two of slots, at most three quarters in use. A key is in the slot of its hash, or
    /// in the next free one.
    slots: Vec<Slot>,
    /// The row after the last one added or found: often the next, because all words have their rows
    /// in the same order.
    next: u32,
    secret: RandomState,
}

impl Documents {
    pub(super) fn new() -> Self {
        let slots = vec![EMPTY; SLOTS_MIN];
        Self { keys: Vec::new(), ends: Vec::new(), slots, next: 0, secret: RandomState::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn key(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.keys[start..self.ends[number]]
    }

    pub(super) fn find(&self, key: &[u8]) -> Option<u32> {
        self.look(key, self.hash(key)).ok()
    }

    /// Returns the ID of a row; assigns a new one if the row was not seen before.
    ///
    /// # Errors
    /// Those of the budget.
    pub(super) fn add(&mut self, key: &[u8], budget: &mut Budget) -> Result<u32> {
        if (self.next as usize) < self.ends.len() && self.key(self.next) == key {
            self.next += 1;
            return Ok(self.next - 1);
        }
        let hash = self.hash(key);
        let free = match self.look(key, hash) {
            Ok(number) => {
                self.next = number + 1;
                return Ok(number);
            }
            Err(free) => free,
        };
        budget.take(key.len() + ROW_BYTES)?;
        let number = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        assert!(number < super::results::DOCUMENTS_MAX, "the budget ends first");
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
        self.slots[free] = Slot { hash, number };
        self.next = number + 1;
        if self.ends.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        Ok(number)
    }

    fn hash(&self, key: &[u8]) -> u32 {
        self.secret.hash_one(key) as u32
    }

    fn look(&self, key: &[u8], hash: u32) -> std::result::Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let slot = self.slots[place];
            if slot.number == EMPTY.number {
                return Err(place);
            }
            if slot.hash == hash && self.key(slot.number) == key {
                return Ok(slot.number);
            }
            place = (place + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![EMPTY; old.len() * 2];
        let mask = self.slots.len() - 1;
        for slot in old.into_iter().filter(|slot| slot.number != EMPTY.number) {
            let mut place = slot.hash as usize & mask;
            while self.slots[place].number != EMPTY.number {
                place = (place + 1) & mask;
            }
            self.slots[place] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_numbers() {
        let (mut documents, mut budget) = (Documents::new(), Budget::new(1 << 20));
        let keys = (0..1000u32).map(|number| number.to_be_bytes()).collect::<Vec<_>>();
        for round in 0..2 {
            for (number, key) in keys.iter().enumerate() {
                assert_eq!(documents.find(key), (round > 0).then_some(number as u32));
                assert_eq!(documents.add(key, &mut budget).expect("there is room"), number as u32);
            }
        }
        for number in [7, 8, 3, 999, 0, 1, 1, 500] {
            let key = &keys[number as usize];
            assert_eq!(documents.add(key, &mut budget).expect("there is room"), number);
        }
        assert_eq!(documents.len(), 1000);
        assert_eq!(documents.key(999), 999u32.to_be_bytes());
        assert_eq!(documents.find(b""), None);
        assert!(documents.add(&[0; 1 << 20], &mut budget).is_err());
    }
}
