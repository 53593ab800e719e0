//! Identifiers as types of their own, so that two of them cannot be confused.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
        pub struct $name(pub $inner);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id! {
    /// A logical page. 40 bits on disk; 0 means "none" and is never given out.
    PageId(u64)
}
id! {
    /// The tree (index) that owns a page. Never reused. 0 means "none".
    TreeId(u32)
}
id! {
    /// A table. Never reused.
    TableId(u32)
}
id! {
    /// A segment file. Never reused; 27 bits.
    SegmentId(u32)
}
id! {
    /// A byte position in the log, counted from the creation of the database.
    Lsn(u64)
}
id! {
    /// A transaction that has written something. 48 bits, never reused. 0 means "none".
    TxnId(u64)
}
id! {
    /// The caller's name for a transaction's session, when others wait for it. 0 means "none".
    SessionId(u64)
}
id! {
    /// A version of the page map: the pages that one checkpoint makes durable as a whole. Never
    /// reused.
    Epoch(u64)
}
id! {
    /// A byte position in the undo log. 48 bits, never reused. 0 means "none".
    UndoPtr(u64)
}

impl PageId {
    /// No page.
    pub const NONE: PageId = PageId(0);
    /// The largest page number: the reach of the page table (a petabyte of pages). On disk it has
    /// 40 bits.
    pub const MAX: PageId = PageId((1 << 36) - 1);
}

impl TableId {
    /// The bit that numbers of temporary tables have and others lack: its number alone tells that a
    /// table is not logged (Y1 of docs/developers/durability.md).
    pub const TEMPORARY: TableId = TableId(1 << 31);

    /// Whether it is that of a temporary table.
    pub fn is_temporary(self) -> bool {
        self.0 & Self::TEMPORARY.0 != 0
    }

    /// It as a number among all tables, temporary or not.
    pub fn ordinal(self) -> TableId {
        TableId(self.0 & !Self::TEMPORARY.0)
    }

    /// The number for a table that is temporary if `self` is, and the next among all.
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
    /// The first tree of a user's table.
    pub const FIRST_USER: TreeId = TreeId(16);
}
