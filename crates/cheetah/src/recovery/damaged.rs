//! Opens a damaged database to copy its readable parts. Such a database never serves sessions.
//!
//! Invariants
//!   I1  All writes to the disk are discarded, so the files of the database do not change.
//!   I2  Nothing is quarantined, rolled back, purged or logged. A change that encounters damage is
//!       skipped and noted in [`Losses`]. So every row version was written by a transaction, and
//!       the reader's snapshot says whether that transaction committed.
//!   I3  Redo applies changes of rows only, not of secondary indexes, because a copy rebuilds its
//!       indexes. If redo changed secondary indexes too, a damaged index page could block the
//!       change of a row.
//!   I4  The log ends at its first damage. Both passes over the log end at the same frame, so the
//!       second pass reaches every commit that the first pass noted.

use super::crew::Crew;
use super::open::{load_epoch, restore_changes, Parts};
use super::outcomes::Outcomes;
use super::redo;
use crate::backup;
use crate::base::{sound, Config, Epoch, Error, Health, Result};
use crate::durable::Durable;
use crate::format::state::State;
use crate::leaves::change_file;
use crate::log;
use crate::table::definitions::catalog::Catalog;
use crate::table::shared::parts::Core;
use crate::table::shared::Losses;
use cheetah_io::{Clock, Disk};
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// The last epoch, and the log after it.
    WithLog,
    /// The last epoch.
    Epoch,
    /// The last epoch without its undo log: rows whose older versions are needed are lost.
    WithoutUndo,
}

/// Opens the readable parts of the database on `disk`, which must discard all writes. An error
/// means that the database cannot be opened to that extent.
pub(crate) fn open_damaged(
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    config: &Config,
    extent: Extent,
) -> Result<Core> {
    let durable = Arc::new(Durable::new(disk, Arc::new(Health::default())));
    let losses = Losses::default();
    match backup::check_manifest(&durable) {
        Err(error) if error.is_of_unreadable_bytes() => {
            losses.note(format!("this is a copy of an incomplete snapshot: {error}"));
        }
        checked => checked?,
    }
    let (parts, epoch, state) = load_epoch(durable, clock, config, [0; 16])?;
    if epoch == Epoch(0) {
        return Err(Error::corrupt("CONTROL", "the database has no epoch: it is empty"));
    }
    parts.open_left(State::decode(&state)?, extent, losses)
}

impl Parts {
    fn open_left(self, mut state: State, extent: Extent, losses: Losses) -> Result<Core> {
        self.pool.adopt_dictionaries(&state.dictionaries);
        let catalog = Catalog::open_damaged(&self.leaves, &state, &mut |what| losses.note(what))?;
        self.pool.load_primers();
        if extent == Extent::WithoutUndo {
            state.undo_pages.clear();
        }
        let (setup, durable) = (self.setup.clone(), Arc::clone(&self.durable));
        let mut core = self.assemble(&state, catalog)?;
        core.losses = Some(losses);
        core.leaves.take_unread_for_damaged();
        change_file::replace_missing(&durable, &state.change_files)?;
        restore_changes(&core, &state)?;
        if sound!(extent == Extent::WithLog, "salvage: pass by the log") {
            redo_undamaged(&core, &setup, &state)?;
        }
        note_promised(&core);
        Ok(core)
    }
}

/// Notes the prepared transactions as losses: a coordinator decides their outcome, so the copy
/// lacks them.
fn note_promised(core: &Core) {
    let Some(losses) = &core.losses else { return };
    for xid in core.transactions.active.slots().iter().filter_map(|slot| slot.state().xid) {
        losses.note(format!("transaction {xid} was prepared and had not ended: it is left out"));
    }
}

/// Redoes the log up to its first damage (I4).
fn redo_undamaged(core: &Core, setup: &log::LogSetup, state: &State) -> Result<()> {
    let (disk, keys, from) = (setup.durable.disk(), &*setup.keys, state.lsn);
    let mut outcomes = Outcomes::default();
    log::read_undamaged(disk, keys, from, |frame| outcomes.note(frame.kind, frame.body))?;
    outcomes.count_memory(core.pool.memory());
    let alone = Crew { threads: 1, run: |_, _, main| main(0) };
    let damage = redo::run(core, alone, outcomes, |redo| {
        log::read_undamaged(disk, keys, from, |frame| redo.add(frame.kind, frame.body))
    })?;
    if let (Some(damage), Some(losses)) = (damage, &core.losses) {
        losses.note(format!("changes committed after the damaged part of the log are lost: {damage}"));
    }
    Ok(())
}
