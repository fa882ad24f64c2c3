//! The sections of a key file and how they nest: a key that a section does not bind is looked up in
//! its parent, and at last in `global`.

/// A key as key files write it (`leader y`), and the ids of its actions separated by spaces: the first that is possible
/// now is done.
pub type DefaultKey = (&'static str, &'static str);

/// One section.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    pub name: &'static str,
    /// Looked at next; `None`: `global`.
    pub parent: Option<&'static str>,
    /// For help and `tiller keys`.
    pub title: &'static str,
    /// Plain characters go to the text that is edited there, so bindings of letters make no sense.
    pub text: bool,
    /// Its keys where no key file says otherwise, in the order of help.
    pub keys: &'static [DefaultKey],
}

impl Scope {
    /// Name, parent, title, and whether text is edited there; without keys.
    pub const fn new(
        name: &'static str,
        parent: Option<&'static str>,
        title: &'static str,
        text: bool,
    ) -> Self {
        Self { name, parent, title, text, keys: &[] }
    }

    /// The same section with default keys.
    #[must_use]
    pub const fn keys(self, keys: &'static [DefaultKey]) -> Self {
        Self { keys, ..self }
    }
}
