//! Checks that the rules in the documents agree with the source. Every named test exists, and every
//! rule has a test whose name begins with the rule's name. Every planted bug has a test, and the
//! list of planted bugs is generated from the tests. The table of asserted invariants is generated
//! from the assertions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs, mem};

/// The rules of the design that need their own tests. The list omits rules whose failure cannot
/// occur, according to the tables in the documents.
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
        *path = path.strip_prefix(root).expect("the file is in the crate").to_owned();
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

/// The test in which a checker judges histories of the engine with a planted bug.
const JUDGED: &str = "tests/isolation/test_planted.py";
/// The generated list, and its head.
const LIST: &str = "docs/developers/planted-bugs.md";
const LIST_HEAD: &str = "\
# Planted bugs

A planted bug makes the engine do the wrong thing in one place
(`crates/cheetah/src/base/planted.rs`). A test plants it to prove that the harness detects it. The
list is ordered by the file of that test. The rules that a bug breaks follow in brackets, if they
have a name. [durability.md](durability.md), [leaves.md](leaves.md) and the heads of modules define
the rules.

`UPDATE=1 cargo test -p cheetah --test rules` makes this list.
";

/// The bugs that tests plant: for each file of tests, each bug with the rules that it breaks.
type Caught = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns whether the path is a test file, or is in a folder of tests.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_string_lossy().contains("tests"))
}

/// The places in a source file where a bug can be planted: the position of the first quote of its
/// name, and the name. The name is the last argument of `sound!`, after the condition.
fn places(text: &str) -> Vec<(usize, &str)> {
    let place = |(at, start): (usize, &str)| {
        let (before, _) = arguments(&text[at + start.len()..]).rsplit_once('"')?;
        let quote = before.rfind('"')?;
        Some((at + start.len() + quote, &before[quote + 1..]))
    };
    text.match_indices("sound!(").filter_map(place).collect()
}

/// Returns the text up to the parenthesis that closes the list of arguments.
fn arguments(text: &str) -> &str {
    let mut depth = 1;
    let closing = text.find(|letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        depth == 0
    });
    &text[..closing.unwrap_or(text.len())]
}

/// The names of all bugs that can be planted.
fn bugs(files: &[(PathBuf, String)]) -> BTreeSet<&str> {
    let is_of_engine = |path: &Path| path.starts_with("src") && !path.ends_with("base/planted.rs");
    let of_engine = files.iter().filter(|(path, _)| is_of_engine(path));
    of_engine.flat_map(|(_, text)| places(text)).map(|(_, name)| name).collect()
}

/// The bugs that a test file plants. A place for a bug in that file (the model checker has some)
/// does not count as a planted bug.
fn planted_in(text: &str, bugs: &BTreeSet<&str>) -> BTreeMap<String, BTreeSet<String>> {
    let places = places(text).into_iter().map(|(at, _)| at).collect::<BTreeSet<_>>();
    let mut planted = BTreeMap::<_, BTreeSet<_>>::new();
    let (mut broken, mut rules, mut line_at) = (Vec::new(), Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        if let Some(rule) = line.strip_prefix("/// Breaks ") {
            broken.push(rule.split(':').next().unwrap_or(rule).trim_end().trim_end_matches('.').to_owned());
        } else if let Some(test) = line.strip_prefix("fn ") {
            rules = mem::take(&mut broken);
            rules.extend(rule_of(test));
        }
        for (at, _) in line.match_indices('"') {
            let name = line[at + 1..].split('"').next().unwrap_or_default();
            if bugs.contains(name) && !places.contains(&(line_at + at)) {
                planted.entry(name.to_owned()).or_default().extend(rules.iter().cloned());
            }
        }
        line_at += line.len();
    }
    planted
}

/// The rule at the start of a test's name.
fn rule_of(test: &str) -> Option<String> {
    let (rule, _) = test.split_once('_')?;
    let number = rule.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
    let is_rule = rule.len() > number.len() && number.parse::<u32>().is_ok();
    is_rule.then(|| rule.to_uppercase())
}

