//! Collects the hits of a search within bounds.

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use crate::ToolCx;
use crate::files::content::encoding::hide_strays;
use crate::files::masks::MaskedText;
use crate::text::visible;

/// Matching lines in all and in one file; characters of one line.
const LINES: usize = 300;
const LINES_OF_FILE: usize = 100;
const COLUMNS: usize = 400;
/// Characters of a long line before its match.
const BEFORE: usize = 100;
/// Bytes around the match of a long line in which its secrets are looked for.
const AROUND: usize = 16 << 10;

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

    /// Adds a line. Of a long one it adds the part around the byte `at`.
    fn line(&mut self, number: Option<u64>, mark: char, bytes: &[u8], at: usize, cx: &ToolCx) {
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
        let line = part(bytes, at, cx);
        self.text.push_str(&format!("{}{mark}{line}\n", number.unwrap_or(0)));
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

/// A line as it is shown, or the part of a long one around the byte `at`. Secrets are masked before the cut: without what
/// stands before it, a value would not be known as one.
fn part(bytes: &[u8], at: usize, cx: &ToolCx) -> String {
    let end = bytes.iter().rposition(|b| !matches!(b, b'\n' | b'\r')).map_or(0, |last| last + 1);
    let bytes = &bytes[..end];
    let at = at.min(end);
    let (from, to) = (at.saturating_sub(AROUND), (at + AROUND).min(end));
    let mut text = hide_strays(&String::from_utf8_lossy(&bytes[from..at]));
    let (start, at) = (at, text.len());
    text.push_str(&hide_strays(&String::from_utf8_lossy(&bytes[start..to])));
    if from == 0 && to == end && text.chars().nth(COLUMNS).is_none() {
        return visible(&text).into_owned();
    }
    let masked = MaskedText::of(&text, &cx.workspace.secrets);
    let at = masked.to_shown(at).or_else(|value| masked.to_shown(value.start)).unwrap_or(0);
    let before = masked.shown()[..at].chars().count();
    // A match near the start needs no cut there.
    let cut = if before + BEFORE < COLUMNS { 0 } else { before - BEFORE };
    let mut rest = masked.shown().chars().skip(cut);
    let shown: String = rest.by_ref().take(COLUMNS).collect();
    let head = if from > 0 || cut > 0 { "[...] " } else { "" };
    let tail = if to < end || rest.next().is_some() { " [...]" } else { "" };
    format!("{head}{}{tail}", visible(&shown))
}

/// One file's search.
pub(crate) struct MatchSink<'a> {
    pub hits: &'a mut Hits,
    pub matcher: &'a RegexMatcher,
    pub cx: &'a ToolCx,
}

impl Sink for MatchSink<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        let at = self.matcher.find(hit.bytes()).ok().flatten().map_or(0, |found| found.start());
        self.hits.line(hit.line_number(), ':', hit.bytes(), at, self.cx);
        self.hits.lines += 1;
        self.hits.in_file += 1;
        self.hits.cut |= self.hits.in_file >= LINES_OF_FILE;
        Ok(!self.hits.full() && self.hits.in_file < LINES_OF_FILE && !self.cx.cancel.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, Self::Error> {
        self.hits.line(line.line_number(), '-', line.bytes(), 0, self.cx);
        Ok(!self.cx.cancel.is_cancelled())
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        self.hits.gap = true;
        Ok(true)
    }
}
