//! A file against the schema: every unknown key and wrong value at once, each with its place.

use std::sync::LazyLock;

use serde_json::Value;

use crate::problem::Problem;
use crate::schema::ProviderKinds;
use crate::text::{Body, Node, Source};
use tiller_protocol::nearest::nearest;

/// Smallest useful numbers, by key (`*`: any name).
const LEAST: &[(&str, f64)] = &[
    ("limits.turns", 1.0),
    ("limits.attempts", 1.0),
    ("limits.parallel", 1.0),
    ("limits.calls_per_reply", 1.0),
    ("limits.command", 1.0),
    ("limits.command_max", 1.0),
    ("limits.command_processes", 16.0),
    ("limits.command_memory", 1.0),
    ("limits.program_processes", 16.0),
    ("limits.program_memory", 1.0),
    ("limits.output_bytes", 1000.0),
    ("agents.running", 1.0),
    ("agents.turns", 1.0),
    ("agents.seconds", 1.0),
    ("agents.cost", 0.0),
    ("agents.tree_cost", 0.0),
    ("budget.session_soft", 0.0),
    ("budget.session_hard", 0.0),
    ("budget.day_soft", 0.0),
    ("budget.day_hard", 0.0),
    ("budget.tiers.*", 0.0),
    ("hooks.*.timeout", 1.0),
    ("media.*.input", 0.0),
    ("media.*.output", 0.0),
    ("media.*.each", 0.0),
    ("ui.measure", 20.0),
    ("snapshots.file_mb", 1.0),
    ("snapshots.quota_mb", 1.0),
    ("snapshots.files", 1.0),
    ("providers.*.timeouts.*", 0.001),
    ("providers.*.models.*.*", 0.0),
];

/// Largest useful numbers, by key, each with a hint.
const MOST: &[(&str, f64, &str)] =
    &[("embeddings.dimensions", 4096.0, "if it is left out, the vectors have the dimensions of the model")];

/// Key, what fits, and that in words.
type Meaning = (&'static str, fn(&str) -> bool, &'static str);

/// Texts that the types allow and that have no meaning, by key: what they must be.
const TEXTS: &[Meaning] = &[
    ("model", is_model, "a model, as \"provider/model\""),
    ("tiers.fast", is_model, "a model, as \"provider/model\""),
    ("tiers.main", is_model, "a model, as \"provider/model\""),
    ("tiers.deep", is_model, "a model, as \"provider/model\""),
    ("providers.*.base_url", is_address, "a URL that starts with https:// or http://"),
    ("providers.*.api_key_env", is_variable, VARIABLE),
    ("limits.env.*", is_variable, "the name of a variable"),
    ("browser.url", is_devtools, "a URL that starts with wss://, ws://, https:// or http://"),
    ("browser.profile", is_plain_name, "a name of letters, digits, - and _"),
    ("skills.registry", is_address, "a URL that starts with https:// or http://"),
    ("media.vision.url", is_address, "a URL that starts with https:// or http://"),
    ("media.vision.key_env", is_variable, VARIABLE),
    ("media.image.url", is_address, "a URL that starts with https:// or http://"),
    ("media.image.key_env", is_variable, VARIABLE),
    ("media.speech.url", is_address, "a URL that starts with https:// or http://"),
    ("media.speech.key_env", is_variable, VARIABLE),
    ("media.mixture.models.*.url", is_address, "a URL that starts with https:// or http://"),
    ("media.mixture.models.*.key_env", is_variable, VARIABLE),
    ("media.mixture.synthesis.url", is_address, "a URL that starts with https:// or http://"),
    ("media.mixture.synthesis.key_env", is_variable, VARIABLE),
    ("sandbox_network.*", is_domain, DOMAIN),
    ("agents.sandbox_network.*", is_domain, DOMAIN),
];

const VARIABLE: &str = "the name of a variable, for example \"MY_API_KEY\", not the key itself";

const DOMAIN: &str =
    "a domain such as \"crates.io\", \"*.crates.io\" for the names below it, or \"*\" for everything";

