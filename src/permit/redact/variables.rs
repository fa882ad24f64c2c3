//! Files of variables (`.env`, `.env.local`, `.envrc`): every value in them is masked, since its name, and not its form, makes a
//! secret of it.

use std::ops::Range;

use crate::redact::Span;

/// In the mask.
const NAME: &str = "variable";

/// Whether a path is that of a file of variables.
pub(crate) fn is_file(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.get(..4).is_some_and(|n| n.eq_ignore_ascii_case(".env"))
}

/// Adds the values of the parts of a text that are of such files, by what programs print before them: heads of a diff and of
/// `head`, paths before the lines that were found.
pub(crate) fn sections(text: &str, found: &mut Vec<Span>) {
    let (mut start, mut inside) = (0, false);
    // A value in quotes may go on below.
    let mut open: Option<char> = None;
    for line in text.split_inclusive('\n') {
        let at = start;
        start += line.len();
        let here = line.trim_end();
        if let Some(path) = head(here) {
            inside = is_file(path);
            open = None;
            continue;
        }
        let place = if inside {
            Some(at + here.len() - here.trim_start_matches(['+', '-', ' ']).len())
        } else {
            found_line(here).map(|n| at + n)
        };
        let Some(from) = place else { continue };
        let to = at + here.len();
        if let Some(quote) = open.filter(|_| inside) {
            let end = text[at..to].find(quote).map(|n| at + n);
            found.push((from..end.unwrap_or(to), NAME));
            open = open.filter(|_| end.is_none());
            continue;
        }
        if let Some((value, quote)) = value(text, from..to) {
            open = quote;
            found.push((value, NAME));
        }
    }
}

/// The path of a file whose text follows.
fn head(line: &str) -> Option<&str> {
    let path = line
        .strip_prefix("==> ")
        .and_then(|rest| rest.strip_suffix(" <=="))
        .or_else(|| line.strip_prefix("+++ "))
        .or_else(|| line.strip_prefix("diff --git "))
        .or_else(|| line.strip_prefix("File: "))?;
    Some(path.trim_matches('"'))
}

/// Where the text of a line begins that a search found in such a file: behind its path, and the number of the line.
fn found_line(line: &str) -> Option<usize> {
    let at = line.find(".env")?;
    let len = line[at..].find([':', '='])? + at;
    let path = &line[..len];
    if path.contains([' ', '"', '\'']) || line.as_bytes()[len] != b':' || !is_file(path) {
        return None;
    }
    let digits = line[len + 1..].bytes().take_while(u8::is_ascii_digit).count();
    let numbered = digits > 0 && line[len + 1 + digits..].starts_with([':', '-']);
    Some(len + 1 + if numbered { digits + 1 } else { 0 })
}

/// The value of a line `NAME=value`, with the quote that is not closed on it.
fn value(text: &str, line: Range<usize>) -> Option<(Range<usize>, Option<char>)> {
    let here = &text[line.clone()];
    let numbered = here.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ' ' | '\t'));
    let skipped = here.len() - numbered.len();
    // A line that is switched off holds a value all the same.
    let plain = numbered.trim_start_matches(['#', ' ']);
    let plain = plain.strip_prefix("export ").or_else(|| plain.strip_prefix("set ")).unwrap_or(plain);
    let skipped = skipped + numbered.len() - plain.len();
    let sign = plain.find(['=', ':'])?;
    let name = plain[..sign].trim_end();
    let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || !name.chars().all(of_name) {
        return None;
    }
    let rest = &plain[sign + 1..];
    let blank = rest.len() - rest.trim_start().len();
    let mut from = line.start + skipped + sign + 1 + blank;
    let mut to = line.end;
    let mut open = None;
    if let Some(quote) = text[from..to].chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) {
        from += 1;
        match text[from..to].rfind(quote) {
            Some(end) => to = from + end,
            None => open = Some(quote),
        }
    }
    (from < to && !text[from..to].starts_with("[redacted ")).then_some((from..to, open))
}

#[cfg(test)]
mod tests {
    use crate::redact::Redactor;

    #[test]
    fn every_value_of_a_file_of_variables_is_masked_and_no_name() {
        let file = "# about\nHOST=db\nexport PORT = 5432\nWORD='two words' # note\n#OLD=x1\nKEY=\"a\nb\"\nEMPTY=\n\nPLAIN: yes\n";
        for text in [
            format!("==> a/.env.local <==\n{file}"),
            format!(
                "diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n@@ -0,0 +1 @@\n{}",
                file.replace('\n', "\n+")
            ),
        ] {
            let shown = Redactor::default().redact(&text).into_owned();
            for value in ["db\n", "5432", "two", "x1", "\"a", "b\"", "yes"] {
                assert!(!shown.contains(value), "{value}: {shown}");
            }
            for name in
                ["HOST=[redacted variable]", "PORT = [", "WORD='[", "OLD=[", "KEY=\"[", "EMPTY=", "PLAIN: ["]
            {
                assert!(shown.contains(name), "{name}: {shown}");
            }
            assert_eq!(Redactor::default().redact(&shown), shown);
        }
        let text =
            "./a/.env:3:HOST=db1\n.env.test:WORD=two words\nsrc/x.rs:3:HOST=db1\n==> x <==\nHOST=db1\n";
        let shown = Redactor::default().redact(text);
        let want = "./a/.env:3:HOST=[redacted variable]\n.env.test:WORD=[redacted variable]\nsrc/x.rs:3:HOST=db1\n==> x <==\nHOST=db1\n";
        assert_eq!(shown, want);
    }
}
