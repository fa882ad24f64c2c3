//! Matchers in the text of an entry of a memory file.
//!
//! ```text
//! - Never push to main by hand. [when: terminal "git push*"] [never: terminal "git push* main*"]
//! - Generated files are not edited. [never: edit src/gen/**]
//! ```
//!
//! A matcher becomes patterns of permission rules: what they match is decided in one place (`permit`).

use tiller_protocol::memory::{NEVER, WHEN};
use tiller_protocol::{RuleArgument, Taint, ToolCatalog};

/// Longest text of a rule, in bytes. It is shown whole with a call.
pub const SHOWN: usize = 1_400;
/// Most matchers of an entry, and patterns of a matcher.
const MATCHERS: usize = 8;
/// Bytes of a matcher's argument.
const ARGUMENT: usize = 200;
/// Marks that an argument may stand between; editors replace straight ones by others.
const QUOTES: [(char, char); 5] =
    [('"', '"'), ('\'', '\''), ('`', '`'), ('\u{201c}', '\u{201d}'), ('\u{2018}', '\u{2019}')];

/// An entry with matchers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionRule {
    /// The text without its matchers.
    pub text: String,
    /// Calls that it is shown with, each as a pattern of a permission rule.
    pub when: Vec<String>,
    /// Calls that it forbids.
    pub never: Vec<String>,
}

/// The rule in the text of an entry. `None`: it has no matcher.
///
/// # Errors
/// What is wrong with a matcher.
pub fn parse(entry: &str, tools: &ToolCatalog) -> Result<Option<ActionRule>, String> {
    let mut rule = ActionRule::default();
    // An entry may have several lines.
    let entry = entry.replace('\n', " ");
    let (mut text, mut rest, mut found) = (String::new(), entry.as_str(), 0);
    while let Some((at, word)) = next(rest) {
        text.push_str(&rest[..at]);
        let inner = &rest[at + word.len()..];
        let end = close(inner).ok_or_else(|| format!("'{word}' has no ']'"))?;
        found += 1;
        if found > MATCHERS {
            return Err(format!("more than {MATCHERS} matchers"));
        }
        let patterns = patterns(inner[..end].trim(), tools)?;
        if word == NEVER {
            rule.never.extend(patterns);
        } else {
            rule.when.extend(patterns);
        }
        rest = &inner[end + 1..];
    }
    text.push_str(rest);
    if let Some(written) = nearly(&text) {
        return Err(format!(
            "write '{WHEN}' or '{NEVER}' in small letters and without a blank, not '{written}'"
        ));
    }
    if found == 0 {
        return Ok(None);
    }
    rule.text = one_line(&text);
    if rule.text.is_empty() {
        return Err("it says nothing besides its matcher".into());
    }
    if rule.text.len() > SHOWN {
        return Err(format!("its text is longer than {SHOWN} bytes"));
    }
    Ok(Some(rule))
}

/// The text of an entry without its matchers, by which its counts are stored; `None`: it has no matcher that is closed.
pub fn without_matchers(entry: &str) -> Option<String> {
    let entry = entry.replace('\n', " ");
    let (mut text, mut rest) = (String::new(), entry.as_str());
    while let Some((at, word)) = next(rest) {
        text.push_str(&rest[..at]);
        let inner = &rest[at + word.len()..];
        rest = &inner[close(inner)? + 1..];
    }
    if rest.len() == entry.len() {
        return None;
    }
    text.push_str(rest);
    Some(one_line(&text))
}

/// Whether an entry is marked as one that text of others had a part in. Such an entry has no power over calls.
pub(crate) fn of_others(entry: &str) -> bool {
    Taint::marked_in(entry).is_some()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn next(text: &str) -> Option<(usize, &'static str)> {
    let all = [WHEN, NEVER].map(|word| Some((text.find(word)?, word)));
    all.into_iter().flatten().min_by_key(|(at, _)| *at)
}

/// The beginning of what is a matcher but for capitals or blanks: it would have no power without a word about it.
fn nearly(text: &str) -> Option<&str> {
    text.match_indices('[').find_map(|(at, _)| {
        let end = at + 1 + text[at + 1..].find(|c: char| !c.is_ascii_alphabetic() && c != ' ')?;
        let word = text[at + 1..end].trim();
        let is_matcher = ["when", "never"].iter().any(|own| word.eq_ignore_ascii_case(own));
        (is_matcher && text[end..].starts_with(':')).then(|| &text[at..=end])
    })
}

/// A text without the quotes that it stands between.
fn unquoted(text: &str) -> &str {
    let between = |(open, close): &(char, char)| text.strip_prefix(*open)?.strip_suffix(*close);
    QUOTES.iter().find_map(between).unwrap_or(text)
}

/// The bracket that closes a matcher; one in quotes does not.
fn close(text: &str) -> Option<usize> {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ']' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// The tools of MCP servers in the form of permission rules, `mcp:SERVER:TOOL`: written so, or by the names that models are sent.
/// `None`: it is another tool.
fn of_mcp(word: &str) -> Option<String> {
    let (server, tool) = match (word.strip_prefix("mcp:"), word.strip_prefix("mcp__")) {
        (Some(rest), _) => rest.split_once(':').unwrap_or((rest, "*")),
        (_, Some(rest)) => rest.split_once("__").unwrap_or((rest, "*")),
        _ => return None,
    };
    let whole = !server.is_empty() && !tool.is_empty() && !word.contains(['(', ')']);
    whole.then(|| format!("mcp:{server}:{tool}"))
}

/// Whether a name with wildcards may be that of one of these tools.
fn may_be_of(word: &str, tools: &ToolCatalog) -> bool {
    let head = word.split(['*', '?']).next().unwrap_or_default();
    word.contains('*') && !word.contains(['(', ')']) && tools.names().any(|name| name.starts_with(head))
}

/// `terminal "git push*"`, `edit src/**`, `read`, or the name of a tool.
fn patterns(matcher: &str, tools: &ToolCatalog) -> Result<Vec<String>, String> {
    let (word, argument) = matcher.split_once(char::is_whitespace).unwrap_or((matcher, ""));
    let argument = unquoted(argument.trim());
    if word.is_empty() {
        return Err("a matcher names a tool, or edit, read, run, web".into());
    }
    if argument.len() > ARGUMENT {
        return Err(format!("the argument of '{word}' is too long"));
    }
    if !tiller_shell::invisibles(argument).is_empty() {
        return Err(format!("the argument of '{word}' contains an invisible character"));
    }
    let with = |tool: &str| if argument.is_empty() { tool.to_owned() } else { format!("{tool}({argument})") };
    let of = |wanted: &dyn Fn(RuleArgument) -> bool| -> Vec<String> {
        tools.iter().filter(|t| wanted(t.rule)).map(|t| with(t.name)).collect()
    };
    let found = match (word, of_mcp(word)) {
        (_, Some(tool)) => vec![with(&tool)],
        ("edit" | "write", _) => of(&RuleArgument::changes_path),
        ("read", _) => of(&|r| r == RuleArgument::ReadPath),
        ("run" | "command", _) => of(&|r| r == RuleArgument::Command),
        ("web", _) => of(&|r| r == RuleArgument::Address),
        (tool, _) if tools.contains(tool) || may_be_of(tool, tools) => vec![with(tool)],
        _ => Vec::new(),
    };
    if found.is_empty() {
        return Err(format!("there is no tool '{word}'; a matcher names a tool, or edit, read, run, web"));
    }
    Ok(found)
}
