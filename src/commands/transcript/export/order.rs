//! The order of a session's entries in an export: at a fork the side branches come first, then the path to the end; an
//! agent follows the entry that started it.

use std::collections::{HashMap, HashSet};

use tiller_protocol::SessionId;

use super::book::SessionContent;

/// One step of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Entry(usize),
    /// A side branch begins with this entry.
    Open(usize),
    /// An agent begins.
    Agent(usize),
    Close,
}

/// The parent of a part.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Parent {
    /// It begins the session, or that of an agent.
    Start(Option<usize>),
    Entry(usize),
}

enum Task {
    Say(Step),
    Run(usize),
    Start(Option<usize>),
    /// An agent, unless it was written already.
    Agent(usize),
}

/// The order of the entries in an export, and the agents that were written already.
pub(super) struct Order {
    below: HashMap<Parent, Vec<usize>>,
    /// Agents by the entry that started them.
    agents: HashMap<usize, Vec<usize>>,
    /// Entries on a path to an end.
    main: HashSet<usize>,
    rendered: Vec<bool>,
}

impl Order {
    pub(super) fn new(book: &SessionContent) -> Self {
        let whose: HashMap<SessionId, usize> =
            book.agents.iter().enumerate().map(|(n, a)| (a.row.summary.id, n)).collect();
        let mut below: HashMap<Parent, Vec<usize>> = HashMap::new();
        for (n, entry) in book.entries.iter().enumerate() {
            let above = match entry.parent.and_then(|p| book.at.get(&p)) {
                Some(parent) => Parent::Entry(*parent),
                None => Parent::Start(whose.get(&entry.session).copied()),
            };
            below.entry(above).or_default().push(n);
        }
        let mut main: HashSet<usize> = book.path(book.end).into_iter().collect();
        let mut agents: HashMap<usize, Vec<usize>> = HashMap::new();
        for (n, agent) in book.agents.iter().enumerate() {
            main.extend(book.path(agent.end));
            if let Some(at) = agent.row.spawned_by.and_then(|e| book.at.get(&e)) {
                agents.entry(*at).or_default().push(n);
            }
        }
        Self { below, agents, main, rendered: vec![false; book.agents.len()] }
    }

    /// The whole tree.
    pub(super) fn all(&mut self) -> Vec<Step> {
        let mut steps = self.steps(vec![Task::Start(None)]);
        steps.extend(self.loose(|_| true));
        steps
    }

    /// The agents that an entry started, and the agents below them.
    pub(super) fn agents_of(&mut self, entry: usize) -> Vec<Step> {
        let of = self.agents.get(&entry).into_iter().flatten().rev();
        let tasks = of.map(|n| Task::Agent(*n)).collect();
        self.steps(tasks)
    }

    /// Wanted agents that belong to no written entry.
    pub(super) fn loose(&mut self, wanted: impl Fn(usize) -> bool) -> Vec<Step> {
        let mut steps = Vec::new();
        for n in (0..self.rendered.len()).filter(|n| wanted(*n)) {
            steps.extend(self.steps(vec![Task::Agent(n)]));
        }
        steps
    }

    /// With an explicit stack: branches may nest as deep as the session is long.
    fn steps(&mut self, mut tasks: Vec<Task>) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(task) = tasks.pop() {
            match task {
                Task::Say(step) => steps.push(step),
                Task::Start(of) => self.fork(Parent::Start(of), &mut tasks),
                Task::Run(at) => {
                    steps.push(Step::Entry(at));
                    self.fork(Parent::Entry(at), &mut tasks);
                    tasks.extend(self.agents.get(&at).into_iter().flatten().rev().map(|n| Task::Agent(*n)));
                }
                Task::Agent(n) => {
                    if self.rendered.get_mut(n).is_some_and(|rendered| !std::mem::replace(rendered, true)) {
                        steps.push(Step::Agent(n));
                        tasks.extend([Task::Say(Step::Close), Task::Start(Some(n))]);
                    }
                }
            }
        }
        steps
    }

    fn fork(&self, of: Parent, tasks: &mut Vec<Task>) {
        let children = self.below.get(&of).map_or(&[][..], Vec::as_slice);
        let on = children.iter().find(|c| self.main.contains(c)).or(children.first());
        let Some(on) = on else { return };
        tasks.push(Task::Run(*on));
        for side in children.iter().rev().filter(|c| *c != on) {
            tasks.extend([Task::Say(Step::Close), Task::Run(*side), Task::Say(Step::Open(*side))]);
        }
    }
}
