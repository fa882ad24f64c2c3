//! The format of an adapter file.
//!
//! In lists of arguments `{prompt}`, `{model}`, `{session}` and `{cwd}` are replaced by their values.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde::{Deserialize, Deserializer};

use tiller_protocol::Transport;

/// One vendor's program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    /// As in `cli: NAME`.
    pub name: String,
    /// The title for people.
    pub title: String,
    pub program: Program,
    #[serde(default)]
    pub env: Env,
    #[serde(default)]
    pub auth: Auth,
    /// Its needs where it is confined.
    #[serde(default)]
    pub sandbox: SandboxNeeds,
    pub headless: Option<Headless>,
    pub acp: Option<Acp>,
    pub pty: Option<Pty>,
    /// How it receives the paths that the person's rules deny to readers.
    pub denied: Option<DenyOptions>,
    /// Content of a file that exists while the program runs where it must ask; `{file}` in `careful` is its path. For
    /// programs that read their rules from a file only.
    pub careful_file: Option<String>,
}

impl Adapter {
    /// With the path of its file in the arguments that make it ask.
    pub(crate) fn with_file(mut self, path: &str) -> Self {
        let lists = [
            self.headless.as_mut().and_then(|h| h.careful.as_mut()),
            self.acp.as_mut().map(|a| &mut a.careful),
            self.pty.as_mut().and_then(|p| p.careful.as_mut()),
        ];
        for arg in lists.into_iter().flatten().flatten() {
            *arg = arg.replace("{file}", path);
        }
        self
    }

    /// As it works where it is confined.
    pub(crate) fn in_sandbox(mut self) -> Self {
        if let Some(acp) = self.acp.as_mut().filter(|_| !self.sandbox.auto_mode.is_empty()) {
            acp.auto_mode.clone_from(&self.sandbox.auto_mode);
        }
        self
    }

    /// Whether it can enforce rules that deny reading these paths (absolute, globs).
    pub fn holds_to(&self, globs: &[String]) -> bool {
        let plain = |glob: &String| !glob.contains([',', '(', ')']) && !glob.contains(char::is_control);
        let meta = |d: &DenyOptions| self.acp.is_none() || d.meta.is_some();
        self.denied.as_ref().is_some_and(meta) && globs.iter().all(plain)
    }

    /// Whether it reports no tool calls over this transport.
    pub fn is_mute(&self, how: Transport) -> bool {
        how == Transport::Headless && self.headless.as_ref().is_some_and(|h| h.format == Format::Text)
    }
}

/// How a program receives the paths that it may not read. Without it the person is asked before the program starts,
/// since the rules cannot be enforced.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenyOptions {
    /// One rule in the program's own syntax; `{path}` is an absolute path as a glob.
    pub rule: String,
    /// Arguments without a screen and in a terminal; `{rules}` is the list of all rules, separated by commas.
    pub args: Vec<String>,
    /// Over ACP: a JSON pointer to the list in `ask_meta` to which the rules are added; it is created where it is
    /// missing.
    pub meta: Option<String>,
}

impl DenyOptions {
    /// The rules for these paths.
    pub(crate) fn rules(&self, globs: &[String]) -> Vec<String> {
        globs.iter().map(|glob| self.rule.replace("{path}", glob)).collect()
    }

    /// The arguments for these paths; none for no path.
    pub(crate) fn arguments(&self, globs: &[String]) -> Vec<String> {
        if globs.is_empty() {
            return Vec::new();
        }
        let rules = self.rules(globs).join(",");
        self.args.iter().map(|arg| arg.replace("{rules}", &rules)).collect()
    }

    /// Adds the rules to the `_meta` of a session.
    pub(crate) fn add_to(&self, meta: &mut serde_json::Value, globs: &[String]) {
        let Some(pointer) = self.meta.as_ref().filter(|_| !globs.is_empty()) else { return };
        let mut at = meta;
        for key in pointer.split('/').filter(|k| !k.is_empty()) {
            if !at.is_object() {
                *at = serde_json::json!({});
            }
            at = &mut at[key];
        }
        let mut all = at.as_array().cloned().unwrap_or_default();
        all.extend(self.rules(globs).into_iter().map(serde_json::Value::from));
        *at = all.into();
    }
}

