//! The threads that the caller lends to startup recovery.

/// The work of each thread of a [`Crew`], by its number.
pub(crate) type Serve<'s> = &'s (dyn Fn(usize) + Sync);

/// Threads for the time of a startup recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crew {
    /// How many there may be; below two no thread is started.
    pub(crate) threads: usize,
    /// Runs the first function once for each number below `threads`, each on a thread of its own.
    /// Meanwhile runs the second one on the caller's thread, with the number of threads that could
    /// be started; these are the first ones. Returns when all have ended.
    pub(crate) run: fn(usize, Serve<'_>, &mut dyn FnMut(usize)),
}
