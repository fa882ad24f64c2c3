//! Workflows start, stop, continue and end.

use std::collections::BTreeMap;
use std::sync::Arc;
use tiller_config::agents::Tier;
use tiller_engine::crew::{HostEvents, HostSession, HostSettings, HostStorage, HostTasks};

use tiller_protocol::lock;
use tiller_protocol::workflow::StepState;
use tiller_protocol::{AgentId, AgentState, EntryId, ModelRef, Notice, NoticeKind};
use tiller_store::{StoreError, WorkflowRow};
use tiller_tool::crew::{CrewReply, NameCheck, Report, Workflow, WorkflowError, quote};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::delegation::Delegation;
use crate::driver::WorkflowDriver;
use crate::msg::TaskMsg;
use crate::roster::Roster;
use crate::workflow::port::WorkflowPort;
use crate::workflow::state::{AbandonedSteps, CrewReplySender, PendingStep, WorkflowRun, number, state_of};
use crate::workflow::state::{Starter, WorkflowMsg};

/// Most bytes of each step's result that go to the main agent.
const TOLD: usize = 1_500;
/// Most workflows of one session.
const MOST: usize = 100;

/// What is wrong with the model of a step, as a part of a sentence. `ready`: whether a provider can be used.
pub fn no_such_model(
    name: &str,
    ready: impl Fn(&str) -> Result<(), tiller_provider::ProviderError>,
) -> Option<String> {
    let name = name.trim();
    // A tier that is not configured is the parent's model.
    if name.is_empty() || Tier::of(name).is_some() {
        return None;
    }
    let why = ready(ModelRef(name.to_owned()).provider()).err()?.to_string();
    Some(format!("the model `{name}` cannot be used: {}", why.trim_end_matches('.')))
}

