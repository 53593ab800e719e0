//! The rows that InnoDB of MariaDB 10.11 finds, with their order and ranks; mostly from InnoDB's
//! own test suite.

use super::*;
use Mode::{Boolean, NaturalLanguage, QueryExpansion};

fn articles() -> Table {
    Table::new(&[
        &["MySQL Tutorial", "DBMS stands for DataBase ..."],
        &["How To Use MySQL Well", "After you went through a ..."],
        &["Optimizing MySQL", "In this tutorial we will show ..."],
        &["1001 MySQL Tricks", "1. Never run mysqld as root. 2. ..."],
        &["MySQL vs. YourSQL", "In the following database comparison ..."],
        &["MySQL Security", "When configured properly, MySQL ..."],
    ])
}

fn check(table: &mut Table, mode: Mode, text: &str, expected: &[u16]) {
    let found = table.search(text, mode).expect("the query is valid");
    assert_eq!(found.iter().map(|row| row.0).collect::<Vec<_>>(), expected, "{text}: {found:?}");
}

fn check_ranks(table: &mut Table, mode: Mode, text: &str, expected: &[(u16, f32)]) {
    assert_eq!(table.search(text, mode).expect("the query is valid"), expected, "{text}");
}

#[test]
fn ranks_are_those_of_innodb() {
    let mut table = articles();
    check_ranks(&mut table, NaturalLanguage, "Database", &[(1, 0.227_644_7), (5, 0.227_644_7)]);
    let everywhere = 1.885_928_3e-9;
    let all = [6, 1, 2, 3, 4, 5].map(|id| (id, everywhere * if id == 6 { 2.0 } else { 1.0 }));
    check_ranks(&mut table, NaturalLanguage, "mysql", &all);
    check_ranks(&mut table, Boolean, "+mysql", &all);
}

#[test]
fn ranks_of_several_words_are_those_of_innodb() {
    let mut table = Table::new(&[
        &["MySQL has now support", "for full-text search"],
        &["Full-text indexes", "are called collections"],
        &["Only MyISAM tables", "support collections"],
        &["Function MATCH ... AGAINST()", "is used to do a search"],
        &["Full-text search in MySQL", "implements vector space model"],
    ]);
    let expected = [(3, 0.316_712_5), (1, 0.158_356_25), (2, 0.158_356_25)];
    check_ranks(&mut table, Boolean, "support collections", &expected);
    check_ranks(&mut table, Boolean, "collections support", &expected);
    for (text, expected) in [
        ("support +collections", &[3, 2][..]),
        ("sear*", &[1, 4, 5]),
        ("+support +collections", &[3]),
        ("+search +(support vector)", &[5, 1]),
        ("+search -(support vector)", &[4]),
        ("+call* +coll*", &[2]),
        ("\"support now\"", &[]),
        ("\"now   support\"", &[1]),
        ("\"text search\"  \"now support\"", &[1, 5]),
        ("\"text search\" -\"now support\"", &[5]),
    ] {
        check(&mut table, Boolean, text, expected);
    }
    let mut table = Table::new(&[&["test"], &["test1"], &["test"]]);
    let expected = [(2, 0.227_644_7), (1, 0.031_008_1), (3, 0.031_008_1)];
    let found = table.search("test1 test", NaturalLanguage).expect("the query is valid");
    for ((id, rank), (expected_id, expected)) in found.iter().zip(expected) {
        assert!(*id == expected_id && (rank - expected).abs() < 5e-7, "{found:?}");
    }
    let mut table = Table::new(&[&["aaa15"]]);
    check_ranks(&mut table, Boolean, "aaa1* aaa14 aaa16", &[(1, 1.885_928_3e-9)]);
    check_ranks(&mut table, Boolean, "aaa1* aaa14 aaa15 aaa16", &[(1, 3.771_856_6e-9)]);
    let mut table = Table::new(&[
        &["Testing"],
        &["table"],
        &["testbug"],
        &["steve"],
        &["is"],
        &["cool"],
        &["steve is cool"],
    ]);
    check_ranks(&mut table, NaturalLanguage, "steve", &[(4, 0.296_010_05), (7, 0.296_010_05)]);
}

