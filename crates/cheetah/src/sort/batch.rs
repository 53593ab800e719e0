//! Batches of records that one thread passes to another.

/// A batch of records, which are stored one after another.
#[derive(Default, Debug)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    records: Vec<Lengths>,
}

#[derive(Clone, Copy, Debug)]
struct Lengths {
    to: u32,
    key: u32,
    all: u32,
}

#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Position {
    no: usize,
    at: usize,
}

impl Batch {
    /// Adds a record, whose key and value are passed in parts.
    pub(super) fn push(&mut self, to: usize, key: &[&[u8]], value: &[&[u8]]) {
        let start = self.bytes.len();
        key.iter().for_each(|part| self.bytes.extend_from_slice(part));
        let key = self.bytes.len() - start;
        value.iter().for_each(|part| self.bytes.extend_from_slice(part));
        let all = self.bytes.len() - start;
        self.records.push(Lengths { to: to as u32, key: key as u32, all: all as u32 });
    }

    /// Removes all records, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + self.records.len() * size_of::<Lengths>()
    }

    /// Returns the destination, key and value of the record at `position`, or `None` after the last
    /// record.
    pub(super) fn record(&self, position: Position) -> Option<(usize, &[u8], &[u8])> {
        let lengths = self.records.get(position.no)?;
        let record = self.bytes.get(position.at..position.at + lengths.all as usize)?;
        let (key, value) = record.split_at(lengths.key as usize);
        Some((lengths.to as usize, key, value))
    }

    pub(super) fn behind(&self, position: Position) -> Position {
        let bytes = self.records.get(position.no).map_or(0, |lengths| lengths.all as usize);
        Position { no: position.no + 1, at: position.at + bytes }
    }
}
