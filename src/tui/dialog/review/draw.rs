//! Files at the left, the current file's hunks at the right; one below the other where it is narrow.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::state::{ReviewFile, shown};
use super::{CommentField, Phase, Review};
use crate::panel::DrawCx;
use crate::text::diff::Hunk;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::paint::{self, PaintTarget};
use crate::text::sheet::Sheet;
use crate::text::{clean, shorten_end, shorten_middle, width};
use crate::theme::Role;
use crate::widget::diff::{self, DiffLayout};
use crate::widget::{draw, sign, surface};

/// From this width on, the files stand at the left.
const TWO: u16 = 70;

/// The place that a laid-out line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineTarget {
    pub hunk: usize,
    /// `None`: the hunk's header, or a comment.
    pub line: Option<usize>,
}

/// Parts of the panel.
struct ReviewAreas {
    /// Empty when there is no room beside the hunks.
    files: Rect,
    head: Rect,
    body: Rect,
    /// The comment that is being written.
    field: Rect,
}

/// Columns of one side from which old and new stand side by side.
const BOTH: usize = 40;

impl Review {
    fn parts(&self, area: Rect) -> ReviewAreas {
        let field_rows = u16::from(self.typing.is_some()).min(area.height);
        let field = Rect { y: area.bottom() - field_rows, height: field_rows, ..area };
        let inner = Rect { height: area.height - field_rows, ..area };
        if area.width >= TWO {
            let w = (area.width / 4).clamp(24, 44);
            let files = Rect { width: w, ..inner };
            let body = Rect { x: area.x + w + 3, width: area.width - w - 3, ..inner };
            ReviewAreas { files, head: Rect { height: 0, ..body }, body, field }
        } else {
            let head = Rect { height: inner.height.min(1), ..inner };
            let body = Rect { y: inner.y + head.height, height: inner.height - head.height, ..inner };
            ReviewAreas { files: Rect { width: 0, ..inner }, head, body, field }
        }
    }

    /// Lays the current file out and keeps the chosen line visible.
    pub(super) fn lay(&mut self, area: Rect) {
        let body = self.parts(area).body;
        let columns = usize::from(body.width).max(1);
        self.rows = usize::from(body.height);
        self.sheet = Sheet::default();
        self.spots.clear();
        let wanted = self.state.show.side.unwrap_or(columns >= diff::SIDE_BY_SIDE);
        self.beside = (columns >= BOTH).then_some(wanted);
        let side = self.beside == Some(true);
        let mut lines: Vec<(Line, LineTarget)> = self.stray_lines();
        let conflict = self.state.current().is_some_and(|f| f.conflict);
        let hunks = self.state.current().map_or(0, |f| f.hunks.len());
        let whole = hunks == 0 && !self.state.files.is_empty();
        for (said, why, role) in [
            (conflict, "Not reverted: the file has changed since", Role::Error),
            (whole, "Empty, not text, or too large: only the whole file can be reverted", Role::Dim),
        ] {
            if said {
                let hunk = if hunks == 0 { 0 } else { usize::MAX };
                lines.push((Line::strict(why, Look::of(role), Wrap::Word), LineTarget { hunk, line: None }));
            }
        }
        for n in 0..hunks {
            lines.extend(self.hunk_lines(n, columns, side));
        }
        for (line, spot) in lines {
            self.sheet.push(line, columns);
            self.spots.push(spot);
        }
        // The last row is for how many rows follow.
        if self.sheet.rows.len() > self.rows && self.rows > 1 {
            self.rows -= 1;
        }
        self.follow();
    }

    /// Unsent comments that belong to no line shown here, above the hunks.
    fn stray_lines(&self) -> Vec<(Line, LineTarget)> {
        let line = |c: &crate::model::remarks::Comment| {
            let text = format!("{}:{}  {}", c.path, c.line, c.text);
            // No hunk has this number: it is never chosen.
            (remark(&text, 0), LineTarget { hunk: usize::MAX, line: None })
        };
        self.state.strays().into_iter().map(line).collect()
    }

    fn hunk_lines(&mut self, n: usize, columns: usize, side: bool) -> Vec<(Line, LineTarget)> {
        let mut out = Vec::new();
        let Some(f) = self.state.current() else { return out };
        let Some(hunk) = f.hunks.get(n) else { return out };
        let shown = shown(hunk, self.state.show);
        let part = Hunk { lines: shown.iter().map(|(_, l)| l.clone()).collect(), ..hunk.clone() };
        let layout = DiffLayout { side_by_side: side, ..DiffLayout::new(columns, draw::ascii()) };
        // The current one is marked by a sign as well: without colours, and when nothing has to be scrolled.
        if f.hunks.len() > 1 {
            out.push((
                diff::title(&part, n == self.state.hunk, layout.ascii),
                LineTarget { hunk: n, line: None },
            ));
        }
        let text = diff::hunk(&part, &f.diff.path, layout, &mut self.colours);
        self.colours.note(&text);
        let mut commented: Vec<usize> = Vec::new();
        for (line, k) in text.lines.into_iter().zip(text.origins) {
            let Some((index, source)) = shown.get(k) else { continue };
            out.push((line, LineTarget { hunk: n, line: Some(*index) }));
            if commented.contains(index) {
                continue;
            }
            commented.push(*index);
            for (c, begun) in self.state.comments_on(&f.diff.path, source) {
                let draft = if begun { " (draft, not saved)" } else { "" };
                out.push((remark(&format!("{}{draft}", c.text), 5), LineTarget { hunk: n, line: None }));
            }
        }
        out
    }

