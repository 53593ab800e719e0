//! Compares random queries with a model of the behaviour of InnoDB that docs/users/fulltext.md
//! describes. The model has the nested lists of InnoDB's parser, walks through them in three
//! passes, and compares words with the rows' text one by one.

use super::*;
use cheetah_io::rng::Rng;
use std::collections::BTreeSet;

/// The current meaning of an operator. A `Skipped` operator was left for a later pass.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Op {
    None,
    Exist,
    Ignore,
    Negate,
    Decrease,
    Increase,
    SkippedExist,
    SkippedIgnore,
}

#[derive(Debug)]
enum Node {
    Op(Op),
    Term { word: String, is_prefix: bool, is_visited: bool },
    Phrase { text: String, distance: u64, is_visited: bool },
    Inner { nodes: Vec<Node>, is_visited: bool },
    List { nodes: Vec<Node>, op: Op },
}

#[derive(Clone, Copy, PartialEq)]
enum Pass {
    First,
    Exist,
    Ignore,
}

/// Makes queries: the text, and the lists that the parser would make of the text.
struct Maker<'r> {
    rng: &'r mut Rng,
    text: String,
}

const WORDS: [&str; 12] =
    ["apple", "apples", "app", "bread", "beer", "cider", "dates", "the", "with", "ox", "a", "egg"];

impl Maker<'_> {
    fn word(&mut self) -> &'static str {
        WORDS[self.rng.below(WORDS.len() as u64) as usize]
    }

    fn expression(&mut self, depth: usize, is_boolean: bool) -> Vec<Node> {
        let (mut list, mut is_any) = (Vec::new(), false);
        for _ in 0..self.rng.below(5) {
            if depth < 4 && is_boolean && self.rng.chance(0.25) {
                let op = self.op();
                self.text.push('(');
                let inner = self.expression(depth + 1, true);
                self.text.push_str(") ");
                if is_any {
                    list = vec![Node::List { nodes: list, op: Op::None }];
                }
                is_any = true;
                let inner = (!inner.is_empty()).then_some(Node::Inner { nodes: inner, is_visited: false });
                match op {
                    Some(op) => {
                        let nodes = [Some(Node::Op(op)), inner].into_iter().flatten().collect();
                        list.push(Node::List { nodes, op: Op::None });
                    }
                    None => list.extend(inner),
                }
                continue;
            }
            is_any = true;
            let op = if is_boolean { self.op() } else { None };
            let node = if self.rng.chance(0.25) { self.phrase(is_boolean) } else { self.term(is_boolean) };
            list.push(match op {
                Some(op) => Node::List { nodes: vec![Node::Op(op), node], op: Op::None },
                None => node,
            });
        }
        // A non-empty expression is one list.
        if is_any {
            vec![Node::List { nodes: list, op: Op::None }]
        } else {
            Vec::new()
        }
    }

    fn op(&mut self) -> Option<Op> {
        let (sign, op) = match self.rng.below(12) {
            0..=2 => ('+', Op::Exist),
            3 | 4 => ('-', Op::Ignore),
            5 => ('~', Op::Negate),
            6 => ('<', Op::Decrease),
            7 => ('>', Op::Increase),
            _ => return None,
        };
        self.text.push(sign);
        Some(op)
    }

    fn term(&mut self, is_boolean: bool) -> Node {
        let mut words = vec![self.word()];
        while self.rng.chance(0.2) {
            words.push(self.word());
        }
        self.text.push_str(&words.join("."));
        let is_prefix = is_boolean && self.rng.chance(0.2);
        self.text.push_str(if is_prefix { "* " } else { " " });
        let first = words[0];
        words.retain(|word| word.len() >= 3);
        if first.len() < 3 {
            words.insert(0, first);
        }
        let count = words.len();
        let term = |(index, word): (usize, &&str)| Node::Term {
            word: (*word).into(),
            is_prefix: is_prefix && index + 1 == count,
            is_visited: false,
        };
        let mut terms = words.iter().enumerate().map(term).collect::<Vec<_>>();
        if count > 1 {
            Node::List { nodes: terms, op: Op::None }
        } else {
            terms.remove(0)
        }
    }

    fn phrase(&mut self, is_boolean: bool) -> Node {
        let words = (0..self.rng.below(4) + 1).map(|_| self.word()).collect::<Vec<_>>();
        let text = words.join(" ");
        self.text.push_str(&format!("\"{text}\""));
        let distance = if is_boolean && self.rng.chance(0.4) { self.rng.below(8) } else { 0 };
        if distance > 0 {
            self.text.push_str(&format!("@{distance}"));
        }
        self.text.push(' ');
        Node::Phrase { text, distance, is_visited: false }
    }
}

