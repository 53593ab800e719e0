//! Scrubbing: all images are read in turn at a low rate, and then the change files, so that damage
//! on disk is found before somebody needs the page, while a backup still has it.
//!
//! Invariants
//!   I1  It changes nothing. What is damaged stays where it is; whoever needs it meets the error.
//!   I2  An image that has been replaced meanwhile is not damaged: its segment may have gone.
//!   I3  A pass reads every image once that was there all the time. It begins at any page, so that
//!       a database that is never open for a whole pass is read everywhere in the end.
//! Locks     `state`, the outermost of the pool: only one caller scrubs.

mod progress;
mod step;
#[cfg(test)]
mod tests;

pub(super) use progress::Scrubbing;
pub use step::Scrubbed;
