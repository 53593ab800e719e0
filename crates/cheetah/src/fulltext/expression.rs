//! A query as it was understood.

/// The operator before a term, a phrase or a sub-expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    /// Nothing: rows that match are added.
    Any,
    /// `+`: only rows that match stay.
    Required,
    /// `-`: rows that match go.
    Excluded,
    /// `~`: rows that match and are there already rank lower.
    Negated,
    /// `<`: rows that match are added, and rank lower.
    Lower,
    /// `>`: rows that match are added, and rank higher.
    Higher,
}

impl Operator {
    /// Whether it has to wait until all others of its group are through.
    pub(super) fn waits(self) -> bool {
        matches!(self, Operator::Required | Operator::Excluded)
    }
}

/// A word of a query.
#[derive(Debug)]
pub(super) struct Term {
    /// Its weights.
    pub(super) weights: Vec<u8>,
    /// Whether all words are meant that begin so.
    pub(super) is_prefix: bool,
}

/// The operand of an operator.
#[derive(Debug)]
pub(super) enum Operand {
    /// One word.
    Term(Term),
    /// Several words that stand in one piece in the query: `well-known.example`.
    Terms(Vec<Term>),
    /// A text in quotes, and the distance after `@`. 0 and `None` are the same.
    Phrase(Vec<u8>, Option<u64>),
    /// The content of parentheses.
    Expression(Expression),
}

/// An operator and its operand.
#[derive(Debug)]
pub(super) struct Item {
    /// The operator.
    pub(super) operator: Operator,
    /// Its operand.
    pub(super) operand: Operand,
}

/// A list of items. Every parenthesis begins a new group, and groups are evaluated one after the
/// other.
#[derive(Default, Debug)]
pub(super) struct Expression {
    /// The groups; none of them need have an item.
    pub(super) groups: Vec<Vec<Item>>,
    /// How deep sub-expressions are nested in it.
    pub(super) depth: usize,
}
