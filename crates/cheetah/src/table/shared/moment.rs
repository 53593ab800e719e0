//! The time of an event in a report.

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Moment {
    /// By the engine's clock.
    pub(crate) at_ns: u64,
    /// Date and time of day; empty if the caller provides no function for it.
    pub(crate) time: String,
}
