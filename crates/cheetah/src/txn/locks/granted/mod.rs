//! Granted locks, by object (records by a hash of their keys, ranges of keys, whole tables) and by
//! owner.
//!
//! Nothing here decides whether a lock may be granted; [`super::grant`] does.

pub(super) mod owners;
pub(super) mod point;
pub(super) mod ranges;
pub(super) mod shared;
pub(super) mod stripe;
pub(super) mod tables;
