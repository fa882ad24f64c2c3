//! Reads key files. A bad file changes nothing: the error names file and line, and the last good map
//! stays.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyModifiers};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::chord::{Chord, parse_sequence, show};
use super::scope;
use super::table::{Binding, Does, Keymap};
use crate::action::{self, Action};

/// The presets that come with the program.
pub const PRESETS: &[(&str, &str)] = &[
    ("default", include_str!("../../../keymaps/default.toml")),
    ("vim", include_str!("../../../keymaps/vim.toml")),
    ("emacs", include_str!("../../../keymaps/emacs.toml")),
];

/// Why a key file was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct KeyError {
    pub file: String,
    /// From 1.
    pub line: usize,
    pub message: String,
}

/// A preset without an overlay.
///
/// # Errors
/// When there is no such preset (the shipped files themselves are tested).
pub fn preset(name: &str) -> Result<Keymap, KeyError> {
    load(name, None)
}

/// The preset (which the overlay may choose itself), then the overlay: its path for messages and its
/// text.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn load(name: &str, overlay: Option<(&str, &str)>) -> Result<Keymap, KeyError> {
    let overlay = match overlay {
        Some((file, text)) => Some(Source::parse(file, text, true)?),
        None => None,
    };
    let name = overlay.as_ref().and_then(|o| o.preset.clone()).unwrap_or_else(|| name.to_owned());
    let mut chain = Vec::new();
    let mut next = Some(name.clone());
    while let Some(n) = next.take() {
        let Some((shipped, text)) = PRESETS.iter().find(|(p, _)| *p == n) else {
            let names: Vec<&str> = PRESETS.iter().map(|(p, _)| *p).collect();
            let place = overlay.as_ref().map(|o| (o.file.clone(), o.preset_line));
            let (file, line) = place.unwrap_or_else(|| ("config.toml".into(), 1));
            let near = nearest(&n, names.iter().copied());
            let message = format!("there is no keymap '{n}'{near}; there are {}", names.join(", "));
            return Err(KeyError { file, line, message });
        };
        if chain.len() > PRESETS.len() {
            break;
        }
        let source = Source::parse(&format!("keymaps/{shipped}.toml"), text, false)?;
        next.clone_from(&source.preset);
        chain.push(source);
    }
    chain.reverse();
    chain.extend(overlay);
    let leader = chain.iter().rev().find_map(|s| s.leader);
    let leader = leader.unwrap_or_else(|| Chord::new(KeyCode::Char('x'), KeyModifiers::CONTROL));
    let mut map = Keymap { preset: name, leader, scopes: BTreeMap::new() };
    for source in &chain {
        source.apply(&mut map)?;
    }
    Ok(map)
}

/// One `key = action` line, not yet joined with the others.
struct Line {
    scope: &'static str,
    keys: String,
    does: Does,
    line: usize,
}

struct Source {
    file: String,
    own: bool,
    preset: Option<String>,
    preset_line: usize,
    leader: Option<Chord>,
    lines: Vec<Line>,
}

impl Source {
    fn parse(file: &str, text: &str, own: bool) -> Result<Self, KeyError> {
        let line_of =
            |at: usize| text.as_bytes()[..at.min(text.len())].iter().filter(|b| **b == b'\n').count() + 1;
        let fail = |at: usize, message: String| KeyError { file: file.into(), line: line_of(at), message };
        let doc = DeTable::parse(text)
            .map_err(|e| fail(e.span().map_or(0, |s| s.start), e.message().replace('\n', ", ")))?;
        let mut out =
            Self { file: file.into(), own, preset: None, preset_line: 1, leader: None, lines: Vec::new() };
        for (key, value) in doc.get_ref() {
            let at = key.span().start;
            let name = key.get_ref().as_ref();
            match (name, value.get_ref()) {
                ("preset", DeValue::String(s)) => {
                    out.preset = Some(s.to_string());
                    out.preset_line = line_of(at);
                }
                ("leader", DeValue::String(s)) => {
                    out.leader = Some(Chord::parse(s).map_err(|m| fail(at, m))?);
                }
                ("preset" | "leader", _) => return Err(fail(at, format!("'{name}' must be a text"))),
                (_, DeValue::Table(table)) => {
                    let Some(found) = scope::find(name) else {
                        let near = nearest(name, scope::SCOPES.iter().map(|s| s.name));
                        return Err(fail(at, format!("there is no section [{name}]{near}")));
                    };
                    for (k, v) in table {
                        lines(found.name, k, v, &mut out.lines, &line_of).map_err(|(at, m)| fail(at, m))?;
                    }
                }
                _ => {
                    let near = nearest(name, ["preset", "leader"].into_iter());
                    return Err(fail(at, format!("'{name}' is not known here{near}")));
                }
            }
        }
        out.lines.sort_by_key(|l| l.line);
        Ok(out)
    }

