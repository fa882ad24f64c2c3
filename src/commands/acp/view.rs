//! Converts events of a session to updates for its client.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use tiller_protocol::event::{StateEvent, ToolEvent, TurnEvent};
use tiller_protocol::{
    AgentId, AgentView, Cost, EntryBody, EntryId, Event, EventBody, StopReason, Time, TodoItem, TodoStatus,
    ToolCatalog,
};

use super::{call, modes};

/// Maximum bytes of live output that are shown, from its end.
const TAIL: usize = 8 << 10;
/// Milliseconds between two updates of live output, since each repeats the tail.
pub(super) const BEAT: i64 = 250;

/// The state of what was sent to the client.
pub(super) struct View {
    pub(super) root: PathBuf,
    /// The tools of this program: titles and kinds of calls.
    pub(super) tools: ToolCatalog,
    pub(super) choices: modes::Choices,
    /// Why the last reply ended.
    pub(super) stop: Option<StopReason>,
    /// The last entry that was sent.
    pub(super) last: Option<EntryId>,
    /// Running calls, by agent and id, since two agents may use the same id.
    open: HashMap<(AgentId, String), Live>,
    /// Part of the present reply was sent already.
    spoken: bool,
    bill: Bill,
}

/// The cost of the session: the sum of its agents.
#[derive(Default)]
struct Bill {
    /// Cost of each agent, by its newest row.
    costs: HashMap<AgentId, Cost>,
    /// Context of the main agent and its window.
    context: Option<(u64, u64)>,
    /// The sum in the last update.
    told: Option<Cost>,
}

impl Bill {
    /// Takes over the row of an agent. `Some`: the update for the client, where the sum has changed.
    fn paid(&mut self, row: &AgentView) -> Option<Value> {
        if let Some(cost) = row.cost {
            self.costs.insert(row.id.clone(), cost);
        }
        // Each request of a turn of the main agent has an event of its own.
        let follows = row.id.is_main() && row.since.is_some();
        let changed = !self.costs.is_empty() && self.told != Some(self.sum());
        (changed && !follows).then(|| self.update()).flatten()
    }

    fn sum(&self) -> Cost {
        self.costs.values().fold(Cost(0), |sum, cost| sum.plus(*cost))
    }

    fn update(&mut self) -> Option<Value> {
        let (used, size) = self.context?;
        let mut update = json!({"sessionUpdate": "usage_update", "used": used, "size": size});
        if !self.costs.is_empty() {
            let sum = self.sum();
            self.told = Some(sum);
            update["cost"] = json!({"amount": sum.usd(), "currency": "USD"});
        }
        Some(update)
    }
}

/// Output of a running call.
#[derive(Default)]
struct Live {
    tail: String,
    told: Option<Time>,
    /// There is output since the last update.
    late: bool,
}

impl Live {
    /// The end of its output, as an update.
    fn shown(&mut self, key: &(AgentId, String)) -> Value {
        self.late = false;
        let from = self.tail.ceil_char_boundary(self.tail.len().saturating_sub(TAIL));
        json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": call::shown_id(&key.0, &key.1),
            "content": [call::words(&call::fenced(&self.tail[from..]))],
        })
    }
}

impl View {
    pub(super) fn new(root: PathBuf, tools: ToolCatalog, choices: modes::Choices) -> Self {
        Self {
            root,
            tools,
            choices,
            stop: None,
            last: None,
            open: HashMap::new(),
            spoken: false,
            bill: Bill::default(),
        }
    }

