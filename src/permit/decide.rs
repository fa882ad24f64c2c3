//! The judge: may this very call run?
//!
//! Order: protected names, `deny` rules (on the raw text and on every part), the profile's own limits,
//! then what allows. Whatever is left asks; where nobody can answer, that is a no.

use std::path::{Path, PathBuf};

use tiller_protocol::{Access, Profile, Risk, Touch};

use crate::paths::Roots;
use crate::protected::Protected;
use crate::rules::{RuleSet, Subject};
use crate::{always, command, describe};

/// Whether somebody can answer a question. Always passed down, never inferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Human {
    Present,
    Absent,
}

/// What is in force.
#[derive(Clone, Debug)]
pub struct Policy {
    pub rules: RuleSet,
    pub protected: Protected,
    pub roots: Roots,
}

impl Policy {
    /// Without rules.
    pub fn new(roots: Roots) -> Self {
        Self { rules: RuleSet::default(), protected: Protected::new(roots.clone()), roots }
    }
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub profile: Profile,
    pub human: Human,
    /// Path of the agent, for instance `main/a2`.
    pub agent: &'a str,
    pub tool: &'a str,
    pub touch: Touch,
    /// What the tool declared for this call. An empty list is not trusted: it is judged as unknown.
    pub access: &'a [Access],
    /// The arguments as text, for tools that declare nothing that is understood.
    pub raw: &'a str,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow {
        /// The rule in words, for the audit.
        rule: String,
    },
    Deny {
        rule: String,
        /// For the model and the person.
        reason: String,
    },
    Ask {
        /// The rule that asks, in words, for instance `none matches`.
        rule: String,
        risk: Risk,
        effects: Vec<String>,
        /// Pattern that could be allowed for good.
        always: Option<String>,
    },
}

impl Verdict {
    /// How strict it is: allow 0, ask 1, deny 2.
    pub fn strictness(&self) -> u8 {
        match self {
            Self::Allow { .. } => 0,
            Self::Ask { .. } => 1,
            Self::Deny { .. } => 2,
        }
    }
}

/// What one access needs.
#[derive(Clone, Debug)]
pub(crate) enum Need {
    Ok(String),
    No { rule: String, reason: String },
    Ask { rule: String, risk: Risk, effects: Vec<String>, always: Option<String> },
}

/// Judges a call.
pub fn decide(policy: &Policy, request: &Request<'_>) -> Verdict {
    let needs: Vec<Need> = if request.access.is_empty() {
        vec![unknown(policy, request)]
    } else {
        request.access.iter().map(|a| one(policy, request, a)).collect()
    };
    join(needs, request.human)
}

/// The strictest need wins; questions are asked together.
fn join(needs: Vec<Need>, human: Human) -> Verdict {
    let mut allowed = Vec::new();
    let mut asks: Vec<(String, Risk, Vec<String>, Option<String>)> = Vec::new();
    for need in needs {
        match need {
            Need::No { rule, reason } => return Verdict::Deny { rule, reason },
            Need::Ask { rule, risk, effects, always } => asks.push((rule, risk, effects, always)),
            Need::Ok(rule) => {
                if !allowed.contains(&rule) {
                    allowed.push(rule);
                }
            }
        }
    }
    let Some((rule, mut risk, mut effects, mut always)) = asks.first().cloned() else {
        return Verdict::Allow { rule: allowed.join("; ") };
    };
    for (_, more_risk, more, _) in &asks[1..] {
        risk = risk.max(*more_risk);
        for text in more {
            if !effects.contains(text) {
                effects.push(text.clone());
            }
        }
        // One rule cannot answer several questions.
        always = None;
    }
    match human {
        Human::Present => Verdict::Ask { rule, risk, effects, always },
        Human::Absent => {
            let what = if effects.is_empty() { String::new() } else { format!(" ({})", effects.join("; ")) };
            Verdict::Deny { reason: format!("this needs a person's yes, and nobody can answer{what}"), rule }
        }
    }
}

