//! Fenced code at the top level, read line by line, because these are the longest blocks that models write.

use std::borrow::Cow;

use super::Opts;
use super::render::{code_line, name_language};
use crate::sheet::{CodeSpan, Sheet};

/// Columns between two tab stops where blocks are indented (CommonMark 0.31, section 2.2).
const TAB_STOP: usize = 4;
/// Bytes that are shown of an incomplete line.
const PARTIAL: usize = 16 << 10;

/// An unclosed fence.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    mark: u8,
    len: usize,
    indent: usize,
    language: Box<str>,
    /// Start of the next complete line.
    at: usize,
    /// The sheet's first line of code.
    first: usize,
    /// So many lines at the end of the sheet are of a line that is not complete yet.
    partial: usize,
    begun: bool,
}

impl Fence {
    /// The fence that begins at `at`, if the line there opens one and is complete.
    pub(super) fn open(source: &str, at: usize, complete: usize) -> Option<Self> {
        let end = at + source[at..complete].find('\n')?;
        let line = &source[at..end];
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let mark = *text.as_bytes().first()?;
        let len = text.bytes().take_while(|b| *b == mark).count();
        if indent > 3 || len < 3 || !matches!(mark, b'`' | b'~') {
            return None;
        }
        let info = text[len..].trim();
        if mark == b'`' && info.contains('`') {
            return None;
        }
        let language = info.split_whitespace().next().unwrap_or_default().into();
        Some(Self { mark, len, indent, language, at: end + 1, first: 0, partial: 0, begun: false })
    }

    /// Adds complete lines up to `complete`. Returns the end of the closing line once that was read.
    pub(super) fn lines(
        &mut self,
        source: &str,
        complete: usize,
        sheet: &mut Sheet,
        opts: Opts,
    ) -> Option<usize> {
        self.unpartial(sheet);
        while let Some(n) = source[self.at..complete].find('\n') {
            let line = &source[self.at..self.at + n];
            self.at += n + 1;
            if self.closes(line) {
                return Some(self.at);
            }
            let pushed = self.push(line, sheet, opts);
            // The row of the language is no code.
            self.first += pushed - 1;
        }
        None
    }

    /// Shows the incomplete last line.
    pub(super) fn tail(&mut self, source: &str, sheet: &mut Sheet, opts: Opts) {
        self.unpartial(sheet);
        let line = &source[self.at..];
        // An incomplete closing fence would only flicker.
        if !line.is_empty() && !self.closes(line) {
            // A line of any length is not laid out again for each of its bytes.
            let shown = &line[..line.floor_char_boundary(PARTIAL)];
            self.partial = self.push(shown, sheet, opts);
        }
    }

    /// Ends the block: no more lines follow.
    pub(super) fn finish(&self, sheet: &mut Sheet) {
        if !self.language.is_empty() && sheet.lines.len() > self.first && sheet.codes.is_empty() {
            let code = CodeSpan { language: self.language.clone(), from: self.first, to: sheet.lines.len() };
            sheet.codes.push(code);
        }
    }

    fn unpartial(&mut self, sheet: &mut Sheet) {
        if !self.begun {
            self.begun = true;
            self.first = sheet.lines.len();
        }
        for _ in 0..std::mem::take(&mut self.partial) {
            sheet.pop();
        }
    }

    /// Adds a line of code, the first one with the language. Returns how many lines that are.
    fn push(&self, line: &str, sheet: &mut Sheet, opts: Opts) -> usize {
        let mut line = code_line(&self.strip(line), "", opts.ascii);
        let mut pushed = 1;
        if sheet.lines.len() == self.first
            && let Some(head) = name_language(&mut line, &self.language, opts.columns)
        {
            sheet.push(head, opts.columns);
            pushed += 1;
        }
        sheet.push(line, opts.columns);
        pushed
    }

    /// Without as many columns of blanks as the fence is indented by. What is left of a tab is blanks.
    fn strip<'a>(&self, line: &'a str) -> Cow<'a, str> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (mut column, mut at) = (0, 0);
        for byte in line.bytes().take_while(|b| matches!(b, b' ' | b'\t')) {
            if column >= self.indent {
                break;
            }
            column += if byte == b'\t' { TAB_STOP - column % TAB_STOP } else { 1 };
            at += 1;
        }
        match column.saturating_sub(self.indent) {
            0 => Cow::Borrowed(&line[at..]),
            left => Cow::Owned(" ".repeat(left) + &line[at..]),
        }
    }

    fn closes(&self, line: &str) -> bool {
        let text = line.trim_start_matches(' ');
        let len = text.bytes().take_while(|b| *b == self.mark).count();
        line.len() - text.len() <= 3 && len >= self.len && text[len..].trim().is_empty()
    }
}
