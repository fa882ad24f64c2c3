//! The parts of a command line: words, redirections, and the simple commands that they make up.

use crate::programs::base_name;
use crate::spelling;

/// Stands for the unknown part of a word in canonical text. A command that holds it is unclear.
pub const HOLE: char = '\u{FFFC}';

/// One word of a command as the program would get it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Text after quote removal; [`HOLE`] where only the shell knows.
    pub text: String,
    /// Part of it is only known when it runs.
    pub dynamic: bool,
    /// It may become several words, or an option, when it runs.
    pub splits: bool,
    /// It holds an unquoted pattern for file names.
    pub glob: bool,
    /// It begins with an unquoted `~`, the home folder.
    pub tilde: bool,
    /// It stands for each of these words of [`crate::Analysis::loops`] (from, to) in turn: `"$f"` in a loop over `f`.
    pub each: Option<(usize, usize)>,
    /// It is the path of a pipe from which another command of the same line is read: `<(sort a)`.
    pub pipe: bool,
    /// A program puts names in its place when it runs: `{}` of find, what xargs appends.
    pub added: bool,
}

impl Word {
    /// A word whose text is known.
    pub fn fixed(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A word of which nothing is known.
    pub fn unknown() -> Self {
        Self { text: HOLE.to_string(), dynamic: true, ..Self::default() }
    }

    /// True when the program gets exactly [`Word::text`].
    pub fn plain(&self) -> bool {
        !self.dynamic && !self.glob && !self.tilde
    }
}

/// Direction of a redirection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectKind {
    Read,
    Write,
    Append,
    ReadWrite,
}

/// One redirection to or from a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    pub kind: RedirectKind,
    pub target: Word,
    /// What it opens is the standard input.
    pub input: bool,
}

impl Redirect {
    /// True when it can change a file. The null device and the standard streams are no files.
    pub fn writes(&self) -> bool {
        self.kind != RedirectKind::Read && !self.to_nowhere()
    }

    fn to_nowhere(&self) -> bool {
        self.target.plain()
            && matches!(
                self.target.text.as_str(),
                "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin" | "/dev/tty"
            )
    }
}

/// How a part came about, and with it which rules it counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A command of its own.
    Command,
    /// A wrapper that adds no power (`env`, `time`, `nice`): an allow rule need not name it.
    Transparent,
    /// Only assignments.
    Assignment,
    /// What a program whose options are not modelled may run: counts for `ask`, `deny` and danger, never for
    /// `allow`.
    Guess,
}

/// One simple command that would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The program and its arguments. Empty for assignments alone.
    pub argv: Vec<Word>,
    /// Assignments in front of it, or made by `env`.
    pub env: Vec<(String, Word)>,
    pub redirects: Vec<Redirect>,
    /// Wrappers around it, outermost first.
    pub wrappers: Vec<String>,
    pub role: Role,
    /// Indices of the parts whose output it reads.
    pub piped_from: Option<(usize, usize)>,
    /// Text of a here-document or here-string.
    pub stdin: Option<Word>,
    /// Other spellings that count for `ask` and `deny` rules, never for `allow`.
    pub also: Vec<String>,
}

impl Part {
    /// The command's name as written (with its folder), empty for assignments.
    pub fn program(&self) -> &str {
        self.argv.first().map_or("", |w| w.text.as_str())
    }

    /// The command's name without its folder.
    pub fn base(&self) -> String {
        base_name(self.program())
    }

    /// The arguments after the program.
    pub fn args(&self) -> &[Word] {
        self.argv.get(1..).unwrap_or_default()
    }

    /// Canonical text: assignments that matter, then the words, each quoted when it must be.
    pub fn text(&self) -> String {
        spelling::canonical(self)
    }

    /// Every spelling that a deny or ask rule is compared with.
    pub fn spellings(&self) -> Vec<String> {
        spelling::spellings(self)
    }

    /// Its words as the program gets them: a deny or ask rule is compared with them one by one.
    pub fn worded(&self) -> Vec<String> {
        spelling::worded(self)
    }
}

impl Part {
    /// A command of its own without words.
    pub(crate) fn empty() -> Self {
        Self {
            argv: vec![],
            env: vec![],
            redirects: vec![],
            wrappers: vec![],
            role: Role::Command,
            piped_from: None,
            stdin: None,
            also: vec![],
        }
    }
}