/// The key whose values are the names of API formats.
const KIND: &str = "providers.*.kind";

/// Sections with a fixed set of names, though the types allow any.
const NAMES: &[(&str, &[&str])] = &[
    ("budget.tiers", &["fast", "main", "deep"]),
    ("context.layers", &["prompt", "project", "skills", "user", "learnings", "memory", "session", "runtime"]),
];

/// Hints for keys that have another name here, by the last part of the unknown key.
const INSTEAD: &[(&str, &str)] = &[
    (
        "api_key",
        "keys are not stored in this file: write api_key_env = \"NAME_OF_A_VARIABLE\", or enter \
            the key with /setup",
    ),
    (
        "key",
        "keys are not stored in this file: write api_key_env = \"NAME_OF_A_VARIABLE\", or enter \
            the key with /setup",
    ),
    ("url", "did you mean `base_url`?"),
    ("type", "did you mean `kind`?"),
];

fn is_model(text: &str) -> bool {
    text.split_once('/')
        .is_some_and(|(provider, model)| !provider.trim().is_empty() && !model.trim().is_empty())
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|r| !r.is_empty() && !r.starts_with(['/', ':', '?']) && !r.contains(char::is_whitespace))
}

/// A name with at least two labels, `*.` and such a name, or `*`. An address is none: its last label has no letter.
fn is_domain(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let name = name.strip_suffix('.').unwrap_or(name);
    let character = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let label = |l: &str| !l.is_empty() && l.len() <= 63 && l.chars().all(character);
    let letters = |l: &str| l.chars().any(char::is_alphabetic);
    text == "*"
        || name.len() <= 253
            && name.split('.').count() > 1
            && name.split('.').all(label)
            && name.rsplit('.').next().is_some_and(letters)
}

fn is_devtools(text: &str) -> bool {
    ["wss://", "ws://", "https://", "http://"]
        .iter()
        .any(|s| text.strip_prefix(s).is_some_and(|rest| !rest.is_empty()))
}

fn is_plain_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

