//! Writes the report of a deadlock, on the victim's thread, for
//! [`Deadlocks`](super::deadlocks::Deadlocks) to keep.

use super::counters::Counters;
use super::deadlocks::Report;
use super::parts::Core;
use crate::base::SessionId;
use crate::txn::{Deadlock, LockedOn, Owner, TableMode};
use std::fmt::Write as _;

/// IDs from here on stand for transactions that have not written and so have none.
const READERS_FROM: u64 = 1 << 48;

impl Core {
    /// Of two sessions in one deadlock, `later` names the one that must commit after the other; the
    /// other is not rolled back. Only the first call has an effect.
    pub(crate) fn set_victim_choice(
        &self,
        later: impl Fn(SessionId, SessionId) -> Option<SessionId> + Send + Sync + 'static,
    ) {
        let roster = self.transactions.roster.clone();
        self.locks.set_victim_choice(move |first, second| {
            roster.with_two_sessions((first, second), |first_session, second_session| {
                let later = later(first_session, second_session)?;
                Some(if later == first_session { first } else { second })
            })
        });
    }

    /// Counts and reports a deadlock. Called by the victim, before it is rolled back.
    pub(crate) fn note_deadlock(&self) {
        Counters::add(&self.counters.deadlocks);
        if let (_, Some(deadlock)) = self.locks.deadlocks() {
            let text = self.tell_deadlock(&deadlock);
            if let Some(hear) = self.for_people.deadlock.get() {
                hear(&text);
            }
            self.deadlocks.keep(Report { number: deadlock.number, moment: self.moment(), text });
        }
    }

    /// The ID by which views list an owner's transaction.
    pub(crate) fn number_of(&self, owner: Owner) -> u64 {
        let txn = self.transactions.roster.get(owner).and_then(|entry| entry.txn());
        txn.map_or(READERS_FROM | owner.0, |txn| txn.0)
    }

    fn tell_deadlock(&self, deadlock: &Deadlock) -> String {
        let mut text = String::new();
        let mut victim_at = 0;
        for (at, member) in (1..).zip(&deadlock.members) {
            if member.owner == deadlock.victim {
                victim_at = at;
            }
            let (on, mode) = &member.waits_for;
            let by = &member.blocked_by;
            let _ = writeln!(
                text,
                "*** ({at}) TRANSACTION: {}, weight {}",
                self.number_of(member.owner),
                member.weight
            );
            let _ = write!(text, "{}", self.tell_connection(member.owner));
            let _ = writeln!(text, "*** WAITING FOR: {}", self.tell_lock(on, *mode));
            let other = self.number_of(by.owner);
            let _ =
                writeln!(text, "*** BLOCKED BY: transaction {other}, which {}: {}", by.kind, by.mode.name());
        }
        let _ = writeln!(text, "*** WE ROLL BACK TRANSACTION ({victim_at})");
        text
    }

    fn tell_connection(&self, owner: Owner) -> String {
        let connection = self.transactions.roster.get(owner).map_or(0, |entry| entry.connection());
        let described = self.for_people.connection.get().filter(|_| connection != 0);
        let text = described.map_or_else(String::new, |describe| describe(connection));
        if text.is_empty() || text.ends_with('\n') {
            return text;
        }
        text + "\n"
    }

    pub(crate) fn tell_lock(&self, on: &LockedOn, mode: TableMode) -> String {
        let place = match on {
            LockedOn::Table(table) => {
                self.catalog.by_id(*table).map(|table| format!("table {}", table.name()))
            }
            row => row.tree().and_then(|tree| Some((tree, self.catalog.by_tree(tree)?))).map(|found| {
                let (tree, (table, index_no)) = found;
                let index = table.indexes().get(index_no).map_or("", |index| index.name.as_str());
                let on = row.told(&|key| self.show_key(tree, key));
                format!("{on}: {index} of table {}", table.name())
            }),
        };
        format!("{} {} on {}", on.kind(), mode.name(), place.unwrap_or_else(|| on.to_string()))
    }
}
