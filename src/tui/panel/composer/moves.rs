//! Where vim's motions and text objects lead: pure, from a text with its caret to positions in it.

use std::ops::Range;

use crate::widget::edit::Edit;

/// Where a motion leads. `inclusive`: an operator takes the letter there too.
pub(super) struct Motion {
    pub(super) at: usize,
    pub(super) inclusive: bool,
    pub(super) lines: bool,
}

pub(super) fn line_start(b: &Edit, at: usize) -> usize {
    b.text()[..at].rfind('\n').map_or(0, |i| i + 1)
}

pub(super) fn line_end(b: &Edit, at: usize) -> usize {
    b.text()[at..].find('\n').map_or(b.text().len(), |i| at + i)
}

pub(super) fn last_letter(b: &Edit, at: usize) -> usize {
    let (start, end) = (line_start(b, at), line_end(b, at));
    if end > start { b.before(end) } else { end }
}

pub(super) fn first_word(b: &Edit, at: usize) -> usize {
    let (start, end) = (line_start(b, at), line_end(b, at));
    start + b.text()[start..end].find(|c: char| !c.is_whitespace()).unwrap_or(0)
}

/// In normal mode the caret stands on a letter, not behind the last one.
pub(super) fn clamp(b: &mut Edit) {
    let at = b.caret();
    if at == line_end(b, at) && at > line_start(b, at) {
        b.set_caret(b.before(at));
    }
}

/// `n` whole lines from the caret's on, with the newline behind them if there is one.
pub(super) fn lines(b: &Edit, n: usize) -> Range<usize> {
    let start = line_start(b, b.caret());
    let end = (1..n)
        .fold(line_end(b, b.caret()), |end, _| if end < b.text().len() { line_end(b, end + 1) } else { end });
    with_newline(b, start..end)
}

pub(super) fn with_newline(b: &Edit, range: Range<usize>) -> Range<usize> {
    range.start..(range.end + 1).min(b.text().len())
}

pub(super) fn vertical(b: &Edit, down: bool, n: usize) -> Option<usize> {
    let mut at = b.caret();
    let column = b.text()[line_start(b, at)..at].chars().count();
    for _ in 0..n {
        let edge = if down { line_end(b, at) } else { line_start(b, at) };
        at = if down {
            (edge < b.text().len()).then_some(edge + 1)?
        } else {
            line_start(b, edge.checked_sub(1)?)
        };
    }
    let start = line_start(b, at);
    let end = line_end(b, at);
    Some(b.text()[start..end].char_indices().nth(column).map_or(end, |(i, _)| start + i))
}

/// 0 white space, 1 punctuation, 2 word letters; with `big` words only 0 and 2.
pub(super) fn class(c: char, big: bool) -> u8 {
    if c.is_whitespace() {
        0
    } else if big || c.is_alphanumeric() || c == '_' {
        2
    } else {
        1
    }
}

pub(super) fn class_at(b: &Edit, at: usize, big: bool) -> u8 {
    b.text()[at..].chars().next().map_or(0, |c| class(c, big))
}

pub(super) fn next_word(b: &Edit, at: usize, big: bool) -> usize {
    let start = class_at(b, at, big);
    let mut seen_space = start == 0;
    for (i, c) in b.text()[at..].char_indices() {
        let k = class(c, big);
        seen_space |= k == 0;
        if k != 0 && (seen_space || k != start) {
            return at + i;
        }
    }
    b.text().len()
}

pub(super) fn word_start(b: &Edit, at: usize, big: bool) -> usize {
    let mut chars = b.text()[..at].char_indices().rev().skip_while(|(_, c)| c.is_whitespace()).peekable();
    let Some((_, c)) = chars.peek().copied() else { return 0 };
    let k = class(c, big);
    chars.take_while(|(_, c)| class(*c, big) == k).last().map_or(0, |(i, _)| i)
}

/// Last letter of the word; `here`: of the one the caret is on, even when it is already at its end.
pub(super) fn word_end(b: &Edit, at: usize, big: bool, here: bool) -> usize {
    let from = if here { at } else { b.after(at) };
    let tail = &b.text()[from..];
    let skip = tail.find(|c: char| !c.is_whitespace()).unwrap_or(tail.len());
    let Some(c) = tail[skip..].chars().next() else { return last_letter(b, b.text().len()) };
    let k = class(c, big);
    tail[skip..]
        .char_indices()
        .take_while(|(_, c)| class(*c, big) == k)
        .last()
        .map_or(from, |(i, _)| from + skip + i)
}

pub(super) fn find(b: &Edit, how: char, what: char, n: usize) -> Option<Motion> {
    let at = b.caret();
    let forward = how.is_lowercase();
    let hit = if forward {
        let from = b.after(at);
        b.text()[from..line_end(b, at).max(from)].match_indices(what).nth(n - 1).map(|(i, _)| from + i)?
    } else {
        b.text()[line_start(b, at)..at].rmatch_indices(what).nth(n - 1).map(|(i, _)| line_start(b, at) + i)?
    };
    let at = match how {
        't' => b.before(hit),
        'T' => b.after(hit),
        _ => hit,
    };
    Some(Motion { at, inclusive: forward, lines: false })
}

/// Inner or whole word, quotes or brackets.
pub(super) fn object(b: &Edit, whole: bool, c: char) -> Option<Range<usize>> {
    let at = b.caret();
    let text = b.text();
    match c {
        'w' | 'W' => {
            let k = class_at(b, at, c == 'W');
            let same = |ch: &char| class(*ch, c == 'W') == k && *ch != '\n';
            let start = at - text[..at].chars().rev().take_while(same).map(char::len_utf8).sum::<usize>();
            let mut end = at + text[at..].chars().take_while(same).map(char::len_utf8).sum::<usize>();
            if whole {
                end += text[end..]
                    .chars()
                    .take_while(|c| *c == ' ' || *c == '\t')
                    .map(char::len_utf8)
                    .sum::<usize>();
            }
            Some(start..end)
        }
        '"' | '\'' | '`' => {
            let (from, to) = (line_start(b, at), line_end(b, at));
            let marks: Vec<usize> = text[from..to].match_indices(c).map(|(i, _)| from + i).collect();
            let pair = marks.chunks(2).find(|p| p.len() == 2 && p[1] >= at)?;
            Some(if whole { pair[0]..pair[1] + 1 } else { pair[0] + 1..pair[1] })
        }
        '(' | ')' | 'b' | '[' | ']' | '{' | '}' | 'B' => {
            let (open, close) = match c {
                '(' | ')' | 'b' => ('(', ')'),
                '[' | ']' => ('[', ']'),
                _ => ('{', '}'),
            };
            let mut depth = 0;
            let start = text[..b.after(at)].char_indices().rev().find(|(i, c)| {
                if *c == close && *i != at {
                    depth += 1;
                } else if *c == open {
                    if depth == 0 {
                        return true;
                    }
                    depth -= 1;
                }
                false
            })?;
            let mut depth = 0;
            let end = text[start.0..].char_indices().find(|(_, c)| {
                if *c == open {
                    depth += 1;
                } else if *c == close {
                    depth -= 1;
                }
                depth == 0
            })?;
            let end = start.0 + end.0;
            Some(if whole { start.0..end + 1 } else { start.0 + 1..end })
        }
        _ => None,
    }
}