    /// The updates for one event. For agents that the main one started only the calls are reported: their texts are in
    /// the result of the call that started them.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Value> {
        let main = event.agent.is_main();
        match &event.body {
            EventBody::Turn(turn) if main => self.turn(turn),
            EventBody::State(StateEvent::AgentChanged { view }) => self.bill.paid(view).into_iter().collect(),
            EventBody::Turn(TurnEvent::TurnFinished { .. }) => self.closed(&event.agent),
            EventBody::Tool(tool) => self.tool(event.time, &event.agent, tool),
            EventBody::State(state) if main => self.state(event.time, state),
            _ => Vec::new(),
        }
    }

    /// Takes over the rows of all agents, for a client that opens the session or has missed events. `Some`: the update for the
    /// client, where the sum has changed.
    pub(super) fn agents(&mut self, rows: &[AgentView]) -> Option<Value> {
        for row in rows {
            if let Some(window) = row.window.filter(|_| row.id.is_main()) {
                self.bill.context = Some((row.context, window));
            }
            if let Some(cost) = row.cost {
                self.bill.costs.insert(row.id.clone(), cost);
            }
        }
        let changed = !self.bill.costs.is_empty() && self.bill.told != Some(self.bill.sum());
        changed.then(|| self.bill.update()).flatten()
    }

    /// The present cost, as an update; `None`: no request was made.
    pub(super) fn usage(&mut self) -> Option<Value> {
        self.bill.update()
    }

    fn turn(&mut self, event: &TurnEvent) -> Vec<Value> {
        match event {
            TurnEvent::TextDelta { text } => {
                self.spoken = true;
                vec![said(text)]
            }
            TurnEvent::ThinkingDelta { text } => vec![thought(text)],
            TurnEvent::UserMessage { entry, .. } => {
                self.last = Some(*entry);
                Vec::new()
            }
            TurnEvent::AssistantMessage { entry, text, node } => {
                self.last = Some(*entry);
                if let EntryBody::Assistant { stop, .. } = &node.body {
                    self.stop = Some(stop.clone());
                }
                let whole = !std::mem::take(&mut self.spoken) && !text.is_empty();
                whole.then(|| said(text)).into_iter().collect()
            }
            TurnEvent::Retrying { seconds, why, discard, .. } => {
                let why = call::line(why);
                let cut = std::mem::take(&mut self.spoken) && *discard;
                let mut out = Vec::new();
                if cut {
                    // Text that was sent cannot be withdrawn.
                    out.push(said("\n\n(The reply was interrupted here and starts again.)\n\n"));
                }
                out.push(thought(&format!("Retry in {seconds:.0} s: {why}\n")));
                out
            }
            TurnEvent::Usage { cost_usd, context, window: Some(window), .. } => {
                self.bill.context = Some((*context, *window));
                if let Some(usd) = cost_usd {
                    self.bill.costs.insert(AgentId::main(), Cost::from_usd(*usd));
                }
                self.bill.update().into_iter().collect()
            }
            TurnEvent::Compacted { tokens_before, tokens_after, .. } => vec![thought(&format!(
                "The conversation was compacted: about {tokens_before} tokens became {tokens_after}.\n"
            ))],
            _ => Vec::new(),
        }
    }

    fn tool(&mut self, time: Time, agent: &AgentId, event: &ToolEvent) -> Vec<Value> {
        let key = |id: &str| (agent.clone(), id.to_owned());
        match event {
            ToolEvent::ToolStarted { call_id, name, arguments, verb, target } => {
                // A call that asked before a restart may be known already.
                self.open.insert(key(call_id), Live::default());
                let mut update =
                    call::begun(&self.root, &self.tools, call_id, name, arguments, "in_progress");
                call::of_program(&self.tools, &mut update, name, verb, target);
                call::of_agent(&mut update, agent);
                vec![update]
            }
            ToolEvent::ToolProgress { call_id, text } => self.progress(time, key(call_id), text),
            ToolEvent::ToolFinished { call_id, name, arguments, outcome, display, node, .. } => {
                if agent.is_main() {
                    self.last = Some(node.id);
                }
                let mut out = Vec::new();
                if self.open.remove(&key(call_id)).is_none() {
                    out.push(call::begun(&self.root, &self.tools, call_id, name, arguments, "pending"));
                }
                if let EntryBody::ToolResult { content, .. } = &node.body {
                    out.push(call::ended(&self.root, call_id, *outcome, content, display.as_ref()));
                }
                out.iter_mut().for_each(|update| call::of_agent(update, agent));
                out
            }
            // The lines of its calls are what a script shows while it runs.
            ToolEvent::InnerCall { call_id, call, most } if call.outcome.is_some() => {
                let line = format!("{}/{most} {} {}\n", call.number, call.verb, call.target);
                self.progress(time, key(call_id), &line)
            }
            ToolEvent::InnerCall { .. } | ToolEvent::ShellStarted { .. } | ToolEvent::ShellLine { .. } => {
                Vec::new()
            }
        }
    }

    fn progress(&mut self, time: Time, key: (AgentId, String), text: &str) -> Vec<Value> {
        let Some(live) = self.open.get_mut(&key) else { return Vec::new() };
        live.tail.push_str(text);
        if live.tail.len() > 2 * TAIL {
            let from = live.tail.ceil_char_boundary(live.tail.len() - TAIL);
            live.tail.drain(..from);
        }
        if live.told.is_some_and(|t| time.millis() - t.millis() < BEAT) {
            live.late = true;
            return Vec::new();
        }
        live.told = Some(time);
        vec![live.shown(&key)]
    }

    /// Whether output waits, so that [`Self::late`] is due after [`BEAT`].
    pub(super) fn has_late(&self) -> bool {
        self.open.values().any(|l| l.late)
    }

    /// Output that came too soon after the last update.
    pub(super) fn late(&mut self) -> Vec<Value> {
        self.open.iter_mut().filter(|(_, l)| l.late).map(|(key, l)| l.shown(key)).collect()
    }

    fn state(&mut self, time: Time, event: &StateEvent) -> Vec<Value> {
        match event {
            StateEvent::TodoChanged { todos, .. } => vec![plan(todos)],
            StateEvent::TitleChanged { title } => vec![json!({
                "sessionUpdate": "session_info_update",
                "title": call::line(title),
                "updatedAt": time,
            })],
            StateEvent::ProfileChanged { profile } => {
                self.choices.profile = *profile;
                vec![
                    json!({"sessionUpdate": "current_mode_update", "currentModeId": profile.name()}),
                    self.options(),
                ]
            }
            StateEvent::ModelChanged { model, .. } => {
                self.choices.chose(model);
                vec![self.options()]
            }
            _ => Vec::new(),
        }
    }

    fn options(&self) -> Value {
        json!({"sessionUpdate": "config_option_update", "configOptions": self.choices.options()})
    }

    /// Ends the turn: unfinished calls are reported as failed.
    pub(super) fn over(&mut self) -> Vec<Value> {
        self.spoken = false;
        self.closed(&AgentId::main())
    }

    /// The unfinished calls of an agent.
    fn closed(&mut self, agent: &AgentId) -> Vec<Value> {
        let open = self.open.extract_if(|(of, _), _| of == agent);
        open.map(|((of, id), _)| status(&call::shown_id(&of, &id), "failed")).collect()
    }
}

/// The status of a call.
pub(super) fn status(id: &str, status: &str) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status})
}

/// Text of the agent.
pub(super) fn said(text: &str) -> Value {
    chunk("agent_message_chunk", text)
}

/// Thoughts of the agent, and notes about its progress.
pub(super) fn thought(text: &str) -> Value {
    chunk("agent_thought_chunk", text)
}

pub(super) fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

/// The todo list. Order is priority.
pub(super) fn plan(todos: &[TodoItem]) -> Value {
    let entries: Vec<Value> = todos
        .iter()
        .filter(|t| t.status != TodoStatus::Cancelled)
        .map(|t| {
            let status = match t.status {
                TodoStatus::Pending => "pending",
                TodoStatus::InProgress => "in_progress",
                TodoStatus::Completed | TodoStatus::Cancelled => "completed",
            };
            json!({"content": t.content, "priority": "medium", "status": status})
        })
        .collect();
    json!({"sessionUpdate": "plan", "entries": entries})
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