    /// The laid-out line that is chosen.
    fn chosen_line(&self) -> usize {
        let at = |s: &LineTarget| s.hunk == self.state.hunk && s.line == Some(self.state.line);
        let head = |s: &LineTarget| s.hunk == self.state.hunk;
        self.spots.iter().position(at).or_else(|| self.spots.iter().position(head)).unwrap_or(0)
    }

    fn row_of(&self, line: usize) -> usize {
        self.sheet.rows.partition_point(|r| (r.line as usize) < line)
    }

    fn follow(&mut self) {
        let row = self.row_of(self.chosen_line());
        let last = self.sheet.rows.len().saturating_sub(self.rows);
        // The hunk's header comes along where there is room.
        let above = row.saturating_sub(self.rows / 3);
        if row < self.top + 1 || row + 2 > self.top + self.rows {
            self.top = above;
        }
        self.top = self.top.min(last);
    }

    pub(super) fn paint(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let words = match &self.phase {
            Phase::Ready => None,
            Phase::Loading => Some("Loading the changes...".to_owned()),
            Phase::Stale => {
                Some(format!("Press {} to load what the last turn changed", cx.key("review.load")))
            }
            Phase::None(why) => Some(format!("Nothing to review: {why}")),
        };
        if let Some(words) = words {
            let columns = area.width.saturating_sub(1);
            let text = shorten_end(&words, columns.into(), cx.ascii);
            paint::text(
                buf,
                PaintTarget { x: area.x + 1, y: area.y, columns },
                &text,
                cx.theme.style(Role::Dim),
            );
            return;
        }
        let parts = self.parts(area);
        self.paint_files(cx, &parts, buf);
        self.paint_hunks(cx, parts.body, buf);
        if let Some(CommentField { edit, .. }) = &self.typing {
            let label = "comment: ";
            let style = cx.theme.style(Role::Accent);
            let f = parts.field;
            crate::widget::draw::clear(buf, f, cx.theme.style(Role::Raised));
            let used = paint::text(buf, PaintTarget { x: f.x, y: f.y, columns: f.width }, label, style);
            let field = Rect { x: f.x + used, width: f.width - used, ..f };
            crate::widget::input::draw(edit, field, buf, cx.theme.style(Role::Raised));
        }
    }

    fn paint_files(&self, cx: &DrawCx<'_>, parts: &ReviewAreas, buf: &mut Buffer) {
        if parts.files.width == 0 {
            let Some(f) = self.state.current() else { return };
            let mut head = Line::new(Wrap::Cut);
            if self.state.files.len() > 1 {
                let text = format!("{}/{}  ", self.state.file + 1, self.state.files.len());
                head.push(&text, Look::of(Role::Dim));
            }
            let room = usize::from(parts.head.width).saturating_sub(width(head.text()));
            let row = diff::header(&f.diff, DiffLayout::new(room, cx.ascii));
            head.push_slice(&row, 0, row.text().len());
            if f.accepted {
                head.push("  accepted", Look::of(Role::Ok));
            }
            paint_line(cx, &head, parts.head, buf);
            return;
        }
        let rows = usize::from(parts.files.height);
        let from = (self.state.file + 1).saturating_sub(rows);
        let counts = diff::digits_of(self.state.files.iter().map(|f| (f.diff.added, f.diff.removed)));
        for (k, f) in self.state.files.iter().enumerate().skip(from).take(rows) {
            let row = Rect { y: parts.files.y + (k - from) as u16, height: 1, ..parts.files };
            paint_line(cx, &file_row(f, counts, row.width.into(), cx.ascii), row, buf);
            if k == self.state.file {
                surface::chosen(cx, row, buf);
            }
        }
        let bar = draw::sign(sign::COLUMN);
        for y in parts.files.y..parts.files.bottom() {
            let place = PaintTarget { x: parts.files.right() + 1, y, columns: 1 };
            paint::text(buf, place, bar, cx.theme.style(Role::Border));
        }
    }

