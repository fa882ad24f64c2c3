//! The agents in groups (needs you, running, waiting, finished), with state, time, tokens and cost, the tools that run, and
//! below them the selected agent with its limits.

mod detail;
mod group;
mod keys;
mod prompts;
mod row;
mod row_target;
mod totals;
mod tree;

use std::time::Duration;

use crossterm::event::MouseEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::Query;
use tiller_protocol::event::{ReplyEvent, ToolEvent, TurnEvent};
use tiller_protocol::{AgentId, AgentState, CommandBody, Event, EventBody, Notice, NoticeKind};

use self::detail::AgentDetail;
pub(crate) use self::detail::agent_lines;
use self::group::AgentGroup;
pub(crate) use self::keys::pause;
pub(crate) use self::prompts::{message, raise, spawn, spawned};
pub(crate) use self::row::{look, nearest_limit};
use self::row_target::RowTarget;
use self::totals::{ended, waits};
use self::tree::{AgentTree, ListStyle, processes};
use super::empty_view::explain;
use super::headings;
use super::{
    Attention, DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply, View,
};
use crate::app::effect::{Effect, Token};
use crate::dialog::reader::text::Text;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::{Model, Slice};
use crate::registry::PanelEntry;
use crate::text::line::Line;
use crate::text::sheet::Sheet;
use crate::text::{clean, paint};
use crate::widget::activity_table::WIDE;
use crate::widget::line_list::LineList;

/// Registers the panel.
pub(crate) const PANEL: PanelEntry = PanelEntry {
    view: View::Agents,
    make: |_| Box::new(Agents::default()),
    reads: &[
        Slice::Session,
        Slice::Outline,
        Slice::Todo,
        Slice::Turn,
        Slice::Home,
        Slice::Crew,
        Slice::Questions,
        Slice::Workspace,
        Slice::Engine,
    ],
    groups: &[("Agents", ACTIONS)],
    scopes: &[Scope::new("agents", Some("list"), "Agents", false).keys(KEYS)],
};

/// Its actions, besides those of a list.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only(
        "agents.stop",
        "end",
        "Press twice to end the selected agent, tool or process; a third time to include what \
            it started, or kill it",
    ),
    ActionSpec::key_only("agents.stop_all", "stop all", "Stop everything that is running"),
    ActionSpec::key_only(
        "agents.steer",
        "message",
        "Write to the selected agent; delivered at its next step",
    ),
    ActionSpec::key_only(
        "agents.answer",
        "answer",
        "Answer the selected agent's question, else the next one",
    ),
    ActionSpec::key_only(
        "agents.pause",
        "pause",
        "Pause the selected agent at its next safe point, or continue it",
    ),
    ActionSpec::key_only(
        "agents.resume",
        "continue",
        "Continue the selected agent where it was stopped or failed",
    ),
    ActionSpec::new("agents.resume_all", "continue all", "Continue all interrupted agents")
        .menu(Menu::Agents)
        .ending(),
    ActionSpec::key_only("agents.retry", "retry", "Retry the selected agent's task, with a note"),
    ActionSpec::key_only("agents.raise", "limits", "Change the limits of the selected agent"),
    ActionSpec::key_only("agents.branch", "branch", "Branch before the selected agent's last message"),
    ActionSpec::key_only("agents.model", "model", "Choose the model of the selected agent"),
    ActionSpec::key_only("agents.diff", "diff", "Show what the selected agent changed"),
    ActionSpec::key_only(
        "agents.background",
        "background",
        "Move the selected agent to the background; its parent continues",
    ),
    ActionSpec::key_only("agents.todo", "go to item", "Go to the todo item of the selected agent"),
    ActionSpec::key_only("agents.next", "next waiting", "Go to the next agent that needs you"),
];

/// Default keys of the section `agents`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("k", "agents.stop"),
    ("K", "agents.stop_all"),
    ("a", "agents.answer"),
    ("s", "agents.steer"),
    ("m", "agents.steer"),
    ("p", "agents.pause"),
    ("r", "agents.retry"),
    ("l", "agents.raise"),
    ("b", "agents.branch"),
    ("M", "agents.model"),
    ("d", "agents.diff"),
    ("B", "agents.background"),
    ("u", "agents.resume"),
    ("U", "agents.resume_all"),
    ("n", "list.next agents.next"),
    ("t", "agents.todo"),
    ("S", "spawn.open"),
    ("w", "workflows.open"),
];

const PROCESSES: Token = Token(1);
const KILLED: Token = Token(2);
const DIFF: Token = Token(3);
/// Rows of the selected agent's detail that a long list leaves.
const DETAIL: u16 = 6;
/// How often the list of processes is requested while the panel is on the screen.
const LOOK: Duration = Duration::from_secs(3);

