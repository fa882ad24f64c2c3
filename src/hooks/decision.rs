//! What a run decides: by its exit code, its JSON, or its failure.
//!
//! A denial is never lost: exit code 2 denies whatever was printed, and an object that denies counts wherever it stands
//! in the output, and however the run ended.

use serde_json::{Map, Value};
use tiller_tool::text;

use crate::command::{CommandEnd, CommandRun, HOOK_OUTPUT};
use crate::objects::{Broken, Found};

/// Most bytes of a reason.
const REASON: usize = 2_000;
/// Most bytes of text that one hook adds.
const ADDED: usize = 10_000;
/// Fields of the JSON of a hook.
const KNOWN: [&str; 6] = ["decision", "reason", "arguments", "result", "add", "tell"];

/// What one hook said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Decision {
    /// The reason of a denial.
    pub deny: Option<String>,
    /// The hook leaves the decision to the user; why.
    pub ask: Option<String>,
    /// The arguments in place of the call's.
    pub arguments: Option<Value>,
    /// The result in place of the call's.
    pub result: Option<String>,
    /// Text for the end of a prompt or a result.
    pub add: Option<String>,
    /// A text for the user.
    pub tell: Option<String>,
}

/// Why a hook decided nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Part of a sentence.
    pub why: String,
    /// The hook may have meant to deny, or did not get to decide: a call asks. Otherwise the failure is only reported.
    pub asks: bool,
}

impl Failure {
    /// A failure after which a call asks.
    pub(crate) fn asks(why: impl Into<String>) -> Self {
        Self { why: why.into(), asks: true }
    }
}

/// The form of a hook's output.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutputForm {
    /// That of Claude Code.
    pub claude: bool,
    /// The hook decides before something happens: each `{` that is no JSON is broken JSON. Other hooks print code.
    pub before: bool,
}

/// The decision, or why there is none.
pub(crate) fn decide(ran: &CommandRun, form: OutputForm) -> Result<Decision, Failure> {
    let failed = |code: i32| with_errors(format!("it failed with exit code {code}"), &ran.stderr);
    let why = match &ran.end {
        CommandEnd::Cancelled => return Err(Failure::asks("it was stopped with what it was asked about")),
        CommandEnd::NotStarted(why) => return Err(Failure::asks(format!("it could not be started: {why}"))),
        end => {
            let said = output(&ran.stdout, form);
            let denied = said.as_ref().ok().and_then(|said| said.deny.clone());
            match (end, denied) {
                (CommandEnd::Exit(2), denied) => {
                    let text = words(&ran.stderr, REASON);
                    let reason = if text.is_empty() { denied.unwrap_or_else(no_reason) } else { text };
                    return Ok(Decision { deny: Some(reason), ..Decision::default() });
                }
                (_, Some(reason)) => return Ok(Decision { deny: Some(reason), ..Decision::default() }),
                (CommandEnd::Exit(0), None) => return said.map_err(Failure::asks),
                // Not found, not executable, or ended by a signal.
                (CommandEnd::Exit(code @ (126 | 127 | 128..)), None) => failed(*code),
                (CommandEnd::Exit(code), None) => return Err(Failure { why: failed(*code), asks: false }),
                (CommandEnd::TimedOut, None) => "it took too long and was stopped".into(),
                _ => format!("it printed more than {} MB", HOOK_OUTPUT >> 20),
            }
        }
    };
    Err(Failure::asks(why))
}

/// Cleaned and cut text of a hook.
fn words(bytes: &[u8], most: usize) -> String {
    let text = text::clean(bytes);
    let text = text.trim();
    let end = text.floor_char_boundary(most);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}

fn no_reason() -> String {
    "it gave no reason".into()
}

fn with_errors(what: String, stderr: &[u8]) -> String {
    let text = words(stderr, 300);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { what } else { format!("{what}: {line}") }
}

