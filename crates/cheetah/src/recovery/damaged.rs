//! Opening a damaged database to copy what is left of it: as far as that goes, and never to serve.
//!
//! Invariants
//!   I1  The disk is one whose writes are thrown away: nobody sees what is done here.
//!   I2  Nothing is quarantined, rolled back, purged or logged. A change that meets damage is left
//!       out and noted in [`Losses`]. So every row version that is there was written by a
//!       transaction, and the reader's snapshot tells whether that has committed.
//!   I3  Redo makes changes of rows only: those of secondary indexes are left out, as a copy gets
//!       its indexes anew. Otherwise a damaged page of an index would keep a row from its change.
//!   I4  A log that is damaged ends there: both readings of it end at the same frame, so what is
//!       known to commit does so before that.

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

/// How much of a database is to be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// The last epoch, and the log since then.
    WithLog,
    /// The last epoch.
    Epoch,
    /// The last epoch without its undo log: rows of which older versions are needed are lost.
    WithoutUndo,
}

/// Opens what is left of the database on `disk`, whose writes are thrown away. Errors tell that it
/// cannot be opened to that extent.
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
            losses.note(format!("this is a copy of a snapshot that is not whole: {error}"));
        }
        checked => checked?,
    }
    let (parts, epoch, state) = load_epoch(durable, clock, config, [0; 16])?;
    if epoch == Epoch(0) {
        return Err(Error::corrupt("CONTROL", "the database has no epoch: it holds nothing yet"));
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

/// Notes the transactions whose end somebody else decides: the copy is without them.
fn note_promised(core: &Core) {
    let Some(losses) = &core.losses else { return };
    for xid in core.transactions.active.slots().iter().filter_map(|slot| slot.state().xid) {
        losses.note(format!("transaction {xid} was prepared and waited for its end: it is left out"));
    }
}

/// Redo as far as the log is undamaged (I4).
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