fn one(policy: &Policy, request: &Request<'_>, access: &Access) -> Need {
    match access {
        Access::Free => free(policy, request),
        Access::Read { path, inside } => read(policy, request, Path::new(path), *inside),
        Access::Write { path, inside } => write(policy, request, Path::new(path), *inside),
        Access::Run { command, folder, background } => {
            command::judge(policy, request, command, Path::new(folder), *background)
        }
        Access::Process { what } => process(policy, request, what),
        Access::Net { url, host } => net(policy, request, url, host),
    }
}

/// The common end: a `deny` rule forbids, an `ask` rule asks, an `allow` rule or `default` allows, the
/// rest asks.
fn settle(
    policy: &Policy,
    request: &Request<'_>,
    subject: &Subject<'_>,
    access: &Access,
    default: Option<&str>,
    always: Option<String>,
) -> Need {
    let said = policy.rules.said(request.agent, request.tool, subject, &policy.roots);
    if let Some(rule) = said.deny {
        return Need::No { rule: rule.words(), reason: format!("the rule {} forbids it", rule.words()) };
    }
    let read_only_profile = request.profile.only_looks();
    let (effects, risk) = describe::access(access).map_or((vec![], Risk::Low), |(t, r)| (vec![t], r));
    if let Some(rule) = said.ask {
        return if read_only_profile && default.is_none() {
            read_only(request.profile)
        } else {
            Need::Ask { rule: rule.words(), risk, effects, always: None }
        };
    }
    match (default, said.allow) {
        (Some(default), _) => Need::Ok(default.to_owned()),
        (None, _) if read_only_profile => read_only(request.profile),
        (None, Some(rule)) => Need::Ok(rule.words()),
        (None, None) => Need::Ask { rule: "none matches".into(), risk, effects, always },
    }
}

pub(crate) fn read_only(profile: Profile) -> Need {
    let reason = if profile == Profile::Plan {
        "a plan is being made: only reading inside the workspace and planning are possible; hand the plan in with \
         write_plan, and work when the person approves it"
    } else {
        "the profile is read-only: only reading inside the workspace and planning are possible"
    };
    Need::No { rule: format!("profile {}", profile.name()), reason: reason.into() }
}

fn free(policy: &Policy, request: &Request<'_>) -> Need {
    let subject = Subject::Other(request.raw);
    // Asking the person and keeping the plan need no permission, but may be denied by name.
    settle(policy, request, &subject, &Access::Free, Some("needs no permission"), None)
}

fn path_always(policy: &Policy, request: &Request<'_>, path: &Path) -> Option<String> {
    let root = policy.roots.real(&policy.roots.workspace);
    let short =
        path.strip_prefix(&root).or_else(|_| path.strip_prefix(&policy.roots.workspace)).unwrap_or(path);
    let text = short.to_str()?;
    // Characters that a pattern of paths would read as something else.
    let odd = text.contains(['*', '?', '[', ']', '{', '}', '\\', '(', ')', '!'])
        || !crate::shell::invisibles(text).is_empty();
    (!odd && !text.is_empty()).then(|| format!("{}({text})", request.tool))
}

fn read(policy: &Policy, request: &Request<'_>, path: &Path, inside: bool) -> Need {
    // The tool said so, and it is so.
    let inside = inside && policy.roots.inside(path);
    let access = Access::Read { path: path.display().to_string(), inside };
    let default = if inside {
        Some("reading inside the workspace")
    } else if request.profile == Profile::Full {
        Some("profile full")
    } else {
        None
    };
    settle(policy, request, &Subject::Path(path), &access, default, path_always(policy, request, path))
}

