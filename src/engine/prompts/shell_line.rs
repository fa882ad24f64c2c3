//! `!` and `!!` lines: commands of the person's own. The output of `!!` stays with the person, and no rule judges
//! it; that of `!` is shared with the model, so what may not be read is not shown by it.
//!
//! They run in a shell of the person's own, so that the agent's commands never wait for them. One runs at a time; later
//! ones wait their turn, and clients receive both states.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::json;
use tiller_protocol::event::{ReplyEvent, ToolEvent};
use tiller_protocol::tool::Display;
use tiller_protocol::view::{AuditRow, ShellLineView};
use tiller_protocol::{CommandId, EntryBody, EventBody, Message, Notice, NoticeKind, Origin, Part};
use tiller_tool::shell::run_line;
use tiller_tool::{ToolError, run_guarded};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::job::{WHAT, cut, failed, outcome_word, text_of};
use crate::lock::lock;
use crate::prompts::msg::{PromptMsg, RunningLine, ShellDone, Typed};
use crate::turn::Input;

/// Characters of output kept in the note of a private line.
const NOTE: usize = 4_000;

/// Ends the name of the shell in which the lines of the person run; the agent's has none of it.
const OWN: &str = "!";

fn started(view: &ShellLineView) -> EventBody {
    EventBody::Tool(ToolEvent::ShellStarted { line: view.clone() })
}

impl Core {
    pub(crate) fn shell_line(&mut self, client: ClientId, cause: CommandId, line: String, share: bool) {
        let off = self.services.tool("terminal").is_none();
        if off || self.session.read_only {
            let why = if off { "commands are turned off" } else { "this session is open read-only" };
            return self.refuse(client, cause, Notice::new(NoticeKind::User, why));
        }
        if line.trim().is_empty() {
            return self.refuse(client, cause, Notice::new(NoticeKind::User, "the command is empty"));
        }
        self.services.permit.refresh().into_iter().for_each(|n| self.notice(n));
        let root = &self.services.workspace.root;
        if let Some(why) = self.services.permit.unshared(&self.identity.id, &line, root).filter(|_| share) {
            let notice = Notice::new(
                NoticeKind::User,
                format!("the model would see its output, but this is not allowed: {why}"),
            )
            .hint("!! runs it and keeps its output private");
            return self.refuse(client, cause, notice);
        }
        let view = ShellLineView {
            call_id: format!("line-{}", cause.0),
            line: self.redact(&line),
            shared: share,
            waits: self.prompts.typed.running.is_some(),
        };
        let typed = Typed { place: self.place_of(Some(cause)), line, view };
        if typed.view.waits {
            self.bus.publish(&typed.place, started(&typed.view));
            self.prompts.typed.waiting.push_back(typed);
        } else {
            self.run_typed(typed);
        }
    }

    fn run_typed(&mut self, typed: Typed) {
        let Typed { place, line, mut view } = typed;
        view.waits = false;
        self.bus.publish(&place, started(&view));
        let (id, share) = (view.call_id.clone(), view.shared);
        self.prompts.typed.running = Some(view);
        let (mut cx, mut live) = self.tool_cx(&id, None);
        // A shell of its own beside the agent's.
        cx.agent.0.push_str(OWN);
        let running = RunningLine { line: line.clone(), cancel: cx.cancel.clone(), hard: cx.hard.clone() };
        self.prompts.lines.insert(id.clone(), running);
        let head = self.session.head_name.clone();
        let (w, time, began) =
            (Arc::clone(&self.services), self.services.clock.now(), self.services.clock.mono());
        let (tx, bus) = (self.tx.clone(), std::sync::Arc::clone(&self.bus));
        let mut words = crate::context::clean::Stream::new(&self.services.redact, &self.services.growing);
        self.spawn(async move {
            let typed = line.clone();
            let run = AssertUnwindSafe(run_line(&cx, &typed)).catch_unwind();
            tokio::pin!(run);
            let result = loop {
                tokio::select! {
                    result = &mut run => break result.unwrap_or_else(|_| {
                        Err(ToolError::Tell("internal error while running the command; this is a bug in Tiller".into()))
                    }),
                    Some(text) = words.next_of(&mut live) => {
                        let event = ToolEvent::ToolProgress { call_id: id.clone(), text };
                        bus.publish(&place, EventBody::Tool(event));
                    }
                }
            };
            let (output, exit, outcome) = match result {
                Ok(out) => {
                    let exit =
                        if let Some(Display::Output { exit, .. }) = &out.display { *exit } else { None };
                    (text_of(&out.content), exit, out.outcome)
                }
                Err(e) => {
                    let failed = failed(e);
                    (text_of(&failed.content), None, failed.outcome)
                }
            };
            let seconds = w.since(began);
            let done = ShellDone { id, place, head, line, share, output, exit, time, seconds, outcome };
            let _ = tx.send(Msg::Prompt(PromptMsg::LineDone(Box::new(done)))).await;
        });
    }

    pub(crate) fn shell_done(&mut self, done: ShellDone) {
        self.keep_line(done);
        while self.prompts.typed.running.is_none()
            && let Some(next) = self.prompts.typed.waiting.pop_front()
        {
            // What was typed in another session is not for this one's folder and conversation.
            if next.place.session == self.session.id && self.lifecycle.quitting.is_none() {
                self.run_typed(next);
            } else {
                self.not_run(next);
            }
        }
    }

