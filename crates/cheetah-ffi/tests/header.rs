//! `plugin/cheetah.h` declares what this crate exports: names, argument types, struct fields, enum
//! values.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

fn project(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The text without comments, attributes, and runs of blanks.
fn bare(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("/*") {
        out.push_str(&rest[..start]);
        rest = rest[start..].split_once("*/").expect("a comment ends").1;
    }
    out.push_str(rest);
    let lines = out.lines().map(|line| line.split("//").next().unwrap_or_default().trim());
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn rust_sources() -> String {
    let mut files: Vec<_> = fs::read_dir(project("crates/cheetah-ffi/src")).expect("sources").collect();
    files.sort_by_key(|file| file.as_ref().map(|file| file.path()).ok());
    let text = |file: std::io::Result<fs::DirEntry>| fs::read_to_string(file.expect("entry").path());
    files.into_iter().map(|file| bare(&text(file).expect("source"))).collect::<Vec<_>>().join(" ")
}

/// A type of the header in Rust's words.
fn c_type(words: &str) -> String {
    let words = words.trim();
    if let Some(inner) = words.strip_suffix('*') {
        let inner = inner.trim();
        return match inner.strip_prefix("const ") {
            Some(target) => format!("*const {}", c_type(target)),
            None => format!("*mut {}", c_type(inner)),
        };
    }
    match words {
        "uint8_t" => "u8".into(),
        "uint16_t" => "u16".into(),
        "uint32_t" => "u32".into(),
        "float" => "f32".into(),
        "uint64_t" => "u64".into(),
        "int32_t" => "i32".into(),
        "size_t" => "usize".into(),
        "void" => "c_void".into(),
        other => other.into(),
    }
}

/// "uint8_t *name" as (name, type).
fn c_declaration(text: &str) -> (String, String) {
    let text = text.trim();
    let split = text.rfind(|c: char| !c.is_alphanumeric() && c != '_').expect("a type and a name") + 1;
    let (kind, name) = text.split_at(split);
    (name.to_string(), c_type(kind))
}

fn rust_declaration(text: &str) -> (String, String) {
    let (name, kind) = text.trim().trim_start_matches("pub ").split_once(':').expect("name: type");
    (name.trim().to_string(), kind.trim().replace("crate::", "").replace("<'_>", ""))
}

type Signature = (Vec<(String, String)>, String);

fn rust_functions(source: &str) -> BTreeMap<String, Signature> {
    let mut found = BTreeMap::new();
    for piece in source.split("extern \"C\" fn cheetah_").skip(1) {
        let (name, rest) = piece.split_once('(').expect("arguments");
        let (arguments, rest) = rest.split_once(')').expect("end of arguments");
        let result = rest.split('{').next().unwrap_or_default().trim();
        let result = result.strip_prefix("->").map_or("()".into(), |kind| kind.trim().to_string());
        let arguments = arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty());
        found.insert(format!("cheetah_{name}"), (arguments.map(rust_declaration).collect(), result));
    }
    found
}

fn c_functions(header: &str) -> BTreeMap<String, Signature> {
    let mut found = BTreeMap::new();
    for statement in header.split(';').map(str::trim).filter(|statement| !statement.starts_with("typedef")) {
        let Some((head, arguments)) = statement.split_once('(') else { continue };
        let (name, mut result) = c_declaration(head);
        if !name.starts_with("cheetah_") {
            continue;
        }
        if result == "c_void" {
            result = "()".into();
        }
        let arguments =
            arguments.trim_end_matches(')').split(',').filter(|argument| argument.trim() != "void");
        found.insert(name, (arguments.map(c_declaration).collect(), result));
    }
    found
}

fn fields(body: &str, separator: char, one: fn(&str) -> (String, String)) -> Vec<(String, String)> {
    body.split(separator).map(str::trim).filter(|field| !field.is_empty()).map(one).collect()
}

fn rust_structs(source: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let mut found = BTreeMap::new();
    for piece in source.split("pub struct Cheetah").skip(1) {
        let Some((name, rest)) = piece.split_once('{') else { continue };
        let body = rest.split('}').next().unwrap_or_default();
        if !name.contains('(') && body.contains("pub ") && !body.contains("pub(crate)") {
            found.insert(format!("Cheetah{}", name.trim()), fields(body, ',', rust_declaration));
        }
    }
    found
}

fn c_structs(header: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let mut found = BTreeMap::new();
    for piece in header.split("typedef struct ").skip(1) {
        let Some((name, rest)) = piece.split_once('{') else { continue };
        if name.contains(';') {
            continue;
        }
        let body = rest.split('}').next().unwrap_or_default();
        found.insert(name.trim().to_string(), fields(body, ';', c_declaration));
    }
    found
}

#[test]
fn the_header_declares_every_function_as_it_is() {
    let header = bare(&fs::read_to_string(project("plugin/cheetah.h")).expect("header"));
    assert_eq!(c_functions(&header), rust_functions(&rust_sources()));
}

#[test]
fn the_header_declares_every_struct_as_it_is() {
    let header = bare(&fs::read_to_string(project("plugin/cheetah.h")).expect("header"));
    let (mut ours, theirs) = (rust_structs(&rust_sources()), c_structs(&header));
    // C has no word for memory that may be uninitialised, and puts an array's length behind the
    // name.
    ours.remove("CheetahSavepoint");
    let theirs: BTreeMap<_, _> = theirs.into_iter().filter(|(name, _)| name != "CheetahSavepoint").collect();
    assert_eq!(theirs, ours);
}

#[test]
fn the_header_numbers_codes_as_the_crate_does() {
    let header = bare(&fs::read_to_string(project("plugin/cheetah.h")).expect("header"));
    let body =
        header.split("enum CheetahCode {").nth(1).and_then(|rest| rest.split('}').next()).expect("codes");
    let parse = |entry: &str| {
        let (name, number) = entry.split_once('=').expect("name = number");
        (name.trim().replace("CHEETAH_", "").replace('_', "").to_lowercase(), number.trim().to_string())
    };
    let theirs: BTreeMap<_, _> = body.split(',').map(parse).collect();
    let source = rust_sources();
    let body = source.split("pub enum Code {").nth(1).and_then(|rest| rest.split('}').next()).expect("codes");
    let ours: BTreeMap<_, _> =
        body.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(parse).collect();
    assert_eq!(theirs, ours);
}
