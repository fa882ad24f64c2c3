//! Judging what a tool reads or writes by its path.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use tiller_protocol::AskReason;
use tiller_protocol::{Access, Profile, Risk};
use tiller_shell::{Analysis, Word};

use crate::decide::{Need, Policy, Request, always, secret, settle, unreadable};
use crate::rules::{PathUse, Rule, Subject};
use crate::targets::{named_in_code, names_in_code, surely_written, written};

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
    if Instructions::of(policy).are_at(path) {
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
struct Instructions<'p> {
    policy: &'p Policy,
    /// What links with such a name in the workspace's own folder lead to.
    linked: OnceCell<Vec<PathBuf>>,
}

impl<'p> Instructions<'p> {
    fn of(policy: &'p Policy) -> Self {
        Self { policy, linked: OnceCell::new() }
    }

    /// Whether the path is one of them: by its name, as its links lead, or because a link of such a name leads to it, in the
    /// workspace's own folder or beside it.
    fn are_at(&self, path: &Path) -> bool {
        if is_named(path) {
            return true;
        }
        let real = self.policy.roots.real(path);
        let workspace = &self.policy.roots.workspace;
        let linked = || self.linked.get_or_init(|| self.links_in(workspace)).contains(&real);
        let beside = || real.parent().is_some_and(|f| f != workspace && self.links_in(f).contains(&real));
        is_named(&real) || self.policy.roots.inside(&real) && (linked() || beside())
    }

    fn links_in(&self, folder: &Path) -> Vec<PathBuf> {
        let roots = &self.policy.roots;
        let all = roots.list(folder).into_iter().map(|(name, _)| folder.join(name));
        all.filter(|path| is_named(path)).map(|path| roots.real(&path)).collect()
    }
}

/// Whether a path has the name of a file of instructions.
fn is_named(path: &Path) -> bool {
    let name = path.file_name().map(|name| crate::protected::fold(&name.to_string_lossy()));
    name.is_some_and(|name| INSTRUCTIONS.contains(&name.as_str()))
}

/// The reason for a question about a file of instructions.
pub const INSTRUCTS: &str = "it becomes instructions for every later session";

/// What a write of instructions needs: the user's yes to this very file, in every mode. No mode gives it, and of the rules
/// one that names the file.
fn agreed(policy: &Policy, request: &Request<'_>, path: &Path, need: Need) -> Need {
    match need {
        Need::Ok(_) | Need::Ask { rule: AskReason::NoRule, .. } => match rule_for(policy, request, path) {
            Some(rule) => Need::Ok(rule.words()),
            None => instructs(policy, &[path.to_owned()]).unwrap_or(need),
        },
        other => other,
    }
}

