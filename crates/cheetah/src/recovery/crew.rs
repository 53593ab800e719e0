//! The threads that the caller provides for startup recovery.

/// The function that each thread of a [`Crew`] runs. Its argument is the index of the thread.
pub(crate) type Serve<'s> = &'s (dyn Fn(usize) + Sync);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Crew {
    /// The maximum number of threads. If it is below two, no thread is started.
    pub(crate) threads: usize,
    /// Starts a thread for each index below `threads`, which runs the first function. Meanwhile
    /// runs the second function on the caller's thread with the number of threads that could be
    /// started; these have the lowest indexes. Returns when all functions have returned.
    pub(crate) run: fn(usize, Serve<'_>, &mut dyn FnMut(usize)),
}
