//! The files of a folder that could run programs, open connections or loosen rules, and whether the user trusts exactly
//! these.
//!
//! Nothing is run. The hashed bytes are handed out, so that exactly these are loaded. Links are never followed.

pub(crate) mod detail;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tiller_fs::beneath;
use tiller_protocol::ToolCatalog;
use tiller_protocol::ask::{TrustItem, TrustKind};

use crate::hook_files;
use crate::pin::{Pinning, Pins};
use detail::{detail, one_line, runs};

/// Largest file that is taken; a larger one is listed and never loaded.
const MAX_FILE: u64 = 256 * 1024;
/// Most files of one folder; beyond it nothing of the folder is loaded.
const MAX_ITEMS: usize = 500;
/// Deepest nesting below `.tiller`.
const MAX_DEPTH: usize = 6;

/// The file of a project's hooks.
const HOOKS: &str = ".tiller/hooks.toml";
/// The folder for what they run.
const HOOKS_FOLDER: &str = ".tiller/hooks";
/// The files that name a project's servers.
const SERVERS: &[&str] = &[".mcp.json", ".tiller/mcp.json"];
/// Most commands of hooks and servers of one folder; beyond it nothing of the folder is loaded.
const MAX_COMMANDS: usize = 200;
/// Begins the hash of a file of which each line was agreed to.
const LINES: &str = "lines:";

/// Files that matter, with what they are.
const FILES: &[(&str, TrustKind)] = &[
    (".tiller/config.toml", TrustKind::Settings),
    (".tiller/permissions.yaml", TrustKind::Permissions),
    (".tiller/mcp.json", TrustKind::McpServers),
    (".mcp.json", TrustKind::McpServers),
    (HOOKS, TrustKind::Hooks),
    (".tiller/plugin.toml", TrustKind::Plugin),
    (".tiller/MEMORY.md", TrustKind::Memory),
    (".tiller/USER.md", TrustKind::Memory),
];
/// Folders of which every file matters.
const FOLDERS: &[(&str, TrustKind)] = &[
    (".tiller/agents", TrustKind::Agent),
    (".tiller/skills", TrustKind::Skill),
    (".claude/skills", TrustKind::Skill),
    (".agents/skills", TrustKind::Skill),
    (".tiller/workflows", TrustKind::Workflow),
    (HOOKS_FOLDER, TrustKind::Hook),
    (".tiller/commands", TrustKind::Command),
    (".claude/commands", TrustKind::Command),
    (".tiller/styles", TrustKind::Style),
    (".tiller/plugins", TrustKind::Plugin),
];

/// One file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    pub item: TrustItem,
    /// What was hashed; `None` for links, large and unreadable files, which are never loaded.
    pub bytes: Option<Vec<u8>>,
}

/// True when a decision about a file with this hash was about this line of it, among others.
pub fn agreed_line(hash: &str, line: &str) -> bool {
    let line = line_hash(line);
    hash.strip_prefix(LINES).is_some_and(|lines| lines.split(',').any(|agreed| agreed == line))
}

fn line_hash(line: &str) -> String {
    blake3::hash(line.as_bytes()).to_hex().to_string()
}

impl FoundFile {
    /// True when it is as it was agreed to: in this form, or a memory file of which each line was agreed to.
    fn is_as(&self, agreed: &str) -> bool {
        if self.item.hash == agreed {
            return true;
        }
        let Some(lines) = self.item.hash.strip_prefix(LINES) else { return false };
        match agreed.strip_prefix(LINES) {
            Some(agreed) => {
                lines.split(',').all(|line| line.is_empty() || agreed.split(',').any(|a| a == line))
            }
            // It was stored as the hash of the whole.
            None => {
                self.bytes.as_deref().is_some_and(|bytes| blake3::hash(bytes).to_hex().as_str() == agreed)
            }
        }
    }
}

/// Everything that was found in one folder, sorted by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderConfig {
    pub found: Vec<FoundFile>,
    /// There was more than is listed: nothing of the folder may be loaded.
    pub too_much: bool,
}

impl FolderConfig {
    /// For the dialog.
    pub fn items(&self) -> Vec<TrustItem> {
        self.found.iter().map(|f| f.item.clone()).collect()
    }

