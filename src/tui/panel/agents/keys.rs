//! Actions on the selected agent.

use std::time::Duration;

use tiller_protocol::command::{SessionCommand, TurnCommand};
use tiller_protocol::{
    AgentCommand, AgentId, AgentLimits, AgentState, AgentView, CommandBody, Cost, Message, ModelRef, Notice,
    NoticeKind, SendMode,
};

use super::row_target::RowTarget;
use super::{Agents, DIFF, KILLED, totals};
use crate::app::effect::{Effect, Navigation, Token};
use crate::dialog::confirm::Confirm;
use crate::dialog::flow;
use crate::dialog::text_prompt::TextPrompt;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::panel::{Reply, View};

/// The second stop within this time goes further.
const AGAIN: Duration = Duration::from_secs(3);

/// Receives the answers of the message box.
const WORDS: Token = Token(1);

fn say(text: impl Into<String>) -> Reply {
    Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, text)))
}

fn crew(command: AgentCommand) -> Effect {
    Effect::send(CommandBody::Agent(command))
}

/// The dialog for a message to an agent.
pub(crate) fn message(model: &Model, id: AgentId) -> TextPrompt {
    let title = format!("Message to {}", model.name_of(&id));
    let at_work = model.row(&id).is_some_and(|a| a.state.at_work());
    let child = model.row(&id).and_then(|a| a.child.as_ref());
    let about = match (at_work, child) {
        (false, _) => "it continues with this message",
        (true, Some(c)) if c.pane.is_some() => "typed into the program as soon as it is idle",
        (true, Some(c)) if c.backend.is_external() => "delivered when its turn ends",
        (true, _) => "delivered at its next step",
    };
    let then = move |text: &str| {
        if text.is_empty() {
            return Err("Write the message first".into());
        }
        let submit = TurnCommand::Submit { message: Message::text(text), mode: SendMode::Steer };
        Ok(vec![Effect::ask_of(id.clone(), CommandBody::Turn(submit), WORDS)])
    };
    TextPrompt::new(&title, about, "", Box::new(then))
}

/// The dialog that starts an agent by hand.
pub(crate) fn spawn() -> TextPrompt {
    let about = "the task; start with @NAME for a kind of agent (@coder, @explorer, ...)";
    let then = |text: &str| Ok(vec![Effect::ask(CommandBody::Agent(spawned(text)?), WORDS)]);
    TextPrompt::new("Start an agent", about, "", Box::new(then))
}

/// `@coder GOAL`, or only the goal.
///
/// # Errors
/// When no goal is there.
pub(crate) fn spawned(text: &str) -> Result<AgentCommand, String> {
    let text = text.trim();
    let (role, goal) = match text.strip_prefix('@') {
        Some(rest) => {
            let (role, goal) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            (Some(role.to_owned()).filter(|r| !r.is_empty()), goal.trim())
        }
        None => (None, text),
    };
    if goal.is_empty() {
        return Err("Write the task: @NAME GOAL, or only the goal".into());
    }
    Ok(AgentCommand::Spawn { goal: goal.to_owned(), role, model: None, cli: None, isolated: false })
}

/// As [`limits_of`] reads them.
fn limits_text(l: &AgentLimits) -> String {
    let part = |word: &str, n: Option<String>| n.map(|n| format!("{word} {n}"));
    let all = [
        part("turns", l.turns.map(|n| n.to_string())),
        part("seconds", l.seconds.map(|n| n.to_string())),
        part("tokens", l.tokens.map(|n| n.to_string())),
        part("cost", l.cost.map(|c| format!("{:.2}", c.usd()))),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// `turns 40 cost 0.50`. What is not named stays as it is.
fn limits_of(text: &str) -> Result<AgentLimits, String> {
    let mut limits = AgentLimits::default();
    let mut words = text.split([' ', '\n', '\t', ',', '=', ':']).filter(|w| !w.is_empty());
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("A number is missing after '{word}'"))?;
        let whole = || {
            let n = value.parse::<u64>().ok().filter(|n| *n > 0);
            n.ok_or_else(|| format!("'{value}' is not a whole number of at least 1"))
        };
        match word {
            "turns" => {
                let n = u32::try_from(whole()?).map_err(|_| format!("'{value}' is too large"))?;
                limits.turns = Some(n);
            }
            "seconds" => limits.seconds = Some(whole()?),
            "tokens" => limits.tokens = Some(whole()?),
            "cost" => {
                let usd = value.trim_start_matches('$').parse::<f64>().ok();
                let usd = usd.filter(|n| n.is_finite() && *n >= 0.0);
                limits.cost = Some(Cost::from_usd(
                    usd.ok_or_else(|| format!("'{value}' is not an amount in dollars"))?,
                ));
            }
            other => return Err(format!("Unknown limit '{other}'; use turns, seconds, tokens or cost")),
        }
    }
    if limits.is_empty() { Err("Enter a limit and a number: turns 40, cost 0.50".into()) } else { Ok(limits) }
}