    fn paint_hunks(&self, cx: &DrawCx<'_>, body: Rect, buf: &mut Buffer) {
        let (from, to) = self.state.chosen();
        for (k, row) in self.sheet.rows.iter().enumerate().skip(self.top).take(self.rows) {
            let Some(line) = self.sheet.lines.get(row.line as usize) else { continue };
            let y = body.y + (k - self.top) as u16;
            paint::row(buf, PaintTarget { x: body.x, y, columns: body.width }, line, *row, cx.theme, &[]);
            let spot = self.spots.get(row.line as usize);
            let picked = spot.is_some_and(|s| {
                s.hunk == self.state.hunk && s.line.is_some_and(|l| (from..=to).contains(&l))
            });
            if picked {
                // The text keeps its colours, where there are colours.
                surface::chosen_code(cx, Rect { y, height: 1, ..body }, buf);
            }
        }
        let below = self.sheet.rows.len().saturating_sub(self.top + self.rows);
        if below > 0 && self.rows < usize::from(body.height) {
            let last = Rect { y: body.bottom() - 1, height: 1, ..body };
            draw::text(buf, last, &draw::below(below), cx.theme.style(Role::Dim));
        }
    }

    /// A click chooses the file or the line below it, and changes nothing else.
    pub(super) fn click(&mut self, area: Rect, at: Position) {
        if self.phase != Phase::Ready {
            return;
        }
        let parts = self.parts(area);
        if parts.files.contains(at) {
            let from = (self.state.file + 1).saturating_sub(usize::from(parts.files.height));
            let file = from + usize::from(at.y - parts.files.y);
            if file < self.state.files.len() {
                self.state.go_file(file);
            }
        } else if parts.body.contains(at) {
            let row = self.top + usize::from(at.y - parts.body.y);
            let spot = self.sheet.rows.get(row).and_then(|r| self.spots.get(r.line as usize)).copied();
            if let Some(LineTarget { hunk, line }) = spot.filter(|s| s.hunk != usize::MAX) {
                if hunk != self.state.hunk {
                    self.state.go_hunk(hunk);
                }
                self.state.line = line.unwrap_or(self.state.line);
            }
        }
    }

    pub(super) fn cursor_at(&self, area: Rect) -> Option<Position> {
        if self.phase != Phase::Ready {
            return None;
        }
        let parts = self.parts(area);
        if let Some(CommentField { edit, .. }) = &self.typing {
            let before = width(edit.text().get(..edit.caret())?);
            let x = (9 + before).min(usize::from(parts.field.width).saturating_sub(1)) as u16;
            return Some(Position::new(parts.field.x + x, parts.field.y));
        }
        let row = self.row_of(self.chosen_line()).checked_sub(self.top).filter(|r| *r < self.rows)?;
        Some(Position::new(parts.body.x, parts.body.y + row as u16))
    }
}

/// A comment of the person, below the line that it is about.
fn remark(text: &str, indent: usize) -> Line {
    let bar = sign::BAR.text(draw::ascii());
    let mut line = Line::strict(text, Look::of(Role::Text), Wrap::Word);
    line.first = Gutter::new(format!("{:indent$}{bar} ", ""), Role::User);
    line.rest = line.first.clone();
    line
}

fn paint_line(cx: &DrawCx<'_>, line: &Line, area: Rect, buf: &mut Buffer) {
    let mut rows = Vec::new();
    crate::text::wrap::wrap(line, 0, area.width.into(), &mut rows);
    if let Some(row) = rows.first().filter(|_| area.height > 0) {
        let place = PaintTarget { x: area.x, y: area.y, columns: area.width };
        paint::row(buf, place, line, *row, cx.theme, &[]);
    }
}

/// `M src/client.rs    +18  −4` over `columns`, with so many digits for each count.
fn file_row(f: &ReviewFile, counts: (usize, usize), columns: usize, ascii: bool) -> Line {
    let (sign, role) = match (f.conflict, f.accepted) {
        (true, _) => ("!", Role::Error),
        (_, true) => (sign::OK.text(ascii), Role::Ok),
        _ => (diff::letter(f.diff.kind), Role::Dim),
    };
    let mut line = Line::new(Wrap::Cut);
    line.push(sign, Look::of(role));
    line.push(" ", Look::of(Role::Text));
    // A file without lines to show has no figures.
    let figures = match f.hunks.is_empty() && f.diff.added + f.diff.removed == 0 {
        true => Line::new(Wrap::Cut),
        false => diff::columns(f.diff.added, f.diff.removed, counts, ascii),
    };
    let right = width(figures.text());
    let room = columns.saturating_sub(right + 3);
    let text = if f.accepted { Role::Dim } else { Role::Text };
    line.push_strict(&shorten_middle(&clean::plain(&f.diff.path), room, ascii), Look::of(text));
    line.pad_to(columns.saturating_sub(right), Look::of(Role::Text));
    line.push_slice(&figures, 0, figures.text().len());
    line
}
