//! Reads key files. A bad file changes nothing: the error names file and line, and the last good map
//! stays.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crossterm::event::{KeyCode, KeyModifiers};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::chord::{Chord, parse_sequence, written};
use super::table::{Binding, BindingTarget, Keymap};
use super::vocabulary::Vocabulary;
use crate::keymap::action::Action;
use crate::mistakes::{self, Mistakes};

/// The presets that come with the program.
pub const PRESETS: &[(&str, &str)] = &[
    ("default", include_str!("../../../keymaps/default.toml")),
    ("vim", include_str!("../../../keymaps/vim.toml")),
    ("emacs", include_str!("../../../keymaps/emacs.toml")),
];

/// Why a key file was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}{}", mistakes::more(more))]
pub struct KeyError {
    pub file: String,
    /// Of the first mistake, from 1.
    pub line: usize,
    pub message: String,
    /// The other mistakes, by their lines.
    pub more: Vec<(usize, String)>,
    /// The settings name a preset that does not exist; no key file is wrong.
    pub in_settings: bool,
}

/// A preset without an overlay.
///
/// # Errors
/// When there is no such preset (the shipped files themselves are tested).
pub fn preset(words: &'static Vocabulary, name: &str) -> Result<Keymap, KeyError> {
    load(words, name, None)
}

/// The default keys of dialogs and panels, the preset, then the overlay. `words`: what key files can name; `name`: the
/// preset, unless the overlay chooses another; `overlay`: path (for messages) and text of the person's file.
///
/// # Errors
/// Everything that is wrong in the overlay, with lines.
pub fn load(
    words: &'static Vocabulary,
    name: &str,
    overlay: Option<(&str, &str)>,
) -> Result<Keymap, KeyError> {
    load_with(words, name, overlay, &[])
}

/// As [`load`], with the `keymaps` folders of these plugins. A preset that comes with the program takes precedence.
///
/// # Errors
/// As [`load`]; also what is wrong in the keymap of a plugin.
pub fn load_with(
    words: &'static Vocabulary,
    name: &str,
    overlay: Option<(&str, &str)>,
    plugins: &[PathBuf],
) -> Result<Keymap, KeyError> {
    let others = if plugins.is_empty() { Vec::new() } else { of_plugins(plugins) };
    let mut wrong = Mistakes::of(overlay.map_or("", |(_, text)| text));
    let own = overlay.map(|(file, _)| file);
    let overlay = overlay.map(|(file, text)| KeyFile::parse(words, file, text, true, &mut wrong));
    let name = overlay.as_ref().and_then(|o| o.preset.clone()).unwrap_or_else(|| name.to_owned());
    let mut chain = Vec::new();
    let mut next = Some(name.clone());
    while let Some(n) = next.take() {
        let shipped = PRESETS.iter().find(|(p, _)| *p == n);
        let found = shipped.map(|(p, text)| (format!("keymaps/{p}.toml"), Cow::Borrowed(*text)));
        let of_plugin = || {
            let (_, path) = others.iter().find(|(name, _)| *name == n)?;
            Some((path.display().to_string(), Cow::Owned(read_keymap(path)?)))
        };
        let Some((file, text)) = found.or_else(of_plugin) else {
            let shipped = PRESETS.iter().map(|(p, _)| *p);
            let names: Vec<&str> = shipped.chain(others.iter().map(|(name, _)| name.as_str())).collect();
            let place = overlay.as_ref().map(|o| (o.file.clone(), o.preset_line));
            let (file, line) = place.unwrap_or_else(|| ("config.toml".into(), 1));
            let near = nearest(&n, names.iter().copied());
            let message = format!("there is no keymap '{n}'{near}; available: {}", names.join(", "));
            if overlay.is_none() {
                return Err(KeyError { file, line, message, more: Vec::new(), in_settings: true });
            }
            wrong.on(line, message);
            break;
        };
        if chain.len() > PRESETS.len() + others.len() {
            break;
        }
        let mut theirs = Mistakes::of(&text);
        let mut source = KeyFile::parse(words, &file, &text, false, &mut theirs);
        if source.preset.is_none() {
            source.add_registered(words, &mut theirs);
        }
        refuse(&file, theirs)?;
        next.clone_from(&source.preset);
        chain.push(source);
    }
    chain.reverse();
    chain.extend(overlay);
    let leader = chain.iter().rev().find_map(|s| s.leader);
    let leader = leader.unwrap_or_else(|| Chord::new(KeyCode::Char('x'), KeyModifiers::CONTROL));
    let mut map = Keymap::new(words, name, leader);
    map.plugins = plugins.to_vec();
    for source in &chain {
        if source.own {
            source.apply(&mut map, &mut wrong);
            continue;
        }
        let mut theirs = Mistakes::of("");
        source.apply(&mut map, &mut theirs);
        refuse(&source.file, theirs)?;
    }
    refuse(own.unwrap_or_default(), wrong)?;
    map.index();
    Ok(map)
}

