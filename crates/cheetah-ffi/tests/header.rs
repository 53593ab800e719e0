//! Checks that `plugin/cheetah.h` equals the header that cbindgen generates from this crate's
//! declarations.

use std::fs;
use std::path::PathBuf;

/// The command that updates the header.
const COMMAND: &str = "UPDATE=1 cargo test -p cheetah-ffi --test header";

fn here(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(here("cbindgen.toml")).expect("cbindgen.toml");
    let builder = cbindgen::Builder::new().with_config(config).with_src(here("src/lib.rs"));
    let mut header = Vec::new();
    builder.generate().expect("declarations that cbindgen understands").write(&mut header);
    String::from_utf8(header).expect("text")
}

/// Counts the functions that the sources export.
fn exported() -> usize {
    let files = fs::read_dir(here("src")).expect("sources").map(|file| file.expect("entry").path());
    files.map(|file| fs::read_to_string(file).expect("source").matches("\n#[no_mangle]\n").count()).sum()
}

#[test]
fn the_header_is_what_the_declarations_make() {
    let (path, header) = (here("../../plugin/cheetah.h"), generated());
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &header).expect("plugin/cheetah.h can be written");
    }
    let kept = fs::read_to_string(&path).expect("plugin/cheetah.h");
    let same = kept.lines().zip(header.lines()).take_while(|(kept, made)| kept == made).count();
    assert!(
        kept == header,
        "plugin/cheetah.h:{}: the header differs from the declarations in Rust. Run: {COMMAND}",
        same + 1
    );
    let (_, functions) = header.split_once("extern \"C\"").expect("functions after the types");
    let begins = |line: &&str| line.contains("cheetah_") && !line.trim_start().starts_with("//");
    assert_eq!(functions.lines().filter(begins).count(), exported(), "the number of functions in the header");
}