    /// A line that waited is not run any more.
    fn not_run(&self, typed: Typed) {
        let Typed { place, view, .. } = typed;
        let event = ToolEvent::ShellLine {
            line: view.line,
            output: "(not run: it was removed from the queue)".into(),
            exit: None,
            shared: view.shared,
            call_id: view.call_id,
        };
        self.bus.publish(&place, EventBody::Tool(event));
    }

    fn keep_line(&mut self, done: ShellDone) {
        let ShellDone { id, place, head, line, share, output, exit, time, seconds, outcome } = done;
        self.prompts.lines.remove(&id);
        self.prompts.typed.running.take_if(|v| v.call_id == id);
        let (line, output) = (self.redact(&line), self.redact(&output));
        let event = ToolEvent::ShellLine {
            line: line.clone(),
            output: output.clone(),
            exit,
            shared: share,
            call_id: id,
        };
        self.bus.publish(&place, EventBody::Tool(event));
        let body = if share {
            let text = format!("! {line}");
            let said = format!("I ran this command myself:\n$ {line}\n{output}");
            let content = vec![Part::Text { text: said }];
            EntryBody::User { message: Message::text(text), origin: Origin::Shell, content }
        } else {
            let kept: String = output.chars().take(NOTE).collect();
            EntryBody::Note { text: format!("!! {line}\n{kept}") }
        };
        let audit = AuditRow {
            time,
            session: place.session,
            agent: "you".into(),
            tool: if share { "!" } else { "!!" }.into(),
            what: cut(&line, WHAT),
            decision: "allow".into(),
            by: "the user's own command".into(),
            seconds,
            outcome: outcome_word(outcome).into(),
        };
        if place.session != self.session.id {
            // Another session was opened meanwhile: it waits in its own.
            let told = After { events: Vec::new(), then: Then::Nothing };
            self.saves.push(self.services.store.add_pending(place.session, &head, body), told);
            let told = After { events: Vec::new(), then: Then::Nothing };
            self.saves.push(self.services.store.record_audit(audit), told);
            return;
        }
        if self.occupied() {
            // Between a call and its result nothing may stand: it is kept, and waits for a safe point.
            self.prompts.pending.push(body);
            let mut append = self.append();
            append.pending = Some(self.prompts.pending.clone());
            append.audit.push(audit);
            self.save(append, Vec::new(), Then::Nothing);
            if self.turn.live.is_some() {
                self.feed(Input::Steer(true));
            }
            return;
        }
        let entry = self.session.grow(&self.services, body);
        let event = Self::added(&entry);
        let mut append = self.append().entries(vec![entry]);
        append.audit.push(audit);
        self.save(append, vec![(place, event)], Then::Nothing);
    }

    /// Background processes, as text rows.
    pub(crate) fn processes(&mut self, client: ClientId, cause: CommandId) {
        let state = Arc::clone(&lock(&self.services.tool_state));
        let (bus, place) = (Arc::clone(&self.bus), self.place_of(Some(cause)));
        let redact = Arc::clone(&self.services.redact);
        self.spawn(async move {
            // Their last words may stand on a screen, which is read under a lock.
            let rows = tokio::task::spawn_blocking(move || state.shells.rows()).await.unwrap_or_default();
            let rows = rows.iter().map(|row| redact(row)).collect();
            bus.reply(client, &place, ReplyEvent::ProcessesReply { rows });
        });
    }

    /// Ends a background process, or a line of the person's.
    pub(crate) fn stop_process(&mut self, client: ClientId, cause: CommandId, id: String) {
        if id == crate::prompts::msg::LINE {
            // Whichever are asked on the side now.
            let asides =
                self.prompts.lines.iter().filter(|(name, _)| name.starts_with(crate::prompts::msg::LINE));
            asides.for_each(|(_, line)| line.cancel.cancel());
            return;
        }
        if let Some(at) = self.prompts.typed.waiting.iter().position(|t| t.view.call_id == id) {
            if let Some(typed) = self.prompts.typed.waiting.remove(at) {
                self.not_run(typed);
            }
            return;
        }
        if let Some(line) = self.prompts.lines.get(&id) {
            // The second time is harder.
            if line.cancel.is_cancelled() {
                line.hard.cancel();
            }
            line.cancel.cancel();
            return;
        }
        self.process_tool(client, cause, json!({ "action": "kill", "id": id }), |said| {
            ReplyEvent::DoneReply { said }
        });
    }

    fn process_tool(
        &mut self,
        client: ClientId,
        cause: CommandId,
        args: serde_json::Value,
        reply: impl FnOnce(String) -> ReplyEvent + Send + 'static,
    ) {
        let Some(tool) = self.services.tool("process") else {
            let notice = Notice::new(NoticeKind::User, "there are no background processes");
            return self.refuse(client, cause, notice);
        };
        let (cx, live) = self.tool_cx("process", None);
        let (bus, place) = (std::sync::Arc::clone(&self.bus), self.place_of(Some(cause)));
        self.spawn(async move {
            let event = match run_guarded(tool, args, &cx).await {
                Ok(out) => reply(text_of(&out.content)),
                Err(ToolError::Tell(why)) => {
                    ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, why) }
                }
                Err(e) => ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, e.to_string()) },
            };
            drop(live);
            bus.reply(client, &place, event);
        });
    }
}