/// The facts about a word: the number of postings read, and its frequency in each row.
#[derive(Default)]
struct Known {
    postings: u64,
    frequencies: BTreeMap<u16, u32>,
}

/// Rows with their ranks, and the indexes in `order` of the words that matched.
type Set = BTreeMap<u16, (f32, BTreeSet<usize>)>;

struct Model {
    rows: BTreeMap<u16, Vec<(String, WordKind, u8)>>,
    words: BTreeMap<String, Known>,
    /// The words in the order in which they first matched.
    order: Vec<String>,
    prefixes: BTreeSet<String>,
    set: Set,
    exist: Option<Set>,
    is_multi: bool,
}

impl Model {
    fn visit(&mut self, mut op: Op, list: &mut [Node], has_ignored: &mut bool) {
        let (mut is_ignored, mut is_revisit) = (false, false);
        let pass = match op {
            Op::SkippedExist => Pass::Exist,
            Op::SkippedIgnore => Pass::Ignore,
            _ => Pass::First,
        };
        for node in list.iter_mut() {
            match node {
                Node::List { nodes, op: left } => {
                    if pass == Pass::First {
                        self.visit(op, nodes, &mut is_ignored);
                        if is_ignored {
                            is_revisit = true;
                            *left = op;
                        }
                    }
                }
                Node::Op(own) => {
                    op = *own;
                    match op {
                        Op::Exist => *own = Op::SkippedExist,
                        Op::Ignore => *own = Op::SkippedIgnore,
                        _ => {}
                    }
                }
                Node::Term { is_visited: true, .. }
                | Node::Phrase { is_visited: true, .. }
                | Node::Inner { is_visited: true, .. } => {}
                leaf => match (op, pass) {
                    (Op::Exist | Op::Ignore, _) => *has_ignored = true,
                    (Op::SkippedExist, Pass::Exist) => self.leaf(Op::Exist, leaf),
                    (Op::SkippedIgnore, Pass::Ignore) => self.leaf(Op::Ignore, leaf),
                    (_, Pass::First) => self.leaf(op, leaf),
                    _ => {}
                },
            }
        }
        if is_revisit {
            for node in list.iter_mut() {
                if let Node::List { nodes, op } = node {
                    if *op != Op::Ignore {
                        self.visit(Op::SkippedExist, nodes, &mut is_ignored);
                    }
                }
            }
            for node in list.iter_mut() {
                if let Node::List { nodes, .. } = node {
                    self.visit(Op::SkippedIgnore, nodes, &mut is_ignored);
                }
            }
        }
    }

    fn leaf(&mut self, op: Op, leaf: &mut Node) {
        match leaf {
            Node::Term { word, is_prefix, is_visited } => {
                *is_visited = true;
                self.term(op, word, *is_prefix);
            }
            Node::Phrase { text, distance, is_visited } => {
                *is_visited = true;
                self.exist = (op == Op::Exist).then(Set::new);
                self.phrase(op, text, *distance);
                self.end(op);
            }
            Node::Inner { nodes, is_visited } => {
                *is_visited = true;
                let outer = std::mem::take(&mut self.set);
                let is_multi = std::mem::take(&mut self.is_multi);
                self.visit(Op::None, nodes, &mut false);
                let inner = std::mem::replace(&mut self.set, outer);
                self.is_multi = is_multi;
                self.exist = (op == Op::Exist).then(Set::new);
                for (row, (rank, words)) in inner {
                    self.row(op, row, rank);
                    for place in words {
                        self.add_word(row, &self.order[place].clone());
                    }
                }
                self.end(op);
            }
            Node::Op(_) | Node::List { .. } => unreachable!("operators and lists are no leaves"),
        }
        self.is_multi |= op == Op::Exist;
    }

    fn end(&mut self, op: Op) {
        if op == Op::Exist {
            self.set = self.exist.take().expect("the set was made before");
        }
    }

