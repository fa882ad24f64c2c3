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
pub(super) const MORE: &[(&str, &[&str])] = &[
    ("Agent", &["delegate_task", "delegate_async", "spawn_agent"]),
    ("AskUserQuestion", &["clarify"]),
    ("Bash", &["process", "execute_code"]),
    ("BashOutput", &["process"]),
    ("Glob", &["list_dir"]),
    ("KillBash", &["process"]),
    ("KillShell", &["process"]),
    ("NotebookEdit", &["edit_file", "patch", "write_file"]),
    ("NotebookRead", &["read_file"]),
    ("SendMessage", &["send_to_agent"]),
    ("Skill", &["skill_view"]),
    ("Task", &["delegate_async", "spawn_agent"]),
    ("TaskCreate", &["todo_write"]),
    ("TaskGet", &["todo_read"]),
    ("TaskList", &["todo_read"]),
    ("TaskOutput", &["process", "agent_result"]),
    ("TaskStop", &["process", "cancel_agent"]),
    ("TaskUpdate", &["todo_write"]),
    ("WebFetch", &["web_extract", "browser_navigate"]),
    ("Write", &["patch", "make_document", "render_diagram"]),
];
/// Tools there that have no counterpart, so that nothing here needs their guard.
const NONE: &[&str] = &[
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
        let known = !all.rules.is_empty() || NONE.iter().any(|name| pattern.is_match(name));
        let servers = Servers::read(matcher);
        if !known && !servers.named && !pattern.is_match("mcp__qq7zz__qq7zz") {
            return Self::all(Some("fits no tool that Tiller knows: the hook runs for every call"));
        }
        if servers.rules.iter().any(|rule| rule == EACH) {
            all.rules.push(Some(EACH.to_owned()));
            all.widened =
                servers.widened.then_some("is not read whole: the hook runs for every call of an MCP server");
        } else {
            all.rules.extend(servers.rules.into_iter().map(Some));
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

/// The rule for every tool of every server.
const EACH: &str = "mcp:*:*";

/// The calls of servers that a pattern may fit.
#[derive(Debug, Default)]
struct Servers {
    rules: Vec<String>,
    /// A part names them.
    named: bool,
    /// A part is not understood, and stands for all of them.
    widened: bool,
}

impl Servers {
    fn read(pattern: &str) -> Self {
        let mut all = Self::default();
        for (begins, text) in parts(pattern) {
            let (begins, text) = text.strip_prefix('^').map_or((begins, text), |text| (true, text));
            let (ends, text) = text.strip_suffix('$').map_or((false, text), |text| (true, text));
            let lead = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
            // The character before one of these is optional.
            let optional = text[lead..].starts_with(['?', '*', '{']);
            let lead = &text[..lead.saturating_sub(usize::from(optional))];
            let core = text.trim_end_matches(".*").trim_end_matches(".+");
            let core = core.trim_start_matches(".*").trim_start_matches(".+").trim_matches('_');
            all.named |= text.contains("mcp");
            if text.starts_with(MCP) {
                all.rules.push(begun(text, ends));
            } else if begins && !lead.is_empty() && !MCP.starts_with(lead) && !lead.starts_with(MCP) {
                // No tool of a server begins so.
            } else if !core.is_empty()
                && core.chars().all(is_of_name)
                && !core.contains("__")
                && !"mcp".contains(core)
            {
                all.rules.push(format!("mcp:*{core}*"));
            } else {
                all.widened |= core != "mcp";
                all.rules.push(EACH.to_owned());
            }
        }
        all
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-".contains(c)
}

/// The parts of a pattern of which one must fit, each with whether it must fit from the first character on.
fn parts(pattern: &str) -> Vec<(bool, &str)> {
    let begins = pattern.starts_with('^');
    let bare = pattern.strip_prefix('^').unwrap_or(pattern);
    let bare = bare.strip_suffix('$').unwrap_or(bare);
    let inner = bare.strip_prefix('(').map(|text| text.strip_prefix("?:").unwrap_or(text));
    match inner.and_then(|text| text.strip_suffix(')')).filter(|text| split(text).1) {
        Some(inner) => split(inner).0.into_iter().map(|part| (begins, part)).collect(),
        None => split(pattern).0.into_iter().map(|part| (false, part)).collect(),
    }
}

/// The text at each `|` outside of groups, and whether its groups are whole.
fn split(text: &str) -> (Vec<&str>, bool) {
    let (mut all, mut from, mut depth, mut whole) = (Vec::new(), 0, 0_i32, true);
    let (mut escaped, mut sets) = (false, 0_u32);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => {
                escaped = false;
                continue;
            }
            '\\' => escaped = true,
            '[' => sets += 1,
            ']' => sets = sets.saturating_sub(1),
            // In a set of characters each stands for itself.
            _ if sets > 0 => {}
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth == 0 => {
                all.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        whole &= depth >= 0;
    }
    all.push(&text[from..]);
    (all, whole && depth == 0 && sets == 0 && !escaped)
}

/// The rule for `mcp__SERVER__TOOL` or `mcp__SERVER`: what is no name stands for all.
fn mcp(text: &str) -> String {
    let rest = text.strip_prefix(MCP).unwrap_or_default();
    let (server, tool) = rest.split_once("__").unwrap_or((rest, ""));
    let name = |text: &str| {
        let plain = !text.is_empty() && text.chars().all(is_of_name);
        if plain { text.to_owned() } else { "*".to_owned() }
    };
    let (server, tool) = (name(server), name(tool));
    format!("mcp:{server}:{}", if server == "*" { "*" } else { &tool })
}

/// The same for a pattern, which fits longer names, too, unless it ends there.
fn begun(text: &str, ends: bool) -> String {
    let rule = mcp(text);
    if ends || rule.ends_with('*') && text[MCP.len()..].contains("__") {
        return rule;
    }
    match rule.strip_suffix(":*") {
        Some("mcp:*") => rule,
        Some(server) => format!("{server}*:*"),
        None => format!("{rule}*"),
    }
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
        let writes = "make_document patch render_diagram";
        let edits = "edit_file make_document patch render_diagram write_file";
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
            ("Write", "make_document patch render_diagram write_file", false),
            ("Edit|Write", edits, false),
            ("Edit | Write", edits, false),
            ("Edit,Write", edits, false),
            ("Edit|MultiEdit|Write", edits, false),
            ("Write|Edit|MultiEdit|NotebookEdit", edits, false),
            ("^(Write|Edit)$", edits, false),
            // As there, a pattern without its ends fits `TodoWrite`, too.
            (
                "(Write|Edit)",
                "edit_file make_document mcp:*Edit* mcp:*Write* patch render_diagram todo_write write_file",
                false,
            ),
            ("Edit|Write|Unheard", edits, false),
            ("(?i)write", &format!("mcp:*:* {writes} todo_write write_file"), true),
            (".*Edit", "edit_file mcp:*Edit* patch write_file", false),
            ("Notebook.*", "edit_file mcp:*Notebook* patch read_file write_file", false),
            ("AskUserQuestion", "clarify", false),
            ("TaskCreate|TaskUpdate", "todo_write", false),
            ("Agent", "delegate_async delegate_task spawn_agent", false),
            ("Task", "delegate_async delegate_task spawn_agent", false),
            ("WebFetch|WebSearch", "browser_navigate web_extract web_fetch web_search", false),
            ("Web.*", "browser_navigate mcp:*Web* web_extract web_fetch web_search", false),
            ("Read|Grep|Glob|LS", "list_dir read_file search", false),
            ("mcp__github__create_issue", "mcp:github:create_issue", false),
            ("mcp__github", "mcp:github:*", false),
            ("mcp__github__.*", "mcp:github:*", false),
            ("^mcp__github__.*$", "mcp:github:*", false),
            ("mcp__.*", "mcp:*:*", false),
            ("mcp__.*__write.*", "mcp:*:*", false),
            (
                "mcp__github__.*|Write",
                &format!("mcp:*Write* mcp:github:* {writes} todo_write write_file"),
                false,
            ),
            ("mcp__my-server__(get|put)_.*", "mcp:my-server:*", false),
            ("(my)?mcp__x__.*", "mcp:*:*", true),
            // A pattern fits what begins as it does, and names of servers that it is a part of.
            ("mcp__github__create|^Bash$", "execute_code mcp:github:create* process terminal", false),
            ("^mcp__git|^Bash$", "execute_code mcp:git*:* process terminal", false),
            ("^mcp__github__create$|^Bash$", "execute_code mcp:github:create process terminal", false),
            ("^Write$|github__.*", &format!("mcp:*github* {writes} write_file"), false),
            ("^Write$|github.*", &format!("mcp:*github* {writes} write_file"), false),
            ("^(Write|github.*)$", &format!("{writes} write_file"), false),
            ("^Write$|.*_delete_.*", &format!("mcp:*delete* {writes} write_file"), false),
            ("^Write$|linear.*save_", &format!("mcp:*:* {writes} write_file"), true),
            ("^Write$|(?:slack|linear)_", &format!("mcp:*:* {writes} write_file"), true),
            ("^Write[(]?$|github", &format!("mcp:*github* {writes} write_file"), false),
            ("^Write$|[Gg]it", &format!("mcp:*:* {writes} write_file"), true),
            ("^Write$|^m?x", &format!("mcp:*:* {writes} write_file"), true),
            ("^(?:Read|Bash)$", "execute_code process read_file terminal", false),
            ("ExitPlanMode", "", false),
            ("Unheard", "ALL", true),
            ("Unheard.*", "ALL", true),
            ("^(?!Bash).*$", "ALL", true),
            ("(unclosed", "ALL", true),
        ] {
            let mut rules: Vec<&str> = rules.split(' ').collect();
            rules.sort_unstable();
            assert_eq!(read(matcher), (rules.join(" "), more), "{matcher}");
        }
    }
}
