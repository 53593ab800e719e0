//! Reads the complete map that CONTROL names.

use super::map_file::{Item, PartReader};
use crate::base::{Epoch, Error, PageId, Result};
use crate::durable::Durable;
use crate::format::control::ControlBlock;
use crate::format::map_block::FileKind;
use crate::format::MapEntry;

/// The content of a map except its entries, and the condition of its files.
#[derive(Default, Debug)]
pub struct Loaded {
    /// The state: opaque bytes of the layers above.
    pub state: Vec<u8>,
    /// Whether any part was damaged in one of the two files, and read from the other.
    pub is_damaged: bool,
    /// The IDs of map files of which the file or its copy is missing.
    pub without_copy: Vec<u64>,
}

/// Reads the complete map that `control` names, in the order of the files, and calls `visit` for
/// entries and removals of pages. A later change of a page replaces an earlier one. Damage to only
/// one of the two files is a background error. Fails with `Corruption` if both are damaged at the
/// same place. Blocks for I/O.
pub fn load(
    durable: &Durable,
    control: &ControlBlock,
    visit: &mut dyn FnMut(PageId, Option<MapEntry>),
) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    let state = &mut loaded.state;
    let mut newest = Epoch(0);
    for (number, part) in control.parts().enumerate() {
        let kind = if number == 0 && control.base.is_some() { FileKind::Base } else { FileKind::Log };
        let mut reader = PartReader::open(durable, part, kind, &control.identity.uuid)?;
        while let Some(item) = reader.next()? {
            match item {
                Item::Begin(epoch) => {
                    ensure(newest < epoch, "epochs of the map do not ascend")?;
                    newest = epoch;
                    state.clear();
                }
                Item::Entries(entries) => entries.iter().for_each(|(pid, entry)| visit(*pid, *entry)),
                Item::State(bytes) => state.extend_from_slice(bytes),
                Item::End => {}
            }
        }
        reader.compare_files();
        loaded.is_damaged |= reader.is_damaged();
        if reader.is_without_copy() {
            loaded.without_copy.push(part.file);
        }
    }
    ensure(newest == control.epoch, "the map does not end with the epoch that CONTROL names")?;
    Ok(loaded)
}

fn ensure(condition: bool, what: &str) -> Result<()> {
    condition.then_some(()).ok_or_else(|| Error::corrupt("page map", what))
}
