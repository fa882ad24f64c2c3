//! Who works at what: the tree of agents with state, time, tokens and cost, and the tools that run.

use std::collections::HashSet;
use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::{Query, TurnCommand};
use tiller_protocol::event::{ReplyEvent, ToolEvent, TurnEvent};
use tiller_protocol::{AgentId, AgentState, AgentView, CommandBody, Event, EventBody, Notice, NoticeKind};

use super::rows::{Rows, lasting};
use super::{DrawCx, Hint, Panel, Reply, View};
use crate::action::{Action, ActionSpec};
use crate::dialog::confirm::Confirm;
use crate::effect::{Effect, Token};
use crate::header::short;
use crate::ladder::Rung;
use crate::model::conversation::{Body, State, ToolCell};
use crate::model::{Model, Process};
use crate::text::line::{Line, Look, Wrap};
use crate::text::{clean, shorten_end, width};
use crate::theme::Role;
use crate::widget::draw;

/// What it can do besides a list.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only(
        "agents.stop",
        "stop",
        "Stop the chosen agent or tool; again within two seconds: kill",
    ),
    ActionSpec::key_only("agents.stop_all", "stop all", "Stop everything that runs"),
    ActionSpec::key_only("agents.model", "model", "Show and choose the model"),
    ActionSpec::key_only("agents.steer", "steer", "Write to the agent"),
    ActionSpec::key_only("agents.answer", "answer", "Answer the next question"),
];

/// The second stop within this time kills.
const AGAIN: Duration = Duration::from_secs(2);
/// Cells from the end in which running tools are looked for.
const RECENT: usize = 200;

/// What a row stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Agent(AgentId),
    Tool(String),
    /// A background process by its id.
    Process(String),
}

const PROCESSES: Token = Token(1);
const KILLED: Token = Token(2);
/// How often living processes are looked at while the panel is on the screen.
const LOOK: Duration = Duration::from_secs(3);

/// The panel.
#[derive(Default)]
pub struct Agents {
    rows: Rows,
    what: Vec<What>,
    stopped: Option<(What, Duration)>,
    /// When the processes were asked for last, and whether the answer is still out.
    asked: Duration,
    asking: bool,
}

/// Processes that run, and those that ended since they were looked at last.
fn processes(model: &Model) -> impl Iterator<Item = &Process> {
    model.processes.iter().filter(|p| p.lives())
}

fn look(state: AgentState) -> (&'static str, &'static str, Role) {
    match state {
        AgentState::Idle => (" ", "idle", Role::Dim),
        AgentState::Queued => (".", "queued", Role::Dim),
        AgentState::Running => ("~", "working", Role::Running),
        AgentState::Waiting => ("!", "needs you", Role::Waiting),
        AgentState::Paused => ("=", "paused", Role::Waiting),
        AgentState::Done => ("v", "done", Role::Ok),
        AgentState::Failed => ("x", "failed", Role::Error),
        AgentState::Cancelled => ("-", "cancelled", Role::Skipped),
        AgentState::Interrupted => ("-", "interrupted", Role::Skipped),
    }
}

/// Tools of the main agent that run or wait, oldest first.
fn tools(model: &Model) -> Vec<&ToolCell> {
    let mut all: Vec<&ToolCell> = model
        .conversation
        .cells()
        .iter()
        .rev()
        .take(RECENT)
        .filter_map(|c| match &c.body {
            Body::Tool(t) if matches!(t.state, State::Running | State::Waiting) => Some(t.as_ref()),
            _ => None,
        })
        .collect();
    all.reverse();
    all
}

