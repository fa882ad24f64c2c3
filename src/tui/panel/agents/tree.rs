//! The agents as lines: groups, order, indents, sums of branches.

use std::collections::{HashMap, HashSet};

use tiller_protocol::{AgentId, AgentState, AgentView, ProcessRow, StepState, WorkflowView};

use super::group::AgentGroup;
use super::row::{NAMES, agent_row, flow_row, process_row, sum_row, tool_row};
use super::row_target::RowTarget;
use super::totals::{AgentTotals, ended};
use crate::model::Model;
use crate::model::conversation::{Body, ToolCell, ToolState};
use crate::text::line::{Line, Look, Wrap};
use crate::text::width;
use crate::theme::Role;
use crate::widget::activity_table::{ActivityRow, ActivityTable};
use crate::widget::{draw, sign};

/// Cells from the end in which running tools are looked for.
const RECENT: usize = 200;

/// An item that has a row.
#[derive(Clone, Copy)]
enum TreeItem<'a> {
    Agent(&'a AgentView),
    /// Above the agents of its steps.
    Flow(&'a WorkflowView),
}

/// A row of a group: what it shows, how deep it stands there, and whether its parent stands in another group.
#[derive(Clone, Copy)]
struct GroupItem<'a> {
    item: TreeItem<'a>,
    depth: usize,
    apart: bool,
}

/// The main agent, then the groups with all others: each group in the order of the tree, with agents below their parent
/// where both are in it. A wrong parent cannot make it go round for ever.
pub(super) struct AgentTree<'a> {
    /// Agents without a parent: the main one.
    roots: Vec<&'a AgentView>,
    groups: [Vec<GroupItem<'a>>; AgentGroup::ALL.len()],
    sums: HashMap<&'a AgentId, AgentTotals>,
    total: AgentTotals,
}

/// The list at a width.
#[derive(Default)]
pub(super) struct ListLines {
    /// The names of the columns, where there is room.
    pub(super) head: Option<Line>,
    pub(super) lines: Vec<Line>,
    /// The target of each line.
    pub(super) what: Vec<RowTarget>,
    /// The totals, where there are several agents.
    pub(super) sum: Option<Line>,
    /// Groups that have rows.
    pub(super) groups: u16,
}

/// How the list is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListStyle<'a> {
    /// True when the agents that have ended are shown; `None`: while no other is there.
    pub(super) finished: Option<bool>,
    /// A blank row before each group.
    pub(super) airy: bool,
    /// The key that answers; empty: it is not said.
    pub(super) answer: &'a str,
}

