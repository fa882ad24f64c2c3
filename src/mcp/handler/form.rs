//! Forms: the values that a server asks the user for. Each is one question; a long form begins with a list of all of them.
//! What the user does not answer is never answered for them.

use serde_json::{Map, Value};
use tiller_protocol::{AskBody, AskReply};
use tiller_tool::ToolCx;

use crate::read::parts::kind;
use crate::read::words::line;

/// Maximum number of values of a form.
const FIELDS: usize = 500;
/// Values of a form that begins with its list.
const LISTED: usize = 4;
/// Choices that a question has; more are a numbered list, and the answer is typed.
const CHOICES: usize = 6;
/// Maximum number of choices of a value.
const OPTIONS: usize = 500;
/// Maximum length of what a server says in a question, in characters, and of a label.
const WORDS: usize = 1500;
const LABEL: usize = 200;
/// Times that one value is asked for: the user may mistype it.
const TRIES: usize = 20;
/// Maximum bytes of a question.
const QUESTION: usize = 32 << 10;

/// What became of a form.
#[derive(Debug, PartialEq)]
pub(super) enum Answered {
    Given(Map<String, Value>),
    /// The user said no.
    Declined,
    /// No user answered; why.
    Unanswered(String),
}

/// One answer of the user.
enum Reply {
    Texts(Vec<String>),
    Declined,
    Unanswered(String),
}

/// Asks the user for the values of a form.
pub(super) async fn ask(server: &str, message: &str, schema: &Value, cx: &ToolCx) -> Answered {
    let head = format!("The MCP server {server} asks: {}", line(message, WORDS));
    let empty = Map::new();
    let properties = match schema.get("properties") {
        Some(Value::Object(properties)) => properties,
        None | Some(Value::Null) => &empty,
        Some(other) => return Answered::Unanswered(format!("its form is {}", kind(other))),
    };
    if properties.len() > FIELDS {
        return Answered::Unanswered(format!(
            "its form has {} values, and {FIELDS} are shown at most",
            properties.len()
        ));
    }
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n.as_str() == Some(name)))
    };
    let fields: Vec<Field> =
        properties.iter().map(|(name, property)| Field::of(name, property, required(name))).collect();
    if fields.is_empty() {
        return match question(cx, head, &["Yes", "No"].map(str::to_owned), false).await {
            Reply::Texts(answers) if answers.first().is_some_and(|a| a == "Yes") => {
                Answered::Given(Map::new())
            }
            Reply::Texts(_) | Reply::Declined => Answered::Declined,
            Reply::Unanswered(why) => Answered::Unanswered(why),
        };
    }
    let mut all: Vec<&Field> = fields.iter().collect();
    if all.len() > LISTED {
        match which(cx, &head, &fields).await {
            Ok(needed_alone) => all.retain(|field| field.required || !needed_alone),
            Err(other) => return other,
        }
    }
    let mut content = Map::new();
    // A value that the user was not asked for is what the list says of it.
    content.extend(
        fields.iter().filter(|f| !f.required).filter_map(|f| Some((f.name.clone(), f.usual.clone()?))),
    );
    let count = all.len();
    for (at, field) in all.into_iter().enumerate() {
        let place = if count > 1 { format!("\nValue {} of {count}: ", at + 1) } else { "\n".to_owned() };
        match field.ask(cx, &format!("{head}{place}")).await {
            Ok(Some(value)) => drop(content.insert(field.name.clone(), value)),
            Ok(None) => {}
            Err(other) => return other,
        }
    }
    Answered::Given(content)
}

/// Shows all values of a form. True: the user gives only those that it needs. `Err`: the user gives none.
async fn which(cx: &ToolCx, head: &str, fields: &[Field]) -> Result<bool, Answered> {
    let needed = fields.iter().filter(|field| field.required).count();
    let mut text = format!("{head}\nIt asks for {} values:", fields.len());
    for (at, field) in fields.iter().enumerate() {
        text.push_str(&format!("\n{}. {}{}", at + 1, field.label, field.note()));
    }
    let whole = format!("Answer all {}", fields.len());
    let some = match needed {
        0 => "Send it without them".to_owned(),
        1 => "Answer the 1 that it needs".to_owned(),
        n => format!("Answer the {n} that it needs"),
    };
    let mut choices = vec![whole];
    if needed < fields.len() {
        choices.push(some.clone());
    }
    choices.push("Decline".into());
    match question(cx, text, &choices, false).await {
        Reply::Texts(answers) if answers.first() == choices.first() => Ok(false),
        Reply::Texts(answers) if answers.first() == Some(&some) => Ok(true),
        Reply::Texts(_) | Reply::Declined => Err(Answered::Declined),
        Reply::Unanswered(why) => Err(Answered::Unanswered(why)),
    }
}

