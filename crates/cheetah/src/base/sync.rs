//! The primitives of the algorithms that the model checker tests. Source files take them from
//! `super::sync`, so that a model can include the same file with `base::model` instead.

pub(crate) use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
