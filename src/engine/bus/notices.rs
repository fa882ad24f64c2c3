//! Turns errors into notices for the user.

use tiller_protocol::{Notice, NoticeKind};
use tiller_provider::ProviderError;

/// A request that failed for good. The turn is parked: nothing of it is lost.
pub(crate) fn provider(e: &ProviderError) -> Notice {
    let n = |kind| Notice::new(kind, e.to_string());
    match e {
        ProviderError::Auth(_) => n(NoticeKind::Config)
            .hint("set or correct the key, or choose another model with /model")
            .hint("then continue: the turn resumes where it stopped"),
        ProviderError::TooLong(_) | ProviderError::TooLarge(_) => {
            n(NoticeKind::Network).hint("compact with /compact, then continue")
        }
        ProviderError::Wait { .. } | ProviderError::Network(_) => {
            n(NoticeKind::Network).hint("continue to retry: the turn resumes where it stopped")
        }
        ProviderError::Unanswered(_) => n(NoticeKind::Network).hint(
            "continue sends the request again; a server that still computes the reply computes it twice",
        ),
        ProviderError::Rejected(_) => n(NoticeKind::Network)
            .hint("choose another model with /model, or fix what the server reports")
            .hint("then continue: the turn resumes where it stopped"),
    }
}

/// The provider says that the request is too long, and compaction did not help.
pub(crate) fn too_long(why: &str) -> Notice {
    Notice::new(NoticeKind::Network, why).hint("choose a model with a larger window, or start a new session")
}

/// The provider says that the request is too long, and it could not be made shorter.
pub(crate) fn cannot_shorten(why: &str, because: &Notice) -> Notice {
    let because = because.message.trim_end_matches('.');
    let mut notice = too_long(why);
    notice.message = format!("{} The conversation could not be compacted: {because}.", notice.message);
    notice
}

/// The model refused to answer.
pub(crate) fn refusal(why: &str) -> Notice {
    let message = if why.trim().is_empty() {
        "the model declined to answer".to_owned()
    } else {
        format!("the model declined to answer: {why}")
    };
    Notice::new(NoticeKind::Denied, message).hint("rephrase the message, or choose another model")
}

/// The reply hit the output limit, again and again.
pub(crate) fn max_tokens() -> Notice {
    Notice::new(
        NoticeKind::Network,
        "the reply was cut off at the model's output limit, and so were those that continued it",
    )
    .hint("continue to resume the reply")
    .hint("or ask for less at once, or choose a model with a larger output limit")
}

/// The turn was stopped because its calls repeated.
pub(crate) fn repeats(calls: &str) -> Notice {
    let why = format!("the agent repeated the same calls with the same results: {calls}");
    Notice::new(NoticeKind::Budget, why)
        .hint("write what it should do instead, or continue to let it proceed")
        .hint("limits.repeats in config.toml allows more rounds; 0 turns this off")
}

/// The model sent empty replies more than once.
pub(crate) fn empty_reply() -> Notice {
    Notice::new(NoticeKind::Network, "the model sent empty replies")
        .hint("continue to retry, or send another message")
}
