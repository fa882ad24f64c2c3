//! Whether a piece of streamed Markdown shows anything.

/// Reads Markdown piece by piece and tells of each whether a screen shows a word of it: blank lines, the marks of a fence
/// and the rule of a table show none.
#[derive(Debug, Default)]
pub struct Visible {
    /// Backticks with which the present line begins, as far as it is known; `None`: it begins with something else.
    fence: Option<u8>,
}

impl Visible {
    /// Takes the next piece in. Whether it shows a word.
    pub fn advance(&mut self, text: &str) -> bool {
        let mut shows = false;
        for c in text.chars() {
            match (c, self.fence) {
                ('\n', _) => self.fence = Some(0),
                ('`', Some(n)) if n < 3 => self.fence = Some(n + 1),
                (_, Some(3)) => {}
                _ if c.is_whitespace() => {}
                _ => {
                    self.fence = None;
                    shows |= c.is_alphanumeric();
                }
            }
        }
        shows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_nothing_does_not_keep_the_next_words_waiting() {
        let mut visible = Visible::default();
        let mut sees = |t: &str| visible.advance(t);
        // As the pieces come: a fence in two pieces, and the first word behind it.
        let pieces =
            ["- one", " two", "\n\n```ru", "st", "\nfn", " st", "ep() {", "\n}\n", "```", "\n\n##", " Title"];
        let seen = [true, true, false, false, true, true, true, false, false, false, true];
        assert!(pieces.iter().zip(seen).all(|(p, s)| sees(p) == s));
        assert!(!sees(" \n|---|:--:|\n") && !sees("- **") && sees("bold** "), "the rule shows nothing");
        assert!(sees("\n- `code()`") && !sees("\n\n```ru") && sees("\nлюди"));
        assert!(sees("a `word` of code ") && sees("\n``two`` "), "these are no fences");
    }
}
