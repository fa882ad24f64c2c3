//! `clarify`: a question to the person.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::tool::Display;
use tiller_protocol::{
    Access, AskBody, AskReply, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch,
};

use crate::text::visible;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Choices, and characters of the question.
const CHOICES: usize = 6;
const CHARS: usize = 4_000;

/// The tool.
pub struct Clarify;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    question: String,
    #[serde(default)]
    choices: Vec<String>,
    // True where it is left out, which is as good as always meant.
    #[serde(default)]
    #[schemars(skip)]
    allow_freetext: Option<bool>,
    #[serde(default)]
    multiple: bool,
    /// Index of the choice if no one can answer
    #[serde(default)]
    default: Option<usize>,
}

const INFO: ToolInfo = ToolInfo {
    name: "clarify",
    set: ToolSet::Plan,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Plan,
    rule: RuleArgument::Text,
    aliases: &["askuserquestion", "ask"],
    verb: ToolVerb::Ask,
    target: |args| schema::text(args, "question"),
};

#[async_trait]
impl Tool for Clarify {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("clarify.md"))
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        checked(schema::read(args)?)?;
        Ok(vec![Access::Free])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args = checked(schema::read(&args)?)?;
        let body = AskBody::Clarify {
            question: args.question,
            choices: args.choices.clone(),
            allow_freetext: args.allow_freetext.unwrap_or(true),
            multiple: args.multiple,
            default: args.default,
            decides: Vec::new(),
        };
        let reply = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Interrupted("the question was withdrawn".into())),
            reply = cx.ports.ask(&cx.agent, body) => reply,
        };
        match reply {
            Ok(AskReply::Choice { answers }) if !answers.is_empty() => {
                let shown = answers.join("; ");
                Ok(ToolOutput::text(format!("the user answered: {shown}"))
                    .show(Display::Measure { text: shown }))
            }
            Ok(_) => Err(ToolError::Declined(
                "the user declined to answer; do what is safe without the answer, or say what you need and stop"
                    .into(),
            )),
            Err(why) => match args.default.and_then(|n| args.choices.get(n)) {
                Some(choice) => Ok(ToolOutput::text(format!("{why}; your default was used: {choice}"))),
                None => Err(ToolError::Unanswered(format!("{why}; there was no default"))),
            },
        }
    }
}

/// Refuses what could not be answered; cleans the rest.
fn checked(mut args: Args) -> Result<Args, ToolError> {
    let tell = |text: &str| Err(ToolError::Tell(text.into()));
    args.question = visible(args.question.trim()).into_owned();
    args.choices = args.choices.iter().map(|c| visible(&c.trim().replace('\n', " ")).into_owned()).collect();
    if args.question.is_empty() {
        return tell("the question is empty");
    }
    if args.question.chars().count() > CHARS || args.choices.iter().any(|c| c.chars().count() > CHARS) {
        return tell("the question or a choice is longer than 4,000 characters");
    }
    if args.choices.len() > CHOICES {
        return tell("at most 6 choices");
    }
    let doubled = args.choices.iter().enumerate().any(|(n, c)| c.is_empty() || args.choices[..n].contains(c));
    if doubled {
        return tell("a choice is empty or appears twice");
    }
    if args.choices.is_empty() && args.allow_freetext == Some(false) {
        return tell("without choices the answer must be free text");
    }
    if args.default.is_some_and(|n| n >= args.choices.len()) {
        return tell("default is not the number of a choice (from 0)");
    }
    Ok(args)
}

#[cfg(test)]
#[path = "clarify_tests.rs"]
mod tests;
