//! Checks that lines of prose fit on a screen, and that folders are small.
//!
//! A folder with more than [`FILES_MAX`] source files must give a reason in a line with `Many
//! files:`, at the head of its `mod.rs`, `lib.rs`, `main.rs`, `__init__.py` or `README.md`.

use std::fs;
use std::path::{Path, PathBuf};

/// The maximum number of characters in a line of prose: comments, doc comments and Markdown.
const COLUMNS_MAX: usize = 100;
/// The maximum number of source files in a folder without a reason.
const FILES_MAX: usize = 15;
/// The files and folders whose long lines this test does not check. `tests/tools/test_docs.py`
/// checks the documents, including tables.
const LONG_LINES_EXEMPT: &[&str] = &["README.md", "docs", "lab", "tests"];
/// The words that begin a reason.
const REASON: &str = "Many files:";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Collects the folders and files below `dir` that are not generated, as paths from the root.
fn walk(root: &Path, dir: &Path, folders: &mut Vec<PathBuf>, files: &mut Vec<PathBuf>) {
    folders.push(dir.to_path_buf());
    for entry in fs::read_dir(root.join(dir)).expect("a folder is readable") {
        let entry = entry.expect("an entry is readable");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = dir.join(&name);
        let is_made =
            name.starts_with('.') || ["target", "build", "var", "third_party"].contains(&name.as_str());
        if entry.file_type().expect("an entry has a type").is_dir() {
            if !is_made {
                walk(root, &path, folders, files);
            }
        } else {
            files.push(path);
        }
    }
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

fn is_under(path: &Path, folders: &[&str]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// The numbers and lengths of lines of Markdown that are too long. Lines of output, in fences or
/// indented by four, and separators of tables may be longer.
fn long_lines_of_markdown(text: &str) -> Vec<(usize, usize)> {
    let (mut is_fenced, mut is_indented, mut is_after_blank) = (false, false, true);
    let mut long = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        is_indented = line.starts_with("    ") && (is_indented || is_after_blank);
        is_after_blank = line.trim().is_empty();
        let is_separator = line.starts_with('|') && line.chars().all(|c| "|-: ".contains(c));
        if !is_fenced && !is_fence && !is_indented && !is_separator && is_long(line) {
            long.push((number + 1, line.chars().count()));
        }
    }
    long
}

/// Like `long_lines_of_markdown`, for comments of Rust, C and C++ on separate lines.
fn long_lines_of_code(text: &str) -> Vec<(usize, usize)> {
    let is_comment = |line: &str| {
        let line = line.trim_start();
        line.starts_with("//") || line.starts_with("/*") || line.starts_with("* ")
    };
    let lines = text.lines().enumerate();
    let long = lines.filter(|(_, line)| is_comment(line) && is_long(line));
    long.map(|(number, line)| (number + 1, line.chars().count())).collect()
}

/// Returns whether a line has too many characters and can be broken. (An address cannot be broken.)
fn is_long(line: &str) -> bool {
    let without_address = line.split_whitespace().filter(|word| !word.contains("://"));
    line.chars().count() > COLUMNS_MAX
        && (!line.contains("://")
            || without_address.map(|word| word.chars().count() + 1).sum::<usize>() > COLUMNS_MAX)
}

#[test]
fn long_lines_are_found_and_those_that_cannot_be_broken_are_not() {
    let long = "word ".repeat(21);
    let address = format!("see https://{}", "a".repeat(100));
    let code = format!("let a = \"{long}\";\n    // {long}\n    /// {address}\n    /// {long}{address}\n");
    assert_eq!(long_lines_of_code(&code).iter().map(|line| line.0).collect::<Vec<_>>(), [2, 4]);
    let line = "-".repeat(100);
    let text = format!("{long}\n```\n{long}\n```\n|{line}|\n| {long} |\n[a]: {address}\n\n    {long}\n");
    assert_eq!(long_lines_of_markdown(&text).iter().map(|line| line.0).collect::<Vec<_>>(), [1, 6]);
    assert_eq!(long_lines_of_code("// \u{e4}\n"), []);
    assert!(!is_long(&"\u{e4}".repeat(COLUMNS_MAX)) && is_long(&"\u{e4}".repeat(COLUMNS_MAX + 1)));
}

#[test]
fn lines_of_prose_have_at_most_100_characters() {
    let root = root();
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    walk(&root, Path::new(""), &mut folders, &mut files);
    let (mut read_count, mut wrong) = (0, Vec::new());
    for file in files.iter().filter(|file| !is_under(file, LONG_LINES_EXEMPT)) {
        let long_lines = match extension(file) {
            "rs" | "cc" | "h" => long_lines_of_code,
            "md" => long_lines_of_markdown,
            _ => continue,
        };
        read_count += 1;
        let text = fs::read_to_string(root.join(file)).expect("a source file is readable");
        wrong.extend(
            long_lines(&text).iter().map(|(line, length)| format!("{}:{line}: {length}", file.display())),
        );
    }
    assert!(read_count > 0, "the test no longer finds any file");
    assert!(
        wrong.is_empty(),
        "lines of prose with more than {COLUMNS_MAX} characters:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn folders_with_many_files_state_a_reason() {
    let root = root();
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    walk(&root, Path::new(""), &mut folders, &mut files);
    let is_source = |file: &&PathBuf| ["rs", "cc", "h", "py"].contains(&extension(file));
    let mut wrong = Vec::new();
    for folder in &folders {
        let beside = files.iter().filter(is_source).filter(|file| file.parent() == Some(folder.as_path()));
        let count = beside.count();
        if count > FILES_MAX && !has_reason(&root.join(folder)) {
            wrong.push(format!("{}: {count}", folder.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "folders with more than {FILES_MAX} files and no reason:\n{}",
        wrong.join("\n")
    );
}

fn has_reason(folder: &Path) -> bool {
    ["mod.rs", "lib.rs", "main.rs", "__init__.py", "README.md"]
        .iter()
        .any(|head| fs::read_to_string(folder.join(head)).is_ok_and(|text| text.contains(REASON)))
}
