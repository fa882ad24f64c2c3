//! Rules that no call can match, as far as their words show that: they are errors, since a rule that does nothing protects
//! nothing.

use tiller_protocol::RuleArgument;

use crate::rules::Rule;

/// Why a pattern in quotation marks matches nothing.
const QUOTED: &str = "the quotation marks are part of the pattern: leave them out";

impl Rule {
    /// Why no call can match it.
    pub(super) fn matches_nothing(&self) -> Option<&'static str> {
        if self.foreign {
            let tool = self.tool.text();
            let bare = !self.strict() && !self.tool.is_wild() && !tool.contains(':');
            return bare.then_some("name the program too, as in program:claude:WebSearch");
        }
        let argument = self.argument.as_ref()?;
        let text = argument.text.text();
        match self.tools.get(self.tool.text())?.rule {
            kind if kind.is_path() => path(text, argument.path.is_some()),
            // A name with blanks, as a rule for it is written by itself.
            RuleArgument::Command if !self.strict() && text.starts_with('\'') => None,
            RuleArgument::Command if quoted(text) => Some(QUOTED),
            RuleArgument::Address => address(text),
            _ => None,
        }
    }
}

/// Returns true if another rule follows in the same text, as in `tool(a), tool(b)`.
pub(super) fn has_another(argument: &str) -> bool {
    argument.match_indices(')').any(|(at, _)| {
        let rest = argument[at + 1..].trim_start();
        let rest = rest.strip_prefix([',', ';']).map(str::trim_start).and_then(|rest| rest.split_once('('));
        rest.is_some_and(|(tool, _)| {
            !tool.is_empty() && tool.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    })
}

/// Returns true if the text stands in quotation marks as a whole.
fn quoted(text: &str) -> bool {
    let within = |mark: char| text.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
    ['"', '\'', '`'].iter().any(|mark| within(*mark).is_some_and(|rest| !rest.contains(*mark)))
}

fn address(text: &str) -> Option<&'static str> {
    const ALONE: &str = "`domain:` takes the name of a host alone, such as domain:example.org";
    let Some(host) = text.strip_prefix("domain:") else {
        let whole = text.contains("://") || text.starts_with(['*', '?', '<']) || text.starts_with("http");
        return (!whole).then_some("write domain:HOST, or an address that begins with https://");
    };
    let odd = host.is_empty() || host.contains(['/', ':', ' ']) && !host.starts_with('[');
    odd.then_some(ALONE)
}

fn path(text: &str, is_pattern: bool) -> Option<&'static str> {
    let names = || text.trim_matches('/').split('/');
    // `src\secret` is `srcsecret`; before a sign, `\` takes it as it is.
    let separates = |(at, _): (usize, &str)| {
        let next = text[at + 1..].chars().next();
        next.is_none_or(char::is_alphanumeric) || text[at + 1..].starts_with("**")
    };
    if !is_pattern {
        Some("it is no pattern of paths, or has too many `**`; `\\[` stands for a bracket, `\\{` for a brace")
    } else if text.starts_with("domain:") {
        Some("a path has no domain")
    } else if quoted(text) {
        Some(QUOTED)
    } else if text.starts_with('!') {
        Some("`!` is part of the name: what is excepted needs a rule of its own")
    } else if text.starts_with('$') || text.starts_with('%') {
        Some("variables are not read: write ~/ for the home folder, or the whole path")
    } else if text.starts_with("file:") {
        Some("write the path without `file:`")
    } else if text.match_indices('\\').any(separates) || text.starts_with(".\\") {
        Some("write / between folders: `\\` takes the next character as it is")
    } else if text.starts_with('~') && text.find('/').is_some_and(|at| at > 1) {
        Some("only `~/`, the home folder, is read at the beginning")
    } else if names().any(|name| name == "..") {
        Some("paths are compared without `..`: write the folder that is meant")
    } else if names().skip(1).any(|name| name == "." || name.is_empty()) {
        Some("paths are compared without empty names and `.`")
    } else {
        None
    }
}
