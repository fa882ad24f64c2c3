//! What a rule can become: permission rules that deny what it forbids, or a hook.
//!
//! A hook says more than a permission rule can: it denies with the text of the rule as its reason, or it runs the command
//! that the rule names in backquotes after each call that the rule is about.

use std::sync::Arc;

use tiller_protocol::{NEXT_PATTERN, PromotionKind, RuleArgument, RulePromotion, ToolCatalog};

use super::ActionRule;

/// Writes texts to a file of the person's, or takes them out (`false`), in one change of the file: all or none. A text
/// that stands there already is as if written, and one that is not there as if taken out. An error is a sentence.
pub type WriteTexts = Arc<dyn Fn(&[&str], bool) -> Result<(), String> + Send + Sync>;

/// A file that rules are written to.
#[derive(Clone)]
pub struct RuleFile {
    /// Its path, as it is shown.
    pub file: String,
    pub write: WriteTexts,
}

/// How rules become more than text.
#[derive(Clone)]
pub struct Promotions {
    /// Takes the pattern of a rule that denies.
    pub permissions: RuleFile,
    /// Takes whole tables of hooks.
    pub hooks: RuleFile,
}

impl Promotions {
    /// What a rule can become, the first choice first.
    pub fn offers(&self, rule: &ActionRule, tools: &ToolCatalog) -> Vec<RulePromotion> {
        let permission = (!rule.never.is_empty()).then(|| rule.never.join(NEXT_PATTERN));
        let offer = |kind, text: String| RulePromotion { kind, file: self.file(kind).file.clone(), text };
        let permission = permission.map(|text| offer(PromotionKind::Permission, text));
        let hook = hook(rule, tools).map(|text| offer(PromotionKind::Hook, text));
        permission.into_iter().chain(hook).collect()
    }

    /// The file that this kind is written to.
    pub fn file(&self, kind: PromotionKind) -> &RuleFile {
        match kind {
            PromotionKind::Permission => &self.permissions,
            PromotionKind::Hook => &self.hooks,
        }
    }

    /// Writes what was offered, but for what is also in a text of `others`: texts of this kind that were made of other rules.
    /// Nothing is written where a part of it cannot be, or stands in the file already: that is the user's own.
    ///
    /// # Errors
    /// Why it was not written, as a sentence.
    pub fn write(&self, kind: PromotionKind, text: &str, others: &[&str]) -> Result<(), String> {
        let new = parts_without(kind, text, others);
        if new.is_empty() { Ok(()) } else { (self.file(kind).write)(&new, true) }
    }

    /// Takes out what was written, but for what is also in a text of `others`: texts of this kind that were made of other
    /// rules.
    ///
    /// # Errors
    /// Why it was not taken out, as a sentence.
    pub fn take_out(&self, kind: PromotionKind, text: &str, others: &[&str]) -> Result<(), String> {
        let gone = parts_without(kind, text, others);
        if gone.is_empty() { Ok(()) } else { (self.file(kind).write)(&gone, false) }
    }
}

/// The parts of a text that are in none of `others`.
fn parts_without<'a>(kind: PromotionKind, text: &'a str, others: &[&str]) -> Vec<&'a str> {
    let known: Vec<&str> = others.iter().flat_map(|other| kind.parts(other)).collect();
    let mut parts = kind.parts(text);
    parts.retain(|part| !known.contains(part));
    parts
}

/// The tables of a hook in the person's settings. `None`: the rule neither forbids a call nor names one command.
fn hook(rule: &ActionRule, tools: &ToolCatalog) -> Option<String> {
    let (event, patterns, command, guards) = if rule.never.is_empty() {
        ("after-tool-call", &rule.when, command_of(&rule.text)?.to_owned(), false)
    } else {
        let reason = rule.text.replace('\'', r"'\''");
        ("before-tool-call", &rule.never, format!("printf '%s' '{reason}' >&2; exit 2"), true)
    };
    let tables = distinct(patterns, tools).into_iter().map(|pattern| {
        // A guard that cannot run must not let calls pass.
        let blocking = if guards { "\nblocking = true" } else { "" };
        let (pattern, command) = (quoted(pattern), quoted(&command));
        format!("[[hooks.{event}]]\nmatch = {pattern}\ncommand = {command}{blocking}")
    });
    Some(tables.collect::<Vec<_>>().join("\n\n")).filter(|text| !text.is_empty())
}

/// The only text in backquotes.
fn command_of(text: &str) -> Option<&str> {
    let mut pieces = text.split('`');
    let (_, command, _) = (pieces.next()?, pieces.next()?, pieces.next()?);
    (pieces.next().is_none() && !command.trim().is_empty()).then(|| command.trim())
}

/// Patterns without those that match the same calls: one about a path is for every tool that comes to the path in this way.
fn distinct<'a>(patterns: &'a [String], tools: &ToolCatalog) -> Vec<&'a str> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    let mut kept = Vec::new();
    for pattern in patterns {
        let (tool, argument) = pattern.split_once('(').unwrap_or((pattern, ""));
        let class = match tools.get(tool).map(|info| info.rule).filter(|_| !argument.is_empty()) {
            Some(rule) if rule.changes_path() => "edit",
            Some(RuleArgument::ReadPath) => "read",
            Some(RuleArgument::Address) => "web",
            _ => tool,
        };
        if !seen.contains(&(class, argument)) {
            seen.push((class, argument));
            kept.push(pattern.as_str());
        }
    }
    kept
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
#[path = "promotion_tests.rs"]
mod tests;
