//! Identifiers. Each has its own type, so that they cannot be confused.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
        pub struct $name(pub $inner);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )+};
}

ids! {
    /// A logical page. 40 bits on disk; 0 means "none" and is never used.
    PageId(u64);
    /// The tree (index) that owns a page. Never reused. 0 means "none".
    TreeId(u32);
    /// A table. Never reused.
    TableId(u32);
    /// A segment file. Never reused; 27 bits.
    SegmentId(u32);
    /// A byte position in the log, counted from the creation of the database.
    Lsn(u64);
    /// A transaction that has written at least one change. 48 bits, never reused. 0 means "none".
    TxnId(u64);
    /// The caller's ID for the session of a transaction that others wait for. 0 means "none".
    SessionId(u64);
    /// A version of the page map: the state of all pages that one checkpoint makes durable. Never
    /// reused.
    Epoch(u64);
    /// A byte position in the undo log. 48 bits, never reused. 0 means "none".
    UndoPtr(u64);
}

impl PageId {
    /// No page.
    pub const NONE: PageId = PageId(0);
    /// The largest page number: the limit of the page table (a petabyte of pages).
    pub const MAX: PageId = PageId((1 << 36) - 1);
}

impl TableId {
    /// The bit that only the IDs of temporary tables have: the ID alone shows that a table is not
    /// logged (Y1 of docs/developers/durability.md).
    pub const TEMPORARY: TableId = TableId(1 << 31);

    /// Returns whether this is the ID of a temporary table.
    pub fn is_temporary(self) -> bool {
        self.0 & Self::TEMPORARY.0 != 0
    }

    /// The ID without the bit of temporary tables.
    pub fn ordinal(self) -> TableId {
        TableId(self.0 & !Self::TEMPORARY.0)
    }

    /// Returns the ID `next`, with the bit of temporary tables if `self` has it.
    pub fn numbered(self, next: TableId) -> TableId {
        TableId(next.0 | self.0 & Self::TEMPORARY.0)
    }
}

impl SessionId {
    /// No session.
    pub const NONE: SessionId = SessionId(0);
}

impl TreeId {
    /// The catalog tree.
    pub const CATALOG: TreeId = TreeId(1);
    /// The owner of undo pages.
    pub const UNDO: TreeId = TreeId(2);
    /// The first ID for a tree of a user's table.
    pub const FIRST_USER: TreeId = TreeId(16);
}
