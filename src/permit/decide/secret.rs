//! Reading secret paths: it asks in every profile, unless the user's own rule names the path.

use std::path::Path;

use tiller_protocol::Risk;

use crate::decide::path::path_always;
use crate::decide::{Need, Policy, Request, read_only};
use crate::rules::{Effect, PathUse, Rule, Source, Subject};

/// The rule, in words, that keeps `entry` of the list of secret paths from being read.
pub(crate) fn words(entry: &str) -> String {
    format!("built in: ask before {entry} is read")
}

/// What reading `path` needs, which `entry` holds; `None`: it is no secret path. For tools of this program, which skip
/// secret paths in a folder, and for those of other programs, which do not.
pub(super) fn read(policy: &Policy, request: &Request<'_>, path: &Path) -> Option<Need> {
    let entry = if policy.tools.contains(request.tool) {
        policy.roots.secret(path)?
    } else {
        policy.roots.secret(path).or_else(|| policy.roots.secret_below(path))?
    };
    let subject = Subject::Path(path, PathUse::Read);
    let said = policy.rules.matching(request.agent, request.tool, &subject, &policy.roots);
    if let Some(rule) = said.deny {
        return Some(Need::No { rule: rule.words(), reason: format!("denied by the rule {}", rule.words()) });
    }
    if request.profile.only_looks() {
        return Some(read_only(request.profile));
    }
    let allows = |rule: &&Rule| {
        rule.effect == Effect::Allow
            && matches!(rule.source, Source::User | Source::Session)
            && rule.matches(request.agent, request.tool, &subject, &policy.roots)
            && names(policy, rule)
    };
    if let Some(rule) = policy.rules.rules().iter().find(allows).filter(|_| said.ask.is_none()) {
        return Some(Need::Ok(rule.words()));
    }
    Some(Need::Ask {
        rule: said.ask.map_or_else(|| words(&entry), Rule::words).into(),
        risk: Risk::High,
        effects: vec![format!("reads keys, passwords or personal data: {}", path.display())],
        always: path_always(policy, request, path),
    })
}

/// Whether a rule is about a secret path: up to its first wildcard it names one. `read_file(*)` does not.
fn names(policy: &Policy, rule: &Rule) -> bool {
    let Some(text) = rule.path_text() else { return false };
    let plain = text.find(['*', '?', '[', '{']).map_or(text, |at| {
        // Up to the last folder that is spelled out.
        text[..at].rsplit_once('/').map_or("", |(folder, _)| folder)
    });
    let path = match (plain.strip_prefix("~/"), &policy.roots.home) {
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_), None) => return false,
        (None, _) => policy.roots.workspace.join(plain.strip_prefix("./").unwrap_or(plain)),
    };
    policy.roots.secret(&path).is_some()
}
