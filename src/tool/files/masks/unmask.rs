//! Which value a mask stands for: masks of a written text are matched with those of the text that was read, by the
//! whole line, else by the name before the mask, else by the place in a changed block. Where several values come into
//! question, the lines around decide; where they do not decide, there is no answer.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use similar::{Algorithm, DiffOp};

use crate::files::masks::MaskedText;

/// Lines around a mask that are compared, on each side.
const AROUND: usize = 64;
/// Comparisons of surroundings for masks that look alike; with more of them there is no answer.
const COMPARED: usize = 250_000;
/// Time for the comparison of changed blocks.
const TIMEOUT: Duration = Duration::from_millis(300);

/// A mask in a text.
#[derive(Debug)]
struct Mark<'a> {
    mask: &'a str,
    line: usize,
    /// Its number among those of the line.
    nth: usize,
    /// The last word before it on its line; may be empty.
    key: &'a str,
}

/// Lines that are not empty, without the blanks around them, and masks.
#[derive(Debug)]
pub(crate) struct Side<'a> {
    lines: Vec<&'a str>,
    marks: Vec<Mark<'a>>,
    /// How often there is such a line.
    count: HashMap<&'a str, usize>,
}

impl<'a> Side<'a> {
    /// `masks` are in order.
    pub(crate) fn new(text: &'a str, masks: &[Range<usize>]) -> Self {
        let (mut lines, mut marks, mut count) = (Vec::new(), Vec::new(), HashMap::new());
        let (mut start, mut next) = (0, 0);
        for line in text.split('\n') {
            let n = lines.len();
            let end = start + line.len();
            let (mut from, mut nth) = (start, 0);
            while let Some(range) = masks.get(next).filter(|r| r.end <= end) {
                let key = key(&text[from..range.start]);
                marks.push(Mark { mask: &text[range.clone()], line: n, nth, key });
                (from, nth, next) = (range.end, nth + 1, next + 1);
            }
            let line = line.trim();
            if !line.is_empty() {
                lines.push(line);
                *count.entry(line).or_default() += 1;
            }
            start = end + 1;
        }
        Self { lines, marks, count }
    }

    /// The line `n` away, down or up; the end of the text is like a line of its own, and beyond it is nothing.
    fn around(&self, line: usize, n: usize, down: bool) -> Option<Option<&'a str>> {
        let at = if down { line.checked_add(n)? } else { line.wrapping_sub(n) };
        match self.lines.get(at) {
            Some(text) => Some(Some(text)),
            None if down && at == self.lines.len() || !down && n == line + 1 => Some(None),
            None => None,
        }
    }

    /// How many lines like this one stand right above and below it.
    fn row(&self, line: usize) -> (usize, usize) {
        let same = |l: &&&str| ***l == *self.lines[line];
        let above = self.lines[..line].iter().rev().take_while(same).count();
        (above, self.lines[line + 1..].iter().take_while(same).count())
    }

    fn once(&self, line: &str) -> bool {
        self.count.get(line) == Some(&1)
    }

    /// Lines between the mask above and this one.
    fn section(&self, mark: usize) -> &[&'a str] {
        let line = self.marks[mark].line;
        let above = self.marks[..mark].iter().rev().find(|m| m.line < line).map_or(0, |m| m.line + 1);
        &self.lines[above..line]
    }
}

/// The last word of what stands before a mask.
fn key(before: &str) -> &str {
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let before = before.trim_end_matches(|c| !word(c));
    before.rfind(|c| !word(c)).map_or(before, |at| {
        let skip = before[at..].chars().next().map_or(1, char::len_utf8);
        &before[at + skip..]
    })
}

/// What makes two masks alike.
type Sign<'a> = (&'a str, &'a str, usize);

fn by_line<'a>(side: &Side<'a>, mark: &Mark<'a>) -> Option<Sign<'a>> {
    Some((mark.mask, side.lines[mark.line], mark.nth))
}

fn by_key<'a>(_: &Side<'a>, mark: &Mark<'a>) -> Option<Sign<'a>> {
    (!mark.key.is_empty()).then_some((mark.mask, mark.key, 0))
}

/// What is known of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer<'t> {
    /// Nothing yet.
    Open,
    /// Its value.
    Value(&'t str),
    /// Several values come into question, and nothing decides.
    Doubt,
}

