//! Judging what a tool reads or writes by its path.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tiller_protocol::AskReason;
use tiller_protocol::{Access, Profile, Risk};
use tiller_shell::{Analysis, Word};

use crate::decide::{Need, Policy, Request, secret, settle, unreadable};
use crate::rules::{PathUse, Rule, Subject};
use crate::targets::{named_in_code, written};

pub(super) fn path_always(policy: &Policy, request: &Request<'_>, path: &Path) -> Option<String> {
    pattern(request.tool, short(policy, path))
}

/// The path as people write it: below the workspace without it.
fn short<'p>(policy: &Policy, path: &'p Path) -> &'p Path {
    let root = policy.roots.real(&policy.roots.workspace);
    path.strip_prefix(&root).or_else(|_| path.strip_prefix(&policy.roots.workspace)).unwrap_or(path)
}

/// The rule that names this path; `None`: its characters would be read as something else.
fn pattern(tool: &str, path: &Path) -> Option<String> {
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

pub(super) fn write(policy: &Policy, request: &Request<'_>, path: &Path, inside: bool) -> Need {
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
    if instructions(path) {
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

/// Names of files that agents read as instructions, folded.
const INSTRUCTIONS: &[&str] = &[
    "agents.md",
    "agents.override.md",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    "skill.md",
    "soul.md",
    "heartbeat.md",
    "copilot-instructions.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".goosehints",
];

/// Files that agents read as instructions: writing them is a way to speak with the person's voice.
fn instructions(path: &Path) -> bool {
    let is = |name: &OsStr| INSTRUCTIONS.contains(&crate::protected::fold(&name.to_string_lossy()).as_str());
    path.file_name().is_some_and(is)
}

/// The reason for a question about a file of instructions.
pub const INSTRUCTS: &str = "it becomes instructions for every later session";

/// What a write of instructions needs: the user's yes to this very file, in every mode. No mode gives it, and of the rules
/// one that names the file.
fn agreed(policy: &Policy, request: &Request<'_>, path: &Path, need: Need) -> Need {
    match need {
        Need::Ok(_) | Need::Ask { rule: AskReason::NoRule, .. } => match rule_for(policy, request, path) {
            Some(rule) => Need::Ok(rule.words()),
            None => instructs(policy, path),
        },
        other => other,
    }
}

/// The rule by which this request may write the file of instructions: one for its tool, or for every tool that writes.
fn rule_for<'p>(policy: &'p Policy, request: &Request<'_>, path: &Path) -> Option<&'p Rule> {
    let subject = Subject::Path(path, PathUse::Write);
    [request.tool, PathUse::Write.tool()].into_iter().find_map(|tool| {
        let said = policy.rules.matching(request.agent, tool, &subject, &policy.roots);
        said.allow.filter(|rule| said.ask.is_none() && rule.names_file())
    })
}

/// The question about a file of instructions.
fn instructs(policy: &Policy, path: &Path) -> Need {
    let effects = vec![format!("changes {}: {INSTRUCTS}", short(policy, path).display())];
    let always = pattern(PathUse::Write.tool(), short(policy, path));
    Need::Ask { rule: INSTRUCTS.into(), risk: Risk::High, effects, always }
}

/// The question about the first file of instructions that a command writes by its words, and that the user has not agreed to.
pub(super) fn instructed(
    policy: &Policy,
    request: &Request<'_>,
    analysis: &Analysis,
    folders: &[PathBuf],
) -> Option<Need> {
    let redirects = analysis.all_redirects().filter(|r| r.writes()).map(|r| r.target.clone());
    let parts = analysis.parts.iter().flat_map(|part| written(part).into_iter().chain(named_in_code(part)));
    let known = if folders.is_empty() { std::slice::from_ref(&policy.roots.workspace) } else { folders };
    let paths = redirects.chain(parts).flat_map(|word| files(policy, &word, known));
    let open = |path: &PathBuf| rule_for(policy, request, path).is_none();
    paths.filter(|path| open(path)).map(|path| instructs(policy, &path)).next()
}

/// Names in a folder that are compared with a pattern.
const LISTED: usize = 10_000;

/// The files of instructions that a word may stand for. A pattern stands for what is there.
fn files(policy: &Policy, word: &Word, folders: &[PathBuf]) -> Vec<PathBuf> {
    let (folder, name) = word.text.rsplit_once(['/', tiller_shell::HOLE]).unwrap_or(("", &word.text));
    if word.glob {
        let Ok(glob) = globset::GlobBuilder::new(name).case_insensitive(true).build() else {
            return Vec::new();
        };
        let matcher = glob.compile_matcher();
        if word.dynamic || folder.contains(['*', '?', '[']) {
            // Its folder is not known: a wide pattern is most often about other files.
            let hit = INSTRUCTIONS.iter().find(|file| !name.starts_with('*') && matcher.is_match(file));
            return hit.map(|file| policy.roots.workspace.join(file)).into_iter().collect();
        }
        let folder = Word::fixed(if folder.is_empty() { "." } else { folder });
        let places = policy.roots.candidates(&folder, folders).unwrap_or_default();
        let entries = places.iter().filter_map(|place| std::fs::read_dir(place).ok());
        let entries = entries.flat_map(|all| all.flatten().take(LISTED));
        return entries
            .filter(|entry| matcher.is_match(entry.file_name()) && instructions(&entry.path()))
            .map(|entry| entry.path())
            .collect();
    }
    let paths = match word.dynamic {
        true => vec![policy.roots.workspace.join(name)],
        false => policy.roots.candidates(word, folders).unwrap_or_default(),
    };
    paths.into_iter().filter(|path| instructions(path)).collect()
}
