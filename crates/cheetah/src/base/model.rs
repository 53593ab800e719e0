//! The types of [`super::sync`], built on the model checker's primitives. A model includes a source
//! file of the engine again, with this module as its `sync`. The checker runs all orders of the
//! steps of the model's threads that the memory model allows, in one thread of the operating
//! system, so a planted bug affects all of them.

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::ops::{Deref, DerefMut};
use std::sync::LockResult;

/// With more preemptions of a thread a model takes minutes, and most races need one or two.
const PREEMPTIONS_MAX: usize = 3;

/// A model with fewer orders does not test what it claims.
const ORDERS_MIN: u64 = 100;

/// Runs all orders. Panics if an assertion fails or threads deadlock.
pub(crate) fn check(model: impl Fn() + Send + Sync + 'static) {
    let orders = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS_MAX);
    let counter = std::sync::Arc::clone(&orders);
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let orders = orders.load(Ordering::Relaxed);
    println!("{orders} orders");
    assert!(orders >= ORDERS_MIN, "{orders} orders");
}

pub(crate) fn fails(model: impl Fn() + Send + Sync + 'static) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(model))).is_err()
}

pub(crate) fn finds(name: &'static str, model: impl Fn() + Send + Sync + 'static) -> bool {
    let bug = super::planted::plant(name);
    let is_found = fails(model);
    assert!(bug.reached_count() > 0, "'{name}' was never reached");
    is_found
}

/// If a model fails, the guard is leaked, because its lock no longer exists.
#[derive(Debug)]
pub(crate) struct Guard<G>(Option<G>);

impl<G> Guard<G> {
    fn new(guard: LockResult<G>) -> Self {
        Self(Some(guard.unwrap()))
    }
}

impl<G: Deref> Deref for Guard<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        self.0.as_ref().unwrap()
    }
}

impl<G: DerefMut> DerefMut for Guard<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        self.0.as_mut().unwrap()
    }
}

impl<G> Drop for Guard<G> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::mem::forget(self.0.take());
        }
    }
}

pub(crate) type MutexGuard<'a, T> = Guard<loom::sync::MutexGuard<'a, T>>;
pub(crate) type RwLockReadGuard<'a, T> = Guard<loom::sync::RwLockReadGuard<'a, T>>;
pub(crate) type RwLockWriteGuard<'a, T> = Guard<loom::sync::RwLockWriteGuard<'a, T>>;

/// Like parking_lot's.
#[derive(Default, Debug)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        Guard::new(self.0.lock())
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok().map(|guard| Guard(Some(guard)))
    }
}

/// Like parking_lot's.
#[derive(Default, Debug)]
pub(crate) struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let inner = guard.0.take().unwrap();
        *guard = Guard::new(self.0.wait(inner));
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Like parking_lot's, which also has upgradable readers, one at a time.
#[derive(Debug)]
pub(crate) struct RwLock<T> {
    upgradable: Mutex<()>,
    inner: loom::sync::RwLock<T>,
}

impl<T> RwLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { upgradable: Mutex::new(()), inner: loom::sync::RwLock::new(value) }
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        Guard::new(self.inner.read())
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        Guard::new(self.inner.write())
    }

    pub(crate) fn upgradable_read(&self) -> RwLockUpgradableReadGuard<'_, T> {
        let alone = self.upgradable.lock();
        RwLockUpgradableReadGuard { read: self.read(), _alone: alone }
    }
}

/// Like parking_lot's, but it cannot be upgraded.
#[derive(Debug)]
pub(crate) struct RwLockUpgradableReadGuard<'a, T> {
    read: RwLockReadGuard<'a, T>,
    _alone: MutexGuard<'a, ()>,
}

impl<T> Deref for RwLockUpgradableReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.read
    }
}
