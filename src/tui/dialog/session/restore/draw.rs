//! Draws the text, the list of files, and below it the difference of the selected file.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::{ChangeKind, RestoreFile, RestorePreview};

use super::Restore;
use super::choice::FileChoice;
use crate::panel::DrawCx;
use crate::panel::rows::clock;
use crate::text::line::{Line, Look, Wrap};
use crate::text::{clean, shorten_end, width};
use crate::theme::Role;
use crate::widget::diff::{self, DiffLayout};
use crate::widget::draw;
use crate::widget::wrap::wrap;

/// The first thing that is said of another branch.
const STAY: &str = "Only the conversation switches to that branch; the files stay as they are.";

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
        let words: usize = self.head().iter().map(|l| wrap(l, usize::from(area.width)).len()).sum();
        let words = (words as u16 + 1).min(area.height / 2);
        let room = area.height - words;
        let list = (self.files().len() as u16).clamp(1, (room / 2).max(1)).min(room);
        let top = Rect { height: words, ..area };
        let middle = Rect { y: top.bottom(), height: list, ..area };
        let below = Rect { y: middle.bottom(), height: room - list, ..area };
        RestoreAreas { words: top, list: middle, below }
    }

    /// The text above the list.
    fn head(&self) -> Vec<String> {
        if let Some(why) = &self.failed {
            return vec![why.clone()];
        }
        let Some(p) = &self.preview else {
            let stay = self.branch.as_ref().map(|_| STAY.to_owned());
            return stay.into_iter().chain(["Comparing the files...".into()]).collect();
        };
        let mut lines = Vec::new();
        let title = clean::plain(&p.title);
        match p.time {
            _ if self.branch.is_some() => lines.push(self.branch_words(p)),
            Some(time) => lines.push(format!("Restore to {}, before \"{title}\".", clock(time))),
            None => lines.push(format!("Restore the conversation to before \"{title}\". Files stay.")),
        }
        let kept = p.files.iter().filter(|f| f.conflict.is_some()).count();
        if p.time.is_some() && p.files.is_empty() {
            lines.push("No file differs.".into());
        }
        if kept > 0 {
            lines.push(format!("{kept} changed since by you or another program: kept unless you mark them."));
        }
        if p.more > 0 {
            lines.push(format!("{} more files are not listed; they are restored as well.", p.more));
        }
        lines.extend(p.left.iter().take(3).map(|l| format!("Stays: {}", clean::plain(l))));
        lines.extend(p.notes.iter().map(|n| clean::plain(n).into_owned()));
        if self.going {
            lines.push("restoring...".into());
        }
        lines
    }

    /// What is said of another branch: that the files stay, and what can be brought.
    fn branch_words(&self, p: &RestorePreview) -> String {
        let all = p.files.len() + p.more;
        match p.time {
            None => format!("{STAY} The files of that branch were not kept, so they cannot be restored."),
            Some(_) if all == 0 => "The conversation switches to that branch.".to_owned(),
            Some(_) => {
                let (n, differ) = if all == 1 { ("1 file", "differs") } else { ("files", "differ") };
                let n = if all == 1 { n.to_owned() } else { format!("{all} {n}") };
                format!("{STAY} {n} {differ} from the end of that branch; marked files can be restored too.")
            }
        }
    }

    pub(super) fn lay(&mut self, area: Rect) {
        let parts = self.parts(area);
        let columns = usize::from(parts.list.width);
        let lines = self.files().iter().zip(&self.choices).map(|(f, c)| row(f, c, columns)).collect();
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
            self.diff.scroll.measure(room.width.into(), room.height.into(), true);
            self.diff.scroll.go(if std::mem::take(&mut self.moved) || other { at } else { stay });
        }
        self.diff.scroll.measure(room.width.into(), room.height.into(), true);
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
                title.push(if choice.hunk(n) { "[x]" } else { "[ ]" }, Look::of(Role::Text));
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
        let rows = self.head().iter().flat_map(|l| wrap(l, usize::from(words.width))).collect::<Vec<_>>();
        for (row, y) in rows.iter().zip(words.top()..words.bottom()) {
            draw::text(buf, Rect { y, height: 1, ..words }, row, cx.theme.style(Role::Text));
        }
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
            self.diff.scroll.draw(parts.diff(), buf, cx.theme);
        }
    }
}

fn row(file: &RestoreFile, choice: &FileChoice, columns: usize) -> Line {
    let kind = match file.kind {
        ChangeKind::Added => "A",
        ChangeKind::Deleted => "D",
        _ => "M",
    };
    let counts = match file.added + file.removed {
        0 => String::new(),
        _ => format!("  +{} -{}", file.added, file.removed),
    };
    let tail = match (&file.conflict, choice.count()) {
        (_, (some, all)) if some > 0 && some < all => format!("  {some} of {all} hunks{counts}"),
        (Some(_), _) => "  changed by you".to_owned(),
        (None, _) => counts,
    };
    let mark = if choice.all() {
        "x"
    } else if choice.none() {
        " "
    } else {
        "~"
    };
    let head = format!("[{mark}] {kind} ");
    let room = columns.saturating_sub(width(&head) + width(&tail));
    let mut line = Line::new(Wrap::Cut);
    line.push(&head, Look::of(if choice.none() { Role::Dim } else { Role::Accent }));
    let path = shorten_end(&clean::plain(&file.path), room, draw::ascii());
    line.push_strict(&path, Look::of(Role::Text));
    let role = if file.conflict.is_some() { Role::Waiting } else { Role::Dim };
    line.pad_to(columns.saturating_sub(width(&tail)), Look::of(Role::Text));
    line.push(&tail, Look::of(role));
    line
}