/// The panel.
#[derive(Default)]
pub struct Agents {
    rows: LineList,
    what: Vec<RowTarget>,
    /// The row for which the stop key was pressed last, when, and how often.
    stopped: Option<(RowTarget, Duration, u32)>,
    /// The person's choice whether the agents that have ended are shown; `None`: they are while no other is there.
    finished: Option<bool>,
    /// The names of the columns, where there is room.
    head: Option<Line>,
    /// The totals below the list.
    sum: Option<Line>,
    /// Rows that the list would fill.
    needed: u16,
    /// The selected agent, where there is room.
    detail: Option<AgentDetail>,
    /// When the processes were requested last, and whether the answer is outstanding.
    asked: Duration,
    asking: bool,
}

/// Where the parts of the panel are, from the top.
struct PanelParts {
    head: Rect,
    list: Rect,
    sum: Rect,
    detail: Rect,
}

impl Agents {
    /// The agent of the selected row.
    pub(crate) fn selected(&self, model: &Model) -> Option<AgentId> {
        self.agent(model).map(|a| a.id.clone())
    }

    fn chosen(&self) -> Option<&RowTarget> {
        self.what.get(self.rows.chosen)
    }

    /// Where the parts of the panel are.
    fn parts(&self, area: Rect) -> PanelParts {
        let row = |there: bool, left: u16| u16::from(there).min(left);
        let head = row(self.head.is_some(), area.height);
        let sum = row(self.sum.is_some(), area.height - head);
        let left = area.height - head - sum;
        // The list has as many rows as it needs, but for a few that the detail keeps.
        let spare = left.saturating_sub(self.needed).max(DETAIL);
        let detail = self.detail.as_ref().map_or(0, AgentDetail::height).min(spare).min(left / 2);
        let list = Rect { y: area.y + head, height: left - detail, ..area };
        let sum = Rect { y: list.bottom(), height: sum, ..area };
        PanelParts {
            head: Rect { height: head, ..area },
            list,
            sum,
            detail: Rect { y: sum.bottom(), height: detail, ..area },
        }
    }

    /// The rows of the agents.
    fn list(&self, area: Rect) -> Rect {
        self.parts(area).list
    }

    /// Moves on from the name of a group, in the direction of the last step.
    fn leave_heading(&mut self, before: usize) {
        let is_row = |at: usize| self.what.get(at).is_some_and(|w| *w != RowTarget::Heading);
        self.rows.chosen = headings::past(self.rows.chosen, before, self.what.len(), is_row);
    }

    /// Takes what the rows stand for now. The selection stays with its agent or tool when rows above are added or removed.
    fn take(&mut self, what: Vec<RowTarget>, chosen: Option<RowTarget>) {
        if let Some(chosen) = chosen.filter(|c| *c != RowTarget::Heading) {
            let at = |target: &RowTarget| what.iter().position(|w| w == target);
            // The keys of an agent that has ended, and is folded, must not do something to another.
            self.rows.chosen = at(&chosen).or_else(|| at(&RowTarget::Finished)).unwrap_or(self.rows.chosen);
        }
        self.what = what;
        self.leave_heading(0);
    }

    /// How the list is drawn, with the key that answers.
    fn style<'k>(&self, answer: &'k str) -> ListStyle<'k> {
        ListStyle { finished: self.finished, airy: false, answer }
    }

    fn look(&mut self, model: &Model) -> Effect {
        self.asked = model.mono;
        self.asking = true;
        Effect::ask_of(AgentId::main(), CommandBody::Query(Query::Processes), PROCESSES)
    }
}

impl Panel for Agents {
    fn status(&self, model: &Model) -> PanelStatus {
        PanelStatus::new(if self.rows.typing() { "input" } else { "agents" })
            .escape(self.rows.escape_step())
            .empty(model.crew.agents.is_empty())
            .attention(if model.crew.agents.iter().any(|a| waits(model, a)) {
                Attention::Waiting
            } else {
                Attention::None
            })
    }

