//! Reads keys from an unencrypted file in the format of the server's plugin `file_key_management`.
//! The file has a line `number;key` for each key, with the key in hexadecimal digits. Lines that
//! begin with `#` are comments. These keys have version 1. For keys of other plugins a line may be
//! `number:version;key`.

use crate::commands::Failure;
use cheetah::server::Zeroizing;
use cheetah::{KeyService, KeySource};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

type Secret = Zeroizing<Vec<u8>>;

struct FileOfKeys(BTreeMap<(u32, u32), Secret>);

impl KeyService for FileOfKeys {
    fn newest_version(&self, id: u32) -> Option<u32> {
        self.0.range((id, 0)..=(id, u32::MAX)).next_back().map(|((_, version), _)| *version)
    }

    fn key(&self, id: u32, version: u32) -> Option<Secret> {
        self.0.get(&(id, version)).cloned()
    }
}

/// Reads the file. Errors do not show the file's content.
pub(crate) fn read(path: &Path) -> Result<KeySource, Failure> {
    let wrong = |what: String| Failure(format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let text = Zeroizing::new(text);
    let mut keys = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parsed = parse(line);
        let (name, secret) = parsed.ok_or_else(|| {
            wrong(format!(
                "line {} is not 'number;key' with a key of 32, 48 or 64 hexadecimal digits",
                number + 1
            ))
        })?;
        keys.insert(name, secret);
    }
    Ok(KeySource::new(Arc::new(FileOfKeys(keys))))
}

fn parse(line: &str) -> Option<((u32, u32), Secret)> {
    let (name, digits) = line.split_once(';')?;
    let (id, version) = name.split_once(':').unwrap_or((name, "1"));
    let digits = digits.trim();
    if !matches!(digits.len(), 32 | 48 | 64) || !digits.is_ascii() {
        return None;
    }
    let bytes = (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok());
    let secret = Zeroizing::new(bytes.collect::<Option<Vec<u8>>>()?);
    Some(((id.trim().parse().ok()?, version.trim().parse().ok()?), secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_numbers_versions_and_keys_are_read_and_others_refused() {
        let key = "00112233445566778899aabbccddeeff";
        let ((id, version), secret) = parse(&format!("7;{key}")).unwrap();
        assert_eq!((id, version, secret[1]), (7, 1, 0x11));
        assert_eq!(parse(&format!("7:12;{key}{key}")).unwrap().0, (7, 12));
        for wrong in [format!("7;{}", &key[1..]), format!("x;{key}"), format!("7:;{key}"), "7".into()] {
            assert!(parse(&wrong).is_none(), "{wrong}");
        }
    }
}
