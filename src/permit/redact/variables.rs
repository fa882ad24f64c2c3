//! Files of variables (`.env`, `.env.local`, `.envrc`): every value in them is masked, since its name, and not its form, makes a
//! secret of it.

use std::ops::Range;

use tiller_protocol::mask::{has_variables, reads_variables};

use crate::redact::pattern::Span;

/// In the mask.
const NAME: &str = "variable";

/// What the lines below a head are of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Such a file.
    File,
    /// A command that reads such a file, and prints other things, too.
    Output,
    /// Lines of such a file, with their numbers.
    Found,
}

/// Adds the values of the parts of a text that are of such files, by what programs print before them: heads of a diff and of
/// `head`, paths before the lines that were found, commands.
pub(crate) fn sections(text: &str, found: &mut Vec<Span>) {
    let (mut start, mut section) = (0, None);
    // A value in quotes may go on below.
    let mut open: Option<char> = None;
    // The line above is the old head of a diff of such a file.
    let mut old = false;
    for line in text.split_inclusive('\n') {
        let at = start;
        start += line.len();
        let here = line.trim_end();
        let was_old = std::mem::replace(&mut old, here.strip_prefix("--- ").is_some_and(has_variables));
        if old || was_old && here.starts_with("+++ ") {
            // Its lines are shown whatever it became.
            (section, open) = (Some(Section::File), None);
            continue;
        }
        if let Some(new) = head(here) {
            (section, open) = (new, None);
            continue;
        }
        if here.is_empty() && section == Some(Section::Found) {
            section = None;
        }
        // The head of a part of a diff shows a line above it.
        let above = here.strip_prefix("@@").and_then(|rest| Some(rest.find("@@")? + 4)).unwrap_or(0);
        let inner = here[above..].trim_start_matches(['@', '+', '-', ' ']);
        let from = at + here.len() - inner.len();
        let Some(from) = section.map(|_| from).or_else(|| found_line(here).map(|n| at + n)) else { continue };
        let to = at + here.len();
        if let Some(quote) = open.filter(|_| section.is_some()) {
            let end = text[from..to].find(quote).map(|n| from + n);
            found.push((from..end.unwrap_or(to), NAME));
            open = open.filter(|_| end.is_none());
            continue;
        }
        if let Some((value, quote)) = value(text, from..to, section == Some(Section::Output)) {
            open = quote;
            found.push((value, NAME));
        }
    }
    found.retain(|(span, _)| !span.is_empty());
}

/// What a line that is the head of something says of the lines below it.
#[expect(clippy::option_option, reason = "a head of other things ends a section, and no head does not")]
fn head(line: &str) -> Option<Option<Section>> {
    if let Some(command) = line.strip_prefix("$ ") {
        return Some(reads_variables(command).then_some(Section::Output));
    }
    let path = line
        .strip_prefix("==> ")
        .and_then(|rest| rest.strip_suffix(" <=="))
        .or_else(|| line.strip_prefix("+++ "))
        .or_else(|| {
            ["diff --git ", "diff --cc ", "diff --combined "].iter().find_map(|d| line.strip_prefix(d))
        })
        .or_else(|| line.strip_prefix("File: "));
    if let Some(path) = path {
        return Some(has_variables(path.trim_matches('"')).then_some(Section::File));
    }
    let plain = !line.contains([' ', '=', ':', '"', '<', '>', '(']);
    (plain && has_variables(line)).then_some(Some(Section::Found))
}

/// Where the text of a line begins that a search found in such a file: behind its path, and the number of the line.
fn found_line(line: &str) -> Option<usize> {
    let at = line.find(".env")?;
    if let Some(begin) = near_line(line) {
        return Some(begin);
    }
    let len = line[at..].find([':', '='])? + at;
    let path = &line[..len];
    if path.contains([' ', '"', '\'']) || line.as_bytes()[len] != b':' || !has_variables(path) {
        return None;
    }
    let digits = line[len + 1..].bytes().take_while(u8::is_ascii_digit).count();
    let numbered = digits > 0 && line[len + 1 + digits..].starts_with([':', '-']);
    Some(len + 1 + if numbered { digits + 1 } else { 0 })
}

