//! A `SKILL.md` to a skill. Lenient: what is over a limit is loaded with a warning; unknown keys are ignored.

use std::collections::BTreeMap;
use std::path::Path;

use tiller_config::Problem;
use tiller_config::agents::Origin;
use tiller_config::agents::front::{self, Pairs, Parts, Value};

use crate::files::SkillFiles;
use crate::skill::{COMPATIBILITY, DESCRIPTION, NAME, Param, Skill, is_hidden, is_name};

/// Characters of any other value that are kept.
const VALUE: usize = 2_000;
/// Entries of a list, and of `metadata`, that are kept.
const ENTRIES: usize = 50;

/// Makes a skill of its file. The warnings are about what was loaded nevertheless.
///
/// # Errors
/// When the skill cannot be used.
pub(crate) fn skill(
    path: &Path,
    from: Origin,
    bytes: &[u8],
    files: SkillFiles,
) -> Result<(Skill, Vec<Problem>), Problem> {
    let mut reader = Reader { path, warnings: Vec::new(), above: 0 };
    let Parts { pairs, above, body, body_line } = reader.split(bytes)?;
    reader.above = above;
    let folder = path.parent().and_then(Path::file_name).map(|f| f.to_string_lossy().into_owned());
    let name = reader.name(&pairs, &folder.unwrap_or_default())?;
    let description = reader.description(&pairs)?;
    if body.is_empty() {
        let hint = "write the instructions below the second ---";
        return Err(reader.problem(body_line, "there is nothing below the front matter", hint));
    }
    let (body, description) = match body.contains(is_hidden) || description.contains(is_hidden) {
        false => (body, description),
        true => {
            reader.warn(
                body_line,
                "it contains characters that cannot be seen, which are left out",
                "remove them",
            );
            (body.replace(is_hidden, ""), description.replace(is_hidden, ""))
        }
    };
    let compatibility = reader.optional(&pairs, "compatibility");
    if compatibility.as_ref().is_some_and(|c| c.chars().count() > COMPATIBILITY) {
        let line = reader.line(&pairs, "compatibility");
        reader.warn(line, "`compatibility` is long", &format!("at most {COMPATIBILITY} characters"));
    }
    let metadata = find(&pairs, "metadata");
    let (params, requires) = match metadata {
        Some(Value::Map(inner)) => (
            find(inner, "params").map(params).unwrap_or_default(),
            find(inner, "requires").map(words).unwrap_or_default(),
        ),
        _ => Default::default(),
    };
    let skill = Skill {
        license: reader.optional(&pairs, "license"),
        metadata: metadata.map(flat).unwrap_or_default(),
        allowed_tools: find(&pairs, "allowed-tools").map(tool_words).unwrap_or_default(),
        file: path.to_path_buf(),
        name,
        description,
        compatibility,
        params,
        requires,
        from,
        pack: None,
        files,
        body,
    };
    Ok((skill, reader.warnings))
}

/// Takes a file apart; text that should be in quotes is read as the text that it is.
pub(crate) fn split(path: &Path, bytes: &[u8]) -> Result<Parts, Problem> {
    Reader { path, warnings: Vec::new(), above: 0 }.split(bytes)
}

struct Reader<'a> {
    path: &'a Path,
    warnings: Vec<Problem>,
    /// Lines above the front matter.
    above: usize,
}

impl Reader<'_> {
    fn problem(&self, line: usize, message: &str, hint: &str) -> Problem {
        Problem { at: Some((line, 1)), hint: Some(hint.to_owned()), ..Problem::file(self.path, message) }
    }

    fn warn(&mut self, line: usize, message: &str, hint: &str) {
        let problem = self.problem(line, message, hint);
        self.warnings.push(problem);
    }

    /// Takes the file apart. Text with `:` that should be in quotes is the commonest mistake in front matter: it is read
    /// as the text that it is, with a warning.
    fn split(&mut self, bytes: &[u8]) -> Result<Parts, Problem> {
        let wrong = match front::split(self.path, bytes) {
            Ok(parts) => return Ok(parts),
            Err(wrong) => wrong,
        };
        let quoted = std::str::from_utf8(bytes).ok().filter(|_| bytes.len() <= front::LARGEST).map(quoted);
        match quoted.map(|text| front::split(self.path, text.as_bytes())) {
            Some(Ok(parts)) => {
                self.warnings.push(wrong);
                Ok(parts)
            }
            _ => Err(wrong),
        }
    }

    /// The line of a key; the first where it is missing.
    fn line(&self, pairs: &Pairs, key: &str) -> usize {
        let at = pairs.iter().find(|(k, _)| k.value == key);
        at.map_or(1, |(k, _)| self.above + front::number(k.referenced.line()))
    }

    /// A text in one line; numbers and so on are no text.
    fn text(&self, pairs: &Pairs, key: &str) -> Result<Option<String>, Problem> {
        match find(pairs, key) {
            None | Some(Value::Nothing) => Ok(None),
            Some(value) => match scalar(value) {
                Some(text) => Ok(Some(one_line(&text))),
                None => Err(self.problem(
                    self.line(pairs, key),
                    &format!("`{key}` is {}, not text", value.kind()),
                    "put it in quotes if it is text",
                )),
            },
        }
    }

    fn optional(&mut self, pairs: &Pairs, key: &str) -> Option<String> {
        match self.text(pairs, key) {
            Ok(text) => text.map(|t| t.chars().take(VALUE).collect()),
            Err(wrong) => {
                self.warnings.push(wrong);
                None
            }
        }
    }

    fn name(&mut self, pairs: &Pairs, folder: &str) -> Result<String, Problem> {
        let line = self.line(pairs, "name");
        let written = self.text(pairs, "name")?;
        if written.is_none() {
            self.warn(line, "the name is missing", "add `name: ...`, as the folder is called");
        }
        let written = written.unwrap_or_else(|| folder.to_owned());
        let name = plain_name(&written);
        if name.is_empty() {
            let hint = format!("use lower-case letters, digits and -, at most {NAME}");
            return Err(self.problem(
                line,
                &format!("`{}` is not a skill name", written.escape_default()),
                &hint,
            ));
        }
        if !is_name(&written) {
            let message =
                format!("`{}` is not a valid skill name; it is called `{name}`", written.escape_default());
            self.warn(line, &message, &format!("use lower-case letters, digits and -, at most {NAME}"));
        } else if written != folder {
            let message =
                format!("the skill is named `{name}`, but its folder `{}`", folder.escape_default());
            self.warn(line, &message, "give the folder and the skill the same name");
        }
        Ok(name)
    }

    fn description(&mut self, pairs: &Pairs) -> Result<String, Problem> {
        let Some(text) = self.text(pairs, "description")?.filter(|t| !t.is_empty()) else {
            let hint = "add `description: ...`: what it does and when to use it";
            return Err(self.problem(self.line(pairs, "description"), "the description is missing", hint));
        };
        if text.chars().count() <= DESCRIPTION {
            return Ok(text);
        }
        let line = self.line(pairs, "description");
        self.warn(
            line,
            "the description is too long and is cut",
            &format!("at most {DESCRIPTION} characters"),
        );
        Ok(text.chars().take(DESCRIPTION).collect())
    }
}

