//! Splits a query into tokens.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token<'q> {
    /// An operator, a parenthesis, `*` or `@`.
    Mark(u8),
    /// Digits only. This token exists only in boolean mode.
    Number(&'q [u8]),
    /// Text outside of quotes: one or more words.
    Term(&'q [u8]),
    /// The text between two quotes, without them.
    Text(&'q [u8]),
    /// The end of the query.
    End,
}

impl Token<'_> {
    pub(super) fn name(self) -> String {
        match self {
            Token::Mark(mark) => format!("'{}'", char::from(mark)),
            Token::Number(_) => "FTS_NUMB".into(),
            Token::Term(_) => "FTS_TERM".into(),
            Token::Text(_) => "FTS_TEXT".into(),
            Token::End => "$end".into(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Lexer<'q> {
    rest: &'q [u8],
    is_boolean: bool,
}

impl<'q> Lexer<'q> {
    pub(super) fn new(query: &'q [u8], is_boolean: bool) -> Self {
        Self { rest: query, is_boolean }
    }

    /// Between tokens, skips spaces, tabs, line breaks, and characters that cannot begin one: `%`,
    /// and a quote without a closing quote in the same line.
    pub(super) fn next(&mut self) -> Token<'q> {
        while let Some(first) = self.rest.first() {
            let blank_len = self.len_of(|byte| matches!(byte, b' ' | b'\t'));
            let term_len = self.len_of(|byte| self.is_of_term(byte));
            match *first {
                _ if blank_len > 0 && blank_len >= term_len => {
                    self.take(blank_len);
                }
                b'*' if !self.is_boolean && term_len > 1 => return Token::Term(self.take(term_len)),
                mark if self.is_mark(mark) => {
                    self.take(1);
                    return Token::Mark(mark);
                }
                b'"' => {
                    if let Some(text) = self.take_text() {
                        return Token::Text(text);
                    }
                }
                _ if term_len == 0 => {
                    self.take(1);
                }
                _ => {
                    let term = self.take(term_len);
                    let is_number = self.is_boolean && term.iter().all(u8::is_ascii_digit);
                    return if is_number { Token::Number(term) } else { Token::Term(term) };
                }
            }
        }
        Token::End
    }

    pub(super) fn peek(&self) -> Token<'q> {
        Lexer { rest: self.rest, is_boolean: self.is_boolean }.next()
    }

    fn is_mark(&self, byte: u8) -> bool {
        byte == b'*' || (self.is_boolean && b"()+-<>~@".contains(&byte))
    }

    /// Returns whether a term may contain the byte. Tabs are allowed in terms.
    fn is_of_term(&self, byte: u8) -> bool {
        let ends_it = matches!(byte, b'"' | b' ' | b'\n' | b'%') || (self.is_boolean && self.is_mark(byte));
        !ends_it
    }

    fn len_of(&self, is_of: impl Fn(u8) -> bool) -> usize {
        self.rest.iter().position(|byte| !is_of(*byte)).unwrap_or(self.rest.len())
    }

    fn take(&mut self, len: usize) -> &'q [u8] {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }

    /// Takes a string in quotes. Without a closing quote in the same line, takes only the quote.
    fn take_text(&mut self) -> Option<&'q [u8]> {
        self.take(1);
        let len = self.len_of(|byte| !matches!(byte, b'"' | b'\n'));
        (self.rest.get(len) == Some(&b'"')).then(|| {
            let text = self.take(len);
            self.take(1);
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, is_boolean: bool, expected: &str) {
        let mut lexer = Lexer::new(query.as_bytes(), is_boolean);
        let mut found = Vec::new();
        loop {
            assert_eq!(lexer.peek(), lexer.peek());
            found.push(match lexer.next() {
                Token::Mark(mark) => char::from(mark).to_string(),
                Token::Number(text) => format!("n{}", String::from_utf8_lossy(text)),
                Token::Term(text) => format!("t{}", String::from_utf8_lossy(text)),
                Token::Text(text) => format!("q{}", String::from_utf8_lossy(text)),
                Token::End => break,
            });
        }
        assert_eq!(found.join("|"), expected, "{query:?}");
    }

    #[test]
    fn boolean_queries_have_these_pieces() {
        check("+a -b*(\"c d\"@12)", true, "+|ta|-|tb|*|(|qc d|@|n12|)");
        check("12a 12 a12", true, "t12a|n12|ta12");
        check("a\tb \tc\t \n\t\td\t", true, "ta\tb|tc\t|t\t\td\t");
        check("\t \t\n \t", true, "");
        check("a%b \"c\n\"d\" \"", true, "ta|tb|tc|qd");
        check("\"\"a\"\"", true, "q|ta|q");
        check("it's a,b.c&d", true, "tit's|ta,b.c&d");
        check("~<>@", true, "~|<|>|@");
    }

    #[test]
    fn natural_language_has_few_marks() {
        check("+a -b* (c) * ** *d", false, "t+a|t-b*|t(c)|*|t**|t*d");
        check("\"c d\"@12 12", false, "qc d|t@12|t12");
        check("a\"b\"%c \"d", false, "ta|qb|tc|td");
        check("* \t*\n\t*", false, "*|*|t\t*");
    }
}
