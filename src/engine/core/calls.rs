//! Tool calls on the engine's side: started, shown, and their results put into the conversation.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tiller_protocol::event::ToolEvent;
use tiller_protocol::view::AuditRow;
use tiller_protocol::{EntryBody, EventBody, Part, TodoItem, ToolCall, Touch};
use tiller_tool::ToolCx;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::context::clean;
use crate::core::msg::Msg;
use crate::core::ports::CallPorts;
use crate::core::saves::Then;
use crate::core::{Core, RunningCall};
use crate::job::{Job, outcome_word, what};
use crate::lock::lock;
use crate::turn::msg::CallDone;
use crate::turn::msg::TurnMsg;
use crate::turn::{CallResult, Input};

/// Live output that waits for the bus. A tool drops what does not fit.
const PROGRESS: usize = 64;

impl Core {
    pub(crate) fn tool_cx(&self, call_id: &str, call: Option<String>) -> (ToolCx, mpsc::Receiver<String>) {
        let (progress, live) = mpsc::channel(PROGRESS);
        let call_entry = self
            .session
            .tail
            .iter()
            .rev()
            .find(|e| matches!(e.body, EntryBody::Assistant { .. }))
            .map(|e| e.id);
        let ports = CallPorts {
            call,
            tx: self.tx.clone(),
            todo: Arc::clone(&self.context.todo),
            writes: self.watching.writes.clone(),
            store: self.services.store.clone(),
            main: self.identity.child.as_ref().map_or_else(|| self.tx.clone(), |c| c.main.main().clone()),
            root: self.identity.child.as_ref().map_or(self.session.id, |c| c.root),
            entry: call_entry,
        };
        let cx = ToolCx {
            session: self.session.id,
            agent: self.identity.id.clone(),
            call_id: call_id.to_owned(),
            workspace: Arc::clone(&self.services.workspace),
            cancel: CancellationToken::new(),
            hard: CancellationToken::new(),
            progress,
            ports: Arc::new(ports),
            clock: Arc::clone(&self.services.clock),
            limits: Arc::new(crate::core::services::limits(&self.services.config())),
            spill: self.spill(),
            plans: self.plans(),
            child_env: self.services.child_env.now(),
            variables: Arc::default(),
            state: Arc::clone(&lock(&self.services.tool_state)),
        };
        (cx, live)
    }

    /// Where full outputs of this session are kept.
    pub(crate) fn spill(&self) -> PathBuf {
        self.services.places.state.join("spill").join(self.session.id.to_string())
    }

    pub(crate) fn run_tool(&mut self, call: ToolCall) {
        let Some(turn) = self.turn.live.as_ref().map(|l| l.no) else { return };
        // The machine runs only tools of its table, which was made from this list.
        let Some(tool) = self.services.tool(&call.name) else { return };
        let place = self.place();
        let target = tool.target(&call.arguments);
        let (cx, mut live_output) = self.tool_cx(&call.id, Some(call.id.clone()));
        let (cancel, hard) = (cx.cancel.clone(), cx.hard.clone());
        // Shown after the reply that asked for it, also when it runs before that is on disk.
        let mut arguments = call.arguments.clone();
        clean::value(&self.services.redact, &mut arguments);
        let target = self.redact(&target);
        let started = ToolEvent::ToolStarted {
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments,
            verb: tool.verb().to_owned(),
            target: target.clone(),
        };
        self.show(place.clone(), EventBody::Tool(started));
        let barrier = self.saves.barrier();
        let (bus, at, id) = (Arc::clone(&self.bus), place.clone(), call.id.clone());
        let mut words = clean::Stream::new(&self.services.redact, &self.services.growing);
        let forward = AbortOnDropHandle::new(tokio::spawn(async move {
            while let Some(text) = words.next_of(&mut live_output).await {
                bus.publish(&at, EventBody::Tool(ToolEvent::ToolProgress { call_id: id.clone(), text }));
            }
        }));
        let job = Job {
            services: Arc::clone(&self.services),
            bus: Arc::clone(&self.bus),
            place,
            tool,
            args: call.arguments,
            cx,
            permit: self.services.permit.clone(),
            profile: self.session.profile,
            tx: self.tx.clone(),
            session: self.session.id,
            root: self.identity.child.as_ref().map_or(self.session.id, |c| c.root),
            turn: self.turn.live.as_ref().and_then(|l| l.root),
            reviews: Arc::clone(&self.files.reviews),
            writes: self.watching.writes.clone(),
            watched: self.watched(),
            paths: Vec::new(),
            known: Vec::new(),
            asked: false,
            changed: None,
        };
        let (tx, call_id) = (self.tx.clone(), call.id.clone());
        let task = tokio::spawn(async move {
            // What only looks may run while the reply that asked for it is still being saved.
            if !matches!(tool.touch(), Touch::Read | Touch::Plan) {
                barrier.await;
            }
            let done = Box::new(job.run().await);
            drop(forward);
            // The engine may have ended.
            let _ = tx.send(Msg::Turn(TurnMsg::ToolDone { turn, call_id, done })).await;
        });
        let act = format!("{} {target}", tool.verb());
        if let Some(live) = &mut self.turn.live {
            let running = RunningCall { cancel, hard, _task: AbortOnDropHandle::new(task), act };
            live.calls.insert(call.id, running);
        }
        self.agent_changed();
    }

