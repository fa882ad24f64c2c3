//! The tree of agents as lines: order, indents, sums of branches.

use std::collections::{HashMap, HashSet};

use tiller_protocol::{Activity, ProcessRow};
use tiller_protocol::{AgentId, AgentState, AgentView, Cost, StepState, WorkflowView};

use super::columns::{AgentRow, ColumnLayout, WIDE};
pub(crate) use super::row::nearest_limit;
use super::row::{act, cost, name, process_row, receipt, row, tool_row};
use super::row_target::RowTarget;
use super::totals::{AgentTotals, ended, waits};
use crate::model::Model;
use crate::model::conversation::{Body, ToolCell, ToolState};
use crate::panel::rows::lasting;
use crate::text::line::Line;
use crate::theme::Role;
use crate::view::words::{goal, money, short};
use crate::widget::draw;

/// Cells from the end in which running tools are looked for.
const RECENT: usize = 200;
/// Of those that have ended below one agent, so many stay; older ones fold into one row.
const UNFOLDED: usize = 5;
/// Share of a limit, in percent, from which it stands out.
const NEAR: u64 = 80;
/// Share of a limit from which it is shown.
const TOLD: u64 = 10;

/// Mark, word and look of a state.
pub(crate) fn look(state: AgentState) -> (&'static str, &'static str, Role) {
    match state {
        AgentState::Idle => (" ", "idle", Role::Dim),
        AgentState::Queued => (".", "queued", Role::Dim),
        AgentState::Running => ("~", "working", Role::Running),
        AgentState::Waiting => ("!", "needs you", Role::Waiting),
        AgentState::Paused => ("=", "paused", Role::Waiting),
        AgentState::Done => ("v", "done", Role::Ok),
        AgentState::Failed => ("x", "failed", Role::Error),
        AgentState::Cancelled => ("-", "cancelled", Role::Dim),
        AgentState::Interrupted => ("-", "interrupted", Role::Waiting),
    }
}