/// Left part, then the parts at the right, the most important first: what does not fit goes.
fn row(indent: usize, name: &str, right: &[(String, Role)], act: &str, columns: usize) -> Line {
    let left = format!("{}{}", " ".repeat(indent), clean::plain(&name.replace('\n', " ")));
    let mut used = width(&left).min(columns / 2) + 1;
    let mut parts: Vec<&(String, Role)> = Vec::new();
    for part in right.iter().filter(|p| !p.0.is_empty()) {
        let need = width(&part.0) + 1;
        if used + need <= columns {
            used += need;
            parts.push(part);
        }
    }
    let tail: usize = parts.iter().map(|p| width(&p.0) + 1).sum();
    let room = columns.saturating_sub(tail);
    let mut line = Line::new(Wrap::Cut);
    line.push_strict(
        &shorten_end(&left, room.saturating_sub(1), crate::widget::draw::ascii()),
        Look::of(Role::Text),
    );
    // What it does now stands in the middle, when there is room for it.
    let free = room.saturating_sub(width(line.text()) + 3);
    if !act.is_empty() && free >= 8 {
        let act = shorten_end(&clean::plain(&act.replace('\n', " ")), free, crate::widget::draw::ascii());
        line.push_strict(&format!("  {act}"), Look::of(Role::Dim));
    }
    line.pad_to(room, Look::of(Role::Text));
    for (text, role) in parts {
        line.push_strict(&format!(" {text}"), Look::of(*role));
    }
    line
}

impl Agents {
    /// The rows of the tree at a width.
    fn lines(model: &Model, columns: u16) -> (Vec<Line>, Vec<What>) {
        let columns = usize::from(columns);
        let (mut lines, mut what) = (Vec::new(), Vec::new());
        let ids: HashSet<&AgentId> = model.agents.iter().map(|a| &a.id).collect();
        let root = |a: &&AgentView| a.parent.as_ref().is_none_or(|p| !ids.contains(p));
        // Depth first; a bad parent cannot make it go round for ever.
        let mut stack: Vec<(&AgentView, usize)> = Vec::new();
        let mut seen: HashSet<&AgentId> = HashSet::new();
        let children = |of: Option<&AgentId>| -> Vec<&AgentView> {
            let mut list: Vec<&AgentView> = match of {
                None => model.agents.iter().filter(root).collect(),
                Some(id) => model.agents.iter().filter(|a| a.parent.as_ref() == Some(id)).collect(),
            };
            list.sort_by_key(|a| a.state != AgentState::Waiting);
            list
        };
        stack.extend(children(None).into_iter().rev().map(|a| (a, 0)));
        while let Some((a, depth)) = stack.pop() {
            if !seen.insert(&a.id) {
                continue;
            }
            lines.push(agent_row(model, a, depth, columns));
            what.push(What::Agent(a.id.clone()));
            if depth == 0 && a.id == AgentId::main() {
                for t in tools(model) {
                    lines.push(tool_row(model, t, columns));
                    what.push(What::Tool(t.call_id.clone()));
                }
            }
            if depth == 0 && a.id == AgentId::main() {
                for p in processes(model) {
                    lines.push(process_row(p, columns));
                    what.push(What::Process(p.id.clone()));
                }
            }
            stack.extend(children(Some(&a.id)).into_iter().rev().map(|c| (c, depth + 1)));
        }
        (lines, what)
    }

    fn chosen(&self) -> Option<&What> {
        self.what.get(self.rows.chosen)
    }

    fn stop(&mut self, model: &Model) -> Reply {
        let Some(what) = self.chosen().cloned() else { return Reply::done() };
        let again =
            self.stopped.as_ref().is_some_and(|(w, t)| *w == what && model.mono.saturating_sub(*t) < AGAIN);
        self.stopped = Some((what.clone(), model.mono));
        let say = |text: &str| Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, text)));
        match what {
            What::Tool(id) => Reply::with(Effect::Send(CommandBody::Turn(TurnCommand::StopTool { id }))),
            What::Process(id) => {
                Reply::with(Effect::Ask(CommandBody::Turn(TurnCommand::StopTool { id }), KILLED))
            }
            What::Agent(id) if id != AgentId::main() => {
                Reply::with(Effect::Send(CommandBody::Turn(TurnCommand::StopTool { id: id.0 })))
            }
            What::Agent(_) if model.running => {
                Reply::with(Effect::Send(CommandBody::Turn(TurnCommand::Interrupt { hard: again })))
            }
            What::Agent(_) => say("nothing runs"),
        }
    }

    fn look(&mut self, model: &Model) -> Effect {
        self.asked = model.mono;
        self.asking = true;
        Effect::Ask(CommandBody::Query(Query::Processes), PROCESSES)
    }

    fn stop_all(model: &Model) -> Reply {
        let stop = Effect::Send(CommandBody::Turn(TurnCommand::Interrupt { hard: true }));
        if !model.running {
            return Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, "nothing runs")));
        }
        let text = "The turn ends now and its tools are killed. What has arrived is kept.";
        let ask = Confirm::new("stop everything?", text, "stop everything", vec![stop]);
        Reply::with(Effect::Push(Box::new(ask)))
    }
}

