//! Whole states for clients: the snapshot, the agent's row, where the context goes.

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::view::ContextReport;
use tiller_protocol::{AgentState, AgentView, ChildView, CommandId, EntryBody, SessionSummary, Snapshot};

use crate::bus::ClientId;
use crate::context::{compact, request, tokens};
use crate::core::Core;
use crate::lock::lock;
use crate::session::TAIL;
use crate::turn::Phase;

impl Core {
    pub(crate) fn agent_view(&self) -> AgentView {
        let (state, act) = match &self.turn.live {
            // Its turns follow each other: between them it is at work, too.
            None if self.identity.child.is_some() && self.checks_goal() => {
                (AgentState::Running, "checking the goal".to_owned())
            }
            None => (AgentState::Idle, String::new()),
            Some(l) => {
                let own = l.calls.values().map(|c| c.act.as_str()).min().map(str::to_owned);
                let act = own.or_else(|| self.outside_act()).unwrap_or_default();
                let child = self.identity.child.as_ref();
                if child.is_some_and(|c| c.paused) {
                    // What it began before ends first.
                    let streams = matches!(l.turn.phase(), Phase::Streaming) && l.stream.is_some();
                    (AgentState::Paused, if streams && act.is_empty() { "thinking".into() } else { act })
                } else if self.asks.wait(&self.identity.id)
                    || child.is_some_and(|c| c.waiting > 0)
                    || self.pane_needs()
                {
                    (AgentState::Waiting, act)
                } else if l.over {
                    (AgentState::Running, String::new())
                } else {
                    let doing = match l.turn.phase() {
                        Phase::Streaming if act.is_empty() => "thinking".to_owned(),
                        Phase::Waiting => "waiting to retry".to_owned(),
                        Phase::Compacting { .. } => "compacting".to_owned(),
                        _ => act,
                    };
                    (AgentState::Running, doing)
                }
            }
        };
        AgentView {
            id: self.agent_id(),
            parent: self.identity.id.parent(),
            label: self.identity.child.as_ref().map_or_else(|| "main".into(), |c| c.label.clone()),
            state,
            act,
            model: self.session.model.0.clone(),
            usage: self.session.usage,
            cost: self.session.cost,
            context: self.context_tokens().0,
            window: self.window(),
            since: self.turn.live.as_ref().map(|l| l.since),
            child: self.child_view(),
        }
    }

    /// The part of a child's row that it knows itself; the rest of it is known to the main agent.
    fn child_view(&self) -> Option<Box<ChildView>> {
        self.identity.child.as_ref()?;
        let goal = self.session.goal.as_ref().map(|p| Box::new(p.view().clone()));
        let pane = self.pane_view();
        (goal.is_some() || pane.is_some()).then(|| Box::new(ChildView { pane, goal, ..ChildView::default() }))
    }

    pub(crate) fn summary(&self) -> SessionSummary {
        SessionSummary {
            id: self.session.id,
            title: self.session.title.clone(),
            project: self.session.project.clone(),
            created: self.session.created,
            used: self.session.tail.back().map_or(self.session.created, |e| e.time),
            entries: self.session.earlier + self.session.tail.len() as u64,
            model: self.session.model.clone(),
            cost: self.session.cost,
            archived: self.session.archived,
            exec: self.session.exec,
            open_in: None,
            interrupted: self.session.interrupted.clone(),
            preview: String::new(),
        }
    }

    /// What has arrived of the reply in flight.
    fn partial(&self) -> Vec<tiller_protocol::Block> {
        let mut blocks = self.turn.live.as_ref().map(|l| l.turn.partial()).unwrap_or_default();
        crate::context::clean::blocks(&self.services.redact, &mut blocks);
        blocks
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let skip = self.session.tail.len().saturating_sub(TAIL);
        Snapshot {
            seq: self.bus.seq(),
            session: self.summary(),
            model: self.session.model.clone(),
            profile: self.session.profile,
            effort: Box::new(self.effort_view()),
            read_only: self.session.read_only,
            head: self.head_id(),
            branch: self.branch(),
            entries: self.session.tail.iter().skip(skip).map(|e| (**e).clone()).collect(),
            earlier: self.session.earlier + skip as u64,
            partial: self.partial(),
            todo: lock(&self.context.todo).items.clone(),
            agents: std::iter::once(self.agent_view()).chain(self.crew_rows()).collect(),
            workflows: self.flow_rows(),
            queue: self.prompts.queue.clone(),
            asks: self.asks.list(),
            feed: self.watching.feed.iter().cloned().collect(),
            usage: self.session.usage,
            cost: self.session.cost,
            running: self.turn.live.is_some(),
            git: self.watching.git.clone(),
            goal: self.session.goal.as_ref().map(|p| Box::new(p.view().clone())),
            shell_lines: self.prompts.typed.views(),
        }
    }

    /// `/context`. Before the first message the layers are those that the first request will have.
    pub(crate) fn context_report(&mut self, client: ClientId, cause: CommandId) {
        let live = request::live(&self.session.path);
        let (used, exact) = tokens::of_path(&live);
        let frozen = live.first().and_then(|e| match &e.body {
            EntryBody::Prefix { tools, layers, .. } => Some((layers.clone(), tokens::of_tools(tools))),
            _ => None,
        });
        let messages: u64 = live.iter().skip(1).map(|e| tokens::of_entry(e)).sum();
        let mut report = ContextReport {
            model: self.session.model.clone(),
            window: self.window(),
            used,
            layers: Vec::new(),
            tools: 0,
            messages,
            exact,
        };
        if let Some((layers, tools)) = frozen {
            report.layers = layers;
            report.tools = tools;
            return self.bus.reply(client, &self.place_of(Some(cause)), ReplyEvent::ContextReply { report });
        }
        let specs = self.services.specs.of(&self.services.tools);
        report.tools = tokens::of_tools(&specs);
        let (prefix, bus, place) =
            (self.turn.prefix.clone(), std::sync::Arc::clone(&self.bus), self.place_of(Some(cause)));
        self.spawn(async move {
            report.layers = prefix.await.render().1;
            report.used = report.tools + report.layers.iter().map(|l| l.tokens).sum::<u64>();
            bus.reply(client, &place, ReplyEvent::ContextReply { report });
        });
    }

    pub(crate) fn compact_preview(&mut self, client: ClientId, cause: CommandId) {
        let keep = self.keep();
        match compact::plan(&self.session.path, keep) {
            Some(plan) => {
                let reply = ReplyEvent::CompactPreviewReply { preview: compact::preview(&plan) };
                self.bus.reply(client, &self.place_of(Some(cause)), reply);
            }
            None => {
                let notice = tiller_protocol::Notice::new(
                    tiller_protocol::NoticeKind::User,
                    compact::nothing_to_do(&self.session.path),
                );
                self.refuse(client, cause, notice);
            }
        }
    }
}