/// The same of a line near one that was found: `.env-NAME=value`, `a/.env-12-NAME=value`.
fn near_line(line: &str) -> Option<usize> {
    let head = line[..line.find('=')?].trim_end_matches(' ');
    let name = head.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    let begin = name.strip_suffix("export ").unwrap_or(name).trim_end_matches(['#', ' ']);
    let path = begin.strip_suffix('-')?;
    let path = path.trim_end_matches(|c: char| c.is_ascii_digit());
    let path = path.strip_suffix('-').unwrap_or(begin);
    (name.len() < head.len() && !path.contains([' ', '"', '\'', ':']) && has_variables(path))
        .then_some(begin.len())
}

/// The value of a line `NAME=value`, with the quote that is not closed on it. `output`: `NAME: value` is something else.
fn value(text: &str, line: Range<usize>, output: bool) -> Option<(Range<usize>, Option<char>)> {
    let here = &text[line.clone()];
    let numbered = here.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ' ' | '\t'));
    let counted = here.starts_with(|c: char| c.is_ascii_digit());
    let numbered = numbered.strip_prefix([':', '-', '|']).filter(|_| counted).unwrap_or(numbered);
    let skipped = here.len() - numbered.len();
    // A line that is switched off holds a value all the same.
    let plain = numbered.trim_start_matches(['#', ' ']);
    let plain =
        ["export ", "set ", "declare -x "].iter().find_map(|s| plain.strip_prefix(s)).unwrap_or(plain);
    let skipped = skipped + numbered.len() - plain.len();
    let sign = plain.find(['=', ':']).filter(|sign| !output || plain.as_bytes()[*sign] == b'=')?;
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
        // As the search prints it, and as a person pastes it.
        let text = "a/.env\n3:HOST=db1\n4-WORD=x\n\nsrc/x.rs\n3:HOST=db1\n$ cat .env\nHOST=db1\nTests: 5\n$ ls\nA=b\n";
        let shown = Redactor::default().redact(text);
        let want = "a/.env\n3:HOST=[redacted variable]\n4-WORD=[redacted variable]\n\nsrc/x.rs\n3:HOST=db1\n$ cat .env\n\
                    HOST=[redacted variable]\nTests: 5\n$ ls\nA=b\n";
        assert_eq!(shown, want);
    }

    #[test]
    fn a_diff_that_deletes_or_renames_such_a_file_shows_no_value_of_it() {
        let lines = "@@ -1,3 +0,0 @@ OLD=x9y8\n-HOST=db1\n-WORD='two words'\n-#A=b7\n";
        let other = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@ A=b\n+HOST=db1\n";
        for head in [
            "diff --git a/.env b/.env\ndeleted file mode 100644\nindex 1..0\n--- a/.env\n+++ /dev/null\n",
            "--- a/.env.local\n+++ /dev/null\n",
            "diff --git a/.env b/plain.txt\nsimilarity index 60%\n--- a/.env\n+++ b/plain.txt\n",
            "diff --cc a/.env\n--- a/.env\n+++ b/.env\n",
            "--- x/.env\t2026-11-29 10:00:00 +0000\n+++ /dev/null\t1970-01-01 00:00:00 +0000\n",
        ] {
            let shown = Redactor::default().redact(&format!("{head}{lines}{other}")).into_owned();
            let (of_file, behind) = shown.split_at(shown.find("diff --git a/x").unwrap());
            for value in ["db1", "two", "b7", "x9y8"] {
                assert!(!of_file.contains(value), "{value}: {shown}");
            }
            assert_eq!(behind, other, "{shown}");
        }
    }

    #[test]
    fn lines_near_a_found_one_show_no_value() {
        let text = ".env-HOST=db1\n.env:PORT=5432\n.env-12-export A_B = 'x y'\na/.env.my-app-3-# OLD=x1\n--\n\
                    ./.env-4-Q=\"a b\"\nsrc/a-3-HOST=db1\n";
        let shown = Redactor::default().redact(text).into_owned();
        let masked = "[redacted variable]";
        let want = format!(
            ".env-HOST={masked}\n.env:PORT={masked}\n.env-12-export A_B = '{masked}'\na/.env.my-app-3-# OLD={masked}\n--\n\
             ./.env-4-Q=\"{masked}\"\nsrc/a-3-HOST=db1\n"
        );
        assert_eq!(shown, want);
    }
}
