//! What servers send, as Tiller takes it over: part by part, so that an odd part costs nothing but itself.
//!
//! | file | its job |
//! | --- | --- |
//! | `names` | names of tools and prompts: their own, or safe ones that stand for them |
//! | `parts` | lists and results, read piece by piece, with words for what was left out |
//! | `result` | results as a model reads them |
//! | `words` | errors of the SDK in words |

pub(crate) mod names;
pub(crate) mod parts;
pub(crate) mod result;
pub(crate) mod words;

#[cfg(test)]
mod odd_tests;
