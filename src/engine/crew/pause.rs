//! Rest: at once while an agent waits for a model, else at its next safe point.

use tiller_protocol::event::TurnStatus;

use super::purse::Answer;
use crate::core::Core;
use crate::crew::state::Resting;
use crate::crew::state::limit;

impl Core {
    pub(crate) fn pause(&mut self, paused: bool) {
        let mono = self.w.clock.mono();
        let unanswered = self
            .live
            .as_ref()
            .filter(|l| l.turn.streaming() && l.turn.partial().is_empty())
            .map(|l| l.turn.n());
        let Some(child) = &mut self.me.child else { return };
        if child.paused == paused {
            return;
        }
        child.paused = paused;
        if paused {
            child.worked = child.worked(mono);
            child.working = None;
            if let Some(n) = unanswered {
                child.resting = Some(Resting::Request { n });
                // Nobody is to wait for what it has taken out and does not use.
                child.purse.release(&self.me.id);
                self.with_live(|l| l.stream = None);
                // A program of another vendor needs no process while it rests: what it said stands in the talk, and
                // it goes on from there.
                self.outside_close(tiller_protocol::StopReason::Interrupted);
            }
            self.tell_work();
            return self.agent_changed();
        }
        child.working = self.live.is_some().then_some(mono);
        self.tell_work();
        self.wake();
        self.agent_changed();
    }

    /// A rest is over: what waited for that goes on, when the purse has what it gave back.
    pub(crate) fn wake(&mut self) {
        let Some(child) = self.me.child.as_mut().filter(|c| !c.paused) else { return };
        let Some(resting) = child.resting.take() else { return };
        if let Resting::Prepare { may_compact } = resting {
            self.prepare(may_compact);
            return self.pump();
        }
        match self.reserve() {
            Answer::Go => {}
            Answer::Over(why) => return self.halt(TurnStatus::Limit, limit(why)),
            Answer::Wait => {
                if let Some(child) = &mut self.me.child {
                    child.resting = Some(resting);
                }
                return self.ask_purse_again();
            }
        }
        match resting {
            Resting::Request { n } => self.request(n),
            Resting::Try { turn, n } => self.wait_over(turn, n),
            Resting::Prepare { .. } => {}
        }
    }

    /// Whether it rests; then `what` waits for the end of that.
    pub(crate) fn rests(&mut self, what: Resting) -> bool {
        match &mut self.me.child {
            Some(child) if child.paused => {
                child.resting = Some(what);
                child.purse.release(&self.me.id);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn wait_over(&mut self, turn: u64, n: u32) {
        if self.is_live(turn) && !self.rests(Resting::Try { turn, n }) {
            self.feed(crate::turn::Input::WaitOver { n });
        }
    }

    /// Ends this child's turn, as the main agent asked. A paused child is resumed first: its end must not wait.
    pub(crate) fn stop_child(&mut self, hard: bool) {
        if let Some(child) = &mut self.me.child {
            child.paused = false;
            child.resting = None;
        }
        self.stop_turn(hard);
    }
}
