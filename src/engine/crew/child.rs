//! What a child does beyond a main agent: it tells the main one how it stands, and asks it for the person's answers.

use crate::bus::agent_view;
use crate::money;
use crate::session::model;
use crate::turn::driver;
use crate::turn::prepare;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AgentView, AskBody, AskReply, Notice, Usage};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::CrewMsg;
use super::identity::Work;
use super::msg::Over;
use super::reservations::{Answer, Want};
use crate::context::tokens;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::crew::msg::ChildMsg;
use crate::crew::state::limit;
use crate::questions::msg::QuestionMsg;
use crate::turn::Input;

/// Tokens of a reply, where nothing says how long it may be.
const REPLY: u64 = 8_000;

impl Core {
    /// To the main agent's task, in order. When that is behind, messages wait: nothing is lost or overtaken.
    pub(crate) fn tell_main(&mut self, msg: CrewMsg) {
        let Some(child) = &self.identity.child else { return };
        let msg = CrewMsg::Of { id: self.identity.id.clone(), session: self.session.id, msg: Box::new(msg) };
        child.main.send(Msg::Crew(msg));
    }

    /// Its row, which the main agent shows.
    pub(crate) fn tell_view(&mut self, view: AgentView) {
        self.tell_main(CrewMsg::View(Box::new(view)));
    }

    /// A question of a child's waits at the main agent's, where the person's queue is.
    pub(crate) fn ask_main(
        &mut self,
        call: Option<String>,
        body: AskBody,
        mut reply: oneshot::Sender<Result<AskReply, String>>,
    ) {
        let agent = self.identity.id.clone();
        let tx = self.tx.clone();
        let Some(child) = &mut self.identity.child else { return };
        child.waiting += 1;
        let main = child.main.main().clone();
        self.spawn(async move {
            let (inner, answer) = oneshot::channel();
            let sent = main.send(Msg::Question(QuestionMsg::Ask { agent, call, body, reply: inner })).await;
            let answer = async {
                sent.map_err(|_| ENDING.to_owned())?;
                answer.await.map_err(|_| ENDING.to_owned())?
            };
            tokio::select! {
                answer = answer => drop(reply.send(answer)),
                // Its call has ended: the question goes.
                () = reply.closed() => {}
            }
            let _ = main.send(Msg::Crew(CrewMsg::Ended)).await;
            let _ = tx.send(Msg::Question(QuestionMsg::Over)).await;
        });
        agent_view::agent_changed(self);
    }

    pub(crate) fn ask_over(&mut self) {
        if let Some(child) = &mut self.identity.child {
            child.waiting = child.waiting.saturating_sub(1);
        }
        agent_view::agent_changed(self);
    }

    /// Reserves what the next request may use at most, within the agent's own limits. `beside`: it is for a
    /// call beside the agent's own requests.
    pub(crate) fn take_out(&mut self, beside: bool) -> Answer {
        let mono = self.services.clock.mono();
        if let Some(child) = &self.identity.child {
            if let Some(most) = child.limits.turns.filter(|m| child.work.requests >= *m) {
                return Answer::Over(format!("it reached its limit of {most} requests"));
            }
            if let Some(most) = child.limits.seconds.filter(|m| child.worked(mono).as_secs() >= *m) {
                return Answer::Over(format!("it reached its limit of {most} seconds"));
            }
        }
        let answer = self.reserve();
        if answer == Answer::Go && !beside && self.identity.child.is_some() {
            if let Some(child) = &mut self.identity.child {
                child.work.requests += 1;
            }
            self.tell_work();
        }
        answer
    }

