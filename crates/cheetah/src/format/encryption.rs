//! Encryption of blocks, and key streams for log files and runs.
//!
//! Invariants
//!   I1  The key for encrypted blocks and the key of each log file are derived from the server's
//!       key for one purpose and one database, so no other use of the server's key results in the
//!       same key.
//!   I2  The name of a key identifies its bytes: a key with the same ID and version but other bytes
//!       has another name.
//!   I3  Secrets are overwritten when they are dropped, and are never printed.
//! Layout    docs/developers/format.md, "Encryption".
//! Sources   AES-256 (FIPS 197) in counter mode (NIST SP 800-38A); HMAC-SHA-256 (RFC 2104) as the
//!           key derivation function.

use super::bytes::{Defect, Reader};
use crate::base::opaque;
use aes::cipher::{InnerIvInit, KeyInit, StreamCipher, StreamCipherCoreWrapper, StreamCipherSeek};
use aes::Aes256;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Bytes of a [`KeyName`].
pub const KEY_NAME_BYTES: usize = 16;
/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 16;
/// The length of the head of an encrypted block, before its content.
pub const BOX_HEAD_BYTES: usize = KEY_NAME_BYTES + NONCE_BYTES;

/// AES-256 in counter mode, with a big-endian counter of 128 bits.
type Counting<'a> = StreamCipherCoreWrapper<ctr::CtrCore<&'a Aes256, ctr::flavors::Ctr128BE>>;

/// The name of a key: the ID and the version that the server gave it, and a check value of its
/// bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KeyName {
    /// The ID that the server gave it.
    pub id: u32,
    /// The version.
    pub version: u32,
    /// A check value, derived from the key's bytes and the database.
    pub check: [u8; 8],
}

impl KeyName {
    /// Its bytes.
    pub fn bytes(&self) -> [u8; KEY_NAME_BYTES] {
        let mut bytes = [0; KEY_NAME_BYTES];
        bytes[..4].copy_from_slice(&self.id.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.version.to_le_bytes());
        bytes[8..].copy_from_slice(&self.check);
        bytes
    }

    /// Decodes a name.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Defect> {
        Ok(Self { id: reader.u32()?, version: reader.u32()?, check: reader.array()? })
    }
}

impl std::fmt::Display for KeyName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "key {} version {}", self.id, self.version)
    }
}

/// The fields before the content of an encrypted block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoxHead {
    /// The key that decrypts it.
    pub key: KeyName,
    /// Random bytes, used only for this block.
    pub nonce: [u8; NONCE_BYTES],
}

impl BoxHead {
    /// Its bytes.
    pub fn bytes(&self) -> [u8; BOX_HEAD_BYTES] {
        let mut bytes = [0; BOX_HEAD_BYTES];
        bytes[..KEY_NAME_BYTES].copy_from_slice(&self.key.bytes());
        bytes[KEY_NAME_BYTES..].copy_from_slice(&self.nonce);
        bytes
    }

    /// Decodes a head.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Defect> {
        Ok(Self { key: KeyName::decode(reader)?, nonce: reader.array()? })
    }
}

/// A version of a key of the server, prepared for one database.
pub struct Key {
    name: KeyName,
    boxes: Aes256,
    secret: Zeroizing<Vec<u8>>,
    database: [u8; 16],
}

opaque!(Key);

impl Key {
    /// Prepares the key with this ID, version and bytes for a database.
    pub fn new(id: u32, version: u32, secret: Zeroizing<Vec<u8>>, database: &[u8; 16]) -> Self {
        let made = |purpose: &[u8]| derive(&secret, &[purpose, &[0], database]);
        let boxes = Aes256::new((&*made(b"cheetah box")).into());
        let mut check = [0; 8];
        check.iter_mut().zip(made(b"cheetah box check").iter()).for_each(|(to, from)| *to = *from);
        Self { name: KeyName { id, version, check }, boxes, secret, database: *database }
    }

    /// Its name.
    pub fn name(&self) -> KeyName {
        self.name
    }

    /// Encrypts or decrypts the content of a block.
    pub fn apply(&self, nonce: &[u8; NONCE_BYTES], content: &mut [u8]) {
        counting(&self.boxes, nonce).apply_keystream(content);
    }

