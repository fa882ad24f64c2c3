//! Files of workflows: TOML or YAML, taken apart into steps with the line of each. The engine checks what a step may
//! contain.
//!
//! ```text
//! description = "Build and review"
//!
//! [[steps]]
//! id = "build"
//! goal = "Make it build"
//! agent = "coder"
//! review = { by = "reviewer", rounds = 2 }
//!
//! [[steps]]
//! id = "tell"
//! goal = "Write the notes"
//! needs = ["build"]
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::problem::Problem;
use crate::text::{self, Body, Source};

/// Bytes of a file at most.
pub const LARGEST: usize = 256 * 1024;
/// The keys of a file.
const KEYS: &[&str] = &["description", "name", "steps"];

/// A file's text, taken apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkflowSource {
    /// Its `name`, or the file's.
    pub name: String,
    pub description: String,
    pub steps: Vec<WorkflowSourceStep>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowSourceStep {
    /// Line and column where it begins, from 1.
    pub at: (usize, usize),
    pub value: Value,
    /// Where each of its keys stands; those within a table after a dot: `review.by`.
    pub keys: BTreeMap<String, (usize, usize)>,
}

impl WorkflowSourceStep {
    /// `keys`: where each key of the step begins in the text. Those within its tables stand between it and the next one.
    fn new(source: &Source<'_>, at: usize, value: Value, keys: &[(String, usize)], end: usize) -> Self {
        let mut places = BTreeMap::new();
        for (key, from) in keys {
            places.insert(key.clone(), source.at(*from));
            let next = keys.iter().map(|(_, other)| *other).filter(|other| other > from).min();
            let part = source.text.get(*from + key.len()..next.unwrap_or(end)).unwrap_or_default();
            let inner = value.get(key).and_then(Value::as_object).into_iter().flat_map(|table| table.keys());
            for name in inner {
                if let Some(place) = position(part, name) {
                    places.insert(format!("{key}.{name}"), source.at(*from + key.len() + place));
                }
            }
        }
        Self { at: source.at(at), value, keys: places }
    }
}

/// Where a key stands in a part of a file: the word, perhaps in quotes, before a colon or an equals sign.
fn position(text: &str, key: &str) -> Option<usize> {
    // An empty key is found everywhere.
    if key.is_empty() {
        return None;
    }
    let word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_key = |at: &usize| {
        let after = text[at + key.len()..].trim_start_matches(['"', '\'', ' ', '\t']);
        !text[..*at].ends_with(word) && after.starts_with([':', '='])
    };
    text.match_indices(key).map(|(at, _)| at).find(is_key)
}

/// Whether a file is one of a workflow, by its name: its stem.
pub fn stem(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    let (stem, ending) = name.rsplit_once('.')?;
    (matches!(ending, "toml" | "yaml" | "yml") && !stem.is_empty()).then_some(stem)
}

/// Takes a file apart.
///
/// # Errors
/// What is wrong with it, with its place.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<WorkflowSource, Problem> {
    if bytes.len() > LARGEST {
        return Err(Problem::file(path, format!("the file is larger than {} KiB", LARGEST / 1024)));
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(Problem::file(path, "this is not UTF-8 text"));
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = Source { path, text };
    let toml = path.extension().is_some_and(|e| e == "toml");
    let mut file = if toml { from_toml(&source)? } else { from_yaml(&source)? };
    if file.name.is_empty() {
        file.name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    }
    Ok(file)
}

