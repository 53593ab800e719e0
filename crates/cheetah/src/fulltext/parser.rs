//! Parses the text of a query into an expression.
//!
//! The grammar is InnoDB's, also in natural language mode, where the lexer produces fewer kinds of
//! tokens. So are the messages for syntax errors, because users and tests know them.

use super::budget::Budget;
use super::expression::{Expression, Item, Operand, Operator, Term};
use super::lexer::{Lexer, Token};
use super::source::{Source, Word, WordKind};

use crate::base::{Error, Result, SearchProblem};

/// The maximum nesting depth of parentheses.
pub const DEPTH_MAX: usize = 32;

/// Parsing stops beyond this number of open parentheses.
const OPEN_MAX: usize = 4_998;

/// The bytes of a term or phrase besides its text.
const OPERAND_BYTES: usize = 2 * size_of::<Item>();

#[derive(Default, Debug)]
struct Open {
    /// The operator before its parenthesis.
    operator: Option<Operator>,
    expression: Expression,
    /// Whether it has any content, even without a word.
    has_content: bool,
}

impl Open {
    fn add(&mut self, operator: Operator, operand: Operand) {
        if self.expression.groups.is_empty() {
            self.expression.groups.push(Vec::new());
        }
        if let Some(group) = self.expression.groups.last_mut() {
            group.push(Item { operator, operand });
        }
    }
}

/// Parses a query; returns `None` if it is empty.
///
/// # Errors
/// [`Error::Search`] if the query has a syntax error, or is nested too deeply; the error of the
/// budget; the errors of the source.
pub(super) fn parse(
    query: &[u8],
    is_boolean: bool,
    source: &mut impl Source,
    budget: &mut Budget,
) -> Result<Option<Expression>> {
    let parser = Parser { lexer: Lexer::new(query, is_boolean), source, budget, is_too_deep: false };
    parser.parse()
}

struct Parser<'a, 'q, S> {
    lexer: Lexer<'q>,
    source: &'a mut S,
    budget: &'a mut Budget,
    is_too_deep: bool,
}

