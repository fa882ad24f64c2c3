//! What is known about a command line.

use crate::command::{Part, Redirect, Word};

/// Why a command with `xargs` is [`Analysis::loose`].
pub(crate) const XARGS: &str = "xargs adds arguments that are known only at run time";
/// Why a command with `find -exec` is.
pub(crate) const FIND: &str = "find adds names that are known only at run time";

/// Everything that is known about a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Analysis {
    /// The command line as given.
    pub raw: String,
    /// Every simple command, in the order in which they were found.
    pub parts: Vec<Part>,
    /// Redirections of groups and loops.
    pub redirects: Vec<Redirect>,
    /// The reason for which it is not understood for certain: the person is asked in every profile.
    pub unclear: Option<String>,
    /// As `unclear`, but for words that are known only when it runs.
    pub(crate) unclear_but_words: Option<String>,
    /// Why no rule may allow it, although it is understood well enough to run in `full`.
    pub loose: Option<String>,
    /// As `loose`, but for words that `xargs` and `find -exec` add.
    pub(crate) loose_but_added: Option<String>,
    /// A function calls itself more than once, or in the background.
    pub multiplies: bool,
    /// Folders that the command changes to; `None` in the list: an unknown folder.
    pub folders: Vec<Option<String>>,
    /// Words that loops go over.
    pub loops: Vec<Word>,
}

impl Analysis {
    /// Every redirection, of parts and of groups.
    pub fn all_redirects(&self) -> impl Iterator<Item = &Redirect> {
        self.parts.iter().flat_map(|p| p.redirects.iter()).chain(self.redirects.iter())
    }

    /// Whether nothing about it is in doubt.
    pub fn is_plain(&self) -> bool {
        self.unclear.is_none() && self.loose.is_none()
    }

    /// The same parts, given as `raw`.
    pub fn with_raw(&self, raw: &str) -> Self {
        Self { raw: raw.to_owned(), ..self.clone() }
    }

    pub(crate) fn set_unclear(&mut self, why: impl Into<String>) {
        let why = why.into();
        self.unclear_but_words.get_or_insert_with(|| why.clone());
        self.unclear.get_or_insert(why);
    }

    /// For words that are known only when it runs, and name files or become options; none of them is code.
    pub(crate) fn set_unclear_words(&mut self, why: impl Into<String>) {
        self.unclear.get_or_insert_with(|| why.into());
    }

    /// The same, apart from words that are known only when it runs.
    pub fn unclear_but_words(&self) -> Option<&str> {
        self.unclear_but_words.as_deref()
    }

    /// Why no rule may allow it, apart from words that `xargs` and `find -exec` add.
    pub fn loose_but_added(&self) -> Option<&str> {
        self.loose_but_added.as_deref()
    }

    pub(crate) fn set_loose(&mut self, why: impl Into<String>) {
        let why = why.into();
        if why != XARGS && why != FIND {
            self.loose_but_added.get_or_insert_with(|| why.clone());
        }
        self.loose.get_or_insert(why);
    }
}
