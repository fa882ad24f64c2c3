//! Reads skills and own commands again before a message that names one is prepared: their files may have been made, changed or
//! removed since they were read last. Before each message it is checked whether the user still trusts the folder.

use std::sync::Arc;

use tiller_protocol::{Message, QueueId};
use tokio::task::JoinHandle;

use crate::core::Core;
use crate::core::msg::Msg;
use crate::prompts::msg::{MessageJob, PromptMsg};
use crate::questions::trust;

/// Whether something is to be read or checked before these messages are prepared.
pub(crate) fn is_due(core: &Core, messages: &[(Option<QueueId>, Message)]) -> bool {
    core.services.user.trust.is_some() || names_files(messages)
}

/// Reads what the messages of a job may name, away from the engine's own task, and hands them back.
pub(crate) fn start(core: &Core, job: MessageJob) -> JoinHandle<()> {
    let names = names_files(&job.messages);
    let (services, tx) = (Arc::clone(&core.services), core.tx.clone());
    let report = tx.clone();
    let look = move || {
        trust::check(&services, &report);
        if names {
            services.crew.roles.library().reload();
        }
    };
    tokio::spawn(async move {
        // After a panic what was read before stays in use.
        let _ = tokio::task::spawn_blocking(look).await;
        // The engine may have ended.
        let _ = tx.send(Msg::Prompt(PromptMsg::FilesRead(Box::new(job)))).await;
    })
}

fn names_files(messages: &[(Option<QueueId>, Message)]) -> bool {
    messages.iter().any(|(_, message)| may_name(&message.text))
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