    /// Reads the postings of a word: rows with frequencies.
    fn read(&mut self, word: &str, is_prefix: bool) -> Vec<(u16, u32)> {
        let mut found = BTreeMap::<(String, u16), u32>::new();
        for (row, words) in &self.rows {
            for (other, kind, _) in words {
                let is_match = if is_prefix { other.starts_with(word) } else { other == word };
                if *kind == WordKind::Indexed && is_match {
                    *found.entry((other.clone(), *row)).or_default() += 1;
                }
            }
        }
        let known = self.words.entry(word.into()).or_default();
        known.postings += found.len() as u64;
        for ((_, row), frequency) in &found {
            known.frequencies.entry(*row).or_insert(*frequency);
        }
        found.into_iter().map(|((_, row), frequency)| (row, frequency)).collect()
    }

    fn term(&mut self, op: Op, word: &str, is_prefix: bool) {
        self.words.entry(word.into()).or_default();
        if is_prefix {
            self.prefixes.insert(word.into());
        }
        if op == Op::Exist && self.is_multi && self.set.is_empty() || op == Op::Ignore && self.set.is_empty()
        {
            return;
        }
        self.exist = (op == Op::Exist).then(Set::new);
        for (row, _) in self.read(word, is_prefix) {
            self.row(op, row, 0.0);
            self.add_word(row, word);
        }
        self.end(op);
    }

    fn row(&mut self, op: Op, row: u16, rank: f32) {
        match op {
            Op::None => {
                self.set.entry(row).or_insert((rank, BTreeSet::new()));
            }
            Op::Exist => {
                let exist = self.exist.as_mut().expect("the set was made before");
                match self.set.get(&row) {
                    None if self.is_multi => {}
                    None => {
                        exist.entry(row).or_insert((rank, BTreeSet::new()));
                    }
                    Some((before, words)) if !exist.contains_key(&row) => {
                        exist.insert(row, ((before + rank).clamp(-1.0, 1.0), words.clone()));
                    }
                    Some(_) => {}
                }
            }
            Op::Ignore => {
                self.set.remove(&row);
            }
            Op::Negate => self.change(row, -1.0),
            Op::Decrease => {
                self.row(Op::None, row, rank);
                self.change(row, -1.0);
            }
            Op::Increase => {
                self.row(Op::None, row, rank);
                self.change(row, 1.0);
            }
            Op::SkippedExist | Op::SkippedIgnore => unreachable!("leaves do not get these"),
        }
    }

    fn change(&mut self, row: u16, by: f32) {
        if let Some((rank, _)) = self.set.get_mut(&row) {
            *rank = (*rank + by).clamp(-1.0, 1.0);
        }
    }

    fn add_word(&mut self, row: u16, word: &str) {
        let exist = self.exist.as_mut().and_then(|exist| exist.get_mut(&row));
        let Some((_, words)) = exist.or_else(|| self.set.get_mut(&row)) else { return };
        let known = self.order.iter().position(|other| other == word);
        words.insert(known.unwrap_or_else(|| {
            self.order.push(word.into());
            self.order.len() - 1
        }));
    }

    fn phrase(&mut self, op: Op, text: &str, distance: u64) {
        let all = words_in(text.as_bytes());
        let parts = all.iter().skip_while(|word| word.1 != WordKind::Indexed).collect::<Vec<_>>();
        let name = |word: &(Vec<u8>, WordKind)| String::from_utf8_lossy(&word.0).into_owned();
        let indexed = parts.iter().filter(|word| word.1 == WordKind::Indexed);
        let tokens = indexed.map(|word| name(word)).collect::<Vec<_>>();
        for token in &tokens {
            if self.read(token, false).is_empty() {
                return;
            }
        }
        let parts = parts.into_iter().map(name).collect::<Vec<_>>();
        let is_match = |words: &[(String, WordKind, u8)]| {
            if parts.len() == 1 || distance == 0 {
                return words.windows(parts.len()).any(|window| {
                    window.iter().zip(&parts).all(|(word, part)| word.0 == *part && word.2 == window[0].2)
                });
            }
            let places = |token: &String| {
                let is_token = move |(_, word): &(usize, &(String, WordKind, u8))| word.0 == *token;
                words.iter().enumerate().filter(is_token).map(|(place, _)| place as u64).collect::<Vec<_>>()
            };
            let places = tokens.iter().map(places).collect::<Vec<_>>();
            // The window may begin at any word. All tokens must be in it.
            (0..words.len() as u64).any(|from| {
                let is_near = |place: &u64| (from..from + distance).contains(place);
                places.iter().all(|places| places.iter().any(is_near))
            })
        };
        if parts.is_empty() {
            return;
        }
        let rows = self.rows.iter().filter(|(_, words)| is_match(words)).map(|(row, _)| *row);
        for row in rows.collect::<Vec<_>>() {
            self.row(op, row, 0.0);
            tokens.iter().for_each(|token| self.add_word(row, token));
        }
    }

