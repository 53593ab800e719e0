//! The layers of the engine, as ARCHITECTURE.md draws them: a module imports only from lower
//! layers.
//!
//! The test reads the source text, so a wrong dependency fails a test, without a review.

use std::fs;
use std::path::{Path, PathBuf};

/// The lowest layer is first. Modules of one layer do not import each other.
const LAYERS: &[&[&str]] = &[
    &["base"],
    &["memory", "format", "durable"],
    &["keys"],
    &["segment", "page_map", "log", "sort"],
    &["fulltext"],
    &["pool"],
    &["leaves"],
    &["checkpoint", "backup"],
    &["tree"],
    &["txn"],
    &["table"],
    &["recovery", "check"],
    &["db"],
    &["salvage", "embedded"],
    &["server", "testing"],
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

/// The names that directly follow `crate::` in code without line breaks. `crate::{a, b::{c, d}}`
/// gives `a` and `b`.
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
        let relative = file.strip_prefix(&source).expect("the file is under src");
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

/// The words that must not occur in the code of a layer, as ARCHITECTURE.md says. The pool does not
/// know keys, and the tree does not know transactions.
const UNKNOWN: &[(&str, &[&str])] = &[
    (
        "pool",
        &[
            "key: &[u8]",
            "compare_keys",
            ".search(",
            ".search_near(",
            "find_child",
            "hash_key",
            "each_key",
            "key_into",
            ".low()",
            ".high()",
            "buffered_keys",
        ],
    ),
    ("tree", &["TxnId", "UndoPtr", "Snapshot", "freeze_below"]),
];

#[test]
fn a_layer_does_not_know_what_belongs_to_others() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (layer, words) in UNKNOWN {
        let mut files = Vec::new();
        rust_files(&source.join(layer), &mut files);
        assert!(files.len() > 10, "the test no longer finds the files of {layer}");
        for file in files {
            let name =
                file.strip_prefix(&source).expect("the file is under src").to_string_lossy().into_owned();
            if name.contains("test") {
                continue;
            }
            let code = code_of(&file);
            let known = words.iter().filter(|word| code.contains(**word)).collect::<Vec<_>>();
            assert!(known.is_empty(), "{name} uses {known:?}, which belong to another layer");
        }
    }
}

/// The modules of the pool, the lowest first. A file imports from its own module and from lower
/// modules. From higher modules, it imports only types that the pool exports.
const POOL_ROOMS: &[&str] = &[
    "counters",
    "shards",
    "frames",
    "mtr",
    "images",
    "trees",
    "dictionaries",
    "eviction",
    "beside",
    "writing",
    "pages",
    "reading",
    "upkeep",
    "statistics",
    "buffer_pool",
];

#[test]
fn no_import_inside_the_pool_runs_upward() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source.join("pool"), &mut files);
    let (mut seen, mut wrong) = (0, Vec::new());
    for file in files {
        let name = file.strip_prefix(&source).expect("the file is under src").with_extension("");
        let mut module = name.iter().map(|part| part.to_string_lossy().into_owned()).collect::<Vec<_>>();
        if module.last().is_some_and(|last| last == "mod") {
            module.pop();
        }
        let Some(room) = module.get(1).filter(|room| !room.contains("test")).cloned() else { continue };
        let place = |room: &str| POOL_ROOMS.iter().position(|name| *name == room);
        let own =
            place(&room).unwrap_or_else(|| panic!("the module {room} of the pool is missing in POOL_ROOMS"));
        for path in named_paths(&code_of(&file), &module) {
            let Some(other) = path.get(1).filter(|_| path[0] == "pool").and_then(|room| place(room)) else {
                continue;
            };
            seen += 1;
            if other > own {
                wrong.push(format!("{}: {}", name.display(), path.join("::")));
            }
        }
    }
    assert!(seen > 50, "the test no longer finds any import");
    assert!(wrong.is_empty(), "imports that run upward:\n{}", wrong.join("\n"));
}

/// Limits the size of the pool's interface, so that the interface remains readable.
const POOL_METHODS_MAX: usize = 150;

#[test]
fn the_pool_has_few_methods() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut count = 0;
    for file in files.iter().filter(|file| !file.to_string_lossy().contains("test")) {
        let mut is_inside = false;
        for line in code_of(file).lines() {
            is_inside = match line {
                "}" => false,
                line => is_inside || line.starts_with("impl") && line.ends_with(" Pool {"),
            };
            let item = line.strip_prefix("    ").filter(|_| is_inside).unwrap_or_default();
            count += usize::from(item.starts_with("fn ") || item.starts_with("pub") && item.contains(" fn "));
        }
    }
    assert!((100..=POOL_METHODS_MAX).contains(&count), "the pool has {count} methods");
}

/// The files that start threads, as ARCHITECTURE.md says. Tests do not count, except those of
/// `planted.rs`, which need a feature of the crate.
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
            file.strip_prefix(&source).expect("the file is under src").to_string_lossy().into_owned();
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

/// The maximum number of files in an import cycle. A reader has to read all files of a cycle
/// together.
const CYCLE_FILES_MAX: usize = 3;