#[test]
fn documented_examples_find_the_same_rows_in_the_same_order() {
    let mut table = articles();
    for (text, expected) in [
        ("+MySQL -YourSQL", &[6, 1, 2, 3, 4][..]),
        ("DBMS Security", &[1, 6]),
        ("+MySQL +YourSQL", &[5]),
        ("+MySQL YourSQL", &[5, 6, 1, 2, 3, 4]),
        ("+MySQL ~YourSQL", &[6, 1, 2, 3, 4, 5]),
        ("t*", &[1, 2, 3, 4]),
        ("MY*", &[6, 1, 2, 3, 4, 5]),
        ("ru*", &[4]),
        ("+ MySQL >Well < stands", &[2, 6, 3, 4, 5, 1]),
        ("+ MySQL - (Well stands)", &[6, 3, 4, 5]),
        ("+ MySQL + (>Well < stands)", &[2, 1]),
        ("YourSQL + (+MySQL - (Tricks Security))", &[5, 1, 2, 3]),
        ("whe*", &[]),
        ("+from", &[]),
        ("+where +(show what)", &[]),
    ] {
        check(&mut table, Boolean, text, expected);
    }
    check(&mut table, NaturalLanguage, "Tutorial", &[1, 3]);
}

#[test]
fn parentheses_find_the_same_rows_in_the_same_order() {
    let mut table = Table::new(&[
        &["Pumpkin soup with cheese bread"],
        &["Yellow chicken curry"],
        &["Fresh green vegetables with garlic"],
        &["This row contains only souffle"],
        &["This row contains only tart"],
        &["This row contains only pumpkin"],
        &["This row contains only cheese"],
        &["This row contains pumpkin and souffle"],
        &["This row contains pumpkin and tart"],
        &["This row contains pumpkin and cheese"],
        &["This row contains both souffle and tart"],
        &["This row contains both souffle and cheese"],
        &["This row contains both tart and cheese"],
        &["This row contains all three souffle, pumpkin and  tart"],
        &["This row contains all four cheese, souffle, pumpkin and  tart"],
    ]);
    for (text, expected) in [
        ("+pumpkin", &[1, 6, 8, 9, 10, 14, 15][..]),
        ("+cheese", &[1, 7, 10, 12, 13, 15]),
        ("+(pumpkin cheese)", &[1, 10, 15, 7, 12, 13, 6, 8, 9, 14]),
        ("+pumpkin +(souffle)", &[8, 14, 15]),
        ("+pumpkin +(souffle tart)", &[14, 15, 8, 9]),
        ("+pumpkin +(>souffle <tart)", &[8, 14, 15, 9]),
    ] {
        check(&mut table, Boolean, text, expected);
    }
}

#[test]
fn phrases_and_distances_find_the_same_rows() {
    let mut table = Table::new(&[
        &["MySQL from Tutorial", "DBMS stands for DataBase ..."],
        &["when To Use MySQL Well", "After that you went through a ..."],
        &["where will Optimizing MySQL", "what In this tutorial we will show ..."],
        &["MySQL Tutorial", "request docteam@oraclehelp.com ..."],
        &["Trial version", "query performace @1255 minute on 2.1Hz Memory 2GB..."],
        &["when To Use MySQL Well", "for free faq  mail@xyz.com ..."],
    ]);
    for (text, expected) in [
        ("\"where will\"@6", &[][..]),
        ("\"request\"@10", &[4]),
        ("\"Trial version\"@0", &[5]),
        ("\"request docteam@oraclehelp.com\"@10", &[4]),
        ("\"1255 minute\"@1", &[]),
        ("\"1255 minute\"@2", &[5]),
        ("\"1255\"@10", &[5]),
        ("\"request docteam\"@2", &[4]),
        ("\"1255 minute\"", &[5]),
        ("\"MySQL request\"@3", &[4]),
        ("\"Trial memory\"@10", &[5]),
        ("\"Trial memory\"@9", &[]),
        ("\"mysql use\"@2", &[2, 6]),
        ("\"mysql use\"@1", &[]),
        ("\"tutorial request\"", &[]),
        ("\"tutorial request\"@2", &[4]),
        ("\"mysql from tutorial\"", &[1]),
        ("\"mysql tutorial\"", &[4]),
        ("\"from tutorial\"", &[1, 3, 4]),
        ("\"stands for the\"", &[]),
        ("\"stands for\"", &[1]),
        ("+\"the for\" mysql", &[]),
    ] {
        check(&mut table, Boolean, text, expected);
    }
    check(&mut table, NaturalLanguage, "request docteam@oraclehelp.com", &[4]);
    check(&mut table, QueryExpansion, "1255", &[5]);
    check(&mut table, QueryExpansion, "what", &[]);
}

