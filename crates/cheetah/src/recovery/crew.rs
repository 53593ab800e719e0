//! The threads that the caller provides for startup recovery.

/// The work of each thread of a [`Crew`], which gets its index.
pub(crate) type Serve<'s> = &'s (dyn Fn(usize) + Sync);

/// Threads for the duration of a startup recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crew {
    /// The most threads to start; below two no thread is started.
    pub(crate) threads: usize,
    /// Runs the first function once for each index below `threads`, each on a thread of its own.
    /// Meanwhile runs the second function on the caller's thread, with the number of threads that
    /// could be started; these have the lowest indexes. Returns when all have ended.
    pub(crate) run: fn(usize, Serve<'_>, &mut dyn FnMut(usize)),
}