fn is_variable(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // Names are short; a key that was put here by mistake is reported as one.
    !text.is_empty()
        && text.len() <= 64
        && text.chars().all(word)
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// The JSON schema of the configuration, as `tiller config --schema` prints it.
pub fn schema(kinds: &ProviderKinds) -> Value {
    let mut schema = SCHEMA.clone();
    if let Some(words) = schema.pointer_mut("/$defs/ProviderKind/enum") {
        *words = kinds.names().into();
    }
    schema
}

/// Made once: each file is checked against it.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| schemars::schema_for!(crate::Config).to_value());

/// A key with a name behind it; names that are not bare are quoted as TOML would.
pub(crate) fn join(path: &str, name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let name = if bare { name.to_owned() } else { Value::from(name).to_string() };
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

/// Everything that is wrong in a file. `kinds`: the names of API formats that a provider can have.
pub(crate) fn check(source: &Source<'_>, root: &Node, kinds: &ProviderKinds) -> Vec<Problem> {
    let mut checker = Checker { source, schema: &SCHEMA, kinds, problems: Vec::new() };
    checker.node("", root, &SCHEMA);
    checker.problems
}

struct Checker<'a> {
    source: &'a Source<'a>,
    schema: &'a Value,
    kinds: &'a ProviderKinds,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn wrong(&mut self, at: usize, key: &str, message: String, hint: Option<String>) {
        let mut problem = self.source.problem(at, key, message);
        problem.hint = hint;
        self.problems.push(problem);
    }

    /// The schema that says something: references and "or nothing" are followed.
    fn resolve<'s>(&'s self, mut schema: &'s Value) -> &'s Value {
        // The schema nests a few levels; the bound stops a cycle.
        for _ in 0..16 {
            if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
                let inner = name.strip_prefix('#').and_then(|p| self.schema.pointer(p));
                let Some(inner) = inner else { return schema };
                schema = inner;
            } else if let Some(options) = schema.get("anyOf").and_then(Value::as_array) {
                let some = options.iter().find(|o| o.get("type").and_then(Value::as_str) != Some("null"));
                let Some(some) = some else { return schema };
                schema = some;
            } else {
                break;
            }
        }
        schema
    }

    fn node(&mut self, path: &str, node: &Node, schema: &Value) {
        if matches(KIND, path) {
            let words: Vec<String> = self.kinds.names().iter().map(|k| (*k).to_owned()).collect();
            return self.word(path, node, &words);
        }
        let schema = self.resolve(schema).clone();
        if let Some(words) = words_of(&schema) {
            return self.word(path, node, &words);
        }
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => {
                several.iter().filter_map(Value::as_str).filter(|t| *t != "null").collect()
            }
            _ => vec![],
        };
        match (&node.body, types.first().copied()) {
            (Body::Table(pairs), Some("object")) => {
                for (name, child) in pairs {
                    self.child(path, name, child, &schema);
                }
                self.required(path, node, pairs, &schema);
            }
            (Body::List(items), Some("array")) => {
                for item in items {
                    self.text(&format!("{path}.*"), path, item);
                    self.node(path, item, schema.get("items").unwrap_or(&Value::Null));
                }
            }
            (Body::Leaf(value), Some(kind)) => {
                self.text(path, path, node);
                self.leaf(path, node, value, kind, &schema);
            }
            (_, Some(kind)) => {
                let message = format!("`{path}` must be {}, not {}", in_words(kind), of(&node.body));
                self.wrong(node.value.start, path, message, None);
            }
            (_, None) => {}
        }
    }

    fn child(&mut self, path: &str, name: &str, child: &Node, schema: &Value) {
        let key = join(path, name);
        let known = schema.get("properties").and_then(Value::as_object);
        if let Some(inner) = known.and_then(|k| k.get(name)) {
            return self.node(&key, child, inner);
        }
        if let Some((_, names)) = NAMES.iter().find(|(of, names)| *of == path && !names.contains(&name)) {
            let hint = nearest(name, names.iter().copied()).map(|n| format!("did you mean `{n}`?"));
            let message = format!("unknown key `{}`; allowed: {}", shown(&key), names.join(", "));
            return self.wrong(child.key.start, &key, message, hint);
        }
        if let Some(inner) = schema.get("additionalProperties").filter(|a| a.is_object()) {
            return self.node(&key, child, inner);
        }
        let names = known.into_iter().flat_map(|k| k.keys()).map(String::as_str);
        let instead = INSTEAD.iter().find(|(n, _)| path.starts_with("providers.") && *n == name);
        let hint = match instead {
            Some((_, words)) => Some((*words).to_owned()),
            None => nearest(name, names).map(|right| format!("did you mean `{}`?", join(path, right))),
        };
        self.wrong(child.key.start, &key, format!("unknown key `{}`", shown(&key)), hint);
    }

    fn required(&mut self, path: &str, node: &Node, pairs: &[(String, Node)], schema: &Value) {
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !pairs.iter().any(|(k, _)| k == name) {
                let message = format!("`{}` needs a `{name}`", shown(path));
                self.wrong(node.key.start, &join(path, name), message, None);
            }
        }
    }

    fn word(&mut self, path: &str, node: &Node, words: &[String]) {
        let list = words.join(", ");
        match &node.body {
            Body::Leaf(Value::String(word)) if words.contains(word) => {}
            Body::Leaf(Value::String(word)) => {
                let hint =
                    nearest(word, words.iter().map(String::as_str)).map(|w| format!("did you mean `{w}`?"));
                self.wrong(node.value.start, path, format!("`{path}` must be one of {list}"), hint);
            }
            other => {
                let message = format!("`{path}` must be one of {list}, not {}", of(other));
                self.wrong(node.value.start, path, message, None);
            }
        }
    }

    /// Checks a text against the rule of `key`; `path` is reported.
    fn text(&mut self, key: &str, path: &str, node: &Node) {
        let Body::Leaf(Value::String(text)) = &node.body else { return };
        let rule = TEXTS.iter().find(|(pattern, ..)| matches(pattern, key));
        if let Some((.., what)) = rule.filter(|(_, fits, _)| !fits(text)) {
            self.wrong(node.value.start, path, format!("`{}` must be {what}", shown(path)), None);
        }
    }

    fn leaf(&mut self, path: &str, node: &Node, value: &Value, kind: &str, schema: &Value) {
        let fits = match kind {
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            _ => false,
        };
        if !fits {
            let message = format!("`{}` must be {}, not {}", shown(path), in_words(kind), of(&node.body));
            return self.wrong(node.value.start, path, message, None);
        }
        let Some(number) = value.as_f64() else { return };
        let least = LEAST.iter().find(|(key, _)| matches(key, path)).map(|(_, least)| *least);
        let least = least.or_else(|| schema.get("minimum").and_then(Value::as_f64));
        let (most, hint) = match MOST.iter().find(|(key, ..)| matches(key, path)) {
            Some((_, most, hint)) => (Some(*most), Some((*hint).to_owned())),
            None => (schema.get("maximum").and_then(Value::as_f64), None),
        };
        if let Some(least) = least.filter(|least| number < *least) {
            self.wrong(node.value.start, path, format!("`{}` must be at least {least}", shown(path)), None);
        } else if let Some(most) = most.filter(|most| number > *most) {
            self.wrong(node.value.start, path, format!("`{}` must be at most {most}", shown(path)), hint);
        }
    }
}

