//! Runs the body of every entry point: converts errors to codes, and catches panics.
//!
//! Invariant
//!   I1  After a panic every open database is stopped, so that no thread continues with state that
//!       the panic left inconsistent. The next startup recovers all committed changes.

use crate::codes::Code;
use crate::types::CheetahBytes;
use cheetah::server::{Db, Stopper};
use cheetah::{Error, Result};
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
struct Failure {
    message: String,
    index_no: u32,
    existing: Vec<u8>,
}

thread_local! {
    static LAST: RefCell<Failure> = RefCell::default();
}

/// The databases that are open, or were open.
static OPENED: Mutex<Vec<Stopper>> = Mutex::new(Vec::new());

/// Makes a panic stop this database from now on (I1).
pub(crate) fn stop_after_panic(db: &Db) {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened.retain(Stopper::is_open);
    opened.push(db.stopper());
}

/// Runs `body`. Returns its code, or the code of its error or panic.
pub(crate) fn entry<C: Into<Code>>(body: impl FnOnce() -> Result<C>) -> i32 {
    let code = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(code)) => code.into(),
        Ok(Err(error)) => keep(error),
        Err(panic) => keep_panic(panic.as_ref()),
    };
    code as i32
}

/// Like [`entry`], with the result in `place`.
pub(crate) fn answer<T>(place: &mut T, body: impl FnOnce() -> Result<T>) -> i32 {
    entry(|| body().map(|answer| *place = answer))
}

/// Like [`answer`], for a result that becomes a handle.
pub(crate) fn handle<T>(place: &mut *mut T, body: impl FnOnce() -> Result<T>) -> i32 {
    answer(place, || Ok(Box::into_raw(Box::new(body()?))))
}

/// Runs `body`, which cannot fail. Returns `otherwise` if it panics.
pub(crate) fn value<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(panic) => {
            keep_panic(panic.as_ref());
            otherwise
        }
    }
}

fn keep(error: Error) -> Code {
    let code = Code::of(&error);
    LAST.with_borrow_mut(|last| {
        last.message = error.to_string();
        if let Error::DuplicateKey { index_no, existing } = error {
            last.index_no = index_no as u32;
            last.existing = existing;
        }
    });
    code
}

fn keep_panic(panic: &(dyn std::any::Any + Send)) -> Code {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    let message = format!("defect of the engine, please report it: {text}");
    for stopper in OPENED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        stopper.stop(&message);
    }
    LAST.with_borrow_mut(|last| last.message = message);
    Code::Panic
}

/// Returns the message of this thread's last failure. It is valid until the thread's next call.
#[no_mangle]
pub extern "C" fn cheetah_last_error() -> CheetahBytes {
    LAST.with_borrow(|last| CheetahBytes::of(&last.message))
}

/// Gets the index and the existing row's clustered key of this thread's last duplicate key.
#[no_mangle]
pub extern "C" fn cheetah_last_duplicate(index_no: &mut u32, existing: &mut CheetahBytes) {
    LAST.with_borrow(|last| {
        (*index_no, *existing) = (last.index_no, CheetahBytes::of(&last.existing));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use cheetah::server::Env;
    use cheetah::Config;
    use cheetah_io::sim::{SimClock, SimDisk};
    use std::sync::Arc;

    fn message() -> String {
        // SAFETY: no other call runs in between.
        unsafe { cheetah_last_error().text() }
    }

    #[test]
    fn a_panic_becomes_a_code_with_its_message() {
        assert_eq!(entry::<()>(|| panic!("slot {} is gone", 7)), Code::Panic as i32);
        assert!(message().contains("slot 7 is gone"));
    }

    #[test]
    fn a_panic_stops_the_open_databases() {
        let (disk, clock) = (SimDisk::new(), SimClock::default());
        let db = Db::open(Env { disk: Arc::new(disk), clock: Arc::new(clock) }, Config::tiny()).unwrap();
        stop_after_panic(&db);
        assert_eq!(entry::<()>(|| panic!("slot {} is gone", 8)), Code::Panic as i32);
        assert!(db.stopped().is_some());
        assert!(db.checkpoint().is_err());
    }

    #[test]
    fn a_duplicate_key_tells_index_and_row() {
        let error = Error::DuplicateKey { index_no: 3, existing: vec![1, 2] };
        assert_eq!(entry::<()>(|| Err(error)), Code::DuplicateKey as i32);
        let (mut index_no, mut existing) = (0, CheetahBytes::EMPTY);
        cheetah_last_duplicate(&mut index_no, &mut existing);
        // SAFETY: no other call runs in between.
        assert_eq!((index_no, unsafe { existing.get() }), (3, [1, 2].as_slice()));
    }

    #[test]
    fn a_panic_in_a_call_without_code_gives_the_default() {
        assert_eq!(value(5, || panic!("never")), 5);
    }
}
