//! Actions on the selected agent.

use std::time::Duration;

use tiller_protocol::command::{SessionCommand, TurnCommand};
use tiller_protocol::{
    AgentCommand, AgentId, AgentState, AgentView, CommandBody, ModelRef, Notice, NoticeKind,
};

use super::prompts::{message, raise, retry};
use super::row_target::RowTarget;
use super::{Agents, DIFF, KILLED, totals, tree};
use crate::app::effect::{Effect, Navigation};
use crate::dialog::confirm::Confirm;
use crate::dialog::flow;
use crate::dialog::text_prompt::TextPrompt;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::panel::{Reply, View};

/// The second stop within this time goes further.
const AGAIN: Duration = Duration::from_secs(3);

/// A press so soon after one that ended something is a key that is held, or one too many: it was not meant for what is
/// selected now. Longer than keyboards wait before a held key repeats.
const FRESH: Duration = Duration::from_millis(700);

/// A reply with a notice.
pub(super) fn say(text: impl Into<String>) -> Reply {
    Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, text)))
}

fn crew(command: AgentCommand) -> Effect {
    Effect::send(CommandBody::Agent(command))
}

impl Agents {
    /// The agent of the selected row; for a tool or a process, the agent above it.
    pub(super) fn agent<'m>(&self, model: &'m Model) -> Option<&'m AgentView> {
        let above = self.what.get(..=self.rows.chosen)?;
        let id = above.iter().rev().find_map(|w| match w {
            RowTarget::Agent(id) => Some(id),
            _ => None,
        })?;
        model.row(id)
    }

    /// Performs an action of the panel; `None`: it is none of them.
    pub(super) fn key_act(&mut self, id: &str, model: &Model) -> Option<Reply> {
        if let Some(RowTarget::Flow(flow)) = self.chosen()
            && let Some(reply) = flow::key(model, flow, id)
        {
            return Some(reply);
        }
        Some(match id {
            "list.open" => self.open(model),
            "agents.stop" => self.stop(model),
            "agents.stop_all" => stop_all(model),
            "agents.next" => self.next(model),
            "agents.resume_all" => Reply::with(crew(AgentCommand::ResumeAll)),
            "agents.answer" => self.answer(model),
            "agents.steer" => self.steer(model),
            "agents.model" => self.model(model),
            "agents.diff" => self.diff(model),
            "agents.branch" => self.branch(model),
            "agents.todo" => self.todo(model),
            "agents.pause" | "agents.resume" | "agents.retry" | "agents.raise" | "agents.background" => {
                let Some(a) = self.agent(model) else { return Some(Reply::done()) };
                if a.id.is_main() {
                    return Some(say("Not possible for the main agent"));
                }
                let name = model.name_of(&a.id);
                match id {
                    "agents.pause" => pause(a, &name),
                    "agents.resume" => resume(a, &name),
                    "agents.retry" => retry(a, &name),
                    "agents.raise" => raise(a, &name),
                    _ => background(a, &name),
                }
            }
            _ => return None,
        })
    }

    fn open(&mut self, model: &Model) -> Reply {
        match self.chosen() {
            Some(RowTarget::Finished) => {
                self.finished = Some(!tree::AgentTree::of(model).unfolded(self.finished));
                Reply::done()
            }
            // A program in a terminal is looked at there; Esc shows what is written of it.
            Some(RowTarget::Agent(id)) if crate::panel::terminal::will(model, id) => {
                Reply::with(Effect::Navigate(Navigation::Terminal(id.clone())))
            }
            Some(RowTarget::Agent(id)) if *id != model.shown_agent() => {
                Reply::with(Effect::Navigate(Navigation::Agent(id.clone())))
            }
            Some(RowTarget::Tool(id)) => {
                let to = crate::panel::conversation::GoTo::Call(id.clone());
                let tell = Effect::Tell(View::Conversation, Box::new(to));
                Reply::Done(vec![Effect::Focus(View::Conversation), tell])
            }
            _ => Reply::with(Effect::Focus(View::Conversation)),
        }
    }

    /// The name of the selected row if it can be stopped.
    fn stoppable(&self, what: &RowTarget, model: &Model) -> Option<String> {
        let works = |id: &AgentId| model.row(id).is_some_and(|a| a.state.at_work());
        match what {
            RowTarget::Tool(_) => Some("this tool".into()),
            RowTarget::Process(id) => Some(id.clone()),
            RowTarget::Agent(id) if id.is_main() => model.main_runs().then(|| "the turn".into()),
            RowTarget::Agent(id) if works(id) => Some(model.name_of(id)),
            RowTarget::Agent(_) | RowTarget::Flow(_) | RowTarget::Finished | RowTarget::Heading => None,
        }
    }

    /// Stops the selected row at the second press within three seconds; at the third press with everything that it
    /// started, or by force.
    fn stop(&mut self, model: &Model) -> Reply {
        let Some(what) = self.chosen().cloned() else { return Reply::done() };
        let soon = |t: Duration| model.mono.saturating_sub(t) < AGAIN;
        let held = |t: Duration| model.mono.saturating_sub(t) < FRESH;
        if let Some((_, at, _)) = self.stopped.as_mut().filter(|(_, t, presses)| *presses >= 2 && held(*t)) {
            *at = model.mono;
            return Reply::done();
        }
        let before = self.stopped.as_ref().filter(|(w, t, _)| *w == what && soon(*t)).map_or(0, |s| s.2);
        self.stopped = Some((what.clone(), model.mono, before + 1));
        if before == 0
            && let Some(name) = self.stoppable(&what, model)
        {
            return say(format!("Press the key again to end {name}"));
        }
        let again = before >= 2 || before == 1 && self.stoppable(&what, model).is_none();
        let main = AgentId::main();
        match what {
            RowTarget::Tool(id) => Reply::with(Effect::send(CommandBody::Turn(TurnCommand::StopTool { id }))),
            RowTarget::Process(id) => {
                Reply::with(Effect::ask_of(main, CommandBody::Turn(TurnCommand::StopTool { id }), KILLED))
            }
            RowTarget::Flow(_) | RowTarget::Finished | RowTarget::Heading => Reply::done(),
            RowTarget::Agent(id) if id.is_main() && model.main_runs() => {
                Reply::Done(crate::app::global::stop_main(model, again))
            }
            RowTarget::Agent(id) if id.is_main() => say("Nothing is running"),
            RowTarget::Agent(id) => {
                let below =
                    model.crew.agents.iter().any(|a| a.id != id && a.id.is_below(&id) && a.state.at_work());
                let at_work = model.row(&id).is_some_and(|a| a.state.at_work());
                let name = model.name_of(&id);
                match (again, at_work, below) {
                    (true, _, true) => Reply::Done(vec![
                        crew(AgentCommand::Cancel { id, subtree: true }),
                        Effect::Toast(Notice::new(
                            NoticeKind::Info,
                            format!("{name} and all agents below it were ended"),
                        )),
                    ]),
                    (_, true, _) => {
                        let mut all = vec![crew(AgentCommand::Cancel { id, subtree: false })];
                        if below {
                            let said = format!("{name} was ended; press again to also end what it started");
                            all.push(Effect::Toast(Notice::new(NoticeKind::Info, said)));
                        }
                        Reply::Done(all)
                    }
                    (false, false, true) => {
                        say(format!("{name} has ended; press again to end what it started"))
                    }
                    _ => say(format!("{name} has ended")),
                }
            }
        }
    }

    /// Selects the next agent that waits for the person, and opens its question.
    fn next(&mut self, model: &Model) -> Reply {
        let waiting = |w: &RowTarget| match w {
            RowTarget::Agent(id) => model.row(id).is_some_and(|a| totals::waits(model, a)),
            _ => false,
        };
        let n = self.what.len();
        let next =
            (1..=n).map(|i| (self.rows.chosen + i) % n).find(|at| self.what.get(*at).is_some_and(waiting));
        let Some(at) = next else { return say("No agent is waiting for you") };
        self.rows.chosen = at;
        self.answer(model)
    }

    /// Opens the selected agent's question, else the oldest question of any agent.
    fn answer(&self, model: &Model) -> Reply {
        let of = self.agent(model).and_then(|a| model.questions.open.iter().find(|k| k.agent == a.id));
        match of {
            Some(ask) => Reply::with(Effect::Navigate(Navigation::Question(ask.id))),
            None => Reply::with(Effect::Act(Action("global.answer"))),
        }
    }

    fn steer(&self, model: &Model) -> Reply {
        match self.agent(model) {
            Some(a) if a.id != model.shown_agent() => {
                Reply::with(Effect::Push(Box::new(message(model, a.id.clone()))))
            }
            _ => Reply::with(Effect::Focus(View::Composer)),
        }
    }

    fn model(&self, model: &Model) -> Reply {
        match self.agent(model) {
            Some(a) if a.child.as_ref().is_some_and(|c| c.backend.is_external()) => their_model(model, a),
            Some(a) if a.id != model.shown_agent() => {
                let now = a.model.clone();
                Reply::with(Effect::Push(Box::new(crate::dialog::settings::model::open_for(
                    a.id.clone(),
                    now,
                ))))
            }
            _ => Reply::with(Effect::Act(Action("model.open"))),
        }
    }

    fn diff(&self, model: &Model) -> Reply {
        match self.agent(model) {
            Some(a) if !a.id.is_main() => {
                Reply::with(Effect::ask(CommandBody::Agent(AgentCommand::Diff { id: a.id.clone() }), DIFF))
            }
            _ => Reply::with(Effect::Act(Action("review.open"))),
        }
    }

    /// Goes to the item of the shown plan that the agent works on.
    fn todo(&self, model: &Model) -> Reply {
        let Some(a) = self.agent(model) else { return Reply::done() };
        if model.agent.todo.iter().any(|i| model.assignee(i) == Some(&a.id)) {
            let tell = Effect::Tell(View::Todo, Box::new(a.id.clone()));
            return Reply::Done(vec![Effect::Focus(View::Todo), tell]);
        }
        let name = model.name_of(&a.id);
        say(format!("{name} has no item on this list"))
    }

    /// Branches the agent's conversation before its last message, and shows the agent.
    fn branch(&self, model: &Model) -> Reply {
        let Some(a) = self.agent(model) else { return Reply::done() };
        if a.state.at_work() {
            let name = model.name_of(&a.id);
            return say(format!("{name} is working; end it or wait first"));
        }
        Reply::with(Effect::Navigate(Navigation::AgentFor(a.id.clone(), Action("session.fork"))))
    }
}

