//! Holds operations in progress, so that a test can see what continues meanwhile.

use super::fault::Op;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// Makes the next operation of a kind on a path wait before it takes effect, until this value is
/// dropped. Created by [`SimDisk::hold`](super::SimDisk::hold).
#[derive(Debug)]
pub struct Hold(Arc<Held>);

#[derive(Debug)]
pub(super) struct Held {
    op: Op,
    path: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default, Debug)]
struct State {
    is_reached: bool,
    is_over: bool,
}

impl Hold {
    pub(super) fn new(op: Op, path: &str) -> (Self, Arc<Held>) {
        let (state, changed) = Default::default();
        let held = Arc::new(Held { op, path: path.to_owned(), state, changed });
        (Self(Arc::clone(&held)), held)
    }

    /// Waits until an operation is held.
    pub fn wait_until_reached(&self) {
        let mut state = self.0.state.lock();
        while !state.is_reached {
            self.0.changed.wait(&mut state);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

impl Held {
    pub(super) fn is_pending(&self) -> bool {
        let state = self.state.lock();
        !state.is_reached && !state.is_over
    }

    /// Returns whether this operation must be held. A hold takes at most one operation.
    pub(super) fn takes(&self, op: Op, path: &str) -> bool {
        if self.op != op || !path.contains(&self.path) {
            return false;
        }
        let mut state = self.state.lock();
        let takes = !state.is_reached && !state.is_over;
        state.is_reached |= takes;
        takes
    }

    pub(super) fn wait(&self) {
        self.changed.notify_all();
        let mut state = self.state.lock();
        while !state.is_over {
            self.changed.wait(&mut state);
        }
    }
}
