//! Questions to the person: put, kept over a restart, closed when nobody waits any more.

use tiller_protocol::event::AskEvent;
use tiller_protocol::{AgentId, Ask, AskBody, AskId, AskReply, EventBody};
use tokio::sync::oneshot;

use crate::context::clean;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::Then;
use crate::core::services::Human;
use crate::questions::about::About;
use crate::questions::msg::QuestionMsg;

impl Core {
    /// A tool's question: shown, or refused where nobody can answer.
    pub(crate) fn ask(
        &mut self,
        agent: AgentId,
        call: Option<String>,
        body: AskBody,
        reply: oneshot::Sender<Result<AskReply, String>>,
    ) {
        if self.identity.child.is_some() {
            return self.ask_main(call, body, reply);
        }
        if self.services.human == Human::Absent {
            let _ = reply.send(Err("no one is available to answer".into()));
            return;
        }
        let id = AskId::fresh(&*self.services.ids, self.services.clock.now());
        let Some(ask) = self.asks.open(id, agent, call, body, reply).cloned() else { return };
        let event = if matches!(ask.body, AskBody::Permission(_)) {
            AskEvent::PermissionAsked { ask }
        } else {
            AskEvent::QuestionAsked { ask }
        };
        self.show(self.place(), EventBody::Ask(event));
        self.asks_changed();
    }

    /// A question of the engine's own; the answer comes back as a report.
    pub(crate) fn ask_self(&mut self, about: About, body: AskBody) {
        let (reply, answer) = oneshot::channel();
        self.ask(self.identity.id.clone(), None, body, reply);
        let tx = self.tx.clone();
        self.spawn(async move {
            let reply = answer.await.unwrap_or_else(|_| Err("Tiller is ending".into()));
            let _ = tx.send(Msg::Question(QuestionMsg::Answered { about, reply })).await;
        });
    }

    /// Questions survive a restart.
    pub(crate) fn asks_changed(&mut self) {
        let mut append = self.append();
        append.asks = Some(self.asks_to_keep());
        self.save(append, Vec::new(), Then::Nothing);
        self.agent_changed();
    }

    /// As they are stored: without secrets.
    pub(crate) fn asks_to_keep(&self) -> Vec<Ask> {
        // A child's call asks again by itself when the child goes on.
        let mine = self.asks.list().into_iter().filter(|a| a.agent == self.identity.id);
        mine.map(|a| clean::ask(&self.services.redact, a)).collect()
    }

    /// Closes the questions whose calls have ended.
    pub(crate) fn prune_asks(&mut self) {
        if self.asks.is_empty() {
            return;
        }
        let gone = self.asks.prune();
        if gone.is_empty() {
            return;
        }
        let place = self.place();
        for ask in gone {
            self.bus.publish(&place, EventBody::Ask(closed(&ask, "the call has ended")));
        }
        self.asks_changed();
    }
}

/// For a question that nobody will answer any more.
pub(crate) fn closed(ask: &Ask, why: &str) -> AskEvent {
    match &ask.body {
        AskBody::Permission(p) => AskEvent::PermissionDecided {
            id: Some(ask.id),
            tool: p.tool.clone(),
            what: p.shown.clone(),
            decision: "none".into(),
            by: why.into(),
        },
        _ => AskEvent::QuestionAnswered { id: ask.id, reply: AskReply::Declined },
    }
}