fn caught(files: &[(PathBuf, String)]) -> Caught {
    let bugs = bugs(files);
    let judged = fs::read_to_string(repository().join(JUDGED)).expect("the test is readable");
    let tests = files.iter().filter(|(path, _)| is_test(path));
    let tests = tests.map(|(path, text)| (format!("crates/cheetah/{}", path.display()), text));
    let tests = tests.chain([(JUDGED.to_owned(), &judged)]);
    let caught = tests.map(|(path, text)| (path, planted_in(text, &bugs)));
    caught.filter(|(_, planted)| !planted.is_empty()).collect()
}

fn list(caught: &Caught) -> String {
    let mut list = LIST_HEAD.to_owned();
    for (path, planted) in caught {
        list += &format!("\n## `{path}`\n\n");
        for (bug, rules) in planted {
            let rules = rules.iter().cloned().collect::<Vec<_>>().join(", ");
            list += &if rules.is_empty() { format!("- `{bug}`\n") } else { format!("- `{bug}` ({rules})\n") };
        }
    }
    list
}

#[test]
fn every_planted_bug_has_a_test_and_stands_in_the_list() {
    let files = sources();
    let bugs = bugs(&files);
    assert!(bugs.len() > 250, "the test no longer finds the bugs: {bugs:?}");
    let caught = caught(&files);
    for bug in bugs {
        let is_caught = caught.values().any(|planted| planted.contains_key(bug));
        assert!(is_caught, "no test plants '{bug}'");
    }
    let made = list(&caught);
    if env::var_os("UPDATE").is_some() {
        fs::write(repository().join(LIST), &made).expect("the list can be written");
    }
    let written = fs::read_to_string(repository().join(LIST)).unwrap_or_default();
    assert!(written == made, "{LIST} is out of date: run this test with UPDATE=1");
}

/// The generated table of asserted rules, and its head.
const ASSERTED: &str = "docs/developers/invariants.md";
const ASSERTED_HEAD: &str = "\
# Invariants that are asserted

The rules that running code checks where they could be broken. `always`: also in a release, where a
wrong byte would reach the disk or nobody could go on; `debug`: in tests only, as it costs something
or the loss is met elsewhere. A rule is defined at the head of its module or of the folder's
`mod.rs`, or in [durability.md](durability.md) or [leaves.md](leaves.md). Bytes that were read are
verified first: damage is an error. Paths are below `crates/cheetah/src`.

`UPDATE=1 cargo test -p cheetah --test rules` makes this table from the messages, which begin with
the name of the rule.

| where | rule | asserted | when |
|---|---|---|---|
";
/// The minimum number of asserted rules.
const ASSERTED_MIN: usize = 40;

/// An assertion whose message names a rule.
#[derive(PartialEq, Debug)]
struct Asserted<'a> {
    rule: &'a str,
    text: &'a str,
    is_always: bool,
}

/// The assertions of a source that name a rule.
fn asserted_in(text: &str) -> Vec<Asserted<'_>> {
    let (code, _) = text.split_once("\nmod tests {").unwrap_or((text, ""));
    let starts = ["assert!(", "assert_eq!(", "assert_ne!(", ".expect("].into_iter();
    let mut starts: Vec<_> = starts.flat_map(|start| code.match_indices(start)).collect();
    starts.sort_unstable();
    let asserted = starts.into_iter().filter_map(|(at, start)| {
        let (rule, text) = message(arguments(&code[at + start.len()..]))?;
        Some(Asserted { rule, text, is_always: !code[..at].ends_with("debug_") })
    });
    asserted.collect()
}

/// The rule and the rest of a message among these arguments.
fn message(arguments: &str) -> Option<(&str, &str)> {
    arguments.split('"').find_map(|part| {
        let (rule, text) = part.split_once(": ")?;
        let number = rule.strip_prefix(|letter: char| letter.is_ascii_uppercase())?;
        number.parse::<u32>().is_ok().then_some((rule, text))
    })
}

