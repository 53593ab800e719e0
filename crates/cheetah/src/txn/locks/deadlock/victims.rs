//! Which owner a deadlock must spare: the caller's choice between two owners.

use crate::base::opaque;
use crate::txn::locks::Owner;
use std::sync::OnceLock;

/// See `LockTable::set_victim_choice`.
type Choice = Box<dyn Fn(Owner, Owner) -> Option<Owner> + Send + Sync>;

/// The caller's choice, if it is set.
#[derive(Default)]
pub(crate) struct VictimChoice(pub(super) OnceLock<Choice>);

opaque!(VictimChoice);

impl VictimChoice {
    /// Returns whether `owner` must be spared because `other` has to fail before it.
    pub(super) fn spares(&self, owner: Owner, other: Owner) -> bool {
        let choice = self.0.get().filter(|_| owner != other);
        choice.is_some_and(|choice| choice(owner, other) == Some(other))
    }
}
