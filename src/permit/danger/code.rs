//! Code that an interpreter is given in an argument or in its input. It is judged like a command: it must
//! be known word by word to be ordinary work on files of the workspace, or it asks.

use super::code_words::{is_module, words};
use super::location::Location;
use tiller_shell::{Part, Word, interpreter};

/// Why code in the words of `part` asks.
pub(super) fn code(part: &Part, location: Location<'_>) -> Option<String> {
    let base = part.base();
    let args = part.args();
    if matches!(base.as_str(), "sed" | "gsed" | "ssed") {
        return sed(args).then(|| format!("{base} runs another program"));
    }
    if !interpreter(&base) {
        return None;
    }
    let family = family(&base);
    // `bb '(code)'`
    let bare = args
        .iter()
        .find(|w| w.text.starts_with('(') && matches!(base.as_str(), "bb" | "clojure" | "clj" | "ecl"));
    if let Some(why) = bare.and_then(|w| strange(family, w, args, location)) {
        return Some(format!("the code given to {base} {why}"));
    }
    let mut texts: Vec<&Word> = given(family, args);
    let file = args.iter().any(|w| !w.text.starts_with('-') && !w.dynamic);
    if (texts.is_empty() && !file
        || args.iter().any(|w| w.text == "-" || w.text == "/dev/stdin" || w.text == "-i"))
        && let Some(stdin) = &part.stdin
    {
        texts.push(stdin);
    }
    if texts.is_empty() && !file && part.stdin.is_none() && part.piped_from.is_some() {
        return Some(format!("{base} runs its input as code"));
    }
    texts
        .iter()
        .find_map(|w| strange(family, w, args, location))
        .map(|why| format!("the code passed to {base} {why}"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Python,
    Perl,
    Ruby,
    Node,
    Php,
    Other,
}

fn family(base: &str) -> Family {
    match base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "python" | "pypy" | "ipython" => Family::Python,
        "perl" => Family::Perl,
        "ruby" | "irb" => Family::Ruby,
        "node" | "nodejs" | "deno" | "bun" | "ts-node" | "tsx" => Family::Node,
        "php" => Family::Php,
        _ => Family::Other,
    }
}

/// The arguments that are code.
fn given(family: Family, args: &[Word]) -> Vec<&Word> {
    let (letters, long): (&str, &[&str]) = match family {
        Family::Python => ("c", &[]),
        Family::Perl => ("eE", &[]),
        Family::Ruby => ("e", &[]),
        Family::Node => ("ep", &["--eval", "--print", "eval"]),
        Family::Php => ("rBER", &["--run", "--process-begin", "--process-code", "--process-end"]),
        Family::Other => ("ecx", &["--eval", "--execute", "-eval", "--expr", "eval", "-noshell", "--run"]),
    };
    let mut out = Vec::new();
    for (i, w) in args.iter().enumerate() {
        let t = w.text.as_str();
        if let Some(l) =
            long.iter().find(|l| t == **l || t.strip_prefix(**l).is_some_and(|r| r.starts_with('=')))
        {
            out.push(if t.len() > l.len() { w } else { args.get(i + 1).unwrap_or(w) });
        } else if t.starts_with('-')
            && !t.starts_with("--")
            && let Some(at) = t.find(|c| letters.contains(c))
            // The value of another letter: `-I/include`, `-Wdefault`, `-mmodule`, `-rjson`.
            && (!t[1..at].contains(valued(family)) || bundles(family, &t[1..at]))
        {
            out.push(if at + 1 < t.len() && !(family == Family::Perl && t[at + 1..].len() < 2) {
                w
            } else {
                args.get(i + 1).unwrap_or(w)
            });
        }
    }
    out
}

/// Letters with a value that may be joined to them.
fn valued(family: Family) -> &'static [char] {
    match family {
        Family::Python => &['W', 'X', 'm', 'Q'],
        Family::Perl => &['I', 'M', 'm', 'F', 'd', 'D', 'x', 'l', 'i'],
        Family::Ruby => &['I', 'r', 'C', 'E', 'F', 'x', 'i'],
        Family::Node => &['r', 'C'],
        Family::Php => &['d', 'c', 'f', 'z', 't'],
        Family::Other => &['I', 'l', 'r', 'm', 'p'],
    }
}