    fn title(&self, model: &Model) -> String {
        // How many need the person or run is said by the groups.
        let agents = &model.crew.agents;
        let of = |state: AgentState| agents.iter().filter(|a| a.state == state).count();
        match (agents.iter().filter(|a| a.state.at_work()).count(), of(AgentState::Interrupted)) {
            (0, 0) => "Agents".to_owned(),
            // After a restart nothing else says that work was cut off.
            (0, n) => format!("Agents {n} interrupted"),
            (n, _) => format!("Agents {n} at work"),
        }
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, width: u16, model: &Model) -> Placement {
        let list = AgentTree::of(model).list(model, width, self.style(""));
        let more = u16::from(list.head.is_some()) + u16::from(list.sum.is_some());
        Placement::Rows(LineList::height(list.lines, width).saturating_add(more))
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        if let Some(reply) = self.key_act(action.0, model) {
            return reply;
        }
        let before = self.rows.chosen;
        match action.0 {
            "list.back" => return Reply::with(Effect::Focus(View::Composer)),
            id if self.rows.act(id) => self.leave_heading(before),
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => {
                if self.rows.key(key) {
                    Reply::done()
                } else {
                    Reply::Ignored
                }
            }
            PanelInput::Mouse(event, area) => self.on_mouse(event, area, model),
            PanelInput::Escape(_) => self.on_escape(),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Tick => self.on_tick(model),
            PanelEvent::Engine(event) => self.on_event(event, model),
            PanelEvent::Answer(token, event) => self.on_answer(token, event, model),
            PanelEvent::Message(what) => self.on_message(what, model),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, model: &Model) -> Vec<Hint> {
        if let Some(hints) = self.rows.find_hints() {
            return hints;
        }
        if model.crew.agents.is_empty() {
            return Vec::new();
        }
        let mut all = vec![Hint::as_("list.open", "open"), Hint::of("agents.stop")];
        let chosen = match self.chosen() {
            Some(RowTarget::Agent(id)) => model.row(id),
            Some(RowTarget::Flow(_)) => {
                return vec![
                    Hint::as_("list.open", "view"),
                    Hint::of("agents.stop"),
                    Hint::of("agents.pause"),
                    Hint::of("agents.resume"),
                    Hint::of("agents.stop_all"),
                ];
            }
            _ => None,
        };
        if !model.questions.open.is_empty() {
            all.push(Hint::of("agents.answer"));
        }
        all.push(Hint::of("agents.steer"));
        match chosen.filter(|a| !a.id.is_main()) {
            Some(a) if a.state == AgentState::Interrupted => {
                all.extend([Hint::of("agents.resume"), Hint::of("agents.retry"), Hint::of("agents.diff")]);
            }
            Some(a) if ended(a.state) && a.state != AgentState::Done => {
                let more = ["agents.resume", "agents.retry", "agents.raise", "agents.diff", "agents.branch"];
                all.extend(more.map(Hint::of));
            }
            Some(a) if ended(a.state) => {
                all.extend([Hint::of("agents.retry"), Hint::of("agents.diff"), Hint::of("agents.branch")]);
            }
            Some(a) => {
                let paused = a.state == AgentState::Paused;
                let pause = if paused { "continue" } else { "pause" };
                all.extend([Hint::as_("agents.pause", pause), Hint::of("agents.raise")]);
                // An agent whose parent continued without it cannot be waited for again: that call has its result.
                let behind = a.child.as_ref().is_none_or(|c| c.background);
                all.extend((!behind).then_some(Hint::of("agents.background")));
                all.push(Hint::of("agents.diff"));
            }
            None => {}
        }
        all.extend([Hint::of("agents.stop_all"), Hint::of("agents.model")]);
        all
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        let answer = cx.key(if cx.focus { "agents.answer" } else { "global.answer" });
        let tree = AgentTree::of(cx.model);
        let mut list = tree.list(cx.model, area.width, self.style(&answer));
        // The selected agent has ended: a second press of a key still concerns it, so it stays in sight.
        if let Some(target @ RowTarget::Agent(_)) = self.chosen()
            && !list.what.contains(target)
            && list.what.contains(&RowTarget::Finished)
        {
            self.finished = Some(true);
            list = tree.list(cx.model, area.width, self.style(&answer));
        }
        let rows = LineList::height(list.lines.clone(), area.width);
        self.needed = rows;
        self.head = list.head.filter(|_| area.height > rows.min(3));
        self.sum = list.sum.filter(|_| area.height > 6);
        self.detail = None;
        let chosen = self.chosen().cloned();
        self.take(list.what.clone(), chosen);
        let selected = match self.chosen() {
            Some(RowTarget::Agent(id)) => cx.model.row(id),
            _ => None,
        };
        let ample = area.width >= WIDE as u16 || area.height >= rows + 8;
        if let Some(a) = selected.filter(|_| cx.focus && ample && area.height >= 12) {
            self.detail = Some(AgentDetail::of(cx.model, a, &answer, area.width));
        }
        if list.groups > 0 && self.list(area).height >= rows.saturating_add(list.groups) {
            let chosen = self.chosen().cloned();
            list = tree.list(cx.model, area.width, ListStyle { airy: true, ..self.style(&answer) });
            self.take(list.what.clone(), chosen);
        }
        self.rows.set(list.lines, self.list(area));
        Refresh::after(self.wake(cx))
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let parts = self.parts(area);
        let crew = &cx.model.crew;
        if crew.agents.iter().all(|a| a.id.is_main()) && crew.workflows.is_empty() {
            // Below the main agent, after a blank row.
            let used = (self.needed + u16::from(self.needed > 0)).min(parts.list.height);
            let free = Rect { y: parts.list.y + used, height: parts.list.height - used, ..parts.list };
            explain(cx, free, "Agents appear here; /spawn GOAL starts one", buf);
        }
        for (line, place) in [(&self.head, parts.head), (&self.sum, parts.sum)] {
            if let Some(line) = line.as_ref().filter(|_| place.height > 0) {
                let sheet = Sheet::new(vec![line.clone()], usize::from(area.width).max(1));
                if let (Some(line), Some(row)) = (sheet.lines.first(), sheet.rows.first()) {
                    let place = paint::PaintTarget { x: place.x, y: place.y, columns: place.width };
                    paint::row(buf, place, line, *row, cx.theme, &[]);
                }
            }
        }
        self.rows.draw(cx, parts.list, buf);
        if let Some(detail) = &self.detail {
            detail.draw(cx, parts.detail, buf);
        }
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        self.rows.cursor(self.list(area))
    }
}

impl Agents {
    fn on_mouse(&mut self, event: &MouseEvent, area: Rect, model: &Model) -> Reply {
        if self.rows.mouse(event, self.list(area)) {
            self.act(Action("list.open"), model)
        } else {
            Reply::done()
        }
    }

