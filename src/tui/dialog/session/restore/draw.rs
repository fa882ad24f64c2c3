//! Draws the text, the list of files, and below it the difference of the selected file.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use tiller_protocol::{ChangeKind, RestoreFile, RestorePreview};

use super::Restore;
use super::choice::FileChoice;
use crate::panel::DrawCx;
use crate::panel::times::clock;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::sheet::Sheet;
use crate::text::{clean, paint, shorten_middle, width};
use crate::theme::Role;
use crate::widget::diff::{self, DiffLayout};
use crate::widget::{draw, sign};

/// Columns of the labels.
const LABEL: usize = 11;

/// Parts of the dialog. `below` begins with a line between.
pub(super) struct RestoreAreas {
    words: Rect,
    pub(super) list: Rect,
    below: Rect,
}

impl RestoreAreas {
    /// Where the difference is.
    pub(super) fn diff(&self) -> Rect {
        let line = self.below.height.min(1);
        Rect { y: self.below.y + line, height: self.below.height - line, ..self.below }
    }
}

impl Restore {
    pub(super) fn parts(&self, area: Rect) -> RestoreAreas {
        let words = Sheet::new(self.head(), usize::from(area.width).max(1)).rows.len();
        let words = (words as u16 + 1).min(area.height / 2);
        let room = area.height - words;
        let list = (self.files().len() as u16).clamp(1, (room / 2).max(1)).min(room);
        let top = Rect { height: words, ..area };
        let middle = Rect { y: top.bottom(), height: list, ..area };
        let below = Rect { y: middle.bottom(), height: room - list, ..area };
        RestoreAreas { words: top, list: middle, below }
    }

    /// Returns what comes back and what stays, above the list.
    fn head(&self) -> Vec<Line> {
        if let Some(why) = &self.failed {
            return vec![Line::strict(why, Look::of(Role::Error), Wrap::Word)];
        }
        let Some(p) = &self.preview else {
            let stay = self.branch.as_ref().map(|_| fact("Files", "stay as they are", Role::Text));
            let comparing = Line::strict("Comparing the files...", Look::of(Role::Dim), Wrap::Word);
            return stay.into_iter().chain([comparing]).collect();
        };
        let mut lines = self.comes_back(p);
        let kept = p.files.iter().filter(|f| f.conflict.is_some()).count();
        if kept > 0 {
            let n = count(kept, "file");
            let text = format!("{n} changed since by you or another program; kept unless you mark them");
            lines.push(fact("Conflicts", &text, Role::Error));
        }
        lines.extend(p.left.iter().take(3).map(|l| fact("Stays", l, Role::Dim)));
        lines.extend(p.notes.iter().map(|n| fact("Note", n, Role::Dim)));
        if self.going {
            lines.push(Line::strict("Restoring...", Look::of(Role::Dim), Wrap::Word));
        }
        lines
    }