impl<'q, S: Source> Parser<'_, 'q, S> {
    fn parse(mut self) -> Result<Option<Expression>> {
        let mut outer = Vec::new();
        let mut open = Open::default();
        loop {
            let token = self.lexer.next();
            match token {
                Token::End if outer.is_empty() => break,
                Token::Mark(b')' | b'@') if outer.is_empty() => {
                    return Err(unexpected(token, ", expecting $end"))
                }
                Token::End | Token::Mark(b'@') => return Err(unexpected(token, "")),
                Token::Mark(b'(') => self.open(None, &mut open, &mut outer)?,
                Token::Mark(b')') => {
                    if let Some(parent) = outer.pop() {
                        let inner = std::mem::replace(&mut open, parent);
                        self.close(inner, &mut open);
                    }
                }
                _ => match operator_of(token) {
                    None => {
                        let operand = self.operand(token)?;
                        open.has_content = true;
                        operand.into_iter().for_each(|operand| open.add(Operator::Any, operand));
                    }
                    Some(operator) => self.after_operator(operator, &mut open, &mut outer)?,
                },
            }
        }
        if self.is_too_deep {
            return Err(Error::Search {
                problem: SearchProblem::TooDeep,
                detail: format!(
                    "parentheses of a full-text query are nested more than {DEPTH_MAX} deep; nest fewer"
                ),
            });
        }
        Ok(open.has_content.then_some(open.expression))
    }

    fn after_operator(&mut self, operator: Operator, open: &mut Open, outer: &mut Vec<Open>) -> Result<()> {
        let token = self.lexer.next();
        match token {
            Token::Mark(b'(') => return self.open(Some(operator), open, outer),
            Token::Mark(b'*') | Token::Number(_) | Token::Term(_) | Token::Text(_) => {}
            _ => return Err(unexpected(token, "")),
        }
        let operand = self.operand(token)?;
        open.has_content = true;
        operand.into_iter().for_each(|operand| open.add(operator, operand));
        Ok(())
    }

    fn open(&mut self, operator: Option<Operator>, open: &mut Open, outer: &mut Vec<Open>) -> Result<()> {
        if outer.len() >= OPEN_MAX {
            return Err(syntax("memory exhausted".into()));
        }
        self.budget.take(2 * size_of::<Open>())?;
        let parent = std::mem::replace(open, Open { operator, ..Open::default() });
        outer.push(parent);
        Ok(())
    }

    fn close(&mut self, inner: Open, parent: &mut Open) {
        parent.has_content = true;
        if parent.expression.groups.is_empty() {
            parent.expression.groups.push(Vec::new());
        }
        parent.expression.groups.push(Vec::new());
        if !inner.has_content {
            return;
        }
        let depth = inner.expression.depth + 1;
        parent.expression.depth = parent.expression.depth.max(depth);
        if depth > DEPTH_MAX {
            self.is_too_deep = true;
            parent.expression = Expression { groups: vec![Vec::new()], depth };
        } else {
            parent.add(inner.operator.unwrap_or(Operator::Any), Operand::Expression(inner.expression));
        }
    }

    /// Parses a term or a phrase that begins with `token`. Returns `None` if it has no words.
    fn operand(&mut self, mut token: Token<'q>) -> Result<Option<Operand>> {
        while token == Token::Mark(b'*') {
            token = self.lexer.next();
            if !matches!(token, Token::Mark(b'*') | Token::Number(_) | Token::Term(_)) {
                return Err(unexpected(token, ", expecting FTS_TERM or FTS_NUMB or '*'"));
            }
        }
        match token {
            Token::Text(text) => {
                let distance = self.distance()?;
                self.budget.take(text.len() + OPERAND_BYTES)?;
                Ok((!text.is_empty()).then(|| Operand::Phrase(text.to_vec(), distance)))
            }
            Token::Number(text) | Token::Term(text) => {
                let mut terms = self.terms(text)?;
                if self.lexer.peek() == Token::Mark(b'*') {
                    self.lexer.next();
                    terms.last_mut().into_iter().for_each(|term| term.is_prefix = true);
                }
                let last = terms.pop();
                Ok(last.map(|last| {
                    if terms.is_empty() {
                        return Operand::Term(last);
                    }
                    terms.push(last);
                    Operand::Terms(terms)
                }))
            }
            Token::Mark(_) | Token::End => Err(unexpected(token, "")),
        }
    }

    fn distance(&mut self) -> Result<Option<u64>> {
        if self.lexer.peek() != Token::Mark(b'@') {
            return Ok(None);
        }
        self.lexer.next();
        match self.lexer.next() {
            Token::Number(digits) => {
                let digit = |number: u64, byte: &u8| {
                    let digit = u64::from(byte.saturating_sub(b'0'));
                    number.checked_mul(10).and_then(|number| number.checked_add(digit))
                };
                let number = digits.iter().try_fold(0, digit);
                Ok(number.filter(|number| *number > 0 && *number < u64::MAX))
            }
            token => Err(unexpected(token, ", expecting FTS_NUMB")),
        }
    }

    /// Returns the words of a term. The first may be too short for the index. Later words that are
    /// too short are left out, and so is any word that is too long.
    fn terms(&mut self, text: &[u8]) -> Result<Vec<Term>> {
        let (mut terms, budget) = (Vec::<Term>::new(), &mut *self.budget);
        self.source.split(text, &mut |word: Word<'_>| {
            let is_left_out = match word.kind {
                WordKind::Indexed | WordKind::StopWord => false,
                WordKind::TooShort => !terms.is_empty(),
                WordKind::TooLong => true,
            };
            if is_left_out {
                return Ok(());
            }
            budget.take(word.weights.len() + size_of::<Term>() + OPERAND_BYTES)?;
            terms.push(Term { weights: word.weights.to_vec(), is_prefix: false });
            Ok(())
        })?;
        Ok(terms)
    }
}

fn operator_of(token: Token<'_>) -> Option<Operator> {
    Some(match token {
        Token::Mark(b'+') => Operator::Required,
        Token::Mark(b'-') => Operator::Excluded,
        Token::Mark(b'~') => Operator::Negated,
        Token::Mark(b'<') => Operator::Lower,
        Token::Mark(b'>') => Operator::Higher,
        _ => return None,
    })
}

fn unexpected(token: Token<'_>, expected: &str) -> Error {
    syntax(format!("syntax error, unexpected {}{expected}", token.name()))
}

fn syntax(detail: String) -> Error {
    Error::Search { problem: SearchProblem::Syntax, detail }
}
