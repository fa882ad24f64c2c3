//! Texts of a bounded length.

/// The beginning of a long text, at most `most` bytes of it and `...`.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    if end < text.len() { format!("{}...", &text[..end]) } else { text.to_owned() }
}