fn agent_row(model: &Model, a: &AgentView, depth: usize, columns: usize) -> Line {
    let (glyph, word, role) = look(a.state);
    let since = a.since.map_or(String::new(), |t| format!(" {}", lasting(model.now.millis() - t.millis())));
    let tokens = a.usage.context().saturating_add(a.usage.output);
    let share = match a.window {
        Some(w) if w > 0 => format!("{}%", (a.context.saturating_mul(100) / w).min(100)),
        _ => String::new(),
    };
    let demo = a.model.starts_with("demo/");
    let right = [
        (format!("{glyph} {word}{since}"), role),
        (a.cost.filter(|_| !demo).map_or(String::new(), |c| crate::header::money(c.usd())), Role::Text),
        (if tokens > 0 { short(tokens) } else { String::new() }, Role::Dim),
        (share, Role::Dim),
    ];
    let name = if a.label.is_empty() { a.id.0.as_str() } else { a.label.as_str() };
    row(depth * 2, name, &right, &a.act, columns)
}

fn process_row(p: &Process, columns: usize) -> Line {
    let seconds =
        p.state.strip_prefix("running for ").and_then(|s| s.strip_suffix(" s")?.parse::<i64>().ok());
    let state =
        seconds.map_or_else(|| p.state.clone(), |s| format!("runs {}", lasting(s.saturating_mul(1000))));
    let state = format!("~ {state}");
    let said = if p.last.is_empty() { p.command.clone() } else { format!("{}: {}", p.command, p.last) };
    row(2, &p.id, &[(state, Role::Running)], &said, columns)
}

fn tool_row(model: &Model, t: &ToolCell, columns: usize) -> Line {
    let since = t.started.map_or(String::new(), |s| format!(" {}", lasting(model.now.millis() - s.millis())));
    let (text, role) = match (t.asking, t.state) {
        (true, _) => ("! needs you".to_owned(), Role::Waiting),
        (_, State::Running) => (format!("~ running{since}"), Role::Running),
        _ => (". waits".to_owned(), Role::Dim),
    };
    // After a restart only name and arguments are known.
    let (verb, target) = match t.verb.as_str() {
        "" => crate::cell::describe(&t.name, &t.arguments),
        verb => (verb.to_owned(), t.target.clone()),
    };
    row(2, &verb, &[(text, role)], &target, columns)
}

