//! The query side of FULLTEXT indexes: what MATCH .. AGAINST finds, and how it ranks.
//!
//! [`search`] parses a query, evaluates it over what a [`Source`] tells of an index and its rows,
//! and ranks. Rows, ranks and refusals are InnoDB's; docs/users/fulltext.md says what these are,
//! and where ours differ. There is no I/O here but in the source.
//!
//! Invariants
//!   - A query is answered in the memory that it was given, or refused; so is one that is long, or
//!     deeply nested. Nothing recurses but into sub-expressions, at most [`DEPTH_MAX`] deep.
//!   - Rows have numbers, in the order in which they are first seen. Sets are of numbers.
//!   - Errors of the source end the query at once. That is how one is interrupted.

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
