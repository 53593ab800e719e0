//! The fatal error of an engine, after which every call fails until the database is opened again.
//!
//! Invariants
//!   I1  A failed sync is fatal and never retried (the kernel marks pages clean after reporting it
//!       once).
//!   I2  The first reason is kept.

use super::stalls::Stalls;
use super::{BackgroundErrors, Error, Result};
use std::sync::OnceLock;

/// Whether the engine may continue, its background errors, and its stalls. Shared by all layers.
#[derive(Default, Debug)]
pub struct Health {
    stopped: OnceLock<String>,
    background_errors: BackgroundErrors,
    stalls: Stalls,
}

impl Health {
    /// Fails with `Fatal` if the engine has stopped.
    pub fn check(&self) -> Result<()> {
        match self.stopped.get() {
            None => Ok(()),
            Some(reason) => Err(Error::Fatal(reason.clone())),
        }
    }

    /// Stops the engine permanently. Returns the error for the caller.
    pub fn stop(&self, reason: impl Into<String>) -> Error {
        let reason = self.stopped.get_or_init(|| reason.into());
        Error::Fatal(reason.clone())
    }

    /// Stops the engine if `result` is an error, which leaves a mini-transaction incomplete.
    pub fn must<T>(&self, what: &str, result: Result<T>) -> Result<T> {
        result.map_err(|error| self.stop(format!("{what} failed in the middle: {error}")))
    }

    /// The errors that have not stopped the engine.
    pub fn background_errors(&self) -> &BackgroundErrors {
        &self.background_errors
    }

    /// The stalls of the engine's threads.
    pub fn stalls(&self) -> &Stalls {
        &self.stalls
    }

    /// Returns why the engine has stopped, if it has.
    pub fn reason(&self) -> Option<&str> {
        self.stopped.get().map(String::as_str)
    }
}