    /// Without the memory file at `path`: it was made on this machine.
    #[must_use]
    pub fn without_memory(mut self, path: &str) -> Self {
        self.found.retain(|f| f.item.kind != TrustKind::Memory || f.item.path != path);
        self
    }

    /// Sets the lines of a memory file that were not written on this machine: each of them was agreed to, or asks.
    pub fn set_lines(&mut self, path: &str, lines: &[String]) {
        let is_read = |f: &&mut FoundFile| f.item.path == path && f.bytes.is_some();
        if let Some(found) = self.found.iter_mut().find(is_read) {
            let hashes: Vec<String> = lines.iter().map(|line| line_hash(line)).collect();
            found.item.hash = format!("{LINES}{}", hashes.join(","));
        }
    }

    /// Adds what a command runs, where it is not known in this form.
    fn pin(&mut self, items: Vec<TrustItem>) {
        for item in items {
            let new = FoundFile { item, bytes: Some(Vec::new()) };
            match self.found.iter_mut().find(|f| f.item.path == new.item.path) {
                Some(known) if known.bytes.is_none() => *known = new,
                Some(_) => {}
                None => self.found.push(new),
            }
        }
    }

    /// Adds items that are no files and belong to the same question.
    pub fn add(&mut self, items: &[TrustItem]) {
        let found = |item: &TrustItem| FoundFile { item: item.clone(), bytes: Some(Vec::new()) };
        self.found.extend(items.iter().map(found));
    }

    fn sorted(mut self) -> Self {
        self.found.sort_by(|a, b| a.item.path.cmp(&b.item.path));
        self.found.dedup_by(|a, b| a.item.path == b.item.path);
        self
    }

    /// The content that was hashed, by path relative to the folder.
    pub fn bytes(&self, path: &str) -> Option<&[u8]> {
        self.found.iter().find(|f| f.item.path == path).and_then(|f| f.bytes.as_deref())
    }

    /// The text of a file that restricts, from the content that was hashed; `None`: there is no such file.
    ///
    /// # Errors
    /// A sentence without a full stop that begins with the file's path: it was not taken, as a link or a folder is not, or it
    /// is not UTF-8.
    pub fn text(&self, path: &str) -> Result<Option<String>, String> {
        let at = |found: &&FoundFile| {
            found.item.path == path || found.bytes.is_none() && Path::new(path).starts_with(&found.item.path)
        };
        let Some(found) = self.found.iter().find(at) else { return Ok(None) };
        let Some(bytes) = &found.bytes else {
            let why = found.item.detail.trim_end_matches(": never loaded");
            return Err(format!("{} cannot be used ({why})", found.item.path));
        };
        tiller_fs::restricting::text_of(bytes.clone()).map(Some).map_err(|why| format!("{path} {why}"))
    }

    /// The decision as it is stored.
    pub fn decision(&self, choice: Choice) -> TrustDecision {
        TrustDecision {
            choice,
            items: self.found.iter().map(|f| (f.item.path.clone(), f.item.hash.clone())).collect(),
        }
    }
}

/// The person's choice. "Not now" (Escape) is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    Trust,
    Never,
}

/// A stored decision: plain data, kept by the store under the folder's real path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustDecision {
    pub choice: Choice,
    /// Path relative to the folder → BLAKE3 of its content, hex.
    pub items: BTreeMap<String, String>,
}

/// A change since the folder was trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Added(String),
    Changed(String),
    Removed(String),
}

/// Whether what a folder brings may be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It brings nothing.
    Nothing,
    /// Never asked.
    New,
    /// Trusted in exactly this form.
    Trusted,
    /// Trusted in another form: nothing is loaded until the user decides again.
    Changed(Vec<Change>),
    /// The person said never.
    Never,
}

impl Status {
    /// True only when everything may be loaded.
    pub fn may_load(&self) -> bool {
        matches!(self, Self::Trusted | Self::Nothing)
    }
}