fn from_toml(source: &Source<'_>) -> Result<WorkflowSource, Problem> {
    let root = text::parse(source)?;
    let Body::Table(pairs) = &root.body else { return Ok(WorkflowSource::default()) };
    let mut file = WorkflowSource::default();
    for (key, node) in pairs {
        match (key.as_str(), &node.body) {
            ("name", Body::Leaf(Value::String(text))) => file.name.clone_from(text),
            ("description", Body::Leaf(Value::String(text))) => file.description.clone_from(text),
            ("steps", Body::List(steps)) => {
                let starts: Vec<usize> = steps.iter().map(|n| n.value.start).collect();
                let step = |(at, n): (usize, &text::Node)| {
                    let keys: Vec<(String, usize)> = match &n.body {
                        Body::Table(pairs) => {
                            pairs.iter().map(|(key, node)| (key.clone(), node.key.start)).collect()
                        }
                        _ => Vec::new(),
                    };
                    let end = starts.get(at + 1).copied().unwrap_or(source.text.len());
                    WorkflowSourceStep::new(source, n.value.start, n.plain(), &keys, end)
                };
                file.steps = steps.iter().enumerate().map(step).collect();
            }
            (key, _) if KEYS.contains(&key) => {
                let what = if key == "steps" { "a list of steps" } else { "text" };
                return Err(source.problem(node.value.start, key, format!("`{key}` is not {what}")));
            }
            (key, _) => return Err(source.problem(node.key.start, key, unknown(key))),
        }
    }
    Ok(file)
}

fn unknown(key: &str) -> String {
    match tiller_protocol::nearest::nearest(key, KEYS.iter().copied()) {
        Some(near) => format!("unknown key `{key}`; did you mean `{near}`?"),
        None => format!("unknown key `{key}`; allowed: {}", KEYS.join(", ")),
    }
}

/// A file in YAML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Yaml {
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    steps: Vec<Spanned<Value>>,
}

fn from_yaml(source: &Source<'_>) -> Result<WorkflowSource, Problem> {
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let yaml: Yaml = serde_saphyr::from_str(source.text).map_err(|e| {
        let at = e.location().map(|l| (number(l.line()), number(l.column())));
        // The first line says what; the rest draws a picture of the text.
        let said = e.to_string();
        let line = said.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let placed = |head: &str| head.starts_with("line ") && head.contains(" column ");
        let message = match line.split_once(": ") {
            Some((head, rest)) if placed(head) => rest.to_owned(),
            _ => line,
        };
        Problem { at, ..Problem::file(source.path, message) }
    })?;
    let begin = |value: &Spanned<Value>| {
        offset(source.text, number(value.referenced.line()), number(value.referenced.column()))
    };
    let starts: Vec<usize> = yaml.steps.iter().map(begin).collect();
    // The places of the values are known, and those of their keys are just before them.
    let places: YamlPlaces = serde_saphyr::from_str(source.text).unwrap_or_default();
    let mut places = places.steps.into_iter();
    let step = |(at, s): (usize, Spanned<Value>)| {
        let values = places.next().unwrap_or_default();
        let key = |(key, value): (String, Spanned<Value>)| {
            let before = &source.text[..begin(&value)];
            let from = starts[at].min(before.len());
            let place = last_position(&source.text[from..], before.len() - from, &key);
            (key, place.map_or(starts[at], |place| from + place))
        };
        let keys: Vec<(String, usize)> = values.into_iter().map(key).collect();
        let end = starts.get(at + 1).copied().unwrap_or(source.text.len());
        WorkflowSourceStep::new(source, starts[at], s.value, &keys, end)
    };
    Ok(WorkflowSource {
        name: yaml.name,
        description: yaml.description,
        steps: yaml.steps.into_iter().enumerate().map(step).collect(),
    })
}

/// The steps of a file in YAML, with the places of their values.
#[derive(Default, Deserialize)]
struct YamlPlaces {
    #[serde(default)]
    steps: Vec<BTreeMap<String, Spanned<Value>>>,
}

/// The byte of a line and column, in characters from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let mut lines = text.split_inclusive('\n');
    let before: usize = lines.by_ref().take(line.saturating_sub(1)).map(str::len).sum();
    let within = lines.next().unwrap_or_default().char_indices().nth(column.saturating_sub(1));
    (before + within.map_or(0, |(at, _)| at)).min(text.len())
}

/// The last place of a key that begins before `end`.
fn last_position(text: &str, end: usize, key: &str) -> Option<usize> {
    let (mut found, mut from) = (None, 0);
    while let Some(at) = text.get(from..).and_then(|rest| position(rest, key)).map(|at| from + at)
        && at <= end
    {
        (found, from) = (Some(at), at + key.len());
    }
    found
}

#[cfg(test)]
#[path = "workflows_tests.rs"]
mod tests;
