//! Rest: at once while an agent waits for a model, else at its next safe point.

use crate::bus::agent_view;
use crate::turn::driver;
use crate::turn::prepare;
use tiller_protocol::event::TurnStatus;

use super::reservations::Answer;
use crate::core::Core;
use crate::crew::state::{Resting, limit};
use crate::turn::{Input, Phase};

impl Core {
    pub(crate) fn pause(&mut self, paused: bool) {
        let mono = self.services.clock.mono();
        // A reply that has begun comes to its end first: it is paid, and half a call is of no use.
        let unanswered = self.turn.live.as_ref().is_some_and(|l| l.turn.unanswered());
        let Some(child) = &mut self.identity.child else { return };
        if child.paused == paused {
            return;
        }
        child.paused = paused;
        if paused {
            child.worked = child.worked(mono);
            child.working = None;
            if unanswered {
                child.resting = Some(Resting::Request);
                // Nobody is to wait for what it has taken out and does not use.
                child.reservations.release(&self.identity.id);
                // This ends a program of another vendor, too: what it said stands in the talk, and it goes on from
                // there.
                self.feed(Input::Rest);
            }
            self.tell_work();
            return agent_view::agent_changed(self);
        }
        child.working = self.turn.live.is_some().then_some(mono);
        self.tell_work();
        self.wake();
        agent_view::agent_changed(self);
    }

    /// Resumes a paused agent once its budget reservation is available again.
    pub(crate) fn wake(&mut self) {
        let Some(child) = self.identity.child.as_mut().filter(|c| !c.paused) else { return };
        let Some(resting) = child.resting.take() else { return };
        if let Resting::Prepare { may_compact } = resting {
            prepare::prepare(self, may_compact);
            return;
        }
        match self.reserve() {
            Answer::Go => {}
            Answer::Over(why) => return driver::halt(self, TurnStatus::Limit, limit(why)),
            Answer::Wait => {
                if let Some(child) = &mut self.identity.child {
                    child.resting = Some(resting);
                }
                return self.ask_purse_again();
            }
        }
        match resting {
            Resting::Request => self.feed(Input::Resume),
            Resting::Try { turn, n } => self.wait_over(turn, n),
            Resting::Prepare { .. } => {}
        }
    }

    /// Whether it rests; then `what` waits for the end of that.
    pub(crate) fn rests(&mut self, what: Resting) -> bool {
        match &mut self.identity.child {
            Some(child) if child.paused => {
                child.resting = Some(what);
                child.reservations.release(&self.identity.id);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn wait_over(&mut self, turn: u64, n: u32) {
        if self.is_live(turn) && !self.rests(Resting::Try { turn, n }) {
            self.feed(Input::WaitOver { n });
        }
    }

    /// The person does not want to wait for another try. A paused agent tries again when it is resumed.
    pub(crate) fn skip_wait(&mut self) {
        self.context.side_skip.notify_waiters();
        let waits = self.turn.live.as_ref().filter(|l| l.turn.phase() == Phase::Waiting);
        if let Some((turn, n)) = waits.map(|l| (l.no, l.turn.n()))
            && self.rests(Resting::Try { turn, n })
        {
            return;
        }
        self.feed(Input::SkipWait);
    }

    /// Ends this child's turn, as the main agent asked. A paused child is resumed first: its end must not wait.
    pub(crate) fn stop_child(&mut self, hard: bool) {
        if let Some(child) = &mut self.identity.child {
            child.paused = false;
            child.resting = None;
        }
        self.stop_turn(hard);
    }
}
