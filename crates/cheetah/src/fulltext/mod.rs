//! The query side of FULLTEXT indexes: the rows that MATCH .. AGAINST finds, and their ranks.
//!
//! [`search`] parses a query, evaluates it over an index and its rows, which it reads through a
//! [`Source`], and ranks the rows. Rows, ranks and refusals are the same as in InnoDB, except for
//! the differences that docs/users/fulltext.md describes. Only the source does I/O.
//!
//! Invariants
//! - A query, however long or deeply nested, is answered within its memory limit, or refused. Only
//!   sub-expressions are evaluated recursively, at most [`DEPTH_MAX`] deep.
//! - Rows have IDs, in the order in which they are first seen. Sets contain these IDs.
//! - An error of the source ends the query at once. That is how a query is interrupted.

mod budget;
mod documents;
mod evaluation;
mod expression;
mod lexer;
mod matches;
mod parser;
mod phrases;
mod positions;
mod results;
mod search;
mod source;
#[cfg(test)]
mod tests;
mod words;

pub use matches::Matches;
pub use parser::DEPTH_MAX;
pub use phrases::PHRASE_WORDS_MAX;
pub use positions::{Position, PositionList, Positions, PositionsIter};
pub use search::{search, Mode};
pub use source::{Source, Word, WordKind};
