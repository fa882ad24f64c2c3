//! Reads skills and own commands again before a message that names one is prepared: their files may have been made, changed or
//! removed since they were read last. Before each message it is checked whether the user still trusts the folder.

use tiller_protocol::{Message, QueueId};
use tokio_util::task::AbortOnDropHandle;

use crate::core::Core;
use crate::core::msg::Msg;
use crate::prompts::compose;
use crate::prompts::doing::JobKind;
use crate::prompts::msg::{Destination, FilesRead, PromptMsg};
use crate::questions::msg::QuestionMsg;

/// Prepares messages, after the files that they may name were read again.
pub(crate) fn compose(core: &mut Core, goal: Destination, messages: Vec<(Option<QueueId>, Message)>) {
    let names = messages.iter().any(|(_, message)| may_name(&message.text));
    let check = core.services.user.trust.clone();
    if !names && check.is_none() {
        return compose::compose(core, goal, messages);
    }
    let doing = match (&goal, messages.first()) {
        (Destination::Prompt { .. }, None) => return,
        (goal, first) => job_kind(goal, first),
    };
    let no = if doing.is_some() { core.next_job() } else { 0 };
    let (library, tx) = (core.services.crew.roles.library().clone(), core.tx.clone());
    let report = tx.clone();
    let look = move || {
        if let Some(loss) = check.and_then(|check| check()) {
            // Reported from here: this job may be stopped, and the loss is told once.
            let _ = report.blocking_send(Msg::Question(QuestionMsg::TrustLost(Box::new(loss))));
        }
        if names {
            library.reload();
        }
    };
    let task = tokio::spawn(async move {
        // After a panic what was read before stays in use.
        let _ = tokio::task::spawn_blocking(look).await;
        let read = FilesRead { goal, messages, no };
        // The engine may have ended.
        let _ = tx.send(Msg::Prompt(PromptMsg::FilesRead(Box::new(read)))).await;
    });
    if let Some(doing) = doing {
        core.busy_with(no, doing, task);
    } else if let Some(live) = &mut core.turn.live {
        // An interrupt drops the turn and this task with it.
        live.tasks.timer = Some(AbortOnDropHandle::new(task));
    }
}

/// The files were read: the messages are prepared, unless they were stopped meanwhile.
pub(crate) fn read(core: &mut Core, read: FilesRead) {
    let goes_on = match read.goal {
        Destination::Steer { turn } => core.is_live(turn),
        Destination::Prompt { .. } | Destination::Continue { .. } => core.job_done(read.no),
    };
    if goes_on {
        compose::compose(core, read.goal, read.messages);
    }
}

/// The job that prepares a message; `None`: the turn in flight does. `first`: the first of the messages.
pub(crate) fn job_kind(goal: &Destination, first: Option<&(Option<QueueId>, Message)>) -> Option<JobKind> {
    match (goal, first) {
        (Destination::Steer { .. }, _) | (Destination::Prompt { .. }, None) => None,
        (Destination::Continue { cause }, _) => Some(JobKind::Continue { cause: *cause }),
        (Destination::Prompt { client }, Some((queued, message))) => {
            Some(JobKind::Message { client: *client, queued: *queued, message: message.clone() })
        }
    }
}

/// Whether a text may call an own command, or name a skill.
fn may_name(text: &str) -> bool {
    let named = |word: &str| word.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.trim_start().strip_prefix('/').is_some_and(named) || text.split('$').skip(1).any(named)
}

#[cfg(test)]
mod tests {
    use super::may_name;

    #[test]
    fn only_texts_that_may_name_a_file_have_files_read() {
        for text in ["/deploy", " /team:review it", "use $notes", "($a-skill)", "/2fa"] {
            assert!(may_name(text), "{text}");
        }
        for text in ["hello", "a/b", "/", "// a comment", "it costs $", "$HOME is set", ""] {
            assert!(!may_name(text), "{text}");
        }
    }
}