/// The paths in a `use`: `a::{b, c::{d, e}}` gives `a::b`, `a::c::d` and `a::c::e`.
fn expanded(path: &str) -> Vec<String> {
    let Some((head, rest)) = path.split_once('{') else {
        let name = path.split(" as ").next().unwrap_or_default();
        return vec![name.split_whitespace().collect()];
    };
    let list = rest.rsplit_once('}').map_or(rest, |(list, _)| list);
    let (mut depth, mut item, mut items) = (0, String::new(), Vec::new());
    for c in list.chars().chain([',']) {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            items.push(std::mem::take(&mut item));
        } else {
            item.push(c);
        }
    }
    let head = head.trim();
    let items = items.iter().map(|item| item.trim()).filter(|item| !item.is_empty());
    items.flat_map(expanded).map(|item| format!("{head}{item}")).collect()
}

/// The source of a file without its comments and tests.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("source is readable");
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

/// The paths of this crate that the code of `module` names, as modules and items from the root of
/// the crate.
fn named_paths(code: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("super::").chain(code.match_indices("crate::")) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c == ':' || c == '_' || c.is_alphanumeric()) {
            continue;
        }
        let is_use = code[..at].trim_end().ends_with("use");
        let end = |c: char| if is_use { c == ';' } else { c != ':' && c != '_' && !c.is_alphanumeric() };
        let path = code[at..].split(end).next().unwrap_or_default();
        for path in expanded(path) {
            let mut parts = path.split("::").map(str::to_string).collect::<Vec<_>>();
            let mut from = module.to_vec();
            if parts.first().is_some_and(|part| part == "crate") {
                from.clear();
                parts.remove(0);
            }
            while parts.first().is_some_and(|part| part == "super") {
                from.pop();
                parts.remove(0);
            }
            paths.push([from, parts].concat());
        }
    }
    paths
}

/// The imports of each file. A name that a `mod.rs` re-exports counts for the file that defines it.
fn imports() -> std::collections::BTreeMap<String, Vec<String>> {
    use std::collections::BTreeMap;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut modules = BTreeMap::new();
    for file in &files {
        let name = file.strip_prefix(&source).expect("the file is under src").with_extension("");
        let mut module = name.iter().map(|part| part.to_string_lossy().into_owned()).collect::<Vec<_>>();
        if module.last().is_some_and(|last| last == "mod" || last == "lib") {
            module.pop();
        }
        modules.insert(module, file.clone());
    }
    let mut exports = BTreeMap::new();
    for (module, file) in modules.iter().filter(|(_, file)| file.ends_with("mod.rs")) {
        for statement in code_of(file).split(';').filter(|part| part.contains("pub")) {
            let Some((_, path)) = statement.split_once("use ") else { continue };
            for path in expanded(path) {
                let path = path.split("::").map(str::to_string).collect::<Vec<_>>();
                let Some(name) = path.last().cloned() else { continue };
                let path = match path.first().map(String::as_str) {
                    Some("crate") => path[1..].to_vec(),
                    Some("super") => [&module[..module.len() - 1], &path[1..]].concat(),
                    _ => [&module[..], &path[..]].concat(),
                };
                exports.insert([&module[..], &[name]].concat(), path);
            }
        }
    }
    let name_of = |file: &Path| {
        file.strip_prefix(&source).expect("the file is under src").to_string_lossy().into_owned()
    };
    let file_of = |mut path: Vec<String>| {
        for _ in 0..8 {
            let longest = (1..=path.len()).rev();
            let mut known = longest.map(|len| path.split_at(len));
            let found = known.find(|(head, _)| modules.contains_key(*head) || exports.contains_key(*head))?;
            match exports.get(found.0).filter(|_| !modules.contains_key(found.0)) {
                Some(target) => path = [target, found.1].concat(),
                None => return modules.get(found.0).map(|file| name_of(file)),
            }
        }
        None
    };
    let mut imports = BTreeMap::new();
    for (module, file) in &modules {
        let name = name_of(file);
        if name.ends_with("mod.rs") || name.ends_with("lib.rs") || name.contains("tests") {
            continue;
        }
        let targets = named_paths(&code_of(file), module).into_iter().filter_map(file_of);
        imports.insert(name.clone(), targets.filter(|target| *target != name).collect());
    }
    imports
}

#[test]
fn no_cycle_of_files_is_larger_than_three() {
    let imports = imports();
    assert!(imports.values().flatten().count() > 500, "the test no longer finds imports");
    let reached_from = |file: &String| {
        let (mut reached, mut open) = (std::collections::BTreeSet::new(), vec![file.clone()]);
        while let Some(file) = open.pop() {
            let targets = imports.get(&file).into_iter().flatten();
            open.extend(targets.filter(|target| reached.insert((*target).clone())).cloned());
        }
        reached
    };
    let reached =
        imports.keys().map(|file| (file, reached_from(file))).collect::<std::collections::BTreeMap<_, _>>();
    let mut wrong = std::collections::BTreeSet::new();
    for (file, targets) in &reached {
        let cycle =
            targets.iter().filter(|target| reached.get(target).is_some_and(|back| back.contains(*file)));
        let cycle = cycle.cloned().collect::<Vec<_>>();
        if cycle.len() > CYCLE_FILES_MAX {
            wrong.insert(cycle);
        }
    }
    assert!(wrong.is_empty(), "cycles of more than {CYCLE_FILES_MAX} files: {wrong:#?}");
}
