//! The keymap and its look-ups.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use super::chord::{Chord, show};
use super::vocabulary::Vocabulary;
use crate::keymap::action::{Action, LEADER};

/// The target of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingTarget {
    /// The first of these that can be done now.
    Actions(Vec<Action>),
    /// Nothing, and outer sections are not asked either (`false` in a file).
    Nothing,
}

/// A key (or several, one after the other) and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub keys: Vec<Chord>,
    pub does: BindingTarget,
    /// From the person's file.
    pub own: bool,
}

/// The answer to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Without a binding.
    None,
    /// More keys must follow.
    Prefix,
    /// Try these in turn.
    Actions(Vec<Action>),
    /// Bound to nothing on purpose.
    Nothing,
}

/// The effective map.
#[derive(Clone, Debug)]
pub struct Keymap {
    words: &'static Vocabulary,
    pub preset: String,
    pub leader: Chord,
    /// Folders of plugins, one of which the preset may come from.
    pub(crate) plugins: Vec<PathBuf>,
    pub(super) scopes: BTreeMap<&'static str, Vec<Binding>>,
    /// For each key the sections with a binding that begins with it. Most keys begin none.
    begins: HashMap<Chord, Vec<&'static str>>,
}

/// One line of `tiller keys` and help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    pub scope: &'static str,
    pub keys: Vec<Chord>,
    pub action: Action,
    pub help: &'static str,
    pub own: bool,
}

impl Keymap {
    /// Without any binding.
    pub(super) fn new(words: &'static Vocabulary, preset: String, leader: Chord) -> Self {
        Self { words, preset, leader, plugins: Vec::new(), scopes: BTreeMap::new(), begins: HashMap::new() }
    }

    /// The actions and sections that it can name.
    pub fn words(&self) -> &'static Vocabulary {
        self.words
    }

    /// Builds the index of first keys. Call it when all bindings are set.
    pub(super) fn index(&mut self) {
        self.begins.clear();
        for (scope, list) in &self.scopes {
            for key in list.iter().filter_map(|b| b.keys.first()) {
                let here = self.begins.entry(*key).or_default();
                if !here.contains(scope) {
                    here.push(scope);
                }
            }
        }
    }

    /// Bindings of one section, in the order of the file.
    pub fn scope(&self, name: &str) -> &[Binding] {
        self.scopes.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns what `keys` (the last one just pressed) mean in these sections, inner first.
    pub fn lookup(&self, scopes: &[&str], keys: &[Chord]) -> Lookup {
        let begun = keys.first().and_then(|first| self.begins.get(first));
        for scope in scopes.iter().filter(|s| begun.is_some_and(|here| here.contains(s))) {
            let mut prefix = false;
            for b in self.scope(scope) {
                if b.keys.len() < keys.len() || b.keys[..keys.len()] != *keys {
                    continue;
                }
                if b.keys.len() > keys.len() {
                    prefix |= b.does != BindingTarget::Nothing;
                    continue;
                }
                return match &b.does {
                    BindingTarget::Actions(a) => Lookup::Actions(a.clone()),
                    BindingTarget::Nothing => Lookup::Nothing,
                };
            }
            if prefix {
                return Lookup::Prefix;
            }
        }
        Lookup::None
    }

    /// Returns what can follow `prefix`, for the which-key box: next key, action (`None`: another prefix).
    /// Inner sections first; a key that an inner section binds is not repeated.
    pub fn following(&self, scopes: &[&str], prefix: &[Chord]) -> Vec<(Chord, Option<Action>)> {
        let mut out: Vec<(Chord, Option<Action>)> = Vec::new();
        for b in scopes.iter().flat_map(|s| self.scope(s)) {
            let Some(next) = b.keys.get(prefix.len()) else { continue };
            if !b.keys.starts_with(prefix) || out.iter().any(|(c, _)| c == next) {
                continue;
            }
            let BindingTarget::Actions(actions) = &b.does else { continue };
            let last = b.keys.len() == prefix.len() + 1;
            out.push((*next, if last { actions.first().copied() } else { None }));
        }
        out
    }

    /// The key that does `action` here, as text; `None` when there is none. The first one of the file
    /// that no inner section covers.
    pub fn describe(&self, action: Action, scopes: &[&str]) -> Option<String> {
        if action == LEADER {
            return Some(self.leader.shown());
        }
        self.keys_of(action, scopes).map(show)
    }

    /// The same as chords. Bindings with the action first come before those with the action as a fallback.
    pub fn keys_of(&self, action: Action, scopes: &[&str]) -> Option<&[Chord]> {
        let find = |fits: &dyn Fn(&[Action]) -> bool| {
            scopes.iter().flat_map(|s| self.scope(s)).find(|b| {
                matches!(&b.does, BindingTarget::Actions(a) if fits(a))
                    && self.reaches(&b.keys, action, scopes)
            })
        };
        find(&|a| a.first() == Some(&action))
            .or_else(|| find(&|a| a[1..].contains(&action)))
            .map(|b| b.keys.as_slice())
    }

    /// True when these keys lead to `action`: no inner section covers them or their beginning.
    fn reaches(&self, keys: &[Chord], action: Action, scopes: &[&str]) -> bool {
        let found = match self.lookup(scopes, keys) {
            Lookup::Actions(found) => found.contains(&action),
            _ => false,
        };
        found && (1..keys.len()).all(|n| self.lookup(scopes, &keys[..n]) == Lookup::Prefix)
    }

    /// All keys of one section that do `action`, as text.
    pub fn all_of(&self, action: Action, scope: &str) -> Vec<String> {
        let does = |b: &&Binding| matches!(&b.does, BindingTarget::Actions(a) if a.contains(&action));
        self.scope(scope).iter().filter(does).map(|b| show(&b.keys)).collect()
    }

    /// The key that does `action` anywhere, with the section it is in.
    pub fn anywhere(&self, action: Action) -> Option<(&'static str, String)> {
        self.scopes.iter().find_map(|(scope, list)| {
            let b =
                list.iter().find(|b| matches!(&b.does, BindingTarget::Actions(a) if a.contains(&action)))?;
            Some((*scope, show(&b.keys)))
        })
    }

    /// The whole map as rows, by section in the order of help.
    pub fn table(&self) -> Vec<KeyRow> {
        let mut rows = Vec::new();
        for s in self.words.scopes() {
            for b in self.scope(s.name) {
                let BindingTarget::Actions(actions) = &b.does else { continue };
                for a in actions {
                    rows.push(KeyRow {
                        scope: s.name,
                        keys: b.keys.clone(),
                        action: *a,
                        help: self.words.find(a.0).map_or("", |spec| spec.help),
                        own: b.own,
                    });
                }
            }
        }
        rows
    }
}
