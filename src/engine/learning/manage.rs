//! The person's decisions about learnings and rules, and what the dialog shows.

use std::sync::Arc;

use tiller_memory::Learnings;
use tiller_memory::learnings::screen;
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{
    CommandId, EventBody, LearningCommand, LearningNews, LearningState, LearningsQuery, LearningsReply,
    Notice, NoticeKind, RuleView,
};
use tiller_store::StoreError;

use crate::bus::{ClientId, read};
use crate::core::Core;

/// Most learnings of a reply.
const ROWS: u32 = 1_000;
/// Violations from which a rule may become a permission rule.
const VIOLATED: u32 = 2;

/// Begins the consolidation, once a day for all processes.
pub(crate) fn tend(core: &mut Core) {
    let Some(learnings) = core.services.user.learnings.clone() else { return };
    if core.session.read_only {
        return;
    }
    core.spawn(async move {
        // A panic there loses this day's consolidation only.
        let _ = tokio::task::spawn_blocking(move || learnings.tend()).await;
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
        let rule_file = learnings.promotion().map(|p| p.file.clone()).unwrap_or_default();
        Ok(ReplyEvent::LearningsReply { reply: LearningsReply { learnings: found, rules, rule_file } })
    });
}

fn rules(learnings: &Learnings) -> Result<Vec<RuleView>, StoreError> {
    let Some(book) = learnings.rules() else { return Ok(Vec::new()) };
    let mut counts = learnings.store().receipts().all()?;
    let view = |rule: tiller_memory::rules::BookRule| {
        let (receipts, promoted) = counts.remove(&rule.rule.text).unwrap_or_default();
        let (text, when, never) = (rule.rule.text, rule.rule.when, rule.rule.never);
        RuleView { text, when, never, origin: rule.origin, receipts, promoted }
    };
    let mut rules: Vec<RuleView> = book.rules(learnings.store()).into_iter().map(view).collect();
    // Rules whose text is gone, but whose permission rule is still in force.
    rules.extend(counts.into_iter().filter_map(|(text, (receipts, promoted))| {
        promoted.as_ref()?;
        Some(RuleView { text, receipts, promoted, ..RuleView::default() })
    }));
    rules.sort_by_key(|r| std::cmp::Reverse((r.receipts.violated, r.receipts.shown)));
    Ok(rules)
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

fn carry_out(learnings: &Learnings, command: LearningCommand) -> Result<String, Notice> {
    let store = learnings.store();
    let user = |why: String| Notice::new(NoticeKind::User, why);
    match command {
        LearningCommand::Decide { id, state } => {
            let said = match &state {
                LearningState::Active => "The learning is in use.",
                LearningState::Retired => "The learning is retired.",
                LearningState::Proposed | LearningState::Other(_) => "The learning waits for you.",
            };
            if let LearningState::Other(word) = &state {
                return Err(user(format!("there is no state '{word}'")));
            }
            store.learnings().change(id, Some(state), None).wait().map_err(|e| e.notice())?;
            Ok(said.into())
        }
        LearningCommand::Edit { id, text } => {
            for part in [&text.pattern, &text.fix, &text.context] {
                screen(part).map_err(|why| user(format!("the text cannot be kept: {why}")))?;
            }
            if text.pattern.trim().is_empty() || text.fix.trim().is_empty() {
                return Err(user("pattern and fix must not be empty".into()));
            }
            store.learnings().change(id, None, Some(text)).wait().map_err(|e| e.notice())?;
            Ok("The learning was changed.".into())
        }
        LearningCommand::Undo { id } => {
            let back = store.learnings().undo(id).wait().map_err(|e| e.notice())?;
            Ok(format!("The last change was undone: the learning is {}.", back.state))
        }
        LearningCommand::Promote { rule, line } => promote(learnings, &rule, &line),
        LearningCommand::Demote { rule } => demote(learnings, &rule),
    }
}

/// Writes what a rule forbids as permission rules. Nothing is written that was not shown.
fn promote(learnings: &Learnings, text: &str, line: &str) -> Result<String, Notice> {
    let user = |why: &str| Notice::new(NoticeKind::User, why);
    let promotion = learnings.promotion().ok_or_else(|| user("there is no file of permission rules"))?;
    let rules = rules(learnings).map_err(|e| e.notice())?;
    let rule = rules.iter().find(|r| r.text == text).ok_or_else(|| user("there is no such rule any more"))?;
    if rule.promoted.is_some() {
        return Err(user("this is a permission rule already"));
    }
    if rule.never.is_empty() {
        return Err(user("the rule forbids nothing").hint("Add [never: ...] to it."));
    }
    if rule.receipts.violated < VIOLATED {
        return Err(user("the rule was not violated twice yet"));
    }
    if rule.never.join(" && ") != line {
        return Err(user("the rule has changed since it was shown"));
    }
    let mut written: Vec<String> = Vec::new();
    for pattern in &rule.never {
        if let Err(why) = (promotion.write)(pattern, true) {
            for done in &written {
                // The first error is the one to tell.
                let _ = (promotion.write)(done, false);
            }
            return Err(user(&why));
        }
        written.push(pattern.clone());
    }
    learnings.store().receipts().promote(text, Some(line.to_owned())).wait().map_err(|e| e.notice())?;
    Ok(format!("Written to {}: deny {line}", promotion.file))
}

fn demote(learnings: &Learnings, text: &str) -> Result<String, Notice> {
    let user = |why: &str| Notice::new(NoticeKind::User, why);
    let promotion = learnings.promotion().ok_or_else(|| user("there is no file of permission rules"))?;
    let counts = learnings.store().receipts().all().map_err(|e| e.notice())?;
    let line = counts
        .get(text)
        .and_then(|(_, promoted)| promoted.clone())
        .ok_or_else(|| user("this is no permission rule"))?;
    for pattern in line.split(" && ") {
        (promotion.write)(pattern, false).map_err(|why| user(&why))?;
    }
    learnings.store().receipts().promote(text, None).wait().map_err(|e| e.notice())?;
    Ok(format!("Taken out of {}: {line}", promotion.file))
}
