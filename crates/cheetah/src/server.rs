//! The interface for the plugin of the MariaDB server and the offline tools, in addition to the
//! root of the crate: constraints, statistics, full-text searches, two-phase commit, views, changes
//! of definitions. It follows their needs, and may change with any version.

pub use crate::base::{page_work, stages};
pub use crate::base::{ConstraintProblem, SearchProblem, ServerSettings, SessionId, Xid};
pub use crate::db::{Build, Db, Env, Load, NewPostings, Note, SnapshotOrder, Stopper};
pub use crate::db::{CheckReport, Expected, ExpectedEntry, PoolStatus, Sizes, TableEncryptionStatus};
pub use crate::db::{Found, Mode, Position, RowWords, Search, Texts, Word, WordKind, WordList};
pub use crate::format::foreign_key::{ColumnDef, Description, ForeignKeyAction, ForeignKeyDef, KeyPartDef};
pub use crate::format::image::FORMAT_VERSION;
pub use crate::format::page::max_key_bytes;
pub use crate::format::row::Locator;
pub use crate::format::row_format_versions::{BitRun, FormatChange};
pub use crate::keys::{Zeroizing, SYSTEM_KEY};
pub use crate::pool::ImageWork;
pub use crate::table::{inline_row_bytes, Estimate, FormatWords, Numbers, RowFormat, Stride, Weight};
pub use crate::table::{
    Alteration, AlteredFulltext, AlteredIndex, BuiltEntries, FulltextFrom, IndexFrom, NewRows,
};
pub use crate::table::{Constraints, ForeignKey, KeyColumn, KeySide, Referenced};
pub use crate::table::{KeyEncoding, KeyPartEncoding, StatisticsOptions, TextLevel, ValueEncoding};

/// Copying what can still be read of a damaged database.
pub mod salvage {
    pub use crate::salvage::*;
}
