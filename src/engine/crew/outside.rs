//! Agents that are programs of other vendors: what they tell becomes entries and events like those of our own.

use crate::bus::agent_view;
use crate::job::calls;
use crate::money;
use crate::questions::asking;
use crate::turn::driver;
use std::sync::Arc;
use std::time::Duration;

use tiller_external::{AgentEvent, Ending, Job, Limits, Status, Transport};
use tiller_protocol::ask::{TrustItem, UNENFORCED_RULE};
use tiller_protocol::event::{TurnEvent, TurnStatus};
use tiller_protocol::{
    AskBody, AskReply, Block, Cost, EntryBody, EventBody, ModelRef, Notice, NoticeKind, Profile, StopReason,
    TodoItem, ToolCall, ToolOutcome, Usage,
};
use tiller_store::Call;
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use super::CrewMsg;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::crew::external::{FilesTrust, Open, Outside};
use crate::crew::msg::ExternalMsg;
use crate::lock::lock;
use crate::{Human, TrustOffer};

pub(super) use self::words::of_masks;

mod cover;
mod model;
mod tool;
mod words;

pub(super) use self::tool::diff_of;

/// Bytes of one message in the talk, at most.
const MESSAGE: usize = 1 << 20;
/// Bytes of words without a call in between.
const WORDS: usize = 4 << 20;
/// Columns and rows of a program's terminal, until its pane is shown.
const SIZE: (u16, u16) = (120, 36);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Core {
    pub(crate) fn outside(&mut self) -> Option<&mut Outside> {
        self.identity.child.as_mut()?.outside.as_mut()
    }

    /// What the program does now, for its row.
    pub(crate) fn outside_act(&self) -> Option<String> {
        let outside = self.identity.child.as_ref()?.outside.as_ref()?;
        let newest = outside.open.values().max_by_key(|o| o.since);
        newest.map(|o| format!("{} {}", o.tool.verb, o.tool.target))
    }

    /// Starts the turn of a program, once the files that steer it are found to be trusted. The files are read away
    /// from the engine's task.
    pub(crate) fn run_program(&mut self) {
        let Some(turn) = self.turn.live.as_ref().map(|l| l.no) else { return };
        let Some(programs) = self.services.crew.programs.clone() else { return };
        let Some(adapter) = self.outside().map(|o| Arc::clone(&o.adapter)) else { return };
        let (tx, root) = (self.tx.clone(), self.services.workspace.root.clone());
        let mut open = self.services.permit.denied_reads(&self.identity.id);
        open.retain(|d| !adapter.holds_to(&d.globs));
        let open: Vec<String> = open.into_iter().map(|d| d.rule).collect();
        let keeps = self.keeps_first();
        self.spawn(async move {
            let title = adapter.title.clone();
            let looked = tokio::task::spawn_blocking(move || (programs.trust)(&root, &adapter, &open)).await;
            let found = match looked {
                Ok(None) => FilesTrust::Trusted {
                    work: match keeps {
                        Some(keeps) => Some(keeps.kept().await),
                        None => None,
                    },
                },
                Ok(Some(offer)) if offer.never => FilesTrust::Refused(Box::new(not_trusted(&title, &offer))),
                Ok(Some(offer)) => FilesTrust::Open(Box::new(offer)),
                Err(_) => {
                    let text = format!("{title} was not started: its settings could not be checked");
                    FilesTrust::Refused(Box::new(Notice::new(NoticeKind::Internal, text)))
                }
            };
            // The engine may have ended.
            let _ = tx.send(Msg::External(ExternalMsg::ProgramTrust { turn, found })).await;
        });
    }

    /// Gives words to the program. Dropping the turn's stream ends it.
    fn start_program(&mut self) {
        let Some(turn) = self.turn.live.as_ref().map(|l| l.no) else { return };
        let Some(programs) = self.services.crew.programs.clone() else { return };
        let (words, anew) = self.words_for_program();
        let (cwd, env) = (self.services.workspace.root.clone(), (*self.services.child_env.now()).clone());
        let (auto, edits) =
            (self.session.profile == Profile::Full, self.session.profile >= Profile::AutoEdit);
        let limits = self.identity.child.as_ref().map(|c| c.limits).unwrap_or_default();
        if self.session.profile < Profile::Ask {
            let profile = self.session.profile.name();
            let text = format!("an external program may run commands, and the profile is {profile}");
            let notice =
                Notice::new(NoticeKind::Denied, text).hint("choose another profile, then continue it");
            return driver::finish(self, TurnStatus::Failed, String::new(), Some(notice));
        }
        let denied =
            self.services.permit.denied_reads(&self.identity.id).into_iter().flat_map(|d| d.globs).collect();
        let config = self.services.config();
        let typing = Duration::from_secs(config.agents.typing_pause);
        let bounds = crate::core::services::program_bounds(&config);
        let Some(outside) = self.outside() else { return };
        outside.unasked = auto;
        (outside.text, outside.thinking, outside.said, outside.spoke) = Default::default();
        outside.words = 0;
        (outside.pane, outside.holds, outside.held, outside.refused) = Default::default();
        let mut job_limits = Limits { typing, bounds, ..Limits::default() };
        if limits.seconds.is_some() {
            // Its time is kept here, where rests are left out and it can be raised.
            job_limits.wall = YEAR;
        }
        // A program without sessions gets the conversation again each time; no notice says so.
        let (prompt, anew) = match (&outside.theirs, anew) {
            (None, Some(anew)) => (anew, None),
            (_, anew) => (words, anew),
        };
        let job = Job {
            adapter: Arc::clone(&outside.adapter),
            transport: outside.transport,
            prompt,
            cwd,
            model: outside.model.clone(),
            resume: tiller_external::Resume {
                session: outside.theirs.clone(),
                cost: outside.booked.0,
                usage: outside.booked.1,
                fresh_prompt: anew,
            },
            env,
            lookup: programs.lookup,
            auto_approve: auto,
            denied,
            edits,
            stay: false,
            size: SIZE,
            limits: job_limits,
            files: None,
        };
        let (control, mut said) = match tiller_external::start(job, &programs.host) {
            Ok(running) => running,
            Err(e) => {
                let notice = Notice::new(NoticeKind::Config, e.to_string());
                self.keep_work();
                return driver::finish(self, TurnStatus::Failed, String::new(), Some(notice));
            }
        };
        outside.control = Some(control);
        let tx = self.tx.clone();
        let forward = async move {
            while let Some(said) = said.recv().await {
                if tx.send(Msg::External(ExternalMsg::Said { turn, said: Box::new(said) })).await.is_err() {
                    return;
                }
            }
        };
        let handle = AbortOnDropHandle::new(tokio::spawn(forward));
        self.with_live(|l| l.stream = Some(handle));
        self.hand_over();
        agent_view::agent_changed(self);
    }

    /// Files of the folder can make the program run commands, and the person has not agreed to them: the turn waits for
    /// the answer, or ends where nobody can give one.
    fn ask_program_trust(&mut self, turn: u64, title: &str, offer: TrustOffer) {
        if self.services.human == Human::Absent {
            return self.refuse_program(not_trusted(title, &offer));
        }
        let refused = not_trusted(title, &offer);
        let TrustOffer { folder, items, changed, decide, never: _ } = offer;
        let (reply, answer) = oneshot::channel();
        asking::ask(
            self,
            self.identity.id.clone(),
            None,
            AskBody::Trust { folder, brings: items, changed },
            reply,
        );
        let tx = self.tx.clone();
        self.spawn(async move {
            let yes = match answer.await {
                Ok(Ok(AskReply::Yes { .. })) => Some(true),
                Ok(Ok(AskReply::Never)) => Some(false),
                _ => None,
            };
            let kept = match yes {
                Some(yes) => tokio::task::spawn_blocking(move || decide(yes))
                    .await
                    .unwrap_or_else(|_| Err("internal error; this is a bug in Tiller".to_owned()))
                    .map(drop),
                None => Ok(()),
            };
            let found = match kept {
                // What is there is compared once more: it may have changed, and a folder above may have files too.
                Ok(()) if yes == Some(true) => FilesTrust::Agreed,
                Ok(()) => FilesTrust::Refused(Box::new(refused)),
                Err(why) => {
                    let detail = format!("your decision could not be saved: {why}");
                    FilesTrust::Refused(Box::new(refused.detail(detail)))
                }
            };
            // The engine may have ended; the answer itself is kept.
            let _ = tx.send(Msg::External(ExternalMsg::ProgramTrust { turn, found })).await;
        });
    }

    /// What was found of the files that steer the program: it starts, the person is asked, or its turn ends.
    pub(crate) fn program_trust(&mut self, turn: u64, found: FilesTrust) {
        if !self.is_live(turn) {
            if let FilesTrust::Trusted { work: Some(work) } = found {
                self.keep_after(work);
            }
            return;
        }
        match found {
            FilesTrust::Trusted { work } => {
                if let Some(o) = self.outside() {
                    o.work = work;
                }
                self.start_program();
            }
            FilesTrust::Agreed => self.run_program(),
            FilesTrust::Open(offer) => {
                let title = self.outside().map(|o| o.adapter.title.clone()).unwrap_or_default();
                self.ask_program_trust(turn, &title, *offer);
            }
            FilesTrust::Refused(notice) => self.refuse_program(*notice),
        }
    }

    fn refuse_program(&mut self, notice: Notice) {
        if self.services.human == Human::Absent && notice.kind == NoticeKind::Denied {
            self.child_refused();
        }
        driver::finish(self, TurnStatus::Failed, String::new(), Some(notice));
    }

    /// The program said something.
    pub(crate) fn outside_said(&mut self, turn: u64, said: AgentEvent) {
        if !self.is_live(turn) || self.outside().is_none() {
            return;
        }
        let works = matches!(
            said,
            AgentEvent::Text(_) | AgentEvent::Thinking(_) | AgentEvent::Tool(_) | AgentEvent::Ask(_)
        );
        if works && let Some(why) = self.outside_overspent() {
            return driver::halt(self, TurnStatus::Limit, crate::crew::state::limit(why));
        }
        let said = match said {
            AgentEvent::Ended(_) => match self.hold_end(turn, said) {
                Some(said) => said,
                None => return,
            },
            said => said,
        };
        match said {
            AgentEvent::Started { transport, .. } => {
                // One that tells of no call is at work as long as it runs.
                let mute = self.outside().is_some_and(|o| o.adapter.is_mute(transport));
                self.cover_all(mute);
                if !mute && transport != Transport::Pty {
                    // It runs in another way than was expected, and tells of its calls.
                    self.keep_work();
                }
                let id = self.identity.id.clone();
                self.tell_main(CrewMsg::Theirs {
                    id,
                    session: None,
                    transport: Some(transport.name().into()),
                    booked: None,
                });
            }
            AgentEvent::Session { id, model } => self.outside_session(id, model),
            AgentEvent::Anew => self.outside_anew(),
            AgentEvent::Text(text) => {
                if let Some(o) = self.outside() {
                    o.text.push_str(&text);
                    o.said.push_str(&text);
                    o.spoke |= !text.trim().is_empty();
                }
                driver::delta(self, 0, &text);
                self.outside_talks(text.len());
            }
            AgentEvent::Thinking(text) => {
                if let Some(o) = self.outside() {
                    o.thinking.push_str(&text);
                }
                driver::delta(self, 1, &text);
                self.outside_talks(text.len());
            }
            AgentEvent::Break => {
                self.outside_flush(None, StopReason::EndTurn);
                if let Some(o) = self.outside() {
                    o.said.clear();
                }
            }
            AgentEvent::Tool(tool) => self.outside_tool(tool),
            AgentEvent::ToolProgress { id, text } => self.outside_progress(id, &text),
            AgentEvent::ToolDone { id, ok, output, diffs } => self.outside_done(&id, ok, output, diffs),
            AgentEvent::Plan(todos) => self.outside_plan(todos),
            AgentEvent::Ask(ask) => {
                if let Some(call) = &ask.call {
                    self.outside_show(call);
                }
                self.outside_ask(ask);
            }
            AgentEvent::Usage { usage, cost } => self.outside_spent(usage, cost),
            AgentEvent::Note(text) => {
                let who = self.identity.id.name().to_owned();
                self.notice(Notice::new(NoticeKind::Info, format!("{who}: {}", self.redact(&text))));
            }
            AgentEvent::Ended(ending) => self.outside_ended(ending),
            AgentEvent::State(_) | AgentEvent::Title(_) | AgentEvent::Bell => self.pane_heard(turn, said),
            AgentEvent::Delivered { id } => self.handed(id),
            AgentEvent::Missed { id, why, tried } => self.not_handed(id, &why, tried),
            // Who looks at its screen waits for it there.
            AgentEvent::Context { .. } | AgentEvent::Screen | AgentEvent::TurnDone { .. } => {}
        }
    }

    /// So much more was said. What never ends is no answer; and no entry grows without end.
    fn outside_talks(&mut self, bytes: usize) {
        let Some(o) = self.outside() else { return };
        o.words += bytes;
        if o.said.len() > 2 * MESSAGE {
            o.said.drain(..o.said.ceil_char_boundary(o.said.len() - MESSAGE));
        }
        let (long, flood) = (o.text.len() + o.thinking.len() > MESSAGE, o.words > WORDS);
        if long {
            self.outside_flush(None, StopReason::EndTurn);
        }
        if flood {
            let text = format!("it wrote more than {} MB without calling a tool", WORDS >> 20);
            driver::halt(self, TurnStatus::Failed, Notice::new(NoticeKind::User, text));
        }
    }

    fn outside_session(&mut self, session: Option<String>, model: Option<String>) {
        let Some(o) = self.outside() else { return };
        if session.is_some() && session != o.theirs {
            o.booked = Default::default();
        }
        o.theirs = session.clone().or(o.theirs.take());
        let booked = o.booked;
        let name = o.adapter.name.clone();
        if let Some(model) = model {
            self.session.model = ModelRef(format!("{name}/{model}"));
        }
        let id = self.identity.id.clone();
        self.tell_main(CrewMsg::Theirs { id, session, transport: None, booked: Some(booked) });
        agent_view::agent_changed(self);
    }

    /// What it said so far stands in the talk from here on; with the call that it makes, if it makes one.
    pub(super) fn outside_flush(&mut self, call: Option<ToolCall>, stop: StopReason) {
        let Some(o) = self.outside() else { return };
        let (text, thinking) = (std::mem::take(&mut o.text), std::mem::take(&mut o.thinking));
        let mut blocks = Vec::new();
        if !thinking.trim().is_empty() {
            blocks.push(Block::Thinking { text: thinking, signature: None });
        }
        if !text.trim().is_empty() {
            blocks.push(Block::Text { text: text.clone() });
        }
        blocks.extend(call.map(Block::ToolCall));
        if blocks.is_empty() {
            return;
        }
        driver::flush_deltas(self);
        let body = EntryBody::Assistant {
            blocks,
            stop,
            model: self.session.model.clone(),
            usage: Usage::default(),
            cost: None,
        };
        let entry = self.session.grow(&self.services, body);
        let place = self.place();
        let text = self.redact(&text);
        let event = TurnEvent::AssistantMessage { entry: entry.id, text, node: Box::new(entry.clone()) };
        let append = self.append().entries(vec![entry]);
        self.save(append, vec![(place, EventBody::Turn(event))], Then::Nothing);
    }

    fn outside_plan(&mut self, mut todos: Vec<TodoItem>) {
        todos.iter_mut().for_each(|t| t.content = self.redact(&t.content));
        lock(&self.context.todo).replace(todos.clone());
        calls::todos_saved(self, todos, false);
    }

    /// What it says that it used. A cost that it does not tell stays unknown.
    fn outside_spent(&mut self, usage: Usage, cost: Option<Cost>) {
        self.session.usage.add(&usage);
        if let Some(cost) = cost {
            self.session.cost = Some(self.session.cost.unwrap_or_default().plus(cost));
            self.money.spent.session = self.money.spent.session.plus(cost);
        }
        self.child_spent(usage, cost);
        money::reservations(self).release(&self.identity.id);
        if let Some(o) = self.outside() {
            o.paid = true;
            o.booked.0 = o.booked.0.plus(cost.unwrap_or_default());
            o.booked.1.add(&usage);
            let booked = Some(o.booked);
            let id = self.identity.id.clone();
            self.tell_main(CrewMsg::Theirs { id, session: None, transport: None, booked });
        }
        let call = Call {
            agent: self.identity.id.clone(),
            model: self.session.model.clone(),
            tier: "external".into(),
            time: self.services.clock.now(),
            usage,
            cost,
        };
        let ticket = self.services.store.costs().record(self.session.id, call);
        self.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
        agent_view::agent_changed(self);
    }

    /// It goes on after it has told of what it used: whether a limit was passed by that, and which. (What it tells
    /// with its last words ends nothing.)
    fn outside_overspent(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.outside()?.paid) {
            return None;
        }
        let child = self.identity.child.as_ref()?;
        child.reservations.over(&self.identity.id)
    }

    /// Nobody may be asked any more as when it was started: one that does everything unasked does not go on.
    pub(super) fn outside_narrowed(&mut self) {
        let profile = self.session.profile;
        if self.turn.live.is_some() && profile < Profile::Full && self.outside().is_some_and(|o| o.unasked) {
            let text =
                format!("it was started without approval prompts, and the profile is now {}", profile.name());
            let notice = Notice::new(NoticeKind::Denied, text).hint("continue it: from then on it asks");
            driver::halt(self, TurnStatus::Interrupted, notice);
        }
    }

    /// Whatever was not told to its end gets one: the talk stays whole.
    pub(crate) fn outside_close(&mut self, stop: StopReason) {
        let Some(o) = self.outside() else { return };
        (o.control, o.pane, o.holds) = Default::default();
        let open: Vec<Open> = std::mem::take(&mut o.open).into_values().filter(|o| o.shown).collect();
        for mut open in open {
            self.uncover(&mut open, &[]);
            let text = "It ended before this was done.".to_owned();
            self.outside_result(open, ToolOutcome::Interrupted, text, None, 0.0);
        }
        self.cover_all(false);
        self.keep_work();
        self.outside_flush(None, stop);
    }

    fn outside_ended(&mut self, ending: Ending) {
        let Some(o) = self.outside() else { return };
        let said = std::mem::take(&mut o.said);
        let refused = std::mem::take(&mut o.refused);
        // Some tell their words only at the end; what was told already is not told twice.
        if !o.spoke && !ending.text.trim().is_empty() {
            o.text.push_str(&ending.text);
        }
        let text = self.redact(if ending.text.trim().is_empty() { &said } else { &ending.text });
        let why = self.redact(&ending.why);
        let status = match ending.status {
            // It went on without it; that it was refused is the run's result, as with calls of our own.
            Status::Done if refused => TurnStatus::Refused,
            Status::Done => TurnStatus::Done,
            Status::Cancelled => TurnStatus::Interrupted,
            Status::Failed | Status::TimedOut | Status::Crashed => TurnStatus::Failed,
        };
        let stop =
            if ending.status == Status::Done { StopReason::EndTurn } else { StopReason::Cut(why.clone()) };
        self.outside_close(stop);
        let notice = (ending.status != Status::Done).then(|| Notice::new(NoticeKind::User, why));
        driver::finish(self, status, text, notice);
    }
}

