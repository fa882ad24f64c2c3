//! Matchers of Claude Code: names of tools, or a regular expression for them.

use regex::{Regex, RegexBuilder};
use tiller_tool::aliases;

/// The calls that a matcher is for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Matched {
    /// Rules for them; `None` among these: every call. Empty: none that Tiller has.
    pub(super) rules: Vec<Option<String>>,
    /// Names of tools that Tiller does not have.
    pub(super) unknown: Vec<String>,
    /// How it guards more than there, as the end of a sentence.
    pub(super) widened: Option<&'static str>,
}

/// Tools that do what a tool there does besides those of [`aliases`]: for guards, not for lists of what is allowed.
const MORE: &[(&str, &[&str])] = &[
    ("Agent", &["delegate_task", "delegate_async", "spawn_agent"]),
    ("Bash", &["process", "execute_code"]),
    ("BashOutput", &["process"]),
    ("Glob", &["list_dir"]),
    ("KillBash", &["process"]),
    ("KillShell", &["process"]),
    ("NotebookEdit", &["edit_file", "patch", "write_file"]),
    ("NotebookRead", &["read_file"]),
    ("Skill", &["skill_view"]),
    ("Task", &["delegate_async", "spawn_agent"]),
    ("WebFetch", &["web_extract", "browser_navigate"]),
    ("Write", &["patch"]),
];
/// Tools there that have no counterpart, so that nothing here needs their guard.
const NONE: &[&str] = &[
    "AskUserQuestion",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ListMcpResources",
    "ListMcpResourcesTool",
    "LSP",
    "ReadMcpResource",
    "ReadMcpResourceTool",
    "SlashCommand",
    "StructuredOutput",
    "TaskOutput",
    "ToolSearch",
];
/// In front of the server and the tool of an MCP call there.
const MCP: &str = "mcp__";

impl Matched {
    pub(super) fn read(matcher: &str) -> Self {
        let matcher = matcher.trim();
        if matches!(matcher, "" | "*" | ".*") {
            return Self::all(None);
        }
        let names = matcher.split(['|', ',']).map(str::trim);
        if names.clone().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))) {
            return Self::of_names(names.filter(|name| !name.is_empty()));
        }
        match RegexBuilder::new(matcher).case_insensitive(true).build() {
            Ok(pattern) => Self::of_pattern(matcher, &pattern),
            Err(_) => Self::all(Some("is no pattern that Tiller reads: the hook runs for every call")),
        }
    }

    fn all(widened: Option<&'static str>) -> Self {
        Self { rules: vec![None], unknown: Vec::new(), widened }
    }

    fn of_names<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        for name in names {
            let tools = tools_of(|known| known.eq_ignore_ascii_case(name));
            if name.starts_with(MCP) {
                all.rules.push(Some(mcp(name)));
            } else if !tools.is_empty() {
                all.rules.extend(tools.into_iter().map(|tool| Some(tool.to_owned())));
            } else {
                all.unknown.push(name.to_owned());
            }
        }
        let of_there = |name: &String| NONE.iter().any(|known| known.eq_ignore_ascii_case(name));
        if all.rules.is_empty() && !all.unknown.iter().all(of_there) {
            return Self::all(Some("names no tool that Tiller knows: the hook runs for every call"));
        }
        all.rules.sort();
        all.rules.dedup();
        all
    }

    fn of_pattern(matcher: &str, pattern: &Regex) -> Self {
        // A pattern that fits a made-up name fits every tool.
        if pattern.is_match("Qq7zZ") {
            return Self::all(None);
        }
        let mut all = Self::default();
        all.rules
            .extend(tools_of(|name| pattern.is_match(name)).into_iter().map(|tool| Some(tool.to_owned())));
        if pattern.is_match("mcp__qq7zz__qq7zz") {
            all.rules.push(Some("mcp:*:*".into()));
        } else if is_of_servers(matcher) {
            let parts = matcher.split('|').map(|part| part.trim_matches(['^', '$', '(', ')', ' ']));
            let (servers, others): (Vec<&str>, Vec<&str>) =
                parts.filter(|part| is_of_servers(part)).partition(|p| p.starts_with(MCP));
            all.rules.extend(servers.into_iter().map(|part| Some(mcp(part))));
            if !others.is_empty() {
                all.rules.push(Some("mcp:*:*".into()));
                all.widened = Some("is not read whole: the hook runs for every call of an MCP server");
            }
        }
        if all.rules.is_empty() && !NONE.iter().any(|name| pattern.is_match(name)) {
            return Self::all(Some("fits no tool that Tiller knows: the hook runs for every call"));
        }
        if all.rules.is_empty() {
            all.unknown.push(matcher.to_owned());
        }
        all.rules.sort();
        all.rules.dedup();
        all
    }
}

