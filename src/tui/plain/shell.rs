//! A running shell line (`!` or `!!`): its output is printed by whole lines.

use std::time::Duration;

/// Bytes of a line without an end that are kept back, at most.
const LONG: usize = 16 << 10;

/// The line that runs.
pub(super) struct ShellLine {
    /// The id of its output.
    pub(super) id: String,
    /// When it began.
    pub(super) since: Duration,
    /// Output that does not make a whole line yet.
    pub(super) partial: String,
    /// Some of its output was read out.
    pub(super) read_out: bool,
}

impl ShellLine {
    pub(super) fn new(id: &str, since: Duration) -> Self {
        Self { id: id.to_owned(), since, partial: String::new(), read_out: false }
    }

    /// Takes more output; gives the whole lines that are there now.
    pub(super) fn push(&mut self, text: &str) -> Option<String> {
        self.partial.push_str(text);
        let end = match self.partial.rfind('\n') {
            Some(at) => at + 1,
            None if self.partial.len() > LONG => self.partial.len(),
            None => return None,
        };
        let rest = self.partial.split_off(end);
        self.read_out = true;
        Some(std::mem::replace(&mut self.partial, rest))
    }
}
