//! The parts of the engine, for the tests, benchmarks and fuzz targets of this repository. Other
//! programs must not rely on anything here.

pub mod backup {
    pub use crate::backup::*;
}
pub mod base {
    pub use crate::base::*;
}
pub mod db {
    pub use crate::db::*;
}
pub mod durable {
    pub use crate::durable::*;
}
pub mod format {
    pub use crate::format::*;
}
pub mod fulltext {
    pub use crate::fulltext::*;
}
pub mod keys {
    pub use crate::keys::*;
}
pub mod leaves {
    pub use crate::leaves::*;
}
pub mod log {
    pub use crate::log::*;
}
pub mod memory {
    pub use crate::memory::*;
}
pub mod page_map {
    pub use crate::page_map::*;
}
pub mod pool {
    pub use crate::pool::*;
}
pub mod salvage {
    pub use crate::salvage::*;
}
pub mod segment {
    pub use crate::segment::*;
}
pub mod sort {
    pub use crate::sort::*;
}
pub mod table {
    pub use crate::table::*;
}
pub mod tree {
    pub use crate::tree::*;
}
pub mod txn {
    pub use crate::txn::*;
}