/// What has a row of the tree.
#[derive(Clone, Copy)]
enum TreeItem<'a> {
    Agent(&'a AgentView),
    /// Above the agents of its steps.
    Flow(&'a WorkflowView),
    /// Agents below this one that have ended, and are not shown (or can be folded again): how many, and how many of them
    /// were cancelled.
    Fold {
        of: &'a AgentId,
        count: usize,
        badly: usize,
        open: bool,
    },
}

/// The agents with how deep each stands, in the order of the rows: among siblings those that need the person, then those
/// that run, then those that wait or rest, then those that have ended; else as they were started. A wrong parent cannot
/// make it go round for ever.
pub(super) struct AgentTree<'a> {
    order: Vec<(TreeItem<'a>, usize)>,
    sums: HashMap<&'a AgentId, AgentTotals>,
}

impl<'a> AgentTree<'a> {
    /// All of it, with nothing folded.
    #[cfg(test)]
    pub(super) fn of(model: &'a Model) -> Self {
        Self::folded(model, None)
    }

    /// `open`: agents whose ended children are all shown; `None`: of each.
    pub(super) fn folded(model: &'a Model, open: Option<&HashSet<AgentId>>) -> Self {
        let ids: HashSet<&AgentId> = model.crew.agents.iter().map(|a| &a.id).collect();
        let mut below: HashMap<Option<&AgentId>, Vec<&AgentView>> = HashMap::new();
        for a in &model.crew.agents {
            let parent = a.parent.as_ref().filter(|p| ids.contains(p));
            below.entry(parent).or_default().push(a);
        }
        // Parents before their children, so that the other way round every child is done before its parent.
        let mut down: Vec<&AgentView> = Vec::new();
        let mut seen: HashSet<&AgentId> = HashSet::new();
        let mut stack: Vec<&AgentView> = below.get(&None).cloned().unwrap_or_default();
        while let Some(a) = stack.pop() {
            if seen.insert(&a.id) {
                down.push(a);
                stack.extend(below.get(&Some(&a.id)).into_iter().flatten());
            }
        }
        let mut sums: HashMap<&AgentId, AgentTotals> = HashMap::new();
        for a in down.iter().rev() {
            let mut sum = AgentTotals::of(model, a);
            for c in below.get(&Some(&a.id)).into_iter().flatten() {
                sum.add(sums.get(&c.id).copied().unwrap_or_default());
            }
            sums.insert(&a.id, sum);
        }
        let busy: HashSet<&AgentId> = busy_branches(&down);
        for list in below.values_mut() {
            list.sort_by_key(|a| rank(a, sums.get(&a.id).is_some_and(|s| s.waits), busy.contains(&a.id)));
        }
        let flows = WorkflowAgents::of(model);
        let folds = open.map(|open| FoldedChildren::of(&mut below, open, &busy, &flows)).unwrap_or_default();
        let mut order = Vec::new();
        let mut stack: Vec<(TreeItem<'a>, usize)> = Vec::new();
        flows.push(&mut stack, below.get(&None), 0);
        while let Some((row, depth)) = stack.pop() {
            match row {
                TreeItem::Agent(a) if seen.remove(&a.id) => {
                    order.push((row, depth));
                    // Below all others: the stack gives the last first.
                    stack.extend(folds.row(&a.id).map(|fold| (fold, depth + 1)));
                    flows.push(&mut stack, below.get(&Some(&a.id)), depth + 1);
                }
                TreeItem::Agent(_) => {}
                TreeItem::Flow(_) | TreeItem::Fold { .. } => order.push((row, depth)),
            }
        }
        Self { order, sums }
    }

    /// The rows at a width, and what each stands for.
    pub(super) fn lines(&self, model: &Model, columns: u16) -> (Vec<Line>, Vec<RowTarget>) {
        let columns = usize::from(columns);
        let (mut lines, mut what) = (Vec::new(), Vec::new());
        let shown = model.shown_agent();
        let parts = self.parts(model, columns);
        let table = ColumnLayout::new(parts.values(), columns);
        for (row, depth) in &self.order {
            let a = match row {
                TreeItem::Agent(a) => a,
                TreeItem::Flow(flow) => {
                    lines.push(self.flow(flow, *depth, columns));
                    what.push(RowTarget::Flow(flow.id.clone()));
                    continue;
                }
                TreeItem::Fold { of, count, badly, open } => {
                    lines.push(fold_row(*depth, *count, *badly, *open, columns));
                    what.push(RowTarget::Fold((*of).clone()));
                    continue;
                }
            };
            lines.extend(parts.get(&a.id).map(|parts| table.row(parts)));
            what.push(RowTarget::Agent(a.id.clone()));
            let inside = depth * 2 + 2;
            // Only of the agent on the screen it is known which tools run.
            if a.id == shown {
                for t in tools(model) {
                    lines.push(tool_row(model, t, inside, columns));
                    what.push(RowTarget::Tool(t.call_id.clone()));
                }
            }
            if a.id.is_main() {
                for p in processes(model) {
                    lines.push(process_row(p, columns));
                    what.push(RowTarget::Process(p.id.clone()));
                }
            }
        }
        (lines, what)
    }

    /// The names of the columns at this width.
    pub(super) fn head(&self, model: &Model, columns: u16) -> Option<Line> {
        let columns = usize::from(columns);
        let parts = self.parts(model, columns);
        ColumnLayout::new(parts.values(), columns).head().filter(|_| parts.len() > 1)
    }

    /// The rows of the agents before they are drawn.
    fn parts(&self, model: &Model, columns: usize) -> HashMap<&'a AgentId, AgentRow> {
        let agents = self.order.iter().filter_map(|(row, depth)| match row {
            TreeItem::Agent(a) => Some((&a.id, self.agent(model, a, *depth, columns))),
            _ => None,
        });
        agents.collect()
    }

    /// How a workflow stands, above the agents of its steps.
    fn flow(&self, flow: &WorkflowView, depth: usize, columns: usize) -> Line {
        let state = match (flow.state, flow.paused) {
            (_, true) => AgentState::Paused,
            (StepState::Waiting, _) => AgentState::Queued,
            (StepState::Running, _) => AgentState::Running,
            (StepState::Done, _) => AgentState::Done,
            (StepState::Failed, _) => AgentState::Failed,
            (StepState::Skipped | StepState::Cancelled, _) => AgentState::Cancelled,
            (StepState::Interrupted, _) => AgentState::Interrupted,
        };
        let mut sum = AgentTotals::default();
        let own = flow.steps.iter().flat_map(|s| s.agent.iter().chain(&s.reviewers));
        own.for_each(|id| sum.add(self.sums.get(id).copied().unwrap_or_default()));
        let (mut glyph, mut word, mut role) = look(state);
        if sum.waits {
            (glyph, word, role) = look(AgentState::Waiting);
        }
        let steps = format!("{}/{} steps", flow.done(), flow.steps.len());
        let tokens = if sum.tokens > 0 { short(sum.tokens) } else { String::new() };
        let paid = match sum.cost {
            Cost(0) => String::new(),
            paid => format!("sum {}{}", money(paid.usd()), if sum.unknown { "+?" } else { "" }),
        };
        let right =
            [(format!("{glyph} {word}"), role), (steps, Role::Text), (paid, Role::Text), (tokens, Role::Dim)];
        let failed = flow.steps.iter().find(|s| s.state == StepState::Failed);
        let act = failed.map_or(String::new(), |s| format!("{}: {}", s.id, s.said));
        row(depth * 2, &flow.called(), &right, &act, columns)
    }

    fn agent(&self, model: &Model, a: &AgentView, depth: usize, columns: usize) -> AgentRow {
        let (mut glyph, mut word, mut role) = look(a.state);
        if waits(model, a) {
            (glyph, word, role) = look(AgentState::Waiting);
        }
        let child = a.child.as_deref();
        // A program that rests because a person works in it.
        if child.and_then(|c| c.pane.as_ref()).is_some_and(|p| p.touched && p.doing == Activity::Idle)
            && !ended(a.state)
        {
            (word, role) = ("yours", Role::Ok);
        }
        let time = match (child.map_or(0.0, |c| c.took), a.since) {
            (took, _) if took > 0.0 && ended(a.state) => lasting((took * 1000.0) as i64),
            (_, Some(t)) if !ended(a.state) => lasting(model.now.millis() - t.millis()),
            _ => String::new(),
        };
        let receipt = receipt(model, a);
        // Where there is little room, the mark says it.
        let state = match columns < WIDE && !receipt.0.is_empty() && !waits(model, a) {
            true => format!("{glyph} {time}"),
            false => format!("{glyph} {word} {time}"),
        };
        let sum = self.sums.get(&a.id).copied().unwrap_or_default();
        let share = match a.window {
            Some(w) if w > 0 && !ended(a.state) => {
                format!("{}%", (a.context.saturating_mul(100) / w).min(100))
            }
            _ => String::new(),
        };
        let tokens = if sum.tokens > 0 { short(sum.tokens) } else { String::new() };
        let files = match sum.files {
            0 => String::new(),
            1 => "1 file".into(),
            n => format!("{n} files"),
        };
        // Of one that has ended well nobody needs to know how near it came.
        let near = child.filter(|_| a.state != AgentState::Done).and_then(nearest_limit);
        let near = near.filter(|(percent, _)| *percent >= TOLD);
        let limit = near.map_or_else(
            || (String::new(), Role::Dim),
            |(percent, of)| {
                (format!("{percent}% {of}"), if percent >= NEAR { Role::Waiting } else { Role::Dim })
            },
        );
        let model_name = a.model.0.rsplit('/').next().unwrap_or_default();
        let external = child.map(|c| &c.backend).filter(|b| b.is_external());
        let who = external.map_or_else(|| model_name.to_owned(), ToString::to_string);
        // Where there is little room, what it does says more.
        let who = if columns < WIDE { String::new() } else { draw::cut_middle(&who, 18) };
        // Where there is little room, a parent's is known to be the sum.
        let paid = cost(a, sum, columns < WIDE);
        let figures = [
            (state.trim_end().to_owned(), role),
            receipt,
            child.and_then(|c| c.goal.as_deref()).map_or((String::new(), Role::Dim), goal),
            (paid, Role::Text),
            (tokens, Role::Dim),
            (share, Role::Dim),
            limit,
            (files, Role::Dim),
            (who, Role::Dim),
        ];
        AgentRow { indent: depth * 2, name: name(model, a), figures, act: act(model, a).to_owned() }
    }
}

/// Agents that are at work, and all above them.
fn busy_branches<'a>(all: &[&'a AgentView]) -> HashSet<&'a AgentId> {
    let parents: HashMap<&AgentId, &'a AgentId> =
        all.iter().filter_map(|a| Some((&a.id, a.parent.as_ref()?))).collect();
    let mut busy = HashSet::new();
    for a in all.iter().filter(|a| a.state.at_work()) {
        let mut at = Some(&a.id);
        while let Some(id) = at.filter(|id| busy.insert(*id)) {
            at = parents.get(id).copied();
        }
    }
    busy
}