/// Compares what is there with what was decided.
pub fn status(folder_config: &FolderConfig, stored: Option<&TrustDecision>) -> Status {
    if folder_config.found.is_empty() && !folder_config.too_much {
        return Status::Nothing;
    }
    let Some(stored) = stored else { return Status::New };
    if stored.choice == Choice::Never {
        return Status::Never;
    }
    let mut changes = Vec::new();
    for found in &folder_config.found {
        match stored.items.get(&found.item.path) {
            None => changes.push(Change::Added(found.item.path.clone())),
            Some(hash) if !found.is_as(hash) => changes.push(Change::Changed(found.item.path.clone())),
            Some(_) => {}
        }
    }
    let is_memory = |p: &str| FILES.iter().any(|(path, kind)| *kind == TrustKind::Memory && *path == p);
    let gone = |p: &&String| !folder_config.found.iter().any(|f| f.item.path == **p) && !is_memory(p);
    for path in stored.items.keys().filter(gone) {
        changes.push(Change::Removed(path.clone()));
    }
    if changes.is_empty() && !folder_config.too_much { Status::Trusted } else { Status::Changed(changes) }
}

/// Looks at a folder. Reads the listed names in it, and what its hooks and servers run. `tools`: those that its rules may name.
pub fn discover(folder: &Path, tools: &ToolCatalog) -> FolderConfig {
    let mut search = Search { folder, tools, folder_config: FolderConfig::default() };
    for (path, kind) in FILES.iter().chain(FOLDERS) {
        search.visit(Path::new(path), kind, 0);
    }
    let mut folder_config = search.with_named();
    let mut pinning = Pinning::new(folder);
    let commands = hook_commands(&folder_config);
    for command in commands.iter().take(MAX_COMMANDS) {
        folder_config.pin(pinning.command(command).items(&TrustKind::Hook));
    }
    let servers = SERVERS.iter().filter_map(|path| folder_config.bytes(path)).flat_map(server_lines);
    let servers: Vec<ServerLine> = servers.collect();
    for server in servers.iter().take(MAX_COMMANDS) {
        let pins = pinning.program(&server.below, &server.words, &server.env);
        folder_config.pin(pins.items(&TrustKind::McpServers));
    }
    folder_config.too_much |= commands.len().max(servers.len()) > MAX_COMMANDS;
    folder_config.sorted()
}

/// Looks at the hooks of a folder only: their file, the files beside it, and those that it names.
pub fn discover_hooks(folder: &Path) -> FolderConfig {
    // None of these files is read as rules.
    let tools = ToolCatalog::default();
    let mut search = Search { folder, tools: &tools, folder_config: FolderConfig::default() };
    search.visit(Path::new(HOOKS), &TrustKind::Hooks, 0);
    search.visit(Path::new(HOOKS_FOLDER), &TrustKind::Hook, 0);
    search.with_named().sorted()
}

impl Search<'_> {
    /// Returns what was found, with the files that hooks name and without those that they write.
    fn with_named(mut self) -> FolderConfig {
        for path in named_by_hooks(self.folder, &self.folder_config) {
            self.visit(&path, &TrustKind::Hook, 0);
        }
        leave_out_written(self.folder, &mut self.folder_config);
        self.folder_config
    }
}