/// The program itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub command: String,
    /// Arguments with which it prints its version.
    #[serde(default = "version")]
    pub version: Vec<String>,
    /// The oldest supported version, as dotted numbers.
    pub min: Option<String>,
    /// How to install it.
    pub install: String,
    /// Files and folders, relative to the workspace or a folder above it in the repository, that can make it run
    /// programs or send its key elsewhere. It is started only where the person trusts the existing ones. A file without
    /// the field gets those of the built-in adapter of its name; under another name, those of all of them.
    pub reads: Option<Vec<String>>,
}

impl Program {
    /// The files and folders that configure it, with the default of the field `reads` filled in.
    pub fn reads(&self) -> &[String] {
        self.reads.as_deref().unwrap_or_default()
    }
}

fn version() -> Vec<String> {
    vec!["--version".into()]
}

/// Its environment, beyond the common base.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Env {
    /// Keys of its own vendor. No other program gets them.
    pub keys: Vec<String>,
    /// Other variables that are passed on (addresses, folders).
    pub pass: Vec<String>,
    /// Always set.
    pub set: BTreeMap<String, String>,
    /// Set when Tiller runs as root.
    pub root: BTreeMap<String, String>,
    /// Set when it must ask, and over ACP always.
    pub careful: BTreeMap<String, String>,
    /// Variables of a cloud, which are passed on only where the person has configured the program for it.
    pub cloud: Vec<Cloud>,
    /// Where its own configuration names variables that it reads.
    pub named: Vec<NamedVariables>,
}

/// A cloud through which a program can reach its models.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cloud {
    /// The program's own switch: set to something other than nothing, `0`, `false` or `no`.
    pub when: String,
    /// Variables that it then needs.
    pub pass: Vec<String>,
}

/// Where a program's own configuration names variables.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedVariables {
    /// Files of the person, never of a project; `~` is the home folder, `$NAME` a variable.
    pub files: Vec<String>,
    /// Only group 1 of each match is searched; without it the whole file is.
    #[serde(default)]
    pub within: Option<Pattern>,
    /// Group 1 of each match is a name.
    pub names: Pattern,
}

/// How to detect that it is logged in: when any of these holds, or when nothing is listed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// One of these variables is set.
    pub env: Vec<String>,
    /// One of these files exists; `~` is the home folder, `$NAME` a variable.
    pub files: Vec<String>,
    /// Its output when it is not logged in.
    pub missing: Vec<Pattern>,
    /// What to do.
    pub fix: String,
}

/// What a program needs in the sandbox (the setting `agents.sandbox`), beyond the folder of the agent. `~` is the home
/// folder, `$NAME` a variable; a path whose variable is not set is left out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxNeeds {
    /// Folders of its settings, keys and sessions, which it reads and writes. They are created where they are missing: a
    /// sandbox cannot permit what does not exist.
    pub folders: Vec<String>,
    /// The same for single files. They are not created.
    pub files: Vec<String>,
    /// What in these folders it only reads: settings by which it would run programs later, outside the sandbox too.
    pub protected: Vec<String>,
    /// Files that it would replace through a new one in the home folder, where it cannot make any: each is copied to a path
    /// in one of its folders, unless the copy is newer. What it writes into the copy stays there.
    pub copies: BTreeMap<String, String>,
    /// The domains that it reaches: `example.com`, or `*.example.com` for the names below it. None: every domain.
    pub domains: Vec<String>,
    /// Variables that are set there, unless they are set; `{scratch}` is its folder for temporary files, `~/` its home.
    pub set: BTreeMap<String, String>,
    /// Files that are written into that folder before it starts, by their names.
    pub scratch: BTreeMap<String, String>,
    /// In place of `auto_mode` of `[acp]`: for programs whose own sandbox does not start inside of another one.
    pub auto_mode: Vec<String>,
}

/// The output format of its mode without a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `claude --output-format stream-json`
    Claude,
    /// `codex exec --json`
    Codex,
    /// `gemini -o json` or `stream-json`
    Gemini,
    /// `opencode run --format json`
    Opencode,
    /// Plain text: all of it is the answer.
    Text,
}