/// The decision in an output. Without a `{` it says nothing: a formatter prints what it likes. An object counts also with other
/// text around it; the first that denies decides.
fn output(stdout: &[u8], form: OutputForm) -> Result<Decision, String> {
    let Found { objects, broken } = crate::objects::find(stdout);
    let read =
        |fields: &Map<String, Value>| if form.claude { crate::claude::decision(fields) } else { own(fields) };
    let denies = |fields| read(fields).ok().filter(|said| said.deny.is_some());
    if let Some(denial) = objects.iter().find_map(denies) {
        return Ok(denial);
    }
    let unread = match broken {
        None => false,
        Some(Broken::InText) => form.before && objects.is_empty(),
        Some(Broken::LikeJson) => objects.is_empty(),
        Some(Broken::Line) => form.before || objects.is_empty(),
        Some(Broken::First) => true,
    };
    if unread {
        // Never the text of the error: it would quote the output.
        return Err("it printed broken JSON".into());
    }
    // Lines of a log may be objects, too, but not one that speaks of a decision in another spelling.
    let is_noise = |fields: &Map<String, Value>| {
        !form.claude && !fields.keys().any(|name| decides(name)) && !fields.keys().all(|name| is_known(name))
            || fields.is_empty()
    };
    let only_noise = objects.iter().all(is_noise);
    let mut all = Decision::default();
    for fields in objects.iter().filter(|fields| only_noise || !is_noise(fields)) {
        all.extend(read(fields)?);
    }
    Ok(all)
}

/// Returns true for the name of a field that is meant as a decision, perhaps in the form of another program.
fn decides(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("decision")
        || matches!(name.as_str(), "hookspecificoutput" | "continue" | "permission" | "deny" | "block")
}

fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
}

impl Decision {
    /// Adds what a later object, or a later run, says.
    pub(crate) fn extend(&mut self, later: Self) {
        let Self { deny, ask, arguments, result, add, tell } = later;
        self.deny = self.deny.take().or(deny);
        self.ask = self.ask.take().or(ask);
        self.arguments = arguments.or(self.arguments.take());
        self.result = result.or(self.result.take());
        self.add = add.or(self.add.take());
        self.tell = tell.or(self.tell.take());
    }
}

/// The decision of an object in Tiller's own form. A denial counts whatever stands beside it.
fn own(fields: &Map<String, Value>) -> Result<Decision, String> {
    let word = |name: &str| fields.get(name).and_then(Value::as_str);
    if word("decision") == Some("deny") {
        let reason =
            word("reason").map(|text| words(text.as_bytes(), REASON)).filter(|text| !text.is_empty());
        return Ok(Decision { deny: Some(reason.unwrap_or_else(no_reason)), ..Decision::default() });
    }
    if let Some(unknown) = fields.keys().find(|name| !is_known(name)) {
        let name = words(unknown.as_bytes(), 40);
        return Err(format!("its JSON has an unknown field `{name}`; known are {}", KNOWN.join(", ")));
    }
    match fields.get("decision") {
        None | Some(Value::Null) => {}
        Some(Value::String(word)) if word == "allow" => {}
        Some(_) => return Err("its decision is neither \"allow\" nor \"deny\"".into()),
    }
    let arguments = match fields.get("arguments") {
        None | Some(Value::Null) => None,
        Some(arguments @ Value::Object(_)) => Some(arguments.clone()),
        Some(_) => return Err("its arguments are not an object".into()),
    };
    let text = |name: &str, most: usize| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(words(text.as_bytes(), most))),
        Some(_) => Err(format!("its {name} is not a string")),
    };
    text("reason", REASON)?;
    Ok(Decision {
        arguments,
        result: text("result", HOOK_OUTPUT)?,
        add: text("add", ADDED)?.filter(|t| !t.is_empty()),
        tell: text("tell", REASON)?.filter(|t| !t.is_empty()),
        ..Decision::default()
    })
}

pub(crate) fn text_field(fields: &Map<String, Value>, name: &str) -> Option<String> {
    let text = words(fields.get(name)?.as_str()?.as_bytes(), ADDED);
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