/// The place of an agent among its siblings.
fn rank(a: &AgentView, waits: bool, busy: bool) -> u8 {
    match a.state {
        _ if waits => 0,
        AgentState::Running => 1,
        _ if ended(a.state) && busy => 1,
        state if !ended(state) => 2,
        AgentState::Interrupted | AgentState::Failed => 3,
        _ => 4,
    }
}

/// Ended children that are not shown, by their parent.
#[derive(Default)]
struct FoldedChildren<'a>(HashMap<&'a AgentId, (usize, usize, bool)>);

impl<'a> FoldedChildren<'a> {
    /// Takes them out of the rows, unless their parent is `open`. Agents of workflows stand below theirs.
    fn of(
        below: &mut HashMap<Option<&'a AgentId>, Vec<&'a AgentView>>,
        open: &HashSet<AgentId>,
        busy: &HashSet<&'a AgentId>,
        flows: &WorkflowAgents<'a>,
    ) -> Self {
        let mut folds = HashMap::new();
        for (parent, list) in below.iter_mut() {
            let Some(parent) = *parent else { continue };
            // Those that can go on, or failed, are still of interest.
            let over = |a: &&AgentView| {
                let calm = matches!(a.state, AgentState::Done | AgentState::Cancelled);
                calm && !busy.contains(&a.id) && !flows.of.contains_key(&a.id)
            };
            // The youngest stay.
            let mut old: Vec<&'a AgentView> = list.iter().copied().filter(over).collect();
            old.sort_by_key(|a| {
                a.id.name().trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0_u32)
            });
            old.truncate(old.len().saturating_sub(UNFOLDED));
            if old.is_empty() {
                continue;
            }
            let badly = old.iter().filter(|a| a.state != AgentState::Done).count();
            let shown = open.contains(parent);
            folds.insert(parent, (old.len(), badly, shown));
            if !shown {
                let gone: HashSet<&AgentId> = old.iter().map(|a| &a.id).collect();
                list.retain(|a| !gone.contains(&a.id));
            }
        }
        Self(folds)
    }

    fn row(&self, of: &'a AgentId) -> Option<TreeItem<'a>> {
        let (count, badly, open) = *self.0.get(of)?;
        Some(TreeItem::Fold { of, count, badly, open })
    }
}