/// Why a program does not start, with up to three of the files or rules.
fn not_trusted(title: &str, offer: &TrustOffer) -> Notice {
    let listed = |items: &[&str]| match items.len().saturating_sub(3) {
        0 => items.join(", "),
        more => format!("{} and {more} more", items[..3].join(", ")),
    };
    let of = |rules: bool| -> Vec<&str> {
        let kind = |i: &&TrustItem| (i.kind == UNENFORCED_RULE) == rules;
        offer.items.iter().filter(kind).map(|i| i.path.as_str()).collect()
    };
    let (files, rules) = (of(false), of(true));
    let never = if offer.never { " (you chose never)" } else { "" };
    if files.is_empty() && !rules.is_empty() {
        let text = format!(
            "{title} was not started{never}: it reads files without asking, regardless of {}",
            listed(&rules)
        );
        let hint =
            "continue it in the workbench and agree there, or use a program that can enforce such rules";
        return Notice::new(NoticeKind::Denied, text).hint(hint);
    }
    let text = format!(
        "{title} was not started{never}: {} can make it run commands and is not trusted; `tiller trust` shows it",
        listed(&files)
    );
    Notice::new(NoticeKind::Denied, text)
        .hint(format!("run `tiller trust` in {}, then continue the agent", offer.folder))
}