/// Finds values in `old` for the masks of `new` that are open.
pub(crate) fn fill<'t>(new: &Side<'_>, old: &MaskedText<'t>, values: &mut [Answer<'t>]) {
    let ranges: Vec<Range<usize>> = old.masks().collect();
    if ranges.is_empty() || !values.contains(&Answer::Open) {
        return;
    }
    let there = Side::new(old.shown(), &ranges);
    let mut found = LineSearch {
        new,
        old: &there,
        values: (0..ranges.len()).map(|n| old.value(n)).collect(),
        chosen: vec![None; values.len()],
        doubt: vec![false; values.len()],
    };
    if new.lines == there.lines && new.marks.len() == there.marks.len() {
        // Nothing but masks could differ, and they do not.
        for n in 0..values.len() {
            found.chosen[n] = (new.marks[n].mask == there.marks[n].mask).then_some(n);
        }
    }
    let open: Vec<usize> = (0..values.len()).filter(|n| values[*n] == Answer::Open).collect();
    found.alike(&open, by_line);
    found.alike(&open, by_key);
    found.blocks(&open);
    for n in open {
        match found.chosen[n] {
            Some(c) => values[n] = Answer::Value(found.values[c]),
            None if found.doubt[n] => values[n] = Answer::Doubt,
            None => {}
        }
    }
}

/// What ties two masks that look alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tie {
    /// A line that is there once.
    Line,
    /// The beginning or the end of both texts.
    End,
}

struct LineSearch<'s, 't> {
    new: &'s Side<'s>,
    old: &'s Side<'s>,
    /// Of the masks of `old`.
    values: Vec<&'t str>,
    /// For each mask of `new` one of `old`.
    chosen: Vec<Option<usize>>,
    /// Those that no later step may decide by what is left.
    doubt: Vec<bool>,
}