    fn on_escape(&mut self) -> Reply {
        self.rows.end_find();
        Reply::done()
    }

    fn on_tick(&mut self, model: &Model) -> Reply {
        let due = !self.asking && model.mono.saturating_sub(self.asked) >= LOOK;
        if due && processes(model).next().is_some() { Reply::with(self.look(model)) } else { Reply::Ignored }
    }

    /// Processes come and go with the tools that start and end them.
    fn on_event(&mut self, event: &Event, model: &Model) -> Reply {
        let stir = match &event.body {
            EventBody::Tool(ToolEvent::ToolFinished { name, .. }) => name == "terminal" || name == "process",
            EventBody::Turn(TurnEvent::SessionStarted { .. }) => true,
            EventBody::Turn(TurnEvent::TurnFinished { .. }) => processes(model).next().is_some(),
            _ => false,
        };
        if stir { Reply::with(self.look(model)) } else { Reply::Ignored }
    }

    fn on_answer(&mut self, token: Token, event: &Event, model: &Model) -> Reply {
        let EventBody::Reply(reply) = &event.body else { return Reply::Ignored };
        match (token, reply.as_ref()) {
            (PROCESSES, _) => {
                self.asking = false;
                Reply::done()
            }
            (DIFF, ReplyEvent::DiffReply { path, diff }) => {
                Reply::with(Effect::Push(Box::new(Text::diff(&clean::plain(path), diff))))
            }
            (DIFF, _) => Reply::done(),
            (_, ReplyEvent::DoneReply { said }) => {
                let said = Notice::new(NoticeKind::Info, clean::plain(said).into_owned());
                Reply::Done(vec![Effect::Toast(said), self.look(model)])
            }
            _ => Reply::with(self.look(model)),
        }
    }

    /// Selects the agent that another panel names.
    fn on_message(&mut self, what: Box<dyn std::any::Any>, model: &Model) -> Reply {
        let Ok(id) = what.downcast::<AgentId>() else { return Reply::Ignored };
        // It may be folded.
        if model.row(&id).is_some_and(|a| AgentGroup::of(model, a) == AgentGroup::Finished) {
            self.finished = Some(true);
        }
        self.what = AgentTree::of(model).list(model, 40, self.style("")).what;
        if let Some(at) = self.what.iter().position(|w| *w == RowTarget::Agent((*id).clone())) {
            self.rows.chosen = at;
        }
        Reply::done()
    }

    fn wake(&self, cx: &DrawCx<'_>) -> Option<Duration> {
        let runs = cx.model.crew.agents.iter().any(|a| a.since.is_some() && !ended(a.state));
        let second = runs.then_some(Duration::from_secs(1));
        second.or_else(|| processes(cx.model).next().map(|_| LOOK))
    }
}

#[cfg(test)]
mod tests;
