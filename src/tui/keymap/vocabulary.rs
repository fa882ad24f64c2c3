//! The names that key files, help and palette know: every action and every section of the key file.

use super::action::{Action, ActionSpec};
use super::scope::Scope;

/// All of them, in the order of help.
#[derive(Debug)]
pub struct Vocabulary {
    groups: Vec<(&'static str, Vec<ActionSpec>)>,
    scopes: Vec<Scope>,
    /// Default keys of the section `global` that open dialogs.
    opening: Vec<(&'static str, Action)>,
}

impl Vocabulary {
    /// Of groups of actions with their titles, of sections, and of the keys in `global` that open dialogs.
    pub fn new(
        groups: Vec<(&'static str, Vec<ActionSpec>)>,
        scopes: Vec<Scope>,
        opening: Vec<(&'static str, Action)>,
    ) -> Self {
        Self { groups, scopes, opening }
    }

    /// Default keys of the section `global` that open dialogs.
    pub fn opening(&self) -> &[(&'static str, Action)] {
        &self.opening
    }

    /// Every action with the title of its group.
    pub fn actions(&self) -> impl Iterator<Item = (&'static str, &ActionSpec)> {
        self.groups.iter().flat_map(|(group, list)| list.iter().map(move |s| (*group, s)))
    }

    /// Finds an action by id.
    pub fn find(&self, id: &str) -> Option<&ActionSpec> {
        self.actions().map(|(_, s)| s).find(|s| s.action.0 == id)
    }

    /// Every section.
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// Finds a section.
    pub fn scope(&self, name: &str) -> Option<&Scope> {
        self.scopes.iter().find(|s| s.name == name)
    }

    /// The section `name` and its parents, inner first, `global` last.
    pub fn chain(&self, name: &str) -> Vec<&'static str> {
        let mut out = Vec::with_capacity(4);
        let mut next = self.scope(name);
        while let Some(s) = next {
            if out.contains(&s.name) {
                break;
            }
            out.push(s.name);
            next = s.parent.and_then(|parent| self.scope(parent));
        }
        if !out.contains(&"global") {
            out.push("global");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use crate::shipped;

    #[test]
    fn parents_exist_and_end_in_global() {
        let words = shipped::registry().words();
        for s in words.scopes() {
            assert!(s.parent.is_none_or(|p| words.scope(p).is_some()), "{}", s.name);
            assert_eq!(words.chain(s.name).last(), Some(&"global"));
            assert_eq!(words.scopes().iter().filter(|o| o.name == s.name).count(), 1);
        }
    }

    #[test]
    fn ids_are_unique_and_explained() {
        let mut seen = std::collections::HashSet::new();
        for (_, s) in shipped::registry().words().actions() {
            assert!(seen.insert(s.action.0), "{} twice", s.action.0);
            assert!(!s.label.is_empty() && s.help.len() > 3, "{}", s.action.0);
            assert!(s.action.0.split_once('.').is_some(), "{}", s.action.0);
        }
    }

    /// A label stands behind its key (`Esc stop`): small letters but for names, no full stop, at most four words. A
    /// help text is one sentence without a full stop, and begins with a capital letter.
    #[test]
    fn labels_and_help_texts_have_one_form() {
        for (group, s) in shipped::registry().words().actions() {
            let (id, label, help) = (s.action.0, s.label, s.help);
            assert!(!label.starts_with(char::is_uppercase) || label.starts_with("AUTO"), "{id}: {label:?}");
            assert!(!label.ends_with(['.', ':', '!']) && label.split(' ').count() <= 4, "{id}: {label:?}");
            assert!(!help.starts_with(char::is_lowercase) && !help.ends_with('.'), "{id}: {help:?}");
            assert!(group.starts_with(char::is_uppercase), "{group:?}");
        }
        for scope in shipped::registry().words().scopes() {
            assert!(scope.title.starts_with(char::is_uppercase), "{}", scope.title);
        }
    }
}
