//! Values to a definition. Every mistake is reported, with its place and the nearest right word.

use std::collections::BTreeSet;
use std::path::Path;

use serde_saphyr::{Location, Spanned};
use tiller_protocol::{AgentLimits, Cost, Effort, MemoryRights, Profile, ToolSet};

use super::form::{Definition, Narrowing, Origin, Pick, Tier, Tools};
use super::front::{self, Pairs, Parts, Value};
use super::words::{ALL, DefinitionContext, LAYERS, set_words};
use crate::problem::Problem;
use tiller_protocol::nearest::nearest;

/// Keys of a file.
const KEYS: &[&str] = &[
    "name",
    "description",
    "tier",
    "model",
    "effort",
    "tools",
    "skills",
    "permissions",
    "limits",
    "cli",
    "terminal",
    "may",
    "memory",
];
/// Characters of a name, and of a description, at most.
const NAME: usize = 40;
const DESCRIPTION: usize = 300;
/// Words of one list at most.
const WORDS: usize = 100;

/// Reads one file. `stem` is its name without the ending.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn definition(
    path: &Path,
    stem: &str,
    from: Origin,
    bytes: &[u8],
    known: &DefinitionContext<'_>,
) -> Result<Definition, Vec<Problem>> {
    let parts = front::split(path, bytes).map_err(|p| vec![p])?;
    let mut check = Check { path, above: parts.above, known, problems: Vec::new() };
    let definition = check.all(stem, from, parts);
    if check.problems.is_empty() { Ok(definition) } else { Err(check.problems) }
}

/// Whether a text is a valid name of an agent.
fn is_name(text: &str) -> bool {
    let first = text.chars().next().is_some_and(|c| c.is_ascii_lowercase());
    first && text.len() <= NAME && text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-' | '_'))
}

struct Check<'a> {
    path: &'a Path,
    /// Lines above the YAML.
    above: usize,
    known: &'a DefinitionContext<'a>,
    problems: Vec<Problem>,
}

type Item = Spanned<Value>;

