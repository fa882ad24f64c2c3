//! Texts of a bounded length.

use tiller_tool::output::cut_middle;

/// The beginning of a long text, at most `most` bytes of it and `...`.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    if end < text.len() { format!("{}...", &text[..end]) } else { text.to_owned() }
}

/// The way to all of a message of which the row of its agent has only a part.
pub(crate) const IN_SESSION: &str = "its session has all of it";

/// The first and the last part of a long text, `most` bytes together; between them how much is left out, and `way`, which
/// leads to all of it. What an agent found stands at the beginning, what it concludes at the end.
pub(crate) fn ends(text: &str, most: usize, way: &str) -> String {
    cut_middle(text, most, way).unwrap_or_else(|| text.to_owned())
}
