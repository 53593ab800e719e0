//! Tests of trees: against a model, and with several threads.

mod buffered;
mod bulk;
mod cursor;
mod disk;
mod estimates;
mod fixture;
mod limits;
mod model;
mod overtaken;
mod reserved;
mod rules;
mod threads;
mod unloaded;
