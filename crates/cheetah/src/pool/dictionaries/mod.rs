//! Dictionaries: each tree may have content beside which its leaves and large values are
//! compressed.
//!
//! A dictionary is a page of its tree: written, moved and freed as any other. Images name it, so
//! nothing else is needed to read them. It is made of the tree's own pages, when others of these
//! show that it pays: `payoff` judges that, and has `format/image/dictionary.rs` make the content.
//!
//! Invariants
//!   D1  An image of epoch g names a dictionary that was made in g or before: g has it, whatever
//!       comes after.
//!   D2  A dictionary never changes, and goes only with its tree: nobody has to know which images
//!       name it.
//!   D3  A dictionary is made in one mini-transaction with its entry in the list of its tree, which
//!       is in the epoch state, by somebody who keeps the tree from being dropped. So no epoch has
//!       a dictionary page without its entry, and no dropped tree gets one.
//!   D4  Encoding a page does no I/O and waits for nobody: if the dictionary is not in memory, the
//!       page is compressed without it.
//!   D5  `read_dictionary` waits for no other reader and needs no other dictionary. So damaged
//!       images that name each other cannot make a reader wait for itself.
//!   T1, T2  See `trials`.
//! Locks     Trials, then making, then the gate. Those of the lists and of the cache are leaves.

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
