//! When `exec` ends other than by the end of its turn: background agents are waited for, and the limits of the agent
//! definition are enforced.

use std::collections::{BTreeSet, HashMap};

use tiller_config::agents::Definition;
use tiller_protocol::event::TurnEvent;
use tiller_protocol::{AgentId, AgentView, Cost, Entry, Event, EventBody, Notice, NoticeKind, Usage};
use tokio::time::{Duration, Instant};

/// The message to the model when all agents have ended. Their results are appended.
pub(crate) const ENDED: &str = "The agents that you started in the background have ended; their results follow. Use them to finish your answer.";

/// Running agents.
#[derive(Default)]
pub(crate) struct Crew {
    busy: BTreeSet<AgentId>,
    /// Agents that ended in the background and are not reported to the model yet.
    untold: BTreeSet<AgentId>,
    /// They are not waited for.
    left: bool,
    /// The end of the turn that has ended while agents are waited for.
    pub(crate) held: Option<Event>,
    /// The first and the newest usage and cost of each agent in this run.
    rows: HashMap<AgentId, [(Usage, Cost); 2]>,
    /// Usage and cost of the turns whose ends were not reported; the next end has them, too.
    before: (Usage, Option<f64>),
    /// A call of one of them needed an approval that no user was present to give.
    pub(crate) refused: bool,
}

impl Crew {
    pub(crate) fn new(left: bool) -> Self {
        Self { left, ..Self::default() }
    }

    /// Records the state of an agent. True: the last awaited agent has ended. A refusal of one of them counts for the
    /// run, whatever the agent and its parent did afterwards.
    pub(crate) fn hear(&mut self, view: &AgentView) -> bool {
        self.refused |= was_refused(view);
        if view.state.at_work() {
            self.busy.insert(view.id.clone());
            return false;
        }
        let worked = self.busy.remove(&view.id);
        let mine = view.id.parent().is_some_and(|p| p.is_main());
        if worked && mine && view.child.as_ref().is_some_and(|c| c.background) {
            self.untold.insert(view.id.clone());
        }
        worked && self.busy.is_empty() && self.held.is_some()
    }

    /// Reads an entry of the main agent, which may report ended agents as a notice or as the result of a tool.
    pub(crate) fn mark_reported(&mut self, entry: &Entry) {
        if self.untold.is_empty() {
            return;
        }
        let text = serde_json::to_string(entry).unwrap_or_default();
        self.untold.retain(|id| {
            let name = id.name();
            let news = text.contains(&format!("agent {name} \\\""));
            !news && !text.contains(&format!("\\\"agent\\\":\\\"{name}\\\""))
        });
    }

    /// The end of a turn of the main agent, with what the turns before it used whose ends were not reported.
    pub(crate) fn with_turns_before(&self, mut event: Event) -> Event {
        if let EventBody::Turn(TurnEvent::TurnFinished { usage, cost_usd, .. }) = &mut event.body {
            let (earlier, paid) = self.before;
            let (own, before) = (*usage != Usage::default(), earlier != Usage::default());
            usage.add(&earlier);
            *cost_usd = match (*cost_usd, paid) {
                (Some(own), Some(paid)) => Some(own + paid),
                // A turn without requests has no cost.
                (None, paid) if !own => paid,
                (cost, None) if !before => cost,
                _ => None,
            };
        }
        event
    }

    /// The end of a turn is not reported, since another turn follows.
    pub(crate) fn hold(&mut self, event: &Event) {
        if let EventBody::Turn(TurnEvent::TurnFinished { usage, cost_usd, .. }) = &event.body {
            self.before = (*usage, *cost_usd);
        }
        self.held = Some(event.clone());
    }

    /// Records the row of an agent, also of the main one.
    pub(crate) fn note(&mut self, view: &AgentView) {
        let now = (view.usage, view.cost.unwrap_or_default());
        self.rows.entry(view.id.clone()).or_insert([now; 2])[1] = now;
    }