fn fold_row(depth: usize, count: usize, badly: usize, open: bool, columns: usize) -> Line {
    let mark = if open { "-" } else { "+" };
    let failed = if badly > 0 { format!(", {badly} of them cancelled") } else { String::new() };
    let what = if open { "fold older finished ones" } else { "finished" };
    let name = match open {
        true => format!("{mark} {what}"),
        false => format!("{mark} {count} more {what}{failed}"),
    };
    row(depth * 2, &name, &[], "", columns)
}

/// The agents of workflows, which stand together below a row of their own.
struct WorkflowAgents<'a> {
    all: &'a [WorkflowView],
    /// Of which workflow, and in which place.
    of: HashMap<&'a AgentId, (usize, usize)>,
}

impl<'a> WorkflowAgents<'a> {
    fn of(model: &'a Model) -> Self {
        let mut of = HashMap::new();
        for (at, flow) in model.crew.workflows.iter().enumerate() {
            let own = flow.steps.iter().flat_map(|s| s.agent.iter().chain(&s.reviewers));
            for (place, id) in own.enumerate() {
                of.insert(id, (at, place));
            }
        }
        Self { all: &model.crew.workflows, of }
    }

    /// Siblings for a stack (the first comes out of it first): each workflow where its first agent stands, and its
    /// agents below it in the order of its steps. One that is done shows only itself.
    fn push(
        &self,
        stack: &mut Vec<(TreeItem<'a>, usize)>,
        siblings: Option<&Vec<&'a AgentView>>,
        depth: usize,
    ) {
        let mut rows: Vec<(TreeItem<'a>, usize)> = Vec::new();
        let mut begun: HashSet<usize> = HashSet::new();
        for a in siblings.into_iter().flatten() {
            let Some((at, _)) = self.of.get(&a.id) else {
                rows.push((TreeItem::Agent(a), depth));
                continue;
            };
            let Some(flow) = self.all.get(*at).filter(|_| begun.insert(*at)) else { continue };
            rows.push((TreeItem::Flow(flow), depth));
            let mut own: Vec<(usize, &'a AgentView)> = siblings
                .into_iter()
                .flatten()
                .filter_map(|b| self.of.get(&b.id).filter(|of| of.0 == *at).map(|of| (of.1, *b)))
                .collect();
            own.sort_by_key(|(place, _)| *place);
            let over = flow.state == StepState::Done && own.iter().all(|(_, a)| ended(a.state));
            if !over {
                rows.extend(own.into_iter().map(|(_, a)| (TreeItem::Agent(a), depth + 1)));
            }
        }
        stack.extend(rows.into_iter().rev());
    }
}

/// Tools of the shown agent that run or wait, oldest first.
pub(super) fn tools(model: &Model) -> Vec<&ToolCell> {
    let mut all: Vec<&ToolCell> = model
        .agent
        .conversation
        .cells()
        .iter()
        .rev()
        .take(RECENT)
        .filter_map(|c| match &c.body {
            Body::Tool(t) if matches!(t.state, ToolState::Running | ToolState::Waiting) => Some(t.as_ref()),
            _ => None,
        })
        .collect();
    all.reverse();
    all
}

/// Processes that run.
pub(super) fn processes(model: &Model) -> impl Iterator<Item = &ProcessRow> {
    model.workspace.processes.iter().filter(|p| p.state.runs())
}
