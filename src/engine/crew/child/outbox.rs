//! Messages between the main agent's loop and a child, in order: a message that has to wait is never
//! overtaken by a later one. A late row would revive an agent that has ended, and a late profile would
//! replace a narrower one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::core::msg::Msg;
use crate::crew::msg::{CrewMsg, MemberMsg};

#[derive(Default)]
struct OutboxQueue {
    queue: VecDeque<Msg>,
    /// A task sends the queue. It ends when the queue is empty or the receiver is closed.
    sending: bool,
}

/// Sends to the loop of another agent. Cheap to clone; all clones share one order.
#[derive(Clone)]
pub(crate) struct Outbox {
    main: mpsc::Sender<Msg>,
    waiting: Arc<Mutex<OutboxQueue>>,
}

impl Outbox {
    /// `main`: the other loop holds the receiver and closes it when it ends.
    pub(crate) fn new(main: mpsc::Sender<Msg>) -> Self {
        Self { main, waiting: Arc::default() }
    }

    /// For messages with an order of their own (questions and their answers).
    pub(crate) fn main(&self) -> &mpsc::Sender<Msg> {
        &self.main
    }

    fn lock(&self) -> MutexGuard<'_, OutboxQueue> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends `msg` after all that was sent before. Never blocks; must be called in a runtime. Of waiting states
    /// (rows, work) only the last is kept, which bounds the queue.
    pub(crate) fn send(&self, msg: Msg) {
        let mut waiting = self.lock();
        let msg = if waiting.sending {
            msg
        } else {
            match self.main.try_send(msg) {
                Err(TrySendError::Full(msg)) => msg,
                Ok(()) | Err(TrySendError::Closed(_)) => return,
            }
        };
        if let Some(kind) = state(&msg) {
            let since = waiting.queue.iter().rposition(|m| state(m).is_none()).map_or(0, |at| at + 1);
            let older = (since..waiting.queue.len()).find(|at| state(&waiting.queue[*at]) == Some(kind));
            older.and_then(|at| waiting.queue.remove(at));
        }
        waiting.queue.push_back(msg);
        if !std::mem::replace(&mut waiting.sending, true) {
            tokio::spawn(self.clone().drain());
        }
    }

    async fn drain(self) {
        loop {
            let Ok(room) = self.main.reserve().await else { return self.lock().queue.clear() };
            let mut waiting = self.lock();
            match waiting.queue.pop_front() {
                Some(msg) => room.send(msg),
                None => {
                    waiting.sending = false;
                    return;
                }
            }
        }
    }
}

/// The kind of state that a message reports, if only the last of its kind counts.
fn state(msg: &Msg) -> Option<u8> {
    let Msg::Crew(CrewMsg::Member { msg, .. }) = msg else { return None };
    match **msg {
        MemberMsg::View(_) => Some(0),
        MemberMsg::Work(_) => Some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::event::TurnStatus;
    use tiller_protocol::{AgentId, AgentState, AgentView, Profile, SessionId};

    use super::*;
    use crate::crew::ChildHandle;
    use crate::crew::child::msg::ChildMsg;
    use crate::crew::msg::RunEnd;

    fn of(msg: MemberMsg) -> Msg {
        Msg::Crew(CrewMsg::Member {
            id: AgentId("a1".into()),
            session: SessionId(uuid::Uuid::from_u128(1)),
            msg: Box::new(msg),
        })
    }

    fn row(act: &str) -> Msg {
        let view = AgentView { state: AgentState::Running, act: act.into(), ..AgentView::default() };
        of(MemberMsg::View(Box::new(view)))
    }

    fn word(msg: &Msg) -> String {
        let Msg::Crew(CrewMsg::Member { msg, .. }) = msg else { return "other".into() };
        match &**msg {
            MemberMsg::View(view) => view.act.to_string(),
            MemberMsg::Ended(_) => "over".into(),
            _ => "other".into(),
        }
    }

    /// The main agent's task is behind: its inbox is full when the last row comes, and has room when the end does.
    #[tokio::test]
    async fn a_late_row_never_overtakes_the_end() {
        for rows in [1, 3, 500] {
            let (tx, mut rx) = mpsc::channel(2);
            let outbox = Outbox::new(tx);
            outbox.send(row("first"));
            outbox.send(row("second"));
            // No room: these wait.
            for n in 0..rows {
                outbox.send(row(&format!("late {n}")));
            }
            assert_eq!(word(&rx.recv().await.unwrap()), "first");
            // There is room again, but what waits is not passed by.
            let end = RunEnd::without_work(TurnStatus::Done, None);
            outbox.send(of(MemberMsg::Ended(Box::new(end))));
            outbox.send(row("of the next turn"));
            assert!(outbox.lock().queue.len() <= 3, "rows that wait take no room");
            let mut got = Vec::new();
            while got.last().is_none_or(|l| l != "of the next turn") {
                got.push(word(&rx.recv().await.unwrap()));
            }
            let last = format!("late {}", rows - 1);
            let end = got.iter().position(|w| w == "over").unwrap();
            assert_eq!(got.iter().position(|w| *w == last), Some(end - 1), "{got:?}");
        }
    }

    /// The other way: a child whose inbox is full keeps the profile that was set last.
    #[tokio::test]
    async fn a_late_profile_never_overtakes_a_later_one() {
        for _ in 0..500 {
            let (tx, mut rx) = mpsc::channel(1);
            let handle = ChildHandle::for_test(Outbox::new(tx));
            handle.stop(false);
            handle.profile_changed(Profile::Full);
            assert!(matches!(rx.recv().await, Some(Msg::Child(ChildMsg::Stop { .. }))));
            // There is room before the waiting message has moved.
            handle.profile_changed(Profile::Ask);
            assert!(matches!(rx.recv().await, Some(Msg::Child(ChildMsg::Profile(Profile::Full)))));
            assert!(matches!(rx.recv().await, Some(Msg::Child(ChildMsg::Profile(Profile::Ask)))));
        }
    }

    #[tokio::test]
    async fn a_session_that_has_ended_holds_nothing() {
        let (tx, rx) = mpsc::channel(1);
        let outbox = Outbox::new(tx);
        outbox.send(row("a"));
        outbox.send(row("b"));
        drop(rx);
        while !outbox.lock().queue.is_empty() {
            tokio::task::yield_now().await;
        }
        outbox.send(row("c"));
    }
}
