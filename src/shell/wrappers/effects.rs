//! What a program does with its arguments, as far as it matters to what runs.

use crate::command::Word;

/// A command or code that another command runs.
pub(crate) enum Inner {
    /// A program with its arguments.
    Command {
        argv: Vec<Word>,
        env: Vec<(String, Word)>,
        /// It is not certain that this runs: see [`Role::Guess`](crate::Role::Guess).
        guess: bool,
    },
    /// Text that a shell takes apart.
    Script(String),
}

/// What a command runs, changes and leaves in doubt, apart from its own program.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) runs: Vec<Inner>,
    /// Adds no power of its own.
    pub(crate) transparent: bool,
    /// See [`Part::also`](crate::Part::also).
    pub(crate) also: Vec<String>,
    /// See [`Analysis::unclear`](crate::Analysis::unclear).
    pub(crate) unclear: Option<String>,
    /// The same, for words that are known only when it runs.
    pub(crate) unclear_words: Option<String>,
    /// See [`Analysis::loose`](crate::Analysis::loose).
    pub(crate) loose: Option<String>,
    /// Folders that it changes to; `None`: an unknown folder.
    pub(crate) folders: Vec<Option<String>>,
}

impl Effects {
    pub(crate) fn unclear(why: impl Into<String>) -> Self {
        Self { unclear: Some(why.into()), ..Self::default() }
    }

    pub(crate) fn loose(why: impl Into<String>) -> Self {
        Self { loose: Some(why.into()), ..Self::default() }
    }
}

/// Words that a shell gets as one text.
pub(crate) fn joined(words: &[Word], transparent: bool) -> Effects {
    if words.iter().any(|w| !w.plain()) {
        return Effects::unclear("shell code that is known only at run time");
    }
    let text = words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
    Effects { runs: vec![Inner::Script(text)], transparent, ..Effects::default() }
}
