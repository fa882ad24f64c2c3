//! The layers: built-in < user's file < project's file (narrows only, and only when trusted) < environment <
//! flags. A layer with a mistake is left out as a whole.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tiller_protocol::{Effort, Profile};

use crate::check::{check, join};
use crate::narrow;
use crate::problem::Problem;
use crate::schema::ProviderKinds;
use crate::text::{self, Body, Node, Source};
use crate::{Config, Places};

/// Name of the file in both places.
pub const FILE: &str = "config.toml";

/// Path of a project's settings in the project.
pub const PROJECT: &str = ".tiller/config.toml";

/// A layer, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    BuiltIn,
    User,
    Project,
    Environment,
    Flags,
}

impl Layer {
    /// For `tiller config --origin`.
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built in",
            Self::User => "user",
            Self::Project => "project",
            Self::Environment => "environment",
            Self::Flags => "flags",
        }
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingOrigin {
    pub layer: Layer,
    /// The file, and the line in it from 1.
    pub file: Option<(PathBuf, usize)>,
}

impl std::fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.file {
            Some((path, line)) => write!(f, "{} ({}:{line})", self.layer.name(), path.display()),
            None => f.write_str(self.layer.name()),
        }
    }
}

/// Values of the command line. `None` and `false`: not given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    pub model: Option<String>,
    pub profile: Option<Profile>,
    /// For the session that is opened: the configuration keeps what it says of others.
    pub effort: Option<Effort>,
    pub plain: bool,
    pub no_mouse: bool,
    pub max_turns: Option<u32>,
    /// Dollars.
    pub max_cost: Option<f64>,
}

/// Where to read from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sources {
    /// The person's file.
    pub user: Option<PathBuf>,
    /// The project's file.
    pub project: Option<PathBuf>,
    /// Whether the person trusts the project's file in its present form.
    pub trusted: bool,
    /// That form: what was hashed and shown. It is loaded instead of what the file holds by now.
    pub project_text: Option<Vec<u8>>,
    /// `TILLER_MODEL`.
    pub model: Option<String>,
    pub flags: Flags,
    /// The names of API formats that a provider can have.
    pub kinds: ProviderKinds,
}

impl Sources {
    /// The usual places. `root` is the project's folder; `var` reads the environment (a parameter, so that
    /// tests need not set any).
    pub fn usual(
        places: &Places,
        root: Option<&Path>,
        trusted: bool,
        var: &dyn Fn(&str) -> Option<String>,
        flags: Flags,
        kinds: ProviderKinds,
    ) -> Self {
        Self {
            user: Some(places.config.join(FILE)),
            project: root.map(|root| root.join(".tiller").join(FILE)),
            trusted,
            project_text: None,
            model: var("TILLER_MODEL").filter(|m| !m.trim().is_empty()),
            flags,
            kinds,
        }
    }

    /// The present state of the files. Compare with an earlier one to know whether to read again.
    pub fn fingerprint(&self) -> Fingerprint {
        let one = |path: &Option<PathBuf>| {
            let meta = std::fs::metadata(path.as_ref()?).ok()?;
            Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ctime_nsec()))
        };
        Fingerprint([one(&self.user), one(&self.project)], self.trusted)
    }
}

/// Inode, length, seconds and nanoseconds of the last change, of each file.
type FileStamp = Option<(u64, u64, i64, i64, i64)>;

/// When and how the files last changed; cheap to take (two `stat` calls).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([FileStamp; 2], bool);

/// The result of [`load`].
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedConfig {
    /// Of the layers without mistakes.
    pub config: Config,
    /// Where each value comes from, by key (`ui.theme`, `providers.x.base_url`).
    pub origin: BTreeMap<String, SettingOrigin>,
    /// Every mistake in every layer; empty: all is well.
    pub problems: Vec<Problem>,
    /// A project's file that is there but not trusted.
    pub untrusted: Option<PathBuf>,
}

