//! The encoding of an index's keys, as far as needed to find the end of each key part.
//!
//! The caller encodes keys; the engine never computes one. With the encoding, the engine can count
//! the leading parts that two stored keys share without a call for each key, and can split a key
//! into values for display.
//!
//! Invariants
//!   I1  The end of a part follows from its own bytes: no encoded value is a proper prefix of
//!       another. So parts are read one after the other.
//!   I2  Any bytes are accepted: for an invalid key, the parts before the first unterminated one
//!       are returned.

/// The encoding of an index's stored keys: the index's own parts, then those of the clustered key.
#[derive(Clone, Debug, Default)]
pub struct KeyEncoding {
    /// The parts, in the order of the key.
    pub parts: Vec<KeyPartEncoding>,
}

/// The encoding of a part of a key.
#[derive(Clone, Debug)]
pub struct KeyPartEncoding {
    /// Whether the part begins with a byte that is 0 for NULL. Nothing follows that 0.
    pub nullable: bool,
    /// Whether all bytes are inverted.
    pub descending: bool,
    /// Whether the part counts; false if an earlier part has the same column.
    pub is_counted: bool,
    /// The encoding of the part's values.
    pub value: ValueEncoding,
    /// Tells the caller how to display the part's values. The engine only passes it back
    /// (`Db::show_values_with`).
    pub shown_as: u32,
}

/// The encoding of the values of a key part.
#[derive(Clone, Debug)]
pub enum ValueEncoding {
    /// A fixed number of bytes.
    Fixed(usize),
    /// Weights of a collation, one level after the other.
    Text(Vec<TextLevel>),
}

/// One level of weights.
#[derive(Clone, Debug)]
pub enum TextLevel {
    /// This weight, that of the space, is always followed by one byte, which is 1 at the end.
    Padded(Vec<u8>),
    /// A zero byte is followed by 0 at the end, and by another byte elsewhere.
    Unpadded,
}

#[derive(PartialEq, Eq, Debug)]
pub(crate) enum KeyValue {
    Null,
    /// The [`shown_as`](KeyPartEncoding::shown_as) of its part, and its bytes as encoded by the
    /// caller, in ascending order.
    Value(u32, Vec<u8>),
    /// Bytes after the last complete part.
    Rest(Vec<u8>),
}

impl KeyEncoding {
    /// The values of the counted parts of a stored key, or of a prefix of one.
    pub(crate) fn values(&self, key: &[u8]) -> Vec<KeyValue> {
        let (mut values, mut at) = (Vec::new(), 0);
        for part in &self.parts {
            let Some(end) = part.end(key, at).filter(|_| at < key.len()) else { break };
            let bytes = key.get(at..end).unwrap_or_default();
            at = end;
            if part.is_counted {
                values.push(part.value(bytes));
            }
        }
        match key.get(at..) {
            None | Some([]) => {}
            Some(rest) => values.push(KeyValue::Rest(rest.to_vec())),
        }
        values
    }

    /// Appends the ends of the counted parts of a stored key.
    pub(crate) fn ends(&self, key: &[u8], ends: &mut Vec<usize>) {
        let mut at = 0;
        for part in &self.parts {
            match part.end(key, at) {
                Some(end) => at = end,
                None => return,
            }
            if part.is_counted {
                ends.push(at);
            }
        }
    }
}

impl KeyPartEncoding {
    fn value(&self, bytes: &[u8]) -> KeyValue {
        let flip = if self.descending { 0xff } else { 0 };
        let mut bytes: Vec<_> = bytes.iter().map(|byte| byte ^ flip).collect();
        if !self.nullable {
            return KeyValue::Value(self.shown_as, bytes);
        }
        match bytes.first() {
            None | Some(0) => KeyValue::Null,
            Some(_) => KeyValue::Value(self.shown_as, bytes.split_off(1)),
        }
    }

    /// The end of the part that begins at `at`; `None` if it does not end.
    fn end(&self, key: &[u8], mut at: usize) -> Option<usize> {
        let flip = if self.descending { 0xff } else { 0 };
        if self.nullable {
            let flag = key.get(at)? ^ flip;
            at += 1;
            if flag == 0 {
                return Some(at);
            }
        }
        match &self.value {
            ValueEncoding::Fixed(bytes) => at.checked_add(*bytes).filter(|end| *end <= key.len()),
            ValueEncoding::Text(levels) => levels.iter().try_fold(at, |at, level| level.end(key, at, flip)),
        }
    }
}