/// Puts one question, with the dialog that `clarify` uses.
async fn question(cx: &ToolCx, mut question: String, choices: &[String], multiple: bool) -> Reply {
    question.truncate(question.floor_char_boundary(QUESTION));
    let body = AskBody::Clarify {
        question,
        choices: choices.to_vec(),
        allow_freetext: choices.is_empty(),
        multiple,
        default: None,
        decides: Vec::new(),
    };
    let answer = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return Reply::Unanswered("the call was stopped".into()),
        answer = cx.ports.ask(&cx.agent, body) => answer,
    };
    match answer {
        Ok(AskReply::Choice { answers }) if !answers.is_empty() => Reply::Texts(answers),
        Ok(AskReply::Declined) => Reply::Declined,
        Ok(_) => Reply::Unanswered("the question was closed without an answer".into()),
        Err(why) => Reply::Unanswered(line(&why, LABEL)),
    }
}

/// The defaults of a form; `None`: a value that it needs has none.
pub(super) fn defaults(schema: &Value) -> Option<Value> {
    let properties = schema["properties"].as_object()?;
    let with_default = |(name, property): (&String, &Value)| {
        property.get("default").filter(|value| !value.is_null()).map(|value| (name.clone(), value.clone()))
    };
    let content: Map<String, Value> = properties.iter().filter_map(with_default).collect();
    let needed = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    needed.into_iter().all(|name| content.contains_key(name)).then_some(Value::Object(content))
}

/// A value that a user is asked for.
pub(super) struct Field {
    name: String,
    /// Its label, clean.
    label: String,
    required: bool,
    /// Its default.
    usual: Option<Value>,
    kind: String,
    /// What can be chosen: as it is shown, and what it stands for.
    options: Vec<(String, Value)>,
    /// Several can be chosen.
    several: bool,
    least: Option<f64>,
    most: Option<f64>,
}

impl Field {
    pub(super) fn of(name: &str, property: &Value, required: bool) -> Self {
        let kind = property["type"].as_str().unwrap_or("string").to_owned();
        let several = kind == "array";
        let from = if several { &property["items"] } else { property };
        let label = property["title"].as_str().or(property["description"].as_str()).unwrap_or(name);
        let label = match line(label, LABEL) {
            empty if empty.is_empty() => line(name, LABEL),
            label => label,
        };
        let limit = |keys: [&str; 3]| keys.iter().find_map(|key| property[*key].as_f64());
        Self {
            name: name.to_owned(),
            label,
            required,
            usual: property.get("default").filter(|default| !default.is_null()).cloned(),
            options: if kind == "boolean" {
                vec![("Yes".into(), true.into()), ("No".into(), false.into())]
            } else {
                options(from)
            },
            kind,
            several,
            least: limit(["minimum", "minLength", "minItems"]),
            most: limit(["maximum", "maxLength", "maxItems"]),
        }
    }

    /// What is said of it behind its label.
    fn note(&self) -> String {
        match (self.required, &self.usual) {
            (true, _) => String::new(),
            (false, None) => " (optional)".into(),
            (false, Some(usual)) => {
                let usual = usual.as_str().map_or_else(|| usual.to_string(), str::to_owned);
                format!(" (optional; {} if you give none)", line(&usual, LABEL))
            }
        }
    }

    /// Asks for it, again while the answer does not fit. `None`: the user gives none.
    async fn ask(&self, cx: &ToolCx, head: &str) -> Result<Option<Value>, Answered> {
        let mut wrong = String::new();
        let few = self.options.len() <= CHOICES;
        let choices: Vec<String> = match few {
            true => self.options.iter().map(|(shown, _)| shown.clone()).collect(),
            false => Vec::new(),
        };
        for _ in 0..TRIES {
            let mut text = format!("{wrong}{head}{}{}", self.label, self.note());
            if !few {
                let how = if self.several { "numbers, with commas between them" } else { "a number" };
                text.push_str(&format!("\nAnswer with {how}:"));
                for (at, (shown, _)) in self.options.iter().enumerate() {
                    text.push_str(&format!("\n{}. {shown}", at + 1));
                }
            }
            let answers = match question(cx, text, &choices, self.several && few).await {
                Reply::Texts(answers) => answers,
                Reply::Declined if self.required => return Err(Answered::Declined),
                Reply::Declined => return Ok(self.usual.clone()),
                Reply::Unanswered(why) => return Err(Answered::Unanswered(why)),
            };
            match self.value(&answers) {
                Ok(value) => return Ok(Some(value)),
                Err(why) => wrong = format!("That does not fit: {why}.\n"),
            }
        }
        Err(Answered::Unanswered(format!("no answer fitted {}", self.label)))
    }

