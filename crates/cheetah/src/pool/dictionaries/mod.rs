//! Dictionaries: each tree may have a page whose content helps to compress its leaves and large
//! values.
//!
//! A dictionary is a page of its tree. It is written, moved and freed like any other page. Images
//! name their dictionary, so reading needs no other information. A dictionary is built from some of
//! the tree's pages if tests with other pages of the tree show that the dictionary pays. `payoff`
//! decides this, and calls `format/image/dictionary.rs` to build the content.
//!
//! Invariants
//!   D1  An image of epoch g names a dictionary that was made in g or earlier, so that g contains
//!       it.
//!   D2  A dictionary never changes, and is freed only with its tree. So the images that name it
//!       need no tracking.
//!   D3  A dictionary page and its entry in the tree's list, which is part of the epoch state, are
//!       made in one mini-transaction, by a caller that keeps the tree from being dropped. So no
//!       epoch has a dictionary page without its entry, and no dropped tree receives a dictionary.
//!   D4  Encoding a page does no I/O and waits for no other thread: if the dictionary is not in
//!       memory, the page is compressed without it.
//!   D5  `read_dictionary` waits for no other reader and needs no other dictionary. So damaged
//!       images that name each other cannot make a reader wait for itself.
//!   T1, T2  See `trials`.
//! Locks     Trials, then making, then the gate. The locks of the lists and of the cache are
//!           innermost.

mod cache;
mod payoff;
mod registry;
#[cfg(test)]
mod tests;
mod tree_dictionaries;
mod trials;

pub(crate) use crate::pool::trees::PAGES_MIN;
pub(crate) use payoff::{split_sample, Payoff, TrialDictionary, SAMPLE_PAGES};
pub(in crate::pool) use registry::Dictionaries;
pub use tree_dictionaries::DictionaryDue;
pub use trials::{LentTree, Trial};