/// Names come from files: no control characters, and not without end.
fn shown(key: &str) -> String {
    let clean: String = key.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    match clean.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &clean[..end]),
        None => clean,
    }
}

/// The words of an enum.
fn words_of(schema: &Value) -> Option<Vec<String>> {
    let words =
        |list: &Value| list.as_array().map(|l| l.iter().filter_map(|w| w.as_str().map(Into::into)).collect());
    if let Some(list) = schema.get("enum") {
        return words(list);
    }
    let options = schema.get("oneOf")?.as_array()?;
    let mut all: Vec<String> = Vec::new();
    for option in options {
        if let Some(word) = option.get("const").and_then(Value::as_str) {
            all.push(word.into());
        } else {
            all.extend(words(option.get("enum")?)?);
        }
    }
    Some(all)
}

fn in_words(kind: &str) -> &str {
    match kind {
        "string" => "a string in quotes",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "array" => "a list",
        "object" => "a section",
        other => other,
    }
}

fn of(body: &Body) -> &'static str {
    match body {
        Body::Leaf(Value::String(_)) => "a string",
        Body::Leaf(Value::Bool(_)) => "true or false",
        Body::Leaf(Value::Number(n)) if n.is_f64() => "a number with a decimal point",
        Body::Leaf(_) => "a number",
        Body::List(_) => "a list",
        Body::Table(_) => "a section",
        Body::Odd(what) => what,
    }
}

/// Whether a key is meant by a pattern in which `*` stands for one name.
fn matches(pattern: &str, key: &str) -> bool {
    let names = names_of(key);
    let wanted: Vec<&str> = pattern.split('.').collect();
    names.len() == wanted.len() && wanted.iter().zip(&names).all(|(w, n)| *w == "*" || w == n)
}

/// The names of a key that [`join`] made.
fn names_of(key: &str) -> Vec<String> {
    let (mut names, mut name, mut quoted, mut escaped) = (Vec::new(), String::new(), false, false);
    for c in key.chars() {
        match c {
            _ if escaped => {
                escaped = false;
                name.push(c);
            }
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '.' if !quoted => names.push(std::mem::take(&mut name)),
            _ => name.push(c),
        }
    }
    names.push(name);
    names
}

/// Whether a section of the schema has this key.
pub(crate) fn known(section: &str, name: &str) -> bool {
    let source = Source { path: std::path::Path::new(""), text: "" };
    let kinds = ProviderKinds::default();
    let checker = Checker { source: &source, schema: &SCHEMA, kinds: &kinds, problems: Vec::new() };
    let section = SCHEMA.get("properties").and_then(|p| p.get(section)).unwrap_or(&Value::Null);
    checker.resolve(section).get("properties").and_then(|p| p.get(name)).is_some()
}
