//! Failures that did not stop the engine and that no statement could report, because they happened
//! in the background or during cleanup.
//!
//! Invariants
//!   I1  Each place has at most one entry, for its last failure. The entry is removed when the
//!       place succeeds.
//!   I2  A failure is announced once: the same text is not announced again until the place has
//!       succeeded. Until a listener is set, the last failure of each place is kept for the
//!       listener, even if the place succeeds later.
//! Locks     One mutex, never held while the listener runs.

use super::Error;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::OnceLock;

type Listener = Box<dyn Fn(&str) + Send + Sync>;

/// The current failures.
#[derive(Default)]
pub struct BackgroundErrors {
    noted: Mutex<Noted>,
    listener: OnceLock<Listener>,
}

#[derive(Default, Debug)]
struct Noted {
    last: BTreeMap<&'static str, String>,
    unheard: BTreeMap<&'static str, String>,
}

impl std::fmt::Debug for BackgroundErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.noted.lock().fmt(f)
    }
}

impl BackgroundErrors {
    /// Notes that `place`, a few words for users, has failed with `error`.
    pub fn note(&self, place: &'static str, error: &Error) {
        let text = error.to_string();
        let mut noted = self.noted.lock();
        let before = noted.last.insert(place, text.clone());
        if before.as_ref() != Some(&text) {
            noted.unheard.insert(place, text);
        }
        drop(noted);
        self.announce();
    }

    /// Notes that `place` has succeeded.
    pub fn clear(&self, place: &'static str) {
        self.noted.lock().last.remove(place);
    }

    /// Returns the current failures: the places and their last errors.
    pub fn list(&self) -> Vec<(&'static str, String)> {
        self.noted.lock().last.iter().map(|(place, text)| (*place, text.clone())).collect()
    }

    /// Sets the listener, which gets the failures so far and then every new failure. Only the first
    /// listener is used.
    pub fn announce_to(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
        self.announce();
    }

    fn announce(&self) {
        let Some(listener) = self.listener.get() else { return };
        let unheard = std::mem::take(&mut self.noted.lock().unheard);
        unheard.iter().for_each(|(place, text)| listener(&format!("{place}: {text}")));
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

    #[test]
    fn what_is_over_before_anybody_listens_is_announced() {
        let errors = BackgroundErrors::default();
        let heard = Arc::new(Mutex::new(Vec::new()));
        errors.note("page map", &Error::corrupt("map-7.log", "bad checksum"));
        errors.clear("page map");
        let sink = Arc::clone(&heard);
        errors.announce_to(move |text| sink.lock().push(text.to_owned()));
        assert_eq!(*heard.lock(), ["page map: corruption in map-7.log: bad checksum"]);
        assert!(errors.list().is_empty());
    }
}
