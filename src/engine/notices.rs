//! Failures in words: the one place where errors become what a person reads.

use tiller_protocol::{Notice, NoticeKind};
use tiller_provider::ProviderError;

/// A request that failed for good. The turn is parked: nothing of it is lost.
pub(crate) fn provider(e: &ProviderError) -> Notice {
    let n = |kind| Notice::new(kind, e.to_string());
    match e {
        ProviderError::Auth(_) => n(NoticeKind::Config)
            .hint("set or mend the key, or choose another model with /model")
            .hint("then continue: the turn goes on where it stands"),
        ProviderError::TooLong(_) => n(NoticeKind::Network).hint("compact with /compact, then continue"),
        ProviderError::Wait { .. } | ProviderError::Network(_) => {
            n(NoticeKind::Network).hint("continue to try again: the turn goes on where it stands")
        }
        ProviderError::Rejected(_) => n(NoticeKind::Network)
            .hint("choose another model with /model, or mend what the server says")
            .hint("then continue: the turn goes on where it stands"),
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
    notice.message = format!("{} It could not be made shorter: {because}.", notice.message);
    notice
}

/// The model declined.
pub(crate) fn refusal(why: &str) -> Notice {
    let message = if why.trim().is_empty() {
        "the model declined to answer".to_owned()
    } else {
        format!("the model declined to answer: {why}")
    };
    Notice::new(NoticeKind::Denied, message).hint("say it in other words, or choose another model")
}

/// The reply hit the output limit.
pub(crate) fn max_tokens() -> Notice {
    Notice::new(NoticeKind::Info, "the reply was cut at the model's output limit")
        .hint("continue to let it go on")
}

/// Nothing came, more than once.
pub(crate) fn empty_reply() -> Notice {
    Notice::new(NoticeKind::Network, "the model sent empty replies")
        .hint("continue to ask again, or say more")
}
