//! What went wrong without stopping the engine, where no statement could be told: in the
//! background, or while tidying up.
//!
//! Invariants
//!   I1  One entry for each place, its last failure. It goes when the place has done its work
//!       again.
//!   I2  A failure is announced when it is new; the same text again is not, however often the work
//!       is repeated.
//! Locks     one mutex, never held while the listener runs.

use super::Error;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::OnceLock;

type Listener = Box<dyn Fn(&str) + Send + Sync>;

/// The failures that last.
#[derive(Default)]
pub struct BackgroundErrors {
    last: Mutex<BTreeMap<&'static str, String>>,
    listener: OnceLock<Listener>,
}

impl std::fmt::Debug for BackgroundErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.last.lock().fmt(f)
    }
}

impl BackgroundErrors {
    /// Notes that `place`, a few words for people, has met `error`.
    pub fn note(&self, place: &'static str, error: &Error) {
        let text = error.to_string();
        let before = self.last.lock().insert(place, text.clone());
        if before.as_ref() != Some(&text) {
            self.announce(place, &text);
        }
    }

    /// Notes that `place` has done its work.
    pub fn clear(&self, place: &'static str) {
        self.last.lock().remove(place);
    }

    /// What lasts: places and their last failures.
    pub fn list(&self) -> Vec<(&'static str, String)> {
        self.last.lock().iter().map(|(place, text)| (*place, text.clone())).collect()
    }

    /// From now on `listener` hears of every new failure, after those there are. The first listener
    /// counts.
    pub fn announce_to(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
        self.list().iter().for_each(|(place, text)| self.announce(place, text));
    }

    fn announce(&self, place: &str, text: &str) {
        if let Some(listener) = self.listener.get() {
            listener(&format!("{place}: {text}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_failure_is_announced_once_until_the_place_works_again() {
        let errors = BackgroundErrors::default();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let error = || Error::corrupt("page 7", "bad checksum");
        errors.note("checkpoint", &error());
        let sink = Arc::clone(&heard);
        errors.announce_to(move |text| sink.lock().push(text.to_owned()));
        errors.note("checkpoint", &error());
        assert_eq!(*heard.lock(), ["checkpoint: corruption in page 7: bad checksum"]);
        errors.clear("checkpoint");
        assert!(errors.list().is_empty());
        errors.note("checkpoint", &error());
        assert_eq!((heard.lock().len(), errors.list().len()), (2, 1));
    }
}