/// `-pie`, `-lne`, `-i.bake`: letters of perl and ruby that stand in front of the code's.
fn bundles(family: Family, before: &str) -> bool {
    matches!(family, Family::Perl | Family::Ruby)
        && before.chars().all(|c| "pnlaiwWstTu0123456789.".contains(c))
}

/// Why the code is not known to be ordinary.
fn strange(family: Family, word: &Word, args: &[Word], location: Location<'_>) -> Option<String> {
    if word.dynamic || word.splits {
        return Some("is known only at run time".into());
    }
    let mut text = word.text.as_str();
    // Joined to its letter.
    if args.iter().any(|w| std::ptr::eq(w, word)) && text.starts_with('-') && text.len() > 2 {
        text = text.split_once('=').map_or(&text[2..], |(_, v)| v);
    }
    if matches!(family, Family::Perl | Family::Ruby) && replaces(text) {
        return None;
    }
    let (bare, quoted) = split(text)?;
    if bare.contains('`') || text.contains("\\x") || text.contains("\\u") || text.contains("\\N") {
        return Some("runs a program or hides what it does".into());
    }
    if matches!(family, Family::Perl | Family::Ruby)
        && (bare.contains('%') || bare.contains("->") || bare.contains('|') || bare.contains('<'))
    {
        return Some("uses functions outside the known safe set".into());
    }
    for q in &quoted {
        if q.contains("#{") || q.contains("${") || q.contains("@{") {
            return Some("builds strings at run time".into());
        }
        let path = q.starts_with(['/', '~']) && q.len() > 1 && !q.contains(char::is_whitespace)
            || q.split('/').any(|c| c == "..");
        if path
            && !location.inside(&Word { tilde: q.starts_with('~'), ..Word::fixed(q.trim_start_matches('~')) })
        {
            return Some(format!("names a path outside the workspace: {q}"));
        }
    }
    let known: Vec<&str> = words(family).collect();
    let bound = bound(&bare);
    bare.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|w| !w.is_empty() && !w.starts_with(|c: char| c.is_ascii_digit()))
        .find(|w| !known.contains(w) && !bound.contains(w) && w.chars().count() > 1 || w.starts_with("__"))
        .map(|w| format!("uses '{w}'"))
}

/// `s/a/b/g`, `y/a/b/`, `tr`: replaces text and nothing else.
fn replaces(text: &str) -> bool {
    text.split(';').all(|s| {
        let s = s.trim();
        let Some(rest) = s.strip_prefix("s").or_else(|| s.strip_prefix("tr")).or_else(|| s.strip_prefix('y'))
        else {
            return s.is_empty() || s == "print";
        };
        let Some(mark) = rest.chars().next().filter(|c| "/|#,!:".contains(*c)) else { return false };
        let parts: Vec<&str> = rest[1..].split(mark).collect();
        let [_, to, flags] = parts.as_slice() else { return false };
        // `(?{ code })`, `@{[ code ]}`, and `e`, which runs what it puts in.
        flags.chars().all(|c| "gimsxr".contains(c))
            && !rest.contains("(?{")
            && !rest.contains("(??")
            && !to.contains(['@', '`'])
            && !to.contains("#{")
    })
}

