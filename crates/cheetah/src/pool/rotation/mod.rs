//! Rotation: images that are not closed as they should be now are closed anew, and moved. They
//! should be otherwise when a key has a newer version, or when tables that do not say are encrypted
//! no more, or from now on.
//!
//! Invariants
//!   E15  Images are moved by the rules of garbage collection (C1, B6, V5), through `install`, with
//!        a nonce of their own. A page with changes that are not written yet is left to the
//!        checkpoint behind the pass. What waits for a leaf is brought into it.
//!   I1   A pass begins after a checkpoint that began when the keys served that it closes with:
//!        whoever had taken the key before has installed its image by then.
//!   I2   A pass tells of every image that it should have closed anew and could not, so that
//!        another pass does. Only what is damaged is passed by for good.
//! Locks     `state`, the outermost of the pool: only one caller rotates.

mod progress;
mod step;

pub(super) use progress::Rotation;
pub use progress::RotationPass;
pub use step::Rotated;