impl Panel for Agents {
    fn scope(&self) -> &'static str {
        if self.rows.typing() { "input" } else { "agents" }
    }

    fn title(&self, model: &Model) -> String {
        let live = |s| matches!(s, AgentState::Running | AgentState::Waiting | AgentState::Queued);
        let n = model.agents.iter().filter(|a| live(a.state)).count();
        let waits = model.agents.iter().filter(|a| a.state == AgentState::Waiting).count();
        let mut title = "agents".to_owned();
        if n > 0 {
            title.push_str(&format!(" {n} live"));
        }
        let background = processes(model).count();
        if background > 0 {
            title.push_str(&format!(" {background} bg"));
        }
        if waits > 0 {
            title.push_str(&format!(" !{waits}"));
        }
        title
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn empty(&self, model: &Model) -> bool {
        model.agents.is_empty()
    }

    fn rows(&self, width: u16, model: &Model) -> Option<u16> {
        Some(u16::try_from(Self::lines(model, width).0.len()).unwrap_or(u16::MAX))
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        match action.0 {
            "list.open" => {
                let mut all = vec![Effect::Focus(View::Conversation)];
                if let Some(What::Tool(id)) = self.chosen() {
                    all.push(Effect::Tell(
                        View::Conversation,
                        Box::new(super::conversation::GoTo::Call(id.clone())),
                    ));
                }
                return Reply::Done(all);
            }
            "agents.stop" => return self.stop(model),
            "agents.stop_all" => return Self::stop_all(model),
            "agents.steer" => return Reply::with(Effect::Focus(View::Composer)),
            "agents.model" => return Reply::with(Effect::Act(Action("model.open"))),
            "agents.answer" => return Reply::with(Effect::Act(Action("global.answer"))),
            "list.back" => return Reply::with(Effect::Focus(View::Composer)),
            id if self.rows.act(id) => {}
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    /// Processes come and go with the tools that start and end them.
    fn event(&mut self, event: &Event, model: &Model) -> Reply {
        let stir = match &event.body {
            EventBody::Tool(ToolEvent::ToolFinished { name, .. }) => name == "terminal" || name == "process",
            EventBody::Turn(TurnEvent::SessionStarted { .. }) => true,
            EventBody::Turn(TurnEvent::TurnFinished { .. }) => processes(model).next().is_some(),
            _ => false,
        };
        if stir { Reply::with(self.look(model)) } else { Reply::Ignored }
    }

    fn reply(&mut self, token: Token, event: &Event, model: &Model) -> Reply {
        if token == PROCESSES {
            self.asking = false;
            return Reply::done();
        }
        let said = match &event.body {
            EventBody::Reply(r) => match r.as_ref() {
                ReplyEvent::DoneReply { said } => clean::plain(said).into_owned(),
                _ => return Reply::with(self.look(model)),
            },
            _ => return Reply::Ignored,
        };
        Reply::Done(vec![Effect::Toast(Notice::new(NoticeKind::Info, said)), self.look(model)])
    }

    fn tick(&mut self, model: &Model) -> Vec<Effect> {
        let due = !self.asking && model.mono.saturating_sub(self.asked) >= LOOK;
        if due && processes(model).next().is_some() { vec![self.look(model)] } else { Vec::new() }
    }

    fn rung(&self, _model: &Model) -> Option<Rung> {
        self.rows.rung()
    }

    fn escape(&mut self, _rung: Rung, _model: &Model) -> Reply {
        self.rows.end_find();
        Reply::done()
    }

    fn key(&mut self, key: &KeyEvent, _model: &Model) -> Reply {
        if self.rows.key(key) { Reply::done() } else { Reply::Ignored }
    }

    /// The agent that another layer wants to be looked at.
    fn told(&mut self, what: Box<dyn std::any::Any>, model: &Model) -> Reply {
        let Ok(id) = what.downcast::<AgentId>() else { return Reply::Ignored };
        self.what = Self::lines(model, 40).1;
        if let Some(at) = self.what.iter().position(|w| *w == What::Agent((*id).clone())) {
            self.rows.chosen = at;
        }
        Reply::done()
    }

    fn mouse(&mut self, event: &MouseEvent, area: Rect, model: &Model) -> Reply {
        if self.rows.mouse(event, area) { self.act(Action("list.open"), model) } else { Reply::done() }
    }

    fn hints(&self, model: &Model) -> Vec<Hint> {
        if let Some(hints) = self.rows.find_hints() {
            return hints;
        }
        let mut all =
            vec![Hint::as_("list.open", "look inside"), Hint::of("agents.stop"), Hint::of("agents.steer")];
        if !model.asks.is_empty() {
            all.push(Hint::of("agents.answer"));
        }
        all.extend([Hint::of("agents.stop_all"), Hint::of("agents.model")]);
        all
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) {
        let (lines, what) = Self::lines(cx.model, area.width);
        // The choice stays with its agent or tool, also when rows come and go above.
        if let Some(at) = self.chosen().and_then(|c| what.iter().position(|w| w == c)) {
            self.rows.chosen = at;
        }
        self.what = what;
        self.rows.set(lines, area);
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        if cx.model.agents.is_empty() {
            draw::text(buf, area, "no agent yet", cx.theme.style(Role::Dim));
        }
        self.rows.draw(cx, area, buf);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        self.rows.cursor(area)
    }

    fn wake(&self, cx: &DrawCx<'_>) -> Option<Duration> {
        let second = cx.model.agents.iter().any(|a| a.since.is_some()).then_some(Duration::from_secs(1));
        second.or_else(|| processes(cx.model).next().map(|_| LOOK))
    }
}

#[cfg(test)]
#[path = "agents_tests.rs"]
mod tests;
