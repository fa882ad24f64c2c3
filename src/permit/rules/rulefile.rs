//! The file `permissions.yaml`.
//!
//! ```yaml
//! allow:
//!   - terminal(git status*)
//!   - rule: terminal(cargo test*)
//!     match: [cargo test, cargo test --workspace]
//!     not: [cargo test; rm x, cargo publish]
//! ask:
//!   - terminal(git push*)
//! deny:
//!   - read_file(.env)
//! outside:
//!   - terminal(git push*)
//! ```
//!
//! A command whose parts all match `outside` rules, or only read, runs outside the sandbox. Such a rule allows nothing;
//! it counts in the person's own file only.
//!
//! A rule may say what it must match and what not; that is checked when the file is loaded. A rule that
//! fails its own examples is not loaded: what it would have allowed asks, and what it would have
//! forbidden or asked about asks for the whole tool.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};
use serde_saphyr::Spanned;

use crate::decide::{Human, Policy, Request, decide};
use crate::paths::{Roots, normal};
use crate::rules::names;
use crate::rules::{Certainty, Effect, PathUse, Rule, RuleSet, Source, Spellings, Subject};
use tiller_protocol::{RuleArgument, ToolCatalog};
use tiller_shell::analyse;

/// Largest file.
pub const MAX_BYTES: usize = 256 * 1024;
/// Most rules of one file.
const MAX_RULES: usize = 2_000;

/// Why a file, or one of its rules, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}")]
pub struct RuleProblem {
    /// From 1; 0 when not known.
    pub line: u64,
    pub text: String,
}

