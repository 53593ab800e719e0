//! The layers of the engine, as ARCHITECTURE.md draws them: a module imports only from lower ones.
//!
//! The test reads the source text, so that a new edge shows up as a failing test and not as a review comment.

use std::fs;
use std::path::{Path, PathBuf};

/// Lowest layer first; modules of one layer do not import each other.
const LAYERS: &[&[&str]] = &[
    &["base"],
    &["memory", "format", "durable"],
    &["segment", "page_map", "log", "sort"],
    &["pool"],
    &["checkpoint"],
    &["tree"],
    &["txn"],
    &["table"],
    &["recovery", "check"],
    &["db"],
];

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&module))
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("source folder is readable") {
        let path = entry.expect("directory entry is readable").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The names that directly follow `crate::` in a text without line breaks; `crate::{a, b::{c, d}}` gives `a` and `b`.
fn imported_modules(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            names.push(first_name(rest));
            continue;
        };
        let mut depth = 1;
        let mut item = String::new();
        for c in list.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if c == ',' && depth == 1 {
                names.push(first_name(&item));
                item.clear();
            } else {
                item.push(c);
            }
        }
        names.push(first_name(&item));
    }
    names
}

fn first_name(path: &str) -> String {
    path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn imports_are_found_in_every_shape() {
    let code = "use crate::base::Lsn;    use crate::{    format::{page, row},    pool::Pool,};fn f() { crate::log::x() }";
    assert_eq!(imported_modules(code), ["base", "format", "pool", "", "log"]);
}

#[test]
fn a_module_imports_only_from_lower_layers() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut edges_seen = 0;
    let mut wrong = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&source).expect("file lies under src");
        let first = relative.iter().next().expect("a path has a first part").to_string_lossy();
        let module = first.trim_end_matches(".rs").to_string();
        let Some(layer) = layer_of(&module) else {
            assert_eq!(module, "lib", "module '{module}' has no layer: add it here and to ARCHITECTURE.md");
            continue;
        };
        let text = fs::read_to_string(&file).expect("source is readable");
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for name in imported_modules(&code) {
            let Some(target) = layer_of(&name) else { continue };
            edges_seen += 1;
            if name != module && target >= layer {
                wrong.push(format!("{}: {module} imports {name}", relative.display()));
            }
        }
    }
    assert!(edges_seen > 0, "the test no longer finds any import");
    assert!(wrong.is_empty(), "imports against the layers:\n{}", wrong.join("\n"));
}

/// Those that start threads, as ARCHITECTURE.md says; tests apart, of which `planted.rs` has its own.
const STARTERS: &[&str] = &[
    "base/planted.rs",
    "db/threads.rs",
    "pool/writing/ended_epoch.rs",
    "pool/writing/write_beside.rs",
    "sort/ahead.rs",
    "sort/buffer.rs",
    "sort/filling.rs",
    "sort/sorter.rs",
    "sort/writing.rs",
    "table/load/index_trees.rs",
];

#[test]
fn threads_are_started_in_few_files() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut found = Vec::new();
    for file in files {
        let relative =
            file.strip_prefix(&source).expect("file lies under src").to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).expect("source is readable");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let starts =
            ["thread::Builder", "thread::spawn", "thread::scope"].iter().any(|call| code.contains(call));
        if starts && !relative.ends_with("tests.rs") && !relative.contains("tests/") {
            found.push(relative);
        }
    }
    found.sort();
    assert_eq!(found, STARTERS);
}

#[test]
fn only_durable_calls_sync() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    for file in files {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name == "durable.rs" || name.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("source is readable");
        for (number, line) in text.lines().enumerate() {
            let calls = line.contains(".sync_data(") || line.contains(".sync_dir(");
            assert!(
                !calls || line.trim_start().starts_with("//"),
                "{}:{} syncs; only durable.rs may",
                file.display(),
                number + 1
            );
        }
    }
}
