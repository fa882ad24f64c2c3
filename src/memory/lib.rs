//! What agents keep across sessions: memory files that the user and agents write, rules that are shown with the calls
//! that they concern, and learnings from failures.
//!
//! | folder or file | holds |
//! | --- | --- |
//! | `files` | memory files, and where their entries come from |
//! | `likeness` | whether one text repeats another one |
//! | `learnings` | what failed and what worked instead: kinds of failures, pairs, finding, consolidation, JSON lines |
//! | `screen` | what is found in a text that is to be kept: hidden characters, secrets, instructions |
//! | `rules` | matchers in entries of memory files, and the calls that they concern |
//! | `tools` | what the model can do with them |
//!
//! It may use `protocol`, `text`, `fs`, `config`, `shell`, `store` and `tool`. What is not here: what a model sees of it and
//! when (`engine`), and how it is searched by likeness (`search`).

pub mod files;
pub mod learnings;
pub mod likeness;
pub mod rules;
pub mod screen;
#[cfg(test)]
mod testing;
mod tools;

pub use files::{Memory, MemoryError, MemoryPlaces, MemorySettings, OrderTexts};
pub use learnings::Learnings;
pub use tools::{LearningsSlot, ProposalSettings, ScreenProposal, learning_tools, proposal_tool, tools};
