//! Builds trees from sorted entries: `bulk` writes the pages, and `packing` decides how full each
//! page becomes.

mod bulk;
mod packing;

pub use bulk::Builder;
pub(crate) use packing::{fill_target, Packing};