/// The tools of Tiller that do what the tools there with these names do.
fn tools_of(is_name: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let all = aliases::all().iter().chain(MORE);
    all.filter(|(name, _)| is_name(name)).flat_map(|(_, tools)| tools.iter().copied()).collect()
}

/// Returns true for a pattern of which a part may be about tools of servers: no other name has `__`.
fn is_of_servers(pattern: &str) -> bool {
    pattern.to_ascii_lowercase().contains("mcp") || pattern.contains("__")
}

/// The rule for `mcp__SERVER__TOOL`, `mcp__SERVER` or a pattern of one: what is no name stands for all.
fn mcp(text: &str) -> String {
    let rest = text.strip_prefix(MCP).unwrap_or_default();
    let (server, tool) = rest.split_once("__").unwrap_or((rest, ""));
    let name = |text: &str| {
        let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        if plain { text.to_owned() } else { "*".to_owned() }
    };
    let (server, tool) = (name(server), name(tool));
    format!("mcp:{server}:{}", if server == "*" { "*" } else { &tool })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of a matcher, and whether it says that it guards more.
    fn read(matcher: &str) -> (String, bool) {
        let Matched { rules, widened, .. } = Matched::read(matcher);
        let words: Vec<String> = rules.into_iter().map(|rule| rule.unwrap_or_else(|| "ALL".into())).collect();
        (words.join(" "), widened.is_some())
    }

    #[test]
    fn a_matcher_guards_at_least_what_it_guards_there() {
        let edits = "edit_file patch write_file";
        for (matcher, rules, more) in [
            ("", "ALL", false),
            ("*", "ALL", false),
            (".*", "ALL", false),
            (".+", "ALL", false),
            ("^.*$", "ALL", false),
            ("\\w+", "ALL", false),
            ("Bash", "execute_code process terminal", false),
            ("bash", "execute_code process terminal", false),
            ("^Bash$", "execute_code process terminal", false),
            ("Write", "patch write_file", false),
            ("Edit|Write", edits, false),
            ("Edit | Write", edits, false),
            ("Edit,Write", edits, false),
            ("Edit|MultiEdit|Write", edits, false),
            ("Write|Edit|MultiEdit|NotebookEdit", edits, false),
            ("^(Write|Edit)$", edits, false),
            // As there, a pattern without its ends fits `TodoWrite`, too.
            ("(Write|Edit)", "edit_file patch todo_write write_file", false),
            ("Edit|Write|Unheard", edits, false),
            ("(?i)write", "patch todo_write write_file", false),
            (".*Edit", edits, false),
            ("Notebook.*", "edit_file patch read_file write_file", false),
            ("Agent", "delegate_async delegate_task spawn_agent", false),
            ("Task", "delegate_async delegate_task spawn_agent", false),
            ("WebFetch|WebSearch", "browser_navigate web_extract web_fetch web_search", false),
            ("Web.*", "browser_navigate web_extract web_fetch web_search", false),
            ("Read|Grep|Glob|LS", "list_dir read_file search", false),
            ("mcp__github__create_issue", "mcp:github:create_issue", false),
            ("mcp__github", "mcp:github:*", false),
            ("mcp__github__.*", "mcp:github:*", false),
            ("^mcp__github__.*$", "mcp:github:*", false),
            ("mcp__.*", "mcp:*:*", false),
            ("mcp__.*__write.*", "mcp:*:*", false),
            ("mcp__github__.*|Write", "mcp:github:* patch todo_write write_file", false),
            ("mcp__my-server__(get|put)_.*", "mcp:my-server:*", false),
            ("(my)?mcp__x__.*", "mcp:*:*", true),
            ("Write|github__.*", "mcp:*:* patch todo_write write_file", true),
            ("ExitPlanMode", "", false),
            ("Unheard", "ALL", true),
            ("Unheard.*", "ALL", true),
            ("^(?!Bash).*$", "ALL", true),
            ("(unclosed", "ALL", true),
        ] {
            assert_eq!(read(matcher), (rules.to_owned(), more), "{matcher}");
        }
    }
}
