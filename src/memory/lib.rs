//! What agents keep across sessions: memory files that the person and agents write, rules that are shown with the calls
//! that they concern, and learnings from failures.
//!
//! It may use `protocol`, `fs`, `config`, `store` and `tool`. What is not here: what a model sees of it and when (`engine`),
//! and how it is searched by likeness (`search`).

pub mod files;
mod tools;

pub use files::{Memory, MemoryError, MemoryPlaces, MemorySettings};
pub use tools::tools;