impl<'a> AgentTree<'a> {
    pub(super) fn of(model: &'a Model) -> Self {
        let ids: HashSet<&AgentId> = model.crew.agents.iter().map(|a| &a.id).collect();
        let mut below: HashMap<Option<&AgentId>, Vec<&AgentView>> = HashMap::new();
        for a in &model.crew.agents {
            let parent = a.parent.as_ref().filter(|p| ids.contains(p));
            below.entry(parent).or_default().push(a);
        }
        let sums = sums(model, &below);
        for list in below.values_mut() {
            list.sort_by_key(|a| rank(a));
        }
        let flows = WorkflowAgents::of(model);
        let roots = below.get(&None).cloned().unwrap_or_default();
        let mut total = AgentTotals::default();
        roots.iter().for_each(|a| total.add(sums.get(&a.id).copied().unwrap_or_default()));
        let mut tree = Self { roots, groups: Default::default(), sums, total };
        // In each group the depths of the rows above that are parents of the present one.
        let mut above: [Vec<usize>; AgentGroup::ALL.len()] = Default::default();
        let mut seen: HashSet<&AgentId> = HashSet::new();
        let mut stack: Vec<(TreeItem<'a>, usize)> = Vec::new();
        for root in tree.roots.iter().rev() {
            stack.push((TreeItem::Agent(root), 0));
        }
        while let Some((item, depth)) = stack.pop() {
            above.iter_mut().for_each(|of| {
                while of.last().is_some_and(|d| *d >= depth) {
                    of.pop();
                }
            });
            let group = match item {
                TreeItem::Agent(a) if !seen.insert(&a.id) => continue,
                TreeItem::Agent(a) => {
                    flows.push(&mut stack, below.get(&Some(&a.id)), depth + 1);
                    if depth == 0 {
                        continue;
                    }
                    flows.group(model, a)
                }
                TreeItem::Flow(flow) => AgentGroup::of_flow(flow),
            } as usize;
            let inside = above[group].len();
            tree.groups[group].push(GroupItem { item, depth: inside, apart: inside == 0 && depth > 1 });
            above[group].push(depth);
        }
        tree
    }

    /// The rows at a width.
    pub(super) fn list(&self, model: &Model, columns: u16, style: ListStyle<'_>) -> ListLines {
        let columns = usize::from(columns);
        let mut rows: Vec<(Option<ActivityRow>, Line, RowTarget)> = Vec::new();
        let add = |rows: &mut Vec<_>, row: ActivityRow, what| rows.push((Some(row), Line::default(), what));
        let space = |rows: &mut Vec<(Option<ActivityRow>, Line, RowTarget)>| {
            if style.airy && !rows.is_empty() {
                rows.push((None, Line::default(), RowTarget::Heading));
            }
        };
        let shown = model.shown_agent();
        let agent = |rows: &mut Vec<_>, a: &AgentView, depth: usize, apart: bool| {
            // Only of the agent on the screen it is known which tools run.
            let tools = if a.id == shown { tools(model) } else { Vec::new() };
            let mut row = agent_row(model, a, (depth * 2, apart), columns);
            // The row of the call that its first question is about shows it.
            let first = model.questions.open.iter().find(|ask| ask.agent == a.id);
            let call = first.and_then(|ask| model.agent.conversation.asking_call(ask.id));
            if call.is_some() && tools.iter().any(|t| call == Some(t.call_id.as_str())) {
                row.below.0.clear();
            }
            add(rows, row, RowTarget::Agent(a.id.clone()));
            for t in tools {
                let row = tool_row(model, t, depth * 2 + 2, columns);
                add(rows, row, RowTarget::Tool(t.call_id.clone()));
            }
        };
        for a in &self.roots {
            agent(&mut rows, a, 0, false);
        }
        for group in AgentGroup::ALL {
            let items = &self.groups[group as usize];
            // Steps of a workflow that have ended stand with the others of it.
            let own = |i: &&GroupItem<'_>| matches!(i.item, TreeItem::Agent(a) if AgentGroup::of(model, a) == group);
            let agents = items.iter().filter(own).count();
            let count = if agents > 0 { agents } else { items.len() };
            if items.is_empty() {
                continue;
            }
            space(&mut rows);
            let folded = group == AgentGroup::Finished && !self.unfolded(style.finished);
            let what = match group {
                AgentGroup::Finished if self.folds(style.finished) => RowTarget::Finished,
                _ => RowTarget::Heading,
            };
            rows.push((None, self.heading(group, count, style, columns), what));
            for item in items.iter().filter(|_| !folded) {
                match item.item {
                    TreeItem::Agent(a) => agent(&mut rows, a, item.depth, item.apart),
                    TreeItem::Flow(flow) => {
                        let row = flow_row(flow, self.flow_sum(flow), item.depth * 2);
                        add(&mut rows, row, RowTarget::Flow(flow.id.clone()));
                    }
                }
            }
        }
        let background: Vec<&ProcessRow> = processes(model).collect();
        if !background.is_empty() {
            space(&mut rows);
            let mut line = Line::new(Wrap::Cut);
            title(&mut line, "Background processes", background.len(), Role::Text);
            rows.push((None, line, RowTarget::Heading));
            background
                .iter()
                .for_each(|p| add(&mut rows, process_row(p, columns), RowTarget::Process(p.id.clone())));
        }
        self.laid_out(rows, columns)
    }

    fn laid_out(&self, rows: Vec<(Option<ActivityRow>, Line, RowTarget)>, columns: usize) -> ListLines {
        let sum = (self.total.agents > 1).then(|| sum_row(self.total, columns));
        let table =
            ActivityTable::new(NAMES, rows.iter().filter_map(|(row, ..)| row.as_ref()).chain(&sum), columns);
        let several = rows.iter().filter(|(row, ..)| row.is_some()).count() > 1;
        let mut list = ListLines {
            head: table.head().filter(|_| several),
            sum: sum.map(|row| table.row(&row)),
            groups: self.groups.iter().filter(|g| !g.is_empty()).count() as u16,
            ..ListLines::default()
        };
        for (row, line, what) in rows {
            list.lines.push(row.map_or(line, |row| table.row(&row)));
            list.what.push(what);
        }
        list
    }

    fn heading(&self, group: AgentGroup, count: usize, style: ListStyle<'_>, columns: usize) -> Line {
        let mut line = Line::new(Wrap::Cut);
        match group {
            AgentGroup::NeedsYou => {
                title(&mut line, group.name(), count, Role::Waiting);
                let room = width(style.answer) + " answer".len();
                if !style.answer.is_empty() && columns > width(line.text()) + room {
                    line.pad_to(columns - room, Look::of(Role::Text));
                    line.push_strict(style.answer, Look::of(Role::Accent));
                    line.push_strict(" answer", Look::of(Role::Dim));
                }
            }
            AgentGroup::Finished if !self.folds(style.finished) => {
                title(&mut line, group.name(), count, Role::Text);
                self.outcomes(&mut line);
            }
            AgentGroup::Finished => {
                let mark = if self.unfolded(style.finished) {
                    draw::sign(sign::OPEN)
                } else {
                    draw::sign(sign::CLOSED)
                };
                line.push_strict(&format!("{mark} "), Look::of(Role::Dim));
                title(&mut line, group.name(), count, Role::Text);
                self.outcomes(&mut line);
            }
            _ => title(&mut line, group.name(), count, Role::Text),
        }
        line
    }

    /// How many of those that have ended did not end well.
    fn outcomes(&self, line: &mut Line) {
        let of = |state| {
            let is = |i: &&GroupItem<'_>| matches!(i.item, TreeItem::Agent(a) if a.state == state);
            self.groups[AgentGroup::Finished as usize].iter().filter(is).count()
        };
        for (state, role) in [(AgentState::Failed, Role::Error), (AgentState::Cancelled, Role::Dim)] {
            let n = of(state);
            if n > 0 {
                line.push_strict(&format!("  {n} {}", state.word()), Look::of(role));
            }
        }
    }

    /// True when the person folds and unfolds the agents that have ended: while others are there, or once it was done.
    fn folds(&self, chosen: Option<bool>) -> bool {
        chosen == Some(false) || !self.unfolded(None)
    }

    /// True when the agents that have ended are shown.
    pub(super) fn unfolded(&self, chosen: Option<bool>) -> bool {
        let other = AgentGroup::ALL.iter().filter(|g| **g != AgentGroup::Finished);
        chosen.unwrap_or_else(|| other.map(|g| &self.groups[*g as usize]).all(Vec::is_empty))
    }

    fn flow_sum(&self, flow: &WorkflowView) -> AgentTotals {
        let mut sum = AgentTotals::default();
        let own = flow.steps.iter().flat_map(|s| s.agent.iter().chain(&s.reviewers));
        own.for_each(|id| sum.add(self.sums.get(id).copied().unwrap_or_default()));
        sum
    }
}

/// The name of a group and how many are in it.
fn title(line: &mut Line, name: &str, count: usize, role: Role) {
    line.push_strict(name, Look::of(role).bold());
    line.push_strict(&format!(" {count}"), Look::of(Role::Dim));
}

/// Of each agent with all below it.
fn sums<'a>(
    model: &Model,
    below: &HashMap<Option<&'a AgentId>, Vec<&'a AgentView>>,
) -> HashMap<&'a AgentId, AgentTotals> {
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
    sums
}

/// The place of an agent among its siblings: what went wrong stands before what went well.
fn rank(a: &AgentView) -> u8 {
    match a.state {
        AgentState::Interrupted | AgentState::Failed => 0,
        state if !ended(state) => 0,
        _ => 1,
    }
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

    /// The group of an agent: that of its workflow, unless it needs the person.
    fn group(&self, model: &Model, a: &AgentView) -> AgentGroup {
        let own = AgentGroup::of(model, a);
        let flow = self.of.get(&a.id).and_then(|(at, _)| self.all.get(*at));
        flow.filter(|_| own != AgentGroup::NeedsYou).map_or(own, AgentGroup::of_flow)
    }

    /// Siblings for a stack (the first comes out of it first): each workflow where its first agent stands, and its
    /// agents below it in the order of its steps. A finished workflow shows only itself.
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
