//! Planted bugs are places where a test can make the engine do the wrong thing, to prove that the
//! tests detect it.
//!
//! At such a place the code has `sound!(condition, "name")`, which is the condition, or false while
//! the bug is planted; without a condition, `true` stands there. The name says what the engine then
//! does.
//!
//! Invariants
//!   I1  Without the feature `planted-bugs`, `sound!` is just its condition and costs nothing. Only
//!       the tests of this workspace enable the feature (through a development dependency); no
//!       released build does.
//!   I2  A bug is planted in the thread that plants it, until its guard is dropped, so that
//!       concurrent tests do not disturb each other.
//!   I3  Every name has a test that fails if the bug is not detected or was never reached.
//!       `tests/rules.rs` checks this, and generates docs/developers/planted-bugs.md from these
//!       tests.
//!   I4  A bug counts as reached when its condition was true.

/// Evaluates to the condition, or to false while the bug with this name is planted.
macro_rules! sound {
    ($condition:expr, $bug:literal) => {
        $condition && !$crate::base::planted::is_on($bug)
    };
}
pub(crate) use sound;

#[cfg(not(feature = "planted-bugs"))]
#[inline(always)]
pub(crate) fn is_on(_name: &'static str) -> bool {
    false
}

#[cfg(feature = "planted-bugs")]
pub(crate) use with_feature::is_on;
#[cfg(feature = "planted-bugs")]
pub use with_feature::{plant, Planted};

#[cfg(feature = "planted-bugs")]
mod with_feature {
    use std::cell::RefCell;

    thread_local! {
        /// The planted bugs, and the number of times that each was reached.
        static PLANTED: RefCell<Vec<(&'static str, u64)>> = const { RefCell::new(Vec::new()) };
    }

    pub(crate) fn is_on(name: &'static str) -> bool {
        PLANTED.with_borrow_mut(|planted| {
            let found = planted.iter_mut().find(|(planted, _)| *planted == name);
            found.map(|(_, reached_count)| *reached_count += 1).is_some()
        })
    }

    /// Plants a bug in this thread until the guard is dropped.
    #[must_use = "dropping the guard removes the bug"]
    pub fn plant(name: &'static str) -> Planted {
        PLANTED.with_borrow_mut(|planted| planted.push((name, 0)));
        Planted(name)
    }

    /// A planted bug.
    #[derive(Debug)]
    pub struct Planted(&'static str);

    impl Planted {
        /// The number of times that the bug was reached. Zero means that the test proves nothing.
        pub fn reached_count(&self) -> u64 {
            PLANTED.with_borrow(|planted| {
                planted
                    .iter()
                    .find(|(name, _)| *name == self.0)
                    .map_or(0, |(_, reached_count)| *reached_count)
            })
        }
    }

    impl Drop for Planted {
        fn drop(&mut self) {
            PLANTED.with_borrow_mut(|planted| planted.retain(|(name, _)| *name != self.0));
        }
    }
}

#[cfg(all(test, feature = "planted-bugs"))]
mod tests {
    use super::*;

    #[test]
    fn a_bug_is_on_in_its_thread_until_the_guard_goes() {
        let test = |condition: bool| sound!(condition, "test");
        assert_eq!([true, false].map(test), [true, false]);
        let guard = plant("test");
        assert_eq!([true, false].map(test), [false, false]);
        assert_eq!(guard.reached_count(), 1);
        assert!(sound!(true, "other"));
        assert!(std::thread::spawn(move || test(true)).join().unwrap());
        drop(guard);
        assert!(test(true));
    }
}
