//! Operations that are held under way, so that a test can see what goes on beside them.

use super::fault::Op;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// The next operation of a kind on a path waits before it takes effect, until this is dropped. Made
/// by [`SimDisk::hold`](super::SimDisk::hold).
#[derive(Debug)]
pub struct Hold(Arc<Held>);

/// The same, as the disk sees it.
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

    /// Waits until an operation waits here.
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
    /// Whether it still waits for an operation.
    pub(super) fn is_pending(&self) -> bool {
        let state = self.state.lock();
        !state.is_reached && !state.is_over
    }

    /// Whether it is for this operation; if so, for no other one.
    pub(super) fn takes(&self, op: Op, path: &str) -> bool {
        if self.op != op || !path.contains(&self.path) {
            return false;
        }
        let mut state = self.state.lock();
        let takes = !state.is_reached && !state.is_over;
        state.is_reached |= takes;
        takes
    }

    /// Waits until the hold is over.
    pub(super) fn wait(&self) {
        self.changed.notify_all();
        let mut state = self.state.lock();
        while !state.is_over {
            self.changed.wait(&mut state);
        }
    }
}
