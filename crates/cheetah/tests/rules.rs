//! The lists of rules and planted bugs in the documents agree with the source: every bug has a test
//! and is told of, every test that is named is there, and every rule has a test that begins with
//! its name.

use std::fs;
use std::path::{Path, PathBuf};

/// Rules of the design that need a test of their own; those that the tables say do not arise are
/// not among them.
const RULES: [&str; 23] = [
    "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "h1", "h2", "h3", "h4", "h5", "h6", "h7",
    "h8", "h9", "m1", "m2", "m3", "m8",
];

/// Every source file of the crate, with its path in the crate.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    ["src", "tests"].iter().for_each(|folder| collect(&root.join(folder), &mut files));
    for (path, _) in &mut files {
        *path = path.strip_prefix(root).expect("it lies in the crate").to_owned();
    }
    files
}

fn collect(folder: &Path, files: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("a source folder is readable") {
        let path = entry.expect("a directory entry is readable").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("source is readable");
            files.push((path, text));
        }
    }
}

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/developers").join(name);
    fs::read_to_string(path).expect("the document is readable")
}

/// The texts between `start` and `end`, each time.
fn between<'t>(text: &'t str, start: &str, end: char) -> Vec<&'t str> {
    text.split(start).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

/// The test that lets a checker judge histories of the engine with a bug planted.
fn judged_bugs() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/isolation/test_planted.py");
    fs::read_to_string(path).expect("the test is readable")
}

/// Whether the file is one of tests, or a folder of them.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_string_lossy().contains("tests"))
}

#[test]
fn every_planted_bug_has_a_test_and_is_told_of() {
    let files = sources();
    let documents = document("durability.md") + &document("transactions.md");
    let mut names: Vec<_> = files
        .iter()
        .filter(|(path, _)| !path.ends_with("base/planted.rs"))
        .flat_map(|(_, text)| between(text, "is_on(\"", '"'))
        .collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() > 50, "the test no longer finds the bugs: {names:?}");
    let is_named = |text: &str, name: &str| text.contains(&format!("\"{name}\""));
    let judged = judged_bugs();
    for name in names {
        let has_test = files.iter().any(|(path, text)| is_test(path) && is_named(text, name));
        assert!(has_test || is_named(&judged, name), "no test plants '{name}'");
        assert!(documents.contains(&format!("`{name}`")), "no document tells of '{name}'");
    }
}

#[test]
fn every_test_in_the_list_of_rules_is_there_and_begins_with_its_rule() {
    let files = sources();
    let text = document("durability.md");
    let (_, list) = text.split_once("## The rules of the design").expect("the list is there");
    let mut count = 0;
    for item in list.split("\n- **").skip(1) {
        let (rule, told) = item.split_once("**").expect("a rule has a name");
        let (rule, told) = (rule.to_lowercase(), told.split_once("- Tests: ").map_or("", |(_, told)| told));
        let scenarios = told.split_once("- Planted: ").map_or(told, |(scenarios, _)| scenarios);
        for name in scenarios.split('`').skip(1).step_by(2) {
            assert!(name.starts_with(&format!("{rule}_")), "'{name}' does not begin with '{rule}'");
            let start = format!("fn {}", name.trim_end_matches('.'));
            assert!(files.iter().any(|(_, text)| text.contains(&start)), "there is no test '{name}'");
            count += 1;
        }
    }
    assert!(count > 20, "the test no longer finds the names");
}

#[test]
fn every_rule_has_a_test_that_begins_with_its_name() {
    let files = sources();
    for rule in RULES {
        let start = format!("fn {rule}_");
        let has_test = files.iter().any(|(_, text)| text.contains(&start));
        assert!(has_test, "no test begins with '{rule}_'");
    }
}

/// Those of the reader who attacked the design for data larger than memory: all are told of, and
/// those that can arise have bugs and tests.
#[test]
fn rules_of_the_second_reader_are_told_of_with_bugs_and_tests_that_are_there() {
    let files = sources();
    let text = document("decisions/0049-rules-of-a-second-reader.md");
    for number in 1..=43 {
        assert!(text.contains(&format!("**R{number}**")), "nothing is told of R{number}");
    }
    let is_there = |what: &str| files.iter().any(|(_, text)| text.contains(what));
    let (arises, _) = text.split_once("\n## What cannot arise").expect("the part is there");
    let mut count = 0;
    for item in arises.split("\n- **").skip(1) {
        let names = item.split('`').skip(1).step_by(2).collect::<Vec<_>>();
        let (bugs, others): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.contains(": "));
        let (files_named, tests): (Vec<_>, Vec<_>) = others.into_iter().partition(|name| name.contains('/'));
        assert!(!bugs.is_empty() && !files_named.is_empty(), "{item}");
        for bug in bugs {
            assert!(is_there(&format!("\"{bug}\"")), "there is no bug '{bug}'");
        }
        for file in files_named {
            assert!(files.iter().any(|(path, _)| path == Path::new(file)), "there is no file '{file}'");
        }
        for test in tests {
            assert!(is_there(&format!("fn {test}(")), "there is no test '{test}'");
        }
        count += 1;
    }
    assert!(count > 20, "the test no longer finds the rules");
}