impl<'s> LineSearch<'s, '_> {
    /// Matches masks with the same sign.
    fn alike(&mut self, open: &[usize], sign: fn(&Side<'s>, &Mark<'s>) -> Option<Sign<'s>>) {
        let group = |side: &Side<'s>, marks: &mut dyn Iterator<Item = usize>| {
            let mut groups: HashMap<Sign<'s>, Vec<usize>> = HashMap::new();
            for n in marks {
                if let Some(sign) = sign(side, &side.marks[n]) {
                    groups.entry(sign).or_default().push(n);
                }
            }
            groups
        };
        let used: Vec<usize> = self.chosen.iter().flatten().copied().collect();
        let wanted = group(self.new, &mut open.iter().copied().filter(|n| self.left(*n)));
        let there = group(self.old, &mut (0..self.values.len()));
        for (sign, wanted) in wanted {
            let Some(all) = there.get(&sign) else { continue };
            // Values without a mask so far come first; a value that occurs twice can be used again.
            let free: Vec<usize> = all.iter().copied().filter(|c| !used.contains(c)).collect();
            self.choose(&wanted, if free.is_empty() { all } else { &free });
        }
    }

    /// Chooses among candidates that look alike.
    fn choose(&mut self, wanted: &[usize], candidates: &[usize]) {
        let first = self.values[candidates[0]];
        if candidates.iter().all(|c| self.values[*c] == first) {
            for n in wanted {
                self.chosen[*n] = Some(candidates[0]);
            }
            return;
        }
        if wanted.len().saturating_mul(candidates.len()) > COMPARED {
            return wanted.iter().for_each(|n| self.doubt[*n] = true);
        }
        let all = wanted.len() == candidates.len();
        let mut picks: Vec<Option<usize>> = wanted.iter().map(|n| self.tied(*n, candidates, all)).collect();
        if all && self.in_order(wanted, candidates, &picks) {
            picks = candidates.iter().copied().map(Some).collect();
        }
        // As many as there were, and yet one value twice and another not at all: some were moved, and it is not
        // known which.
        let twice = |at: usize| {
            picks[at].is_some() && picks.iter().enumerate().any(|(o, p)| o != at && *p == picks[at])
        };
        if wanted.len() <= candidates.len() && (0..picks.len()).any(twice) {
            picks.fill(None);
        }
        for (n, pick) in wanted.iter().zip(picks) {
            (self.chosen[*n], self.doubt[*n]) = (pick, pick.is_none());
        }
    }

    /// The candidate to which the mask is tied: by equal lines, without a gap, up to a line that is there once in both
    /// texts; else, where `ends` says so, up to where both begin or end. `None` as well when it is tied to different
    /// values.
    fn tied(&self, wanted: usize, candidates: &[usize], ends: bool) -> Option<usize> {
        let ties: Vec<[Option<Tie>; 2]> =
            candidates.iter().map(|c| [self.tie(wanted, *c, false), self.tie(wanted, *c, true)]).collect();
        let by = |tie: Tie| {
            let mut tied =
                candidates.iter().zip(&ties).filter(|(_, t)| t.contains(&Some(tie))).map(|(c, _)| *c);
            let first = tied.next()?;
            Some(tied.all(|c| self.values[c] == self.values[first]).then_some(first))
        };
        let found = by(Tie::Line).or_else(|| ends.then(|| by(Tie::End)).flatten()).flatten();
        found.filter(|c| self.at_home(wanted, *c, candidates))
    }

    fn tie(&self, wanted: usize, candidate: usize, down: bool) -> Option<Tie> {
        let (line, there) = (self.new.marks[wanted].line, self.old.marks[candidate].line);
        // Of a row of equal lines it is not known which one went.
        if self.new.row(line) != self.old.row(there) {
            return None;
        }
        for n in 1..=AROUND {
            match (self.new.around(line, n, down), self.old.around(there, n, down)) {
                (Some(None), Some(None)) => return Some(Tie::End),
                (Some(Some(a)), Some(Some(b))) if a == b => {
                    if self.new.once(a) && self.old.once(a) {
                        return Some(Tie::Line);
                    }
                }
                _ => return None,
            }
        }
        None
    }

    /// Whether no candidate of another value has more of the lines that stand between the mask and the one above it.
    fn at_home(&self, wanted: usize, candidate: usize, candidates: &[usize]) -> bool {
        let section = self.new.section(wanted);
        let shared = |candidate: usize| {
            let there = self.old.section(candidate);
            section.iter().filter(|l| there.contains(l)).count()
        };
        let own = shared(candidate);
        candidates.iter().all(|o| self.values[*o] == self.values[candidate] || shared(*o) <= own)
    }

    /// Whether they stand in the order in which they stood: nothing around them says otherwise.
    fn in_order(&self, wanted: &[usize], candidates: &[usize], picks: &[Option<usize>]) -> bool {
        wanted
            .iter()
            .zip(candidates)
            .zip(picks)
            .all(|((n, c), pick)| pick.is_none_or(|p| p == *c) && self.at_home(*n, *c, candidates))
    }

    fn left(&self, n: usize) -> bool {
        self.chosen[n].is_none() && !self.doubt[n]
    }

    /// Matches what is left by block: one mask of a name in the lines that went, and one in those that came.
    fn blocks(&mut self, open: &[usize]) {
        if !open.iter().any(|n| self.left(*n)) {
            return;
        }
        let deadline = std::time::Instant::now().checked_add(TIMEOUT);
        let ops = similar::capture_diff_slices_deadline(
            Algorithm::Myers,
            &self.old.lines,
            &self.new.lines,
            deadline,
        );
        for op in ops {
            let DiffOp::Replace { old_index, old_len, new_index, new_len } = op else { continue };
            let came = new_index..new_index + new_len;
            let went = old_index..old_index + old_len;
            let left = |this: &Self, n: usize| this.left(n) && came.contains(&this.new.marks[n].line);
            for n in open {
                if !left(self, *n) {
                    continue;
                }
                let mask = self.new.marks[*n].mask;
                let same =
                    open.iter().filter(|o| left(self, **o) && self.new.marks[**o].mask == mask).count();
                let free: Vec<usize> = (0..self.values.len())
                    .filter(|c| went.contains(&self.old.marks[*c].line) && self.old.marks[*c].mask == mask)
                    .filter(|c| !self.chosen.contains(&Some(*c)))
                    .collect();
                let one = free.first().filter(|f| free.iter().all(|c| self.values[*c] == self.values[**f]));
                if same == 1
                    && let Some(c) = one
                {
                    self.chosen[*n] = Some(*c);
                }
            }
        }
    }
}