impl Check<'_> {
    fn wrong(&mut self, at: &Location, key: &str, message: impl Into<String>, hint: Option<String>) {
        let at = Some((self.above + front::number(at.line()), front::number(at.column())));
        self.problems.push(Problem { at, key: key.into(), hint, ..Problem::file(self.path, message) });
    }

    /// About no line of its own: the place is the file's beginning, or the body's.
    fn missing(&mut self, line: usize, key: &str, message: &str, hint: &str) {
        let hint = Some(hint.to_owned());
        let at = Some((line, 1));
        self.problems.push(Problem { at, key: key.into(), hint, ..Problem::file(self.path, message) });
    }

    fn all(&mut self, stem: &str, from: Origin, parts: Parts) -> Definition {
        let mut it = Definition {
            name: stem.to_owned(),
            description: String::new(),
            from,
            file: (from != Origin::BuiltIn).then(|| self.path.to_path_buf()),
            pick: Pick::Inherit,
            effort: None,
            tools: Tools::Default,
            skills: Vec::new(),
            permissions: Narrowing::default(),
            limits: AgentLimits::default(),
            cli: None,
            terminal: None,
            may: None,
            memory: None,
            prompt: parts.body,
        };
        let (mut named, mut described) = (false, false);
        for (key, value) in &parts.pairs {
            match key.value.as_str() {
                "name" => {
                    named = true;
                    it.name = self.name(value).unwrap_or_default();
                }
                "description" => {
                    described = true;
                    it.description = self.description(value).unwrap_or_default();
                }
                "tier" => self.tier(value, &mut it.pick),
                "model" => self.model(value, &mut it.pick),
                "effort" => it.effort = self.effort(value),
                "tools" => it.tools = self.tools(value),
                "skills" => it.skills = self.words(value, "skills").into_iter().map(|w| w.value).collect(),
                "permissions" => it.permissions = self.permissions(value),
                "limits" => it.limits = self.limits(value),
                "cli" => it.cli = self.one_of(value, "cli", "program", self.known.clis),
                "terminal" => it.terminal = self.text(value, "terminal").filter(|name| !name.is_empty()),
                "may" => it.may = Some(self.may(value)),
                "memory" => it.memory = Some(self.memory(value)),
                other => self.unknown(&key.referenced, other, "", KEYS),
            }
        }
        if !named && !is_name(stem) {
            let hint = "add `name: ...` with lower-case letters, digits and -";
            self.missing(1, "name", "the file name is not a valid agent name", hint);
        }
        if !described {
            let hint = "add `description: ...`: one line about when to use the agent";
            self.missing(1, "description", "the description is missing", hint);
        }
        if it.prompt.is_empty() {
            let hint = "below the second ---, write what the agent should do, and how";
            self.missing(parts.body_line, "", "the prompt is missing", hint);
        }
        it
    }

    fn unknown(&mut self, at: &Location, key: &str, inside: &str, keys: &[&str]) {
        let hint = nearest(key, keys.iter().copied()).map_or_else(
            || format!("allowed here: {}", keys.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        let full = if inside.is_empty() { key.to_owned() } else { format!("{inside}.{key}") };
        self.wrong(at, &full, format!("unknown key `{full}`"), Some(hint));
    }

    fn text(&mut self, item: &Item, key: &str) -> Option<String> {
        match &item.value {
            Value::Text(text) => Some(text.trim().to_owned()),
            other => {
                let hint = matches!(other, Value::Bool(_) | Value::Number(_))
                    .then(|| "put it in quotes if it is text".to_owned());
                self.wrong(&item.referenced, key, format!("`{key}` is {}, not text", other.kind()), hint);
                None
            }
        }
    }

    fn name(&mut self, item: &Item) -> Option<String> {
        let name = self.text(item, "name")?;
        if is_name(&name) {
            return Some(name);
        }
        let hint = format!("use lower-case letters, digits and -, at most {NAME}, starting with a letter");
        self.wrong(&item.referenced, "name", format!("`{name}` is not a valid agent name"), Some(hint));
        None
    }

    fn description(&mut self, item: &Item) -> Option<String> {
        let text = self.text(item, "description")?;
        // Shown in one line, and given to models in one.
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let hint = match line.chars().count() {
            0 => "write one line about when to use it".to_owned(),
            n if n > DESCRIPTION => {
                format!("at most {DESCRIPTION} characters; put the rest into the prompt")
            }
            _ => return Some(line),
        };
        let what = if line.is_empty() { "is empty" } else { "is too long" };
        self.wrong(&item.referenced, "description", format!("the description {what}"), Some(hint));
        None
    }

    fn one_of(&mut self, item: &Item, key: &str, what: &str, of: &[&str]) -> Option<String> {
        let word = self.text(item, key)?;
        if of.contains(&word.as_str()) {
            return Some(word);
        }
        let hint = nearest(&word, of.iter().copied())
            .map_or_else(|| format!("one of {}", of.join(", ")), |near| format!("did you mean `{near}`?"));
        self.wrong(&item.referenced, key, format!("unknown {what} `{word}`"), Some(hint));
        None
    }

    fn tier(&mut self, item: &Item, pick: &mut Pick) {
        let all = [Tier::Fast, Tier::Main, Tier::Deep];
        let Some(word) = self.one_of(item, "tier", "tier", &all.map(Tier::word)) else { return };
        let tier = all.into_iter().find(|t| t.word() == word).map(Pick::Tier);
        self.pick(item, "tier", tier, pick);
    }

    fn effort(&mut self, item: &Item) -> Option<Effort> {
        self.one_of(item, "effort", "effort", &Effort::ALL.map(Effort::word))?.parse().ok()
    }

    fn memory(&mut self, item: &Item) -> MemoryRights {
        let all = MemoryRights::ALL;
        if matches!(item.value, Value::Bool(false)) {
            return MemoryRights::Off;
        }
        let word = self.one_of(item, "memory", "right", &all.map(MemoryRights::word));
        all.into_iter().find(|r| Some(r.word()) == word.as_deref()).unwrap_or_default()
    }

    fn model(&mut self, item: &Item, pick: &mut Pick) {
        let Some(text) = self.text(item, "model") else { return };
        let model = match text.as_str() {
            // As other programs' files have it.
            "inherit" => Some(Pick::Inherit),
            _ if text.split_once('/').is_some_and(|(p, m)| !p.is_empty() && !m.is_empty()) => {
                Some(Pick::Model(text))
            }
            _ => {
                let hint = "write it as provider/model, or use `tier: fast`, `main` or `deep`";
                self.wrong(&item.referenced, "model", format!("`{text}` is not a model"), Some(hint.into()));
                None
            }
        };
        self.pick(item, "model", model, pick);
    }

    fn pick(&mut self, item: &Item, key: &str, found: Option<Pick>, pick: &mut Pick) {
        let Some(found) = found else { return };
        if *pick != Pick::Inherit {
            let hint = Some("keep one of them".to_owned());
            self.wrong(&item.referenced, key, "`tier` and `model` cannot both be set", hint);
        }
        *pick = found;
    }

    /// A list of words, or words with commas between them.
    fn words(&mut self, item: &Item, key: &str) -> Vec<Spanned<String>> {
        let place = |text: &str, at: &Item| Spanned::new(text.to_owned(), at.referenced, at.defined);
        let mut out = Vec::new();
        match &item.value {
            Value::Nothing => {}
            Value::Text(text) => {
                out.extend(text.split(',').map(str::trim).filter(|w| !w.is_empty()).map(|w| place(w, item)));
            }
            Value::List(items) => {
                for item in items {
                    if let Some(word) = self.text(item, key) {
                        out.push(place(&word, item));
                    }
                }
            }
            other => {
                let hint = Some(format!("write `{key}: [one, two]`"));
                self.wrong(&item.referenced, key, format!("`{key}` is {}, not a list", other.kind()), hint);
            }
        }
        if out.len() > WORDS {
            let hint = Some(format!("at most {WORDS}"));
            self.wrong(&item.referenced, key, format!("`{key}` has too many entries"), hint);
            out.truncate(WORDS);
        }
        out
    }

    fn tools(&mut self, item: &Item) -> Tools {
        let mut only = BTreeSet::new();
        let mut all = false;
        for word in self.words(item, "tools") {
            let name = word.value.as_str();
            if name == ALL {
                all = true;
            } else if let Some(set) = ToolSet::parse(name) {
                only.extend(self.known.tools.of_set(set).map(str::to_owned));
            } else if self.known.tools.contains(name) {
                only.insert(name.to_owned());
            } else {
                let near = self.known.nearest_tool(name).map(|near| format!("did you mean `{near}`?"));
                let hint =
                    near.unwrap_or_else(|| format!("use a tool name or a set: {}, {ALL}", set_words()));
                self.wrong(
                    &word.referenced,
                    "tools",
                    format!("there is no tool or set `{name}`"),
                    Some(hint),
                );
            }
        }
        if all { Tools::All } else { Tools::Only(only) }
    }

    fn map<'v>(&mut self, item: &'v Item, key: &str) -> Option<&'v Pairs> {
        match &item.value {
            Value::Map(pairs) => Some(pairs),
            Value::Nothing => None,
            other => {
                let hint = Some(format!("write `{key}:` with its values indented below"));
                self.wrong(&item.referenced, key, format!("`{key}` is {}, not a map", other.kind()), hint);
                None
            }
        }
    }

    fn permissions(&mut self, item: &Item) -> Narrowing {
        let mut out = Narrowing::default();
        for (key, value) in self.map(item, "permissions").into_iter().flatten() {
            match key.value.as_str() {
                "profile" => {
                    let names = Profile::ALL.map(Profile::name);
                    let word = self.one_of(value, "permissions.profile", "profile", &names);
                    out.profile = word.and_then(|w| w.parse().ok());
                }
                "ask" => out.ask = self.rules(value, "permissions.ask"),
                "deny" => out.deny = self.rules(value, "permissions.deny"),
                "allow" => {
                    let why = "an agent file can only restrict permissions, so `allow` is not possible";
                    let hint = "list fewer `tools`, or use `ask` and `deny`; allow rules belong in \
                        permissions.yaml";
                    self.wrong(&key.referenced, "permissions.allow", why, Some(hint.into()));
                }
                other => self.unknown(&key.referenced, other, "permissions", &["profile", "ask", "deny"]),
            }
        }
        out
    }

    fn rules(&mut self, item: &Item, key: &str) -> Vec<String> {
        // Commas belong to rules: text is one rule.
        let words = match &item.value {
            Value::Text(text) => vec![Spanned::new(text.trim().to_owned(), item.referenced, item.defined)],
            _ => self.words(item, key),
        };
        let mut out = Vec::new();
        for word in words {
            match (self.known.rule)(&word.value) {
                Ok(()) => out.push(word.value),
                Err(why) => {
                    let hint = Some("a rule is tool(argument), for example terminal(git push*)".to_owned());
                    self.wrong(&word.referenced, key, why, hint);
                }
            }
        }
        out
    }

    fn limits(&mut self, item: &Item) -> AgentLimits {
        let mut out = AgentLimits::default();
        for (key, value) in self.map(item, "limits").into_iter().flatten() {
            match key.value.as_str() {
                "turns" => out.turns = self.count(value, "limits.turns").and_then(|n| u32::try_from(n).ok()),
                "seconds" => out.seconds = self.count(value, "limits.seconds"),
                "tokens" => out.tokens = self.count(value, "limits.tokens"),
                "cost" => out.cost = self.cost(value),
                other => {
                    self.unknown(&key.referenced, other, "limits", &["turns", "seconds", "tokens", "cost"]);
                }
            }
        }
        out
    }

    /// A whole number from 1 on.
    fn count(&mut self, item: &Item, key: &str) -> Option<u64> {
        let most = f64::from(u32::MAX);
        match &item.value {
            Value::Number(n) if n.fract() == 0.0 && (1.0..=most).contains(n) => return Some(*n as u64),
            Value::Number(n) => {
                let hint = Some("omit it to set no limit".to_owned());
                let message = format!("`{key}` is {n}; it must be a whole number from 1 to {most}");
                self.wrong(&item.referenced, key, message, hint);
            }
            other => {
                self.wrong(&item.referenced, key, format!("`{key}` is {}, not a number", other.kind()), None);
            }
        }
        None
    }

    fn cost(&mut self, item: &Item) -> Option<Cost> {
        match &item.value {
            Value::Number(n) if n.is_finite() && *n >= 0.0 => return Some(Cost::from_usd(*n)),
            Value::Number(n) => {
                let message = format!("`limits.cost` is {n}; it must be an amount in dollars of at least 0");
                self.wrong(&item.referenced, "limits.cost", message, None);
            }
            other => {
                let hint = Some("write dollars without a currency sign: `cost: 0.50`".to_owned());
                let message = format!("`limits.cost` is {}, not a number", other.kind());
                self.wrong(&item.referenced, "limits.cost", message, hint);
            }
        }
        None
    }

    fn may(&mut self, item: &Item) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        for word in self.words(item, "may") {
            if LAYERS.contains(&word.value.as_str()) {
                out.insert(word.value);
                continue;
            }
            let hint = nearest(&word.value, LAYERS.iter().copied()).map_or_else(
                || format!("one of {}", LAYERS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            self.wrong(&word.referenced, "may", format!("unknown layer `{}`", word.value), Some(hint));
        }
        out
    }
}
