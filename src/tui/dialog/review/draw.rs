//! Files at the left, the current file's hunks at the right; one below the other where it is narrow.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};

use super::state::{ReviewFile, shown};
use super::{CommentField, Phase, Review};
use crate::cell::diff;
use crate::panel::DrawCx;
use crate::text::diff::Hunk;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::paint::{self, PaintTarget};
use crate::text::sheet::Sheet;
use crate::text::{clean, shorten_end, shorten_middle, width};
use crate::theme::Role;

/// From this width on, the files stand at the left.
const TWO: u16 = 70;

/// What a laid-out line shows.
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
            let w = (area.width / 4).clamp(20, 40);
            let files = Rect { width: w, ..inner };
            let body = Rect { x: area.x + w + 1, width: area.width - w - 1, ..inner };
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
        if let Some(f) = self.state.current() {
            if f.hunks.is_empty() {
                let why = match f.conflict {
                    true => ("conflict: the file has changed since", Role::Error),
                    false => ("Not a text file: only the whole file can be reverted.", Role::Dim),
                };
                let line = Line::strict(why.0, Look::of(why.1), Wrap::Word);
                lines.push((line, LineTarget { hunk: 0, line: None }));
            }
            for (n, hunk) in f.hunks.iter().enumerate() {
                lines.extend(self.hunk_lines(f, hunk, n, columns, side));
            }
        }
        for (line, spot) in lines {
            self.sheet.push(line, columns);
            self.spots.push(spot);
        }
        self.follow();
    }

    /// Unsent comments that belong to no line shown here, above the hunks.
    fn stray_lines(&self) -> Vec<(Line, LineTarget)> {
        let line = |c: &crate::model::remarks::Comment| {
            let text = format!("{}:{}  {}", c.path, c.line, c.text);
            let line = Line::strict(&text, Look::of(Role::Accent), Wrap::Word);
            // No hunk has this number: it is never chosen.
            (line.gutter(Gutter::new("# ", Role::Accent)), LineTarget { hunk: usize::MAX, line: None })
        };
        self.state.strays().into_iter().map(line).collect()
    }

    fn hunk_lines(
        &self,
        f: &ReviewFile,
        hunk: &Hunk,
        n: usize,
        columns: usize,
        side: bool,
    ) -> Vec<(Line, LineTarget)> {
        let shown = shown(hunk, self.state.show);
        let part = Hunk { lines: shown.iter().map(|(_, l)| l.clone()).collect(), ..hunk.clone() };
        let mut out = Vec::new();
        // The current one is marked by a sign as well: without colours, and when nothing has to be scrolled.
        let here = n == self.state.hunk;
        let sign = match (here, crate::widget::draw::ascii()) {
            (false, _) => "  ",
            (true, true) => "> ",
            (true, false) => "▸ ",
        };
        let role = if here { Role::Accent } else { Role::Dim };
        let mut head = Line::strict(&format!("{sign}{}", hunk.header), Look::of(role), Wrap::Word);
        if f.accepted {
            head.push("  accepted", Look::of(Role::Ok));
        }
        if f.conflict {
            head.push("  conflict: the file has changed since", Look::of(Role::Error));
        }
        out.push((head, LineTarget { hunk: n, line: None }));
        let mut commented: Vec<usize> = Vec::new();
        for (line, k) in diff::hunk(&part, columns, side) {
            let Some((index, source)) = shown.get(k) else { continue };
            out.push((line, LineTarget { hunk: n, line: Some(*index) }));
            if commented.contains(index) {
                continue;
            }
            commented.push(*index);
            for (c, begun) in self.state.comments_on(&f.diff.path, source) {
                let line = match begun {
                    false => Line::strict(&c.text, Look::of(Role::Accent), Wrap::Word),
                    true => {
                        let text = format!("{} (draft, not saved)", c.text);
                        Line::strict(&text, Look::of(Role::Dim), Wrap::Word)
                    }
                };
                out.push((
                    line.gutter(Gutter::new("      # ", Role::Accent)),
                    LineTarget { hunk: n, line: None },
                ));
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
            if let Some(f) = self.state.current() {
                let mut text = format!("file {}/{} ", self.state.file + 1, self.state.files.len());
                text.push_str(&file_row(
                    f,
                    usize::from(parts.head.width).saturating_sub(width(&text)),
                    cx.ascii,
                ));
                let place = PaintTarget { x: parts.head.x, y: parts.head.y, columns: parts.head.width };
                paint::text(buf, place, &text, cx.theme.style(Role::Strong));
            }
            return;
        }
        let rows = usize::from(parts.files.height);
        let from = (self.state.file + 1).saturating_sub(rows);
        for (k, f) in self.state.files.iter().enumerate().skip(from).take(rows) {
            let y = parts.files.y + (k - from) as u16;
            let style = match (k == self.state.file, f.conflict) {
                (true, _) => chosen(cx),
                (_, true) => cx.theme.style(Role::Error),
                _ => cx.theme.style(if f.accepted { Role::Dim } else { Role::Text }),
            };
            let mut text = file_row(f, parts.files.width.into(), cx.ascii);
            let room = usize::from(parts.files.width).saturating_sub(width(&text));
            text.push_str(&" ".repeat(room));
            paint::text(buf, PaintTarget { x: parts.files.x, y, columns: parts.files.width }, &text, style);
        }
        let bar = if cx.ascii { "|" } else { "│" };
        for y in parts.files.y..parts.files.bottom() {
            let place = PaintTarget { x: parts.files.right(), y, columns: 1 };
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
                buf.set_style(Rect { y, height: 1, ..body }, chosen(cx));
            }
        }
        let below = self.sheet.rows.len().saturating_sub(self.top + self.rows);
        if below > 0 && body.height > 0 {
            let text = format!(" {below} rows below ");
            let columns = width(&text) as u16;
            let x = body.right().saturating_sub(columns).max(body.x);
            paint::text(
                buf,
                PaintTarget { x, y: body.bottom() - 1, columns },
                &text,
                cx.theme.style(Role::Raised),
            );
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

/// `M src/client.rs +18 -4`, within `columns`.
fn file_row(f: &ReviewFile, columns: usize, ascii: bool) -> String {
    let state = if f.conflict { "!" } else { diff::letter(f.diff.kind) };
    let counts = format!(" +{} -{}", f.diff.added, f.diff.removed);
    let room = columns.saturating_sub(counts.len() + 2);
    format!("{state} {}{counts}", shorten_middle(&clean::plain(&f.diff.path), room, ascii))
}

fn chosen(cx: &DrawCx<'_>) -> Style {
    let style = cx.theme.style(Role::Selection);
    if style == Style::new() { style.add_modifier(Modifier::REVERSED) } else { style }
}
