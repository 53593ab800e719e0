//! The primitives under the algorithms that a model checker goes through: files that take them from
//! `super::sync`, so that a model can include the very same source over `base::model` instead.

pub(crate) use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