fn write(policy: &Policy, request: &Request<'_>, path: &Path, inside: bool) -> Need {
    if let Some(reason) = policy.protected.check_write(path) {
        return Need::No { rule: "protected name".into(), reason };
    }
    let inside = inside && policy.roots.inside(path);
    let access = Access::Write { path: path.display().to_string(), inside };
    let default = match request.profile {
        Profile::Full => Some("profile full"),
        Profile::AutoEdit if inside && !instructions(path) => Some("profile auto-edit"),
        _ => None,
    };
    settle(policy, request, &Subject::Path(path), &access, default, path_always(policy, request, path))
}

/// Files that agents read as instructions: writing them is a way to speak with the person's voice.
pub(crate) fn instructions(path: &Path) -> bool {
    path.file_name().is_some_and(|n| {
        matches!(
            crate::protected::fold(&n.to_string_lossy()).as_str(),
            "agents.md"
                | "claude.md"
                | "gemini.md"
                | "skill.md"
                | ".cursorrules"
                | ".windsurfrules"
                | "copilot-instructions.md"
                | "agents.override.md"
                | "claude.local.md"
        )
    })
}

/// Looking at a process of ours, or ending it, is free; writing to it is like running a command.
fn process(policy: &Policy, request: &Request<'_>, what: &str) -> Need {
    let first = what.split_whitespace().next().unwrap_or_default().to_lowercase();
    let looks = matches!(first.as_str(), "list" | "poll" | "log" | "read" | "wait" | "status" | "output");
    let default = if looks {
        Some("looking at a process of this session")
    } else if request.profile.only_looks() {
        None
    } else if first == "kill" || first == "stop" {
        Some("ending a process of this session")
    } else if request.profile == Profile::Full {
        Some("profile full")
    } else {
        None
    };
    let access = Access::Process { what: what.to_owned() };
    settle(policy, request, &Subject::Other(what), &access, default, None)
}

fn net(policy: &Policy, request: &Request<'_>, url: &str, host: &str) -> Need {
    let access = Access::Net { url: url.to_owned(), host: host.to_owned() };
    let host = host.to_ascii_lowercase();
    let plain = !host.is_empty()
        && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
        && !host.ends_with('.')
        && host.contains('.');
    let default = (request.profile == Profile::Full).then_some("profile full");
    let always = plain.then(|| format!("{}(domain:{host})", request.tool));
    settle(policy, request, &Subject::Net { url, host: &host }, &access, default, always)
}

/// A tool that declares nothing: judged by its kind and its name.
fn unknown(policy: &Policy, request: &Request<'_>) -> Need {
    let subject = Subject::Other(request.raw);
    let access = Access::Process { what: request.tool.to_owned() };
    let default = (request.profile == Profile::Full).then_some("profile full");
    let need = settle(policy, request, &subject, &access, default, Some(request.tool.to_owned()));
    match need {
        Need::Ask { rule, always, .. } => Need::Ask {
            rule,
            risk: Risk::High,
            effects: vec![format!("{} does not say what it touches", request.tool)],
            always,
        },
        other => other,
    }
}

/// Folders in which the command may run.
pub(crate) fn folders(roots: &Roots, analysis: &crate::shell::Analysis, folder: &Path) -> Vec<PathBuf> {
    roots.folders(analysis, folder)
}

/// Whether an access is known to change no file: a read, or a command that only looks. For deciding whether the
/// files are to be kept around a call, not for permission.
pub fn only_looks(policy: &Policy, access: &Access) -> bool {
    match access {
        Access::Free | Access::Read { .. } => true,
        Access::Run { command, folder, background: false } => {
            command::looks(policy, command, Path::new(folder))
        }
        _ => false,
    }
}

/// The pattern that "always" would allow for a command that starts in the workspace. For a text that the
/// person edited in the dialog.
pub fn always_pattern(policy: &Policy, text: &str) -> Option<String> {
    let analysis = crate::shell::analyse(text);
    if !crate::danger::dangers(&analysis).is_empty() {
        return None;
    }
    let places = folders(&policy.roots, &analysis, &policy.roots.workspace);
    let open = command::open_parts(policy, "", "terminal", &analysis, &places);
    always::pattern(&analysis, &open)
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