/// The command lines in the file of hooks; none where it cannot be read: then no hook runs.
fn hook_commands(folder_config: &FolderConfig) -> Vec<String> {
    fn commands(value: &toml::Value, into: &mut Vec<String>) {
        match value {
            toml::Value::Table(table) => {
                into.extend(table.get("command").and_then(|c| c.as_str()).map(str::to_owned));
                table.values().for_each(|value| commands(value, into));
            }
            toml::Value::Array(all) => all.iter().for_each(|value| commands(value, into)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    if let Ok(Some(text)) = folder_config.text(HOOKS)
        && let Ok(table) = text.parse::<toml::Table>()
    {
        commands(&toml::Value::Table(table), &mut all);
    }
    all.sort();
    all.dedup();
    all
}

/// A server of a project's file that is a program.
#[derive(Clone, Debug)]
pub struct ServerLine {
    pub name: String,
    words: Vec<String>,
    env: Vec<(String, String)>,
    below: String,
}

impl ServerLine {
    /// Returns the content of all that it runs. Reads files.
    pub fn pins(&self, folder: &Path) -> Pins {
        Pins::of_program(folder, &self.below, &self.words, &self.env)
    }
}

/// The servers of a file that are programs.
pub fn server_lines(bytes: &[u8]) -> Vec<ServerLine> {
    // The mark that some editors begin a file with is no part of it: what is used is what was trusted.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let value: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    let servers = value.get("mcpServers").or_else(|| value.get("servers")).and_then(|s| s.as_object());
    let line = |(name, server): (&String, &serde_json::Value)| {
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let command = server.get("command").and_then(text)?;
        let args = server.get("args").and_then(|args| args.as_array());
        let args = args.into_iter().flatten().filter_map(text);
        let env = server.get("env").and_then(|env| env.as_object()).into_iter().flatten();
        let env = env.filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect();
        let below = server.get("cwd").and_then(text).unwrap_or_default();
        Some(ServerLine {
            name: name.clone(),
            words: std::iter::once(command).chain(args).collect(),
            env,
            below,
        })
    };
    servers.into_iter().flatten().filter_map(line).collect()
}

/// Files of the folder that the commands of its hooks name: what they run is trusted with them. One behind a link is found with
/// what the commands run.
fn named_by_hooks(folder: &Path, folder_config: &FolderConfig) -> Vec<PathBuf> {
    let Some(bytes) = folder_config.bytes(HOOKS) else { return Vec::new() };
    let named = hook_files::named(folder, &String::from_utf8_lossy(bytes));
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let is_file = |path: &PathBuf| {
        folder.join(path).is_file()
            && folder.join(path).canonicalize().is_ok_and(|found| found == real.join(path))
    };
    named.into_iter().filter(is_file).collect()
}

/// Removes the files in the folder of hooks that hooks write: they change with each run. One that a command names as well
/// is run.
fn leave_out_written(folder: &Path, folder_config: &mut FolderConfig) {
    let Some(bytes) = folder_config.bytes(HOOKS) else { return };
    let text = String::from_utf8_lossy(bytes).into_owned();
    let named = hook_files::named(folder, &text);
    let scripts = folder_config.found.iter().filter(|f| f.item.kind == TrustKind::Hook);
    let scripts = scripts.filter_map(|f| f.bytes.as_deref()).map(String::from_utf8_lossy);
    let mut written = hook_files::written(&text);
    scripts.for_each(|script| written.extend(hook_files::written(&script)));
    folder_config.found.retain(|found| {
        let path = Path::new(&found.item.path);
        let name = path.file_name().map(|name| name.to_string_lossy());
        let is_log = path.extension().is_some_and(|ending| ending == "log");
        found.item.kind != TrustKind::Hook
            || named.iter().any(|named| named == path)
            || !is_log && name.is_none_or(|name| !written.iter().any(|written| *written == name))
    });
}

/// What an external program's decision is stored under, behind the folder's path: no real path holds two slashes.
const PROGRAMS: &str = "//programs";

/// What the person's "never" to such files is stored under: a yes to other files of the folder stays beside it.
const PROGRAMS_NEVER: &str = "//programs//never";

/// The name under which the "never" about `folder` for external programs is stored.
pub fn programs_never_name(folder: &Path) -> String {
    format!("{}{PROGRAMS_NEVER}", tiller_protocol::names::written(folder))
}

/// The name under which the yes about `folder` for external programs is stored.
pub fn programs_name(folder: &Path) -> String {
    format!("{}{PROGRAMS}", tiller_protocol::names::written(folder))
}

/// The folder of such a name; `None`: the name is a folder's own.
pub fn programs_folder(name: &str) -> Option<PathBuf> {
    let folder = name.strip_suffix(PROGRAMS_NEVER).or_else(|| name.strip_suffix(PROGRAMS));
    folder.map(tiller_protocol::names::path)
}

/// Looks for the files that an external program reads as its own configuration. Links and files that are too large
/// are listed: the program follows and reads them.
pub fn discover_for(folder: &Path, reads: &[String]) -> FolderConfig {
    // None of these files is read as rules.
    let tools = ToolCatalog::default();
    let mut search = Search { folder, tools: &tools, folder_config: FolderConfig::default() };
    for path in reads {
        search.visit(&tiller_protocol::names::path(path), &TrustKind::ProgramSettings, 0);
    }
    let mut folder_config = search.folder_config;
    folder_config.found.sort_by(|a, b| a.item.path.cmp(&b.item.path));
    folder_config
}

/// Those of `brings` that are not in the decision in this form. A link leads to content that has no hash here, so it is
/// never agreed to.
pub fn undecided(folder_config: &FolderConfig, stored: Option<&TrustDecision>) -> Vec<TrustItem> {
    let agreed = |found: &FoundFile| {
        found.bytes.is_some()
            && stored.is_some_and(|s| {
                s.choice == Choice::Trust && s.items.get(&found.item.path) == Some(&found.item.hash)
            })
    };
    folder_config.found.iter().filter(|f| !agreed(f)).map(|f| f.item.clone()).collect()
}

/// The search for files in a folder.
struct Search<'a> {
    folder: &'a Path,
    tools: &'a ToolCatalog,
    /// What was found so far.
    folder_config: FolderConfig,
}

impl Search<'_> {
    /// Adds the file at `path`, or the files below it.
    fn visit(&mut self, path: &Path, kind: &TrustKind, depth: usize) {
        if self.folder_config.found.len() >= MAX_ITEMS || depth > MAX_DEPTH {
            self.folder_config.too_much = true;
            return;
        }
        // Each component on the way must be a real folder.
        let mut at = self.folder.to_path_buf();
        let mut walked = PathBuf::new();
        let count = path.components().count();
        for (i, part) in path.components().enumerate() {
            at.push(part);
            walked.push(part);
            let meta = match fs::symlink_metadata(&at) {
                Ok(meta) => meta,
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return,
                // It may be there, and restrict.
                Err(e) => {
                    return self.add(refused(path, kind, &format!("cannot be read, {e}: never loaded")));
                }
            };
            if meta.file_type().is_symlink() {
                self.add(link(&at, &walked, kind));
                return;
            }
            if i + 1 < count && !meta.is_dir() {
                return;
            }
            if i + 1 == count {
                if meta.is_dir() && FILES.iter().any(|(file, _)| Path::new(file) == path) {
                    self.add(refused(path, kind, "a folder in the place of a file: never loaded"));
                } else if meta.is_dir() {
                    self.list(path, kind, depth);
                } else if meta.is_file() {
                    self.add(file(self.folder, path, kind, meta.len(), self.tools));
                } else {
                    self.add(refused(path, kind, "special file: never loaded"));
                }
            }
        }
    }

    fn add(&mut self, found: FoundFile) {
        if !self.folder_config.found.iter().any(|f| f.item.path == found.item.path) {
            self.folder_config.found.push(found);
        }
    }

    fn list(&mut self, path: &Path, kind: &TrustKind, depth: usize) {
        let opened = beneath::folder_below(self.folder, path);
        let Ok(entries) = opened.and_then(|folder| beneath::entries(&folder, MAX_ITEMS + 1)) else {
            self.add(refused(path, kind, "cannot be read: never loaded"));
            return;
        };
        let mut names: Vec<PathBuf> = entries.into_iter().map(|(name, _)| path.join(name)).collect();
        names.sort();
        for name in names {
            self.visit(&name, kind, depth + 1);
        }
    }
}

fn file(folder: &Path, path: &Path, kind: &TrustKind, len: u64, tools: &ToolCatalog) -> FoundFile {
    if len > MAX_FILE {
        return refused(path, kind, &format!("larger than {} KiB: never loaded", MAX_FILE / 1024));
    }
    let bytes = match beneath::read_below(folder, path, MAX_FILE + 1) {
        Ok(bytes) if bytes.len() as u64 <= MAX_FILE => bytes,
        _ => return refused(path, kind, "cannot be read: never loaded"),
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut about = one_line(&detail(kind, &text, tools));
    if *kind == TrustKind::Command {
        about.push_str(&runs(&text));
    }
    FoundFile {
        item: TrustItem {
            kind: kind.clone(),
            change: None,
            path: name(path),
            detail: about,
            hash: blake3::hash(&bytes).to_hex().to_string(),
        },
        bytes: Some(bytes),
    }
}

fn link(at: &Path, path: &Path, kind: &TrustKind) -> FoundFile {
    let target = fs::read_link(at).map(|t| t.display().to_string()).unwrap_or_default();
    let mut found = refused(path, kind, &format!("a link to {target}: never loaded"));
    found.item.hash = blake3::hash(format!("link {target}").as_bytes()).to_hex().to_string();
    found
}

fn refused(path: &Path, kind: &TrustKind, why: &str) -> FoundFile {
    FoundFile {
        item: TrustItem {
            kind: kind.clone(),
            change: None,
            path: name(path),
            detail: one_line(why),
            hash: blake3::hash(why.as_bytes()).to_hex().to_string(),
        },
        bytes: None,
    }
}

fn name(path: &Path) -> String {
    tiller_protocol::names::written(path)
}

#[cfg(test)]
mod tests;
