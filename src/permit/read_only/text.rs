//! Programs whose first operand is a small program of its own: sed, awk, jq. What is not read for certain asks.

use std::path::PathBuf;

use super::{glob, inside};
use crate::paths::Roots;
use tiller_shell::Word;

/// Files after the text.
fn files(words: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    words
        .iter()
        .all(|w| !w.text.starts_with('-') && (inside(w, roots, folders) || glob::inside(w, roots, folders)))
}

/// `sed -n '10,20p' file`, `sed 's/a/b/g' file`: prints, and changes only what it prints.
pub(super) fn sed(args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    let fine = |w: &Word| w.plain() && !w.text.starts_with('-') && sed_script(&w.text);
    let mut rest = args;
    let mut scripts = 0;
    loop {
        match rest {
            [o, more @ ..]
                if o.plain() && matches!(o.text.as_str(), "-n" | "-E" | "-r" | "-nE" | "-nr" | "-En") =>
            {
                rest = more;
            }
            [e, script, more @ ..]
                if e.plain() && matches!(e.text.as_str(), "-e" | "-ne" | "-Ee") && fine(script) =>
            {
                scripts += 1;
                rest = more;
            }
            _ => break,
        }
    }
    if scripts > 0 {
        return files(rest, roots, folders);
    }
    let Some((script, rest)) = rest.split_first() else { return false };
    fine(script) && files(rest, roots, folders)
}

/// `date +%F`, `date -u -d yesterday`: any other operand sets the clock, and `-s`, `-f` and `-r` set it or read files.
pub(super) fn date(args: &[Word]) -> bool {
    let mut rest = args;
    loop {
        match rest {
            [] => return true,
            [d, value, more @ ..] if d.plain() && d.text == "-d" && !value.splits && !value.glob => {
                rest = more
            }
            [word, more @ ..] if word.plain() => {
                let t = word.text.as_str();
                let known = matches!(t, "-u" | "--utc" | "-R" | "-I" | "--help" | "--version")
                    || ["+", "-I", "--iso-8601", "--rfc-3339=", "--date="].iter().any(|o| t.starts_with(o));
                if !known {
                    return false;
                }
                rest = more;
            }
            _ => return false,
        }
    }
}

/// Addresses with `p`, `d`, `q`, `=`, or `s///` with harmless flags, separated by `;` or line ends.
fn sed_script(text: &str) -> bool {
    let mut rest = text.trim();
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let Some(after) = sed_address(rest) else { return false };
        let after = after.trim_start_matches(' ').trim_start_matches('!').trim_start_matches(' ');
        let mut chars = after.chars();
        let after = match chars.next() {
            Some('p' | 'd' | 'q' | '=') => chars.as_str(),
            Some('s') => match substitution(chars.as_str()) {
                Some(after) => after,
                None => return false,
            },
            _ => return false,
        };
        let next = after.trim_start_matches(' ');
        rest = match next.strip_prefix([';', '\n']) {
            Some(rest) => rest.trim_start_matches([' ', ';', '\n']),
            None if next.is_empty() => next,
            None => return false,
        };
    }
    true
}

/// What follows zero, one or two addresses.
fn sed_address(text: &str) -> Option<&str> {
    let one = |text: &'_ str| -> Option<usize> {
        let first = text.chars().next()?;
        if first == '$' {
            return Some(1);
        }
        if first == '/' {
            let len = pattern(&text[1..], '/')?;
            return Some(1 + len + 1);
        }
        let digits = text.chars().take_while(char::is_ascii_digit).count();
        (digits > 0).then_some(digits)
    };
    let Some(len) = one(text) else {
        // A `/` that does not end is no address and no command either.
        return (!text.starts_with('/')).then_some(text);
    };
    let rest = &text[len..];
    let Some(second) = rest.strip_prefix([',', '~']) else { return Some(rest) };
    let second = second.strip_prefix('+').unwrap_or(second);
    Some(&second[one(second)?..])
}

/// Bytes up to the delimiter; no line end, and no bracket in which a delimiter would stand for itself.
fn pattern(text: &str, delimiter: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            '[' if !escaped
                && text[at..].contains(']')
                && text[at..].split(']').next()?.contains(delimiter) =>
            {
                return None;
            }
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == delimiter => return Some(at),
            _ => {}
        }
    }
    None
}

/// `/a/b/g` after the `s`: what follows its flags, none of which writes or runs.
fn substitution(text: &str) -> Option<&str> {
    let delimiter = text.chars().next().filter(|c| matches!(c, '/' | '|' | ',' | '#' | ':' | '@' | '%'))?;
    let from = &text[1..];
    let to = &from[pattern(from, delimiter)? + 1..];
    let flags = &to[pattern(to, delimiter)? + 1..];
    Some(flags.trim_start_matches(|c: char| matches!(c, 'g' | 'p' | 'i' | 'I') || c.is_ascii_digit()))
}

/// `awk '{print $1}' file`: a text without anything by which awk runs, writes or opens another file.
pub(super) fn awk(args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    let mut rest = args;
    loop {
        match rest {
            [f, value, more @ ..] if f.plain() && f.text == "-F" && value.plain() => rest = more,
            [v, value, more @ ..]
                if v.plain() && v.text == "-v" && value.plain() && awk_variable(&value.text) =>
            {
                rest = more;
            }
            [f, more @ ..] if f.plain() && f.text.starts_with("-F") && f.text.len() > 2 => rest = more,
            _ => break,
        }
    }
    let Some((program, operands)) = rest.split_first() else { return false };
    program.plain()
        && !program.text.starts_with('-')
        && awk_program(&program.text)
        // An operand with `=` sets a variable, which is harmless for a name that awk gives no meaning.
        && operands.iter().all(|w| !w.text.contains('=') || w.plain() && awk_variable(&w.text))
        && files(operands, roots, folders)
}

