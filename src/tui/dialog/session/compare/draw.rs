//! Two columns where it is wide: files and their difference, or the two sides; one of them where it is narrow.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::RestoreFile;
use tiller_protocol::compare::SideRun;
use tiller_protocol::compare::Speaker;

use super::head::{self, HeadAreas};
use super::{CommandRun, Compare, CompareTab};
use crate::panel::DrawCx;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::paint;
use crate::text::{clean, markdown_lines, shorten_middle, width};
use crate::theme::Role;
use crate::widget::diff::{self, DiffLayout};
use crate::widget::{draw, sign};

/// From this width on there are two columns.
const TWO: u16 = 90;
/// Parts of the dialog.
pub(super) struct CompareAreas {
    pub(super) wide: bool,
    pub(super) head: HeadAreas,
    pub(super) left: Rect,
    pub(super) right: Rect,
    /// The command that is being written.
    field: Rect,
}

impl Compare {
    pub(super) fn parts(&self, area: Rect) -> CompareAreas {
        let wide = area.width >= TWO;
        let field_rows = u16::from(self.typing.is_some()).min(area.height);
        let field = Rect { y: area.bottom() - field_rows, height: field_rows, ..area };
        let (head, body) = head::split(Rect { height: area.height - field_rows, ..area });
        let (left, right) = match (self.view, wide) {
            (CompareTab::Files, true) => split(body, (area.width / 3).clamp(24, 50)),
            (CompareTab::Files, false) => {
                let files = self.compared.as_ref().map_or(0, |c| c.files.len()) as u16;
                let rows = files.clamp(1, (body.height / 3).max(1)).min(body.height);
                let below = Rect { y: body.y + rows, height: body.height - rows, ..body };
                (Rect { height: rows, ..body }, below)
            }
            (_, true) => split(body, area.width / 2),
            (_, false) => (body, body),
        };
        CompareAreas { wide, head, left, right, field }
    }

    pub(super) fn lay(&mut self, area: Rect) {
        let parts = self.parts(area);
        if self.view == CompareTab::Files {
            let columns = usize::from(parts.left.width);
            let files = self.compared.as_ref().map_or(&[][..], |c| &c.files);
            let digits = diff::digits_of(files.iter().map(|f| (f.added, f.removed)));
            let lines = files
                .iter()
                .map(|f| row(f, self.conflicts.iter().any(|n| n.path == f.path), digits, columns))
                .collect();
            self.files.set(lines, parts.left);
            let again = self.diff.colours.again();
            let other = self.stale || self.width != area.width;
            if other || again {
                if other {
                    self.diff.colours.begin();
                }
                let stay = self.diff.scroll.first();
                let (lines, at) = self.difference(usize::from(parts.right.width));
                self.diff.scroll.set(lines);
                self.diff.scroll.measure_counted(parts.right.width.into(), parts.right.height.into());
                self.diff.scroll.go(if other { at } else { stay });
            }
            self.diff.scroll.measure_counted(parts.right.width.into(), parts.right.height.into());
        } else {
            let other = self.stale || self.width != area.width;
            for (right, area) in [(false, parts.left), (true, parts.right)] {
                let n = usize::from(right);
                if other {
                    let lines = match self.view {
                        CompareTab::Talk => self.talk(right, area.width.into()),
                        _ => self.output(right),
                    };
                    self.sides[n].set(lines);
                }
                self.sides[n].measure_counted(area.width.into(), area.height.into());
            }
        }
        self.stale = false;
        self.width = area.width;
    }

    /// The difference of the chosen file, and the line at which the chosen hunk begins.
    fn difference(&mut self, columns: usize) -> (Vec<Line>, usize) {
        let (mut lines, mut at) = (Vec::new(), 0);
        let say = |text: &str, role| Line::strict(text, Look::of(role), Wrap::Word);
        let Some(file) = self.file() else { return (lines, at) };
        let (path, layout) = (file.path.clone(), DiffLayout::new(columns, draw::ascii()));
        if let Some(not) = self.conflicts.iter().find(|n| n.path == file.path) {
            lines.push(say(&format!("Not taken: {}", not.why), Role::Error));
            lines.extend(not.marked.lines().map(|l| Line::strict(l, Look::of(Role::Text), Wrap::Hard)));
            lines.push(say("", Role::Text));
        }
        let shown = lines.len();
        if self.hunks.is_empty() {
            lines.push(say("No lines to show: binary, empty or too large", Role::Dim));
        }
        for (n, hunk) in self.hunks.iter().enumerate() {
            if n == self.hunk {
                at = if n == 0 && shown > 0 { 0 } else { lines.len() };
            }
            lines.push(diff::title(hunk, n == self.hunk, layout.ascii));
            let text = diff::hunk(hunk, &path, layout, &mut self.diff.colours);
            self.diff.colours.note(&text);
            lines.extend(text.lines);
        }
        (lines, at)
    }

    fn talk(&self, right: bool, columns: usize) -> Vec<Line> {
        let Some(c) = &self.compared else { return Vec::new() };
        let side = if right { &c.right } else { &c.left };
        let mut lines = Vec::new();
        for said in &side.said {
            if said.who == Speaker::Agent {
                lines.extend(markdown_lines(&said.text, Some(columns)));
                lines.push(Line::new(Wrap::Word));
                continue;
            }
            for text in said.text.lines() {
                let mut line = Line::strict(text, Look::of(Role::Text), Wrap::Word);
                if said.who == Speaker::You {
                    line.first = Gutter::new(format!("{} ", sign::BAR.text(draw::ascii())), Role::User);
                    line.rest = line.first.clone();
                    line.band = Some(Role::Raised);
                }
                lines.push(line);
            }
            lines.push(Line::new(Wrap::Word));
        }
        if lines.is_empty() {
            lines.push(Line::strict("No messages since", Look::of(Role::Dim), Wrap::Word));
        }
        lines
    }

