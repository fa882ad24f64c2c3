//! Texts of a bounded length.

/// The beginning of a long text, at most `most` bytes of it and `...`.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    if end < text.len() { format!("{}...", &text[..end]) } else { text.to_owned() }
}

/// The way to all of a message of which the row of its agent has only a part.
pub(crate) const IN_SESSION: &str = "its session has all of it";

/// The first and the last part of a long text, `most` bytes together; between them its size and `rest`, the way to all of
/// it. What an agent found stands at the beginning, what it concludes at the end.
pub(crate) fn ends(text: &str, most: usize, rest: &str) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let last = most / 3;
    let head = &text[..text.floor_char_boundary(most - last)];
    let tail = &text[text.ceil_char_boundary(text.len() - last)..];
    let (left_out, all) = (text.len() - head.len() - tail.len(), text.len());
    let way = if rest.is_empty() { String::new() } else { format!("; {rest}") };
    // It was cut before: it was longer.
    let more = if text.contains(IN_SESSION) { "more than " } else { "" };
    format!("{head}\n[... {left_out} of {more}{all} bytes left out{way} ...]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_end_says_its_size_and_the_way_to_the_rest() {
        let text = format!("FIRST {} LAST", "ä".repeat(5_000));
        let said = ends(&text, 900, "agent_result a1 has all of it");
        assert!(said.starts_with("FIRST ä") && said.ends_with("ä LAST"), "{said}");
        assert!(said.contains("bytes left out; agent_result a1 has all of it ...]"), "{said}");
        assert!(said.contains(&format!("of {} bytes", text.len())) && said.len() < 1_000, "{said}");
        assert_eq!(ends("short", 5, "x"), "short");
        let again = ends(&ends(&text, 900, IN_SESSION), 300, "");
        assert!(again.contains(" of more than ") && again.ends_with(" LAST"), "{again}");
        for most in 0..40 {
            assert!(!ends(&text, most, "").is_empty());
        }
    }
}
