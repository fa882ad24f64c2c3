//! A running workflow: its steps as a graph with their states, agents and results, and actions on them. A workflow that
//! has ended can be viewed too, and continued from the step that failed.

mod actions;
mod draw;
mod graph;
mod keys;
mod start;
mod totals;

use std::time::Duration;

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{AgentId, Event, EventBody, Notice, NoticeKind, StepState, StepView, WorkflowView};

pub(crate) use self::actions::ACTIONS;
use self::actions::KEYS;
use crate::app::effect::{Effect, Token};
use crate::dialog::reader::text::Text;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::{DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Refresh, Reply};
use crate::registry::{Dialog, Opener};
use crate::text::clean;
use crate::text::sheet::Sheet;

/// Registers it, and the line that starts an agent by hand.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[
        Opener::new("spawn.open", "start an agent", "Start an agent in the background", |_| {
            Ok(Box::new(crate::panel::agents::spawn()))
        })
        .menu(Menu::Agents),
        Opener::new("workflows.open", "workflows", "Show running workflows, or start one", |app| {
            Ok(open(&app.model))
        })
        .menu(Menu::Agents)
        .keys(&["leader W"]),
    ],
    groups: &[("Workflow", ACTIONS)],
    scopes: &[Scope::new("flow", Some("list"), "Workflow", false).keys(KEYS)],
    samples: &[("workflow", sample)],
    ..Dialog::NONE
};

pub(crate) use self::keys::key;

const DIFF: Token = Token(1);

/// The dialog.
#[derive(Default)]
pub(crate) struct Flow {
    /// Id of the workflow.
    id: String,
    /// Id of the selected step.
    step: String,
    /// Rows of the graph from the top, and below the first visible row.
    shape: Vec<graph::GraphRow>,
    lines: draw::GraphLines,
    top: usize,
    /// Details of the selected step.
    detail: Sheet,
}

/// Opens the running workflow, else the last started workflow, else the list of workflows to start.
pub(super) fn open(model: &Model) -> Box<dyn Panel> {
    match latest(model) {
        Some(flow) => Box::new(Flow::of(flow)),
        None => Box::new(start::open()),
    }
}

fn latest(model: &Model) -> Option<&WorkflowView> {
    let all = &model.crew.workflows;
    all.iter().rfind(|w| w.state == StepState::Running).or_else(|| all.last())
}

/// Opens the workflow with this id; `None`: there is none.
pub(crate) fn open_at(model: &Model, id: &str) -> Option<Box<dyn Panel>> {
    let flow = model.crew.workflows.iter().find(|w| w.id == id)?;
    Some(Box::new(Flow::of(flow)))
}

impl Flow {
    fn of(flow: &WorkflowView) -> Self {
        let mut new = Self { id: flow.id.clone(), ..Self::default() };
        new.step = first(flow);
        new
    }

    fn view<'m>(&self, model: &'m Model) -> Option<&'m WorkflowView> {
        model.crew.workflows.iter().find(|w| w.id == self.id)
    }

    fn chosen<'m>(&self, model: &'m Model) -> Option<(&'m WorkflowView, &'m StepView)> {
        let flow = self.view(model)?;
        Some((flow, flow.steps.iter().find(|s| s.id == self.step)?))
    }

    /// The graph of a workflow in `room` rows.
    fn shape(flow: &WorkflowView, room: usize) -> Vec<graph::GraphRow> {
        let needs = graph::needs(&flow.steps);
        let airy = flow.steps.len() * 2 <= room + 1;
        graph::rows(&needs, airy)
    }

    /// Goes up or down by steps.
    fn go(&mut self, flow: &WorkflowView, by: isize) {
        let order = graph::order(&graph::needs(&flow.steps));
        let now = order.iter().position(|s| flow.steps[*s].id == self.step).unwrap_or(0);
        let to = now.saturating_add_signed(by).min(order.len().saturating_sub(1));
        if let Some(step) = order.get(to) {
            self.step.clone_from(&flow.steps[*step].id);
        }
    }

    /// Where the parts are, from the top: the state of the workflow, the names of the columns, the graph, the totals, and
    /// below a line the selected step.
    fn parts(&self, area: Rect) -> FlowAreas {
        let line = |there: bool, left: u16| u16::from(there).min(left);
        let air = u16::from(area.height >= AIRY);
        let top = area.height.min(1) + air;
        let head = line(self.lines.head.is_some() && area.height > 12, area.height - top);
        let sum = line(self.lines.sum.is_some(), area.height - top - head);
        let left = area.height - top - head - sum;
        let most = u16::try_from(Self::room(area)).unwrap_or(u16::MAX);
        let rows = u16::try_from(self.shape.len()).unwrap_or(u16::MAX).min(most).max(1).min(left);
        let head = Rect { y: area.y + top, height: head, ..area };
        let list = Rect { y: head.bottom(), height: rows, ..area };
        let sum = Rect { y: list.bottom(), height: sum, ..area };
        let gap = air.min(left - rows);
        let left = left - rows - gap;
        let rule = Rect { y: sum.bottom() + gap, height: left.min(1), ..area };
        let below = Rect { y: rule.bottom(), height: left - rule.height, ..area };
        FlowAreas { head, list, sum, rule, below }
    }

    /// Rows that there may be for the graph.
    fn room(area: Rect) -> usize {
        usize::from(area.height.saturating_sub((area.height / 3).clamp(4, 12) + 4))
    }
}

/// Rows from which on there are blank rows around the table.
const AIRY: u16 = 26;