fn awk_variable(text: &str) -> bool {
    let name = text.split('=').next().unwrap_or_default();
    text.contains('=') && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

fn awk_program(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "system",
        "getline",
        "close",
        "ARGV",
        "ARGC",
        "ENVIRON",
        "PROCINFO",
        "SYMTAB",
        "FUNCTAB",
        "extension",
        "include",
        "load",
    ];
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    // `>=` compares; any other `>` may write, and a `|` may run.
    let bare = without_comparisons(text).replace("||", "");
    !bare.contains(['>', '|', '@', '`'])
        // A line that goes on may cut a word in two.
        && !bare.contains("\\\n") && words.into_iter().all(|w| !WORDS.contains(&w))
}

/// The text without each `>` that surely compares: in a pattern, in parentheses, or as `>=`. Where quotes, braces and
/// parentheses may stand for themselves (in an expression, a comment, behind a backslash), only the last one is sure.
fn without_comparisons(text: &str) -> String {
    if text.contains(['/', '\\', '#']) {
        return text.replace(">=", "");
    }
    let (mut braces, mut parens, mut quoted) = (0_u32, 0_u32, false);
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' => braces += 1,
            '}' => {
                braces = braces.saturating_sub(1);
                parens = 0;
            }
            '(' => parens += 1,
            ')' => parens = parens.saturating_sub(1),
            // `>>` is never a comparison.
            '>' if chars.peek() != Some(&'>')
                && !out.ends_with('>')
                && (chars.peek() == Some(&'=') || braces == 0 || parens > 0) =>
            {
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// `jq '.a[]' file`: a filter that reads nothing but its input.
pub(super) fn jq(args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    const LONG: &[&str] = &[
        "--raw-output",
        "--compact-output",
        "--slurp",
        "--sort-keys",
        "--exit-status",
        "--null-input",
        "--raw-input",
        "--tab",
        "--join-output",
        "--monochrome-output",
        "--color-output",
        "--ascii-output",
    ];
    let mut rest = args;
    let mut operands: Vec<Word> = Vec::new();
    while let Some((word, more)) = rest.split_first() {
        rest = more;
        let t = word.text.as_str();
        if !t.starts_with('-') || t == "-" {
            operands.push(word.clone());
            continue;
        }
        if !word.plain() {
            return false;
        }
        let values = match t {
            "--arg" | "--argjson" => 2,
            "--indent" => 1,
            _ if LONG.contains(&t) => 0,
            _ if !t.starts_with("--") && t[1..].chars().all(|c| "rcsSMCajenR".contains(c)) => 0,
            _ => return false,
        };
        if rest.len() < values || rest[..values].iter().any(|w| !w.plain()) {
            return false;
        }
        rest = &rest[values..];
    }
    let Some((filter, operands)) = operands.split_first() else { return false };
    filter.plain() && jq_filter(&filter.text) && files(operands, roots, folders)
}

fn jq_filter(text: &str) -> bool {
    const WORDS: &[&str] =
        &["env", "ENV", "import", "include", "modulemeta", "get_search_list", "input_filename"];
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).all(|w| !WORDS.contains(&w))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_print_are_told_from_those_that_write_or_run() {
        for good in [
            "10,20p",
            "$p",
            "5q",
            "/fn main/p",
            "/a/,/b/p",
            "s/a/b/",
            "s|/usr|/opt|g",
            "1d;$d",
            "/^$/d",
            "s/[0-9]*//g",
            "2,+3p",
            "1~2p",
            "/a/!d",
            "s/x/y/2p",
            "=",
            "1p\n3p",
        ] {
            assert!(sed_script(good), "{good}");
        }
        for bad in [
            "",
            "w out",
            "s/a/b/w out",
            "s/a/b/e",
            "e",
            "1e id",
            "r /etc/passwd",
            "R x",
            "W x",
            "i\\x",
            "a x",
            "{p;w out\n}",
            "s/a/b/gw x",
            "s,a,b,;e",
            "y/a/b/",
            "1!e id",
            "/a/w/tmp/x",
            "p;w x",
            "s/[/]/x/e",
            "s/[/]/e/e",
            "/[/]/w x/p",
            "s/a\n/b/",
            "bx",
            "l;w",
            "F",
            "c x",
            "D",
            "N;e",
            "1,/x/e",
            "s/a/b/M",
            "v",
        ] {
            assert!(!sed_script(bad), "{bad}");
        }
        for good in
            ["{print $1}", "NR==1", "{s+=$1} END{print s}", "$3 >= 2 || NR < 5", "length($0)", "/x/{n++}"]
        {
            assert!(awk_program(good), "{good}");
        }
        for bad in [
            "{print > \"o\"}",
            "{print >> \"o\"}",
            "{print | \"sh\"}",
            "BEGIN{system(\"x\")}",
            "{getline}",
            "BEGIN{ARGV[1]=\"/etc/passwd\";ARGC=2}",
            "@load \"x\"",
            "{f=\"sys\"; @f(\"x\")}",
            "{print |& \"x\"}",
            "{print >=\"x\" > \"y\"}",
            "{print ENVIRON[\"A\"]}",
            "BEGIN{SYMTAB[\"AR\" \"GC\"]=2}",
        ] {
            assert!(!awk_program(bad), "{bad}");
        }
        for good in [".", ".a[].b", "map(select(.x > 1))", "keys", ".environment", "to_entries"] {
            assert!(jq_filter(good), "{good}");
        }
        for bad in ["env", "$ENV.A", "import \"x\" as x; .", "include \"a\"; .", "input_filename"] {
            assert!(!jq_filter(bad), "{bad}");
        }
    }
}
