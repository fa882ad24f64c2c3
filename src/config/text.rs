//! One file: from text to values with their places.

use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Number, Value};
use toml_edit::{Document, Item, TableLike};

use crate::problem::Problem;

/// Bytes of a configuration file at most.
const LARGEST: u64 = 1024 * 1024;

/// A value and its position. `key` is the place of its name, `value` of the value.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) body: Body,
    pub(crate) key: Range<usize>,
    pub(crate) value: Range<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Leaf(Value),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
    /// A TOML type that no setting uses; its name.
    Odd(&'static str),
}

impl Node {
    /// Without the places.
    pub(crate) fn plain(&self) -> Value {
        match &self.body {
            Body::Leaf(value) => value.clone(),
            Body::List(items) => Value::Array(items.iter().map(Self::plain).collect()),
            Body::Table(pairs) => {
                Value::Object(pairs.iter().map(|(k, n)| (k.clone(), n.plain())).collect::<Map<_, _>>())
            }
            Body::Odd(_) => Value::Null,
        }
    }
}

/// Where things are in a text.
#[derive(Clone, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    /// Line and column, in characters from 1.
    pub(crate) fn at(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }

    pub(crate) fn problem(&self, at: usize, key: &str, message: impl Into<String>) -> Problem {
        Problem {
            source: self.path.into(),
            at: Some(self.at(at)),
            key: key.into(),
            message: message.into(),
            hint: None,
        }
    }
}

/// The text of a file; `None` when there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Problem> {
    let wrong = |why: String| Problem::file(path, why);
    let Some(bytes) = tiller_fs::restricting::read_bytes(path, LARGEST).map_err(wrong)? else {
        return Ok(None);
    };
    let at = std::str::from_utf8(&bytes).err().map(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let text = String::from_utf8_lossy(good);
        Source { path, text: &text }.at(text.len())
    });
    tiller_fs::restricting::text_of(bytes).map(Some).map_err(|why| Problem { at, ..wrong(why) })
}

/// Sections that restrict nothing. Any other one may: with a file that is not used its hooks, limits or sandbox are lost.
const HARMLESS: &[&str] = &["model", "tiers", "providers", "ui", "embeddings", "detach", "media"];

/// True when a settings file may hold something that restricts: it cannot be read, or has a section that can.
pub fn may_restrict(path: &Path) -> bool {
    let Ok(text) = read(path) else { return true };
    let text = text.unwrap_or_default();
    match parse(&Source { path, text: &text }).map(|root| root.body) {
        Ok(Body::Table(pairs)) => pairs.iter().any(|(key, _)| !HARMLESS.contains(&key.as_str())),
        _ => true,
    }
}

/// Reads TOML.
pub(crate) fn parse(source: &Source<'_>) -> Result<Node, Problem> {
    let document = Document::parse(source.text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        // The first line says what; the rest would quote the text.
        let what = error.message().lines().next().unwrap_or("invalid TOML").to_owned();
        source.problem(at, "", what)
    })?;
    Ok(Node { body: table(document.as_table()), key: 0..0, value: 0..source.text.len() })
}

fn table(table: &dyn TableLike) -> Body {
    let mut pairs = Vec::new();
    for (name, item) in table.iter() {
        let key = table.key(name).and_then(toml_edit::Key::span).unwrap_or(0..0);
        pairs.push((name.to_owned(), node(item, key)));
    }
    Body::Table(pairs)
}

fn node(item: &Item, key: Range<usize>) -> Node {
    let body = match item {
        Item::None => Body::Odd("nothing"),
        Item::Value(value) => leaf(value),
        Item::Table(inner) => table(inner),
        Item::ArrayOfTables(tables) => Body::List(
            tables
                .iter()
                .map(|t| Node { body: table(t), key: key.clone(), value: t.span().unwrap_or(key.clone()) })
                .collect(),
        ),
    };
    // A section's place is its heading.
    let value = match item {
        Item::Value(value) => value.span().unwrap_or_else(|| key.clone()),
        _ => key.clone(),
    };
    Node { body, key, value }
}

fn leaf(value: &toml_edit::Value) -> Body {
    match value {
        toml_edit::Value::String(s) => Body::Leaf(Value::from(s.value().as_str())),
        toml_edit::Value::Integer(n) => Body::Leaf(Value::from(*n.value())),
        toml_edit::Value::Float(n) => Number::from_f64(*n.value())
            .map_or(Body::Odd("infinite or not a number"), |n| Body::Leaf(Value::Number(n))),
        toml_edit::Value::Boolean(b) => Body::Leaf(Value::from(*b.value())),
        toml_edit::Value::Datetime(_) => Body::Odd("a date"),
        toml_edit::Value::Array(items) => Body::List(
            items
                .iter()
                .map(|v| {
                    let span = v.span().unwrap_or(0..0);
                    Node { body: leaf(v), key: span.clone(), value: span }
                })
                .collect(),
        ),
        toml_edit::Value::InlineTable(inner) => table(inner),
    }
}
