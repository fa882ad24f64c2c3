//! The mistakes in a file that a person wrote: all of them, in the order of its lines.

/// A line, from 1, and what is wrong on it.
pub(crate) type Mistake = (usize, String);

/// Mistakes of one file, while it is read.
#[derive(Debug)]
pub(crate) struct Mistakes<'a> {
    text: &'a str,
    /// Where its lines end.
    ends: Vec<usize>,
    list: Vec<Mistake>,
}

impl<'a> Mistakes<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at).collect();
        Self { text, ends, list: Vec::new() }
    }

    /// The line, from 1, of a byte of the text.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.ends.partition_point(|end| *end < at.min(self.text.len())) + 1
    }

    /// At a byte of the text.
    pub(crate) fn at(&mut self, at: usize, message: impl Into<String>) {
        let line = self.line(at);
        self.on(line, message);
    }

    /// On a line.
    pub(crate) fn on(&mut self, line: usize, message: impl Into<String>) {
        self.list.push((line, message.into()));
    }

    /// Takes the mistakes that the parser of the whole text found. Where it went wrong, the rest would only be guessed.
    pub(crate) fn syntax(&mut self, errors: &[toml::de::Error]) -> bool {
        for e in errors {
            self.at(e.span().map_or(0, |s| s.start), e.message().replace('\n', ", "));
        }
        !errors.is_empty()
    }

    /// The first, and the others; `None`: there is none.
    pub(crate) fn end(mut self) -> Option<(Mistake, Vec<Mistake>)> {
        self.list.sort_by_key(|(line, _)| *line);
        self.list.dedup();
        let mut all = self.list.into_iter();
        Some((all.next()?, all.collect()))
    }
}

/// `; line 7: ...` for each.
pub(crate) fn more(list: &[Mistake]) -> String {
    list.iter().map(|(line, message)| format!("; line {line}: {message}")).collect()
}
