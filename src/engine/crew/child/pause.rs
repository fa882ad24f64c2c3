//! Pauses: at once while an agent waits for a model, else at its next safe point.

use tiller_protocol::event::TurnStatus;

use crate::bus::agent_view;
use crate::crew::child::identity::DeferredStep;
use crate::crew::driver::ChildDriver;
use crate::money::reservations::{ReservationResult, limit};
use crate::turn::driver;
use crate::turn::prepare;
use crate::turn::{Input, Phase};

impl ChildDriver<'_> {
    pub(crate) fn set_paused(&mut self, paused: bool) {
        let mono = self.core.services.clock.mono();
        // A reply that has begun is completed: it is paid for, and half a call is useless.
        let unanswered = self.core.turn.live.as_ref().is_some_and(|l| l.machine.unanswered());
        let Some(child) = self.core.identity.child_mut() else { return };
        if child.pause.active == paused {
            return;
        }
        child.pause.active = paused;
        if paused {
            child.time.stop(mono);
            if unanswered {
                child.pause.deferred = Some(DeferredStep::Request);
                // An unused reservation must not block other agents.
                self.core.money.reservations.release(&self.core.identity.id);
                // This also ends an external program, which resumes its session later.
                self.core.feed(Input::Pause);
            }
            self.report_work();
            return agent_view::agent_changed(self.core);
        }
        child.time.since = self.core.turn.live.is_some().then_some(mono);
        self.report_work();
        self.resume();
        agent_view::agent_changed(self.core);
    }

    /// Resumes a paused agent once its budget reservation is available again.
    pub(crate) fn resume(&mut self) {
        let Some(child) = self.core.identity.child_mut().filter(|c| !c.pause.active) else { return };
        let Some(deferred) = child.pause.deferred.take() else { return };
        if let DeferredStep::Prepare { may_compact } = deferred {
            prepare::prepare(self.core, may_compact);
            return;
        }
        match self.reserve() {
            ReservationResult::Go => {}
            ReservationResult::Over(why) => return driver::halt(self.core, TurnStatus::Limit, limit(why)),
            ReservationResult::Wait(answered) => {
                if let Some(child) = self.core.identity.child_mut() {
                    child.pause.deferred = Some(deferred);
                }
                return self.retry_when_budget_changes(answered);
            }
        }
        match deferred {
            DeferredStep::Request => self.core.feed(Input::Resume),
            DeferredStep::Try { turn, n } => self.retry_wait_over(turn, n),
            DeferredStep::Prepare { .. } => {}
        }
    }

    /// Whether the agent is paused; if so, `what` waits until it is resumed.
    pub(crate) fn defer_while_paused(&mut self, what: DeferredStep) -> bool {
        match self.core.identity.child_mut() {
            Some(child) if child.pause.active => {
                child.pause.deferred = Some(what);
                self.core.money.reservations.release(&self.core.identity.id);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn retry_wait_over(&mut self, turn: u64, n: u32) {
        if self.core.is_live(turn) && !self.defer_while_paused(DeferredStep::Try { turn, n }) {
            self.core.feed(Input::WaitOver { n });
        }
    }

    /// Skips the wait before a retry. A paused agent retries when it is resumed.
    pub(crate) fn skip_retry_wait(&mut self) {
        self.core.context.side_skip.notify_waiters();
        let waits = self.core.turn.live.as_ref().filter(|l| l.machine.phase() == Phase::Waiting);
        if let Some((turn, n)) = waits.map(|l| (l.no, l.machine.n()))
            && self.defer_while_paused(DeferredStep::Try { turn, n })
        {
            return;
        }
        self.core.feed(Input::SkipWait);
    }

    /// Stops the turn for the main agent's loop. A paused child is resumed first, so that its end does not wait.
    pub(crate) fn stop(&mut self, hard: bool) {
        if let Some(child) = self.core.identity.child_mut() {
            child.pause.active = false;
            child.pause.deferred = None;
        }
        self.stop_turn(hard);
    }
}
