//! Changing one setting in a file, with its comments and its order kept.

use std::path::Path;

use serde_json::Value;
use toml_edit::{DocumentMut, Item, Table};

use crate::load::{Layer, problems_of};
use crate::problem::{ConfigError, Problem};
use crate::schema::ProviderKinds;
use crate::text;
use crate::write;

/// Sets `key` (for instance `ui.theme`) in the user's file at `path`; null takes it away. The file is
/// made where there is none. Nothing is written when the result would be wrong. `kinds`: the names of API formats that
/// a provider can have.
///
/// # Errors
/// [`ConfigError::Wrong`] for an unknown key, a wrong value, or a file that was wrong before;
/// [`ConfigError::Io`].
pub fn set_value(path: &Path, key: &str, value: &Value, kinds: &ProviderKinds) -> Result<(), ConfigError> {
    change(path, key, kinds, |_| value.clone())
}

/// Adds `name` to the list of texts `key` (for instance `skills.disabled`) in the user's file at `path`, or takes it out
/// (`present` is false). All else that the list has stays.
///
/// # Errors
/// As [`set_value`].
pub fn set_member(
    path: &Path,
    key: &str,
    name: &str,
    present: bool,
    kinds: &ProviderKinds,
) -> Result<(), ConfigError> {
    change(path, key, kinds, |there| {
        let there = there.and_then(toml_edit::Value::as_array);
        let texts = there.into_iter().flatten().filter_map(toml_edit::Value::as_str);
        let mut texts: Vec<&str> = texts.filter(|text| *text != name).collect();
        texts.extend(present.then_some(name));
        texts.into()
    })
}

/// Sets `key` to what `value` makes of the value that is there; null takes it away.
fn change(
    path: &Path,
    key: &str,
    kinds: &ProviderKinds,
    value: impl Fn(Option<&toml_edit::Value>) -> Value,
) -> Result<(), ConfigError> {
    write::change_private(path, |old| changed(path, old, key, kinds, &value))
}

/// The text of the file at `path`, which is `old` now, with `key` set to what `value` makes of the value that is there.
/// `None`: nothing changes.
fn changed(
    path: &Path,
    old: &str,
    key: &str,
    kinds: &ProviderKinds,
    value: &impl Fn(Option<&toml_edit::Value>) -> Value,
) -> Result<Option<String>, ConfigError> {
    let wrong = |problem: Problem| ConfigError::Wrong { problems: vec![problem] };
    let source = text::Source { path, text: old };
    // The parser's own message would quote the text.
    text::parse(&source).map_err(wrong)?;
    let mut document: DocumentMut =
        old.parse().map_err(|_| wrong(Problem::file(path, "cannot be edited in its current form")))?;
    let names =
        toml_edit::Key::parse(key).map_err(|_| ConfigError::Refused(format!("`{key}` is not a key")))?;
    let Some((last, sections)) = names.split_last() else {
        return Err(ConfigError::Refused("no key was given".into()));
    };
    let there = names.iter().try_fold(document.as_item(), |item, name| item.get(name.get()));
    let value = value(there.and_then(Item::as_value));
    let mut item: &mut Item = document.as_item_mut();
    for section in sections {
        let Some(table) = item.as_table_like_mut() else {
            return Err(ConfigError::Refused(format!("`{key}` is inside something that is not a section")));
        };
        if !table.contains_key(section.get()) {
            if value.is_null() {
                return Ok(None);
            }
            let mut section_table = Table::new();
            section_table.set_implicit(true);
            table.insert(section.get(), Item::Table(section_table));
        }
        let Some(inner) = table.get_mut(section.get()) else {
            return Err(ConfigError::Refused(format!("`{key}` cannot be set")));
        };
        item = inner;
    }
    let Some(table) = item.as_table_like_mut() else {
        return Err(ConfigError::Refused(format!("`{key}` is inside something that is not a section")));
    };
    match to_toml(&value) {
        None if value.is_null() => drop(table.remove(last.get())),
        None => return Err(ConfigError::Refused(format!("this value for `{key}` cannot be written"))),
        Some(new) => match table.get_mut(last.get()).and_then(Item::as_value_mut) {
            // What stands around it (a comment behind it) stays.
            Some(there) => {
                let decor = there.decor().clone();
                *there = new;
                *there.decor_mut() = decor;
            }
            None => drop(table.insert(last.get(), Item::Value(new))),
        },
    }
    let text = document.to_string();
    let problems = problems_of(path, &text, Layer::User, kinds);
    if problems.is_empty() { Ok(Some(text)) } else { Err(ConfigError::Wrong { problems }) }
}