/// What a call needs that may write instructions: beside `need` the user's yes to these very files, in every mode. What allows
/// the call does not agree to them. `question`: [`instructs`].
pub(super) fn with_instructions(need: Need, question: impl FnOnce() -> Option<Need>) -> Need {
    match need {
        Need::Ok(_) => question().unwrap_or(need),
        Need::Ask { rule: AskReason::NoRule, mut effects, risk, always } => match question() {
            Some(Need::Ask { rule, risk, effects: more, always }) => {
                effects.extend(more);
                Need::Ask { rule, risk, effects, always }
            }
            _ => Need::Ask { rule: AskReason::NoRule, risk, effects, always },
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

/// The question about files of instructions, all of them; `None`: there are none.
pub(super) fn instructs(policy: &Policy, paths: &[PathBuf]) -> Option<Need> {
    let effect = |path: &PathBuf| format!("changes {}: {INSTRUCTS}", short(policy, path).display());
    let rules = paths.iter().map(|path| pattern(PathUse::Write.tool(), short(policy, path)));
    let always = rules.collect::<Option<Vec<_>>>().map(|rules| always::joined(&rules));
    let effects = paths.iter().map(effect).collect();
    (!paths.is_empty()).then(|| Need::Ask { rule: INSTRUCTS.into(), risk: Risk::High, effects, always })
}

/// Those of files of instructions to which the user has not agreed.
fn open(policy: &Policy, request: &Request<'_>, paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !out.contains(&path) && rule_for(policy, request, &path).is_none() {
            out.push(path);
        }
    }
    out
}

/// The files of instructions that a command writes by its words, and to which the user has not agreed.
pub(super) fn instructed(
    policy: &Policy,
    request: &Request<'_>,
    analysis: &Analysis,
    folders: &[PathBuf],
) -> Vec<PathBuf> {
    let redirects = analysis.all_redirects().filter(|r| r.writes()).map(|r| r.target.clone());
    let parts = analysis.parts.iter().flat_map(|part| written(part).into_iter().chain(named_in_code(part)));
    let words: Vec<Word> = redirects.chain(parts).collect();
    instructed_by(policy, request, &words, folders)
}

/// The files of instructions that a script writes by the words of its code, and to which the user has not agreed.
pub(super) fn instructed_in_code(policy: &Policy, request: &Request<'_>, code: &str) -> Vec<PathBuf> {
    instructed_by(policy, request, &names_in_code(code), &[])
}

/// The files of instructions that the arguments of a call of an MCP server name, and to which the user has not agreed. What the
/// tool does is not known: one whose name only speaks of reading writes none.
pub(super) fn instructed_by_mcp(
    policy: &Policy,
    request: &Request<'_>,
    tool: &str,
    arguments: &str,
) -> Vec<PathBuf> {
    let verbs = crate::redact::names::words(tool);
    let any = |list: &[&str]| verbs.iter().any(|verb| list.contains(&verb.as_str()));
    if any(READ) && !any(WRITE) {
        return Vec::new();
    }
    let mut texts = Vec::new();
    match serde_json::from_str(arguments) {
        Ok(value) => texts_in(value, &mut texts),
        Err(_) => texts.push(arguments.to_owned()),
    }
    let mut words = Vec::new();
    for text in texts {
        if text.contains(char::is_whitespace) && text.len() <= COMMAND {
            // A command may be written there; of words that are none only what surely writes counts.
            let analysis = tiller_shell::analyse(&text);
            words.extend(analysis.all_redirects().filter(|r| r.writes()).map(|r| r.target.clone()));
            words.extend(analysis.parts.iter().flat_map(surely_written));
        }
        let path = text.trim();
        let path = path.strip_prefix("file://").unwrap_or(path);
        // With blanks it is a path where its folder is one.
        let folder = || policy.roots.workspace.join(path).parent().is_some_and(Path::is_dir);
        if path.len() <= PATH && (!path.contains(char::is_whitespace) || folder()) {
            words.push(Word::fixed(path));
        }
    }
    instructed_by(policy, request, &words, &[])
}

/// Bytes of the longest argument that may be a path, and of the longest that may be a command.
const PATH: usize = 4 << 10;
const COMMAND: usize = 8 << 10;

/// Words in the names of tools that read, and in those of tools that do not only read.
const READ: &[&str] = &[
    "read", "get", "list", "search", "find", "view", "show", "cat", "stat", "status", "info", "diff",
    "fetch", "query", "head", "tail", "describe", "count", "lookup", "tree", "log", "blame",
];
const WRITE: &[&str] = &[
    "write", "edit", "create", "update", "put", "set", "save", "append", "insert", "replace", "move",
    "rename", "copy", "delete", "remove", "patch", "upload", "push", "add", "make", "apply", "commit",
    "modify", "sync", "run", "exec", "execute", "import", "restore", "generate", "download", "post", "store",
    "send",
];

/// Adds every text in a value, names of fields too.
fn texts_in(value: serde_json::Value, out: &mut Vec<String>) {
    use serde_json::Value;
    match value {
        Value::String(text) => out.push(text),
        Value::Array(items) => items.into_iter().for_each(|item| texts_in(item, out)),
        Value::Object(fields) => {
            for (name, value) in fields {
                out.push(name);
                texts_in(value, out);
            }
        }
        _ => {}
    }
}

/// The files of instructions among words of paths, to which the user has not agreed. Where the folder is not known, names are
/// of the workspace.
fn instructed_by(
    policy: &Policy,
    request: &Request<'_>,
    words: &[Word],
    folders: &[PathBuf],
) -> Vec<PathBuf> {
    let known = if folders.is_empty() { std::slice::from_ref(&policy.roots.workspace) } else { folders };
    let instructions = Instructions::of(policy);
    let paths = words.iter().flat_map(|word| files(&instructions, word, known)).collect();
    open(policy, request, paths)
}

/// Names in a folder that are compared with a pattern.
const LISTED: usize = 10_000;

/// The files of instructions that a word may stand for. A pattern stands for what is there.
fn files(instructions: &Instructions<'_>, word: &Word, folders: &[PathBuf]) -> Vec<PathBuf> {
    let policy = instructions.policy;
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
            .filter(|entry| matcher.is_match(entry.file_name()) && instructions.are_at(&entry.path()))
            .map(|entry| entry.path())
            .collect();
    }
    let paths = match word.dynamic {
        true => vec![policy.roots.workspace.join(name)],
        false => policy.roots.candidates(word, folders).unwrap_or_default(),
    };
    paths.into_iter().filter(|path| instructions.are_at(path)).collect()
}
