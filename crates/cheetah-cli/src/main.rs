//! Offline tools for a Cheetah data directory.

fn main() {}
