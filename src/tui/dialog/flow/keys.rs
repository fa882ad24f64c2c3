//! Actions on the workflow and its selected step.

use tiller_protocol::{AgentCommand, AgentId, AgentView, CommandBody, StepState, StepView, WorkflowView};

use super::{DIFF, Flow, agents, graph, say, start, totals};
use crate::app::effect::{Effect, Navigation, Token};
use crate::dialog::confirm::Confirm;
use crate::dialog::reader::text::Text;
use crate::dialog::text_prompt::TextPrompt;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::panel::agents::{message, pause, raise};
use crate::panel::{Hint, Reply};
use crate::text::clean;

/// Receives the answers of the message box.
const WORDS: Token = Token(1);
/// Steps that a page has.
const PAGE: isize = 8;

fn send(command: AgentCommand) -> Reply {
    Reply::with(Effect::send(CommandBody::Agent(command)))
}

fn begun(step: &StepView) -> Reply {
    match step.state {
        StepState::Waiting => say(format!("{} has not started: it waits for the steps it needs", step.id)),
        _ => say(format!("{} has no agent: it was not started", step.id)),
    }
}

/// The same keys where only the workflow's row is chosen; `None`: the key is about something else.
pub(crate) fn key(model: &Model, flow: &str, id: &str) -> Option<Reply> {
    let view = model.crew.workflows.iter().find(|w| w.id == flow)?;
    Some(match id {
        "list.open" => Reply::with(Effect::Push(super::open_at(model, flow)?)),
        "agents.stop" => stop(view),
        "agents.pause" => pause_all(view),
        "agents.resume" => resume(view),
        "agents.retry" | "agents.steer" | "agents.raise" | "agents.model" | "agents.diff"
        | "agents.branch" | "agents.background" | "agents.todo" => {
            say("Select an agent below it, or open it")
        }
        _ => return None,
    })
}

impl Flow {
    pub(super) fn do_it(&mut self, id: &str, model: &Model) -> Reply {
        let Some(flow) = self.view(model) else { return Reply::Ignored };
        match id {
            "list.down" => self.go(flow, 1),
            "list.up" => self.go(flow, -1),
            "list.page_down" => self.go(flow, PAGE),
            "list.page_up" => self.go(flow, -PAGE),
            "list.first" => self.go(flow, isize::MIN / 2),
            "list.last" => self.go(flow, isize::MAX / 2),
            "list.back" => return Reply::with(Effect::Pop),
            "flow.forward" | "flow.back" => self.along(flow, id == "flow.forward"),
            "flow.other" => return self.other(model),
            "flow.start" => return Reply::with(Effect::Push(Box::new(start::open()))),
            "flow.resume" => return resume(flow),
            "flow.stop" => return stop(flow),
            "flow.pause_all" => return pause_all(flow),
            _ => {
                let Some((flow, step)) = self.chosen(model) else { return Reply::Ignored };
                return of_step(id, flow, step, model).unwrap_or(Reply::Ignored);
            }
        }
        Reply::done()
    }

    /// Moves along an edge to a step that needs this one, or that this one needs; pressed again, to the next of them.
    fn along(&mut self, flow: &WorkflowView, forward: bool) {
        let needs = graph::needs(&flow.steps);
        let order = graph::order(&needs);
        let Some(now) = flow.steps.iter().position(|s| s.id == self.step) else { return };
        let next = match forward {
            true => order.iter().find(|s| needs[**s].contains(&now)),
            false => order.iter().rev().find(|s| needs[now].contains(s)),
        };
        if let Some(step) = next {
            self.step.clone_from(&flow.steps[*step].id);
        }
    }

    fn other(&mut self, model: &Model) -> Reply {
        let all = &model.crew.workflows;
        if all.len() < 2 {
            return say("This session has no other workflow");
        }
        let at = all.iter().position(|w| w.id == self.id).map_or(0, |at| (at + 1) % all.len());
        if let Some(flow) = all.get(at) {
            *self = Self::of(flow);
        }
        Reply::done()
    }

    /// Returns what can be done now, the most wanted first.
    pub(super) fn all_hints(&self, model: &Model) -> Vec<Hint> {
        let Some((flow, step)) = self.chosen(model) else {
            return vec![Hint::of("flow.start")];
        };
        let mut all = Vec::new();
        if step.agent.is_some() {
            all.push(Hint::as_("list.open", "open"));
        }
        if flow.steps.iter().any(|s| totals::waits(model, s)) {
            all.push(Hint::of("flow.answer"));
        }
        let runs = flow.state == StepState::Running;
        if runs {
            let paused = if flow.paused { "continue" } else { "pause all" };
            all.extend([Hint::of("flow.end"), Hint::of("flow.stop"), Hint::as_("flow.pause_all", paused)]);
            if step.state == StepState::Running {
                all.extend([Hint::of("flow.pause"), Hint::of("flow.steer"), Hint::of("flow.raise")]);
            }
        } else {
            if flow.state != StepState::Done {
                all.push(Hint::of("flow.resume"));
            }
            all.push(Hint::of("flow.retry"));
        }
        if !step.said.is_empty() {
            all.push(Hint::of("flow.result"));
        }
        if step.agent.is_some() {
            all.push(Hint::of("flow.diff"));
        }
        if model.crew.workflows.len() > 1 {
            all.push(Hint::of("flow.other"));
        }
        all.extend([Hint::of("flow.forward"), Hint::of("flow.back"), Hint::of("flow.start")]);
        all
    }
}