impl LoadedConfig {
    /// Value and origin of each key, in order, for `tiller config --origin`. Header values are left out:
    /// they may be keys.
    pub fn lines(&self) -> Vec<(String, String, SettingOrigin)> {
        let all = serde_json::to_value(&self.config).unwrap_or_default();
        let mut leaves = BTreeMap::new();
        flatten("", &all, &mut leaves);
        leaves
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| {
                let origin = self.origin.get(&key).cloned().unwrap_or(BUILT_IN);
                let secret = key.contains(".headers.") || key.ends_with(".api_key_command");
                let text = if secret { "(set)".into() } else { value.to_string() };
                (key, text, origin)
            })
            .collect()
    }
}

const BUILT_IN: SettingOrigin = SettingOrigin { layer: Layer::BuiltIn, file: None };

/// The last configuration without mistakes, for a running program.
#[derive(Clone, Debug)]
pub struct Live {
    pub sources: Sources,
    good: LoadedConfig,
    seen: Fingerprint,
}

impl Live {
    /// Reads for the first time. What is wrong is left out; see [`LoadedConfig::problems`].
    pub fn start(sources: Sources) -> Self {
        let seen = sources.fingerprint();
        let good = load(&sources);
        Self { sources, good, seen }
    }

    /// What is in use.
    pub fn current(&self) -> &LoadedConfig {
        &self.good
    }

    /// Reads again if a file changed. `None`: nothing changed. With problems the last good one stays.
    pub fn poll(&mut self) -> Option<Result<&LoadedConfig, Vec<Problem>>> {
        let now = self.sources.fingerprint();
        if now == self.seen {
            return None;
        }
        self.seen = now;
        let read = load(&self.sources);
        if !read.problems.is_empty() {
            return Some(Err(read.problems));
        }
        self.good = read;
        Some(Ok(&self.good))
    }
}

/// Reads all layers. Never fails: what is wrong is in [`LoadedConfig::problems`].
pub fn load(sources: &Sources) -> LoadedConfig {
    let built_in = serde_json::to_value(Config::default()).unwrap_or_default();
    let kinds = &sources.kinds;
    let mut stack = Stack { values: built_in, origin: BTreeMap::new(), kinds, problems: Vec::new() };
    let mut untrusted = None;
    if let Some(path) = &sources.user {
        stack.file(path, Layer::User);
    }
    if let Some(path) = &sources.project {
        if sources.trusted {
            match &sources.project_text {
                Some(bytes) => stack.bytes(path, bytes, Layer::Project),
                None => stack.file(path, Layer::Project),
            }
        } else if path.exists() {
            untrusted = Some(path.clone());
        }
    }
    if let Some(model) = &sources.model {
        stack.add(&json!({ "model": model }), Layer::Environment, "TILLER_MODEL", &|_| None);
    }
    stack.add(&of_flags(&sources.flags), Layer::Flags, "the command line", &|_| None);
    let config = serde_json::from_value(stack.values).unwrap_or_default();
    LoadedConfig { config, origin: stack.origin, problems: stack.problems, untrusted }
}

/// Checks the text of a file as [`load`] would, as the user's file or as a project's.
pub fn problems_of(path: &Path, text: &str, layer: Layer, kinds: &ProviderKinds) -> Vec<Problem> {
    match read_layer(&Source { path, text }, layer, kinds) {
        Ok(_) => Vec::new(),
        Err(problems) => problems,
    }
}

fn read_layer(source: &Source<'_>, layer: Layer, kinds: &ProviderKinds) -> Result<Node, Vec<Problem>> {
    let root = text::parse(source).map_err(|problem| vec![problem])?;
    let mut problems = if layer == Layer::Project { narrow::refused(source, &root) } else { Vec::new() };
    let refused: Vec<String> = problems.iter().map(|p| p.key.clone()).collect();
    // Values inside a refused key are not reported again.
    let inside = |key: &str| refused.iter().any(|r| key == r || key.starts_with(&format!("{r}.")));
    problems.extend(check(source, &root, kinds).into_iter().filter(|p| !inside(&p.key)));
    problems.sort_by_key(|p| p.at);
    if problems.is_empty() { Ok(root) } else { Err(problems) }
}

