//! The vim layer of the composer: insert and normal mode, counts, operators with motions, dot-repeat.
//!
//! Behaviour follows vim's own documentation of these keys; the table in `vim_tests.rs` is the conformance list. Other
//! keys do nothing.

use std::ops::Range;

#[path = "visual.rs"]
mod visual;

use super::moves::{
    Motion, clamp, class_at, find, first_word, last_letter, line_end, line_start, lines, next_word, object,
    vertical, with_newline, word_end, word_start,
};
use crate::widget::edit::Edit;

/// The mode: keys are text, or commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Insert,
    Normal,
}

/// The command that is being typed in normal mode.
#[derive(Clone, Debug, Default)]
struct Pending {
    count: Option<usize>,
    /// `d`, `c`, `y`, with the count that stood before it.
    operator: Option<(char, usize)>,
    /// `g`, `r`, `f`, `t`, `F`, `T`, or `i`/`a` behind an operator.
    prefix: Option<char>,
}

/// State of the layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vim {
    pub mode: Mode,
    pending: Pending,
    /// The other end of what is selected, and whether whole lines are.
    visual: Option<(usize, bool)>,
    /// Keys of the command being typed, and of the last change, for `.`.
    keys: Vec<char>,
    last: Vec<char>,
    /// Where insert mode was gone into by a command: the text then, and the caret in it.
    began: Option<(String, usize)>,
    /// The text that was typed there, for `.`.
    typed: String,
    find: Option<(char, char)>,
    register: String,
    linewise: bool,
    replaying: bool,
}

impl Vim {
    /// Insert to normal, as Escape does. False when it was normal with nothing pending.
    pub(crate) fn escape(&mut self, b: &mut Edit) -> bool {
        let pending = self.pending();
        self.pending = Pending::default();
        self.visual = None;
        self.keys.clear();
        // A command and what was typed after it are one change.
        b.end_group();
        if self.mode == Mode::Insert {
            self.mode = Mode::Normal;
            if let Some((before, at)) = self.began.take() {
                let (head, tail) = before.split_at(at);
                let typed = b.text().strip_prefix(head).and_then(|t| t.strip_suffix(tail));
                self.typed = typed.unwrap_or_default().to_owned();
            }
            if b.caret() > line_start(b, b.caret()) {
                b.left();
            }
            return true;
        }
        pending
    }

    /// A command is begun, or something is selected.
    pub(crate) fn pending(&self) -> bool {
        self.visual.is_some()
            || self.pending.operator.is_some()
            || self.pending.prefix.is_some()
            || self.pending.count.is_some()
    }

    /// A key in normal mode. Never types.
    pub(crate) fn key(&mut self, c: char, b: &mut Edit) {
        self.keys.push(c);
        b.begin_group();
        let done = self.step(c, b);
        if done {
            if self.mode == Mode::Normal && !self.replaying {
                b.end_group();
            }
            self.pending = Pending::default();
            self.keys.clear();
            if self.mode == Mode::Normal {
                clamp(b);
            } else if !self.replaying {
                self.began = Some((b.text().to_owned(), b.caret()));
                self.typed.clear();
            }
        }
    }

    /// True when the command is complete (or was none).
    fn step(&mut self, c: char, b: &mut Edit) -> bool {
        if let Some(p) = self.pending.prefix {
            return self.prefixed(p, c, b);
        }
        if c.is_ascii_digit() && (c != '0' || self.pending.count.is_some()) {
            let d = c as usize - '0' as usize;
            self.pending.count = Some((self.pending.count.unwrap_or(0) * 10 + d).min(9999));
            return false;
        }
        if self.visual.is_some() {
            return self.select(c, b);
        }
        match c {
            'g' | 'r' | 'f' | 't' | 'F' | 'T' => {
                self.pending.prefix = Some(c);
                false
            }
            'v' | 'V' => {
                self.visual = Some((b.caret(), c == 'V'));
                true
            }
            'i' | 'a' if self.pending.operator.is_some() => {
                self.pending.prefix = Some(c);
                false
            }
            'd' | 'c' | 'y' => match self.pending.operator {
                Some((op, _)) if op == c => {
                    let lines = lines(b, self.count());
                    self.operate(op, lines, true, b);
                    true
                }
                Some(_) => true,
                None => {
                    self.pending.operator = Some((c, self.pending.count.take().unwrap_or(1)));
                    false
                }
            },
            _ => {
                if let Some(range) = self.motion(c, b) {
                    self.moved(range, b);
                } else {
                    self.simple(c, b);
                }
                true
            }
        }
    }

