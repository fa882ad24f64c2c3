//! Questions to the user: opening, storing over a restart, closing when no task waits any more.

use crate::bus::agent_view;
use tiller_protocol::PermissionOutcome;
use tiller_protocol::event::AskEvent;
use tiller_protocol::{AgentId, Ask, AskBody, AskId, AskReply, EventBody};
use tokio::sync::{mpsc, oneshot};

use crate::context::clean;
use crate::core::Core;
use crate::core::hooks;
use crate::core::msg::{ENDED, Msg};
use crate::core::saves::Then;
use crate::core::services::Human;
use crate::questions::about::About;
use crate::questions::msg::QuestionMsg;

/// Opens a tool's question, or refuses it where no user can answer.
pub(crate) fn ask(
    core: &mut Core,
    agent: AgentId,
    call: Option<String>,
    body: AskBody,
    reply: oneshot::Sender<Result<AskReply, String>>,
) {
    if core.identity.is_child() {
        return core.child_driver().ask_user(call, body, reply);
    }
    if core.services.user.human == Human::Absent {
        let _ = reply.send(Err("no one is available to answer".into()));
        return;
    }
    hooks::asked(core, &agent, &body);
    let id = AskId::fresh(&*core.services.ids, core.services.clock.now());
    let Some(ask) = core.asks.open(id, agent, call, body, reply).cloned() else { return };
    let event = if matches!(ask.body, AskBody::Permission(_)) {
        AskEvent::PermissionAsked { ask }
    } else {
        AskEvent::QuestionAsked { ask }
    };
    core.show(core.scope(), EventBody::Ask(event));
    asks_changed(core);
}

/// Asks the loop behind `tx` to open a question, and waits for the answer.
///
/// # Errors
/// When no one can answer, or the engine ends; in words.
pub(crate) async fn request(
    tx: &mpsc::Sender<Msg>,
    agent: &AgentId,
    call: Option<String>,
    body: AskBody,
) -> Result<AskReply, String> {
    let (reply, answer) = oneshot::channel();
    let msg = QuestionMsg::Ask { agent: agent.clone(), call, body: Box::new(body), reply };
    tx.send(Msg::Question(msg)).await.map_err(|_| ENDED.to_owned())?;
    answer.await.map_err(|_| ENDED.to_owned())?
}

/// Opens a question of the engine itself; the answer arrives as a report.
pub(crate) fn ask_self(core: &mut Core, about: About, body: AskBody) {
    let (reply, answer) = oneshot::channel();
    ask(core, core.identity.id.clone(), None, body, reply);
    let tx = core.tx.clone();
    core.spawn(async move {
        let reply = answer.await.unwrap_or_else(|_| Err("Tiller is shutting down".into()));
        let _ = tx.send(Msg::Question(QuestionMsg::Answered { about, reply })).await;
    });
}

/// Stores the open questions, so that they survive a restart.
pub(crate) fn asks_changed(core: &mut Core) {
    let mut append = core.append();
    append.asks = Some(asks_to_keep(core));
    core.save(append, Vec::new(), Then::Nothing);
    agent_view::agent_changed(core);
}

/// The open questions as they are stored: without secrets.
pub(crate) fn asks_to_keep(core: &Core) -> Vec<Ask> {
    // A child agent's call asks again when the child continues.
    let mine = core.asks.list().into_iter().filter(|a| a.agent == core.identity.id);
    mine.map(|a| clean::ask(&core.services.redaction.redact, a)).collect()
}

/// Closes the questions whose calls have ended.
pub(crate) fn prune_asks(core: &mut Core) {
    if core.asks.is_empty() {
        return;
    }
    let gone = core.asks.prune();
    if gone.is_empty() {
        return;
    }
    let scope = core.scope();
    for ask in gone {
        core.bus.publish(&scope, EventBody::Ask(closed(&ask, "the call has ended")));
    }
    asks_changed(core);
}

/// The event for a question that is closed without an answer.
pub(crate) fn closed(ask: &Ask, why: &str) -> AskEvent {
    match &ask.body {
        AskBody::Permission(p) => AskEvent::PermissionDecided {
            id: Some(ask.id),
            tool: p.tool.clone(),
            what: p.shown.clone(),
            decision: PermissionOutcome::Undecided,
            by: why.into(),
            allow: None,
            change: false,
        },
        _ => AskEvent::QuestionAnswered { id: ask.id, reply: AskReply::Declined },
    }
}
