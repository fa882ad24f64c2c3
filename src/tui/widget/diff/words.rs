//! The lines of a hunk as clean code, with the words that changed.

use similar::{ChangeTag, TextDiff};

use crate::text::diff::{DiffLine, Hunk, LineKind};
use crate::text::line::{Line, Look, Wrap};
use crate::theme::Role;

/// Bytes of a line; longer ones are not compared word by word.
const WORDS: usize = 400;
/// Work that comparing the words of one hunk may take, as bytes of the old line times bytes of the new one: some
/// milliseconds.
const WORK: usize = 1_000_000;
/// Share of two lines that must be equal, so that their changed words are marked.
const ALIKE: f32 = 0.4;

/// Clean lines of code: changed words of paired lines have a ground of their own.
pub(super) fn lines(h: &Hunk) -> Vec<Line> {
    // Files with \r\n would show a mark on every line.
    let crlf = h.lines.iter().filter(|l| l.kind != LineKind::Remark).all(|l| l.text.ends_with('\r'));
    let bare =
        |l: &DiffLine| -> String { l.text.strip_suffix('\r').filter(|_| crlf).unwrap_or(&l.text).to_owned() };
    let mut out: Vec<Line> = h
        .lines
        .iter()
        .map(|l| {
            let role = if l.kind == LineKind::Remark { Role::Dim } else { Role::Text };
            Line::strict(&bare(l), Look::of(role), Wrap::Hard)
        })
        .collect();
    let mut left = WORK;
    let mut n = 0;
    while n < h.lines.len() {
        let run = |from: usize, kind: LineKind| h.lines[from..].iter().take_while(|l| l.kind == kind).count();
        let removed = run(n, LineKind::Removed);
        let added = run(n + removed, LineKind::Added);
        for k in 0..removed.min(added) {
            let (a, b) = (n + k, n + removed + k);
            if let Some((old, new)) = words(&bare(&h.lines[a]), &bare(&h.lines[b]), &mut left) {
                out[a] = old;
                out[b] = new;
            }
        }
        n += (removed + added).max(1);
    }
    out
}

fn words(old: &str, new: &str, left: &mut usize) -> Option<(Line, Line)> {
    if old.len() > WORDS || new.len() > WORDS {
        return None;
    }
    *left = left.checked_sub(old.len() * new.len())?;
    let diff = TextDiff::configure().diff_unicode_words(old, new);
    if diff.ratio() < ALIKE {
        return None; // nearly everything changed: marking it all says nothing
    }
    let (mut a, mut b) = (Line::new(Wrap::Hard), Line::new(Wrap::Hard));
    let text_look = Look::of(Role::Text);
    for change in diff.iter_all_changes() {
        let text = change.value();
        match change.tag() {
            ChangeTag::Equal => {
                a.push_strict(text, text_look);
                b.push_strict(text, text_look);
            }
            ChangeTag::Delete => a.push_strict(text, text_look.on(Role::RemovedWord)),
            ChangeTag::Insert => b.push_strict(text, text_look.on(Role::AddedWord)),
        }
    }
    Some((a, b))
}