    /// The end of the turn that was held back, with what the agents have used since.
    pub(crate) fn take_held(&mut self) -> Option<Event> {
        let mut event = self.held.take()?;
        if let EventBody::Turn(TurnEvent::TurnFinished { usage, cost_usd, .. }) = &mut event.body {
            // The rows may lag behind the turn, or the turn behind the rows: none of them has too much.
            let (mut all, mut paid) = (Usage::default(), Cost::default());
            for [(before, cost_before), (now, cost)] in self.rows.values() {
                all.add(&Usage {
                    input: now.input.saturating_sub(before.input),
                    output: now.output.saturating_sub(before.output),
                    cache_read: now.cache_read.saturating_sub(before.cache_read),
                    cache_write: now.cache_write.saturating_sub(before.cache_write),
                    reasoning: now.reasoning.saturating_sub(before.reasoning),
                    estimated: now.estimated,
                });
                paid = paid.plus(Cost(cost.0.saturating_sub(cost_before.0)));
            }
            let tokens = |usage: &Usage| usage.context().saturating_add(usage.output);
            if tokens(&all) > tokens(usage) {
                *usage = all;
            }
            *cost_usd = cost_usd.map(|cost| cost.max(paid.usd()));
        }
        Some(event)
    }

    /// Whether no agent is running.
    pub(crate) fn all_ended(&self) -> bool {
        self.busy.is_empty()
    }

    /// Whether the run continues after the end of a turn.
    pub(crate) fn waited_for(&self) -> bool {
        let any = !self.busy.is_empty() || !self.untold.is_empty();
        any && !self.left
    }

    pub(crate) fn count(&self) -> usize {
        self.busy.len()
    }
}

/// Whether an agent of the run needed an approval or an answer that no user was present to give.
pub(crate) fn was_refused(view: &AgentView) -> bool {
    view.child.as_ref().is_some_and(|c| c.refused)
}

/// Limits of a definition that the engine does not enforce for the main agent.
#[derive(Default)]
pub(crate) struct Limits {
    name: String,
    seconds: Option<u64>,
    until: Option<Instant>,
    tokens: Option<u64>,
    /// The limit that was reached.
    pub(crate) reached: Option<Notice>,
}

impl Limits {
    /// The limits of a definition; the time starts now.
    pub(crate) fn of(role: Option<&Definition>) -> Self {
        let Some(role) = role else { return Self::default() };
        let seconds = role.limits.seconds;
        // A limit that overflows is ignored.
        let until = seconds.and_then(|s| Instant::now().checked_add(Duration::from_secs(s)));
        Self { name: role.name.clone(), seconds, until, tokens: role.limits.tokens, reached: None }
    }

