//! Deleted rows whose postings are deleted later.
//!
//! A transaction that removes a row with more than one word writes one row, a *removal*, into one
//! of the engine's own tables. A removal holds the ID of the posting table, the key of the deleted
//! row, and its words. Searches skip the postings of rows whose removal they see. The background
//! deletes these postings together with the removal.
//! (docs/developers/decisions/0058-removed-words.md)
//!
//! Invariants
//!   W1  A removal has all words of a deleted row, and the row has no other postings. The
//!       transaction that writes a removal also removes the row. The transaction that deletes a
//!       removal also deletes these postings. So in each view the postings of a row are void
//!       exactly if the view sees a removal of it.
//!   W2  A transaction that writes the words of a row has already locked that row, or its table,
//!       until the transaction ends. So apart from the background, only one transaction at a time
//!       writes or deletes removals of a row.
//!   W3  A transaction that inserts a row again deletes the removal of its key, and the postings
//!       that the removal names, before it writes the row's words. It looks for the removal without
//!       a lock: if there is none, no other transaction can write one (W2). If there is one, the
//!       transaction locks it, and waits if the background holds the lock.
//!   W4  The background never waits for a lock: neither for the lock on the posting table, which it
//!       takes first, nor for one on a removal or a posting. So it never takes part in a deadlock,
//!       and a transaction that waits for it waits only until the words of one row are deleted. It
//!       reads removals in a new view, which sees only committed ones.
//!   W5  A search that locks postings (SERIALIZABLE) locks the removal of each posting's row, or
//!       the gap where the removal would be. So the postings that the search found are not deleted
//!       before its transaction ends.
//!   W6  Words of a table are never written into a table with another encryption. Words of a
//!       temporary table are never written into a logged table.
//!   W7  The ID of a posting table is never reused. A posting table that is not in the catalog
//!       never returns, so its removals are deleted without deleting postings.
//!   W8  A view older than the table of removals sees no removals. It is not refused because of
//!       that table (M2): the rows in it have versions like all others.

mod passing_over;
mod recording;
mod room;
mod table;
mod working_off;

pub(super) use passing_over::{Passed, Removals};
pub(in crate::db) use room::RemovalRoom;
pub(in crate::db) use table::{drop_if_empty, is_removed_words};
pub(in crate::db) use working_off::WorkingOff;
