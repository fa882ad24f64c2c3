//! What a child does beyond the main agent: it reports to the main agent's loop, asks the user through it, and keeps to
//! its limits.

mod ends;
pub(crate) mod handle;
pub(crate) mod identity;
mod inputs;
pub(crate) mod msg;
pub(crate) mod outbox;
pub(crate) mod pause;
mod receipts;

use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AgentView, AskBody, AskReply, Notice, Usage};
use tokio::sync::oneshot;

use crate::bus::agent_view;
use crate::core::msg::Msg;
use crate::crew::child::identity::Work;
use crate::crew::child::msg::ChildMsg;
use crate::crew::driver::ChildDriver;
use crate::crew::msg::RunEnd;
use crate::crew::msg::{CrewMsg, MemberMsg};
use crate::crew::rights::narrowed;
use crate::money;
use crate::money::call_sum::MissingCost;
use crate::money::reservations::limit;
use crate::money::reservations::{CallEstimate, ReservationResult, Revision};
use crate::questions::msg::QuestionMsg;
use crate::session::model;
use crate::turn::Input;
use crate::turn::driver;
use crate::turn::prepare;

/// Longest reply, in tokens, of a model whose limit is unknown.
const REPLY: u64 = 8_000;

impl ChildDriver<'_> {
    /// Sends a message to the main agent's loop. Messages stay in order and are not lost when its inbox is full.
    pub(crate) fn report(&mut self, msg: MemberMsg) {
        let Some(child) = self.core.identity.child() else { return };
        let msg = CrewMsg::Member {
            id: self.core.identity.id.clone(),
            session: self.core.session.id,
            msg: Box::new(msg),
        };
        child.main.send(Msg::Crew(msg));
    }

    /// Sends its row, which the main agent's loop publishes.
    pub(crate) fn report_view(&mut self, view: AgentView) {
        self.report(MemberMsg::View(Box::new(view)));
    }

    /// Asks the user through the main agent's loop, which has the queue of questions.
    pub(crate) fn ask_user(
        &mut self,
        call: Option<String>,
        body: AskBody,
        mut reply: oneshot::Sender<Result<AskReply, String>>,
    ) {
        let agent = self.core.identity.id.clone();
        let tx = self.core.tx.clone();
        let Some(child) = self.core.identity.child_mut() else { return };
        child.open_questions += 1;
        let main = child.main.main().clone();
        self.core.spawn(async move {
            let (inner, answer) = oneshot::channel();
            let sent = main
                .send(Msg::Question(QuestionMsg::Ask { agent, call, body: Box::new(body), reply: inner }))
                .await;
            let answer = async {
                sent.map_err(|_| ENDING.to_owned())?;
                answer.await.map_err(|_| ENDING.to_owned())?
            };
            tokio::select! {
                answer = answer => drop(reply.send(answer)),
                // Its call has ended: the question is withdrawn.
                () = reply.closed() => {}
            }
            let _ = main.send(Msg::Crew(CrewMsg::RequestEnded)).await;
            let _ = tx.send(Msg::Question(QuestionMsg::Closed)).await;
        });
        agent_view::agent_changed(self.core);
    }

    pub(crate) fn question_closed(&mut self) {
        if let Some(child) = self.core.identity.child_mut() {
            child.open_questions = child.open_questions.saturating_sub(1);
        }
        agent_view::agent_changed(self.core);
    }

    /// Reserves the most that the next request can use, within the agent's own limits. `beside`: it is for a
    /// call beside the agent's own requests.
    pub(crate) fn reserve_request(&mut self, beside: bool) -> ReservationResult {
        let mono = self.core.services.clock.mono();
        if let Some(child) = self.core.identity.child() {
            if let Some(most) = child.limits.turns.filter(|m| child.work.requests >= *m) {
                return ReservationResult::Over(format!("it reached its limit of {most} requests"));
            }
            if let Some(most) = child.limits.seconds.filter(|m| child.time.worked(mono).as_secs() >= *m) {
                return ReservationResult::Over(format!("it reached its limit of {most} seconds"));
            }
        }
        let answer = self.reserve();
        if answer == ReservationResult::Go && !beside && self.core.identity.is_child() {
            if let Some(child) = self.core.identity.child_mut() {
                child.work.requests += 1;
            }
            self.report_work();
        }
        answer
    }

    /// Reserves the most that the next call can use.
    pub(crate) fn reserve(&mut self) -> ReservationResult {
        let request = self.core.session.next_request();
        let input = request.context();
        let info = model::model_info(self.core, &self.core.session.model);
        let output = info.max_output.unwrap_or(REPLY).min(REPLY);
        let guess = Usage { input, output, ..Usage::default() };
        let cost = tiller_provider::models::cost(&guess, &info).unwrap_or_default().0;
        // The cost of an external program counts for no tier.
        let tier = self.core.identity.external().is_none().then(|| model::tier(self.core));
        let input_cost = tiller_provider::models::cost(&request, &info).unwrap_or_default().0;
        let want = CallEstimate {
            tokens: input.saturating_add(output),
            cost: cost.max(input_cost),
            input_tokens: input,
            input_cost,
            tier,
            tier_limit: tier.and_then(|tier| money::tier_limit(self.core, tier)),
        };
        self.core.money.reservations.reserve(&self.core.identity.id, want)
    }

    /// The next request waits for a change of the reservations after `answered`.
    pub(crate) fn wait_for_budget(&mut self, may_compact: bool, answered: Revision) {
        self.core.with_live(|l| l.deferred_check = Some(may_compact));
        self.retry_when_budget_changes(answered);
    }

    /// Checks the budget again when the reservations have changed after `answered`.
    pub(crate) fn retry_when_budget_changes(&mut self, answered: Revision) {
        let Some(turn) = self.core.turn.live.as_ref().map(|l| l.no) else { return };
        let (reservations, tx) = (std::sync::Arc::clone(&self.core.money.reservations), self.core.tx.clone());
        self.core.spawn(async move {
            reservations.changed_since(answered).await;
            let _ = tx.send(Msg::Child(ChildMsg::BudgetChanged { turn })).await;
        });
    }

    /// A reservation was settled: retries the waiting request.
    pub(crate) fn budget_changed(&mut self, turn: u64) {
        if !self.core.is_live(turn) {
            return;
        }
        if let Some(may_compact) = self.core.turn.live.as_mut().and_then(|l| l.deferred_check.take()) {
            prepare::prepare(self.core, may_compact);
        } else {
            self.resume();
        }
    }

    /// Records the usage and cost of a call.
    pub(crate) fn charge(
        &mut self,
        usage: &Usage,
        cost: Option<tiller_protocol::Cost>,
        missing: MissingCost,
    ) {
        self.core.money.reservations.charge(&self.core.identity.id, usage, cost, missing);
    }

    /// Reports what it has done so far, which is stored so that its limits hold over a restart.
    pub(crate) fn report_work(&mut self) {
        let (mono, now) = (self.core.services.clock.mono(), self.core.services.clock.now());
        let Some(child) = self.core.identity.child() else { return };
        let millis = u64::try_from(child.time.worked(mono).as_millis()).unwrap_or(u64::MAX);
        let work = Work { millis, at: child.time.since.map(|_| now), ..child.work };
        self.report(MemberMsg::Work(work));
    }

    /// Records that no one could give an approval or an answer: the run counts as refused, however it ends.
    pub(crate) fn record_refusal(&mut self) {
        if let Some(child) = self.core.identity.child_mut() {
            child.work.refused = true;
        }
        self.report_work();
    }

    /// Counts a tool call.
    pub(crate) fn count_call(&mut self) {
        if let Some(child) = self.core.identity.child_mut() {
            child.work.calls += 1;
        }
        self.report_work();
    }

    /// A turn begins.
    pub(crate) fn turn_started(&mut self) {
        let (mono, tx) = (self.core.services.clock.mono(), self.core.tx.clone());
        let Some(turn) = self.core.turn.live.as_ref().map(|l| l.no) else { return };
        let Some(child) = self.core.identity.child_mut() else { return };
        // A turn may follow another without an end between them.
        child.time.before = child.time.worked(mono);
        child.time.since = (!child.pause.active).then_some(mono);
        let left =
            child.limits.seconds.map(|m| std::time::Duration::from_secs(m).saturating_sub(child.time.before));
        if let Some(left) = left {
            self.core.spawn(async move {
                tokio::time::sleep(left).await;
                let _ = tx.send(Msg::Child(ChildMsg::TimeUp { turn })).await;
            });
        }
    }

    /// Ends the turn when the time limit is reached; waits on when the agent was paused meanwhile or got more time.
    pub(crate) fn time_limit_reached(&mut self, turn: u64) {
        let (mono, tx) = (self.core.services.clock.mono(), self.core.tx.clone());
        if !self.core.is_live(turn) {
            return;
        }
        let Some(child) = self.core.identity.child() else { return };
        let Some(most) = child.limits.seconds else { return };
        let left = std::time::Duration::from_secs(most).saturating_sub(child.time.worked(mono));
        // The limit does not end a terminal that the user works in.
        let held = self.core.identity.external().is_some_and(|o| o.pane.view.entered || o.pane.view.touched);
        if left.is_zero() && !held {
            let notice = limit(format!("it reached its limit of {most} seconds"));
            return driver::halt(self.core, TurnStatus::Limit, notice);
        }
        self.core.spawn(async move {
            tokio::time::sleep(left.max(std::time::Duration::from_secs(1))).await;
            let _ = tx.send(Msg::Child(ChildMsg::TimeUp { turn })).await;
        });
    }

    /// As [`Self::report_end`], once what it did to the files is written down. What its calls changed may wait in the
    /// inbox even when all of it is written, so the end always goes through the inbox, behind it.
    pub(crate) fn turn_ended(&mut self, status: TurnStatus, text: String, why: Option<Notice>) {
        let mono = self.core.services.clock.mono();
        let Some(child) = self.core.identity.child_mut() else { return };
        // The wait for its files is no work of its own.
        child.time.stop(mono);
        let Some(recorded) = self.core.files.recorded.clone() else {
            return self.report_end(status, text, why);
        };
        let longest = if status == TurnStatus::Interrupted { STOPPED } else { RECORDED };
        let (tx, over) = (
            self.core.tx.clone(),
            Msg::Child(ChildMsg::Ended { turns: self.core.turn.begun, status, text, why }),
        );
        self.core.spawn(async move {
            let _ = tokio::time::timeout(longest, recorded.wait()).await;
            let _ = tx.send(over).await;
        });
    }

    /// Reports the end of a run to the main agent's loop.
    pub(crate) fn report_end(&mut self, status: TurnStatus, text: String, why: Option<Notice>) {
        let mono = self.core.services.clock.mono();
        // It goes into rows, reports and other agents' conversations without further masking.
        let text = self.core.redact(&text);
        if status != TurnStatus::Done {
            self.report_unread("it has already ended");
        }
        let unannounced = self.take_unannounced();
        let Some(child) = self.core.identity.child_mut() else { return };
        child.time.stop(mono);
        self.core.money.reservations.release(&self.core.identity.id);
        self.report_work();
        let Some(child) = self.core.identity.child() else { return };
        let end = RunEnd {
            status,
            text,
            why,
            files: child.files.iter().cloned().collect(),
            calls: child.work.calls,
            seconds: child.time.before.as_secs_f64(),
            unannounced,
            inputs: inputs::inputs(self.core),
        };
        self.report(MemberMsg::Ended(Box::new(end)));
    }

    /// Files that a call changed are known, which is a while after its end. When the agent's end was reported before,
    /// they are added to the report.
    pub(crate) fn files_found(&mut self, files: Vec<String>) {
        if self.core.turn.live.is_none() && !files.is_empty() {
            self.report(MemberMsg::Files(files.clone()));
        }
        self.record_files(files);
    }

    /// Records files that a call changed.
    pub(crate) fn record_files(&mut self, files: impl IntoIterator<Item = String>) {
        if let Some(child) = self.core.identity.child_mut() {
            child.files.extend(files);
        }
    }

    /// Sets limits and retries a request that waits for budget.
    pub(crate) fn set_limits(&mut self, limits: tiller_protocol::AgentLimits) {
        if let Some(child) = self.core.identity.child_mut() {
            child.limits = limits;
        }
        if let Some(may_compact) = self.core.turn.live.as_mut().and_then(|l| l.deferred_check.take()) {
            prepare::prepare(self.core, may_compact);
        }
    }

    /// Adopts the main agent's profile as far as its own permits.
    pub(crate) fn parent_profile_changed(&mut self, profile: tiller_protocol::Profile) {
        if let Some(child) = self.core.identity.child() {
            self.core.session.profile = narrowed(child.assignment.max_profile, profile);
            self.core.external_driver().profile_narrowed();
        }
    }

    /// Stops the turn as a stop by the user does.
    pub(crate) fn stop_turn(&mut self, hard: bool) {
        if self.core.turn.live.is_some() {
            self.core.feed(Input::Interrupt { hard });
        } else {
            self.core.stop_job();
        }
    }
}

/// Longest wait for the files of an ended agent to be recorded before its end is reported: its parent goes on with the
/// report. On a busy machine, states of the files take seconds.
const RECORDED: std::time::Duration = std::time::Duration::from_secs(10);
/// As [`RECORDED`], for an agent that was stopped: the user waits for its end.
const STOPPED: std::time::Duration = std::time::Duration::from_secs(2);
const ENDING: &str = "Tiller is shutting down";
