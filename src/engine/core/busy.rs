//! Jobs between turns, one at a time: a message is prepared, a session opened, a branch made, the conversation
//! compacted on request. Each has a number; a result with another number belongs to a stopped job and is dropped.

use crate::bus::agent_view;
use crate::goal;
use crate::prompts::queue;
use crate::turn::Input;
use crate::turn::driver;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{CommandId, Message, Notice, NoticeKind, QueueId, Queued, SendMode};
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

use crate::core::Core;
use crate::core::services::Human;
use crate::prompts::doing::{JobKind, RunningJob};

/// Number of a stopped job: no result has it.
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

    /// The number of the next job.
    pub(crate) fn next_job(&mut self) -> u64 {
        self.prompts.jobs += 1;
        self.prompts.jobs
    }

    pub(crate) fn busy_with(&mut self, no: u64, doing: JobKind, task: JoinHandle<()>) {
        self.prompts.behind_job.clear();
        self.prompts.busy = Some(RunningJob { no, doing, task: AbortOnDropHandle::new(task) });
    }

    /// Whether the present job leads to a turn.
    pub(crate) fn turn_begins(&self) -> bool {
        self.prompts.busy.as_ref().is_some_and(|b| b.doing.begins())
    }

    /// Ends job `no`. False: it was stopped before.
    pub(crate) fn job_done(&mut self, no: u64) -> bool {
        let current = self.prompts.busy.as_ref().is_some_and(|b| b.no == no);
        if current {
            self.prompts.busy = None;
        }
        current
    }

    /// Stops the job at the user's request. Messages that were not sent return to their sender, and a caller that
    /// waits for the end of a turn gets one.
    pub(crate) fn stop_job(&mut self) {
        let Some(busy) = self.prompts.busy.take() else { return };
        let turn = busy.doing.begins();
        match busy.doing {
            JobKind::Message { client: Some((client, cause)), queued: None, .. } => {
                self.no_turn(Some(cause), TurnStatus::Interrupted, None);
                let notice = Notice::new(NoticeKind::User, "stopped before the message was sent");
                self.refuse(client, cause, notice);
            }
            JobKind::Message { client, queued, message } => {
                // An agent's first message comes from its task and not from the queue.
                if queued.is_none() {
                    self.keep_message(message);
                }
                self.notice(Notice::new(NoticeKind::Info, "stopped: the message stays in the queue"));
                self.no_turn(client.map(|(_, cause)| cause), TurnStatus::Interrupted, None);
            }
            JobKind::Continue { cause } => self.no_turn(Some(cause), TurnStatus::Interrupted, None),
            JobKind::Goal { cancel } => {
                cancel.cancel();
                goal::stop_goal(self, "stopped by you");
            }
            JobKind::Other { client, cause } => {
                self.refuse(client, cause, Notice::new(NoticeKind::User, "stopped"));
            }
        }
        if turn {
            // The job may have been preparing the next turn of a goal.
            goal::stop_goal(self, "stopped by you");
            // A child counts as running from the moment of its command.
            self.child_driver().report_end(TurnStatus::Interrupted, String::new(), None);
        }
        agent_view::agent_changed(self);
    }

    /// Stops the check of a goal that is no longer pursued: its result would be taken for the next goal's.
    pub(crate) fn drop_check(&mut self) {
        if let Some(RunningJob { doing: JobKind::Goal { cancel }, .. }) = &self.prompts.busy {
            cancel.cancel();
            self.prompts.busy = None;
        }
    }

    /// The end of a turn that did not begin: its message was not sent. Clients that wait for its end have it.
    pub(crate) fn no_turn(&mut self, cause: Option<CommandId>, status: TurnStatus, error: Option<Notice>) {
        let event = driver::finished_event(self, status, String::new(), error);
        self.bus.publish(&self.scope_of(cause), event);
    }

    /// At the end of the engine: a message that was being prepared waits in the queue until the next start.
    pub(crate) fn keep_job(&mut self) {
        let Some(busy) = &mut self.prompts.busy else { return };
        // The result is dropped. The task is ended with all others, and its cost is recorded.
        busy.no = STOPPED;
        // One that was in the queue is there still.
        let JobKind::Message { client: Some(_), queued: None, message } = &busy.doing else { return };
        let message = message.clone();
        if self.services.user.human == Human::Absent {
            return;
        }
        self.keep_message(message);
    }

    /// Puts a message that did not go out at the front of the queue.
    fn keep_message(&mut self, message: Message) {
        let id = QueueId::fresh(&*self.services.ids, self.services.clock.now());
        let queued = Queued::new(id, message, SendMode::Queue);
        self.prompts.queue.insert(0, queued);
        queue::queue_changed(self, None);
    }
}