/// Largest keymap of a plugin, in bytes.
const LARGEST: u64 = 256 * 1024;

/// The keymaps of plugins: their names and files.
fn of_plugins(plugins: &[PathBuf]) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for plugin in plugins {
        let entries = std::fs::read_dir(plugin.join("keymaps")).into_iter().flatten().flatten();
        for path in
            entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|x| x == "toml"))
        {
            let name = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
            found.extend(name.map(|name| (name, path)));
        }
    }
    found.sort();
    found
}

/// The text of a plugin's keymap; `None`: it is too large, or cannot be read.
fn read_keymap(path: &Path) -> Option<String> {
    let small = std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST);
    small.then(|| std::fs::read_to_string(path).ok()).flatten()
}

fn refuse(file: &str, wrong: Mistakes<'_>) -> Result<(), KeyError> {
    let Some(((line, message), more)) = wrong.end() else { return Ok(()) };
    Err(KeyError { file: file.into(), line, message, more, in_settings: false })
}

/// One `key = action` line, not yet joined with the others.
struct FileLine {
    scope: &'static str,
    keys: String,
    does: BindingTarget,
    line: usize,
}

struct KeyFile {
    file: String,
    own: bool,
    preset: Option<String>,
    preset_line: usize,
    leader: Option<Chord>,
    lines: Vec<FileLine>,
}

impl KeyFile {
    /// Returns what can be read of it; the rest is reported.
    fn parse(
        words: &'static Vocabulary,
        file: &str,
        text: &str,
        own: bool,
        wrong: &mut Mistakes<'_>,
    ) -> Self {
        let mut out =
            Self { file: file.into(), own, preset: None, preset_line: 1, leader: None, lines: Vec::new() };
        let (doc, errors) = DeTable::parse_recoverable(text);
        if wrong.syntax(&errors) {
            return out;
        }
        for (key, value) in doc.get_ref() {
            let at = key.span().start;
            let name = key.get_ref().as_ref();
            match (name, value.get_ref()) {
                ("preset", DeValue::String(s)) => {
                    out.preset = Some(s.to_string());
                    out.preset_line = wrong.line(at);
                }
                ("leader", DeValue::String(s)) => match Chord::parse(s) {
                    Ok(chord) => out.leader = Some(chord),
                    Err(m) => wrong.at(at, m),
                },
                ("preset" | "leader", _) => wrong.at(at, format!("'{name}' must be a string")),
                (_, DeValue::Table(table)) => {
                    let Some(found) = words.scope(name) else {
                        let near = nearest(name, words.scopes().iter().map(|s| s.name));
                        wrong.at(at, format!("there is no section [{name}]{near}"));
                        continue;
                    };
                    for (k, v) in table {
                        let line = wrong.line(k.span().start);
                        let read = match v.get_ref() {
                            DeValue::Boolean(true) if !own => {
                                opening(words, found.name, k, line).map(|l| out.lines.push(l))
                            }
                            _ => lines(words, found.name, k, v, &mut out.lines, line),
                        };
                        if let Err((at, m)) = read {
                            wrong.at(at, m);
                        }
                    }
                }
                _ => {
                    let near = nearest(name, ["preset", "leader"].into_iter());
                    wrong.at(at, format!("unknown name '{name}'{near}"));
                }
            }
        }
        out.lines.sort_by_key(|l| l.line);
        out
    }

    /// Adds the keys that dialogs and panels register, besides those to which the file gives a place (`key = true`).
    fn add_registered(&mut self, words: &'static Vocabulary, wrong: &mut Mistakes<'_>) {
        for (key, action) in words.opening() {
            let does = BindingTarget::Actions(vec![*action]);
            if !self.lines.iter().any(|l| l.scope == "global" && l.keys == *key && l.does == does) {
                self.lines.push(FileLine { scope: "global", keys: (*key).into(), does, line: 1 });
            }
        }
        for scope in words.scopes() {
            for (key, ids) in scope.keys {
                match ids.split(' ').map(|id| known(words, id)).collect() {
                    Ok(actions) => {
                        let does = BindingTarget::Actions(actions);
                        self.lines.push(FileLine { scope: scope.name, keys: (*key).into(), does, line: 1 });
                    }
                    Err(m) => wrong.on(1, m),
                }
            }
        }
    }

