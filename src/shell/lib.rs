//! A command line, taken apart with a real shell grammar into every simple command that would run.
//!
//! Nothing here decides. What cannot be taken apart for certain is [`Analysis::unclear`], and the
//! judge asks. The text of a permission rule is a convenience, not a boundary: a program that is
//! allowed to run may still do anything that its user may.

mod ansi;
mod brace;
mod builtins;
mod code;
mod flags;
mod git;
mod git_keys;
mod guard;
mod name;
mod run_options;
mod runners;
mod spell;
mod variables;
mod walk;
mod word;
mod wrap;
mod wrappers;

pub use builtins::SETTERS;
pub use code::{code_reads, interpreter, takes_code};
pub use git_keys::{git_key_runs_program, git_section_runs_program};
pub use guard::{MAX_CHARS, MAX_PARTS, invisibles};
pub use name::{base_name, program_name};
pub use run_options::runs_other;
pub use runners::is_shell;
pub use spell::{crude_pieces, quote};
pub use variables::{changes_programs, is_cosmetic};

/// Stands for the unknown part of a word in canonical text. A command that holds it is unclear.
pub const HOLE: char = '\u{FFFC}';

/// Why a command with `xargs` is loose.
const FED: &str = "xargs adds arguments that are known only at run time";

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

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A command of its own.
    Command,
    /// A wrapper that adds no power (`env`, `time`, `nice`): an allow rule need not name it.
    Transparent,
    /// Only assignments.
    Assignment,
    /// What a program with options that are not known may run: counts for `ask`, `deny` and danger,
    /// never for `allow`.
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
        spell::canonical(self)
    }

    /// Every spelling that a deny or ask rule is compared with.
    pub fn spellings(&self) -> Vec<String> {
        spell::spellings(self)
    }
}

/// Everything that is known about a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Analysis {
    /// As given.
    pub raw: String,
    pub parts: Vec<Part>,
    /// Redirections of groups and loops.
    pub redirects: Vec<Redirect>,
    /// Why it cannot be understood for certain: it asks in every profile.
    pub unclear: Option<String>,
    /// Why no rule may allow it, although it is understood well enough to run in `full`.
    pub loose: Option<String>,
    /// As `loose`, but for words that `xargs` adds.
    loose_but_fed: Option<String>,
    /// A function calls itself more than once, or in the background.
    pub multiplies: bool,
    /// Folders that the command changes to; `None` in the list is one that is not known.
    pub folders: Vec<Option<String>>,
    /// Words that loops go over.
    pub loops: Vec<Word>,
}

impl Analysis {
    /// Every redirection, of parts and of groups.
    pub fn all_redirects(&self) -> impl Iterator<Item = &Redirect> {
        self.parts.iter().flat_map(|p| p.redirects.iter()).chain(self.redirects.iter())
    }

    /// True when nothing about it is in doubt.
    pub fn is_plain(&self) -> bool {
        self.unclear.is_none() && self.loose.is_none()
    }

    /// The same parts, given as `raw`.
    pub fn with_raw(&self, raw: &str) -> Self {
        Self { raw: raw.to_owned(), ..self.clone() }
    }

    fn set_unclear(&mut self, why: impl Into<String>) {
        self.unclear.get_or_insert_with(|| why.into());
    }

    /// Why no rule may allow it, apart from words that `xargs` hands on.
    pub fn loose_but_fed(&self) -> Option<&str> {
        self.loose_but_fed.as_deref()
    }

    fn set_loose(&mut self, why: impl Into<String>) {
        let why = why.into();
        if why != FED {
            self.loose_but_fed.get_or_insert_with(|| why.clone());
        }
        self.loose.get_or_insert(why);
    }
}

/// Takes a process apart that was started as `command` and is given `input`: what reads its input there
/// reads this.
pub fn analyse_with_input(command: &str, input: &str) -> Analysis {
    walk::analyse_with_input(command, Some(input))
}

/// Takes `command` apart. Never fails: what it cannot do it says in [`Analysis::unclear`].
pub fn analyse(command: &str) -> Analysis {
    walk::analyse(command)
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