    pub(crate) fn tool_done(&mut self, call_id: &str, mut done: CallDone) {
        if let Some(step) = done.step.take() {
            self.keep_step(call_id, step);
        }
        if let Some(child) = &mut self.identity.child {
            child.work.calls += 1;
            let root = &self.services.workspace.root;
            let names =
                done.wrote.iter().map(|p| tiller_protocol::names::written(p.strip_prefix(root).unwrap_or(p)));
            child.files.extend(names);
        }
        if done.result.nobody {
            self.child_refused();
        }
        self.tell_work();
        if let Some(live) = &mut self.turn.live {
            live.calls.remove(call_id);
            live.audits.insert(call_id.to_owned(), done.audit);
            if let Some(mut args) = done.args {
                clean::value(&self.services.redact, &mut args);
                live.args.insert(call_id.to_owned(), args);
            }
        }
        self.feed(Input::ToolDone { call_id: call_id.to_owned(), result: done.result });
    }

    /// The result takes its place in the conversation: with reminders and news at its end, and its row in
    /// the audit.
    pub(crate) fn append_result(&mut self, call_id: &str, name: String, mut result: CallResult) {
        let arguments = self
            .turn
            .live
            .as_mut()
            .and_then(|l| l.args.remove(call_id))
            .unwrap_or(Value::Object(serde_json::Map::new()));
        if let Some(hint) = lock(&self.context.todo).called(&name, result.outcome) {
            result.content.push(Part::Text { text: hint });
        }
        result.content.extend(self.news_part());
        let audit =
            self.turn.live.as_mut().and_then(|l| l.audits.remove(call_id)).unwrap_or_else(|| AuditRow {
                time: self.services.clock.now(),
                session: self.session.id,
                agent: self.identity.id.0.clone(),
                tool: name.clone(),
                what: what(&self.services.redact, &arguments),
                decision: "none".into(),
                by: "engine".into(),
                seconds: 0.0,
                outcome: outcome_word(result.outcome).into(),
            });
        let (outcome, seconds) = (result.outcome, result.seconds);
        let body = EntryBody::ToolResult {
            call_id: call_id.to_owned(),
            name: name.clone(),
            outcome,
            content: result.content,
            display: result.display,
            seconds,
        };
        let entry = self.session.grow(&self.services, body);
        let (output, display) = crate::job::told(&entry);
        let event = ToolEvent::ToolFinished {
            call_id: call_id.to_owned(),
            name,
            arguments,
            ok: outcome.ok(),
            outcome,
            output,
            seconds,
            display,
            node: Box::new(entry.clone()),
        };
        let place = self.place();
        let mut append = self.append().entries(vec![entry]);
        append.audit.push(audit);
        self.save(append, vec![(place, EventBody::Tool(event))], Then::Nothing);
    }

    pub(crate) fn set_todos(&mut self, mut items: Vec<TodoItem>, reply: oneshot::Sender<Result<(), String>>) {
        items.iter_mut().for_each(|i| i.content = self.redact(&i.content));
        lock(&self.context.todo).replace(items.clone());
        self.todos_saved(items, false);
        let _ = reply.send(Ok(()));
    }

    pub(crate) fn todos_saved(&mut self, todos: Vec<TodoItem>, by_person: bool) {
        let mut append = self.append();
        append.todos = Some(todos.clone());
        let event = tiller_protocol::event::StateEvent::TodoChanged { todos, by_person };
        let place = self.place();
        self.save(append, vec![(place, EventBody::State(event))], Then::Nothing);
    }
}
