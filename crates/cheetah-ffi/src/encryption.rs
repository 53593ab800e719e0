//! Encryption at rest: the server's keys, the encryption options of a definition, and settings.
//!
//! Invariants
//!   I1  No copy of a key's bytes remains in memory: the engine keeps and wipes the buffer that the
//!       caller filled.
//!   I2  A definition whose key does not exist is refused before anything is created. The check
//!       only queries the server's key service, and does not bring the key into use.

use crate::barrier::{entry, value};
use crate::callbacks::{each, Callback};
use crate::codes::*;
use crate::types::*;
use crate::CheetahDb;
use cheetah::server::{TableEncryptionStatus, SYSTEM_KEY};
use cheetah::{Encryption, KeyService, Result, TableEncryption};
use zeroize::Zeroizing;

/// The size of the buffer for a key. The server's key plugins have keys of at most 32 bytes.
const KEY_BYTES_MAX: usize = 256;
/// The shortest key that the engine accepts.
const KEY_BYTES_MIN: usize = 16;

/// Returns the newest version of a key in the server's key service; 0 if the key does not exist.
/// Called from any thread.
pub type CheetahNewestKeyVersion = unsafe extern "C" fn(id: u32) -> u32;
/// Puts the bytes of a key version into a buffer, which the engine wipes. Returns their number; 0
/// if the key is not available. Called from any thread.
pub type CheetahKeyBytes =
    unsafe extern "C" fn(id: u32, version: u32, buffer: *mut u8, buffer_bytes: usize) -> usize;

/// The encryption of a table.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheetahEncryption {
    /// The ID of its key; 0 means key 1.
    pub key_id: u32,
    /// A `CheetahEncrypted`.
    pub encrypted: u8,
    /// Whether the options are refused.
    pub refused: u8,
}

impl CheetahEncryption {
    pub(crate) fn get(self) -> Result<TableEncryption> {
        Ok(TableEncryption { wish: wish_of(self.encrypted)?, key_id: self.key_id.max(SYSTEM_KEY) })
    }
}

fn wish_of(code: u8) -> Result<Encryption> {
    meaning!("code of ENCRYPTED", code, CheetahEncrypted => Encryption { Default, Yes, No })
}

/// The encryption options of a definition, and the server's setting.
#[repr(C)]
pub struct CheetahEncryptionWords {
    /// ENCRYPTION_KEY_ID.
    pub key_id: u32,
    /// ENCRYPTED: a `CheetahEncrypted`.
    pub encrypted: u8,
    /// `cheetah_encrypt_tables`: 0 OFF, 1 ON, 2 FORCE.
    pub encrypt_tables: u8,
    /// Used to check that a key exists.
    pub newest_key_version: CheetahNewestKeyVersion,
}

pub(crate) struct ServerKeys {
    newest: CheetahNewestKeyVersion,
    bytes: CheetahKeyBytes,
}

impl ServerKeys {
    pub(crate) fn of(config: &CheetahConfig) -> Self {
        Self { newest: config.newest_key_version, bytes: config.key_bytes }
    }
}

impl KeyService for ServerKeys {
    fn newest_version(&self, id: u32) -> Option<u32> {
        newest_version(self.newest, id)
    }

    fn key(&self, id: u32, version: u32) -> Option<Zeroizing<Vec<u8>>> {
        let mut bytes = Zeroizing::new(vec![0; KEY_BYTES_MAX]);
        // SAFETY: the caller's function may be called from any thread; the buffer has that size.
        let length = unsafe { (self.bytes)(id, version, bytes.as_mut_ptr(), bytes.len()) };
        bytes.truncate(length); // the unused rest of the buffer is wiped too (I1)
        (KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&length).then_some(bytes)
    }
}

fn newest_version(ask: CheetahNewestKeyVersion, id: u32) -> Option<u32> {
    // SAFETY: the caller's function may be called from any thread.
    Some(unsafe { ask(id) }).filter(|version| *version != 0)
}

/// The encryption that a definition's options result in. The rules are InnoDB's.
struct Chosen {
    encryption: TableEncryption,
    /// Faults of the options, as readable messages.
    warnings: Vec<String>,
    refused: bool,
}

