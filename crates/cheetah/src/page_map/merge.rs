//! Merges the base and the logs of a map into a new base, with bounded memory.
//!
//! The pages are processed in ranges. A range starts where the previous range ended, and has as
//! many changes as may be held in memory. The logs are read once for each range, and the old base
//! is read once, in step with the ranges. Usually one range is enough. Rule durability::M5: merge
//! from files, never from memory.

use super::map_file::{BlockWriter, Item, MapFile, PartReader};
use crate::base::{PageId, Result};
use crate::durable::Durable;
use crate::format::control::{ControlBlock, MapPart};
use crate::format::map_block::{Begin, Change, FileHeader, FileKind, CHUNK_ENTRIES_MAX, FILE_HEADER_BYTES};
use crate::format::MapEntry;
use std::collections::BTreeMap;

/// Writes the map that `control` names to a base file with ID `number`. The file is not durable
/// yet. After an error no file remains.
pub(super) fn write_base(
    durable: &Durable,
    control: &ControlBlock,
    number: u64,
    held_max: usize,
) -> Result<(MapFile, MapPart)> {
    let (uuid, incarnation) = (control.identity.uuid, control.identity.incarnation);
    let header = FileHeader { kind: FileKind::Base, uuid, number, incarnation };
    let (file, start_crc) = MapFile::create(durable, &header)?;
    let begin = Begin { epoch: control.epoch, incarnation };
    let start = FILE_HEADER_BYTES as u64;
    let writer = BlockWriter::begin(&file, start, start_crc, &begin);
    match Merge::new(durable, control, writer, held_max).and_then(Merge::run) {
        Ok((end, end_crc)) => Ok((file, MapPart { file: number, start, end, start_crc, end_crc })),
        Err(error) => {
            file.remove(durable);
            Err(error)
        }
    }
}

/// The newest change of each page.
type Changes = BTreeMap<PageId, Option<MapEntry>>;

struct Merge<'a> {
    durable: &'a Durable,
    control: &'a ControlBlock,
    held_max: usize,
    base: Option<BaseCursor>,
    /// State of the newest block read so far.
    state: Vec<u8>,
    writer: BlockWriter<'a>,
    ready: Vec<Change>,
}

impl<'a> Merge<'a> {
    fn new(
        durable: &'a Durable,
        control: &'a ControlBlock,
        writer: BlockWriter<'a>,
        held_max: usize,
    ) -> Result<Self> {
        let open = |part| PartReader::open(durable, part, FileKind::Base, &control.identity.uuid);
        let base = control.base.as_ref().map(open).transpose()?.map(BaseCursor::new);
        Ok(Self { durable, control, held_max, base, state: Vec::new(), writer, ready: Vec::new() })
    }

    fn run(mut self) -> Result<(u64, u32)> {
        let mut from = Some(PageId(1));
        while let Some(start) = from {
            let (changes, next) = self.changes_from(start)?;
            self.merge_range(changes, next)?;
            from = next;
        }
        self.writer.entries(&self.ready)?;
        if self.control.logs.is_empty() {
            if let Some(base) = &mut self.base {
                base.read_state(&mut self.state)?;
            }
        }
        self.writer.state(&self.state)?;
        self.writer.finish()
    }

    /// Returns the newest change of every page from `start` on, for at most `held_max` pages, and
    /// the page at which the next range starts, if there is one. Also reads the newest state.
    fn changes_from(&mut self, start: PageId) -> Result<(Changes, Option<PageId>)> {
        let mut changes = BTreeMap::new();
        let mut next: Option<PageId> = None;
        for part in &self.control.logs {
            let mut reader =
                PartReader::open(self.durable, part, FileKind::Log, &self.control.identity.uuid)?;
            while let Some(item) = reader.next()? {
                match item {
                    Item::Begin(_) => self.state.clear(),
                    Item::State(bytes) => self.state.extend_from_slice(bytes),
                    Item::End => {}
                    Item::Entries(entries) => {
                        let wanted = |pid: PageId| pid >= start && next.is_none_or(|next| pid < next);
                        let wanted: Vec<_> =
                            entries.iter().filter(|(pid, _)| wanted(*pid)).copied().collect();
                        changes.extend(wanted);
                        while changes.len() > self.held_max {
                            next = changes.pop_last().map(|(pid, _)| pid);
                        }
                    }
                }
            }
        }
        Ok((changes, next))
    }

    /// Writes the entries of all pages before `next`: the entries of the base, overridden by
    /// `changes`.
    fn merge_range(&mut self, changes: Changes, next: Option<PageId>) -> Result<()> {
        for (pid, entry) in changes {
            self.copy_base_before(Some(pid))?;
            if let Some(base) = &mut self.base {
                base.skip(pid)?;
            }
            if entry.is_some() {
                self.put((pid, entry))?;
            }
        }
        self.copy_base_before(next)
    }

    fn copy_base_before(&mut self, limit: Option<PageId>) -> Result<()> {
        while let Some(base) = &mut self.base {
            let Some(entry) = base.next_before(limit)? else { break };
            self.put(entry)?;
        }
        Ok(())
    }

    fn put(&mut self, entry: Change) -> Result<()> {
        self.ready.push(entry);
        if self.ready.len() == CHUNK_ENTRIES_MAX {
            self.writer.entries(&self.ready)?;
            self.ready.clear();
        }
        Ok(())
    }
}

struct BaseCursor {
    reader: PartReader,
    entries: Vec<Change>,
    at: usize,
    state: Vec<u8>,
}

impl BaseCursor {
    fn new(reader: PartReader) -> Self {
        Self { reader, entries: Vec::new(), at: 0, state: Vec::new() }
    }

    fn peek(&mut self) -> Result<Option<Change>> {
        while self.at == self.entries.len() {
            match self.reader.next()? {
                Some(Item::Entries(entries)) => {
                    self.entries.clear();
                    self.entries.extend_from_slice(entries);
                    self.at = 0;
                }
                Some(Item::State(bytes)) => self.state.extend_from_slice(bytes),
                Some(Item::Begin(_) | Item::End) => {}
                None => return Ok(None),
            }
        }
        Ok(Some(self.entries[self.at]))
    }

    fn next_before(&mut self, limit: Option<PageId>) -> Result<Option<Change>> {
        let next = self.peek()?.filter(|(pid, _)| limit.is_none_or(|limit| *pid < limit));
        self.at += usize::from(next.is_some());
        Ok(next)
    }

    fn skip(&mut self, pid: PageId) -> Result<()> {
        if self.peek()?.is_some_and(|(next, _)| next == pid) {
            self.at += 1;
        }
        Ok(())
    }

    /// Copies the complete state. All entries must have been read.
    fn read_state(&mut self, state: &mut Vec<u8>) -> Result<()> {
        let rest = self.peek()?;
        debug_assert!(rest.is_none(), "entries come before the state");
        state.clone_from(&self.state);
        Ok(())
    }
}
