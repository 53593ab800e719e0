//! Calls of the caller's functions, each with the context that the caller passed along with it.

use crate::types::{CheetahBytes, CheetahTextSink};
use cheetah::Result;
use std::ffi::c_void;

pub(crate) struct Callback<F>(pub(crate) F, pub(crate) *mut c_void);

// SAFETY: the exported functions that keep a callback say which threads may call it.
unsafe impl<F: Send> Send for Callback<F> {}
// SAFETY: as above.
unsafe impl<F: Sync> Sync for Callback<F> {}

impl<F: Copy> Callback<F> {
    /// Passes the function and its context to `call`. A closure that calls this captures both
    /// together, so it can be sent to other threads.
    pub(crate) fn call<R>(&self, call: impl FnOnce(F, *mut c_void) -> R) -> R {
        call(self.0, self.1)
    }

    /// Calls the function by `call`, which gets it, its context, a sink and the sink's context.
    /// Returns the texts that the sink received.
    pub(crate) fn text(&self, call: impl FnOnce(F, *mut c_void, CheetahTextSink, *mut c_void)) -> String {
        let mut text = String::new();
        call(self.0, self.1, take_text, (&raw mut text).cast());
        text
    }
}

impl Callback<CheetahTextSink> {
    pub(crate) fn tell(&self, text: &str) {
        // SAFETY: the caller's function gets the caller's context.
        unsafe { self.0(self.1, CheetahBytes::of(text)) };
    }
}

unsafe extern "C" fn take_text(context: *mut c_void, text: CheetahBytes) {
    // SAFETY: `Callback::text` passes a string as the context, and the bytes are readable by the
    // contract of the crate.
    let (to, text) = unsafe { (&mut *context.cast::<String>(), text.text()) };
    to.push_str(&text);
}

/// Receives the C form of one item.
pub(crate) type Sink<C> = unsafe extern "C" fn(context: *mut c_void, item: *const C);

/// Passes each item to the sink in its C form, which may point into the item.
pub(crate) fn each<C, I: IntoIterator>(
    sink: Sink<C>,
    context: *mut c_void,
    items: I,
    form: impl Fn(&I::Item) -> C,
) -> Result<()> {
    for item in items {
        // SAFETY: the caller's function gets the caller's context.
        unsafe { sink(context, &form(&item)) };
    }
    Ok(())
}