impl TextLevel {
    fn end(&self, key: &[u8], mut at: usize, flip: u8) -> Option<usize> {
        loop {
            match self {
                TextLevel::Padded(space) => {
                    let weight = key.get(at..at.checked_add(space.len().max(1))?)?;
                    at += weight.len();
                    if !weight.iter().zip(space).all(|(byte, space)| byte ^ flip == *space) {
                        continue;
                    }
                    at += 1;
                    if key.get(at - 1)? ^ flip == 1 {
                        return Some(at);
                    }
                }
                TextLevel::Unpadded => {
                    at += 1;
                    if key.get(at - 1)? ^ flip != 0 {
                        continue;
                    }
                    at += 1;
                    if key.get(at - 1)? ^ flip == 0 {
                        return Some(at);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(value: ValueEncoding) -> KeyPartEncoding {
        KeyPartEncoding { nullable: false, descending: false, is_counted: true, value, shown_as: 7 }
    }

    fn padded() -> ValueEncoding {
        ValueEncoding::Text(vec![TextLevel::Padded(vec![0, b' '])])
    }

    fn unpadded() -> ValueEncoding {
        ValueEncoding::Text(vec![TextLevel::Unpadded])
    }

    fn check(parts: Vec<KeyPartEncoding>, key: &[u8], expected: &[usize]) {
        let mut ends = Vec::new();
        KeyEncoding { parts: parts.clone() }.ends(key, &mut ends);
        assert_eq!(ends, expected);
        let inverted: Vec<_> = key.iter().map(|byte| !byte).collect();
        let parts = parts.into_iter().map(|part| KeyPartEncoding { descending: true, ..part }).collect();
        ends.clear();
        KeyEncoding { parts }.ends(&inverted, &mut ends);
        assert_eq!(ends, expected, "the other way round");
    }

    #[test]
    fn values_are_those_of_the_parts_and_what_is_left() {
        let fixed = || part(ValueEncoding::Fixed(2));
        let nullable = || KeyPartEncoding { nullable: true, ..fixed() };
        let descending = || KeyPartEncoding { descending: true, ..nullable() };
        let values = |parts: Vec<_>, key: &[u8]| KeyEncoding { parts }.values(key);
        let value = |bytes: &[u8]| KeyValue::Value(7, bytes.to_vec());
        let rest = |bytes: &[u8]| KeyValue::Rest(bytes.to_vec());
        assert_eq!(values(vec![fixed(), nullable()], b"ab\x01cd"), [value(b"ab"), value(b"cd")]);
        assert_eq!(values(vec![nullable(), fixed()], b"\0ab"), [KeyValue::Null, value(b"ab")]);
        let inverted: Vec<_> = b"\x01cd".iter().map(|byte| !byte).collect();
        assert_eq!(values(vec![descending()], &inverted), [value(b"cd")]);
        assert_eq!(values(vec![descending()], b"\xff"), [KeyValue::Null]);
        assert_eq!(values(vec![fixed(), fixed()], b"abc"), [value(b"ab"), rest(b"c")]);
        assert_eq!(values(vec![fixed()], b"abc"), [value(b"ab"), rest(b"c")]);
        let twice = KeyPartEncoding { is_counted: false, ..fixed() };
        assert_eq!(values(vec![fixed(), twice], b"abab"), [value(b"ab")]);
        assert_eq!((values(vec![fixed()], b""), values(vec![], b"a")), (vec![], vec![rest(b"a")]));
    }

    #[test]
    fn parts_end_where_their_own_bytes_say() {
        let fixed = || part(ValueEncoding::Fixed(2));
        check(vec![fixed(), fixed()], b"abcd", &[2, 4]);
        check(vec![fixed(), fixed()], b"abc", &[2]);
        check(vec![], b"abc", &[]);
        let nullable = || KeyPartEncoding { nullable: true, ..fixed() };
        check(vec![nullable(), nullable(), fixed()], b"\0\x01abcd", &[1, 4, 6]);
        check(vec![nullable()], b"", &[]);
        // "a b", then the end, as two-byte weights.
        let text = b"\0a\0 \x02\0b\0 \x01";
        check(vec![part(padded())], text, &[text.len()]);
        check(vec![part(padded())], &text[..text.len() - 1], &[]);
        check(vec![part(unpadded()), fixed()], b"a\0\xffb\0\0xy", &[6, 8]);
        check(vec![part(unpadded())], b"a\0", &[]);
        check(
            vec![part(ValueEncoding::Text(vec![TextLevel::Unpadded; 2])), fixed()],
            b"a\0\0b\0\0xy",
            &[6, 8],
        );
    }

    #[test]
    fn parts_that_do_not_count_are_passed() {
        let passed = KeyPartEncoding { is_counted: false, ..part(ValueEncoding::Fixed(1)) };
        check(vec![part(ValueEncoding::Fixed(1)), passed, part(ValueEncoding::Fixed(1))], b"abc", &[1, 3]);
    }

    #[test]
    fn any_bytes_end_somewhere() {
        let mut ends = Vec::new();
        for value in [padded(), unpadded(), ValueEncoding::Text(vec![TextLevel::Padded(Vec::new())])] {
            let encoding = KeyEncoding { parts: vec![part(value.clone()), part(value)] };
            for length in 0..40usize {
                let bytes: Vec<u8> = (0..length).map(|i| (i * length % 3) as u8 * b' ').collect();
                ends.clear();
                encoding.ends(&bytes, &mut ends);
                assert!(ends.iter().all(|end| *end <= bytes.len()));
            }
        }
    }
}
