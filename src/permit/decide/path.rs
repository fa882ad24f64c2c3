//! Judging what a tool reads or writes by its path.

use std::path::Path;

use tiller_protocol::{Access, AskReason, Profile};

use crate::decide::instructions::{Instructions, agreed};
use crate::decide::{Need, Policy, Request, secret, settle, unreadable};
use crate::rules::{PathUse, Subject};

pub(super) fn path_always(policy: &Policy, request: &Request<'_>, path: &Path) -> Option<String> {
    pattern(request.tool, short(policy, path))
}

/// The path as people write it: below the workspace without it.
pub(super) fn short<'p>(policy: &Policy, path: &'p Path) -> &'p Path {
    let root = policy.roots.real(&policy.roots.workspace);
    path.strip_prefix(&root).or_else(|_| path.strip_prefix(&policy.roots.workspace)).unwrap_or(path)
}

/// The rule that names this path; `None`: its characters would be read as something else.
pub(super) fn pattern(tool: &str, path: &Path) -> Option<String> {
    let text = path.to_str()?;
    // Characters that a pattern of paths would read as something else.
    let odd = text.contains(['*', '?', '[', ']', '{', '}', '\\', '(', ')', '!'])
        || !tiller_shell::invisibles(text).is_empty();
    (!odd && !text.is_empty()).then(|| format!("{tool}({text})"))
}

pub(super) fn read(policy: &Policy, request: &Request<'_>, path: &Path, inside: bool) -> Need {
    // Tiller's tools skip what they may not read; what another program does in a folder is not known.
    if !policy.tools.contains(request.tool) {
        match below(policy, request.agent, path) {
            DeniedBelow::None => {}
            DeniedBelow::Rule(rule) => {
                let reason = format!("the rule {rule} denies reading something in this folder");
                return Need::No { reason, rule };
            }
            DeniedBelow::TooMany => {
                let reason =
                    "this folder contains too many files to check them against your rules".to_owned();
                return Need::No { reason, rule: "too many files".into() };
            }
        }
    }
    if let Some(need) = secret::read(policy, request, path) {
        return need;
    }
    // The tool said so, and it is so.
    let inside = inside && policy.roots.inside(path);
    let access = Access::Read { path: path.display().to_string(), inside };
    let default = if inside {
        Some("reading inside the workspace")
    } else if request.profile == Profile::Full {
        Some("full mode")
    } else {
        None
    };
    settle(
        policy,
        request,
        &Subject::Path(path, PathUse::Read),
        &access,
        default,
        path_always(policy, request, path),
    )
}

/// What the deny rules say about the files below a folder.
enum DeniedBelow {
    /// Nothing that they cover.
    None,
    /// This rule denies reading at least one of them.
    Rule(String),
    /// There are more files than one search checks.
    TooMany,
}

/// Checks the files below a folder against the rules that deny reading.
fn below(policy: &Policy, agent: &str, folder: &Path) -> DeniedBelow {
    let narrows =
        |r: &crate::rules::Rule| r.effect == crate::rules::Effect::Deny && r.narrows_paths(PathUse::Read);
    if !policy.rules.rules().iter().any(narrows) {
        return DeniedBelow::None;
    }
    let rule = |p: &Path| unreadable(&policy.rules, &policy.roots, agent, p);
    match crate::paths::below::below(&policy.roots, folder, &|p| rule(p).is_some()) {
        crate::paths::below::Below::Found(path) => rule(&path).map_or(DeniedBelow::None, DeniedBelow::Rule),
        crate::paths::below::Below::None => DeniedBelow::None,
        crate::paths::below::Below::TooMany => DeniedBelow::TooMany,
    }
}

pub(super) fn write(
    instructions: &Instructions<'_>,
    request: &Request<'_>,
    path: &Path,
    inside: bool,
) -> Need {
    let policy = instructions.policy();
    if let Some(reason) = policy.protected.check_write(path) {
        return Need::No { rule: "protected name".into(), reason };
    }
    let inside = inside && policy.roots.inside(path);
    let access = Access::Write { path: path.display().to_string(), inside };
    let full = request.profile == Profile::Full;
    let secret = || policy.roots.secret(path).is_some();
    let default = match request.profile {
        Profile::Full if (inside || writable(policy, path)) && !secret() => Some("full mode"),
        Profile::AutoEdit if inside && !secret() => Some("auto-edit mode"),
        _ => None,
    };
    let need = settle(
        policy,
        request,
        &Subject::Path(path, PathUse::Write),
        &access,
        default,
        path_always(policy, request, path),
    );
    if instructions.are_at(path) {
        return agreed(policy, request, path, need);
    }
    match need {
        // Elsewhere this profile asks nothing: the rule says why it does.
        Need::Ask { rule, risk, effects, always } if full && rule == AskReason::NoRule => {
            Need::Ask { rule: OUTSIDE.into(), risk, effects, always }
        }
        other => other,
    }
}

/// The rule by which `full` asks, in words.
const OUTSIDE: &str = "built in: full mode writes in the workspace only";

/// Whether `full` writes a path outside the workspace, as it is spelled and as its links lead.
fn writable(policy: &Policy, path: &Path) -> bool {
    let path = crate::paths::normal(path);
    let below = |path: &Path| {
        policy
            .writable
            .iter()
            .any(|folder| path.starts_with(folder) || path.starts_with(policy.roots.real(folder)))
    };
    below(&path) && below(&policy.roots.real(&path))
}