    /// Reserves what the next call may use at most.
    pub(super) fn reserve(&mut self) -> Answer {
        let request = self.session.next_request();
        let input = request.context();
        let info = model::model_info(self, &self.session.model);
        let output = info.max_output.unwrap_or(REPLY).min(REPLY);
        let guess = Usage { input, output, ..Usage::default() };
        let cost = tiller_provider::models::cost(&guess, &info).unwrap_or_default().0;
        // What a program of another vendor costs counts for no tier of ours.
        let tier = if self.outside().is_some() { "external" } else { model::tier(self) };
        let input_cost = tiller_provider::models::cost(&request, &info).unwrap_or_default().0;
        let want = Want {
            tokens: input.saturating_add(output),
            cost: cost.max(input_cost),
            input_tokens: input,
            input_cost,
            tier,
            tier_limit: money::tier_limit(self, tier),
        };
        money::reservations(self).reserve(&self.identity.id, want)
    }

    /// The next request waits until another reservation is settled.
    pub(crate) fn wait_for_purse(&mut self, may_compact: bool) {
        self.with_live(|l| l.held = Some(may_compact));
        self.ask_purse_again();
    }

    /// Checks the budget again when a reservation is settled.
    pub(super) fn ask_purse_again(&mut self) {
        let Some(turn) = self.turn.live.as_ref().map(|l| l.no) else { return };
        let (reservations, tx) = (std::sync::Arc::clone(money::reservations(self)), self.tx.clone());
        self.spawn(async move {
            // Bounded, because a change between the answer and here would be missed.
            let _ = tokio::time::timeout(AGAIN, reservations.changed()).await;
            let _ = tx.send(Msg::Child(ChildMsg::BudgetChanged { turn })).await;
        });
    }

    /// A reservation was settled: ask again.
    pub(crate) fn purse_changed(&mut self, turn: u64) {
        if !self.is_live(turn) {
            return;
        }
        if let Some(may_compact) = self.turn.live.as_mut().and_then(|l| l.held.take()) {
            prepare::prepare(self, may_compact);
        } else {
            self.wake();
        }
    }

    /// A call of a child's is paid for.
    pub(crate) fn child_spent(&mut self, usage: Usage, cost: Option<tiller_protocol::Cost>) {
        let said = tokens::of_usage(&usage);
        if let Some(child) = &self.identity.child {
            child.reservations.charge(&self.identity.id, said, cost.unwrap_or_default().0);
        }
    }

    /// What it has done so far: the main agent writes that down, so that its limits hold over a restart.
    pub(crate) fn tell_work(&mut self) {
        let (mono, now) = (self.services.clock.mono(), self.services.clock.now());
        let Some(child) = &self.identity.child else { return };
        let millis = u64::try_from(child.worked(mono).as_millis()).unwrap_or(u64::MAX);
        let work = Work { millis, at: child.working.map(|_| now), ..child.work };
        let id = self.identity.id.clone();
        self.tell_main(CrewMsg::Work { id, work });
    }

    /// No one could give an approval or an answer that it needed: a run that has it is refused, however it ends.
    pub(crate) fn child_refused(&mut self) {
        if let Some(child) = &mut self.identity.child {
            child.work.refused = true;
        }
        self.tell_work();
    }

    /// It called a tool.
    pub(crate) fn called(&mut self) {
        if let Some(child) = &mut self.identity.child {
            child.work.calls += 1;
        }
        self.tell_work();
    }

    /// Its turn begins.
    pub(crate) fn child_begins(&mut self) {
        let (mono, tx) = (self.services.clock.mono(), self.tx.clone());
        let Some(turn) = self.turn.live.as_ref().map(|l| l.no) else { return };
        let Some(child) = &mut self.identity.child else { return };
        // Turns may follow each other without an end between them.
        child.worked = child.worked(mono);
        child.working = (!child.paused).then_some(mono);
        let left =
            child.limits.seconds.map(|m| std::time::Duration::from_secs(m).saturating_sub(child.worked));
        if let Some(left) = left {
            self.spawn(async move {
                tokio::time::sleep(left).await;
                let _ = tx.send(Msg::Child(ChildMsg::TimeUp { turn })).await;
            });
        }
    }

