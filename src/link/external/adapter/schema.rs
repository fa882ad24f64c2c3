//! The form of an adapter file.
//!
//! In lists of arguments `{prompt}`, `{model}`, `{session}` and `{cwd}` stand for their values.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde::{Deserialize, Deserializer};

use crate::external::job::Transport;

/// One vendor's program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    /// As in `cli: NAME`.
    pub name: String,
    /// For people.
    pub title: String,
    pub program: Program,
    #[serde(default)]
    pub env: Env,
    #[serde(default)]
    pub auth: Auth,
    pub headless: Option<Headless>,
    pub acp: Option<Acp>,
    pub pty: Option<Pty>,
}

impl Adapter {
    /// Whether it tells of no call of its own while it runs in this way.
    pub fn is_mute(&self, how: Transport) -> bool {
        how == Transport::Headless && self.headless.as_ref().is_some_and(|h| h.format == Format::Text)
    }
}

/// The program itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub command: String,
    /// Arguments that make it say its version.
    #[serde(default = "version")]
    pub version: Vec<String>,
    /// The oldest that works, as dotted numbers.
    pub min: Option<String>,
    /// How to install it.
    pub install: String,
}

fn version() -> Vec<String> {
    vec!["--version".into()]
}

/// Its environment, beyond the common base.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Env {
    /// Its own vendor's keys. No other program gets them.
    pub keys: Vec<String>,
    /// Other variables that it may have (addresses, folders).
    pub pass: Vec<String>,
    /// Always set.
    pub set: BTreeMap<String, String>,
    /// Set when we run as root.
    pub root: BTreeMap<String, String>,
    /// Set when it may not do everything unasked.
    pub careful: BTreeMap<String, String>,
}

/// How to know whether it is logged in. It is when any of these holds, or when nothing is listed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// One of these variables is set.
    pub env: Vec<String>,
    /// One of these files exists; `~` is the home folder, `$NAME` a variable.
    pub files: Vec<String>,
    /// What its output says when it is not logged in.
    pub missing: Vec<Pattern>,
    /// What to do.
    pub fix: String,
}

/// The wire of its mode without a screen.
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

/// How the prompt gets to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptBy {
    /// Of any length.
    Stdin,
    /// `{prompt}` in the arguments; the system allows about 128 KB.
    Argument,
}

/// Its mode without a screen. The order is `args`, `resume`, `options`, `model`, `auto` or `careful`, `last`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headless {
    pub format: Format,
    pub prompt: PromptBy,
    #[serde(default)]
    pub args: Vec<String>,
    /// To go on with a session. Empty: it cannot.
    #[serde(default)]
    pub resume: Vec<String>,
    #[serde(default)]
    pub options: Vec<String>,
    #[serde(default)]
    pub model: Vec<String>,
    /// When it may do everything unasked.
    #[serde(default)]
    pub auto: Vec<String>,
    /// When it may not.
    #[serde(default)]
    pub careful: Vec<String>,
    #[serde(default)]
    pub last: Vec<String>,
    /// Of plain text: lines that are chatter, not answer.
    #[serde(default)]
    pub drop: Vec<Pattern>,
    /// Of plain text: a line that tells of an edited file (group 1).
    pub edited: Option<Pattern>,
    /// Of plain text: tokens sent and received (groups 1 and 2).
    pub tokens: Option<Pattern>,
    /// Of plain text: a line that tells of a failure, when nothing follows it.
    pub failed: Option<Pattern>,
}

/// What the program is told when it reads a file that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingFile {
    /// A JSON-RPC error, as the protocol says.
    #[default]
    Error,
    /// An empty text: some fail to create new files otherwise.
    Empty,
}

/// Its ACP mode, which may be another program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acp {
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// How to install that program, when it is another.
    pub install: Option<String>,
    #[serde(default)]
    pub missing_file: MissingFile,
    /// Ids of the mode (or values of the config option `mode`) in which it asks for nothing; the first that it has.
    #[serde(default)]
    pub auto_mode: Vec<String>,
    /// The same of the mode in which it changes files of the folder unasked, and asks for the rest.
    #[serde(default)]
    pub edit_mode: Vec<String>,
    /// The same of the mode in which it asks before it changes anything.
    #[serde(default)]
    pub ask_mode: Vec<String>,
    /// Extra variables for this transport.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
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
    /// Its composer is there and empty.
    pub ready: Pattern,
    /// It is at work.
    pub working: Option<Pattern>,
    /// It has done a turn.
    pub done: Option<Pattern>,
    /// After it is ready, seconds for which the screen must stay as it is before the first message.
    #[serde(default = "settle")]
    pub settle: f64,
    /// Seconds of a quiet screen with `ready` that end a turn when `done` says nothing.
    #[serde(default = "quiet")]
    pub quiet: f64,
    /// Seconds until its first prompt, at most.
    #[serde(default = "start")]
    pub start: f64,
    /// Lines of its answer begin with this; the rest of its screen is frame and chatter.
    pub answer: Option<Pattern>,
    /// Keys that leave it.
    #[serde(default)]
    pub quit: String,
    /// Dialogs that are known, the first that matches counts.
    #[serde(default)]
    pub dialog: Vec<Dialog>,
    /// Rules on the rendered screen, highest first.
    #[serde(default)]
    pub state: Vec<Rule>,
}

fn settle() -> f64 {
    1.0
}
fn quiet() -> f64 {
    2.0
}
fn start() -> f64 {
    60.0
}

/// A dialog on its screen.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialog {
    pub name: String,
    /// All must be on the screen.
    pub all: Vec<Pattern>,
    /// `permission`: asked as one. Otherwise a question with choices.
    #[serde(default)]
    pub permission: bool,
    /// Id of the option that is taken without asking. Only for what the job itself has decided (for instance that
    /// this folder is trusted).
    pub rule: Option<String>,
    /// As `rule`, when the job approves everything.
    pub auto: Option<String>,
    pub option: Vec<DialogOption>,
}

/// One way to answer a dialog.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DialogOption {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub kind: Kind,
    /// What is typed: text, with `<enter>`, `<esc>`, `<up>`, `<down>`, `<tab>`, `<space>`, `<ctrl-c>`.
    pub keys: String,
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

/// What a pattern on the screen means.
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

/// A regular expression, several lines at once, `^` and `$` at each.
#[derive(Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles it.
    ///
    /// # Errors
    /// When it is none, or too big.
    pub fn new(text: &str) -> Result<Self, String> {
        let built = regex::RegexBuilder::new(text).multi_line(true).size_limit(1 << 20).build();
        built.map(Self).map_err(|e| e.to_string().lines().last().unwrap_or("no pattern").trim().to_owned())
    }

    /// Whether `text` holds it.
    pub fn found(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Its first two groups in `text`.
    pub fn pair<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str)> {
        let found = self.0.captures(text)?;
        Some((found.get(1)?.as_str(), found.get(2)?.as_str()))
    }

    /// Its first group in `text`, or all of it.
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
        Self::new(&text).map_err(|e| serde::de::Error::custom(format!("`{text}` is no pattern: {e}")))
    }
}