/// The value of a key.
pub(crate) fn find<'a>(pairs: &'a Pairs, key: &str) -> Option<&'a Value> {
    pairs.iter().find(|(k, _)| k.value == key).map(|(_, value)| &value.value)
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text and numbers as text.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.trim().to_owned()),
        Value::Number(n) => Some(n.to_string()),
        _ => None,
    }
}

/// A name that can be typed: in small letters, with `-` for what is not possible, at most twice as long as the format has it.
fn plain_name(text: &str) -> String {
    let mut name = String::new();
    for c in text.to_lowercase().chars().take(2 * NAME) {
        match c {
            'a'..='z' | '0'..='9' => name.push(c),
            _ if name.ends_with('-') || name.is_empty() => {}
            _ => name.push('-'),
        }
    }
    name.trim_end_matches('-').to_owned()
}

/// The front matter with the plain values of text keys put in quotes.
fn quoted(text: &str) -> String {
    let mut fences = 0;
    let line = |line: &str| {
        fences += usize::from(line.trim_end() == "---");
        let (key, value) = line.split_once(": ").filter(|_| fences == 1)?;
        let value = value.trim();
        let plain = !value.is_empty() && !value.starts_with(['"', '\'', '|', '>', '[', '{', '&', '*', '!']);
        let known =
            matches!(key, "name" | "description" | "license" | "compatibility" | "allowed-tools" | "model");
        (plain && known || key == "argument-hint")
            .then(|| format!("{key}: {}", serde_json::Value::from(value)))
    };
    let mut line = line;
    text.lines().map(|l| line(l).unwrap_or_else(|| l.to_owned())).collect::<Vec<_>>().join("\n")
}

/// Words of a list, or of a text with commas or blanks between them.
pub(crate) fn words(value: &Value) -> Vec<String> {
    let mut all = match value {
        Value::Text(text) => text.split([',', ' ', '\n']).map(|w| w.trim().to_owned()).collect(),
        Value::List(items) => items.iter().filter_map(|i| scalar(&i.value)).collect(),
        _ => Vec::new(),
    };
    all.retain(|w| !w.is_empty());
    all.truncate(ENTRIES);
    all
}

/// Tools, between which there are commas or blanks outside of parentheses: `read_file, terminal(git log *)`.
pub(crate) fn tool_words(value: &Value) -> Vec<String> {
    let Value::Text(text) = value else { return words(value) };
    let (mut all, mut depth) = (vec![String::new()], 0_u32);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            all.push(String::new());
        } else if let Some(last) = all.last_mut() {
            last.push(c);
        }
    }
    all.retain(|w| !w.is_empty());
    all.truncate(ENTRIES);
    all
}

/// `a, b=1`, a list of these, or a map of names to what they are.
fn params(value: &Value) -> Vec<Param> {
    let one = |text: &str| {
        let (name, default) = match text.split_once('=') {
            Some((name, default)) => (name.trim(), Some(default.trim().to_owned())),
            None => (text.trim(), None),
        };
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        (plain && !name.is_empty()).then(|| Param { name: name.to_owned(), default })
    };
    let mut all: Vec<Param> = match value {
        Value::Text(text) => text.split(',').filter_map(one).collect(),
        Value::List(items) => items.iter().filter_map(|i| one(&scalar(&i.value)?)).collect(),
        Value::Map(pairs) => pairs.iter().filter_map(|(key, _)| one(&key.value)).collect(),
        _ => Vec::new(),
    };
    all.truncate(ENTRIES);
    all
}

/// The entries of a map that are text or numbers.
fn flat(value: &Value) -> BTreeMap<String, String> {
    let Value::Map(pairs) = value else { return BTreeMap::new() };
    let cut = |text: String| text.chars().take(VALUE).collect();
    pairs.iter().take(ENTRIES).filter_map(|(k, v)| Some((k.value.clone(), cut(scalar(&v.value)?)))).collect()
}
