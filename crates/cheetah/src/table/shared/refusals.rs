//! What constraints between tables have refused last, for people.
//!
//! Locks     the text, for a moment; nothing is taken while it is held.

use parking_lot::Mutex;

/// Longest text that is kept; the rest of a longer one is cut off.
pub(crate) const REFUSAL_BYTES_MAX: usize = 8192;

/// See the module. Takes no memory before something is refused.
#[derive(Default, Debug)]
pub(crate) struct Refusals(Mutex<Option<Refusal>>);

#[derive(Clone, Default, Debug)]
struct Refusal {
    at_ns: u64,
    /// Date and time of day, if somebody knows them.
    time: String,
    text: String,
}

impl Refusals {
    /// Notes that something was refused at that time, in the words of whoever did so.
    pub(crate) fn note(&self, at_ns: u64, time: String, text: &str) {
        let mut latest = self.0.lock();
        let latest = latest.get_or_insert_with(Refusal::default);
        latest.at_ns = at_ns;
        latest.time = time;
        latest.text.clear();
        latest.text.push_str(beginning(text, REFUSAL_BYTES_MAX));
    }

    /// The latest one; when it was, by the engine's clock and by that of people.
    pub(crate) fn latest(&self) -> Option<(u64, String, String)> {
        self.0.lock().as_ref().map(|refusal| (refusal.at_ns, refusal.time.clone(), refusal.text.clone()))
    }
}

/// At most so many bytes of a text, and only whole characters.
fn beginning(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_kept_and_long_ones_end_after_a_whole_character() {
        let refusals = Refusals::default();
        assert_eq!(refusals.latest(), None);
        let note = |at_ns, text: &str| refusals.note(at_ns, "now".to_owned(), text);
        let latest = |at_ns, text: &str| Some((at_ns, "now".to_owned(), text.to_owned()));
        note(1, "one");
        note(2, "another");
        assert_eq!(refusals.latest(), latest(2, "another"));
        note(3, &"ä".repeat(REFUSAL_BYTES_MAX));
        assert_eq!(refusals.latest(), latest(3, &"ä".repeat(REFUSAL_BYTES_MAX / 2)));
        assert_eq!((beginning("aä", 2), beginning("ä", 1), beginning("", 5)), ("a", "", ""));
    }
}
