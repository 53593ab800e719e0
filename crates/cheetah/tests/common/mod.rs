//! What several integration tests share.

pub(crate) mod decoded;
pub(crate) mod mutate;
pub(crate) mod repair;
