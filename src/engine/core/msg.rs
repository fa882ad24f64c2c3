//! What the engine's loop receives from its own tasks: one enum per concern, which stands in the concern's folder beside
//! its handler.

use crate::context::msg::ContextMsg;
use crate::core::services::WatchReport;
use crate::crew::child::msg::ChildMsg;
use crate::crew::external::msg::ExternalMsg;
use crate::crew::msg::CrewMsg;
use crate::files::msg::FilesMsg;
use crate::prompts::msg::PromptMsg;
use crate::questions::msg::QuestionMsg;
use crate::session::msg::SessionMsg;
use crate::turn::msg::TurnMsg;

/// Capacity of the inbox, in reports; a task waits when it is full.
pub(crate) const REPORTS: usize = 1024;
/// Why a task gets no answer when the loop has ended, for people.
pub(crate) const ENDED: &str = "Tiller is shutting down";

/// What tasks report.
pub(crate) enum Msg {
    Turn(TurnMsg),
    Context(ContextMsg),
    Prompt(PromptMsg),
    Question(QuestionMsg),
    Session(SessionMsg),
    Files(FilesMsg),
    /// Reports of or for the agents of this session.
    Crew(CrewMsg),
    /// Reports from the main agent to a child, and of the child's own limits.
    Child(ChildMsg),
    /// Reports of the external program that does this agent's work.
    External(ExternalMsg),
    Watch(WatchReport),
    /// The sandbox's self-test has ended.
    Sandbox(Box<crate::core::services::SandboxFindings>),
    /// The time that child agents had to end is over.
    Quit,
}
