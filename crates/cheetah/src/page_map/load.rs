//! Reading the whole map as CONTROL names it.

use super::map_file::{Item, PartReader};
use crate::base::{Epoch, Error, PageId, Result};
use crate::durable::Durable;
use crate::format::control::ControlBlock;
use crate::format::map_block::FileKind;
use crate::format::MapEntry;

/// Reads the whole map that `control` names, in the order of the files, and calls `visit` for
/// entries and removals of pages: a later change of a page replaces an earlier one. Returns the
/// state. `Corruption` when anything is not as it was written. Blocks for I/O.
pub fn load(
    durable: &Durable,
    control: &ControlBlock,
    visit: &mut dyn FnMut(PageId, Option<MapEntry>),
) -> Result<Vec<u8>> {
    let mut state = Vec::new();
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
    }
    ensure(newest == control.epoch, "the map does not end with the epoch that CONTROL names")?;
    Ok(state)
}

fn ensure(condition: bool, what: &str) -> Result<()> {
    condition.then_some(()).ok_or_else(|| Error::corrupt("page map", what))
}
