//! Whole trees from sorted entries: the pages as they come (`bulk`), and how full each becomes
//! (`packing`).

mod bulk;
mod packing;

pub use bulk::Builder;
pub(crate) use packing::{fill_target, Packing};