/// How the prompt is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptBy {
    /// Of any length.
    Stdin,
    /// `{prompt}` in the arguments; the system allows about 128 KB.
    Argument,
}

/// Its mode without a screen. The order of arguments is `args`, `resume`, `options`, `model`, `auto` or `careful`,
/// `last`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headless {
    pub format: Format,
    pub prompt: PromptBy,
    #[serde(default)]
    pub args: Vec<String>,
    /// Arguments to continue a session. Empty: it cannot.
    #[serde(default)]
    pub resume: Vec<String>,
    #[serde(default)]
    pub options: Vec<String>,
    #[serde(default)]
    pub model: Vec<String>,
    /// Arguments where it may do everything without asking.
    #[serde(default)]
    pub auto: Vec<String>,
    /// Otherwise: arguments with which it refuses everything that was not allowed, whatever its own settings say. Left
    /// out: it is started in this way only where it may do everything; `[]`: it needs none.
    pub careful: Option<Vec<String>>,
    #[serde(default)]
    pub last: Vec<String>,
    /// For plain text: lines that are not part of the answer.
    #[serde(default)]
    pub drop: Vec<Pattern>,
    /// For plain text: a line that reports an edited file (group 1).
    pub edited: Option<Pattern>,
    /// For plain text: tokens sent and received (groups 1 and 2).
    pub tokens: Option<Pattern>,
    /// For plain text: a line that reports a failure, when nothing follows it.
    pub failed: Option<Pattern>,
}

/// The answer when a program reads a file that does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingFile {
    /// A JSON-RPC error, as the protocol says.
    #[default]
    Error,
    /// An empty text: some programs fail to create new files otherwise.
    Empty,
}

/// Its ACP mode, possibly by another program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acp {
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// How to install that program, when it is another one.
    pub install: Option<String>,
    #[serde(default)]
    pub missing_file: MissingFile,
    /// Ids of the mode (or values of the config option `mode`) where everything is allowed; the first that the program
    /// has. A mode in which it still asks is better than one in which it does not: deny rules and the danger list
    /// answer.
    #[serde(default)]
    pub auto_mode: Vec<String>,
    /// As `auto_mode`, for the mode in which it changes files of the folder without asking, and asks for the rest.
    #[serde(default)]
    pub edit_mode: Vec<String>,
    /// As `auto_mode`, for the mode in which it asks before it changes anything. It is sent even when the program does
    /// not list it; without it (and without `[env.careful]`) the program is started only where it may do everything.
    #[serde(default)]
    pub ask_mode: Vec<String>,
    /// Other modes without actions that need permission, which it may enter by itself.
    #[serde(default)]
    pub rest_mode: Vec<String>,
    /// Arguments that make it ask. Over this transport it asks in every profile.
    #[serde(default)]
    pub careful: Vec<String>,
    /// A JSON object, sent as `_meta` of a new session: it overrides its own settings.
    #[serde(default, deserialize_with = "object")]
    pub ask_meta: Option<serde_json::Value>,
    /// Additional variables for this transport.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

fn object<'de, D: Deserializer<'de>>(d: D) -> Result<Option<serde_json::Value>, D::Error> {
    let text = String::deserialize(d)?;
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(value) if value.is_object() => Ok(Some(value)),
        Ok(_) => Err(serde::de::Error::custom("ask_meta must be a JSON object")),
        Err(e) => Err(serde::de::Error::custom(format!("ask_meta is not JSON: {e}"))),
    }
}

