//! Where the search for pages of dropped trees goes on.

use crate::base::{PageId, TreeId};
use std::collections::HashSet;

/// A walk over all pages for those of dropped trees.
#[derive(Default, Debug)]
pub(crate) struct Dropping {
    /// Those whose pages are freed by this walk; none while there is no walk.
    pub(crate) trees: HashSet<TreeId>,
    pub(crate) next: PageId,
}
