//! Rows that have gone, and whose postings are deleted later.
//!
//! A transaction that removes a row with more than one word writes one row into a table of the
//! engine's own, a *removal*: the row's key in that posting table, with its words. Searches pass
//! over the postings of rows whose removal they see; the background deletes these, and the removal
//! with them. (docs/developers/decisions/0058-removed-words.md)
//!
//! Invariants
//!   W1  A removal has all words of a row that has gone, and all postings of that row are those.
//!       The transaction that writes one removes the row, too; the one that deletes one deletes
//!       these postings, too. So in each view the postings of a row are void
//!       exactly if it has a removal there.
//!   W2  The writer of the words of a row has locked that row before, or its table, to the end of
//!       the transaction. So one transaction at a time brings or takes removals of a row, but for
//!       the background.
//!   W3  A row that comes again takes the removal of its key back, before its words are written. It
//!       looks for the record without a lock: if it finds none, nobody can bring one (W2). It locks
//!       the record that it finds, and waits for the background, if that has it.
//!   W4  The background waits for no lock: neither for that of the posting table, which it takes
//!       first, nor for a removal, nor for a posting. So it is in no deadlock, and a wait for it is
//!       a wait for the words of one row. It starts from what its own new view sees, which is
//!       committed.
//!   W5  A search that locks postings (SERIALIZABLE) locks the removal of each, or its place:
//!       postings that it has found do not go before it ends.
//!   W6  Words of a table get into no table that is encrypted otherwise, nor those of a temporary
//!       table into one that is logged.
//!   W7  The number of a posting table is not used again, and one that is not in the catalog is
//!       never there again: its removals are deleted without postings.
//!   W8  A view from before the table of removals was created sees none of them, and is not refused
//!       because of that table (M2): rows in it have versions like all others.

mod passing_over;
mod recording;
mod room;
mod table;
mod working_off;

pub(super) use passing_over::{Passed, Removals};
pub(in crate::db) use room::RemovalRoom;
pub(in crate::db) use table::{drop_if_empty, is_removed_words};
pub(in crate::db) use working_off::WorkingOff;