    /// The conversation and the files.
    fn comes_back(&self, p: &RestorePreview) -> Vec<Line> {
        let mut lines = Vec::new();
        if self.branch.is_some() {
            lines.push(fact("Messages", "the conversation switches to the end of that branch", Role::Text));
        } else {
            let title = clean::plain(&p.title);
            let what = if self.checkpoint { "at the checkpoint" } else { "before the message" };
            let mut line = fact("Back to", &format!("{what} "), Role::Dim);
            line.push_strict(&title, Look::of(Role::Strong).bold());
            if let Some(time) = p.time {
                line.push_strict(&format!("  {}", clock(time)), Look::of(Role::Dim));
            }
            lines.push(line);
            let messages = p.messages.and_then(|n| usize::try_from(n).ok()).or(self.messages);
            let text = match messages {
                Some(n) if n > 0 => {
                    let (s, them) = if n == 1 { ("leaves", "it") } else { ("leave", "them") };
                    format!(
                        "{} {s} this branch with what followed; the old branch keeps {them}",
                        count(n, "message")
                    )
                }
                _ => "what follows leaves this branch; the old branch keeps it".to_owned(),
            };
            lines.push(fact("Messages", &text, Role::Text));
        }
        let all = p.files.len() + p.more;
        let mut line = match (p.time, all, &self.branch) {
            (None, ..) => fact("Files", "stay as they are: there is no snapshot of that point", Role::Text),
            (Some(_), 0, _) => fact("Files", "none differs", Role::Text),
            (Some(_), _, Some(_)) => {
                let text = format!(
                    "stay as they are; {} that differ can be restored too: mark them",
                    count(all, "file")
                );
                fact("Files", &text, Role::Text)
            }
            (Some(_), _, None) => {
                let free = p.files.iter().filter(|f| f.conflict.is_none()).count() + p.more;
                fact("Files", &format!("{} restored", count(free, "file")), Role::Text)
            }
        };
        if p.time.is_some() {
            let free = || p.files.iter().filter(|f| f.conflict.is_none());
            let (plus, minus) = free()
                .fold((0_u32, 0_u32), |(a, r), f| (a.saturating_add(f.added), r.saturating_add(f.removed)));
            if plus + minus > 0 {
                let minus_sign = draw::sign(sign::MINUS);
                line.push_strict(&format!("  +{plus}"), Look::of(Role::Added));
                line.push_strict(&format!(" {minus_sign}{minus}"), Look::of(Role::Removed));
            }
            if p.more > 0 {
                line.push_strict(&format!("  {} of them are not listed", p.more), Look::of(Role::Dim));
            }
        }
        lines.push(line);
        lines
    }

    pub(super) fn lay(&mut self, area: Rect) {
        let parts = self.parts(area);
        let columns = usize::from(parts.list.width);
        let files = || self.files().iter().zip(&self.choices);
        let widths = files()
            .map(|(f, _)| counts(f))
            .fold((0, 0), |most, (plus, minus)| (most.0.max(width(&plus)), most.1.max(width(&minus))));
        let lines = files().map(|(f, c)| row(f, c, widths, columns)).collect();
        self.rows.set(lines, parts.list);
        let room = parts.diff();
        let again = self.diff.colours.again();
        if std::mem::take(&mut self.stale) || again || self.laid != (room.width, self.rows.chosen) {
            let other = self.laid.1 != self.rows.chosen;
            self.laid = (room.width, self.rows.chosen);
            self.hunk = if other { 0 } else { self.hunk };
            let stay = self.diff.scroll.first();
            if !again {
                self.diff.colours.begin();
            }
            let (lines, at) = self.difference(usize::from(room.width));
            self.diff.scroll.set(lines);
            self.diff.scroll.measure_counted(room.width.into(), room.height.into());
            self.diff.scroll.go(if std::mem::take(&mut self.moved) || other { at } else { stay });
        }
        self.diff.scroll.measure_counted(room.width.into(), room.height.into());
    }

    /// The difference of the chosen file, and the line at which the chosen hunk begins.
    fn difference(&mut self, columns: usize) -> (Vec<Line>, usize) {
        let (mut lines, mut at) = (Vec::new(), 0);
        let chosen = self.rows.chosen;
        let files = self.preview.as_ref().map_or(&[][..], |p| &p.files);
        let (Some(file), Some(choice)) = (files.get(chosen), self.choices.get(chosen)) else {
            return (lines, at);
        };
        let (path, layout) = (file.path.clone(), DiffLayout::new(columns, draw::ascii()));
        if choice.hunks.is_empty() {
            let text = match &file.conflict {
                Some(why) => format!("{}: {why}", clean::plain(&file.path)),
                None => "No text to compare".to_owned(),
            };
            lines.push(Line::strict(&text, Look::of(Role::Text), Wrap::Word));
        }
        for (n, hunk) in choice.hunks.iter().enumerate() {
            let here = choice.parted() && n == self.hunk;
            if here {
                at = lines.len();
            }
            if choice.parted() {
                let mut title = Line::new(Wrap::Cut);
                let (mark, role) =
                    if choice.hunk(n) { (sign::OK, Role::Ok) } else { (sign::EMPTY, Role::Dim) };
                title.push_strict(&format!("{} ", draw::sign(mark)), Look::of(role));
                let row = diff::title(hunk, here, layout.ascii);
                title.push_slice(&row, 0, row.text().len());
                lines.push(title);
            }
            let text = diff::hunk(hunk, &path, layout, &mut self.diff.colours);
            self.diff.colours.note(&text);
            lines.extend(text.lines);
        }
        (lines, at)
    }

