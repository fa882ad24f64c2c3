//! Output that a program reports repeatedly from its beginning: passes on the new part.

/// Bytes at the end of the earlier output by which it is recognised.
const END: usize = 512;

/// How much of an output was passed on. Stores its length and its last bytes: comparing all of it each time would take
/// quadratic time.
#[derive(Debug, Default)]
pub(crate) struct RepeatedOutput {
    len: usize,
    end: Vec<u8>,
}

fn end(text: &str) -> &[u8] {
    &text.as_bytes()[text.len().saturating_sub(END)..]
}

impl RepeatedOutput {
    /// The part of `output` that was not passed on yet: its end, or all of it when the earlier output is not its
    /// prefix.
    pub(crate) fn more(&mut self, output: &str) -> String {
        let same = output.get(..self.len).is_some_and(|told| end(told) == self.end);
        if same && output.len() == self.len {
            return String::new();
        }
        let from = if same { self.len } else { 0 };
        self.len = output.len();
        self.end.clear();
        self.end.extend_from_slice(end(output));
        output.get(from..).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_passed_on() {
        let (mut told, mut output, mut sent) = (RepeatedOutput::default(), String::new(), 0);
        for n in 0..1000 {
            output.push_str(&format!("line {n} é\n"));
            let more = told.more(&output);
            assert_eq!(more, format!("line {n} é\n"));
            sent += more.len();
        }
        assert_eq!(sent, output.len());
        assert_eq!(told.more(&output), "");
        // Another text of the same length, and a shorter one, are passed on whole.
        let other = "x".repeat(output.len());
        assert_eq!(told.more(&other), other);
        assert_eq!(told.more("short"), "short");
        assert_eq!(told.more("short and more"), " and more");
    }
}
