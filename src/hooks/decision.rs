//! What a run decides: by its exit code, its JSON, or its failure.

use serde_json::{Map, Value};
use tiller_tool::text;

use crate::command::{CommandEnd, CommandRun, HOOK_OUTPUT};

/// Most bytes of a reason.
const REASON: usize = 2_000;
/// Most bytes of text that one hook adds.
const ADDED: usize = 10_000;

/// What one hook said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Decision {
    /// The reason of a denial.
    pub deny: Option<String>,
    /// The arguments in place of the call's.
    pub arguments: Option<Value>,
    /// The result in place of the call's.
    pub result: Option<String>,
    /// Text for the end of a prompt or a result.
    pub add: Option<String>,
    /// A text for the user.
    pub tell: Option<String>,
}

/// The decision, or why the hook failed, as part of a sentence.
pub(crate) fn decide(ran: &CommandRun, claude: bool) -> Result<Decision, String> {
    match &ran.end {
        CommandEnd::Exit(0) => output(&ran.stdout, claude),
        CommandEnd::Exit(2) => Ok(Decision { deny: Some(reason(&ran.stderr)), ..Decision::default() }),
        CommandEnd::Exit(code) => Err(with_errors(format!("it failed with exit code {code}"), &ran.stderr)),
        CommandEnd::TimedOut => Err("it took too long and was stopped".into()),
        CommandEnd::TooMuch => Err(format!("it printed more than {} MB and was stopped", HOOK_OUTPUT >> 20)),
        CommandEnd::NotStarted(why) => Err(format!("it could not be started: {why}")),
        CommandEnd::Cancelled => Err("it was stopped with what it was asked about".into()),
    }
}

/// Cleaned and cut text of a hook.
fn words(bytes: &[u8], most: usize) -> String {
    let text = text::clean(bytes);
    let text = text.trim();
    let end = text.floor_char_boundary(most);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}

fn reason(bytes: &[u8]) -> String {
    let text = words(bytes, REASON);
    if text.is_empty() { "it gave no reason".into() } else { text }
}

fn with_errors(what: String, stderr: &[u8]) -> String {
    let text = words(stderr, 300);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { what } else { format!("{what}: {line}") }
}

/// Output that is no JSON object is ignored: a formatter prints what it likes.
fn output(stdout: &[u8], claude: bool) -> Result<Decision, String> {
    let text = String::from_utf8_lossy(stdout);
    let text = text.trim();
    if !text.starts_with('{') {
        return Ok(Decision::default());
    }
    // Never the text of the error: it would quote the output.
    let value: Value = serde_json::from_str(text).map_err(|_| "it printed broken JSON".to_owned())?;
    let Value::Object(fields) = value else { return Err("it printed JSON that is not an object".into()) };
    if claude { crate::claude::decision(&fields) } else { own(&fields) }
}

fn own(fields: &Map<String, Value>) -> Result<Decision, String> {
    const KNOWN: [&str; 6] = ["decision", "reason", "arguments", "result", "add", "tell"];
    if let Some(unknown) = fields.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        let name = words(unknown.as_bytes(), 40);
        return Err(format!("its JSON has an unknown field `{name}`; known are {}", KNOWN.join(", ")));
    }
    let denied = match fields.get("decision") {
        None | Some(Value::Null) => false,
        Some(Value::String(word)) if word == "allow" => false,
        Some(Value::String(word)) if word == "deny" => true,
        Some(_) => return Err("its decision is neither \"allow\" nor \"deny\"".into()),
    };
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
    let why = text("reason", REASON)?;
    Ok(Decision {
        deny: denied.then(|| why.filter(|w| !w.is_empty()).unwrap_or_else(|| reason(b""))),
        arguments,
        result: text("result", HOOK_OUTPUT)?,
        add: text("add", ADDED)?.filter(|t| !t.is_empty()),
        tell: text("tell", REASON)?.filter(|t| !t.is_empty()),
    })
}

pub(crate) fn text_field(fields: &Map<String, Value>, name: &str) -> Option<String> {
    let text = words(fields.get(name)?.as_str()?.as_bytes(), ADDED);
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn ran(end: CommandEnd, stdout: &str, stderr: &str) -> CommandRun {
        CommandRun { end, stdout: stdout.into(), stderr: stderr.into(), took: Duration::ZERO }
    }

    fn said(stdout: &str) -> Result<Decision, String> {
        decide(&ran(CommandEnd::Exit(0), stdout, ""), false)
    }

    #[test]
    fn exit_code_two_denies_with_the_reason_on_standard_error() {
        let deny =
            |stderr: &str| decide(&ran(CommandEnd::Exit(2), "{\"decision\":\"allow\"}", stderr), false);
        assert_eq!(deny("not on \u{1b}[31mFriday\n").unwrap().deny.unwrap(), "not on Friday");
        assert_eq!(deny("").unwrap().deny.unwrap(), "it gave no reason");
        assert!(deny(&"x".repeat(100_000)).unwrap().deny.unwrap().len() < REASON + 10);
    }

    #[test]
    fn json_denies_changes_and_adds() {
        assert_eq!(said("").unwrap(), Decision::default());
        assert_eq!(said("formatted 3 files\n").unwrap(), Decision::default());
        let deny = said(r#"{"decision":"deny","reason":"no"}"#).unwrap();
        assert_eq!(deny.deny.unwrap(), "no");
        let changed = said(r#"{"arguments":{"command":"ls"},"add":"see docs","result":"r"}"#).unwrap();
        assert_eq!(changed.arguments, Some(json!({"command": "ls"})));
        assert_eq!((changed.add.as_deref(), changed.result.as_deref()), (Some("see docs"), Some("r")));
        assert!(changed.deny.is_none());
    }

    /// What cannot be understood is a failure: a blocking hook then denies.
    #[test]
    fn what_cannot_be_understood_is_a_failure() {
        for bad in [
            "{",
            "{\"decision\":",
            r#"{"decision":"block"}"#,
            r#"{"decision":false}"#,
            r#"{"descision":"deny"}"#,
            r#"{"arguments":"rm -rf /"}"#,
            r#"{"add":7}"#,
            "{\"decision\":\"deny\"} trailing",
        ] {
            assert!(said(bad).is_err(), "{bad}");
        }
        for end in [CommandEnd::Exit(1), CommandEnd::Exit(137), CommandEnd::TimedOut, CommandEnd::TooMuch] {
            assert!(decide(&ran(end.clone(), r#"{"decision":"allow"}"#, ""), false).is_err(), "{end:?}");
        }
        let failed = decide(&ran(CommandEnd::Exit(127), "", "sh: x: not\nfound"), false).unwrap_err();
        assert_eq!(failed, "it failed with exit code 127: sh: x: not found");
    }
}
