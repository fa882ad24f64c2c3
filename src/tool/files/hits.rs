//! Collects the hits of a search within bounds.

use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use tokio_util::sync::CancellationToken;

use crate::text::visible;

/// Matching lines in all and in one file; characters of one line.
const LINES: usize = 300;
const LINES_OF_FILE: usize = 100;
const COLUMNS: usize = 400;

/// What was found so far.
#[derive(Debug)]
pub(crate) struct Hits {
    text: String,
    limit: usize,
    lines: usize,
    files: usize,
    in_file: usize,
    /// Written once the file has a hit.
    heading: Option<String>,
    gap: bool,
    cut: bool,
    skipped: Vec<String>,
}

impl Hits {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            text: String::new(),
            limit: limit.saturating_sub(500),
            lines: 0,
            files: 0,
            in_file: 0,
            heading: None,
            gap: false,
            cut: false,
            skipped: Vec::new(),
        }
    }

    pub(crate) fn file(&mut self, name: &str) {
        self.heading = Some(name.to_owned());
        self.in_file = 0;
        self.gap = false;
    }

    pub(crate) fn skipped(&mut self, name: &str) {
        if self.skipped.len() < 10 {
            self.skipped.push(name.to_owned());
        }
    }

    pub(crate) fn full(&self) -> bool {
        self.lines >= LINES || self.text.len() >= self.limit
    }

    fn line(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) {
        if let Some(name) = self.heading.take() {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str(&name);
            self.text.push('\n');
            self.files += 1;
        } else if std::mem::take(&mut self.gap) {
            self.text.push_str("--\n");
        }
        let line = String::from_utf8_lossy(&bytes[..bytes.len().min(COLUMNS * 4)]);
        let line = visible(line.trim_end_matches(['\n', '\r'])).into_owned();
        let shown: String = line.chars().take(COLUMNS).collect();
        let rest = if bytes.len() > shown.len() + 2 { " [...]" } else { "" };
        self.text.push_str(&format!("{}{mark}{shown}{rest}\n", number.unwrap_or(0)));
    }

    /// The text, and a measure for the screen.
    pub(crate) fn finish(mut self) -> (String, String) {
        if self.lines == 0 {
            self.text = "nothing found\n".into();
        } else if self.full() {
            self.text
                .push_str(&format!("[stopped at {} hits; narrow the pattern, glob or path]\n", self.lines));
        } else if self.cut {
            self.text.push_str(&format!("[at most {LINES_OF_FILE} hits of a file are shown]\n"));
        }
        if !self.skipped.is_empty() {
            self.text.push_str(&format!("[not searched completely: {}]\n", self.skipped.join(", ")));
        }
        let words = match (self.lines, self.files) {
            (0, _) => "no hit".into(),
            (1, _) => "1 hit".into(),
            (n, 1) => format!("{n} hits in 1 file"),
            (n, m) => format!("{n} hits in {m} files"),
        };
        (self.text, words)
    }
}

/// One file's search.
pub(crate) struct MatchSink<'a> {
    pub hits: &'a mut Hits,
    pub cancel: &'a CancellationToken,
}

impl Sink for MatchSink<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.hits.line(hit.line_number(), ':', hit.bytes());
        self.hits.lines += 1;
        self.hits.in_file += 1;
        self.hits.cut |= self.hits.in_file >= LINES_OF_FILE;
        Ok(!self.hits.full() && self.hits.in_file < LINES_OF_FILE && !self.cancel.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, Self::Error> {
        self.hits.line(line.line_number(), '-', line.bytes());
        Ok(!self.cancel.is_cancelled())
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        self.hits.gap = true;
        Ok(true)
    }
}