    pub(super) fn paint(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let parts = self.parts(area);
        let words = parts.words;
        let sheet = Sheet::new(self.head(), usize::from(words.width).max(1));
        paint::sheet(buf, words, &sheet, cx.theme);
        if self.files().is_empty() {
            return;
        }
        self.rows.draw(cx, parts.list, buf);
        let below = parts.below;
        if below.height > 1 {
            let l = draw::lines(cx.ascii);
            for x in below.left()..below.right() {
                draw::put(buf, x, below.y, l.h, cx.theme.style(Role::Border));
            }
            self.paint_name(cx, below, buf);
            self.diff.scroll.draw_counted(parts.diff(), buf, cx.theme);
        }
    }
}

impl Restore {
    /// The selected file in the line above its difference.
    fn paint_name(&self, cx: &DrawCx<'_>, below: Rect, buf: &mut Buffer) {
        let Some(file) = self.files().get(self.rows.chosen) else { return };
        let room = Rect { x: below.x + 2, width: below.width.saturating_sub(4), height: 1, ..below };
        let path = draw::cut_middle(&file.path, usize::from(room.width).saturating_sub(2));
        let strong = cx.theme.style(Role::Strong).add_modifier(Modifier::BOLD);
        draw::text(buf, room, &format!(" {path} "), strong);
    }
}

/// A labelled line.
fn fact(label: &str, text: &str, role: Role) -> Line {
    let line = Line::strict(text, Look::of(role), Wrap::Word);
    line.gutter(Gutter::new(format!("{label:<LABEL$}"), Role::Dim))
}

/// `1 file`, `3 files`.
fn count(n: usize, of: &str) -> String {
    format!("{n} {of}{}", if n == 1 { "" } else { "s" })
}

/// Lines added and removed, as words.
fn counts(file: &RestoreFile) -> (String, String) {
    let minus = draw::sign(sign::MINUS);
    let words = |sign: &str, n: u32| if n > 0 { format!("{sign}{n}") } else { String::new() };
    (words("+", file.added), words(minus, file.removed))
}

fn row(file: &RestoreFile, choice: &FileChoice, widths: (usize, usize), columns: usize) -> Line {
    let kind = match file.kind {
        ChangeKind::Added => "A",
        ChangeKind::Deleted => "D",
        _ => "M",
    };
    let (mark, role) = match () {
        () if choice.all() => (draw::sign(sign::OK), Role::Ok),
        () if choice.none() => (draw::sign(sign::EMPTY), Role::Dim),
        () => (draw::sign(sign::HALF), Role::Text),
    };
    let note = match (&file.conflict, choice.count()) {
        (_, (some, all)) if some > 0 && some < all => format!("{some} of {all} hunks"),
        (Some(_), _) => "changed by you".to_owned(),
        (None, _) => String::new(),
    };
    let (plus, minus) = counts(file);
    let tail = format!("  {plus:>0$} {minus:>1$}", widths.0, widths.1);
    let mut line = Line::new(Wrap::Cut);
    line.push_strict(&format!("{mark} "), Look::of(role));
    line.push_strict(&format!("{kind} "), Look::of(Role::Dim));
    let used = width(line.text()) + width(&tail) + if note.is_empty() { 0 } else { width(&note) + 2 };
    let path = shorten_middle(&clean::plain(&file.path), columns.saturating_sub(used), draw::ascii());
    line.push_strict(&path, Look::of(if choice.none() { Role::Dim } else { Role::Text }));
    if !note.is_empty() {
        line.pad_to(columns.saturating_sub(width(&tail) + width(&note)), Look::of(Role::Text));
        line.push_strict(&note, Look::of(if file.conflict.is_some() { Role::Error } else { Role::Dim }));
    }
    line.pad_to(columns.saturating_sub(width(&tail)), Look::of(Role::Text));
    line.push_strict(&format!("  {plus:>0$}", widths.0), Look::of(Role::Added));
    line.push_strict(&format!(" {minus:>0$}", widths.1), Look::of(Role::Removed));
    line
}