    fn expand(&mut self) {
        let mut words = BTreeSet::new();
        for row in self.set.keys() {
            let indexed = self.rows[row].iter().filter(|word| word.1 == WordKind::Indexed);
            words.extend(indexed.map(|word| word.0.clone()));
        }
        words.retain(|word| {
            let is_left_out = |known: &String| {
                known == word || (self.prefixes.contains(known) && word.starts_with(known.as_str()))
            };
            !self.order.iter().any(is_left_out)
        });
        words.iter().for_each(|word| self.term(Op::None, word, false));
    }

    fn ranked(&self) -> Vec<(u16, f32)> {
        let total = self.rows.len() as u64;
        let rarity = |known: &Known| match known.postings == total {
            true => 1.0001f64.log10(),
            false => (total as f64 / known.postings as f64).log10(),
        };
        let rank = |(row, (rank, words)): (&u16, &(f32, BTreeSet<usize>))| {
            let known = words.iter().map(|place| &self.words[&self.order[*place]]);
            let part =
                |known: &Known| (f64::from(known.frequencies[row]) * rarity(known) * rarity(known)) as f32;
            (*row, known.fold(*rank, |rank, known| rank + part(known)))
        };
        let mut ranked = self.set.iter().map(rank).collect::<Vec<_>>();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    }
}

fn random_table(rng: &mut Rng) -> Table {
    let mut table = Table::default();
    for id in 0..rng.below(9) {
        let column = |rng: &mut Rng| {
            let words = (0..rng.below(8)).map(|_| WORDS[rng.below(WORDS.len() as u64) as usize]);
            words.collect::<Vec<_>>().join(" ")
        };
        let columns = [column(rng), column(rng)];
        table.insert(id as u16 + 1, &[&columns[0], &columns[1]]);
    }
    table
}

fn agree(seed: u64) -> usize {
    let mut rng = Rng::new(seed);
    let mut table = random_table(&mut rng);
    let mode =
        [Mode::NaturalLanguage, Mode::Boolean, Mode::Boolean, Mode::QueryExpansion][rng.below(4) as usize];
    let mut maker = Maker { rng: &mut rng, text: String::new() };
    let mut nodes = maker.expression(0, mode == Mode::Boolean);
    let text = maker.text;
    let name = |word: &RowWord| (String::from_utf8_lossy(&word.0).into_owned(), word.1, word.2.column);
    let rows = table.rows.iter().map(|(key, words)| {
        (u16::from_be_bytes([key[0], key[1]]), words.iter().map(name).collect::<Vec<_>>())
    });
    let mut model = Model {
        rows: rows.collect(),
        words: BTreeMap::new(),
        order: Vec::new(),
        prefixes: BTreeSet::new(),
        set: Set::new(),
        exist: None,
        is_multi: false,
    };
    if let Some(Node::List { nodes, .. }) = nodes.first_mut() {
        model.visit(Op::None, nodes, &mut false);
    }
    if mode == Mode::QueryExpansion {
        model.expand();
    }
    let found = table.search(&text, mode).unwrap_or_else(|error| panic!("seed {seed}: {text}: {error}"));
    assert_eq!(found, model.ranked(), "seed {seed}, {mode:?}: {text}\n{:?}", model.rows);
    found.len()
}

#[test]
fn random_queries_agree_with_the_model() {
    let found_count = (0..20_000).filter(|seed| agree(*seed) > 0).count();
    assert!(found_count > 8_000, "{found_count} of 20000 queries found something");
}
