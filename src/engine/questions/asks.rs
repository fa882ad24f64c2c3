//! Open questions. Each has an id of its own, and an answer reaches only its question. Equal questions of one agent's
//! calls are one question.

use tiller_protocol::{AgentId, Ask, AskBody, AskId, AskReply};
use tokio::sync::oneshot;

/// The waiting task's end. The asking task holds the receiver; it closes when the call ends first.
type Waiter = oneshot::Sender<Result<AskReply, String>>;

/// The open questions, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    open: Vec<(Ask, Vec<Waiter>)>,
}

/// Why an answer was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerError {
    /// Answered already, or its call has ended.
    Gone,
    /// The text of the question has changed since.
    OtherText,
    /// It does not answer this kind of question.
    Kind,
}

impl AnswerError {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Gone => "this question is no longer open",
            Self::OtherText => "the text that would run has changed since the question was shown",
            Self::Kind => "this answer does not fit the question",
        }
    }
}

impl Asks {
    /// Opens a question, or adds a waiting task to an equal one of the same agent. `Some` when it is new. Questions of
    /// different agents are never joined, so that an answer applies only to questions that were shown.
    pub(crate) fn open(
        &mut self,
        id: AskId,
        agent: AgentId,
        call: Option<String>,
        body: AskBody,
        waiter: Waiter,
    ) -> Option<&Ask> {
        if let AskBody::Permission(p) = &body {
            let same = self.open.iter_mut().filter(|(a, _)| a.agent == agent).find(|(a, _)| {
                matches!(&a.body, AskBody::Permission(q) if q.hash == p.hash && q.tool == p.tool && q.folder == p.folder)
            });
            if let Some((_, waiters)) = same {
                waiters.push(waiter);
                return None;
            }
        }
        self.open.push((Ask { id, agent, call, body }, vec![waiter]));
        self.open.last().map(|(ask, _)| ask)
    }

    /// Applies an answer to its question and wakes the waiting tasks.
    pub(crate) fn answer(&mut self, id: AskId, reply: AskReply) -> Result<Ask, AnswerError> {
        let at = self.open.iter().position(|(a, _)| a.id == id).ok_or(AnswerError::Gone)?;
        fits(&self.open[at].0.body, &reply)?;
        let (ask, waiters) = self.open.remove(at);
        for w in waiters {
            // A call that ended meanwhile needs no answer.
            let _ = w.send(Ok(reply.clone()));
        }
        Ok(ask)
    }

    /// Removes and returns the questions that no task waits for any more.
    pub(crate) fn prune(&mut self) -> Vec<Ask> {
        let (gone, open) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|(_, waiters): &(Ask, Vec<Waiter>)| waiters.iter().all(Waiter::is_closed));
        self.open = open;
        gone.into_iter().map(|(ask, _)| ask).collect()
    }

    pub(crate) fn list(&self) -> Vec<Ask> {
        self.open.iter().map(|(a, _)| a.clone()).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether this call of the agent's waits for an answer.
    pub(crate) fn waits(&self, agent: &AgentId, call: &str) -> bool {
        self.open.iter().any(|(a, _)| a.agent == *agent && a.call.as_deref() == Some(call))
    }

    /// Whether the agent waits for an answer.
    pub(crate) fn wait(&self, agent: &AgentId) -> bool {
        self.open.iter().any(|(a, _)| a.agent == *agent)
    }
}

fn fits(body: &AskBody, reply: &AskReply) -> Result<(), AnswerError> {
    let ok = match (body, reply) {
        (AskBody::Permission(p), AskReply::Permission { hash, .. }) => {
            return if p.hash == *hash { Ok(()) } else { Err(AnswerError::OtherText) };
        }
        (AskBody::Clarify { .. }, AskReply::Choice { answers }) => !answers.is_empty(),
        (AskBody::SessionBusy { .. }, AskReply::Branch | AskReply::ReadOnly) => true,
        (AskBody::Plan { .. }, AskReply::Choice { answers }) => !answers.is_empty(),
        (AskBody::Trust { .. } | AskBody::Plan { .. }, AskReply::Never) => true,
        (AskBody::Permission(_), AskReply::Yes { .. }) => false,
        (AskBody::Clarify { .. } | AskBody::SessionBusy { .. }, AskReply::Yes { .. }) => false,
        (_, AskReply::Declined | AskReply::Yes { .. }) => true,
        _ => false,
    };
    if ok { Ok(()) } else { Err(AnswerError::Kind) }
}

#[cfg(test)]
#[path = "asks_tests.rs"]
mod tests;
