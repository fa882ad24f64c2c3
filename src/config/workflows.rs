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
                let step =
                    |n: &text::Node| WorkflowSourceStep { at: source.at(n.value.start), value: n.plain() };
                file.steps = steps.iter().map(step).collect();
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
    let step = |s: Spanned<Value>| WorkflowSourceStep {
        at: (number(s.referenced.line()), number(s.referenced.column())),
        value: s.value,
    };
    Ok(WorkflowSource {
        name: yaml.name,
        description: yaml.description,
        steps: yaml.steps.into_iter().map(step).collect(),
    })
}

#[cfg(test)]
#[path = "workflows_tests.rs"]
mod tests;
