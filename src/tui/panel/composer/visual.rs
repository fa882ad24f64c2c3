//! Visual mode: what is selected, and what a key does with it.

use std::ops::Range;

use super::Vim;
use crate::panel::composer::moves::{line_end, line_start, with_newline};
use crate::widget::edit::Edit;

impl Vim {
    /// The bytes that are selected.
    pub(crate) fn selected(&self, b: &Edit) -> Option<Range<usize>> {
        let (anchor, lines) = self.visual?;
        let anchor = anchor.min(b.text().len());
        let (from, to) = (anchor.min(b.caret()), anchor.max(b.caret()));
        Some(match lines {
            true => with_newline(b, line_start(b, from)..line_end(b, to)),
            false => from..b.after(to),
        })
    }

    /// A key while something is selected. True when the command is complete.
    pub(super) fn select(&mut self, c: char, b: &mut Edit) -> bool {
        let (Some((anchor, lines)), Some(range)) = (self.visual, self.selected(b)) else { return true };
        match c {
            'g' | 'f' | 't' | 'F' | 'T' | 'i' | 'a' => {
                self.pending.prefix = Some(c);
                return false;
            }
            'v' | 'V' if lines == (c == 'V') => self.visual = None,
            'v' | 'V' => self.visual = Some((anchor, c == 'V')),
            'o' => {
                self.visual = Some((b.caret(), lines));
                b.set_caret(anchor.min(b.text().len()));
            }
            'd' | 'x' => self.over('d', range, lines, b),
            'c' | 's' => self.over('c', range, lines, b),
            'y' => self.over('y', range, lines, b),
            'D' | 'X' => self.over('d', line_start(b, range.start)..line_end(b, range.end), false, b),
            '~' | 'u' | 'U' => {
                let change = |ch: char| -> String {
                    match c {
                        'u' => ch.to_lowercase().collect(),
                        '~' if ch.is_uppercase() => ch.to_lowercase().collect(),
                        _ => ch.to_uppercase().collect(),
                    }
                };
                let text: String = b.text()[range.clone()].chars().map(change).collect();
                let start = range.start;
                b.replace(range, &text);
                b.set_caret(start);
                self.visual = None;
            }
            'p' | 'P' if !self.register.is_empty() => {
                let text = self.register.trim_end_matches('\n').to_owned();
                let taken = b.text()[range.clone()].to_owned();
                let keep = lines && taken.ends_with('\n');
                b.replace(range.start..range.end - usize::from(keep), &text);
                b.left();
                (self.register, self.linewise, self.visual) = (taken, lines, None);
            }
            _ => {
                if let Some(to) = self.motion(c, b) {
                    b.set_caret(to.at);
                }
            }
        }
        true
    }

    /// Does an operator with the selection. It is not repeated by `.`: nothing is selected then.
    fn over(&mut self, op: char, range: Range<usize>, lines: bool, b: &mut Edit) {
        self.visual = None;
        let last = std::mem::take(&mut self.last);
        self.operate(op, range, lines, b);
        self.last = last;
    }

    /// A text object is selected whole.
    pub(super) fn select_all(&mut self, range: Range<usize>, b: &mut Edit) {
        self.visual = Some((range.start, false));
        b.set_caret(b.before(range.end));
    }
}
