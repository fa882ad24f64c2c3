//! The loop: takes the next command or report, has it handled, and carries out what follows from it.

use tokio::sync::mpsc;

use crate::bus::{Envelope, dispatch};
use crate::core::Core;
use crate::core::follow_up::FollowUp;
use crate::core::msg::Msg;
use crate::goal;
use crate::memory::late;
use crate::prompts::queue;
use crate::questions::asking;
use crate::turn::driver;

impl Core {
    /// Runs until a quit command, or until the last handle is dropped.
    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Envelope>,
        mut inbox: mpsc::Receiver<Msg>,
    ) {
        let mut health = self.services.store.health();
        // The first value is the state at the start.
        let start = health.borrow_and_update().clone();
        if !start.ok() {
            self.saving(&start);
        }
        let mut open = true;
        // Opening the session may have left follow-ups.
        settle(&mut self);
        while !self.lifecycle.stop {
            tokio::select! {
                // Commands have priority: an interrupt must not wait behind many deltas.
                biased;
                command = commands.recv(), if open => match command {
                    Some(e) => {
                        if self.turn.live.is_none() && self.saves.is_empty() {
                            self.agree();
                        }
                        dispatch::dispatch(&mut self, e.client, e.command);
                    }
                    None => {
                        open = false;
                        self.quit(None);
                    }
                },
                saved = self.saves.next(), if !self.saves.is_empty() => self.saved(saved),
                Ok(()) = health.changed() => {
                    let now = health.borrow_and_update().clone();
                    self.saving(&now);
                }
                Some(msg) = inbox.recv() => self.message(msg),
                Some(_) = self.lifecycle.tasks.join_next(), if !self.lifecycle.tasks.is_empty() => {}
            }
            settle(&mut self);
            asking::prune_asks(&mut self);
        }
        self.end(inbox).await;
    }
}

/// Gives the turn its inputs and carries out follow-ups, until there are none. Without a turn and a job, sessions that ended may
/// get their chance to save.
fn settle(core: &mut Core) {
    loop {
        driver::pump(core);
        let Some(next) = core.lifecycle.follow_ups.pop_front() else { return late::next(core) };
        match next {
            FollowUp::NextQueued(status) => queue::next_queued(core, status),
            FollowUp::SendBehindJob => queue::send_behind_job(core),
            FollowUp::Interrupt { hard } => core.interrupt(hard),
            FollowUp::GoalOver { status, why } => goal::goal_over(core, status, why),
        }
    }
}
