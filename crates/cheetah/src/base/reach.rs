//! Reach marks: a rare code path notes that it was taken, and a test asserts that it was.
//!
//! A model test that never splits an inner page proves nothing about splitting inner pages. Marks
//! exist only in builds with debug assertions; in release builds [`mark`] is empty.

#[cfg(debug_assertions)]
static MARKS: parking_lot::Mutex<std::collections::BTreeMap<&'static str, u64>> =
    parking_lot::Mutex::new(std::collections::BTreeMap::new());

/// Notes that the path `name` was taken.
#[inline]
pub fn mark(name: &'static str) {
    #[cfg(debug_assertions)]
    {
        *MARKS.lock().entry(name).or_default() += 1;
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// The number of times that the path `name` was taken in this process. Always 0 in release builds.
pub fn count(name: &str) -> u64 {
    #[cfg(debug_assertions)]
    return MARKS.lock().get(name).copied().unwrap_or(0);
    #[cfg(not(debug_assertions))]
    {
        let _ = name;
        0
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_mark_counts_how_often_it_was_reached() {
        assert_eq!(super::count("reach.test"), 0);
        super::mark("reach.test");
        super::mark("reach.test");
        assert_eq!(super::count("reach.test"), if cfg!(debug_assertions) { 2 } else { 0 });
    }
}
