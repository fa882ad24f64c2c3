//! The approvals that a server needs before it is used: the command of a server of the project, and tools that have changed.

use tiller_protocol::{AskBody, AskReply, lock};
use tiller_tool::ToolCx;

use super::{Failure, SHOWN, Server};
use crate::known::{ApprovedCommand, KnownTool, tokens};
use crate::settings::{Origin, ServerSettings};

/// Tools that a question names.
const NAMED: usize = 12;
/// The answer that starts a server, or takes its new tools.
const YES: &str = "Yes";
const NO: &str = "Not now";

/// A server as a person sees it who approves it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The differences to what was approved, one sentence without a full stop for each.
    pub lines: Vec<String>,
    /// The tools that are approved with these lines: what they do not show stays as it was approved. `None`: not read yet.
    pub(super) tools: Option<Vec<KnownTool>>,
}

impl Seen {
    /// A name for what was seen, the same for the same.
    pub(crate) fn mark(&self, settings: &ServerSettings) -> String {
        let all = serde_json::to_vec(&(&settings.hash, &self.lines, &self.tools)).unwrap_or_default();
        blake3::hash(&all).to_hex()[..16].to_owned()
    }
}

impl Server {
    /// Whether it comes from the project and the person has not said yes to its command.
    pub fn needs_approval(&self) -> bool {
        self.settings.origin == Origin::Project
            && lock(&self.state).known.approved.as_deref() != Some(self.settings.hash.as_str())
    }

    /// Takes the person's yes to its command, and to its tools as the person saw them: they may have changed since.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn approve(&self, seen: &Seen) -> Result<(), String> {
        let known = {
            let mut state = lock(&self.state);
            state.known.approved = Some(self.settings.hash.clone());
            // Only the command of a project is compared; others may hold values of the user's own settings.
            state.known.approved_as =
                (self.settings.origin == Origin::Project).then(|| ApprovedCommand::of(&self.settings));
            if let Some(tools) = &seen.tools {
                state.known.tools = Some(tools.clone());
                state.known.hash.clone_from(&self.settings.hash);
            }
            state.known.clone()
        };
        self.file.write(&known)
    }

    /// Asks whether a server of the project may be started.
    pub(super) async fn ask_start(&self, cx: Option<&ToolCx>) -> Result<(), Failure> {
        // The question shows no changes of tools, so a yes approves none.
        let seen = Seen::default();
        let view = self.view();
        let what = if view.transport == "stdio" { "Start" } else { "Connect to" };
        let mut question =
            format!("{what} the MCP server {} of this project's .mcp.json?\n{}", self.name(), view.command);
        if !view.given.is_empty() {
            question.push_str(&format!("\nIt is given: {}", view.given.join(", ")));
        }
        let changed = lock(&self.state).command_changes(&self.settings);
        if !changed.is_empty() {
            question
                .push_str(&format!("\nYou approved it before, and it has changed:\n{}", changed.join("\n")));
        }
        question.push_str(&match &view.tools {
            Some(tools) => {
                format!("\n{}", price(tools.iter().map(|t| t.name.as_str()), tools.len(), view.tokens))
            }
            None => "\nIts tools are not known before it runs".to_owned(),
        });
        let refused = match changed.is_empty() {
            true => "it has not been approved",
            false => "it has changed since it was approved",
        };
        self.ask(cx, question, refused, &seen).await
    }

    /// Asks for a tool that is new or changed since the tools were approved. Others need no question.
    ///
    /// # Errors
    /// When it stays held back.
    pub(crate) async fn allow(&self, cx: Option<&ToolCx>, tool: &str) -> Result<(), Failure> {
        let is_held = || self.held().iter().any(|held| held.name == tool);
        if !is_held() {
            return Ok(());
        }
        let _one = self.asking.lock().await;
        // Another call may have asked meanwhile.
        if !is_held() {
            return Ok(());
        }
        let seen = lock(&self.state).tool_changes(&self.settings.hash, SHOWN, Some(tool));
        let now = seen.tools.as_deref().unwrap_or_default();
        let question = format!(
            "The tools of the MCP server {} have changed since you approved them. Use these as they are now?\n{}\n{}",
            self.name(),
            seen.lines.join("\n"),
            price(now.iter().map(|tool| tool.name.as_str()), now.len(), tokens(now))
        );
        let refused = "it is new, or has changed, since the tools of this server were approved";
        self.ask(cx, question, refused, &seen).await
    }

    /// Asks, and keeps a yes.
    async fn ask(
        &self,
        cx: Option<&ToolCx>,
        mut question: String,
        refused: &str,
        seen: &Seen,
    ) -> Result<(), Failure> {
        let hint = format!("`tiller mcp test {} --approve` shows and approves it", self.name());
        let Some(cx) = cx else {
            return Err(Failure { unanswered: true, ..Failure::new(format!("{refused}; {hint}")) });
        };
        question.truncate(question.floor_char_boundary(3900));
        let body = AskBody::Clarify {
            question,
            choices: vec![YES.into(), NO.into()],
            allow_freetext: false,
            multiple: false,
            default: None,
            decides: vec![0],
        };
        let answer = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(Failure::new("the question was withdrawn")),
            answer = cx.ports.ask(&cx.agent, body) => answer,
        };
        match answer {
            Ok(AskReply::Choice { answers }) if answers.iter().any(|answer| answer == YES) => {
                self.approve(seen).map_err(|e| Failure::new(format!("the approval could not be kept: {e}")))
            }
            Ok(_) => Err(Failure::new(format!("{refused}: the user said no"))),
            Err(why) => {
                Err(Failure { unanswered: true, ..Failure::new(format!("{refused}, and {why}; {hint}")) })
            }
        }
    }
}

/// Tools with their price.
fn price<'a>(names: impl Iterator<Item = &'a str>, count: usize, tokens: u64) -> String {
    let shown: Vec<&str> = names.take(NAMED).collect();
    let more = if count > shown.len() { format!(" and {} more", count - shown.len()) } else { String::new() };
    let tools = if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") };
    format!("{tools}, about {tokens} tokens when all are read: {}{more}", shown.join(", "))
}