/// The code without its quoted texts, and those texts. `None`: the quotes cannot be parsed.
fn split(code: &str) -> Option<(String, Vec<String>)> {
    let (mut bare, mut quoted) = (String::new(), Vec::new());
    let mut chars = code.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        match c {
            '"' | '\'' => {
                // `f"{code}"`: what is in braces is code.
                let formats = before == 'f' || before == 'F';
                let mut text = String::new();
                loop {
                    match chars.next() {
                        Some('\\') => {
                            text.push('\\');
                            text.extend(chars.next());
                        }
                        Some(x) if x == c => break,
                        Some(x) => text.push(x),
                        None => return Some((format!("{bare}`"), quoted)),
                    }
                }
                if formats {
                    bare.push(' ');
                    bare.extend(
                        text.split('{')
                            .skip(1)
                            .map(|t| format!(" {} ", t.split(['}', ':', '!']).next().unwrap_or_default())),
                    );
                }
                quoted.push(text);
                bare.push(' ');
            }
            '#' => {
                while chars.peek().is_some_and(|c| *c != '\n') {
                    chars.next();
                }
            }
            c => bare.push(c),
        }
        before = c;
    }
    Some((bare, quoted))
}

/// Names that the code gives to its own values.
fn bound(bare: &str) -> Vec<&str> {
    let name = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = Vec::new();
    for (at, _) in bare.match_indices('=') {
        let left = bare[..at].trim_end();
        if bare[at + 1..].starts_with(['=', '~']) || left.ends_with(['=', '!', '<', '>', ')', ']']) {
            continue;
        }
        let left = left.trim_end_matches(['+', '-', '*', '/', '|', '&', '.']).trim_end();
        let word = left.rsplit(|c: char| !name(c)).next().unwrap_or_default();
        // An attribute is another's.
        if !left[..left.len() - word.len()].ends_with('.') {
            out.push(word);
        }
    }
    let words: Vec<&str> = bare.split(|c: char| !name(c)).filter(|w| !w.is_empty()).collect();
    for pair in words.windows(2) {
        if matches!(pair[0], "for" | "as" | "let" | "const" | "var" | "my" | "lambda" | "foreach") {
            out.push(pair[1]);
        }
    }
    // A module under another name stays what it is.
    out.retain(|w| {
        !words.windows(2).any(|p| p[0] == "import" && p[1] == *w)
            && !words.windows(4).any(|p| p[2] == "as" && p[3] == *w && p[0] == "import" && !is_module(p[1]))
    });
    out
}

/// `e` of sed: alone, behind an address, or as a flag of `s`.
fn sed(args: &[Word]) -> bool {
    let scripts = args.iter().enumerate().filter(|(i, w)| {
        let t = w.text.as_str();
        let first = args.iter().position(|w| !w.text.starts_with('-')) == Some(*i);
        let after = i.checked_sub(1).is_some_and(|b| matches!(args[b].text.as_str(), "-e" | "--expression"));
        first || after || t.starts_with("--expression=") || t.starts_with("-e") && t.len() > 2
    });
    scripts.map(|(_, w)| w.text.trim_start_matches("--expression=").trim_start_matches("-e")).any(|script| {
        script.split([';', '\n', '{', '}']).any(|command| {
            let command = command.trim();
            let address = command.trim_start_matches(|c: char| c.is_ascii_digit() || ",$!+~ ".contains(c));
            let address = match address.strip_prefix('/') {
                Some(rest) => rest.split_once('/').map_or("", |(_, r)| r).trim_start_matches(['I', '!', ' ']),
                None => address,
            };
            if address == "e" || address.starts_with("e ") {
                return true;
            }
            let Some(rest) = address.strip_prefix('s') else { return false };
            let Some(mark) = rest.chars().next().filter(|c| !c.is_alphanumeric() && !c.is_whitespace())
            else {
                return false;
            };
            let mut parts = rest[mark.len_utf8()..].replace(&format!("\\{mark}"), "");
            let flags = parts.rfind(mark).map(|at| parts.split_off(at)).unwrap_or_default();
            parts.contains(mark)
                && flags
                    .trim_start_matches(mark)
                    .chars()
                    .take_while(|c| c.is_alphanumeric())
                    .any(|c| c == 'e')
        })
    })
}
