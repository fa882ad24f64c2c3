//! The sections of a key file and how they nest: a key that a section does not bind is looked up in
//! its parent, and at last in `global`.

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
}

impl Scope {
    /// Name, parent, title, and whether text is edited there.
    pub const fn new(
        name: &'static str,
        parent: Option<&'static str>,
        title: &'static str,
        text: bool,
    ) -> Self {
        Self { name, parent, title, text }
    }
}
