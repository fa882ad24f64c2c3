//! Fuzzing: hostile bytes against everything that reads them.
//!
//! A target is one file in `targets` and one line in [`TARGETS`]. It gets any bytes and asserts what must hold of them;
//! that nothing panics, and that no input takes long, holds for all. It returns an outline of what happened (which
//! branches were taken, how many results there were): an input with a new outline is kept while a run lasts, and the
//! next inputs are made from it.
//!
//! | file | its job |
//! | --- | --- |
//! | `make` | makes inputs: words of the target's grammar, and mutations of inputs that were seen |
//! | `outline` | the outline of a case |
//! | `drive` | runs cases, finds what fails, makes it smaller |
//! | `kept` | the folder `corpus`: inputs that were kept |
//! | `supervise` | several processes at once; what ends a process or never ends is found too |
//!
//! `cargo xtask fuzz TARGET --cases N --seed S` runs it; the tests below run the kept inputs and some new ones.

pub mod drive;
pub mod kept;
pub mod make;
pub mod outline;
pub mod supervise;
pub mod targets;

pub use outline::Outline;
pub use targets::TARGETS;

/// Code that reads hostile bytes.
pub struct Target {
    pub name: &'static str,
    /// Words of its grammar, from which inputs are made: lists, some of which other targets have too.
    pub words: &'static [&'static [&'static str]],
    /// Whole inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Reads `data` and asserts what must hold. Deterministic, apart from the time that it takes.
    pub run: fn(data: &[u8]) -> u64,
}

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}

#[cfg(test)]
#[path = "fuzz_tests.rs"]
mod tests;