    /// Resolves once, when the time is over.
    pub(crate) async fn late(&self) {
        match self.until.filter(|_| self.reached.is_none()) {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    }

    /// Records that the time is over.
    pub(crate) fn over(&mut self) {
        let text =
            format!("The limit of {} seconds for {} was reached.", self.seconds.unwrap_or(0), self.name);
        self.reached = Some(self.notice(text));
    }

    /// Records usage. True: the limit was reached just now.
    pub(crate) fn used(&mut self, usage: &Usage) -> bool {
        let used = usage.context().saturating_add(usage.output);
        let over = self.reached.is_none() && self.tokens.is_some_and(|most| used >= most);
        if over {
            let text = format!(
                "The limit of {} tokens for {} was reached: {used}.",
                self.tokens.unwrap_or(0),
                self.name
            );
            self.reached = Some(self.notice(text));
        }
        over
    }

    fn notice(&self, text: String) -> Notice {
        Notice::new(NoticeKind::Budget, text).hint(format!(
            "The limit is set in the definition of {} (`tiller agents list` shows its file).",
            self.name
        ))
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::{
        AgentState, ChildView, EntryBody, EntryId, Message, Origin, Part, SessionId, Time,
    };

    use super::*;

    #[test]
    fn the_last_agent_that_ends_is_heard_only_when_it_is_waited_for() {
        let view = |id: &str, state| AgentView { id: AgentId(id.into()), state, ..AgentView::default() };
        let mut crew = Crew::default();
        assert!(!crew.hear(&view("main/a1", AgentState::Running)));
        assert!(!crew.hear(&view("main/a2", AgentState::Queued)));
        assert!(crew.waited_for() && crew.count() == 2);
        assert!(!crew.hear(&view("main/a1", AgentState::Done)), "another works, and nobody waits yet");
        crew.held = Some(end(1, None));
        assert!(!crew.hear(&view("main/a1", AgentState::Done)));
        assert!(crew.hear(&view("main/a2", AgentState::Failed)));
        assert!(!crew.waited_for());
        // An agent that ended without a report is reported.
        let behind = |state| AgentView {
            child: Some(Box::new(ChildView { background: true, ..ChildView::default() })),
            parent: Some(AgentId::main()),
            ..view("main/a4", state)
        };
        crew.hear(&behind(AgentState::Running));
        crew.hear(&behind(AgentState::Done));
        assert!(crew.waited_for() && crew.all_ended());
        let entry = |text: &str| Entry {
            id: EntryId(Default::default()),
            parent: None,
            session: SessionId(Default::default()),
            agent: AgentId::main(),
            time: Time(0),
            body: EntryBody::User {
                message: Message::text("go"),
                origin: Origin::Prompt,
                content: vec![Part::Text { text: text.into() }],
                taint: None,
                learnings: Vec::new(),
            },
            snapshot: None,
        };
        crew.mark_reported(&entry("agent a3 \"x\" is done"));
        assert!(crew.waited_for());
        crew.mark_reported(&entry("agent a4 \"x\" is done"));
        assert!(!crew.waited_for());
        crew.hear(&view("main/a3", AgentState::Running));
        crew.left = true;
        assert!(!crew.waited_for());
    }

    #[test]
    fn too_many_tokens_are_told_once() {
        let mut limits = Limits { name: "looker".into(), tokens: Some(100), ..Limits::default() };
        let usage = |input, output| Usage { input, output, ..Usage::default() };
        assert!(!limits.used(&usage(90, 9)));
        assert!(limits.used(&usage(90, 10)));
        assert!(!limits.used(&usage(200, 10)), "it is known");
        let said = limits.reached.unwrap().message;
        assert_eq!(said, "The limit of 100 tokens for looker was reached: 100.");
    }

    fn end(input: u64, cost_usd: Option<f64>) -> Event {
        let usage = Usage { input, ..Usage::default() };
        let (status, text) = (tiller_protocol::event::TurnStatus::Done, String::new());
        let body = EventBody::Turn(TurnEvent::TurnFinished { status, text, usage, cost_usd, error: None });
        let session = SessionId(Default::default());
        Event { seq: 1, time: Time(0), session, agent: AgentId::main(), cause: None, body }
    }

    fn used(event: Event) -> (u64, Option<f64>) {
        let EventBody::Turn(TurnEvent::TurnFinished { usage, cost_usd, .. }) = event.body else { panic!() };
        (usage.input, cost_usd)
    }

    /// The run is stopped while an agent works: what it has used since the end of the turn counts.
    #[test]
    fn an_end_that_was_held_back_has_what_the_agents_used_since() {
        let row = |id: &str, input, usd| AgentView {
            id: AgentId(id.into()),
            usage: Usage { input, ..Usage::default() },
            cost: Some(Cost::from_usd(usd)),
            ..AgentView::default()
        };
        let mut crew = Crew::default();
        // Turns before this run are no part of it.
        for row in [row("main", 100, 2.0), row("main/a1", 0, 0.0), row("main", 110, 2.25)] {
            crew.note(&row);
        }
        crew.hold(&end(10, Some(0.25)));
        assert_eq!(used(crew.take_held().unwrap()), (10, Some(0.25)));
        assert!(crew.take_held().is_none());
        crew.hold(&end(10, Some(0.25)));
        crew.note(&row("main/a1", 5, 0.5));
        crew.note(&row("main/a1", 7, 1.0));
        assert_eq!(used(crew.take_held().unwrap()), (17, Some(1.25)));
        crew.hold(&end(10, None));
        assert_eq!(used(crew.take_held().unwrap()), (17, None), "a part of the cost is not known");
    }

    /// The end that is reported has the usage and cost of the turns whose ends were not.
    #[test]
    fn the_last_end_has_what_the_turns_before_it_used() {
        let told = |ends: &[(u64, Option<f64>)]| {
            let mut crew = Crew::default();
            let mut last = (0, None);
            for (input, cost) in ends {
                let event = crew.with_turns_before(end(*input, *cost));
                crew.hold(&event);
                last = used(event);
            }
            last
        };
        assert_eq!(told(&[(1, Some(0.25))]), (1, Some(0.25)));
        assert_eq!(told(&[(1, Some(0.25)), (2, Some(0.5)), (4, Some(1.0))]), (7, Some(1.75)));
        assert_eq!(told(&[(1, None), (2, Some(0.5))]), (3, None), "a part of the cost is not known");
        assert_eq!(told(&[(1, Some(0.5)), (2, None)]), (3, None));
        assert_eq!(told(&[(0, None), (2, Some(0.5)), (0, None)]), (2, Some(0.5)), "a turn without a request");
    }
}