struct Stack<'a> {
    values: Value,
    origin: BTreeMap<String, SettingOrigin>,
    kinds: &'a ProviderKinds,
    problems: Vec<Problem>,
}

impl Stack<'_> {
    fn file(&mut self, path: &Path, layer: Layer) {
        match text::read(path) {
            Ok(Some(text)) => self.text(path, &text, layer),
            Ok(None) => {}
            Err(problem) => self.problems.push(problem),
        }
    }

    fn bytes(&mut self, path: &Path, bytes: &[u8], layer: Layer) {
        match tiller_fs::restricting::text_of(bytes.to_vec()) {
            Ok(text) => self.text(path, &text, layer),
            Err(why) => self.problems.push(Problem::file(path, why)),
        }
    }

    fn text(&mut self, path: &Path, text: &str, layer: Layer) {
        let source = Source { path, text };
        match read_layer(&source, layer, self.kinds) {
            Ok(root) => {
                let mut places = BTreeMap::new();
                place("", &root, &mut places);
                let line = |key: &str| {
                    // A list's elements stand where the list stands.
                    places.get(key).map(|at| (path.to_owned(), source.at(*at).0))
                };
                let plain = root.plain();
                let plain =
                    if layer == Layer::Project { narrow::narrowed(&plain, &self.values) } else { plain };
                self.add(&plain, layer, &path.to_string_lossy(), &line);
            }
            Err(problems) => self.problems.extend(problems),
        }
    }

    /// Lays values over what is there, if the result is a configuration.
    fn add(
        &mut self,
        values: &Value,
        layer: Layer,
        name: &str,
        line: &dyn Fn(&str) -> Option<(PathBuf, usize)>,
    ) {
        let mut merged = self.values.clone();
        merge(&mut merged, values);
        // The schema was checked; this catches what the schema cannot express.
        if let Err(error) = serde_json::from_value::<Config>(merged.clone()) {
            let what = error.to_string();
            return self.problems.push(Problem::file(Path::new(name), what));
        }
        self.values = merged;
        let mut leaves = BTreeMap::new();
        flatten("", values, &mut leaves);
        for key in leaves.into_keys() {
            let file = line(&key);
            self.origin.insert(key, SettingOrigin { layer, file });
        }
    }
}

fn of_flags(flags: &Flags) -> Value {
    let mut out = json!({});
    if let Some(model) = &flags.model {
        out["model"] = json!(model);
    }
    if let Some(profile) = flags.profile {
        out["profile"] = json!(profile);
    }
    if flags.plain {
        out["ui"]["plain"] = json!(true);
    }
    if flags.no_mouse {
        for key in ["mouse_wheel", "mouse_click", "mouse_motion"] {
            out["ui"][key] = json!(false);
        }
    }
    if let Some(turns) = flags.max_turns {
        out["limits"]["turns"] = json!(turns);
    }
    if let Some(cost) = flags.max_cost {
        out["budget"]["session_hard"] = json!(cost);
    }
    out
}

/// Sections are joined, everything else is replaced.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert_with(|| Value::Object(Map::new())), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// Every value that is not a section, by its key.
fn flatten(path: &str, value: &Value, out: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(pairs) => {
            for (name, value) in pairs {
                flatten(&join(path, name), value, out);
            }
        }
        other => {
            out.insert(path.to_owned(), other.clone());
        }
    }
}

fn place(path: &str, node: &Node, out: &mut BTreeMap<String, usize>) {
    match &node.body {
        Body::Table(pairs) => {
            for (name, child) in pairs {
                place(&join(path, name), child, out);
            }
        }
        _ => {
            out.insert(path.to_owned(), node.key.start);
        }
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