    fn count(&self) -> usize {
        self.pending.count.unwrap_or(1) * self.pending.operator.map_or(1, |(_, n)| n)
    }

    /// A motion went from the caret to `to`: move there, or operate on what lies between.
    fn moved(&mut self, to: Motion, b: &mut Edit) {
        let from = b.caret();
        match self.pending.operator {
            None => b.set_caret(to.at),
            Some((op, _)) if to.lines => {
                let (a, z) = (from.min(to.at), from.max(to.at));
                let range = line_start(b, a)..line_end(b, z);
                self.operate(op, with_newline(b, range), true, b);
            }
            Some((op, _)) => {
                let (a, z) = (from.min(to.at), from.max(to.at));
                let z = if to.inclusive && to.at >= from { b.after(z) } else { z };
                self.operate(op, a..z, false, b);
            }
        }
    }

    fn operate(&mut self, op: char, range: Range<usize>, linewise: bool, b: &mut Edit) {
        self.register = b.text()[range.clone()].to_owned();
        self.linewise = linewise;
        match op {
            'y' => b.set_caret(range.start),
            'd' => {
                self.changed();
                b.delete(range.clone(), true);
                if linewise {
                    // The last line goes with the newline before it.
                    if range.start == b.text().len() && b.text().ends_with('\n') {
                        b.delete(range.start - 1..range.start, false);
                    }
                    let start = line_start(b, b.caret());
                    b.set_caret(start);
                }
            }
            _ => {
                self.changed();
                let keep = linewise && b.text()[range.clone()].ends_with('\n');
                b.delete(range.start..range.end - usize::from(keep), true);
                self.mode = Mode::Insert;
            }
        }
    }

    fn changed(&mut self) {
        if !self.replaying {
            self.last = self.keys.clone();
        }
    }

    fn prefixed(&mut self, prefix: char, c: char, b: &mut Edit) -> bool {
        match prefix {
            'g' if c == 'g' => self.moved(Motion { at: 0, inclusive: false, lines: true }, b),
            'r' => {
                let to = b.after(b.caret());
                if to > b.caret() && !b.text()[b.caret()..].starts_with('\n') {
                    self.changed();
                    let at = b.caret();
                    b.replace(at..to, c.encode_utf8(&mut [0; 4]));
                    b.set_caret(at);
                }
            }
            'f' | 't' | 'F' | 'T' => {
                self.find = Some((prefix, c));
                if let Some(m) = find(b, prefix, c, self.count()) {
                    self.moved(m, b);
                }
            }
            'i' | 'a' => {
                let range = object(b, prefix == 'a', c);
                match (self.pending.operator, range) {
                    (Some((op, _)), Some(range)) => self.operate(op, range, false, b),
                    (None, Some(range)) if !range.is_empty() => self.select_all(range, b),
                    _ => {}
                }
            }
            _ => {}
        }
        true
    }

    fn motion(&self, c: char, b: &Edit) -> Option<Motion> {
        let at = b.caret();
        let n = self.count();
        let to = |at| Motion { at, inclusive: false, lines: false };
        let times = |f: &dyn Fn(usize) -> usize| (0..n).fold(at, |at, _| f(at));
        Some(match c {
            'h' => to(times(&|at| if at > line_start(b, at) { b.before(at) } else { at })),
            'l' | ' ' => to(times(&|at| if at < line_end(b, at) { b.after(at) } else { at })),
            '0' => to(line_start(b, at)),
            '^' | '_' => to(first_word(b, at)),
            '$' => Motion { at: last_letter(b, at), inclusive: true, lines: false },
            // `cw` on a word ends like `ce`: vim's own exception.
            'w' | 'W'
                if self.pending.operator.is_some_and(|(op, _)| op == 'c')
                    && class_at(b, at, c == 'W') != 0 =>
            {
                Motion { at: times(&|at| word_end(b, at, c == 'W', true)), inclusive: true, lines: false }
            }
            'w' | 'W' => to(times(&|at| next_word(b, at, c == 'W'))),
            'b' | 'B' => to(times(&|at| word_start(b, at, c == 'B'))),
            'e' | 'E' => {
                Motion { at: times(&|at| word_end(b, at, c == 'E', false)), inclusive: true, lines: false }
            }
            'j' | 'k' => Motion { at: vertical(b, c == 'j', n)?, inclusive: false, lines: true },
            'G' => Motion { at: line_start(b, b.text().len()), inclusive: false, lines: true },
            ';' | ',' => {
                let (how, what) = self.find?;
                let how = if c == ';' {
                    how
                } else if how.is_lowercase() {
                    how.to_ascii_uppercase()
                } else {
                    how.to_ascii_lowercase()
                };
                find(b, how, what, n)?
            }
            _ => return None,
        })
    }

