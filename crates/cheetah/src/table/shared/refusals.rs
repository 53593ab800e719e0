//! The latest refusal by a foreign key constraint, for reports.
//!
//! Locks     the text, briefly; no other lock is taken while it is held.

use super::moment::Moment;
use parking_lot::Mutex;

/// A longer text is truncated.
pub(crate) const REFUSAL_BYTES_MAX: usize = 8192;

/// Uses no memory until a row is refused.
#[derive(Default, Debug)]
pub(crate) struct Refusals(Mutex<Option<Refusal>>);

#[derive(Clone, Default, Debug)]
struct Refusal {
    moment: Moment,
    text: String,
}

impl Refusals {
    pub(crate) fn note(&self, moment: Moment, text: &str) {
        let mut latest = self.0.lock();
        let latest = latest.get_or_insert_with(Refusal::default);
        latest.moment = moment;
        latest.text.clear();
        latest.text.push_str(beginning(text, REFUSAL_BYTES_MAX));
    }

    pub(crate) fn latest(&self) -> Option<(Moment, String)> {
        self.0.lock().as_ref().map(|refusal| (refusal.moment.clone(), refusal.text.clone()))
    }
}

/// The longest prefix with at most `bytes_max` bytes that ends at a character boundary.
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
        let moment = |at_ns| Moment { at_ns, time: "now".to_owned() };
        let note = |at_ns, text: &str| refusals.note(moment(at_ns), text);
        let latest = |at_ns, text: &str| Some((moment(at_ns), text.to_owned()));
        note(1, "one");
        note(2, "another");
        assert_eq!(refusals.latest(), latest(2, "another"));
        note(3, &"ä".repeat(REFUSAL_BYTES_MAX));
        assert_eq!(refusals.latest(), latest(3, &"ä".repeat(REFUSAL_BYTES_MAX / 2)));
        assert_eq!((beginning("aä", 2), beginning("ä", 1), beginning("", 5)), ("a", "", ""));
    }
}
