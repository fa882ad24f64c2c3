//! What is done between turns, one thing at a time: a message is made ready, a session opened, a branch made,
//! the conversation compacted by hand. Each has a number: what comes back under another one was stopped
//! meanwhile and is dropped.

use crate::bus::agent_view;
use crate::goal;
use crate::prompts::queue;
use crate::turn::Input;
use crate::turn::driver;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{CommandId, Message, Notice, NoticeKind, QueueId, Queued, QueuedState, SendMode};
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

use crate::core::Core;
use crate::core::services::Human;
use crate::prompts::doing::{Busy, Doing};

/// The number of what was stopped: nothing comes back under it.
const STOPPED: u64 = 0;

impl Core {
    /// Stops the turn in flight; without one, the job that prepares one.
    pub(crate) fn interrupt(&mut self, hard: bool) {
        if self.turn.live.is_some() {
            self.feed(Input::Interrupt { hard });
        } else {
            self.stop_job();
        }
    }

    /// The number of what begins now.
    pub(crate) fn next_job(&mut self) -> u64 {
        self.prompts.jobs += 1;
        self.prompts.jobs
    }

    pub(crate) fn busy_with(&mut self, no: u64, doing: Doing, task: JoinHandle<()>) {
        self.prompts.behind_job.clear();
        self.prompts.busy = Some(Busy { no, doing, task: AbortOnDropHandle::new(task) });
    }

    /// What is done leads to a turn.
    pub(crate) fn turn_begins(&self) -> bool {
        self.prompts.busy.as_ref().is_some_and(|b| b.doing.begins())
    }

    /// It came back. False: it was stopped before.
    pub(crate) fn job_done(&mut self, no: u64) -> bool {
        let current = self.prompts.busy.as_ref().is_some_and(|b| b.no == no);
        if current {
            self.prompts.busy = None;
        }
        current
    }

    /// The person stops it. Messages that were not sent return to their sender, and a caller that waits for
    /// the end of a turn hears of one.
    pub(crate) fn stop_job(&mut self) {
        let Some(busy) = self.prompts.busy.take() else { return };
        let turn = busy.doing.begins();
        match busy.doing {
            Doing::Message { client: Some((client, cause)), .. } => {
                self.no_turn(cause);
                let notice = Notice::new(NoticeKind::User, "stopped before the message was sent");
                self.refuse(client, cause, notice);
            }
            Doing::Message { client: None, message } => {
                // An agent's first message comes from its task and not from the queue.
                if !self.prompts.queue.iter().any(|q| q.message == message) {
                    self.keep_message(message);
                }
                self.notice(Notice::new(NoticeKind::Info, "stopped: the message stays in the queue"));
            }
            Doing::Continue { cause } => self.no_turn(cause),
            Doing::Goal { cancel } => {
                cancel.cancel();
                goal::stop_goal(self, "stopped by you");
            }
            Doing::Other { client, cause } => {
                self.refuse(client, cause, Notice::new(NoticeKind::User, "stopped"));
            }
        }
        if turn {
            // Its next turn may have been what was being made ready.
            goal::stop_goal(self, "stopped by you");
            // A child counts as running from the moment of its command.
            self.child_driver().report_end(TurnStatus::Interrupted, String::new(), None);
        }
        agent_view::agent_changed(self);
    }

    /// The check of a goal that is pursued no more: what it finds would be taken for news of the next one.
    pub(crate) fn drop_check(&mut self) {
        if let Some(Busy { doing: Doing::Goal { cancel }, .. }) = &self.prompts.busy {
            cancel.cancel();
            self.prompts.busy = None;
        }
    }

    fn no_turn(&self, cause: CommandId) {
        let event = driver::finished_event(self, TurnStatus::Interrupted, String::new(), None);
        self.bus.publish(&self.place_of(Some(cause)), event);
    }

    /// At the end: a message that was being made ready waits in the queue until the next start.
    pub(crate) fn keep_job(&mut self) {
        let Some(busy) = &mut self.prompts.busy else { return };
        // What comes back is dropped. The task itself is ended with all others, and what it used is booked.
        busy.no = STOPPED;
        let Doing::Message { client: Some(_), message } = &busy.doing else { return };
        let message = message.clone();
        if self.services.user.human == Human::Absent {
            return;
        }
        self.keep_message(message);
    }

    /// Puts a message that did not go out at the front of the queue.
    fn keep_message(&mut self, message: Message) {
        let id = QueueId::fresh(&*self.services.ids, self.services.clock.now());
        let queued = Queued { id, message, mode: SendMode::Queue, state: QueuedState::Queued };
        self.prompts.queue.insert(0, queued);
        queue::queue_changed(self, None);
    }
}
