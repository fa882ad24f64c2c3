//! The end of the engine: running work is stopped, everything is on disk, no child process survives. A few
//! seconds at most where nothing is broken.

use crate::bus::dispatch;
use crate::context::side_call;
use crate::crew::msg::{CrewMsg, MemberMsg};
use crate::files::msg::{FilesMsg, FilesRequest};
use crate::files::restore::by_tool;
use crate::files::{record, restore};
use crate::prompts::msg::PromptMsg;
use crate::prompts::{shell_line, titles};
use crate::session::open;
use std::sync::Arc;
use std::time::Duration;

use tiller_protocol::CommandId;
use tokio::sync::mpsc;

use crate::context::msg::{ContextMsg, SideMsg};
use crate::core::Core;
use crate::core::hooks;
use crate::core::msg::Msg;
use crate::lock::lock;
use crate::prompts::doing::RunningJob;
use crate::turn::Input;
use crate::turn::part::RunningCall;
use crate::watching::feed;

// Every limit is far above the usual time of a busy machine: the end comes with the work, and a limit only with a fault.

/// Time until calls are killed.
const TIMEOUT: Duration = Duration::from_millis(600);
/// Time until killed calls are abandoned: until then their results are stored.
const KILLED: Duration = Duration::from_secs(5);
/// Time limit of the last writes.
const WRITES: Duration = Duration::from_secs(5);
/// Time limit for tasks that wait for models.
const TASKS: Duration = Duration::from_secs(3);
/// Time limit for restores of files that have begun.
const RESTORES: Duration = Duration::from_secs(30);
/// Time limit for the tasks of agents.
const AGENTS: Duration = Duration::from_secs(5);
/// Time limit for rules of answers: another process may hold their file.
const RULES: Duration = Duration::from_millis(1500);
/// Time limit for seeing what changed last, and for its hooks.
pub(crate) const CHANGED: Duration = Duration::from_secs(60);
/// Time limit for child processes.
const CHILDREN: Duration = Duration::from_secs(3);

/// Whether a message to the crew reports what an agent did, which is stored.
fn is_record(msg: &CrewMsg) -> bool {
    match msg {
        CrewMsg::Member { msg, .. } => matches!(
            **msg,
            MemberMsg::Work(_)
                | MemberMsg::Ended(_)
                | MemberMsg::Files(_)
                | MemberMsg::ProgramSession { .. }
                | MemberMsg::ProgramModel(_)
        ),
        CrewMsg::Session { msg, .. } => is_record(msg),
        CrewMsg::Request { .. } | CrewMsg::RequestEnded | CrewMsg::Released | CrewMsg::Queued => false,
    }
}

impl Core {
    pub(crate) fn quit(&mut self, cause: Option<CommandId>) {
        if self.lifecycle.quitting.is_some() {
            return;
        }
        self.lifecycle.quitting = Some(self.scope_of(cause));
        self.keep_job();
        self.prompts.lines.values().for_each(|l| l.cancel.cancel());
        let Some(live) = &self.turn.live else { return self.quit_now() };
        if live.calls.running.iter().any(|call| self.asks_on(call)) {
            // The question stays open: at the next start its call asks again. Calls beside it are stopped.
            let others: Vec<_> = live
                .calls
                .running
                .iter()
                .filter(|call| !self.asks_on(*call))
                .map(|(_, c)| c.cancel.clone())
                .collect();
            if others.is_empty() {
                return self.quit_now();
            }
            others.iter().for_each(tokio_util::sync::CancellationToken::cancel);
        } else {
            self.feed(Input::Interrupt { hard: false });
        }
        if !self.lifecycle.stop {
            self.quit_after(TIMEOUT);
        }
    }

    /// Whether a call waits for an answer. A call that was just stopped does not count: it ends with its turn, though
    /// its question is still open.
    fn asks_on(&self, (id, call): (&String, &RunningCall)) -> bool {
        !call.cancel.is_cancelled() && self.asks.waits(&self.identity.id, id)
    }

    fn quit_after(&mut self, time: Duration) {
        let tx = self.tx.clone();
        self.spawn(async move {
            tokio::time::sleep(time).await;
            let _ = tx.send(Msg::Quit).await;
        });
    }

    /// A time limit has passed: first that of cancelling, then that of killing.
    pub(crate) fn quit_pressed(&mut self) {
        self.lifecycle.quit_presses += 1;
        if self.lifecycle.quit_presses > 1 || self.turn.live.is_none() {
            return self.quit_now();
        }
        if self.turn.live.iter().flat_map(|l| &l.calls.running).any(|call| self.asks_on(call)) {
            return self.quit_now();
        }
        self.feed(Input::Interrupt { hard: true });
        self.quit_after(KILLED);
    }

    pub(crate) fn quit_now(&mut self) {
        self.lifecycle.stop = true;
    }

    /// Ends tasks that wait for models, and records what they used: a request is charged even when its reply is not
    /// read. From then on the inbox is closed, so that no sender waits for room.
    async fn end_tasks(&mut self, mut inbox: mpsc::Receiver<Msg>) {
        let compaction = self.turn.live.take().and_then(|l| l.tasks.compaction);
        let busy = self.prompts.busy.take().map(RunningJob::into_task);
        let mut tasks = std::mem::take(&mut self.lifecycle.tasks);
        self.files.quitting.cancel();
        let restores = self.files.restores.clone();
        let limit = if restores.is_empty() { TASKS } else { TASKS + RESTORES };
        let all = async move {
            restores.wait().await;
            for task in compaction.into_iter().chain(busy) {
                task.abort();
                // An error means that it was cancelled or had ended.
                let _ = task.await;
            }
            tasks.shutdown().await;
        };
        let mut ended = std::pin::pin!(tokio::time::timeout(limit, all));
        loop {
            tokio::select! {
                biased;
                Some(msg) = inbox.recv() => self.last_msg(msg),
                ended = &mut ended => {
                    if ended.is_err() {
                        tracing::error!("tasks did not end in time");
                    }
                    break;
                }
            }
        }
        while let Ok(msg) = inbox.try_recv() {
            self.last_msg(msg);
        }
    }

