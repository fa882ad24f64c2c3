//! The lines of the question about a file: its content in short, for the user. Looks at the text only; the loaders parse it after
//! the yes.

use tiller_protocol::ToolCatalog;
use tiller_protocol::ask::TrustKind;
use tiller_protocol::memory::{NEVER, WHEN};
use tiller_shell::invisibles;

/// Longest line of detail, in characters; of an own command, its description and each command line that it runs.
const MAX_DETAIL: usize = 120;
/// Command lines of an own command that are shown; the number of the others is.
pub(super) const MAX_RUNS: usize = 40;

/// Returns one line of what the file would do.
pub(super) fn detail(kind: &TrustKind, text: &str, tools: &ToolCatalog) -> String {
    match kind {
        TrustKind::Permissions => rules(text, tools),
        TrustKind::Settings | TrustKind::Plugin | TrustKind::Hooks => keys(text),
        TrustKind::Memory => memory(text),
        TrustKind::McpServers => servers(text),
        TrustKind::Hook => format!("runs: {}", first_text(text)),
        TrustKind::Agent | TrustKind::Skill | TrustKind::Workflow | TrustKind::Command | TrustKind::Style => {
            let described = text
                .lines()
                .take(40)
                .find_map(|l| l.trim().strip_prefix("description:").map(str::trim).filter(|d| !d.is_empty()));
            described.map_or_else(|| first_text(text), |d| d.trim_matches(['"', '\'']).to_owned())
        }
        // Its content is not read: the path is all that is known.
        TrustKind::ProgramSettings
        | TrustKind::UnenforcedRule
        | TrustKind::Unpinned
        | TrustKind::Removed
        | TrustKind::Other(_) => String::new(),
    }
}

/// What an own command runs before its message is sent, behind its description; empty where it runs nothing.
pub(super) fn runs(text: &str) -> String {
    let all: Vec<&str> = text.lines().flat_map(line_runs).collect();
    if all.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = all.iter().take(MAX_RUNS).map(|run| format!("`{}`", one_line(run))).collect();
    let more = match all.len().saturating_sub(MAX_RUNS) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("; runs {}{more}", shown.join(", "))
}

/// The commands of a line: `!command`, or each `` !`command` `` in it. Finds at least what `OwnCommand::runs` of
/// `tiller-skills` finds: the loader removes invisible characters, so others than ASCII are passed over before a sign
/// that counts; and lines of fenced blocks, of which nothing is run, are listed too.
fn line_runs(line: &str) -> Vec<&str> {
    let other = |c: char| !c.is_ascii();
    let whole = line.trim_start_matches(|c: char| other(c) || c.is_whitespace()).strip_prefix('!');
    let begins = |rest: &str| {
        rest.trim_start_matches(other).starts_with(|c: char| c.is_ascii_alphanumeric() || "./~$".contains(c))
    };
    if let Some(command) = whole.filter(|rest| begins(rest)) {
        return vec![command.trim()];
    }
    let inline = |rest: &str| rest.trim_start_matches(other).starts_with('`');
    let parts = line.match_indices('!').map(|(at, _)| &line[at + 1..]).filter(|rest| inline(rest));
    let commands = parts.filter_map(|rest| rest.split('`').nth(1));
    commands.map(str::trim).filter(|command| !command.is_empty()).collect()
}

fn rules(text: &str, tools: &ToolCatalog) -> String {
    match crate::rules::rulefile::load(text, crate::rules::Source::Project, tools) {
        Ok(loaded) => {
            let count = |e| loaded.rules.iter().filter(|r| r.effect == e).count();
            use crate::rules::Effect;
            let allows: Vec<&str> = loaded
                .rules
                .iter()
                .filter(|r| r.effect == Effect::Allow)
                .take(4)
                .map(crate::rules::Rule::text)
                .collect();
            format!(
                "allows {}, asks {}, denies {}{}{}",
                count(Effect::Allow),
                count(Effect::Ask),
                count(Effect::Deny),
                if allows.is_empty() { "" } else { ": allows " },
                allows.join(", ")
            )
        }
        Err(problem) => format!("cannot be read ({problem})"),
    }
}

fn keys(text: &str) -> String {
    let tables: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.starts_with('#'))
        .filter_map(|l| {
            l.strip_prefix('[')
                .and_then(|l| l.split(']').next())
                .or_else(|| l.split_once('=').map(|(k, _)| k.trim()))
        })
        .map(|k| k.trim_matches(['[', ']', ' ']))
        .filter(|k| !k.is_empty())
        .take(12)
        .collect();
    if tables.is_empty() { "sets nothing".into() } else { format!("sets {}", tables.join(", ")) }
}

/// How much a memory file says, and how it begins.
fn memory(text: &str) -> String {
    let entries: Vec<&str> =
        text.lines().filter_map(|l| l.strip_prefix("- ").or_else(|| l.strip_prefix("* "))).collect();
    let rules = text.matches(WHEN).count() + text.matches(NEVER).count();
    let count = |n: usize, one: &str, more: &str| {
        if n == 1 { format!("1 {one}") } else { format!("{n} {more}") }
    };
    let rules = if rules == 0 { String::new() } else { format!(", {}", count(rules, "rule", "rules")) };
    let first = entries.first().map_or_else(|| first_text(text), |entry| (*entry).to_owned());
    format!("{}{rules}: {first}", count(entries.len(), "entry", "entries"))
}

fn servers(text: &str) -> String {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(text) else { return "cannot be read".into() };
    let Some(servers) = value.get("mcpServers").or_else(|| value.get("servers")).and_then(|s| s.as_object())
    else {
        return "defines no server".into();
    };
    let line = |name: &str, server: &serde_json::Value| {
        let text = |key: &str| server.get(key).and_then(|v| v.as_str()).unwrap_or_default();
        let args: Vec<&str> = server
            .get("args")
            .and_then(|a| a.as_array())
            .map(|a| a.iter().filter_map(|v| v.as_str()).collect())
            .unwrap_or_default();
        if text("url").is_empty() {
            format!("{name} runs: {} {}", text("command"), args.join(" "))
        } else {
            format!("{name} connects to {}", text("url"))
        }
    };
    servers.iter().take(5).map(|(n, s)| line(n, s)).collect::<Vec<_>>().join("; ")
}

fn first_text(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .find(|l| !l.is_empty() && !l.starts_with("#!") && !matches!(*l, "---" | "+++"))
        .unwrap_or("empty")
        .to_owned()
}

/// Shown to a person: one line, nothing that cannot be seen.
pub(crate) fn one_line(text: &str) -> String {
    let hidden = invisibles(text);
    let mut out = String::new();
    for (i, c) in text.char_indices() {
        match hidden.iter().find(|(at, _)| *at == i) {
            Some(_) => out.push_str(&format!("<U+{:04X}>", c as u32)),
            None if c.is_whitespace() => out.push(' '),
            None => out.push(c),
        }
        if out.chars().count() >= MAX_DETAIL {
            out.push('…');
            break;
        }
    }
    out.trim().to_owned()
}