    fn apply(&self, map: &mut Keymap, wrong: &mut Mistakes<'_>) {
        let mut here: BTreeMap<(&str, String), usize> = BTreeMap::new();
        let mut good = Vec::new();
        for l in &self.lines {
            let keys = parse_sequence(&l.keys, map.leader);
            let keys = match keys
                .and_then(|keys| approval_guard(map.words(), l.scope, &keys, &l.does).map(|()| keys))
            {
                Ok(keys) => keys,
                Err(m) => {
                    wrong.on(l.line, m);
                    continue;
                }
            };
            if let Some(other) = here.insert((l.scope, written(&keys)), l.line) {
                wrong.on(l.line, format!("'{}' is already bound in [{}], on line {other}", l.keys, l.scope));
                continue;
            }
            let list = map.scopes.entry(l.scope).or_default();
            list.retain(|b| b.keys != keys);
            list.push(Binding { keys: keys.clone(), does: l.does.clone(), own: self.own });
            good.push((l, keys));
        }
        // The footer names the person's own keys.
        for list in map.scopes.values_mut() {
            list.sort_by_key(|b| !b.own);
        }
        for (l, keys) in good.into_iter().filter(|(l, _)| l.does != BindingTarget::Nothing) {
            let clash = map.scope(l.scope).iter().find(|b| {
                let (short, long) =
                    if b.keys.len() < keys.len() { (&b.keys, &keys) } else { (&keys, &b.keys) };
                b.does != BindingTarget::Nothing && short.len() < long.len() && long.starts_with(short)
            });
            if let Some(b) = clash {
                let (a, b) = (written(&keys), written(&b.keys));
                let message = format!(
                    "'{a}' and '{b}' cannot both be bound in [{}]: one is a prefix of the other",
                    l.scope
                );
                wrong.on(l.line, message);
            }
        }
    }
}

type ParseResult<T> = Result<T, (usize, String)>;

/// Reads `key = "action"`, `key = ["action", ...]` (the first that can be done), `key = false`, and
/// `"action" = "key"` or a list of keys.
fn lines(
    words: &Vocabulary,
    scope: &'static str,
    key: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    out: &mut Vec<FileLine>,
    line: usize,
) -> ParseResult<()> {
    let at = key.span().start;
    let name = key.get_ref().as_ref();
    let texts = || -> ParseResult<Vec<String>> {
        match value.get_ref() {
            DeValue::String(s) => Ok(vec![s.to_string()]),
            DeValue::Array(list) => list
                .iter()
                .map(|v| match v.get_ref() {
                    DeValue::String(s) => Ok(s.to_string()),
                    _ => Err((v.span().start, "expected a string".into())),
                })
                .collect(),
            _ => Err((value.span().start, "expected an action, a list of actions or false".into())),
        }
    };
    if is_id(name) {
        let action = known(words, name).map_err(|m| (at, m))?;
        for keys in texts()? {
            out.push(FileLine { scope, keys, does: BindingTarget::Actions(vec![action]), line });
        }
        return Ok(());
    }
    let does = match value.get_ref() {
        DeValue::Boolean(false) => BindingTarget::Nothing,
        _ => {
            let at = value.span().start;
            let actions = texts()?.iter().map(|t| known(words, t)).collect::<Result<Vec<_>, _>>();
            let actions = actions.map_err(|m| (at, m))?;
            if actions.is_empty() {
                return Err((at, "empty list: use false to unbind".into()));
            }
            BindingTarget::Actions(actions)
        }
    };
    out.push(FileLine { scope, keys: name.to_owned(), does, line });
    Ok(())
}

/// Reads `key = true` of a shipped file: a dialog registers this key, and the row gives it its place in help.
fn opening(
    words: &Vocabulary,
    scope: &'static str,
    key: &Spanned<Cow<'_, str>>,
    line: usize,
) -> ParseResult<FileLine> {
    let keys = key.get_ref().as_ref();
    match words.opening().iter().find(|(k, _)| scope == "global" && *k == keys) {
        Some((_, action)) => {
            Ok(FileLine { scope, keys: keys.to_owned(), does: BindingTarget::Actions(vec![*action]), line })
        }
        None => Err((key.span().start, format!("no dialog registers the key '{keys}'"))),
    }
}

/// `word.word`, as action ids are; keys never look like that.
fn is_id(text: &str) -> bool {
    text.split_once('.').is_some_and(|(a, b)| {
        let word = |s: &str| s.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        !a.is_empty() && !b.is_empty() && word(a) && word(b)
    })
}

fn known(words: &Vocabulary, id: &str) -> Result<Action, String> {
    words.find(id).map(|s| s.action).ok_or_else(|| {
        format!("there is no action '{id}'{}", nearest(id, words.actions().map(|(_, s)| s.action.0)))
    })
}

/// Approvals must not be given by keys that one presses without reading.
fn approval_guard(
    words: &Vocabulary,
    scope: &str,
    keys: &[Chord],
    does: &BindingTarget,
) -> Result<(), String> {
    let BindingTarget::Actions(actions) = does else { return Ok(()) };
    let yes = actions.iter().any(|a| words.find(a.0).is_some_and(|s| s.yes));
    if matches!(scope, "approval" | "trust" | "question")
        && yes
        && keys.iter().any(|k| matches!(k.code, KeyCode::Enter | KeyCode::Char(' ')))
    {
        return Err(format!("an approval in [{scope}] cannot be bound to Enter, Space or the mouse"));
    }
    Ok(())
}

/// `; did you mean 'x'?`, when something is near enough.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    let near = tiller_protocol::nearest::nearest(word, names);
    near.map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
