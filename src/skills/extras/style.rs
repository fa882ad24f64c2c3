//! Output styles.

use std::path::PathBuf;

use tiller_config::agents::Origin;
use tiller_config::agents::front::Pairs;

use super::described;

/// How answers are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// The name of its file.
    pub name: String,
    /// What it does; may be empty.
    pub description: String,
    pub from: Origin,
    pub file: PathBuf,
    pub body: String,
}

/// The styles that come with the program.
pub(super) const STYLES: &[(&str, &str)] = &[
    ("concise", include_str!("../../../assets/styles/concise.md")),
    ("explanatory", include_str!("../../../assets/styles/explanatory.md")),
    ("learning", include_str!("../../../assets/styles/learning.md")),
];

impl Style {
    /// The style of a file.
    pub(super) fn new(name: &str, pairs: &Pairs, body: String, from: Origin, file: PathBuf) -> Self {
        Self { name: name.to_owned(), description: described(pairs), from, file, body }
    }
}
