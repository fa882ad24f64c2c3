//! `propose_change`: proposes another text for SOUL.md or for the agent's own definition. The user decides about it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_config::agents::front;
use tiller_config::proposals::{self, ProposalSource};
use tiller_protocol::tool::Display;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch};
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Says why a text may not be proposed; `None`: it may.
pub type ScreenProposal = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What the tool needs of the process.
#[derive(Clone)]
pub struct ProposalSettings {
    /// The user's configuration folder.
    pub config: PathBuf,
    /// The folder of the project.
    pub project: PathBuf,
    pub screen: ScreenProposal,
}

/// The tool.
pub(super) struct ProposeChange(pub(super) ProposalSettings);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum File {
    #[default]
    Soul,
    Own,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    text: String,
    #[serde(default)]
    file: File,
    #[serde(default)]
    why: String,
}

const INFO: ToolInfo = ToolInfo {
    name: "propose_change",
    set: ToolSet::Plan,
    grant: ToolGrant::Main,
    starts_agents: false,
    touch: Touch::Plan,
    rule: RuleArgument::Text,
    aliases: &["propose_soul", "edit_soul"],
    verb: ToolVerb::Write,
    target: |args| match args.get("file").and_then(Value::as_str) {
        Some("own") => "a proposal for its own definition".into(),
        _ => "a proposal for SOUL.md".into(),
    },
};

/// Longest reason, in characters.
const WHY: usize = 400;

fn checked(args: &Value) -> Result<Args, ToolError> {
    let args: Args = schema::read(args)?;
    let tell = |text: String| Err(ToolError::Tell(text));
    if args.text.trim().is_empty() {
        return tell("text is empty: give the whole file as it is to be".into());
    }
    if args.text.len() > proposals::LARGEST {
        return tell(format!("text is longer than {} KiB: shorten it", proposals::LARGEST >> 10));
    }
    Ok(args)
}

#[async_trait]
impl Tool for ProposeChange {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn seldom(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: INFO.name.into(),
            description: include_str!("propose_change.md").trim_end().into(),
            schema: schema::of::<Args>(),
        }
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        checked(args)?;
        // Nothing is in force before the user accepts it.
        Ok(vec![Access::Store { what: (INFO.target)(args), path: None }])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args = checked(&args)?;
        let origin = cx.ports.memory_origin(&cx.agent, &args.text).await.map_err(ToolError::Tell)?;
        if let Some(why) = (self.0.screen)(&args.text).or_else(|| (self.0.screen)(&args.why)) {
            return Err(ToolError::Tell(format!("not proposed: {why}")));
        }
        let file = match args.file {
            File::Soul => None,
            File::Own => {
                let own = origin.definition.ok_or_else(|| {
                    ToolError::Tell("your definition is built in or a plugin's: it has no file that you may propose to change".into())
                })?;
                let path = self.0.project.join(own);
                still_itself(&path, &args.text).map_err(ToolError::Tell)?;
                Some(path)
            }
        };
        let label = file.as_ref().map_or_else(|| "SOUL.md".to_owned(), |path| path.display().to_string());
        let from = ProposalSource {
            file,
            why: args.why.trim().chars().take(WHY).collect(),
            agent: cx.agent.clone(),
            session: origin.provenance.session.unwrap_or(cx.session),
            taint: origin.provenance.taint,
            time: cx.clock.now(),
        };
        let id = id(cx);
        let (config, text) = (self.0.config.clone(), with_line_end(&args.text));
        tokio::task::spawn_blocking(move || proposals::propose(&config, &id, &text, &from))
            .await
            .map_err(|_| ToolError::Tell("the proposal could not be kept".into()))?
            .map_err(|why| ToolError::Tell(format!("not proposed: {why}")))?;
        let text = format!(
            "Proposed for {label}. It is not in force: the user accepts, edits or declines it in /personality, when they like. \
             Go on without it."
        );
        Ok(ToolOutput::text(text).show(Display::Measure { text: "waits in /personality".into() }))
    }
}

/// A name for the files of a proposal, by time and call.
fn id(cx: &ToolCx) -> String {
    let call = blake3::hash(format!("{}{}", cx.session, cx.call_id).as_bytes()).to_hex();
    format!("{:013}-{}", cx.clock.now().0, &call[..8])
}

fn with_line_end(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

/// A definition keeps its name, so that it stays the definition of this agent.
fn still_itself(path: &Path, text: &str) -> Result<(), String> {
    let name = |text: &str| -> Result<String, String> {
        let parts = front::split(path, text.as_bytes()).map_err(|p| p.message)?;
        if parts.body.is_empty() {
            return Err("it has no prompt below its front matter".into());
        }
        let value = parts.pairs.iter().find(|(key, _)| key.value == "name").map(|(_, value)| &value.value);
        Ok(if let Some(front::Value::Text(name)) = value { name.clone() } else { String::new() })
    };
    let new = name(text).map_err(|why| format!("text is no agent definition: {why}"))?;
    let now = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    if name(&now).is_ok_and(|now| now != new) {
        return Err("the name of your definition cannot change".into());
    }
    Ok(())
}
