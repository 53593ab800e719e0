//! Records on their way from one thread to another.

/// Some records, one behind the other.
#[derive(Default, Debug)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    records: Vec<Lengths>,
}

/// Of one record, and whom it is for.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    to: u32,
    key: u32,
    all: u32,
}

/// Where a reader of a batch is.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Position {
    no: usize,
    at: usize,
}

impl Batch {
    /// Adds a record, of which key and value come in parts.
    pub(super) fn push(&mut self, to: usize, key: &[&[u8]], value: &[&[u8]]) {
        let start = self.bytes.len();
        key.iter().for_each(|part| self.bytes.extend_from_slice(part));
        let key = self.bytes.len() - start;
        value.iter().for_each(|part| self.bytes.extend_from_slice(part));
        let all = self.bytes.len() - start;
        self.records.push(Lengths { to: to as u32, key: key as u32, all: all as u32 });
    }

    /// Forgets all records, and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes of what it has.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + self.records.len() * size_of::<Lengths>()
    }

    /// Whom the record there is for, its key and its value; `None` behind the last one.
    pub(super) fn record(&self, position: Position) -> Option<(usize, &[u8], &[u8])> {
        let lengths = self.records.get(position.no)?;
        let record = self.bytes.get(position.at..position.at + lengths.all as usize)?;
        let (key, value) = record.split_at(lengths.key as usize);
        Some((lengths.to as usize, key, value))
    }

    /// The position behind that one.
    pub(super) fn behind(&self, position: Position) -> Position {
        let bytes = self.records.get(position.no).map_or(0, |lengths| lengths.all as usize);
        Position { no: position.no + 1, at: position.at + bytes }
    }
}