    fn output(&self, right: bool) -> Vec<Line> {
        let say = |text: &str, role| Line::strict(text, Look::of(role), Wrap::Word);
        match &self.ran {
            CommandRun::Not => vec![say("No command has been run on both sides yet", Role::Dim)],
            CommandRun::Running(line) => {
                vec![say(&format!("$ {line}"), Role::Strong), say("Running", Role::Dim)]
            }
            CommandRun::Done { line, left, right: other, notes } => {
                let run = if right { other } else { left };
                let mut lines = vec![say(&format!("$ {line}"), Role::Strong), ended(run)];
                let text = clean::plain_lines(&run.tail);
                lines.extend(text.lines().map(|l| Line::strict(l, Look::of(Role::Text), Wrap::Hard)));
                lines.push(Line::new(Wrap::Word));
                lines.extend(notes.iter().map(|n| say(&format!("({n})"), Role::Dim)));
                lines
            }
        }
    }

    pub(super) fn paint(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let parts = self.parts(area);
        let Some(c) = &self.compared else {
            let words = self.failed.as_ref().map_or("Comparing".into(), |w| format!("Cannot compare: {w}"));
            let role = if self.failed.is_some() { Role::Error } else { Role::Dim };
            draw::text(buf, Rect { height: 1.min(area.height), ..area }, &words, cx.theme.style(role));
            return;
        };
        self.paint_head(cx, c, &parts, buf);
        if self.view == CompareTab::Files {
            self.files.draw(cx, parts.left, buf);
            if c.files.is_empty() {
                let words = "No file differs";
                draw::text(buf, first(parts.left), words, cx.theme.style(Role::Dim));
            }
            self.diff.scroll.draw_counted(parts.right, buf, cx.theme);
        } else if parts.wide {
            self.sides[0].draw_counted(parts.left, buf, cx.theme);
            self.sides[1].draw_counted(parts.right, buf, cx.theme);
        } else {
            self.sides[usize::from(self.right)].draw_counted(parts.left, buf, cx.theme);
        }
        if parts.wide {
            let bar = draw::sign(sign::COLUMN);
            // Above messages and output the sides stand in the same columns.
            let top = if self.view == CompareTab::Files { parts.right.y } else { parts.head.sides.y };
            for y in top..parts.right.bottom() {
                let place = paint::PaintTarget { x: parts.right.x - 2, y, columns: 1 };
                paint::text(buf, place, bar, cx.theme.style(Role::Border));
            }
        }
        if let Some(edit) = &self.typing {
            let f = parts.field;
            draw::clear(buf, f, cx.theme.style(Role::Raised));
            let used = draw::text(buf, f, LABEL, cx.theme.style(Role::Accent));
            let field = Rect { x: f.x + used, width: f.width - used, ..f };
            crate::widget::input::draw(edit, field, buf, cx.theme.style(Role::Raised));
        }
    }

    pub(super) fn cursor_at(&self, area: Rect) -> Option<Position> {
        let edit = self.typing.as_ref()?;
        let f = self.parts(area).field;
        let used = width(LABEL) as u16;
        let field = Rect { x: f.x + used, width: f.width.saturating_sub(used), ..f };
        Some(crate::widget::input::caret(edit, field))
    }
}

const LABEL: &str = "run on both: ";

fn first(area: Rect) -> Rect {
    Rect { height: 1.min(area.height), ..area }
}

/// Two parts with a line between them, a blank column on each side of it.
fn split(body: Rect, left: u16) -> (Rect, Rect) {
    let left = left.min(body.width.saturating_sub(3));
    let right = Rect { x: body.x + left + 3, width: body.width.saturating_sub(left + 3), ..body };
    (Rect { width: left, ..body }, right)
}

fn ended(run: &SideRun) -> Line {
    let (words, role) = match run.exit {
        Some(0) => ("exit 0".to_owned(), Role::Ok),
        Some(n) => (format!("exit {n}"), Role::Error),
        None => ("ended".to_owned(), Role::Error),
    };
    Line::strict(&format!("{words} after {:.1} s", run.seconds), Look::of(role), Wrap::Word)
}

/// `M src/client.rs    +3  −2` over `columns`, with so many digits for each count.
fn row(file: &RestoreFile, conflict: bool, digits: (usize, usize), columns: usize) -> Line {
    let ascii = draw::ascii();
    let (sign, role) = if conflict { ("!", Role::Error) } else { (diff::letter(file.kind), Role::Dim) };
    let mut line = Line::new(Wrap::Cut);
    line.push(&format!("{sign} "), Look::of(role));
    let counts = diff::columns(file.added, file.removed, digits, ascii);
    let right = width(counts.text());
    let room = columns.saturating_sub(right + 3);
    line.push_strict(&shorten_middle(&clean::plain(&file.path), room, ascii), Look::of(Role::Text));
    line.pad_to(columns.saturating_sub(right), Look::of(Role::Text));
    line.push_slice(&counts, 0, counts.text().len());
    line
}
