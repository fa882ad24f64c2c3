//! Laid-out text: lines with their rows, in pieces that can be replaced at the end.

use std::sync::Arc;

use crate::line::{Line, Run};
use crate::wrap::{Row, wrap};

/// Lines `from..to` of a sheet are code in this language that is not coloured yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSpan {
    pub language: Box<str>,
    pub from: usize,
    pub to: usize,
}

/// Runs for every line of a block of code.
pub type Coloured = Arc<Vec<Vec<Run>>>;

/// The result of a request for colours.
pub enum Answer {
    /// The colours.
    Ready(Coloured),
    /// Not available yet: ask again later.
    Later,
    /// The code stays plain.
    Plain,
}

/// Colours code asynchronously.
pub trait Highlight {
    /// The runs for these clean lines of code in `language`.
    fn want(&mut self, language: &str, lines: &[Line]) -> Answer;
}

/// A few lines and how they are cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    pub lines: Vec<Line>,
    pub rows: Vec<Row>,
    /// Code that is not coloured yet.
    pub codes: Vec<CodeSpan>,
}

impl Sheet {
    /// Wraps `lines` to `columns`. Sheets are kept for long: they hold no room for more.
    pub fn new(mut lines: Vec<Line>, columns: usize) -> Self {
        let mut rows = Vec::with_capacity(lines.len());
        lines.shrink_to_fit();
        for (n, line) in lines.iter_mut().enumerate() {
            line.shrink_to_fit();
            wrap(line, n, columns, &mut rows);
        }
        rows.shrink_to_fit();
        Self { lines, rows, codes: Vec::new() }
    }

    /// Adds one line.
    pub fn push(&mut self, line: Line, columns: usize) {
        wrap(&line, self.lines.len(), columns, &mut self.rows);
        self.lines.push(line);
    }

    /// Removes the last line.
    pub fn pop(&mut self) {
        self.lines.pop();
        let n = self.lines.len() as u32;
        while self.rows.last().is_some_and(|r| r.line >= n) {
            self.rows.pop();
        }
    }
}

/// Sheets below one another, with continuous row and line numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    sheets: Vec<Sheet>,
    /// Rows and lines up to the end of each sheet.
    ends: Vec<(u32, u32)>,
    /// Sheets that have uncoloured code.
    plain: Vec<usize>,
}

impl Stack {
    /// One sheet.
    pub fn of(sheet: Sheet) -> Self {
        let mut stack = Self::default();
        stack.push(sheet);
        stack
    }

    pub fn push(&mut self, sheet: Sheet) {
        let (rows, lines) = self.ends.last().copied().unwrap_or_default();
        self.ends.push((rows + sheet.rows.len() as u32, lines + sheet.lines.len() as u32));
        if !sheet.codes.is_empty() {
            self.plain.push(self.sheets.len());
        }
        self.sheets.push(sheet);
    }

    /// Removes the last sheet, so that it can be changed.
    pub fn pop(&mut self) -> Option<Sheet> {
        self.ends.pop();
        let sheet = self.sheets.pop();
        self.plain.retain(|n| *n < self.sheets.len());
        sheet
    }

    /// Keeps the first `n` sheets.
    pub fn truncate(&mut self, n: usize) {
        self.sheets.truncate(n);
        self.ends.truncate(n);
        self.plain.retain(|k| *k < n);
    }

    /// Number of sheets.
    pub fn sheets(&self) -> usize {
        self.sheets.len()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.ends.last().map_or(0, |e| e.0 as usize)
    }

    /// Number of rows of the first `n` sheets.
    pub fn rows_of_first(&self, n: usize) -> usize {
        n.checked_sub(1).and_then(|last| self.ends.get(last)).map_or(0, |e| e.0 as usize)
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        self.ends.last().map_or(0, |e| e.1 as usize)
    }

    /// Row `n`: the number of its line, the line, and the row (whose own line number is the sheet's).
    pub fn row(&self, n: usize) -> Option<(usize, &Line, Row)> {
        let sheet = self.ends.partition_point(|e| e.0 as usize <= n);
        let (rows, lines) = if sheet == 0 { (0, 0) } else { *self.ends.get(sheet - 1)? };
        let sheet = self.sheets.get(sheet)?;
        let row = *sheet.rows.get(n - rows as usize)?;
        Some((lines as usize + row.line as usize, sheet.lines.get(row.line as usize)?, row))
    }

    /// Line `n`.
    pub fn line(&self, n: usize) -> Option<&Line> {
        let sheet = self.ends.partition_point(|e| e.1 as usize <= n);
        let before = if sheet == 0 { 0 } else { self.ends.get(sheet - 1)?.1 };
        self.sheets.get(sheet)?.lines.get(n - before as usize)
    }

    /// First row of line `n` that holds byte `byte`.
    pub fn row_of(&self, n: usize, byte: u32) -> Option<usize> {
        let sheet = self.ends.partition_point(|e| e.1 as usize <= n);
        let (rows, lines) = if sheet == 0 { (0, 0) } else { *self.ends.get(sheet - 1)? };
        let line = (n - lines as usize) as u32;
        let rows_of = &self.sheets.get(sheet)?.rows;
        let first = rows_of.partition_point(|r| r.line < line);
        let within = rows_of[first..].iter().take_while(|r| r.line == line && r.start <= byte).count();
        Some(rows as usize + first + within.saturating_sub(1))
    }

    /// The languages of code that is not coloured yet.
    pub fn uncoloured(&self) -> Vec<String> {
        let of = |sheet: &Sheet, code: &CodeSpan| {
            let lines = sheet.lines[code.from..code.to].iter().map(|l| l.text().trim().to_owned());
            lines.collect::<Vec<_>>().join("\n")
        };
        self.sheets.iter().flat_map(|sheet| sheet.codes.iter().map(|c| of(sheet, c))).collect()
    }

    /// Colours code whose colours are available; `true` while some are outstanding.
    pub fn colour(&mut self, highlighter: &mut impl Highlight) -> bool {
        let sheets = &mut self.sheets;
        self.plain.retain(|n| {
            let Some(sheet) = sheets.get_mut(*n) else { return false };
            let Sheet { lines, codes, .. } = sheet;
            codes.retain(|code| {
                let Some(part) = lines.get_mut(code.from..code.to) else { return false };
                match highlighter.want(&code.language, part) {
                    Answer::Later => true,
                    Answer::Plain => false,
                    Answer::Ready(runs) => {
                        for (line, runs) in part.iter_mut().zip(runs.iter()) {
                            line.recolour(runs);
                        }
                        false
                    }
                }
            });
            !codes.is_empty()
        });
        !self.plain.is_empty()
    }
}
