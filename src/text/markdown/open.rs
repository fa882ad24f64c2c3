//! The last line of a growing reply. Open marks count as closed, so that `**bold` is bold from its first letter on, and
//! a mark with nothing behind it is not shown. This is an approximation: the complete line is parsed by the Markdown
//! parser.

use std::borrow::Cow;

/// Maximum length of a line that is processed; longer lines are shown unchanged.
const LONGEST: usize = 4 << 10;

/// An open run of one mark character.
struct Mark<'a> {
    run: &'a str,
    /// Start of the marked text.
    after: usize,
}

/// `source` with the open marks of its last line closed.
pub(super) fn close(source: &str) -> Cow<'_, str> {
    let start = source.rfind('\n').map_or(0, |end| end + 1);
    let line = &source[start..];
    // Fences, rules and indented code.
    let bare = line.trim();
    if in_code(&source[..start]) {
        return Cow::Borrowed(source);
    }
    if unclear(bare, &source[..start]) {
        return Cow::Borrowed(&source[..start]);
    }
    if bare.is_empty()
        || line.len() > LONGEST
        || bare.starts_with("```")
        || bare.starts_with("~~~")
        || (line.starts_with("    ") && !item(bare))
        || rule(bare)
    {
        return Cow::Borrowed(source);
    }
    let (keep, closing) = scan(line);
    if keep == line.len() && closing.is_empty() {
        return Cow::Borrowed(source);
    }
    // A mark after a blank would open, not close.
    Cow::Owned(format!("{}{closing}", source[..start + keep].trim_end_matches([' ', '\t'])))
}

/// Whether a fence within an item or a quote is open. Top-level fences are handled elsewhere.
pub(super) fn in_code(above: &str) -> bool {
    let marker = |c: char| c.is_ascii_digit() || " \t>-*+.)".contains(c);
    let fence = |line: &str| {
        let line = line.trim_start_matches(marker);
        line.starts_with("```") || line.starts_with("~~~")
    };
    above.lines().filter(|line| fence(line)).count() % 2 == 1
}

/// Whether the kind of the line depends on its next character: a row of a table, a heading, an item. If it were shown
/// now, it would turn the text above into a heading, or end the table for a moment.
fn unclear(bare: &str, above: &str) -> bool {
    let all = |of: &[u8]| !bare.is_empty() && bare.bytes().all(|b| of.contains(&b));
    let row = above.trim_end_matches(['\n', '\r']).rsplit('\n').next().unwrap_or_default();
    [b"|", b"-", b"=", b"#", b"+"].into_iter().any(|one| all(one))
        || (row.trim_start().starts_with('|') && all(b"|-: "))
}

/// Whether the line is a thematic break so far.
fn rule(bare: &str) -> bool {
    let mut marks = bare.bytes().filter(|b| *b != b' ');
    let first = marks.next().unwrap_or(b' ');
    b"*_-".contains(&first) && marks.clone().count() > 1 && marks.all(|b| b == first)
}

/// Whether the line begins like an item of a list, which may be indented.
fn item(bare: &str) -> bool {
    bare.starts_with(['-', '*', '+']) || bare.starts_with(|c: char| c.is_ascii_digit())
}

/// How many bytes of the line to keep, and the closing marks to append.
fn scan(line: &str) -> (usize, String) {
    let mut open: Vec<Mark<'_>> = Vec::new();
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        let run = &line[at..at + (line[at..].len() - line[at..].trim_start_matches(c).len())];
        let end = at + run.len();
        match c {
            '\\' => at += 1 + line[at + 1..].chars().next().map_or(0, char::len_utf8),
            '`' => match code_end(line, end, run) {
                Some(end) => at = end,
                // Everything after it is code.
                None if end == line.len() => return closed(line, at, open),
                None => {
                    open.push(Mark { run, after: end });
                    return closed(line, line.len(), open);
                }
            },
            '*' | '_' | '~' => {
                let before = line[..at].chars().next_back();
                let next = line[end..].chars().next();
                let wants = open.last().is_some_and(|m| m.run.starts_with(c));
                let blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
                if wants && !blank(before) {
                    let same = open.last().is_some_and(|m| m.run == run);
                    if same {
                        open.pop();
                    } else if end == line.len() {
                        // A closing mark that is half complete.
                        return closed(line, at, open);
                    }
                } else if next.is_none() && blank(before) {
                    return closed(line, at, open);
                } else if !blank(next)
                    && before.is_none_or(|b| b.is_whitespace() || b.is_ascii_punctuation())
                    && (c != '~' || run.len() == 2)
                {
                    open.push(Mark { run, after: end });
                }
                at = end;
            }
            _ => at += c.len_utf8(),
        }
    }
    closed(line, line.len(), open)
}

/// The end of code that `run` opened: behind a run of the same length.
fn code_end(line: &str, from: usize, run: &str) -> Option<usize> {
    let mut at = from;
    while let Some(found) = line[at..].find('`') {
        let begin = at + found;
        let end = begin + (line[begin..].len() - line[begin..].trim_start_matches('`').len());
        if end - begin == run.len() {
            return Some(end);
        }
        at = end;
    }
    None
}

/// The line up to `keep`, with the open marks closed, the innermost first. Marks with nothing behind them are dropped.
fn closed(line: &str, mut keep: usize, mut open: Vec<Mark<'_>>) -> (usize, String) {
    while let Some(last) = open.last() {
        if !line[last.after.min(keep)..keep].trim().is_empty() {
            break;
        }
        keep = last.after - last.run.len();
        open.pop();
    }
    (keep, open.iter().rev().map(|m| m.run).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_marks_are_closed_and_empty_ones_go() {
        for (line, shown) in [
            ("plain words", "plain words"),
            ("a **bo", "a **bo**"),
            ("a **bold word", "a **bold word**"),
            ("a **bold*", "a **bold**"),
            ("a **bold** and", "a **bold** and"),
            ("- **", "-"),
            ("-x", "-x"),
            ("- ", ""),
            ("above\n-", "above\n"),
            ("##", ""),
            ("| a |\n|--", "| a |\n"),
            ("| a |\n|--|\n|", "| a |\n|--|\n"),
            ("| a |\n|--|\n| b", "| a |\n|--|\n| b"),
            ("* item", "* item"),
            ("a *b **c", "a *b **c***"),
            ("say `co", "say `co`"),
            ("say `", "say"),
            ("say ``a`b", "say ``a`b``"),
            ("say `*a*` and *b", "say `*a*` and *b*"),
            ("**see `x", "**see `x`**"),
            ("**see `", "**see**"),
            ("**`", ""),
            ("a \\*b", "a \\*b"),
            ("2 * 3", "2 * 3"),
            ("snake_case_na", "snake_case_na"),
            ("_it", "_it_"),
            ("~~gone", "~~gone~~"),
            ("about ~5", "about ~5"),
            ("**bold ", "**bold**"),
            ("***", "***"),
            ("```ru", "```ru"),
            ("    indented *co", "    indented *co"),
            ("    - nested **bo", "    - nested **bo**"),
            ("- a\n  ```c\n  *p = `", "- a\n  ```c\n  *p = `"),
            ("- a\n  ```c\n  x\n  ```\n  and *b", "- a\n  ```c\n  x\n  ```\n  and *b*"),
            ("> ```\n> -", "> ```\n> -"),
            ("**one**\n\nand **tw", "**one**\n\nand **tw**"),
            ("**open above\nand here", "**open above\nand here"),
            ("日本 **語", "日本 **語**"),
        ] {
            assert_eq!(close(line), shown, "{line:?}");
        }
    }
}