/// Chooses the encryption that the options result in. `exists` returns whether the key service has
/// a key. `is_forced`: `cheetah_encrypt_tables` is FORCE.
fn choose(asked: TableEncryption, by_default: bool, is_forced: bool, exists: impl Fn(u32) -> bool) -> Chosen {
    let mut warnings = Vec::new();
    let mut key_id = asked.key_id;
    if asked.wish == Encryption::No && key_id != SYSTEM_KEY {
        key_id = SYSTEM_KEY;
        warnings.push("ENCRYPTED=NO implies ENCRYPTION_KEY_ID=1".to_owned());
    }
    let mut refused = asked.wish == Encryption::No && is_forced;
    if refused {
        warnings.push("ENCRYPTED=NO cannot be used with cheetah_encrypt_tables=FORCE".to_owned());
    }
    let is_encrypted = asked.is_on(by_default);
    let missing = [key_id, SYSTEM_KEY].into_iter().find(|id| is_encrypted && !exists(*id));
    if let Some(id) = missing {
        refused = true;
        let why = if id == key_id { "" } else { "; it encrypts data that belongs to no table" };
        warnings.push(format!("ENCRYPTION_KEY_ID {id} not available{why}"));
    }
    Chosen { encryption: TableEncryption { wish: asked.wish, key_id }, warnings, refused }
}

/// Chooses how a table is encrypted. Passes each fault of the options as text to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_choose_encryption(
    words: &CheetahEncryptionWords,
    sink: CheetahTextSink,
    context: *mut c_void,
    encryption: &mut CheetahEncryption,
) -> i32 {
    entry(|| {
        let asked = TableEncryption { wish: wish_of(words.encrypted)?, key_id: words.key_id };
        let (by_default, is_forced) = (words.encrypt_tables != 0, words.encrypt_tables == 2);
        let exists = |id| newest_version(words.newest_key_version, id).is_some();
        let chosen = choose(asked, by_default, is_forced, exists);
        let listener = Callback(sink, context);
        chosen.warnings.iter().for_each(|warning| listener.tell(warning));
        *encryption = CheetahEncryption {
            key_id: chosen.encryption.key_id,
            encrypted: words.encrypted,
            refused: chosen.refused.into(),
        };
        Ok(())
    })
}

/// Sets whether tables without ENCRYPTED in their definition are encrypted. Returns `Key`, and
/// changes nothing, if a key is missing.
#[no_mangle]
pub extern "C" fn cheetah_set_encrypt_tables(db: &CheetahDb, is_on: u8) -> i32 {
    entry(|| db.0.set_encrypt_tables(is_on != 0))
}

/// Sets whether the log is encrypted. The log continues in a new file. Returns `Key`, and changes
/// nothing, if a key is missing.
#[no_mangle]
pub extern "C" fn cheetah_set_encrypt_log(db: &CheetahDb, is_on: u8) -> i32 {
    entry(|| db.0.set_encrypt_log(is_on != 0))
}

/// Sets the number of versions by which a page's key may be older than the newest version before
/// the page is re-encrypted; 0: pages are not re-encrypted.
#[no_mangle]
pub extern "C" fn cheetah_set_rotate_key_age(db: &CheetahDb, versions: u32) {
    value((), || db.0.set_rotate_key_age(versions));
}

/// The encryption of a table. Its strings are valid only during the call.
#[repr(C)]
pub struct CheetahTableEncryption {
    /// Its name.
    pub name: CheetahBytes,
    /// The engine's ID of the table.
    pub table: u64,
    /// During key rotation: the next page to check.
    pub rotation_page: u64,
    /// During key rotation: the number of pages to check; 0 before the pass begins.
    pub rotation_pages: u64,
    /// The number of requests to the key service for its key since the startup.
    pub key_requests: u64,
    /// The ID of its key.
    pub key_id: u32,
    /// The oldest version in use; 0 if pages may be unencrypted.
    pub min_key_version: u32,
    /// The version that pages are now encrypted with.
    pub current_key_version: u32,
    /// Whether newly written pages are encrypted.
    pub is_encrypted: u8,
    /// Whether background threads have still to check some of its pages.
    pub is_rotating: u8,
}

/// Receives one table.
pub type CheetahTableEncryptionSink =
    unsafe extern "C" fn(context: *mut c_void, table: *const CheetahTableEncryption);