    /// It has had its time; unless it rested meanwhile, or was given more.
    pub(crate) fn time_up(&mut self, turn: u64) {
        let (mono, tx) = (self.services.clock.mono(), self.tx.clone());
        if !self.is_live(turn) {
            return;
        }
        let Some(child) = &self.identity.child else { return };
        let Some(most) = child.limits.seconds else { return };
        let left = std::time::Duration::from_secs(most).saturating_sub(child.worked(mono));
        // A person who works in its terminal is not thrown out.
        let held = child.outside.as_ref().is_some_and(|o| o.pane.view.entered || o.pane.view.touched);
        if left.is_zero() && !held {
            let notice = limit(format!("it reached its limit of {most} seconds"));
            return driver::halt(self, TurnStatus::Limit, notice);
        }
        self.spawn(async move {
            tokio::time::sleep(left.max(std::time::Duration::from_secs(1))).await;
            let _ = tx.send(Msg::Child(ChildMsg::TimeUp { turn })).await;
        });
    }

    /// As [`Self::child_over`], once what it did to the files is written down.
    pub(crate) fn child_ends(&mut self, status: TurnStatus, text: String, why: Option<Notice>) {
        if self.identity.child.is_none() {
            return;
        }
        let done =
            self.files.recorded.as_mut().is_none_or(|r| !matches!(r.try_recv(), Err(TryRecvError::Empty)));
        let Some(recorded) = self.files.recorded.take().filter(|_| !done) else {
            return self.child_over(status, text, why);
        };
        let (tx, over) =
            (self.tx.clone(), Msg::Child(ChildMsg::Ended { turns: self.turn.begun, status, text, why }));
        self.spawn(async move {
            let _ = tokio::time::timeout(RECORDED, recorded).await;
            let _ = tx.send(over).await;
        });
    }

    /// Its turn is over, and nothing waits: the main agent hears what came of it.
    pub(crate) fn child_over(&mut self, status: TurnStatus, text: String, why: Option<Notice>) {
        let mono = self.services.clock.mono();
        // It goes into rows, reports and other agents' talks as it is.
        let text = self.redact(&text);
        if status != TurnStatus::Done {
            self.missed("it has already ended");
        }
        let untold = self.untold();
        let Some(child) = &mut self.identity.child else { return };
        child.worked = child.worked(mono);
        child.working = None;
        child.reservations.release(&self.identity.id);
        self.tell_work();
        let Some(child) = &self.identity.child else { return };
        let over = Over {
            status,
            text,
            why,
            files: child.files.iter().cloned().collect(),
            calls: child.work.calls,
            seconds: child.worked.as_secs_f64(),
            untold,
        };
        let id = self.identity.id.clone();
        self.tell_main(CrewMsg::Over { id, over: Box::new(over) });
    }

    /// Files that a call of a child's changed.
    pub(crate) fn touched(&mut self, files: impl IntoIterator<Item = String>) {
        if let Some(child) = &mut self.identity.child {
            child.files.extend(files);
        }
    }

    /// The limits that the person set.
    pub(crate) fn new_limits(&mut self, limits: tiller_protocol::AgentLimits) {
        if let Some(child) = &mut self.identity.child {
            child.limits = limits;
        }
        if let Some(may_compact) = self.turn.live.as_mut().and_then(|l| l.held.take()) {
            prepare::prepare(self, may_compact);
        }
    }

    /// The profile of the main agent changed.
    pub(crate) fn parents_profile(&mut self, profile: tiller_protocol::Profile) {
        if let Some(child) = &self.identity.child {
            self.session.profile = super::recruit::narrowed(child.most, profile);
            self.outside_narrowed();
        }
    }

    /// Stops the turn as the person's stop does.
    pub(crate) fn stop_turn(&mut self, hard: bool) {
        if self.turn.live.is_some() {
            self.feed(Input::Interrupt { hard });
        } else {
            self.stop_job();
        }
    }
}

/// Longest wait for the files of an ended agent to be recorded before its end is reported.
const RECORDED: std::time::Duration = std::time::Duration::from_secs(2);
/// Longest wait before a refused reservation is tried again.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(1);
const ENDING: &str = "Tiller is ending";