    fn simple(&mut self, c: char, b: &mut Edit) {
        let at = b.caret();
        let n = self.count();
        let right = |b: &Edit| (0..n).fold(at, |at, _| if at < line_end(b, at) { b.after(at) } else { at });
        let insert = |v: &mut Self| {
            v.changed();
            v.mode = Mode::Insert;
        };
        match c {
            'i' => insert(self),
            'a' => {
                if at < line_end(b, at) {
                    b.right();
                }
                insert(self);
            }
            'I' => {
                b.set_caret(first_word(b, at));
                insert(self);
            }
            'A' => {
                b.end();
                insert(self);
            }
            'o' => {
                b.end();
                b.insert("\n");
                insert(self);
            }
            'O' => {
                b.home();
                b.insert("\n");
                b.left();
                insert(self);
            }
            'x' | 's' => {
                let to = right(b);
                self.operate(if c == 'x' { 'd' } else { 'c' }, at..to, false, b);
            }
            'X' => {
                let from = (0..n).fold(at, |at, _| if at > line_start(b, at) { b.before(at) } else { at });
                self.operate('d', from..at, false, b);
            }
            'D' => self.operate('d', at..line_end(b, at), false, b),
            'C' => self.operate('c', at..line_end(b, at), false, b),
            'S' => {
                let range = lines(b, n);
                self.operate('c', range, true, b);
            }
            'Y' => {
                let range = lines(b, n);
                let caret = b.caret();
                self.operate('y', range, true, b);
                b.set_caret(caret);
            }
            'p' | 'P' => self.put(c == 'p', n, b),
            'J' => {
                let end = line_end(b, at);
                if end < b.text().len() {
                    self.changed();
                    let rest =
                        b.text()[end + 1..].len() - b.text()[end + 1..].trim_start_matches([' ', '\t']).len();
                    b.replace(end..end + 1 + rest, " ");
                    b.left();
                }
            }
            '~' => {
                let to = right(b);
                self.changed();
                let swapped: String = b.text()[at..to]
                    .chars()
                    .flat_map(|c| {
                        if c.is_uppercase() {
                            c.to_lowercase().collect::<Vec<_>>()
                        } else {
                            c.to_uppercase().collect()
                        }
                    })
                    .collect();
                b.replace(at..to, &swapped);
            }
            'u' => b.undo(),
            '.' => {
                let keys = self.last.clone();
                self.replaying = true;
                self.pending = Pending::default();
                for k in keys {
                    self.key(k, b);
                }
                if self.mode == Mode::Insert {
                    b.insert(&self.typed);
                    self.escape(b);
                }
                self.replaying = false;
            }
            _ => {}
        }
    }

    fn put(&mut self, after: bool, n: usize, b: &mut Edit) {
        if self.register.is_empty() {
            return;
        }
        self.changed();
        let mut text = self.register.repeat(n);
        if self.linewise {
            let text = text.trim_end_matches('\n').to_owned();
            if after {
                b.end();
                let at = b.caret() + 1;
                b.insert(&format!("\n{text}"));
                b.set_caret(at);
            } else {
                b.home();
                let at = b.caret();
                b.insert(&format!("{text}\n"));
                b.set_caret(at);
            }
        } else {
            if after && b.caret() < line_end(b, b.caret()) {
                b.right();
            }
            text = text.replace('\r', "");
            b.insert(&text);
            b.left();
        }
    }
}

#[cfg(test)]
#[path = "vim_tests.rs"]
mod tests;