    /// The answer in the type of the schema; `Err`: why it is not of that type.
    pub(super) fn value(&self, answers: &[String]) -> Result<Value, String> {
        if self.several {
            let pieces: Vec<&str> = match self.options.len() > CHOICES || self.options.is_empty() {
                true => answers.iter().flat_map(|answer| answer.split(',')).map(str::trim).collect(),
                false => answers.iter().map(String::as_str).collect(),
            };
            let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
            let all: Vec<Value> = pieces.map(|piece| self.one(piece)).collect::<Result<_, _>>()?;
            return match self.fits(all.len() as f64) {
                true => Ok(Value::Array(all)),
                false => Err(format!("{} are chosen, and {}", all.len(), self.limits())),
            };
        }
        let answer = answers.first().map(String::as_str).unwrap_or_default();
        let value = self.one(answer)?;
        let size = match &value {
            Value::String(text) if self.options.is_empty() => Some(text.chars().count() as f64),
            Value::Number(number) => number.as_f64(),
            _ => None,
        };
        match size.is_none_or(|size| self.fits(size)) {
            true => Ok(value),
            false => {
                Err(format!("{} {}", if value.is_number() { "it" } else { "its length" }, self.limits()))
            }
        }
    }

    fn one(&self, answer: &str) -> Result<Value, String> {
        let shown = || line(answer, 60);
        if !self.options.is_empty() {
            let named =
                self.options.iter().find(|(shown, value)| shown == answer || value.as_str() == Some(answer));
            let numbered = || self.options.get(answer.trim().parse::<usize>().ok()?.checked_sub(1)?);
            let numbered = if self.options.len() > CHOICES { numbered() } else { None };
            return named
                .or(numbered)
                .map(|(_, value)| value.clone())
                .ok_or_else(|| format!("'{}' is none of the {} choices", shown(), self.options.len()));
        }
        match self.kind.as_str() {
            "integer" => answer
                .trim()
                .parse::<i64>()
                .map(Value::from)
                .map_err(|_| format!("'{}' is not a whole number", shown())),
            "number" => match answer.trim().parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Value::from(number)),
                _ => Err(format!("'{}' is not a number", shown())),
            },
            _ => Ok(Value::from(answer)),
        }
    }

    fn fits(&self, size: f64) -> bool {
        self.least.is_none_or(|least| size >= least) && self.most.is_none_or(|most| size <= most)
    }

    fn limits(&self) -> String {
        match (self.least, self.most) {
            (Some(least), Some(most)) => format!("must be from {least} to {most}"),
            (Some(least), None) => format!("must be at least {least}"),
            (None, Some(most)) => format!("must be at most {most}"),
            (None, None) => String::new(),
        }
    }
}

/// What can be chosen for a value, as it is shown and as it is sent.
fn options(property: &Value) -> Vec<(String, Value)> {
    let shown = |text: &str| line(text, LABEL);
    if let Some(all) = property["oneOf"].as_array().or(property["anyOf"].as_array()) {
        let read = |option: &Value| {
            let value = option.get("const")?.clone();
            let title = option["title"].as_str().map(shown);
            Some((title.unwrap_or_else(|| plain(&value)), value))
        };
        return unique(all.iter().take(OPTIONS).filter_map(read).collect());
    }
    let values: Vec<Value> = property["enum"].as_array().cloned().unwrap_or_default();
    let names = property["enumNames"].as_array().filter(|names| names.len() == values.len());
    let name = |at: usize| names.and_then(|names| names.get(at)?.as_str()).map(shown);
    let all = values.into_iter().take(OPTIONS).enumerate();
    unique(all.map(|(at, value)| (name(at).unwrap_or_else(|| plain(&value)), value)).collect())
}

/// A value as it is shown.
fn plain(value: &Value) -> String {
    line(value.as_str().map_or_else(|| value.to_string(), str::to_owned).as_str(), LABEL)
}

/// Choices that can be told apart: an answer is the text that was shown.
fn unique(mut all: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let mut seen = std::collections::BTreeSet::new();
    for (at, (shown, _)) in all.iter_mut().enumerate() {
        if shown.is_empty() || !seen.insert(shown.clone()) {
            *shown = format!("{shown} ({})", at + 1).trim_start().to_owned();
            seen.insert(shown.clone());
        }
    }
    all
}