fn stop_all(model: &Model) -> Reply {
    let crew_works = model.crew.agents.iter().any(|a| !a.id.is_main() && a.state.at_work());
    if !model.main_runs() && !crew_works {
        return say("Nothing is running");
    }
    let stop = CommandBody::Turn(TurnCommand::Interrupt { hard: true });
    let mut then = vec![Effect::send_to(AgentId::main(), stop)];
    let mut text = "Stops the turn now and kills its tools. What has arrived so far is kept.";
    if crew_works {
        then.insert(0, crew(AgentCommand::CancelAll));
        text = "Stops the turn, ends all agents and kills their tools. What has arrived so far is kept.";
    }
    Reply::with(Effect::Push(Box::new(Confirm::new("Stop everything?", text, "stop everything", then))))
}

pub(crate) fn pause(a: &AgentView, name: &str) -> Reply {
    let id = a.id.clone();
    match a.state {
        AgentState::Paused | AgentState::Interrupted => Reply::with(crew(AgentCommand::Resume { id })),
        state if state.at_work() => Reply::with(crew(AgentCommand::Pause { id })),
        _ => say(format!("{name} has ended")),
    }
}

fn resume(a: &AgentView, name: &str) -> Reply {
    match a.state {
        AgentState::Paused | AgentState::Interrupted | AgentState::Failed | AgentState::Cancelled => {
            Reply::with(crew(AgentCommand::Resume { id: a.id.clone() }))
        }
        AgentState::Done => say(format!("{name} is done; write to it, or retry its task")),
        _ => say(format!("{name} is working")),
    }
}

/// The models of an external program are not known here.
fn their_model(model: &Model, a: &AgentView) -> Reply {
    let (id, now) = (a.id.clone(), a.model.clone());
    let program = now.provider().to_owned();
    let about = format!("The name that {program} uses; applies from its next turn");
    let then = move |text: &str| {
        let model = ModelRef(format!("{program}/{}", text.trim()));
        Ok(vec![Effect::send_to(id.clone(), CommandBody::Session(SessionCommand::SetModel { model }))])
    };
    let title = format!("Model of {}", model.name_of(&a.id));
    let words = TextPrompt::new(&title, &about, now.model(), Box::new(then));
    Reply::with(Effect::Push(Box::new(words)))
}

fn background(a: &AgentView, name: &str) -> Reply {
    let behind = a.child.as_ref().is_some_and(|c| c.background);
    match a.state.at_work() {
        false => say(format!("{name} has ended")),
        true if behind => say(format!("{name} runs in the background; its parent continues")),
        true => Reply::with(crew(AgentCommand::Background { id: a.id.clone() })),
    }
}
