//! Skills: folders with a `SKILL.md`, in the open Agent Skills form. What stands in one is given to an agent whose
//! task or kind names it.
//!
//! ```text
//! ---
//! name: rust-style                # as the folder is called
//! description: How Rust is written here
//! ---
//! Prefer small modules. ...
//! ```
//!
//! The person's `skills/` < the project's `.tiller/skills/` (as it was trusted, byte for byte). Keys that the form
//! has besides these are let be. A file with a mistake is left out as a whole, and its mistake is reported.
//!
//! | file | holds |
//! | --- | --- |
//! | `load` | the layers |

mod load;

pub use load::{Skill, Skills};

#[cfg(test)]
mod load_tests;
