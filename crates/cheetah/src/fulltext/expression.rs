//! A parsed query.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    /// No operator: matching rows are added.
    Any,
    /// `+`: only matching rows are kept.
    Required,
    /// `-`: matching rows are removed.
    Excluded,
    /// `~`: matching rows that are already in the result rank lower.
    Negated,
    /// `<`: matching rows are added, and rank lower.
    Lower,
    /// `>`: matching rows are added, and rank higher.
    Higher,
}

impl Operator {
    /// Returns whether it has to wait until all other operators of its group are evaluated.
    pub(super) fn waits(self) -> bool {
        matches!(self, Operator::Required | Operator::Excluded)
    }
}

#[derive(Debug)]
pub(super) struct Term {
    pub(super) weights: Vec<u8>,
    /// Whether all words with this prefix match.
    pub(super) is_prefix: bool,
}

#[derive(Debug)]
pub(super) enum Operand {
    /// One word.
    Term(Term),
    /// Several words in one piece of the query: `well-known.example`.
    Terms(Vec<Term>),
    /// A string in quotes, and the distance after `@`. A distance of 0 equals `None`.
    Phrase(Vec<u8>, Option<u64>),
    /// The content of parentheses.
    Expression(Expression),
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) operator: Operator,
    pub(super) operand: Operand,
}

/// A list of items. Every parenthesis begins a new group. Groups are evaluated one after the other.
#[derive(Default, Debug)]
pub(super) struct Expression {
    /// The groups; a group may be empty.
    pub(super) groups: Vec<Vec<Item>>,
    pub(super) depth: usize,
}