fn of_step(id: &str, flow: &WorkflowView, step: &StepView, model: &Model) -> Option<Reply> {
    let agent = totals::agent(model, step);
    let with = |then: &dyn Fn(&AgentView, &str) -> Reply| match agent {
        Some(a) => then(a, &model.name_of(&a.id)),
        None => begun(step),
    };
    Some(match id {
        "list.open" => {
            with(&|a, _| Reply::Done(vec![Effect::Pop, Effect::Navigate(Navigation::Agent(a.id.clone()))]))
        }
        "flow.answer" => answer(step, model),
        "flow.steer" => with(&|a, _| Reply::with(Effect::Push(Box::new(message(model, a.id.clone()))))),
        "flow.pause" => with(&|a, name| pause(a, name)),
        "flow.raise" => with(&|a, name| raise(a, name)),
        "flow.diff" => with(&|a, _| {
            let diff = AgentCommand::Diff { id: a.id.clone() };
            Reply::with(Effect::ask(CommandBody::Agent(diff), DIFF))
        }),
        "flow.result" => result(step, model),
        "flow.end" => match step.state {
            StepState::Waiting | StepState::Running if flow.state == StepState::Running => end(flow, step),
            _ => say(format!("{} is not running", step.id)),
        },
        "flow.retry" => retry(flow, step),
        _ => return None,
    })
}

/// Asks whether a step is to be given up.
fn end(flow: &WorkflowView, step: &StepView) -> Reply {
    let cancel = AgentCommand::WorkflowCancelStep { id: flow.id.clone(), step: step.id.clone() };
    let title = format!("End the step {}?", clean::plain(&step.id));
    let text = "Its agent is ended, and the steps that need it are skipped. The other steps continue.";
    let then = vec![Effect::send(CommandBody::Agent(cancel))];
    Reply::with(Effect::Push(Box::new(Confirm::new(&title, text, "end it", then))))
}

/// Opens the question of the step's agents, else the oldest question of any agent.
fn answer(step: &StepView, model: &Model) -> Reply {
    let of = |id: &AgentId| model.questions.open.iter().find(|k| k.agent == *id || k.agent.is_below(id));
    match agents(step).find_map(of) {
        Some(ask) => Reply::with(Effect::Navigate(Navigation::Question(ask.id))),
        None => Reply::with(Effect::Act(Action("global.answer"))),
    }
}

/// Opens the whole result of a step.
fn result(step: &StepView, model: &Model) -> Reply {
    let told = step.agent.as_ref().and_then(|id| model.row(id)).and_then(|a| a.child.as_deref());
    let own = told.map_or("", |c| c.result.as_str());
    let said = if own.len() > step.said.len() { own } else { &step.said };
    if said.trim().is_empty() {
        return say(format!("{} has no result yet", step.id));
    }
    let title = format!("Result of {}", clean::plain(&step.id));
    Reply::with(Effect::Push(Box::new(Text::prose(&title, said))))
}

fn retry(flow: &WorkflowView, step: &StepView) -> Reply {
    if flow.state == StepState::Running {
        return say(format!("{} is still running; retry a step when the workflow has ended", flow.id));
    }
    let (id, name) = (flow.id.clone(), step.id.clone());
    let then = move |text: &str| {
        let note = Some(text.to_owned()).filter(|t| !t.is_empty());
        let retry = AgentCommand::WorkflowRetry { id: id.clone(), step: name.clone(), note };
        Ok(vec![Effect::ask(CommandBody::Agent(retry), WORDS)])
    };
    let about = "Runs the step and all that need it again; you can add a note";
    let title = format!("Retry {}", clean::plain(&step.id));
    Reply::with(Effect::Push(Box::new(TextPrompt::new(&title, about, "", Box::new(then)))))
}

fn resume(flow: &WorkflowView) -> Reply {
    match (flow.state, flow.paused) {
        (StepState::Running, true) => {
            send(AgentCommand::WorkflowPause { id: flow.id.clone(), paused: false })
        }
        (StepState::Running, false) => say(format!("{} is running", flow.id)),
        (StepState::Done, _) => say(format!("{} is done; retry runs one of its steps again", flow.id)),
        _ => send(AgentCommand::WorkflowResume { id: flow.id.clone() }),
    }
}

fn pause_all(flow: &WorkflowView) -> Reply {
    if flow.state != StepState::Running {
        return say(format!("{} is not running", flow.id));
    }
    send(AgentCommand::WorkflowPause { id: flow.id.clone(), paused: !flow.paused })
}

fn stop(flow: &WorkflowView) -> Reply {
    if flow.state != StepState::Running {
        return say(format!("{} is not running", flow.id));
    }
    let cancel = AgentCommand::WorkflowCancel { id: flow.id.clone() };
    let text = "The agents of its steps are ended. Finished steps are kept, and you can continue it later.";
    let title = format!("Stop the workflow {}?", clean::plain(&flow.name));
    let then = vec![Effect::send(CommandBody::Agent(cancel))];
    Reply::with(Effect::Push(Box::new(Confirm::new(&title, text, "stop", then))))
}