/// Where the parts of the dialog are.
struct FlowAreas {
    head: Rect,
    list: Rect,
    sum: Rect,
    rule: Rect,
    below: Rect,
}

/// The step to select first: the first that waits for the person, runs or has failed; else the first step.
fn first(flow: &WorkflowView) -> String {
    let of = |state: StepState| flow.steps.iter().find(|s| s.state == state);
    let order = graph::order(&graph::needs(&flow.steps));
    let top = order.first().and_then(|s| flow.steps.get(*s));
    let step = of(StepState::Running).or_else(|| of(StepState::Failed));
    let step = step.or_else(|| of(StepState::Interrupted)).or(top);
    step.map_or_else(String::new, |s| s.id.clone())
}

/// Agents of a step: the worker and the reviewer.
fn agents(step: &StepView) -> impl Iterator<Item = &AgentId> {
    step.agent.iter().chain(&step.reviewers)
}

fn say(text: impl Into<String>) -> Reply {
    Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, text)))
}

impl Panel for Flow {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new("flow")
    }

    fn title(&self, model: &Model) -> String {
        let Some(flow) = self.view(model) else { return "Workflow".into() };
        let all = &model.crew.workflows;
        let mut title = format!("Workflow {}", clean::plain(&flow.called()));
        if all.len() > 1 {
            let at = all.iter().position(|w| w.id == flow.id).unwrap_or(0) + 1;
            title.push_str(&format!(" ({at} of {})", all.len()));
        }
        title
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        self.do_it(action.0, model)
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Mouse(event, area) => self.on_mouse(event, area, model),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Engine(event) => self.on_event(event, model),
            PanelEvent::Answer(token, event) => self.on_answer(token, event),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, model: &Model) -> Vec<Hint> {
        self.all_hints(model)
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        let Some(flow) = self.view(cx.model) else { return Refresh::default() };
        if flow.steps.iter().all(|s| s.id != self.step) {
            self.step = first(flow);
        }
        self.shape = Self::shape(flow, Self::room(area));
        self.lines = draw::lines(flow, &self.shape, &self.step, area.width, cx);
        let FlowAreas { list, below, .. } = self.parts(area);
        let at = self.shape.iter().position(|r| r.step.is_some_and(|s| flow.steps[s].id == self.step));
        let (at, page) = (at.unwrap_or(0), usize::from(list.height).max(1));
        // What leads to it is seen, too, where there is room.
        self.top = self.top.min(at).max((at + 1).saturating_sub(page));
        self.top = self.top.min(self.shape.len().saturating_sub(page));
        let detail = self.chosen(cx.model).map(|(flow, step)| draw::detail(flow, step, cx));
        self.detail = Sheet::new(detail.unwrap_or_default(), usize::from(below.width).max(1));
        Refresh::after(self.wake(cx))
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.paint(cx, area, buf);
    }

    fn cursor(&self, area: Rect, model: &Model) -> Option<Position> {
        let flow = self.view(model)?;
        let list = self.parts(area).list;
        let at = self.shape.iter().position(|r| r.step.is_some_and(|s| flow.steps[s].id == self.step))?;
        let row = u16::try_from(at.checked_sub(self.top)?).ok()?;
        (row < list.height).then(|| Position::new(list.x, list.y + row))
    }
}

impl Flow {
    fn on_mouse(&mut self, event: &MouseEvent, area: Rect, model: &Model) -> Reply {
        let Some(flow) = self.view(model) else { return Reply::done() };
        match event.kind {
            MouseEventKind::ScrollDown => self.go(flow, 1),
            MouseEventKind::ScrollUp => self.go(flow, -1),
            MouseEventKind::Down(MouseButton::Left) => {
                let list = self.parts(area).list;
                let row = usize::from(event.row.saturating_sub(list.y)) + self.top;
                let step = self.shape.get(row).and_then(|r| flow.steps.get(r.step?));
                if let Some(step) = step.filter(|_| list.contains(Position::new(event.column, event.row))) {
                    let again = step.id == self.step;
                    self.step.clone_from(&step.id);
                    if again {
                        return self.act(Action("list.open"), model);
                    }
                }
            }
            _ => {}
        }
        Reply::done()
    }

    fn on_event(&mut self, event: &Event, model: &Model) -> Reply {
        // Another session is open: its workflows are others.
        if matches!(&event.body, EventBody::State(StateEvent::WorkflowChanged { .. }))
            || self.view(model).is_some()
        {
            return Reply::Ignored;
        }
        match latest(model) {
            Some(flow) => *self = Self::of(flow),
            None => return Reply::with(Effect::Pop),
        }
        Reply::done()
    }

    fn on_answer(&mut self, token: Token, event: &Event) -> Reply {
        let EventBody::Reply(reply) = &event.body else { return Reply::Ignored };
        match (token, reply.as_ref()) {
            (DIFF, ReplyEvent::DiffReply { path, diff }) => {
                Reply::with(Effect::Push(Box::new(Text::diff(&clean::plain(path), diff))))
            }
            (_, ReplyEvent::DoneReply { said }) => say(clean::plain(said)),
            _ => Reply::done(),
        }
    }

    fn wake(&self, cx: &DrawCx<'_>) -> Option<Duration> {
        let runs = self.view(cx.model).is_some_and(|w| w.state == StepState::Running && !w.paused);
        runs.then_some(Duration::from_secs(1))
    }
}

/// The dialog with plausible content, for the tests that visit all dialogs.
pub(super) fn sample() -> Box<dyn Panel> {
    Box::new(Flow { id: "w1".into(), ..Flow::default() })
}

#[cfg(test)]
mod tests;
