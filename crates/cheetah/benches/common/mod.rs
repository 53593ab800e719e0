//! Shared by the benches: arguments, the kernel's statistics of the process, and tables.
#![allow(dead_code, reason = "each bench uses a part")]

use cheetah::testing::base::{Error, Result};
use cheetah::testing::format::image::Compression;
use cheetah::testing::format::row::RowFormatVersion;
use cheetah::testing::table::{IndexSpec, TableSpec};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The arguments of the command line, without those that `cargo bench` adds.
pub(crate) fn arguments() -> impl Iterator<Item = String> {
    std::env::args().skip(1).filter(|argument| argument != "--bench")
}

/// The first argument, which must be a directory.
pub(crate) fn directory(arguments: &mut impl Iterator<Item = String>) -> PathBuf {
    arguments.next().expect("the first argument is a directory").into()
}

/// Arguments of the form name=value, by name.
pub(crate) fn options(arguments: impl Iterator<Item = String>) -> BTreeMap<String, String> {
    let pair = |argument: String| {
        let (name, value) = argument.split_once('=').expect("arguments look like name=value");
        (name.to_owned(), value.to_owned())
    };
    arguments.map(pair).collect()
}

/// An option as a number.
pub(crate) fn number(options: &BTreeMap<String, String>, name: &str, default: u64) -> u64 {
    options.get(name).map_or(default, |value| value.parse().expect("a number"))
}

/// Creates an empty directory. First removes an existing directory.
pub(crate) fn empty(directory: &Path) -> Result<()> {
    let _ = std::fs::remove_dir_all(directory);
    std::fs::create_dir_all(directory).map_err(|e| Error::io("create", "the directory", e))
}

/// Processor time of the threads of this process in nanoseconds, by thread name. The map is empty
/// on systems other than Linux.
pub(crate) fn cpu_ns() -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |name| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let ns = read("schedstat").split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        *all.entry(read("comm").trim().to_string()).or_insert(0) += ns;
    }
    all
}

/// Memory of this process in KiB, from the line `field` of /proc/self/status. 0 on systems other
/// than Linux.
pub(crate) fn memory_kib(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// An index with opaque entries.
pub(crate) fn index(name: &str, unique: bool, max_key_bytes: u32) -> IndexSpec {
    IndexSpec { name: name.into(), unique, max_key_bytes, row_format: RowFormatVersion::opaque() }
}

/// A table with a primary key.
pub(crate) fn table(name: &str, row_format: RowFormatVersion, indexes: Vec<IndexSpec>) -> TableSpec {
    TableSpec {
        name: name.into(),
        row_format,
        indexes,
        compression: Compression::default(),
        hidden_key: false,
        auto_increment: 1,
        extra: Vec::new(),
        fulltext: Vec::new(),
        is_temporary: false,
        encryption: Default::default(),
    }
}
