// Signatures of the db API (helper txn). Not committed; the real files are crates/cheetah/src/{db,table}/*.rs as they appear.
// use cheetah::db::{Db, Env, Transaction, Cursor, SeekMode, Savepoint};  use cheetah::table::{Table, TableSpec, IndexSpec, NewRow, ...}; all re-exported from cheetah::

pub struct Env { pub disk: Arc<dyn Disk>, pub clock: Arc<dyn Clock> }

#[derive(Clone)] pub struct Db(Arc<..>);            // Send + Sync
impl Db {
    pub fn open(env: Env, config: Config) -> Result<Db>;
    pub fn close(&self) -> Result<()>;                        // stops background threads, checkpoints; later calls fail
    pub fn start_background_threads(&self) -> Result<()>;
    pub fn run_background(&self) -> Result<bool>;              // one step of everything; true = did something
    pub fn set_flush_log_at_commit(&self, mode: u8);          // 0, 1, 2
    pub fn set_io_capacity(&self, ops_a_second: u32);
    pub fn create_table(&self, spec: &TableSpec) -> Result<Arc<Table>>;
    pub fn drop_table(&self, name: &str) -> Result<()>;        // takes no table lock (the server's metadata lock does); old handles answer NoSuchTable
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()>;
    pub fn truncate_table(&self, name: &str) -> Result<Arc<Table>>;   // old handles answer NoSuchTable: fetch the new one
    pub fn table(&self, name: &str) -> Result<Arc<Table>>;
    pub fn table_names(&self) -> Vec<String>;
    pub fn set_auto_increment(&self, table: &Arc<Table>, next: u64) -> Result<()>;   // logged at once (ALTER TABLE .. AUTO_INCREMENT=n)
    pub fn begin(&self) -> Transaction;
    pub fn check_table(&self, table: &Arc<Table>, extended: bool) -> Result<CheckReport>;
    pub fn check_table_with(&self, table: &Arc<Table>,
        expected: &mut dyn FnMut(&[u8] /*key*/, &[u8] /*row, large values fetched inline*/, &mut Vec<(usize /*index_no*/, Vec<u8> /*key*/)>) -> Result<()>) -> Result<CheckReport>;
    pub fn checkpoint(&self) -> Result<()>;
    pub fn status(&self) -> Vec<(&'static str, u64)>;
    pub fn status_text(&self) -> String;
}

pub struct TableSpec { pub name: String, pub shape: RowShape, pub indexes: Vec<IndexSpec> /* [0] = clustered */, pub compression: Compression,
    pub hidden_key: bool, pub auto_increment: u64 /* first value, 0 or 1 = from the start */, pub extra: Vec<u8> }
pub struct IndexSpec { pub name: String, pub unique: bool, pub max_key_bytes: u32 /* caller's part only */, pub shape: RowShape /* of the payload; RowShape::opaque() */ }

pub struct NewRow<'a> { pub key: &'a [u8], pub row: &'a [u8], pub secondary: &'a [SecondaryEntry<'a>] }
pub struct SecondaryEntry<'a> { pub index_no: usize, pub key: &'a [u8], pub payload: &'a [u8], pub check_unique: bool }
pub struct OldEntry<'a> { pub index_no: usize, pub key: &'a [u8] }
pub enum LockMode { Shared, Exclusive }

pub struct Transaction;     // Send. Drop = rollback. Writes take the table's X lock, reads its S lock, when not yet held (50 s, not interruptible)
impl Transaction {
    pub fn id(&self) -> Option<TxnId>;            // None until the first write
    pub fn has_written(&self) -> bool;
    pub fn lock_table(&mut self, table: &Arc<Table>, mode: LockMode, timeout_ns: u64, interrupted: &dyn Fn() -> bool) -> Result<()>;
    pub fn insert(&mut self, table: &Arc<Table>, row: &NewRow<'_>) -> Result<()>;
    /// Row `old_key` becomes `new`; the key may change, then `new.secondary`/`old_secondary` name every secondary index; otherwise only the changed ones,
    /// the same indexes in both, in the same order. A value of `new.row` that is external (locator of the stored row) is kept.
    pub fn update(&mut self, table: &Arc<Table>, old_key: &[u8], new: &NewRow<'_>, old_secondary: &[OldEntry<'_>]) -> Result<()>;
    pub fn delete(&mut self, table: &Arc<Table>, key: &[u8], old_secondary: &[OldEntry<'_>]) -> Result<()>;   // every secondary index
    pub fn get(&mut self, table: &Arc<Table>, key: &[u8], row: &mut Vec<u8>) -> Result<bool>;   // stored row; large values as locators
    pub fn cursor(&mut self, table: &Arc<Table>, index_no: usize) -> Result<Cursor>;            // owned, 'static; valid while the transaction holds its lock
    pub fn fetch_large(&self, table: &Arc<Table>, locator: &[u8], value: &mut Vec<u8>) -> Result<()>;
    pub fn savepoint(&self) -> Savepoint;                 // Copy; also for statements
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()>;
    pub fn commit(&mut self) -> Result<()>;               // releases locks; the handle can be used again for a new transaction
    pub fn rollback(&mut self) -> Result<()>;
}

pub enum SeekMode { AtLeast, After, AtMost, Before, First, Last }
// key = prefix p.  AtLeast: first entry >= p.  After: first entry > p that does not start with p.  AtMost: last entry that starts with p or is < p.  Before: last entry < p.
impl Cursor {
    pub fn seek(&mut self, mode: SeekMode, key: &[u8]) -> Result<bool>;   // true = on an entry
    pub fn next(&mut self) -> Result<bool>;
    pub fn prev(&mut self) -> Result<bool>;
    pub fn valid(&self) -> bool;
    pub fn key(&self) -> &[u8];               // whole stored key
    pub fn secondary_key(&self) -> &[u8];     // of a secondary index: the caller's part
    pub fn clustered_key(&self) -> &[u8];     // of a secondary index: the row's key; clustered index: key()
    pub fn row(&self) -> &[u8];               // clustered index: the stored row
    pub fn payload(&self) -> &[u8];           // secondary index: the caller's payload
    pub fn get_row(&mut self, row: &mut Vec<u8>) -> Result<()>;   // the clustered row of the current entry
    pub fn table(&self) -> &Arc<Table>;
}

impl Table {
    pub fn id(&self) -> TableId;  pub fn name(&self) -> String;  pub fn extra(&self) -> &[u8];  pub fn shape(&self) -> &RowShape; pub fn indexes(&self) -> &[IndexDef]; pub fn hidden_key(&self) -> bool;
    pub fn row_count(&self) -> u64;
    pub fn auto_increment(&self) -> u64;                    // next value to give out (0 = none given out yet counts as 1)
    pub fn advance_auto_increment(&self, to: u64);          // next = max(next, to); logged with the next row operation of the table
    pub fn next_hidden_key(&self) -> [u8; 8];
    pub fn stats(&self) -> Result<Vec<IndexStats>>;         // IndexStats { pages, leaf_pages, stored_bytes, logical_bytes, depth }
    pub fn records_in_range(&self, index_no: usize, low: Option<&[u8]>, high: Option<&[u8]>) -> Result<u64>;   // low <= stored key < high, estimate
}
