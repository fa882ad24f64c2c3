//! The user's changes of memory.

use std::sync::Arc;

use tiller_memory::files::Edit;
use tiller_memory::{Memory, MemoryError};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::memory::BUT_NO_RULE;
use tiller_protocol::{
    CommandId, MemoryCommand, MemoryQuery, MemoryTarget, Notice, NoticeKind, Provenance, Taint,
};

use crate::bus::ClientId;
use crate::core::Core;

/// Carries out a command and answers it.
pub(crate) fn command(core: &mut Core, client: ClientId, cause: CommandId, command: MemoryCommand) {
    let from = Provenance {
        session: Some(core.session.id),
        // The user's own entries belong to no branch.
        entry: None,
        branch: String::new(),
        agent: core.identity.id.clone(),
        taint: Taint::Person,
    };
    let learnings = core.services.user.learnings.clone();
    answer(core, client, cause, move |memory| {
        let text = match &command {
            MemoryCommand::Add { text, .. } | MemoryCommand::Edit { text, .. } => Some(text.clone()),
            _ => None,
        };
        let said = carry_out(memory, command, from)?;
        let rules = learnings.as_ref().and_then(|learnings| learnings.rules());
        if let (Some(text), Some(rules)) = (text.filter(|_| said.contains(BUT_NO_RULE)), rules) {
            rules.fault_reported(&text);
        }
        Ok(ReplyEvent::DoneReply { said })
    });
}

/// Lists memory.
pub(crate) fn query(core: &mut Core, client: ClientId, cause: CommandId, query: MemoryQuery) {
    let learnings = core.services.user.learnings.clone();
    let (watch, bus) = (Arc::clone(&core.context.memory_watch), Arc::clone(&core.bus));
    let scope = core.scope_of(None);
    answer(core, client, cause, move |memory| {
        // Before the entries are read: each later change is published.
        watch.begin(memory, &bus, &scope);
        let mut page = Box::new(memory.page(&query)?);
        if let Some(rules) = learnings.as_ref().and_then(|learnings| learnings.rules()) {
            rules.mark(&mut page);
        }
        Ok(ReplyEvent::MemoryReply { page })
    });
}

fn carry_out(memory: &Memory, command: MemoryCommand, from: Provenance) -> Result<String, MemoryError> {
    let write = |target: MemoryTarget, edit: Edit, said: &str| {
        memory.write(target, &edit, from.clone()).map(|_| format!("{said} {}", target.label()))
    };
    // The user decides over the entry that a list showed, and over no other that has its words.
    if let MemoryCommand::Edit { target, old, .. }
    | MemoryCommand::Delete { target, old }
    | MemoryCommand::Archive { target, old, .. } = &command
        && !memory.has(*target, old)?
    {
        return Err(MemoryError::Refused("the entry was changed meanwhile".into()));
    }
    match command {
        MemoryCommand::Add { target, text } => {
            let fault = no_rule(memory, &text);
            Ok(write(target, Edit::Append(text), "kept in")? + &fault)
        }
        MemoryCommand::Edit { target, old, text } => {
            let fault = no_rule(memory, &text);
            Ok(write(target, Edit::Replace { old, text }, "changed in")? + &fault)
        }
        MemoryCommand::Delete { target, old } => write(target, Edit::Remove { old }, "removed from"),
        MemoryCommand::Archive { target, old, archived } => {
            memory.archive(target, &old, archived, &from)?;
            let label = target.label();
            Ok(if archived {
                format!("archived in {label}")
            } else {
                format!("back from the archive of {label}")
            })
        }
        MemoryCommand::Decide { change, accept, text } => memory.decide(change, accept, text.as_deref()),
        MemoryCommand::Restore { change, all } => memory.restore(change, all),
        MemoryCommand::Undo { redo } => memory.undo(redo),
    }
}

/// The end of an answer about a text whose matcher has a fault; otherwise nothing.
fn no_rule(memory: &Memory, text: &str) -> String {
    memory.rule_fault(text).map(|why| format!("{BUT_NO_RULE}{why}")).unwrap_or_default()
}

/// Answers by work on a thread that may block.
fn answer(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    work: impl FnOnce(&Arc<Memory>) -> Result<ReplyEvent, MemoryError> + Send + 'static,
) {
    let Some(memory) = core.services.user.memory.clone() else {
        return core.refuse(client, cause, Notice::new(NoticeKind::User, "there is no memory here"));
    };
    let (bus, scope) = (Arc::clone(&core.bus), core.scope_of(Some(cause)));
    core.spawn(async move {
        let done = tokio::task::spawn_blocking(move || work(&memory)).await;
        let reply = match done {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => {
                let kind = match error {
                    MemoryError::Refused(_) | MemoryError::Known { .. } | MemoryError::NotFound(_) => {
                        NoticeKind::User
                    }
                    _ => NoticeKind::Config,
                };
                ReplyEvent::ErrorReply { notice: Notice::new(kind, error.to_string()) }
            }
            Err(_) => ReplyEvent::ErrorReply {
                notice: Notice::new(NoticeKind::Internal, "memory could not be read"),
            },
        };
        bus.reply(client, &scope, reply);
    });
}
