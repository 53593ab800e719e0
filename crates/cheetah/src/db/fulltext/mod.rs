//! Full-text indexes through a transaction: the words of its rows become postings, which it writes
//! as it writes the rows, and reads as it reads them.
//!
//! A posting is a row of the index's own table ([`crate::table::definitions::fulltext`]). Its key
//! is a word and the clustered key of a row; it holds where the word stands in the row. So a
//! transaction finds its own words at once, others find them with its commit, and a rollback, a
//! crash, purge and snapshots treat them as all rows.
//!
//! `words` are those of a row, `writing` makes postings of them, `postings` reads these,
//! `searching` finds rows, and `checking` compares an index with its rows. Postings of rows that
//! have gone are deleted later: `removed`.

mod checking;
mod postings;
mod removed;
mod searching;
mod words;
mod writing;

pub(in crate::db) use postings::PostingRoom;
pub use postings::{NewPostings, Texts};
pub(in crate::db) use removed::{drop_if_empty, is_removed_words, RemovalRoom, WorkingOff};
pub use searching::{Found, Search};
pub use words::{RowWords, WordList};
