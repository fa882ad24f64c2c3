//! Rest: at once while an agent waits for a model, else at its next safe point.

use crate::core::Core;
use crate::msg::Msg;

/// What waits for the end of a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resting {
    /// The next request is to be made ready.
    Prepare { may_compact: bool },
    /// The request had not been answered yet; it goes out again.
    Request { n: u32 },
    /// The wait before another try is over.
    Try { turn: u64, n: u32 },
}

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
                self.with_live(|l| l.stream = None);
            }
            return self.agent_changed();
        }
        child.working = self.live.is_some().then_some(mono);
        let resting = child.resting.take();
        match resting {
            Some(Resting::Prepare { may_compact }) => {
                self.prepare(may_compact);
                self.pump();
            }
            Some(Resting::Request { n }) => self.request(n),
            Some(Resting::Try { turn, n }) => self.wait_over(turn, n),
            None => {}
        }
        self.agent_changed();
    }

    /// Whether it rests; then `what` waits for the end of that.
    pub(crate) fn rests(&mut self, what: Resting) -> bool {
        match &mut self.me.child {
            Some(child) if child.paused => {
                child.resting = Some(what);
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

    /// From the main agent's task.
    pub(crate) fn told(&mut self, msg: Msg) {
        match msg {
            Msg::Pause(paused) => self.pause(paused),
            Msg::Stop { hard } => {
                // Who rests is woken first: its end must not wait.
                if let Some(child) = &mut self.me.child {
                    child.paused = false;
                    child.resting = None;
                }
                self.stop_turn(hard);
            }
            Msg::Limits(limits) => self.new_limits(limits),
            Msg::Profile(profile) => self.parents_profile(profile),
            Msg::Heard { id, text } => self.hears(id, text),
            _ => {}
        }
    }
}