/// A file that was read.
#[derive(Debug, Default)]
pub struct RuleFile {
    pub rules: Vec<Rule>,
    /// Rules that were left out, for a notice.
    pub problems: Vec<RuleProblem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    allow: Vec<Spanned<Item>>,
    ask: Vec<Spanned<Item>>,
    deny: Vec<Spanned<Item>>,
    outside: Vec<Spanned<Item>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Long {
    rule: String,
    #[serde(default, rename = "match")]
    matches: Vec<String>,
    #[serde(default)]
    not: Vec<String>,
    /// For people.
    #[serde(default)]
    #[expect(dead_code, reason = "a remark in the file, read so that it is no unknown key")]
    why: Option<String>,
}

#[derive(Debug)]
struct Item(Long);

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Item;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rule such as terminal(git status*), or a map with the key 'rule'")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Item, E> {
                Ok(Item(Long { rule: text.to_owned(), matches: vec![], not: vec![], why: None }))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Item, A::Error> {
                Long::deserialize(MapAccessDeserializer::new(map)).map(Item)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Reads the text of a file.
///
/// # Errors
/// When it is no YAML of this form; then nothing of it is known, and the caller adds
/// [`RuleSet::ask_all_for`], or keeps the last good one.
pub fn load(text: &str, source: Source, tools: &ToolCatalog) -> Result<RuleFile, RuleProblem> {
    if text.len() > MAX_BYTES {
        return Err(RuleProblem { line: 0, text: format!("the file is larger than {MAX_BYTES} bytes") });
    }
    // A lone carriage return ends a line of YAML, too.
    if text.split(['\n', '\r']).all(|l| l.trim().is_empty() || l.trim_start().starts_with('#')) {
        return Ok(RuleFile::default());
    }
    let file: File = serde_saphyr::from_str(text).map_err(|e| RuleProblem {
        line: e.location().map_or(0, |l| l.line()),
        text: first_line(&e.to_string()),
    })?;
    let mut loaded = RuleFile::default();
    let lists = [
        (Effect::Allow, file.allow),
        (Effect::Ask, file.ask),
        (Effect::Deny, file.deny),
        (Effect::Outside, file.outside),
    ];
    for (effect, items) in lists {
        for item in items {
            let line = item.referenced.line();
            let long = item.value.0;
            if loaded.rules.len() >= MAX_RULES {
                return Err(RuleProblem { line, text: format!("more than {MAX_RULES} rules") });
            }
            match checked(effect, source, &long, tools) {
                Ok(rule) => loaded.rules.push(rule),
                Err(text) => {
                    loaded.problems.push(RuleProblem { line, text });
                    if matches!(effect, Effect::Ask | Effect::Deny) {
                        let meant = as_meant(effect, source, &long.rule, tools);
                        let unknown = meant.is_empty().then(|| ask_for_tool(source, &long.rule, tools));
                        loaded.rules.extend(meant.into_iter().chain(unknown.flatten()));
                    }
                }
            }
        }
    }
    Ok(loaded)
}

/// The rule, when it does what its examples say.
fn checked(effect: Effect, source: Source, long: &Long, tools: &ToolCatalog) -> Result<Rule, String> {
    let rule = Rule::written(effect, source, &long.rule, tools)?;
    if effect == Effect::Outside {
        let command = tools.get(rule.tool_text()).is_some_and(|t| t.rule == RuleArgument::Command);
        if source != Source::User {
            return Err("only your own file can let a command run outside the sandbox".into());
        }
        if rule.tool_is_wild() || !command {
            return Err(format!(
                "'{}' names no tool that runs commands, such as terminal(git push*)",
                long.rule
            ));
        }
    }
    for example in &long.matches {
        if !matches_example(&rule, example, Certainty::Perhaps, tools) {
            return Err(format!(
                "'{}' does not match its own example '{example}': the rule is not used",
                long.rule
            ));
        }
    }
    for example in &long.not {
        if matches_example(&rule, example, Certainty::Sure, tools) {
            return Err(format!(
                "'{}' matches '{example}', which it must not: the rule is not used",
                long.rule
            ));
        }
    }
    Ok(rule)
}

/// A restricting rule whose tool is misspelled holds for the nearest tool until it is corrected. None when that can match
/// nothing either.
fn as_meant(effect: Effect, source: Source, text: &str, tools: &ToolCatalog) -> Vec<Rule> {
    let text = text.trim();
    let (tool, argument) = text.split_at(text.find('(').unwrap_or(text.len()));
    // A sign before the name may turn the meaning round.
    let is_name = tool.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let Some(meant) = names::check(tool, tools).err().filter(|_| is_name).and(names::nearest(tool, tools))
    else {
        return Vec::new();
    };
    let mut all = vec![format!("{meant}{argument}")];
    // Claude Code reads one `/` at the beginning as the folder of the settings.
    if let Some(below) = argument.strip_prefix("(/").filter(|below| !below.starts_with('/')) {
        all.push(format!("{meant}({below}"));
    }
    let rules: Result<Vec<Rule>, String> =
        all.iter().map(|text| Rule::written(effect, source, text, tools)).collect();
    rules.unwrap_or_default()
}

/// What replaces a broken `ask` or `deny` rule: the whole tool asks, or every tool when the tool is unknown too.
fn ask_for_tool(source: Source, text: &str, tools: &ToolCatalog) -> Option<Rule> {
    let tool = text.split('(').next().unwrap_or_default().trim();
    let tool = names::check(tool, tools).err().and(names::nearest(tool, tools)).unwrap_or(tool);
    Rule::written(Effect::Ask, source, tool, tools).or_else(|_| RuleSet::ask_all(source, tools)).ok()
}

/// The folder in which examples are checked.
fn example_roots() -> Roots {
    Roots::with_resolve("/workspace", Some("/home/you".into()), vec![], std::sync::Arc::new(normal))
}

/// What an example stands for, by the tool of its rule: a command line, a path, an address, or the
/// arguments as text. For a rule about several tools it is a tool's name. `least`: how certain it must be of a command.
fn matches_example(rule: &Rule, example: &str, least: Certainty, tools: &ToolCatalog) -> bool {
    let roots = example_roots();
    let tool = rule.tool_text();
    if rule.tool_is_wild() {
        return rule.is_for_tool(example);
    }
    match tools.get(tool).map(|t| t.rule) {
        Some(RuleArgument::Command) => {
            let analysis = analyse(example);
            if matches!(rule.effect, Effect::Allow | Effect::Outside) {
                // Exactly as the decision would be with this rule alone.
                let mut policy = Policy::new(roots, tools.clone());
                let mut own = rule.with_effect(Effect::Allow);
                own.source = Source::User;
                policy.rules.push(own);
                let access = [tiller_protocol::Access::Run {
                    command: example.to_owned(),
                    folder: "/workspace".into(),
                    background: false,
                }];
                let request = Request {
                    profile: tiller_protocol::Profile::Ask,
                    human: Human::Present,
                    agent: "main",
                    tool,
                    touch: tiller_protocol::Touch::Execute,
                    access: &access,
                    raw: example,
                };
                let touched = analysis
                    .parts
                    .iter()
                    .map(|part| Spellings::of_text(part.text()))
                    .any(|text| rule.matches("main", tool, &Subject::Command(&text), &policy.roots));
                return touched && decide(&policy, &request).strictness() == 0;
            }
            let mut all = Spellings::of_text(example.trim());
            analysis.parts.iter().for_each(|part| all.extend(Spellings::of_part(part)));
            rule.certainty("main", tool, &Subject::Command(&all), &roots) >= least
        }
        Some(argument) if argument.is_path() => {
            let path = roots.workspace.join(
                example
                    .strip_prefix("~/")
                    .map_or_else(|| example.to_owned(), |rest| format!("/home/you/{rest}")),
            );
            rule.matches("main", tool, &Subject::Path(&path, PathUse::Read), &roots)
        }
        argument if argument == Some(RuleArgument::Address) || tool.starts_with("web_") => {
            let host = example.split("://").nth(1).unwrap_or(example);
            let host = host.split(['/', ':', '?', '#']).next().unwrap_or(host);
            rule.matches("main", tool, &Subject::Net { url: example, host }, &roots)
        }
        _ => rule.matches("main", tool, &Subject::Other(example), &roots),
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    // The line is reported already.
    let place = |head: &str| head.starts_with("line ") && head.contains(" column ");
    line.split_once(": ").filter(|(head, _)| place(head)).map_or(line, |(_, rest)| rest).to_owned()
}

/// One line for the person's file, as "always" writes it.
pub fn yaml_item(pattern: &str) -> String {
    format!("  - '{}'", pattern.replace('\'', "''"))
}

/// The text of the person's file with one more `allow` rule. Everything else stays as it is. A rule that was added before
/// is not added again.
///
/// # Errors
/// When the file cannot be read, or the rule cannot be added to its form; nothing may be written then.
pub fn with_allow(text: &str, pattern: &str, tools: &ToolCatalog) -> Result<String, RuleProblem> {
    with_rule(text, Effect::Allow, pattern, tools)
}

/// The text of the person's file with one more `allow` or `deny` rule. Everything else stays as it is. A rule that was
/// added before is not added again.
///
/// # Errors
/// As [`with_allow`].
pub fn with_rule(
    text: &str,
    effect: Effect,
    pattern: &str,
    tools: &ToolCatalog,
) -> Result<String, RuleProblem> {
    Rule::written(effect, Source::User, pattern, tools).map_err(|text| RuleProblem { line: 0, text })?;
    let key = if effect == Effect::Deny { DENY } else { "allow:" };
    let before = load(text, Source::User, tools)?;
    let item = yaml_item(pattern);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if !added_lines(&lines, key, &item).is_empty() {
        return Ok(text.to_owned());
    }
    match lines.iter().position(|l| l.trim_end() == key) {
        Some(at) => lines.insert(at + 1, item),
        None => {
            lines.push(key.into());
            lines.push(item);
        }
    }
    let out = format!("{}\n", lines.join("\n"));
    let after = load(&out, Source::User, tools)?;
    let added = after.rules.iter().any(|r| r.effect == effect && r.text() == pattern);
    if added && after.rules.len() == before.rules.len() + 1 {
        Ok(out)
    } else {
        Err(RuleProblem { line: 0, text: "the rule cannot be added to this file; add it by hand".into() })
    }
}

/// The text of the person's file without a `deny` rule that [`with_rule`] added. A heading without rules goes with it. The
/// text stays as it is when no such rule is in it.
///
/// # Errors
/// When the file cannot be read, or the rule stands in it in another form than it was added; nothing may be written then.
pub fn without_deny(text: &str, pattern: &str, tools: &ToolCatalog) -> Result<String, RuleProblem> {
    let before = load(text, Source::User, tools)?;
    let denies = |rules: &[Rule]| rules.iter().any(|r| r.effect == Effect::Deny && r.text() == pattern);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // Earlier versions could add a rule twice.
    let added = added_lines(&lines, DENY, &yaml_item(pattern));
    for at in added.iter().rev() {
        lines.remove(*at);
    }
    let heading = lines.iter().position(|l| l.trim_end() == DENY).filter(|_| !added.is_empty());
    if let Some(heading) = heading.filter(|at| block(&lines, *at).is_empty()) {
        lines.remove(heading);
    }
    let out = match lines.is_empty() {
        _ if added.is_empty() => text.to_owned(),
        true => String::new(),
        false => format!("{}\n", lines.join("\n")),
    };
    let after = load(&out, Source::User, tools)?;
    let taken_out = !added.is_empty() || !denies(&after.rules);
    if taken_out && after.rules.len() + added.len() == before.rules.len() {
        Ok(out)
    } else {
        let text = "the rule does not stand in this file as it was written".into();
        Err(RuleProblem { line: 0, text })
    }
}

/// The heading of the rules that deny.
const DENY: &str = "deny:";

/// The lines below the heading at `heading` that belong to it.
fn block(lines: &[String], heading: usize) -> std::ops::Range<usize> {
    let below = lines.iter().skip(heading + 1).take_while(|l| l.starts_with([' ', '-', '#'])).count();
    heading + 1..heading + 1 + below
}

/// Where the line of a rule stands below the heading `key`, in rising order.
fn added_lines(lines: &[String], key: &str, item: &str) -> Vec<usize> {
    let Some(heading) = lines.iter().position(|l| l.trim_end() == key) else { return Vec::new() };
    block(lines, heading).filter(|at| lines.get(*at).is_some_and(|line| line == item)).collect()
}

#[cfg(test)]
#[path = "rulefile_tests.rs"]
mod tests;