#[test]
fn many_rules_are_asserted_and_stand_in_the_table() {
    let files = sources();
    let is_of_engine = |path: &Path| path.starts_with("src") && !is_test(path);
    let mut of_engine: Vec<_> = files.iter().filter(|(path, _)| is_of_engine(path)).collect();
    of_engine.sort();
    let documents = ["durability.md", "leaves.md"].map(document).concat();
    let is_defined = |rule: &str| {
        documents.contains(&format!("**{rule}"))
            || files.iter().any(|(_, text)| text.contains(&format!("//!   {rule}  ")))
    };
    let (mut made, mut rules) = (ASSERTED_HEAD.to_owned(), BTreeSet::new());
    for (path, text) in of_engine {
        let path = path.strip_prefix("src").expect("the file is in the engine").display();
        for Asserted { rule, text, is_always } in asserted_in(text) {
            assert!(is_defined(rule), "{path} asserts {rule}, which is defined nowhere");
            let when = if is_always { "always" } else { "debug" };
            let row = format!("| `{path}` | {rule} | {text} | {when} |\n");
            if !made.contains(&row) {
                made += &row;
            }
            rules.insert((path.to_string(), rule));
        }
    }
    assert!(rules.len() >= ASSERTED_MIN, "{rules:?}");
    if env::var_os("UPDATE").is_some() {
        fs::write(repository().join(ASSERTED), &made).expect("the table can be written");
    }
    let written = fs::read_to_string(repository().join(ASSERTED)).unwrap_or_default();
    assert!(written == made, "{ASSERTED} is out of date: run this test with UPDATE=1");
}

#[test]
fn an_assertion_is_told_with_its_rule() {
    let text = "assert!(is(a), \"D2: told\");\n    debug_assert_eq!(\n  a, 0, \"C12: b: {a}\"\n);\n\
                assert!(a, \"no rule: c\");\n\nmod tests {\n assert!(a, \"D3: d\");";
    let expected = [("D2", "told", true), ("C12", "b: {a}", false)];
    let expected = expected.map(|(rule, text, is_always)| Asserted { rule, text, is_always });
    assert_eq!(asserted_in(text), expected);
}

#[test]
fn a_bug_is_listed_with_the_rules_of_its_test_and_a_place_is_no_test() {
    let text = concat!(
        "fn place() {\n    sound!(is(b\"\"),\n        \"log: a\");\n}\n",
        "/// Breaks I1 of `log/mod.rs`: told.\n#[test]\nfn c9_caught() {\n    plant(\"log: b\");\n}\n",
        "fn caught() {\n    plant(\"log: c\");\n}\n",
    );
    let planted = planted_in(text, &BTreeSet::from(["log: a", "log: b", "log: c"]));
    let rules = ["C9".to_owned(), "I1 of `log/mod.rs`".to_owned()];
    let expected = [("log: b".to_owned(), BTreeSet::from(rules)), ("log: c".to_owned(), BTreeSet::new())];
    assert_eq!(planted, BTreeMap::from(expected));
    assert_eq!([rule_of("b10_a"), rule_of("of_2_a"), rule_of("10_a")], [Some("B10".to_owned()), None, None]);
}

#[test]
fn every_test_in_the_list_of_rules_is_there_and_begins_with_its_rule() {
    let files = sources();
    let text = document("durability.md");
    let (_, list) = text.split_once("## The rules of the design").expect("the list exists");
    let mut count = 0;
    for item in list.split("\n- **").skip(1) {
        let (rule, told) = item.split_once("**").expect("a rule has a name");
        let (rule, told) = (rule.to_lowercase(), told.split_once("- Tests: ").map_or("", |(_, told)| told));
        for name in told.split('`').skip(1).step_by(2) {
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

/// The problems that a reviewer found in the design for data larger than memory. All are described,
/// and those that can arise have planted bugs and tests.
#[test]
fn rules_of_the_second_reader_are_told_of_with_bugs_and_tests_that_are_there() {
    let files = sources();
    let text = document("decisions/0049-rules-of-a-second-reader.md");
    for number in 1..=43 {
        assert!(text.contains(&format!("**R{number}**")), "R{number} is not described");
    }
    let is_there = |what: &str| files.iter().any(|(_, text)| text.contains(what));
    let (arises, _) = text.split_once("\n## What cannot arise").expect("the section exists");
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