    /// Reports what changed last, and waits for its hooks, where files are watched for them alone: without a screen the run
    /// is over before a change had its quiet time. Ends at once when the run is stopped.
    async fn last_changes(&mut self, inbox: &mut mpsc::Receiver<Msg>) {
        let hurry = self.lifecycle.hurry.clone();
        tokio::select! {
            biased;
            () = hurry.cancelled() => {}
            ended = tokio::time::timeout(CHANGED, self.last_hooks(inbox)) => if ended.is_err() {
                tracing::warn!("the hooks of file-changed took too long");
            }
        }
    }

    async fn last_hooks(&mut self, inbox: &mut mpsc::Receiver<Msg>) {
        let settled = self.watching.writes.settled();
        let Some(settled) = settled.filter(|_| self.identity.owns_session()) else { return };
        self.reports_until(inbox, settled).await;
        let at_work = Arc::clone(&self.watching.hook_run).lock_owned();
        self.reports_until(inbox, at_work).await;
        if let Some(run) = hooks::last_run(self) {
            run.await;
        }
    }

    /// Handles reports until `over` ends, and those that were there by then.
    async fn reports_until(&mut self, inbox: &mut mpsc::Receiver<Msg>, over: impl Future) {
        let mut over = std::pin::pin!(over);
        let mut last = false;
        while !last {
            let msg = tokio::select! {
                biased;
                Some(msg) = inbox.recv() => Some(msg),
                _ = &mut over => None,
            };
            last = msg.is_none();
            for msg in msg.into_iter().chain(std::iter::from_fn(|| inbox.try_recv().ok())) {
                match msg {
                    Msg::Watch(report) => feed::seen(self, report),
                    msg => self.last_msg(msg),
                }
            }
        }
    }

    /// Handles a report after the end. What has happened is recorded: costs, the output of the user's own lines, restores
    /// of files, and the work and results of agents. Requests get no answer, and nothing new begins.
    fn last_msg(&mut self, msg: Msg) {
        match msg {
            Msg::Context(ContextMsg::SideCall(msg @ (SideMsg::SideCallCost(_) | SideMsg::ServerCost(_)))) => {
                side_call::side_msg(self, msg)
            }
            Msg::Prompt(PromptMsg::LineDone(done)) => shell_line::shell_done(self, *done),
            Msg::Files(FilesMsg::RestoreReport(restored)) => restore::files_restored(self, *restored),
            Msg::Files(FilesMsg::FilesRequest(ended @ FilesRequest::RestoreEnded { .. })) => {
                by_tool::files_asked(self, ended);
            }
            Msg::Crew(msg) if is_record(&msg) => self.with_crew(|crew, host| crew.message(host, msg)),
            _ => {}
        }
    }

    /// Interrupts every agent and waits for their tasks.
    async fn end_agents(&mut self) {
        self.with_crew(|crew, host| crew.interrupt_all(host));
        let all = futures_util::future::join_all(std::mem::take(&mut self.lifecycle.agents));
        if tokio::time::timeout(AGENTS, all).await.is_err() {
            tracing::error!("agents did not end in time");
        }
    }

    /// After the loop: waits for the writes, and ends everything that was started.
    pub(crate) async fn end(mut self, mut inbox: mpsc::Receiver<Msg>) {
        titles::titles_at_the_end(&mut self);
        self.last_changes(&mut inbox).await;
        self.end_tasks(inbox).await;
        self.end_agents().await;
        self.lifecycle.tasks.shutdown().await;
        record::end_keeping(&mut self).await;
        if tokio::time::timeout(CHILDREN, self.watching.stop()).await.is_err() {
            tracing::error!("the watcher did not end in time");
        }
        let state = std::mem::take(&mut *lock(&self.services.tools.state));
        // Background processes are shared by all agents: the main agent ends them.
        let owned = self.identity.owns_session();
        let children = tokio::time::timeout(CHILDREN, async {
            if owned {
                crate::watching::end_children(state).await;
            }
        });
        open::leave(&mut self);
        let hooks = hooks::last(&self);
        let permit = self.services.permit.clone();
        let writes = tokio::time::timeout(WRITES, async {
            while !self.saves.is_empty() {
                let saved = self.saves.next().await;
                match saved.result {
                    Ok(()) => saved.after.events.iter().for_each(|(p, b)| self.bus.publish(p, b.clone())),
                    Err(error) => {
                        tracing::error!(%error, "not saved at the end");
                        self.book_unsaved(&error, saved.calls);
                    }
                }
            }
        });
        let rules = async {
            if owned {
                permit.writes().wait(RULES).await;
            }
        };
        let (children, writes, (), ()) = tokio::join!(children, writes, hooks, rules);
        if children.is_err() {
            tracing::error!("children did not end in time");
        }
        if writes.is_err() {
            tracing::error!("the last writes were not answered in time");
        }
        if owned {
            let scope = self.lifecycle.quitting.clone().unwrap_or_else(|| self.scope_of(None));
            self.bus.publish(&scope, dispatch::stopped_event());
            self.bus.close();
        }
    }
}