#[test]
fn what_cannot_be_understood_is_refused_in_innodbs_words() {
    let mut table = articles();
    for (text, expected) in [
        ("+aaaaaa @bbbbbb", "unexpected '@', expecting $end"),
        ("+-foo", "unexpected '-'"),
        ("*", "unexpected $end, expecting FTS_TERM or FTS_NUMB or '*'"),
        ("\"innodb $storage\"@4\0", "unexpected FTS_TERM, expecting FTS_NUMB"),
        ("((Security)", "unexpected $end"),
        ("security)", "unexpected ')', expecting $end"),
        ("(security @4)", "unexpected '@'"),
        ("security +", "unexpected $end"),
        ("(security +)", "unexpected ')'"),
        ("+*\"a\"", "unexpected FTS_TEXT, expecting FTS_TERM or FTS_NUMB or '*'"),
    ] {
        let found = problem(table.search(text, Boolean));
        assert_eq!(found, (SearchProblem::Syntax, format!("syntax error, {expected}")), "{text}");
    }
    let found =
        problem(table.search("mysql *\t*", NaturalLanguage).and_then(|_| table.search("*", NaturalLanguage)));
    assert_eq!(found.1, "syntax error, unexpected $end, expecting FTS_TERM or FTS_NUMB or '*'");
    for text in ["", " \n\t", "%", "\"", "\"\"", "()", "(())", "+()", "...", "+...", "\"\" @3"] {
        let found = table.search(text, Boolean);
        match text {
            "\"\" @3" => assert_eq!(found.expect("the query is valid"), []),
            _ => assert_eq!(found.expect("the query is valid"), [], "{text}"),
        }
    }
}

/// Random tables and queries with the recorded answers of InnoDB. A line has tab-separated fields:
/// `T` begins a table; `R` is a row with its columns; all other lines have the mode of a query, the
/// query, and the rows with ranks, or the error.
#[test]
fn random_queries_find_what_innodb_finds() {
    let (mut table, mut query_count) = (Table::default(), 0);
    for line in include_str!("innodb.txt").lines() {
        let fields = line.split('\t').collect::<Vec<_>>();
        let (mode, text, answer) = match fields[..] {
            ["T"] => {
                table = Table::default();
                continue;
            }
            ["R", a, b] => {
                table.insert(table.rows.len() as u16 + 1, &[a, b]);
                continue;
            }
            ["B", text, answer] => (Boolean, text, answer),
            ["N", text, answer] => (NaturalLanguage, text, answer),
            ["E", text, answer] => (QueryExpansion, text, answer),
            _ => panic!("no such line: {line}"),
        };
        query_count += 1;
        let found = table.search(text, mode);
        if let Some(refusal) = answer.strip_prefix("!1064 ") {
            assert_eq!(problem(found), (SearchProblem::Syntax, refusal.into()), "{line}");
            continue;
        }
        let row = |row: &str| {
            let (id, rank) = row.split_once(':').expect("a row has a rank");
            (id.parse().expect("a row has a number"), rank.parse().expect("a rank is a number"))
        };
        let expected = answer.split_whitespace().map(row).collect::<Vec<(u16, f32)>>();
        assert_eq!(found.expect("the query is answered"), expected, "{line}\n{:?}", table.rows);
    }
    assert!(query_count > 1000, "the test no longer finds the queries");
}
