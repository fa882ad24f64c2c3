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

/// The choice that gives no value.
const NONE: &str = "Give none";
/// The typed answer that gives no value.
const TYPED_NONE: &str = "-";

/// The end of a form.
#[derive(Debug, PartialEq)]
pub(super) enum Answered {
    Given(Map<String, Value>),
    /// The user said no.
    Declined,
    /// No user answered, or the user closed a question; why.
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
        return match question(cx, head, &["Yes", "No"].map(str::to_owned), Typed::No).await {
            Ok(answers) if answers.first().is_some_and(|a| a == "Yes") => Answered::Given(Map::new()),
            Ok(_) => Answered::Declined,
            Err(why) => Answered::Unanswered(why),
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
    // A value that the user was not asked for is the one that the list shows.
    content.extend(
        fields
            .iter()
            .filter(|f| !f.required)
            .filter_map(|f| Some((f.name.clone(), f.shown_usual()?.clone()))),
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
        0 if fields.iter().any(|field| field.shown_usual().is_some()) => "Send what is shown".to_owned(),
        0 => "Send it without them".to_owned(),
        1 => "Answer the 1 that it needs".to_owned(),
        n => format!("Answer the {n} that it needs"),
    };
    let mut choices = vec![whole];
    if needed < fields.len() {
        choices.push(some.clone());
    }
    choices.push("Decline".into());
    match question(cx, text, &choices, Typed::No).await {
        Ok(answers) if answers.first() == choices.first() => Ok(false),
        Ok(answers) if answers.first() == Some(&some) => Ok(true),
        Ok(_) => Err(Answered::Declined),
        Err(why) => Err(Answered::Unanswered(why)),
    }
}

/// The ways to answer a question.
#[derive(Clone, Copy, PartialEq)]
enum Typed {
    /// One of the choices.
    No,
    /// Several of them.
    Several,
    /// Words.
    Yes,
}

/// Puts one question, with the dialog that `clarify` uses. A user who closes it ends the form and answers nothing, as does one
/// that cannot be shown whole. `Err`: why there is no answer.
async fn question(
    cx: &ToolCx,
    question: String,
    choices: &[String],
    typed: Typed,
) -> Result<Vec<String>, String> {
    if question.len() > QUESTION {
        return Err(format!("a question of its form has more than {} KB", QUESTION >> 10));
    }
    let body = AskBody::Clarify {
        question,
        choices: choices.to_vec(),
        allow_freetext: typed == Typed::Yes,
        multiple: typed == Typed::Several,
        default: None,
        decides: Vec::new(),
    };
    let answer = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return Err("the call was stopped".into()),
        answer = cx.ports.ask(&cx.agent, body) => answer,
    };
    match answer {
        Ok(AskReply::Choice { answers }) if !answers.is_empty() => Ok(answers),
        Ok(_) => Err("the question was closed without an answer".into()),
        Err(why) => Err(line(&why, LABEL)),
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
    /// The choices: as each is shown, and the value that it stands for.
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

    /// Its default, where a question shows it whole: no other one is sent.
    fn shown_usual(&self) -> Option<&Value> {
        let usual = self.usual.as_ref()?;
        let text = usual.as_str().map_or_else(|| usual.to_string(), str::to_owned);
        (plain(usual) == text).then_some(usual)
    }

    /// The words behind its label.
    fn note(&self) -> String {
        match (self.required, self.shown_usual()) {
            (true, _) => String::new(),
            (false, None) => " (optional)".into(),
            (false, Some(usual)) => format!(" (optional; {} if you give none)", plain(usual)),
        }
    }

    /// Returns true if its choices are those of a question; more are a numbered list.
    fn few(&self) -> bool {
        self.options.len() + usize::from(!self.required) <= CHOICES
    }

    /// The choice that gives no value: none of its own.
    fn none(&self) -> String {
        let mut none = NONE.to_owned();
        while self.options.iter().any(|(shown, _)| *shown == none) {
            none.push('.');
        }
        none
    }

    /// Asks for it, again while the answer does not fit. `None`: the user gives none.
    async fn ask(&self, cx: &ToolCx, head: &str) -> Result<Option<Value>, Answered> {
        let (mut wrong, few) = (String::new(), self.few());
        let listed = few && !self.options.is_empty();
        // A typed answer has no choices beside it: digits would select them.
        let none = if listed { self.none() } else { TYPED_NONE.to_owned() };
        let own = self.options.iter().map(|(shown, _)| shown.clone());
        let choices = own.chain((!self.required).then(|| none.clone()));
        let choices: Vec<String> = choices.filter(|_| listed).collect();
        let typed = match listed {
            true if self.several => Typed::Several,
            true => Typed::No,
            false => Typed::Yes,
        };
        for _ in 0..TRIES {
            let mut text = format!("{wrong}{head}{}{}", self.label, self.note());
            if !self.required && !listed {
                text.push_str(&format!("\nTo give none, answer with {none}"));
            }
            if !few {
                let how = if self.several { "numbers, with commas between them" } else { "a number" };
                text.push_str(&format!("\nAnswer with {how}:"));
                for (at, (shown, _)) in self.options.iter().enumerate() {
                    text.push_str(&format!("\n{}. {shown}", at + 1));
                }
            }
            let answers = question(cx, text, &choices, typed).await.map_err(Answered::Unanswered)?;
            if !self.required && matches!(&answers[..], [answer] if answer.trim() == none) {
                return Ok(self.shown_usual().cloned());
            }
            match self.value(&answers) {
                Ok(value) => return Ok(Some(value)),
                Err(why) => wrong = format!("That does not fit: {why}.\n"),
            }
        }
        Err(Answered::Unanswered("no answer fitted one of its values".into()))
    }

    /// The answer in the type of the schema; `Err`: why it is not of that type.
    pub(super) fn value(&self, answers: &[String]) -> Result<Value, String> {
        if self.several {
            let pieces: Vec<&str> = match !self.few() || self.options.is_empty() {
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
            // The number of a list that asks for one, then the text that was shown, then the value behind another text.
            let numbered = || self.options.get(answer.trim().parse::<usize>().ok()?.checked_sub(1)?);
            let numbered = if self.few() { None } else { numbered() };
            return numbered
                .or_else(|| self.options.iter().find(|(shown, _)| shown == answer))
                .or_else(|| self.options.iter().find(|(_, value)| value.as_str() == Some(answer)))
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

/// The choices of a value, each as it is shown and as it is sent.
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
        let mut number = at + 1;
        let own = shown.clone();
        while shown.is_empty() || !seen.insert(shown.clone()) {
            *shown = format!("{own} ({number})").trim_start().to_owned();
            number += 1;
        }
    }
    all
}