fn told(table: &TableEncryptionStatus, is_rotating: bool) -> CheetahTableEncryption {
    let may_be_plain = !table.is_encrypted || (is_rotating && table.encryption.wish == Encryption::Default);
    let (rotation_page, rotation_pages) = table.rotation.unwrap_or_default();
    CheetahTableEncryption {
        name: CheetahBytes::of(&table.name),
        table: table.table.0.into(),
        rotation_page,
        rotation_pages,
        key_requests: table.key_requests,
        key_id: table.encryption.key_id,
        min_key_version: if may_be_plain { 0 } else { table.min_key_version },
        current_key_version: if table.is_encrypted { table.current_key_version } else { 0 },
        is_encrypted: table.is_encrypted.into(),
        is_rotating: is_rotating.into(),
    }
}

/// Passes the encryption of each table to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_encryption(
    db: &CheetahDb,
    sink: CheetahTableEncryptionSink,
    context: *mut c_void,
) -> i32 {
    entry(|| {
        // Read first: finished pages may be reported as unfinished, but not the other way round.
        let is_rotating = db.0.is_rotating();
        each(sink, context, db.0.encryption(), |table| told(table, is_rotating))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn keys_1_and_3(id: u32) -> u32 {
        u32::from(id == 1 || id == 3)
    }

    unsafe extern "C" fn bytes_of_key(id: u32, _: u32, buffer: *mut u8, size: usize) -> usize {
        for at in 0..size {
            // SAFETY: the buffer has that size.
            unsafe { buffer.add(at).write(id as u8) };
        }
        id as usize
    }

    unsafe extern "C" fn keep(context: *mut c_void, text: CheetahBytes) {
        // SAFETY: the test passes its own list, and the bytes are readable.
        let (to, text) = unsafe { (&mut *context.cast::<Vec<String>>(), text.text()) };
        to.push(text);
    }

    fn check(encrypted: u8, key_id: u32, encrypt_tables: u8, expect: (u32, bool, &[&str])) {
        let words =
            CheetahEncryptionWords { key_id, encrypted, encrypt_tables, newest_key_version: keys_1_and_3 };
        let mut told = Vec::<String>::new();
        let mut found = CheetahEncryption { key_id: 99, encrypted: 9, refused: 9 };
        // SAFETY: all live on the stack.
        let code = unsafe { cheetah_choose_encryption(&words, keep, (&raw mut told).cast(), &mut found) };
        assert_eq!(code, Code::Ok as i32);
        assert_eq!((found.key_id, found.refused != 0, told.len()), (expect.0, expect.1, expect.2.len()));
        assert_eq!(found.encrypted, encrypted);
        for (text, part) in told.iter().zip(expect.2) {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn words_are_decided_as_innodb_does() {
        let (default, yes, no) = (0, 1, 2);
        let (off, on, force) = (0, 1, 2);
        for key in [1, 3] {
            check(yes, key, off, (key, false, &[]));
            check(default, key, on, (key, false, &[]));
        }
        check(default, 7, off, (7, false, &[]));
        check(default, 7, on, (7, true, &["ENCRYPTION_KEY_ID 7 not available"]));
        check(yes, 7, off, (7, true, &["ENCRYPTION_KEY_ID 7 not available"]));
        check(no, 1, on, (1, false, &[]));
        check(no, 7, on, (1, false, &["implies ENCRYPTION_KEY_ID=1"]));
        check(no, 1, force, (1, true, &["cheetah_encrypt_tables=FORCE"]));
        check(no, 3, force, (1, true, &["implies", "FORCE"]));
    }

    #[test]
    fn a_table_with_its_own_key_needs_that_of_the_system_too() {
        let asked = TableEncryption { wish: Encryption::Yes, key_id: 3 };
        let chosen = choose(asked, false, false, |id| id == 3);
        assert!(chosen.refused && chosen.warnings[0].contains("ENCRYPTION_KEY_ID 1 not available"));
    }

    #[test]
    fn keys_are_taken_whole_or_not_at_all() {
        let keys = ServerKeys { newest: keys_1_and_3, bytes: bytes_of_key };
        assert_eq!((keys.newest_version(3), keys.newest_version(2)), (Some(1), None));
        assert_eq!(keys.key(32, 1).unwrap().as_slice(), [32; 32]);
        for length in [0, 15, 257] {
            assert!(keys.key(length, 1).is_none());
        }
    }

    #[test]
    fn unknown_codes_are_refused() {
        let encryption = CheetahEncryption { key_id: 0, encrypted: 0, refused: 0 };
        assert_eq!(encryption.get().unwrap(), TableEncryption::default());
        assert!(CheetahEncryption { encrypted: 3, ..encryption }.get().is_err());
    }
}
