//! The person's decisions about learnings and rules, and what the dialog shows.

use std::sync::Arc;

use tiller_memory::Learnings;
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{
    CommandId, EventBody, Learning, LearningCommand, LearningNews, LearningState, LearningsQuery,
    LearningsReply, Notice, NoticeKind,
};

use super::rules::{demote, promote, rules};
use crate::bus::{ClientId, read};
use crate::core::Core;

/// Most learnings of a reply.
const ROWS: u32 = 1_000;

/// Begins the consolidation, once a day for all processes. Each start and each turn ask: a process may run for weeks.
pub(crate) fn consolidate_if_due(core: &mut Core) {
    let Some(learnings) = core.services.user.learnings.clone() else { return };
    if core.session.read_only {
        return;
    }
    core.spawn(async move {
        // A panic there loses this day's consolidation only.
        let _ = tokio::task::spawn_blocking(move || learnings.consolidate_if_due()).await;
    });
}

/// Answers with learnings and rules.
pub(crate) fn query(core: &mut Core, client: ClientId, cause: CommandId, query: LearningsQuery) {
    let Some(learnings) = core.services.user.learnings.clone() else {
        let reply = ReplyEvent::LearningsReply { reply: LearningsReply::default() };
        return core.bus.reply(client, &core.scope_of(Some(cause)), reply);
    };
    read::read(core, client, cause, move || {
        let found =
            learnings.store().learnings().list(&query.filter, query.state.as_ref(), query.limit.min(ROWS))?;
        let rules = rules(&learnings)?;
        Ok(ReplyEvent::LearningsReply { reply: LearningsReply { learnings: found, rules } })
    });
}

/// Carries out a decision.
pub(crate) fn command(core: &mut Core, client: ClientId, cause: CommandId, command: LearningCommand) {
    let Some(learnings) = core.services.user.learnings.clone() else {
        return core.refuse(client, cause, Notice::new(NoticeKind::User, "no learnings are kept here"));
    };
    let (bus, scope) = (Arc::clone(&core.bus), core.scope_of(Some(cause)));
    core.spawn(async move {
        let carried = {
            let learnings = Arc::clone(&learnings);
            tokio::task::spawn_blocking(move || {
                let said = carry_out(&learnings, command);
                (said, learnings.store().learnings().pending().unwrap_or(0))
            })
        };
        let (said, pending) = match carried.await {
            Ok(done) => done,
            Err(_) => (Err(Notice::new(NoticeKind::Internal, "the learning could not be changed")), 0),
        };
        match said {
            Ok(said) => {
                let news =
                    Box::new(LearningNews { used: Vec::new(), call_id: None, rules: Vec::new(), pending });
                bus.publish(&scope, EventBody::State(StateEvent::LearningNews { news }));
                bus.reply(client, &scope, ReplyEvent::DoneReply { said });
            }
            Err(notice) => bus.reply(client, &scope, ReplyEvent::ErrorReply { notice }),
        }
    });
}

/// A sentence where a learning has a matcher that cannot be read; otherwise nothing.
fn no_rule(learnings: &Learnings, learning: &Learning) -> String {
    let fault = learnings.rules().and_then(|book| book.fault_of(learning));
    fault.map(|why| format!(" It is no rule: {why}.")).unwrap_or_default()
}

fn carry_out(learnings: &Learnings, command: LearningCommand) -> Result<String, Notice> {
    let store = learnings.store();
    let user = |why: String| Notice::new(NoticeKind::User, why);
    match command {
        LearningCommand::Decide { id, state } => {
            let said = match &state {
                LearningState::Active => "The learning is in use.",
                LearningState::Retired => "The learning is retired.",
                LearningState::Proposed | LearningState::Aside | LearningState::Other(_) => {
                    "The learning waits for you."
                }
            };
            if let LearningState::Other(word) = &state {
                return Err(user(format!("there is no state '{word}'")));
            }
            let now = store.learnings().change(id, Some(state), None).wait().map_err(|e| e.notice())?;
            Ok(format!("{said}{}", no_rule(learnings, &now)))
        }
        LearningCommand::Edit { id, text } => {
            for part in [&text.pattern, &text.fix, &text.context] {
                learnings.screen(part).map_err(|why| user(format!("the text cannot be kept: {why}")))?;
            }
            if text.pattern.trim().is_empty() || text.fix.trim().is_empty() {
                return Err(user("pattern and fix must not be empty".into()));
            }
            let now = store.learnings().change(id, None, Some(text)).wait().map_err(|e| e.notice())?;
            Ok(format!("The learning was changed.{}", no_rule(learnings, &now)))
        }
        LearningCommand::Undo { id } => {
            let back = store.learnings().undo(id).wait().map_err(|e| e.notice())?;
            Ok(format!("The last change was undone: the learning is {}.", back.state))
        }
        LearningCommand::Promote { rule, kind, text } => promote(learnings, &rule, kind, &text),
        LearningCommand::Demote { rule } => demote(learnings, &rule),
    }
}
