//! A skill's folder against the public format, strictly: for authors, and before a skill is given to others.

use std::path::Path;

use tiller_config::Problem;
use tiller_config::agents::front::{self, Parts, Value};

use crate::skill::{COMPATIBILITY, DESCRIPTION, FILE, NAME, is_name};

/// The keys of the public format.
const KEYS: &[&str] = &["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

/// Everything that is wrong with a skill's folder. Empty: it is valid. Blocks.
pub fn validate(folder: &Path) -> Vec<Problem> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let path = folder.join(FILE);
    match tiller_config::agents::read_file(&path) {
        Ok(bytes) => validate_bytes(&path, &bytes),
        Err(why) => vec![Problem::file(&path, format!("the file cannot be read: {why}"))],
    }
}

/// Everything that is wrong with a `SKILL.md`. `path`: where it is; the name of its folder is the skill's.
pub fn validate_bytes(path: &Path, bytes: &[u8]) -> Vec<Problem> {
    let Parts { pairs, above, body, body_line } = match front::split(path, bytes) {
        Ok(parts) => parts,
        Err(wrong) => return vec![wrong],
    };
    let mut problems = Vec::new();
    let mut wrong = |line: usize, key: &str, message: String, hint: String| {
        let at = Some((line, 1));
        problems.push(Problem { at, key: key.to_owned(), hint: Some(hint), ..Problem::file(path, message) });
    };
    for (line, message, hint) in style(bytes, above, body_line) {
        wrong(line, "", message.to_owned(), hint.to_owned());
    }
    let mut text = TextKeys::default();
    for (key, value) in &pairs {
        let line = above + front::number(key.referenced.line());
        let name = key.value.as_str();
        match (name, &value.value) {
            (other, _) if !KEYS.contains(&other) => {
                wrong(
                    line,
                    other,
                    format!("unknown key `{other}`"),
                    format!("keys are {}; others belong below `metadata`", KEYS.join(", ")),
                );
            }
            ("metadata", Value::Map(_)) => {}
            ("metadata", other) => {
                wrong(
                    line,
                    name,
                    format!("`metadata` is {}, not a map", other.kind()),
                    "write its keys indented below".into(),
                );
            }
            (_, Value::Text(it)) => text.0.push((name, line, it.trim().to_owned())),
            // The format's own checker reads a list as well.
            ("allowed-tools", Value::List(_)) => {}
            (_, other) => {
                wrong(
                    line,
                    name,
                    format!("`{name}` is {}, not text", other.kind()),
                    "put it in quotes if it is text".into(),
                );
            }
        }
    }
    let folder = path.parent().and_then(Path::file_name).map(|f| f.to_string_lossy().into_owned());
    match text.get("name") {
        None if pairs.iter().any(|(k, _)| k.value == "name") => {}
        None => {
            wrong(1, "name", "the name is missing".into(), "add `name: ...`, as the folder is called".into())
        }
        Some((line, name)) if !is_name(name) => {
            let hint = format!("use lower-case letters, digits and single -, at most {NAME}");
            wrong(line, "name", format!("`{}` is not a valid skill name", name.escape_default()), hint);
        }
        Some((line, name)) => {
            if let Some(folder) = folder.filter(|f| f != name) {
                let message =
                    format!("the skill is named `{name}`, but its folder `{}`", folder.escape_default());
                wrong(line, "name", message, "give the folder and the skill the same name".into());
            }
        }
    }
    match text.get("description") {
        None if pairs.iter().any(|(k, _)| k.value == "description") => {}
        None => {
            let hint = "add `description: ...`: what it does and when to use it".to_owned();
            wrong(1, "description", "the description is missing".into(), hint);
        }
        Some((line, it)) => {
            let count = it.chars().count();
            if count == 0 || count > DESCRIPTION {
                let hint = format!("1 to {DESCRIPTION} characters");
                wrong(line, "description", "the description is empty or too long".into(), hint);
            }
        }
    }
    if let Some((line, it)) = text.get("compatibility")
        && !(1..=COMPATIBILITY).contains(&it.chars().count())
    {
        let hint = format!("1 to {COMPATIBILITY} characters");
        wrong(line, "compatibility", "`compatibility` is empty or too long".into(), hint);
    }
    if body.is_empty() {
        wrong(
            body_line,
            "",
            "there is nothing below the front matter".into(),
            "write the instructions".into(),
        );
    }
    problems.sort_by_key(|p| p.at);
    problems
}

/// What the public format's own checker, which reads a smaller YAML, refuses: with the line and what to do. `above`: lines
/// before the front matter's first; `body_line`: the body's first.
fn style(bytes: &[u8], above: usize, body_line: usize) -> Vec<(usize, &'static str, &'static str)> {
    let mut wrong = Vec::new();
    if !bytes.starts_with(b"---") {
        let what = "the file does not begin with ---";
        wrong.push((1, what, "remove the lines and marks before it, a byte order mark among them"));
    }
    let text = String::from_utf8_lossy(bytes);
    // Lines of a value that goes on are indented more than its key.
    let mut goes_on: Option<usize> = None;
    for (at, line) in text.lines().enumerate().take(body_line.saturating_sub(2)).skip(above) {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        if bare.is_empty() || bare.starts_with('#') || goes_on.is_some_and(|key| indent > key) {
            continue;
        }
        let value = bare.strip_prefix("- ").unwrap_or(bare);
        let value = match value.split_once(':') {
            Some((key, rest))
                if !key.starts_with(['"', '\'']) && (rest.is_empty() || rest.starts_with(' ')) =>
            {
                rest.trim()
            }
            _ => value.trim(),
        };
        goes_on = (!value.is_empty()).then_some(indent);
        if value.starts_with(['{', '[']) {
            wrong.push((
                at + 1,
                "maps and lists in one line are not read everywhere",
                "write one entry per line, indented",
            ));
        } else if value.starts_with(['&', '*', '!']) {
            wrong.push((
                at + 1,
                "anchors and tags are not read everywhere",
                "write the value itself, in quotes where it begins with this character",
            ));
        }
    }
    wrong
}

/// Keys with text, and their lines.
#[derive(Default)]
struct TextKeys<'a>(Vec<(&'a str, usize, String)>);

impl TextKeys<'_> {
    fn get(&self, key: &str) -> Option<(usize, &str)> {
        self.0.iter().find(|(k, ..)| *k == key).map(|(_, line, text)| (*line, text.as_str()))
    }
}

#[cfg(test)]
#[path = "strict_tests.rs"]
mod tests;