/// Its screen in a terminal.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pty {
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub resume: Vec<String>,
    #[serde(default)]
    pub model: Vec<String>,
    #[serde(default)]
    pub auto: Vec<String>,
    /// As in `[headless]`, but it asks on its screen.
    pub careful: Option<Vec<String>>,
    /// Matches when its composer is visible and empty.
    pub ready: Pattern,
    /// Matches while it works.
    pub working: Option<Pattern>,
    /// Matches when it has finished a turn.
    pub done: Option<Pattern>,
    /// After it is ready, seconds for which the screen must not change before the first message.
    #[serde(default = "settle")]
    pub settle: f64,
    /// Seconds of an unchanged screen with `ready` that end a turn when `done` matches.
    #[serde(default = "still")]
    pub still: f64,
    /// As `still`, when `done` does not match.
    #[serde(default = "quiet")]
    pub quiet: f64,
    /// Seconds without a change after which an unknown screen counts as waiting for the person.
    #[serde(default = "unknown")]
    pub unknown: f64,
    /// Matches the selected line of a list. Left out: the line begins with one of the usual glyphs (`❯`, `›`, `>`,
    /// ...).
    pub marker: Option<Pattern>,
    /// Maximum seconds until its first prompt.
    #[serde(default = "start")]
    pub start: f64,
    /// Lines of its answer begin with this; the rest of its screen is frames and status.
    pub answer: Option<Pattern>,
    /// Keys that end it.
    #[serde(default)]
    pub quit: String,
    /// Known dialogs; the first that matches counts.
    #[serde(default)]
    pub dialog: Vec<Dialog>,
    /// Rules on the rendered screen, in descending precedence.
    #[serde(default)]
    pub state: Vec<Rule>,
}

fn settle() -> f64 {
    1.0
}
fn still() -> f64 {
    0.3
}
fn quiet() -> f64 {
    2.0
}
fn start() -> f64 {
    60.0
}
fn unknown() -> f64 {
    3.0
}

/// A dialog on its screen.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialog {
    pub name: String,
    /// All must match the screen.
    pub all: Vec<Pattern>,
    /// Whether it is a request for permission. Otherwise it is a question with choices.
    #[serde(default)]
    pub permission: bool,
    /// For a permission: the command that would run (group 1 of the first match). Since it is read from a screen, it
    /// can only make the answer stricter (deny rules, the danger list).
    #[serde(default)]
    pub command: Vec<Pattern>,
    /// Id of the option that is selected without asking. Only for decisions that the job implies (for instance that
    /// this folder is trusted).
    pub rule: Option<String>,
    /// As `rule`, when the job approves everything. Never for a permission: rules answer those.
    pub auto: Option<String>,
    pub option: Vec<DialogOption>,
}

/// One option of a dialog.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DialogOption {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub kind: Kind,
    /// The keys to type: text, with `<enter>`, `<esc>`, `<up>`, `<down>`, `<tab>`, `<space>`, `<ctrl-c>`.
    #[serde(default)]
    pub keys: String,
    /// Instead of keys, a pattern of its line in a list: the selection is moved there, verified, and confirmed with
    /// Enter. For lists without numbers, whose order or default may change.
    pub line: Option<Pattern>,
}

/// [`super::super::ChoiceKind`] as written in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    #[default]
    Other,
}

/// The meaning of a pattern on the screen.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub on: Pattern,
    pub means: Means,
}

/// A state as written in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    Working,
    Blocked,
    Idle,
    Failed,
}

/// A regular expression in multi-line mode.
#[derive(Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles it.
    ///
    /// # Errors
    /// When it is invalid or too large.
    pub fn new(text: &str) -> Result<Self, String> {
        let built = regex::RegexBuilder::new(text).multi_line(true).size_limit(1 << 20).build();
        built.map(Self).map_err(|e| e.to_string().lines().last().unwrap_or("no pattern").trim().to_owned())
    }

    /// Whether it matches somewhere in `text`.
    pub fn found(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Group 1 of each match in `text`.
    pub fn each<'a>(&self, text: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.captures_iter(text).filter_map(|found| Some(found.get(1)?.as_str()))
    }

    /// The first two groups of the first match in `text`.
    pub fn pair<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str)> {
        let found = self.0.captures(text)?;
        Some((found.get(1)?.as_str(), found.get(2)?.as_str()))
    }

    /// The first group of the first match in `text`, or the whole match.
    pub fn group<'a>(&self, text: &'a str) -> Option<&'a str> {
        let found = self.0.captures(text)?;
        found.get(1).or_else(|| found.get(0)).map(|m| m.as_str())
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.0)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::new(&text).map_err(|e| serde::de::Error::custom(format!("`{text}` is not a pattern: {e}")))
    }
}