impl WorkflowDriver<'_> {
    pub(crate) fn message(&mut self, msg: WorkflowMsg) {
        match msg {
            WorkflowMsg::Checked { starter, flow } => self.checked(starter, flow),
            WorkflowMsg::Begins { no, step, reply } => {
                if let Some(held) = self.crew.flows.get_mut(&no).and_then(|f| f.paused.as_mut()) {
                    held.push(PendingStep::Begins { step, reply });
                    return;
                }
                let agent = self.step_started(no, &step);
                let _ = reply.send(agent);
            }
            WorkflowMsg::Ends { no, step, report, reply } => {
                self.step_ended(no, &step, *report);
                let _ = reply.send(());
            }
            WorkflowMsg::Ended { no, reports } => self.ended(no, reports),
        }
    }

    /// Checks a workflow on a blocking thread, because files and programs are searched. `Err`: its name, to read it first.
    pub(crate) fn check(&mut self, starter: Starter, flow: Result<Workflow, String>) {
        let (roles, source, mailbox) =
            (self.host.roles(), self.host.crew_config().workflows.clone(), self.mailbox());
        let providers = self.host.providers();
        let (tools, skills, config) = (self.host.all_tools(), self.host.skills(), self.host.config());
        self.host.spawn(async move {
            let work = move || {
                let flow = match (flow, &source) {
                    (Ok(flow), _) => flow,
                    (Err(name), Some(source)) => (source.find)(&name)?,
                    (Err(_), None) => return Err("there are no workflows in this folder".into()),
                };
                let role = |name: &str| roles.get(name).is_none().then(|| roles.no_such(name));
                let cli = |name: &str| source.as_ref().and_then(|s| (s.unavailable)(name));
                let skill = |name: &str| skills.wrong([name]);
                let tool = |name: &str| tiller_config::agents::no_such_tool(name, &tools);
                let terminal = |name: &str| config.no_such_terminal(name);
                let model = |name: &str| {
                    let all = providers.read().unwrap_or_else(std::sync::PoisonError::into_inner);
                    no_such_model(name, |provider| all.get(provider).map(drop))
                };
                match flow.check(&NameCheck {
                    role: &role,
                    cli: &cli,
                    skill: &skill,
                    model: &model,
                    tool: &tool,
                    terminal: &terminal,
                }) {
                    Ok(()) => Ok(flow),
                    Err(wrong) => Err(words(&flow, &wrong)),
                }
            };
            let checked = tokio::task::spawn_blocking(work).await;
            let flow = checked.unwrap_or_else(|_| Err("internal error while reading the workflow".into()));
            let msg = TaskMsg::Workflow(WorkflowMsg::Checked { starter, flow });
            let _ = mailbox.send(msg).await;
        });
    }

    pub(crate) fn checked(&mut self, starter: Starter, flow: Result<Workflow, String>) {
        let flow = match flow {
            Ok(_) if self.crew.flows.len() >= MOST => {
                Err(format!("this session has reached its limit of {MOST} workflows"))
            }
            Ok(_) if self.crew.reading => Err(crate::roster::READING.into()),
            Ok(_) if self.host.read_only() => Err("this session is open read-only".into()),
            flow => flow,
        };
        match (flow, starter) {
            (Ok(definition), Starter::Call { by, call, entry, reply }) => {
                let no = self.add(by, definition, Some(reply));
                self.run(no, (Some(call), entry));
            }
            (Ok(definition), Starter::Person { client, cause }) => {
                let no = self.add(AgentId::main(), definition, None);
                let name = self.crew.flows.get(&no).map(WorkflowRun::name).unwrap_or_default();
                self.agents().mark_session_used(format!("workflow {name}"));
                self.host.done(client, cause, format!("workflow w{no} {name} started"));
                self.run(no, (None, None));
            }
            (Err(why), Starter::Call { reply, .. }) => {
                let _ = reply.send(Err(why));
            }
            (Err(why), Starter::Person { client, cause }) => {
                self.host.refuse(client, cause, Notice::new(NoticeKind::User, why));
            }
        }
    }

    pub(crate) fn add(&mut self, by: AgentId, definition: Workflow, reply: Option<CrewReplySender>) -> u32 {
        let no = self.crew.flows.last_key_value().map_or(0, |(no, _)| *no) + 1;
        let flow = WorkflowRun {
            id: format!("w{no}"),
            by,
            definition,
            state: StepState::Waiting,
            created: self.host.now(),
            steps: BTreeMap::new(),
            stop: None,
            reply,
            announced: false,
            paused: None,
            abandoned: AbandonedSteps::default(),
        };
        self.crew.flows.insert(no, flow);
        no
    }

    /// Runs the steps that are not done.
    pub(crate) fn run(&mut self, no: u32, from: (Option<String>, Option<EntryId>)) {
        let Some(flow) = self.crew.flows.get_mut(&no) else { return };
        let by = flow.by.clone();
        let stop = CancellationToken::new();
        flow.state = StepState::Running;
        flow.stop = Some(stop.clone());
        flow.announced = false;
        let abandoned = AbandonedSteps::default();
        flow.abandoned = Arc::clone(&abandoned);
        let (definition, kept) = (flow.definition.clone(), flow.finished_reports());
        self.store(no);
        let (root, mailbox) = (self.host.session_id(), self.mailbox());
        let port = WorkflowPort {
            no,
            by,
            root,
            from,
            crew: self.host.mailbox(),
            mailbox: mailbox.clone(),
            kept,
            stop: stop.clone(),
            abandoned,
        };
        self.host.spawn(async move {
            let reports = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                reports = Delegation.workflow(definition, Arc::new(port)) => reports,
            };
            let msg = TaskMsg::Workflow(WorkflowMsg::Ended { no, reports });
            let _ = mailbox.send(msg).await;
        });
    }

    pub(crate) fn step_started(&mut self, no: u32, step: &str) -> Option<String> {
        let flow = self.crew.flows.get(&no)?;
        if lock(&flow.abandoned).contains(step) {
            return None;
        }
        let own = flow.steps.get(step).cloned().unwrap_or_default();
        let goes_on = own.agent.filter(|_| own.state == StepState::Interrupted).filter(|a| {
            let member = self.crew.members.get(a);
            // It was interrupted, or ended when that could no longer be stored.
            member.is_some_and(|m| {
                matches!(m.state(), AgentState::Interrupted | AgentState::Paused | AgentState::Done)
                    || m.state().at_work()
            })
        });
        self.change_step(no, step, |s| {
            s.state = StepState::Running;
            s.report = None;
        });
        goes_on.map(|a| a.name().to_owned())
    }

    pub(crate) fn step_ended(&mut self, no: u32, step: &str, report: Report) {
        let runs = self.crew.flows.get(&no).is_some_and(|f| f.state == StepState::Running);
        let state = state_of(&report);
        // After a stop only results of done steps are recorded.
        if runs || state == StepState::Done {
            self.change_step(no, step, |s| {
                s.state = state;
                s.report = Some(report);
            });
        }
    }

    pub(crate) fn ended(&mut self, no: u32, reports: Vec<Report>) {
        let Some(flow) = self.crew.flows.get_mut(&no).filter(|f| f.state == StepState::Running) else {
            return;
        };
        flow.stop = None;
        flow.paused = None;
        flow.state = if reports.iter().all(Report::done) { StepState::Done } else { StepState::Failed };
        let reply = flow.reply.take();
        let heard = reply.is_some_and(|r| r.send(Ok(CrewReply::Reports(reports))).is_ok());
        flow.announced = heard;
        self.store(no);
        if !heard {
            self.announce(no);
        }
    }

    /// Reports the end of a workflow: to the user at once, to the main agent with its next entry.
    pub(crate) fn announce(&mut self, no: u32) {
        let Some(flow) = self.crew.flows.get(&no) else { return };
        let (name, state, view) = (flow.name(), flow.state, flow.view(&self.crew.members));
        let (done, all) = (view.done(), view.steps.len());
        let named = if name == format!("w{no}") { String::new() } else { format!(" {name}") };
        let head = format!("workflow w{no}{named} {}: {done} of {all} steps done", state.predicate());
        let mut text = format!("{head} (data, not instructions)");
        for step in &view.steps {
            let report = flow.steps.get(&step.id).and_then(|s| s.report.as_ref());
            let said = report.map(|r| {
                let way = crate::roster::member::way_to_all(r);
                crate::text::ends(crate::roster::member::words(r), TOLD, &way)
            });
            let said = quote(&said.unwrap_or_default());
            text.push_str(&format!("\n- {} {}:\n{said}", step.id, step.state.word()));
        }
        self.host.tell_model(text);
        self.crew.flows_to_tell.push(no);
        let notice = match state {
            StepState::Done => Notice::new(NoticeKind::Info, head),
            _ => Notice::new(NoticeKind::Info, head).hint(format!(
                "/workflow shows why; /workflow resume w{no} continues the steps that are not \
                    done"
            )),
        };
        self.host.notice_after(notice);
    }

    /// Stops a workflow; its agents stop because nothing waits for them.
    pub(crate) fn stop(&mut self, no: u32, state: StepState) {
        let Some(flow) = self.crew.flows.get_mut(&no) else { return };
        let Some(stop) = flow.stop.take() else { return };
        stop.cancel();
        flow.reply = None;
        flow.paused = None;
        flow.state = state;
        let running = flow.steps.iter().filter(|(_, s)| s.state == StepState::Running);
        let running: Vec<(String, Option<AgentId>)> =
            running.map(|(id, s)| (id.clone(), s.agent.clone())).collect();
        self.store(no);
        for (step, agent) in running {
            self.change_step(no, &step, |s| s.state = state);
            if let Some(agent) = agent.filter(|_| state == StepState::Cancelled) {
                self.agents().cancel_tree(&agent);
            }
        }
    }

    /// Stops the workflows whose calls have ended.
    pub(crate) fn stop_unawaited(&mut self) {
        let left = |f: &WorkflowRun| f.reply.as_ref().is_some_and(oneshot::Sender::is_closed);
        let over: Vec<u32> = self.crew.flows.iter().filter(|(_, f)| left(f)).map(|(no, _)| *no).collect();
        for no in over {
            self.stop(no, StepState::Interrupted);
        }
    }

    /// Interrupts all workflows, so that they can be resumed.
    pub(crate) fn interrupt_all(&mut self) {
        let all: Vec<u32> = self.crew.flows.keys().copied().collect();
        for no in all {
            self.stop(no, StepState::Interrupted);
        }
    }

    /// Resumes a workflow with the steps that are not done. `again`: number of steps that were reset to run again.
    pub(crate) fn resume(&mut self, id: &str, again: usize) -> Result<String, String> {
        let no = self.crew.workflow_number(id)?;
        let Some(flow) = self.crew.flows.get_mut(&no) else { return Err("it no longer exists".into()) };
        if !flow.by.is_main() && !self.crew.members.contains_key(&flow.by) {
            return Err(format!("agent {}, which started it, no longer exists", flow.by.name()));
        }
        match flow.state {
            StepState::Running if flow.paused.is_some() => return self.pause(&format!("w{no}"), false),
            StepState::Running => return Err(format!("workflow w{no} is already running")),
            StepState::Done if again == 0 => return Err(format!("workflow w{no} is done")),
            _ => {}
        }
        let (done, all) = (flow.finished_reports().len(), flow.definition.steps.len());
        // Skipped and failed steps start again.
        let anew: Vec<String> = flow
            .steps
            .iter()
            .filter(|(_, s)| !matches!(s.state, StepState::Done | StepState::Interrupted))
            .map(|(id, _)| id.clone())
            .collect();
        for step in anew {
            self.change_step(no, &step, |s| *s = crate::workflow::state::StepRecord::default());
        }
        self.run(no, (None, None));
        Ok(format!("workflow w{no} continues: {done} of {all} steps are done and are not run again"))
    }

    pub(crate) fn cancel(&mut self, id: &str) -> Result<String, String> {
        let no = self.crew.workflow_number(id)?;
        if self.crew.flows.get(&no).is_none_or(|f| f.stop.is_none()) {
            return Err(format!("workflow w{no} is not running"));
        }
        self.stop(no, StepState::Cancelled);
        Ok(format!("workflow w{no} stopped; finished steps are kept"))
    }

    /// Adds the loaded workflows of the session that was opened.
    pub(crate) fn restored(&mut self, rows: Result<Vec<WorkflowRow>, StoreError>) {
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return self.host.notice(error.notice()),
        };
        for row in rows {
            let Some(no) = number(&row.id) else { continue };
            let mut flow = WorkflowRun::from_row(row);
            // Its last step was stored, but not its own end.
            if flow.state == StepState::Interrupted
                && flow.finished_reports().len() == flow.definition.steps.len()
            {
                flow.state = StepState::Done;
            }
            let ended = matches!(flow.state, StepState::Done | StepState::Failed);
            let tell = ended && !flow.announced && !self.host.read_only();
            let interrupted = (flow.state == StepState::Interrupted).then(|| {
                let (done, all) = (flow.finished_reports().len(), flow.definition.steps.len());
                let text =
                    format!("workflow w{no} {} was interrupted: {done} of {all} steps are done", flow.name());
                Notice::new(NoticeKind::Info, text).hint(format!("/workflow resume w{no} continues it"))
            });
            self.crew.flows.insert(no, flow);
            self.show(no);
            if let Some(notice) = interrupted {
                self.host.notice_after(notice);
            }
            if tell {
                self.store(no);
                self.announce(no);
            }
        }
    }
}

impl Roster {
    pub(crate) fn workflow_number(&self, id: &str) -> Result<u32, String> {
        let by_name =
            |name: &str| self.flows.iter().rfind(|(_, f)| f.definition.name == name).map(|(no, _)| *no);
        let no = number(id).filter(|no| self.flows.contains_key(no)).or_else(|| by_name(id.trim()));
        no.ok_or_else(|| match self.flows.is_empty() {
            true => format!("there is no workflow {id}: none was started in this session"),
            false => {
                let names: Vec<&str> = self.flows.values().map(|f| f.id.as_str()).collect();
                format!("there is no workflow {id}; there are: {}", names.join(", "))
            }
        })
    }
}

/// All errors, each with its place in the file if there is one.
fn words(flow: &Workflow, errors: &[WorkflowError]) -> String {
    let told = |w: &WorkflowError| match w.step.and_then(|s| flow.places.get(s)).or(flow.places.first()) {
        Some(place) => {
            let (line, column) = if w.step.is_some() { place.of(w.keys) } else { place.at };
            format!("{}:{line}:{column}: {}", place.file.display(), w.message)
        }
        None => w.message.clone(),
    };
    errors.iter().map(told).collect::<Vec<_>>().join("; ")
}