/// Adds whole tables at the end of the user's file at `path`, or takes them out where they stand as they were added
/// (`add` is false). The file is made where there is none. Nothing is written when the result would be wrong, and when
/// nothing of the tables to take out is in it.
///
/// # Errors
/// As [`set_value`], and [`ConfigError::Refused`] when the tables to add stand in the file already, or those to take out were
/// changed since they were added.
pub fn set_tables(path: &Path, tables: &str, add: bool, kinds: &ProviderKinds) -> Result<(), ConfigError> {
    write::change_private(path, |old| with_tables(path, old, tables, add, kinds))
}

/// The text of the file at `path`, which is `old` now, with `tables` or without them. `None`: nothing changes.
fn with_tables(
    path: &Path,
    old: &str,
    tables: &str,
    add: bool,
    kinds: &ProviderKinds,
) -> Result<Option<String>, ConfigError> {
    let there = old.match_indices(tables).find(|(at, _)| {
        let ends = |c: Option<char>| c.is_none_or(|c| matches!(c, '\n' | '\r'));
        let (before, after) = (&old[..*at], &old[at + tables.len()..]);
        // A key that was added below would fall to another table.
        let next = after.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#'));
        ends(before.chars().next_back())
            && ends(after.chars().next())
            && next.is_none_or(|next| next.starts_with('['))
    });
    let new = match (there, add) {
        (Some(_), true) => return Err(ConfigError::Refused("it stands in the file already".into())),
        // A text is found in a part that was changed; headings and flags are in other tables too.
        (None, false) if !tables.lines().filter_map(quoted).any(|text| old.contains(text)) => {
            return Ok(None);
        }
        (None, false) => {
            return Err(ConfigError::Refused("it does not stand in the file as it was written".into()));
        }
        (None, true) if old.trim().is_empty() => format!("{old}{tables}\n"),
        (None, true) => format!("{}\n\n{tables}\n", old.trim_end()),
        (Some((at, _)), false) => {
            let (before, after) = (old[..at].trim_end(), old[at + tables.len()..].trim_start());
            let between = if before.is_empty() {
                ""
            } else if after.is_empty() {
                "\n"
            } else {
                "\n\n"
            };
            format!("{before}{between}{after}")
        }
    };
    let problems = problems_of(path, &new, Layer::User, kinds);
    if problems.is_empty() { Ok(Some(new)) } else { Err(ConfigError::Wrong { problems }) }
}

/// What a line has between its first and its last quotation mark.
fn quoted(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once('"')?;
    rest.rsplit_once('"').map(|(text, _)| text).filter(|text| !text.is_empty())
}

/// Sets `name` in the section `section` of a TOML text, with its comments and its order kept. For files that
/// are not settings: what is right in them is the caller's to know.
///
/// # Errors
/// [`ConfigError::Refused`] when the text cannot be read, or the section is something else.
pub fn set_entry(text: &str, section: &str, name: &str, value: &Value) -> Result<String, ConfigError> {
    let refused = |why: &str| ConfigError::Refused(format!("`{section}`: {why}"));
    let mut document: DocumentMut = text.parse().map_err(|_| refused("the file cannot be read"))?;
    let item = document.entry(section).or_insert_with(toml_edit::table);
    let table = item.as_table_like_mut().ok_or_else(|| refused("it is not a section"))?;
    let new = to_toml(value).ok_or_else(|| refused("this value cannot be written"))?;
    match table.get_mut(name).and_then(Item::as_value_mut) {
        Some(there) => {
            let decor = there.decor().clone();
            *there = new;
            *there.decor_mut() = decor;
        }
        None => drop(table.insert(name, Item::Value(new))),
    }
    Ok(document.to_string())
}

fn to_toml(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(b) => (*b).into(),
        Value::Number(n) => match n.as_i64() {
            Some(n) => n.into(),
            None => n.as_f64()?.into(),
        },
        Value::String(s) => s.as_str().into(),
        Value::Array(items) => {
            let mut list = toml_edit::Array::new();
            for item in items {
                list.push(to_toml(item)?);
            }
            list.into()
        }
        Value::Object(pairs) => {
            let mut table = toml_edit::InlineTable::new();
            for (name, value) in pairs {
                table.insert(name, to_toml(value)?);
            }
            table.into()
        }
    })
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
