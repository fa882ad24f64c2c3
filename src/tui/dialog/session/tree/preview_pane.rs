//! The pane beside the rows: the text of the selected entry, and what it changed.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::EntryId;
use tiller_protocol::tool::FileDiff;
use tiller_protocol::tree::EntryPreview;

use crate::panel::DrawCx;
use crate::text::line::{Line, Look, Wrap};
use crate::text::sheet::Sheet;
use crate::text::{clean, markdown_lines, paint};
use crate::theme::Role;
use crate::widget::diff::{self, DiffColours, DiffLayout, DiffText};
use crate::widget::draw;

/// A line of facts in pieces.
pub(super) type Fact = Vec<(String, Role)>;

/// Lines of differences that are laid out at most.
const LINES: usize = 2_000;

/// The pane.
#[derive(Default)]
pub(super) struct PreviewPane {
    /// Shown or hidden by the person; else where there is room.
    pub wanted: Option<bool>,
    pub preview: Option<EntryPreview>,
    /// The entry of the running request.
    pub asked: Option<EntryId>,
    /// The entry whose preview could not be read, and why.
    pub failed: Option<(EntryId, String)>,
    /// Facts of the entry, above its words.
    facts: Vec<Fact>,
    sheet: Sheet,
    /// The layout of the sheet: entry, size, and whether its preview was there.
    made: Option<(EntryId, (u16, u16), bool)>,
    top: usize,
    page: usize,
    /// Colours of the diffs.
    pub colours: DiffColours,
}

impl PreviewPane {
    /// The answer.
    pub(super) fn put(&mut self, preview: EntryPreview) {
        if self.preview.as_ref().is_none_or(|p| p.entry != preview.entry) {
            self.top = 0;
        }
        self.made = None;
        self.preview = Some(preview);
    }

    /// Forgets what is known: something has changed.
    pub(super) fn stale(&mut self) {
        self.preview = None;
        self.failed = None;
    }

    pub(super) fn of(&self, entry: EntryId) -> Option<&EntryPreview> {
        self.preview.as_ref().filter(|p| p.entry == entry)
    }

    pub(super) fn scroll(&mut self, down: bool) {
        let by = (self.page / 2).max(1);
        let last = self.sheet.rows.len().saturating_sub(self.page);
        self.top = if down { (self.top + by).min(last) } else { self.top.saturating_sub(by) };
    }

    /// Lays it out for an area. The entry says whether its text is Markdown.
    pub(super) fn measure(&mut self, area: Rect, (entry, markdown): (EntryId, bool), facts: Vec<Fact>) {
        let mark = (entry, (area.width, area.height), self.of(entry).is_some());
        if self.made != Some(mark) || self.facts != facts {
            self.colours.begin();
        } else if !self.colours.again() {
            return;
        }
        self.facts = facts;
        self.made = Some(mark);
        let lines = self.lines(entry, area.width, markdown);
        self.take(lines, area);
    }

    /// Lays out what is said of the row of a session.
    pub(super) fn measure_session(&mut self, area: Rect, lines: Vec<Line>) {
        if self.made.take().is_some() {
            self.top = 0;
        }
        self.take(lines, area);
    }

    /// Takes the lines for an area. Where they are longer, its last row is for how many rows follow.
    fn take(&mut self, lines: Vec<Line>, area: Rect) {
        self.sheet = Sheet::new(lines, usize::from(area.width).max(1));
        let (rows, height) = (self.sheet.rows.len(), usize::from(area.height));
        self.page = height - usize::from(rows > height && height > 1);
        self.top = self.top.min(rows.saturating_sub(self.page));
    }

    fn lines(&mut self, entry: EntryId, columns: u16, markdown: bool) -> Vec<Line> {
        let dim = |text: &str| Line::strict(text, Look::of(Role::Dim), Wrap::Word);
        let fact = |fact: &Fact| {
            let mut line = Line::new(Wrap::Word);
            fact.iter().for_each(|(text, role)| line.push_strict(text, Look::of(*role)));
            line
        };
        let mut lines: Vec<Line> = self.facts.iter().map(fact).collect();
        lines.push(Line::new(Wrap::Word));
        let Some(p) = self.preview.as_ref().filter(|p| p.entry == entry) else {
            let failed = self.failed.as_ref().filter(|(e, _)| *e == entry);
            lines.push(dim(failed.map_or("Loading...", |(_, why)| why)));
            return lines;
        };
        let text = |l: &str| Line::strict(l, Look::of(Role::Text), Wrap::Word);
        match markdown {
            true => lines.extend(markdown_lines(&p.text, Some(columns.into()))),
            false => lines.extend(clean::lines(&p.text).map(text)),
        }
        if p.cut {
            lines.push(dim("More of it in the conversation"));
        }
        lines.push(Line::new(Wrap::Word));
        lines.extend(p.notes.iter().map(|n| dim(n)));
        let layout = DiffLayout::new(usize::from(columns), draw::ascii());
        if !p.files.is_empty() {
            let s = if p.files.len() + p.more == 1 { "" } else { "s" };
            let title = format!("{} file{s} changed", p.files.len() + p.more);
            lines.push(Line::strict(&title, Look::of(Role::Strong), Wrap::Word));
        } else if p.notes.is_empty() {
            lines.push(dim("No file changed"));
        }
        for f in &p.files {
            let file = FileDiff {
                path: f.path.clone(),
                kind: f.kind,
                added: f.added,
                removed: f.removed,
                diff: f.diff.clone(),
            };
            if lines.len() < LINES {
                let text: DiffText = diff::file(&file, layout, &mut self.colours);
                self.colours.note(&text);
                lines.extend(text.lines);
            } else {
                lines.push(diff::header(&file, layout));
            }
        }
        if p.more > 0 {
            lines.push(dim(&format!("and {} more files", p.more)));
        }
        lines
    }

    pub(super) fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        for (n, row) in self.sheet.rows.iter().enumerate().skip(self.top).take(self.page) {
            let Some(line) = self.sheet.lines.get(row.line as usize) else { continue };
            let place =
                paint::PaintTarget { x: area.x, y: area.y + (n - self.top) as u16, columns: area.width };
            paint::row(buf, place, line, *row, cx.theme, &[]);
        }
        let below = self.sheet.rows.len().saturating_sub(self.top + self.page);
        if below > 0 && self.page < usize::from(area.height) {
            let last = Rect { y: area.bottom() - 1, height: 1, ..area };
            draw::text(buf, last, &draw::below(below), cx.theme.style(Role::Dim));
        }
    }
}