    fn apply(&self, map: &mut Keymap) -> Result<(), KeyError> {
        let mut here: BTreeMap<(&str, String), usize> = BTreeMap::new();
        for l in &self.lines {
            let fail = |message: String| KeyError { file: self.file.clone(), line: l.line, message };
            let keys = parse_sequence(&l.keys, map.leader).map_err(&fail)?;
            approval_guard(l.scope, &keys, &l.does).map_err(&fail)?;
            if let Some(other) = here.insert((l.scope, show(&keys)), l.line) {
                return Err(fail(format!("'{}' is bound in [{}] already, on line {other}", l.keys, l.scope)));
            }
            let list = map.scopes.entry(l.scope).or_default();
            list.retain(|b| b.keys != keys);
            list.push(Binding { keys, does: l.does.clone(), own: self.own });
        }
        // The person's own keys are the ones that the footer names.
        for list in map.scopes.values_mut() {
            list.sort_by_key(|b| !b.own);
        }
        for l in self.lines.iter().filter(|l| l.does != Does::Nothing) {
            let keys = parse_sequence(&l.keys, map.leader).unwrap_or_default();
            let clash = map.scope(l.scope).iter().find(|b| {
                let (short, long) =
                    if b.keys.len() < keys.len() { (&b.keys, &keys) } else { (&keys, &b.keys) };
                b.does != Does::Nothing && short.len() < long.len() && long.starts_with(short)
            });
            if let Some(b) = clash {
                let (a, b) = (show(&keys), show(&b.keys));
                let message =
                    format!("'{a}' and '{b}' cannot both be bound in [{}]: one begins the other", l.scope);
                return Err(KeyError { file: self.file.clone(), line: l.line, message });
            }
        }
        Ok(())
    }
}

type At<T> = Result<T, (usize, String)>;

/// Reads `key = "action"`, `key = ["action", ...]` (the first that can be done), `key = false`, and
/// `"action" = "key"` or a list of keys.
fn lines(
    scope: &'static str,
    key: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    out: &mut Vec<Line>,
    line_of: &dyn Fn(usize) -> usize,
) -> At<()> {
    let at = key.span().start;
    let name = key.get_ref().as_ref();
    let texts = || -> At<Vec<String>> {
        match value.get_ref() {
            DeValue::String(s) => Ok(vec![s.to_string()]),
            DeValue::Array(list) => list
                .iter()
                .map(|v| match v.get_ref() {
                    DeValue::String(s) => Ok(s.to_string()),
                    _ => Err((v.span().start, "a text is expected here".into())),
                })
                .collect(),
            _ => Err((value.span().start, "an action, a list of actions or false is expected here".into())),
        }
    };
    if is_id(name) {
        let action = known(name).map_err(|m| (at, m))?;
        for keys in texts()? {
            out.push(Line { scope, keys, does: Does::Actions(vec![action]), line: line_of(at) });
        }
        return Ok(());
    }
    let does = match value.get_ref() {
        DeValue::Boolean(false) => Does::Nothing,
        _ => {
            let at = value.span().start;
            let actions = texts()?.iter().map(|t| known(t)).collect::<Result<Vec<_>, _>>();
            let actions = actions.map_err(|m| (at, m))?;
            if actions.is_empty() {
                return Err((at, "an empty list: say false to unbind".into()));
            }
            Does::Actions(actions)
        }
    };
    out.push(Line { scope, keys: name.to_owned(), does, line: line_of(at) });
    Ok(())
}

/// `word.word`, as action ids are; keys never look like that.
fn is_id(text: &str) -> bool {
    text.split_once('.').is_some_and(|(a, b)| {
        let word = |s: &str| s.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        !a.is_empty() && !b.is_empty() && word(a) && word(b)
    })
}

fn known(id: &str) -> Result<Action, String> {
    action::find(id).map(|s| s.action).ok_or_else(|| {
        format!("there is no action '{id}'{}", nearest(id, action::all().map(|(_, s)| s.action.0)))
    })
}

/// Approvals must not be given by keys that one presses without reading.
fn approval_guard(scope: &str, keys: &[Chord], does: &Does) -> Result<(), String> {
    let Does::Actions(actions) = does else { return Ok(()) };
    let yes = actions.iter().any(|a| action::find(a.0).is_some_and(|s| s.yes));
    if matches!(scope, "approval" | "trust" | "question")
        && yes
        && keys.iter().any(|k| matches!(k.code, KeyCode::Enter | KeyCode::Char(' ')))
    {
        return Err(format!("a yes in [{scope}] cannot be bound to Enter, Space or the mouse"));
    }
    Ok(())
}

/// `; did you mean 'x'?`, when something is near enough.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    let far = |n: &str| if word.len() > 2 && n.starts_with(word) { 1 } else { distance(word, n) };
    let best = names.map(|n| (far(n), n)).min();
    match best {
        Some((d, n)) if d <= word.len().max(3) / 2 => format!("; did you mean '{n}'?"),
        _ => String::new(),
    }
}

/// Levenshtein distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let b = b.as_bytes();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (corner + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
