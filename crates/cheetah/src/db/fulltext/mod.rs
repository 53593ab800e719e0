//! Full-text indexes as transactions use them. The words of a row become postings, which the
//! transaction writes and reads in the same way as rows.
//!
//! A posting is a row of the index's own table ([`crate::table::definitions::fulltext`]). Its key
//! is a word and the clustered key of a row; its value is the positions of the word in the row. So
//! a transaction finds its own words at once, other transactions find them after it commits, and
//! rollback, crash recovery, purge and snapshots treat postings like all other rows.
//!
//! `words` collects the words of a row, `writing` turns them into postings, `postings` reads
//! postings, `searching` finds rows, and `checking` compares an index with its rows. Postings of
//! deleted rows are deleted later, by `removed`.

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