impl Agents {
    /// The agent of the selected row; for a tool or a process, the agent above it.
    fn agent<'m>(&self, model: &'m Model) -> Option<&'m AgentView> {
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
            Some(RowTarget::Fold(of)) => {
                let of = of.clone();
                if !self.open.remove(&of) {
                    self.open.insert(of);
                }
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
            RowTarget::Agent(_) | RowTarget::Flow(_) | RowTarget::Fold(_) => None,
        }
    }

    /// Stops the selected row at the second press within three seconds; at the third press with everything that it
    /// started, or by force.
    fn stop(&mut self, model: &Model) -> Reply {
        let Some(what) = self.chosen().cloned() else { return Reply::done() };
        let soon = |t: Duration| model.mono.saturating_sub(t) < AGAIN;
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
            RowTarget::Flow(_) | RowTarget::Fold(_) => Reply::done(),
            RowTarget::Agent(id) if id.is_main() && model.main_runs() => {
                let stop = CommandBody::Turn(TurnCommand::Interrupt { hard: again });
                Reply::with(Effect::send_to(main, stop))
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

fn retry(a: &AgentView, name: &str) -> Reply {
    if !totals::ended(a.state) {
        return say(format!("{name} is working; end it first, or write to it"));
    }
    let id = a.id.clone();
    let then = move |text: &str| {
        let note = Some(text.to_owned()).filter(|t| !t.is_empty());
        Ok(vec![Effect::ask(CommandBody::Agent(AgentCommand::Retry { id: id.clone(), note }), WORDS)])
    };
    let about = "runs the same task as a new agent; add a note if you like";
    Reply::with(Effect::Push(Box::new(TextPrompt::new(&format!("Retry {name}"), about, "", Box::new(then)))))
}

/// The models of an external program are not known here.
fn their_model(model: &Model, a: &AgentView) -> Reply {
    let (id, now) = (a.id.clone(), a.model.clone());
    let program = now.provider().to_owned();
    let about = format!("the name that {program} uses; applies from its next turn");
    let then = move |text: &str| {
        let model = ModelRef(format!("{program}/{}", text.trim()));
        Ok(vec![Effect::send_to(id.clone(), CommandBody::Session(SessionCommand::SetModel { model }))])
    };
    let title = format!("Model of {}", model.name_of(&a.id));
    let words = TextPrompt::new(&title, &about, now.model(), Box::new(then));
    Reply::with(Effect::Push(Box::new(words)))
}

pub(crate) fn raise(a: &AgentView, name: &str) -> Reply {
    let limits = a.child.as_ref().map(|c| c.limits).unwrap_or_default();
    let id = a.id.clone();
    let then = move |text: &str| {
        let limits = limits_of(text)?;
        Ok(vec![Effect::ask(CommandBody::Agent(AgentCommand::Raise { id: id.clone(), limits }), WORDS)])
    };
    let about = "turns, seconds, tokens, cost in dollars; omitted limits stay as they are";
    let words = TextPrompt::new(&format!("Limits of {name}"), about, &limits_text(&limits), Box::new(then));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_are_written() {
        let all = AgentLimits {
            turns: Some(40),
            seconds: Some(900),
            tokens: Some(400_000),
            cost: Some(Cost::from_usd(0.5)),
        };
        assert_eq!(limits_of(&limits_text(&all)), Ok(all));
        assert_eq!(
            limits_of("cost=$2, turns: 3").map(|l| (l.cost, l.turns)),
            Ok((Some(Cost::from_usd(2.0)), Some(3)))
        );
        for (text, why) in [
            ("", "Enter a limit and a number: turns 40, cost 0.50"),
            ("turns", "A number is missing after 'turns'"),
            ("turns 0", "'0' is not a whole number of at least 1"),
            ("turns 99999999999", "'99999999999' is too large"),
            ("cost -1", "'-1' is not an amount in dollars"),
            ("cost NaN", "'NaN' is not an amount in dollars"),
            ("depth 3", "Unknown limit 'depth'; use turns, seconds, tokens or cost"),
        ] {
            assert_eq!(limits_of(text), Err(why.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_kind_of_agent_stands_before_the_goal() {
        let of = |text: &str| match spawned(text) {
            Ok(AgentCommand::Spawn { goal, role, .. }) => Ok((role, goal)),
            Ok(other) => panic!("{other:?}"),
            Err(why) => Err(why),
        };
        assert_eq!(of("@coder mend it\nall"), Ok((Some("coder".into()), "mend it\nall".into())));
        assert_eq!(of("mend @it"), Ok((None, "mend @it".into())));
        assert!(of("@coder ").is_err() && of("  ").is_err());
    }
}
