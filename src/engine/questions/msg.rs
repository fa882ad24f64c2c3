//! What tasks report about questions to the user, decisions and settings.

use tiller_protocol::{AgentId, AskBody, AskReply, PermissionOutcome};
use tokio::sync::oneshot;

use crate::core::services::KeyReport;
use crate::core::services::SettingsReport;
use crate::core::services::TrustGrant;
use crate::questions::about::About;

/// Reports about questions, answers and decisions.
pub(crate) enum QuestionMsg {
    Ask {
        agent: AgentId,
        call: Option<String>,
        body: Box<AskBody>,
        reply: oneshot::Sender<Result<AskReply, String>>,
    },
    /// The answer to a question of the engine itself.
    Answered {
        about: About,
        reply: Result<AskReply, String>,
    },
    /// A question of a child agent is answered or withdrawn.
    Closed,
    /// The rules' decision about a call, for the screen.
    Decided {
        tool: String,
        what: String,
        decision: PermissionOutcome,
        by: String,
        /// The rule that would allow such calls, where no one can be asked.
        allow: Option<String>,
        /// A change that the mode or a rule refused.
        change: bool,
    },
    /// The user's answer about the folder is stored, or is not.
    Trusted {
        yes: bool,
        result: Result<TrustGrant, String>,
    },
    /// The user has taken the trust in the folder back. `settings`: its settings were in force.
    TrustLost {
        settings: bool,
    },
    /// The user has not refused offers of skills for good: ask.
    SkillOffer,
    KeyTried(Box<KeyReport>),
    SettingsRead(Box<SettingsReport>),
}