    /// Returns the key stream of the log file that has these random bytes in its header.
    pub fn log_stream(&self, salt: &[u8; NONCE_BYTES]) -> KeyStream {
        let key = derive(&self.secret, &[b"cheetah log", &[0], &self.database, salt]);
        KeyStream::new(&key)
    }
}

/// A stream of key bytes: each position has one byte.
pub struct KeyStream(Aes256);

opaque!(KeyStream);

impl KeyStream {
    /// Creates the stream of `key`, which must not be used for anything else.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(Aes256::new(key.into()))
    }

    /// Encrypts or decrypts bytes at position `at`.
    pub fn apply(&self, at: u64, bytes: &mut [u8]) {
        let mut stream = counting(&self.0, &[0; NONCE_BYTES]);
        stream.seek(at);
        stream.apply_keystream(bytes);
    }

    /// Encrypts or decrypts a block of at most 2^68 bytes. Each block must have a different number.
    pub fn apply_block(&self, number: u64, bytes: &mut [u8]) {
        let first = u128::from(number) << 64;
        counting(&self.0, &first.to_be_bytes()).apply_keystream(bytes);
    }
}

fn counting<'a>(cipher: &'a Aes256, first: &[u8; NONCE_BYTES]) -> Counting<'a> {
    Counting::from_core(ctr::CtrCore::inner_iv_init(cipher, first.into()))
}

fn derive(secret: &[u8], parts: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(secret).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    Zeroizing::new(mac.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(secret: &[u8], database: u8) -> Key {
        Key::new(1, 2, Zeroizing::new(secret.to_vec()), &[database; 16])
    }

    #[test]
    fn a_box_is_opened_by_its_key_and_nonce_alone() {
        let mut content = b"a row, and then some more of it".to_vec();
        let plain = content.clone();
        key(&[7; 16], 1).apply(&[3; 16], &mut content);
        assert_ne!(content, plain);
        for (key, nonce) in [(key(&[8; 16], 1), 3), (key(&[7; 16], 2), 3), (key(&[7; 16], 1), 4)] {
            let mut other = content.clone();
            key.apply(&[nonce; 16], &mut other);
            assert_ne!(other, plain);
        }
        key(&[7; 16], 1).apply(&[3; 16], &mut content);
        assert_eq!(content, plain);
    }

    #[test]
    fn the_stream_is_that_of_the_standard() {
        // NIST SP 800-38A, F.5.5: CTR-AES256.Encrypt, the first block.
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
        };
        let secret = bytes("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
        let cipher = Aes256::new(secret.as_slice().into());
        let first: [u8; 16] = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff").try_into().unwrap();
        let mut content = bytes("6bc1bee22e409f96e93d7e117393172a");
        counting(&cipher, &first).apply_keystream(&mut content);
        assert_eq!(content, bytes("601ec313775789a5b7a7f504bbf3d228"));
    }

    #[test]
    fn a_place_of_a_stream_has_the_same_bytes_however_it_is_reached() {
        let stream = KeyStream::new(&[5; 32]);
        let mut whole = vec![0; 1000];
        stream.apply(0, &mut whole);
        for at in [1, 15, 16, 17, 500] {
            let mut part = vec![0; 40];
            stream.apply(at as u64, &mut part);
            assert_eq!(part, whole[at..at + 40]);
        }
        let mut block = vec![0; 40];
        stream.apply_block(1, &mut block);
        assert_ne!(block, whole[..40]);
    }

    #[test]
    fn keys_and_log_files_have_streams_of_their_own() {
        let stream = |key: &Key, salt: u8| {
            let mut bytes = vec![0; 32];
            key.log_stream(&[salt; 16]).apply(0, &mut bytes);
            bytes
        };
        let one = key(&[7; 16], 1);
        assert_ne!(stream(&one, 1), stream(&one, 2));
        assert_ne!(stream(&one, 1), stream(&key(&[7; 16], 2), 1));
        assert_ne!(one.name().check, key(&[8; 16], 1).name().check);
        assert!(!format!("{one:?}").contains('['));
    }

    #[test]
    fn names_and_heads_read_back() {
        let head = BoxHead { key: key(&[1], 1).name(), nonce: [9; 16] };
        let bytes = head.bytes();
        assert_eq!(BoxHead::decode(&mut Reader::new(&bytes)), Ok(head));
        assert!(BoxHead::decode(&mut Reader::new(&bytes[1..])).is_err());
    }
}
