//! When something was that reports tell of.

/// See the module.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Moment {
    /// By the engine's clock.
    pub(crate) at_ns: u64,
    /// By the clock of people: date and time of day. Empty where nobody tells them.
    pub(crate) time: String,
}
