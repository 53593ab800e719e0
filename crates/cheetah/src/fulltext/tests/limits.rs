//! Long, deep, large and interrupted queries, and random bytes as queries.

use super::*;
use cheetah_io::rng::Rng;
use Mode::{Boolean, NaturalLanguage, QueryExpansion};

const MODES: [Mode; 3] = [NaturalLanguage, Boolean, QueryExpansion];

fn table() -> Table {
    Table::new(&[&["one two three", "four"], &["two three three"], &["three for four", "five six"]])
}

#[test]
fn deep_queries_are_refused_and_long_ones_answered() {
    let mut table = table();
    let nested = |depth| format!("{}three{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(table.search(&nested(32), Boolean).expect("a query of 32 levels is not too deep").len(), 3);
    for depth in [33, 4_000] {
        assert_eq!(problem(table.search(&nested(depth), Boolean)).0, SearchProblem::TooDeep);
    }
    let found = problem(table.search(&nested(100_000), Boolean));
    assert_eq!(found, (SearchProblem::Syntax, "memory exhausted".into()));
    let unclosed = problem(table.search(&nested(40)[..60], Boolean));
    assert_eq!(unclosed.0, SearchProblem::Syntax);
    assert_eq!(
        table.search(&"three ".repeat(100_000), NaturalLanguage).expect("a long query is valid").len(),
        3
    );
    assert_eq!(
        table.search(&"+(three) -(zero) ".repeat(50_000), Boolean).expect("a long query is valid").len(),
        3
    );
    let words = (0..100_000).map(|number| format!("word{number} ")).collect::<String>();
    assert_eq!(table.search(&words, QueryExpansion).expect("a long query is valid").len(), 0);
    let phrase = |count| format!("\"{}\"", "three ".repeat(count));
    assert_eq!(table.search(&phrase(128), Boolean).expect("128 words are not too many").len(), 0);
    assert_eq!(problem(table.search(&phrase(129), Boolean)).0, SearchProblem::TooManyWordsInPhrase);
    let with_stop_words = format!("\"three {}\"", "for ".repeat(100_000));
    assert_eq!(table.search(&with_stop_words, Boolean).expect("stop words do not count").len(), 0);
}

#[test]
fn a_query_ends_at_its_limit_of_memory() {
    let mut table = table();
    let mut refused_count = 0;
    for mode in MODES {
        for text in
            ["three", "\"two three\"", "one two three four five six", "(one two) +three \"four five\"@9"]
        {
            if mode != Boolean && text.contains('(') {
                continue;
            }
            let enough = (0..).find(|limit| match search(text.as_bytes(), mode, &mut table, limit * 16) {
                Ok(mut matches) => !all(&mut matches).is_empty(),
                Err(Error::Search { problem: SearchProblem::TooMuchMemory, .. }) => {
                    refused_count += 1;
                    false
                }
                Err(error) => panic!("{error}"),
            });
            assert!(enough.is_some_and(|limit| limit * 16 < 4096), "{text} takes {enough:?}");
        }
    }
    assert!(refused_count > 100);
}

#[test]
fn a_query_is_interrupted_wherever_the_source_says_so() {
    let mut table = table();
    let text = "two \"two three\" \"three for\" four";
    let expected = table.search(text, QueryExpansion).expect("the query is valid");
    for calls in 0.. {
        table.calls_left = Some(calls);
        match table.search(text, QueryExpansion) {
            Err(Error::Interrupted) => assert!(calls < 100),
            found => {
                assert_eq!(found.expect("the query is valid"), expected);
                assert!(calls > 5);
                return;
            }
        }
    }
}

#[test]
fn damaged_postings_are_errors() {
    for text in ["three", "three*", "\"two three\"", "\"two three\"@4", "+three -two"] {
        let mut table = table();
        table.postings.values_mut().for_each(|value| *value = vec![0x80]);
        assert!(matches!(table.search(text, Boolean), Err(Error::Corruption { .. })), "{text}");
    }
}

#[test]
fn noise_is_answered_or_refused() {
    let mut rng = Rng::new(11);
    let mut table = table();
    let pieces = [
        "+", "-", "~", "<", ">", "(", ")", "*", "\"", "@", "3", " ", "\t", "\n", "%", "two", "three", "for",
        "x", ".",
    ];
    let (mut answered_count, mut refused_count) = (0, 0);
    for round in 0..20_000 {
        let text = if round % 2 == 0 {
            rng.bytes(round % 40)
        } else {
            let piece = |rng: &mut Rng| pieces[rng.below(pieces.len() as u64) as usize];
            (0..rng.below(20)).map(|_| piece(&mut rng)).collect::<String>().into_bytes()
        };
        let mode = MODES[rng.below(3) as usize];
        match search(&text, mode, &mut table, LIMIT_BYTES) {
            Ok(mut matches) => answered_count += usize::from(!all(&mut matches).is_empty()),
            Err(Error::Search { problem: SearchProblem::Syntax, .. }) => refused_count += 1,
            Err(error) => panic!("{text:?}: {error}"),
        }
    }
    assert!(answered_count > 1000 && refused_count > 1000, "{answered_count} {refused_count}");
}
