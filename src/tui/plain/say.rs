//! Events as sentences.

use tiller_protocol::entry::EntryBody;
use tiller_protocol::event::{AskEvent, ReplyEvent, StateEvent, ToolEvent, TurnEvent, TurnStatus};
use tiller_protocol::notice::sentence;
use tiller_protocol::permission::denied_for_person;
use tiller_protocol::skill::SkillReply;
use tiller_protocol::tool::{Display, InnerCall};
use tiller_protocol::{
    ChangeKind, Effort, Event, EventBody, Notice, Origin, TodoStatus, ToolCall, ToolOutcome, Who,
};

use super::Plain;
use super::shell::ShellLine;
use crate::app::ui::Exit;
use crate::cell::plain::spoken;

/// Changes of files that are read out one by one; more are counted.
const CHANGES: usize = 5;

impl Plain {
    pub(crate) fn event(&mut self, event: &Event) {
        match &event.body {
            EventBody::Turn(e) => self.turn(e),
            EventBody::Tool(e) => self.tool(e),
            EventBody::Ask(AskEvent::PermissionAsked { ask } | AskEvent::QuestionAsked { ask }) => {
                self.ask(ask)
            }
            EventBody::Ask(AskEvent::QuestionAnswered { id, .. }) => self.answered(Some(*id)),
            EventBody::Ask(AskEvent::PermissionDecided { id, decision, by, .. }) => {
                self.say(&format!("Permission: {}, by {by}.", decision.label()));
                self.answered(*id);
            }
            EventBody::State(e) => self.state(e),
            EventBody::Reply(r) if self.own_commands_read(event.cause, r) => {}
            EventBody::Reply(r) => self.reply(r),
        }
    }

    /// Says what another agent than the main one does: its questions and notices, and when its state changes.
    pub(crate) fn of_another(&mut self, event: &Event, was: Option<tiller_protocol::AgentState>) {
        match &event.body {
            EventBody::Ask(_) | EventBody::State(StateEvent::Notice { .. }) => self.event(event),
            EventBody::State(StateEvent::AgentChanged { view }) if was != Some(view.state) => {
                let name = self.model.path_of(&view.id);
                let result = view.child.as_ref().map_or("", |c| c.result.as_str());
                let result = if result.is_empty() { String::new() } else { format!(": {result}") };
                self.say(&format!("Agent {name} {}{result}", view.state.predicate()));
            }
            _ => {}
        }
    }

    /// The next question, when this one is answered.
    fn answered(&mut self, id: Option<tiller_protocol::AskId>) {
        if self.question.id == id {
            self.question.id = None;
            self.question.unconfirmed = None;
            self.question.choices.clear();
            if let Some(next) = self.model.questions.open.first().cloned() {
                self.ask(&next);
            }
        }
    }

    fn turn(&mut self, e: &TurnEvent) {
        if self.model.agent.turn.awaited.is_none() {
            self.progress.wait = (false, false);
        }
        match e {
            TurnEvent::SessionStarted { title, project, model, profile, resumed } => {
                let word = if *resumed { "Session resumed" } else { "Session started" };
                let title = if title.is_empty() { String::new() } else { format!(" \"{title}\"") };
                self.say(&format!(
                    "{word}{title}. Folder: {project}. Model: {model}. Mode: {}.",
                    profile.word()
                ));
            }
            TurnEvent::UserMessage { text, .. } => self.say(&format!("You: {text}")),
            TurnEvent::TextDelta { text } => self.words(text),
            TurnEvent::AssistantMessage { text, .. } => {
                // What was streamed is not read out again.
                if self.reply.begun {
                    self.end_words();
                } else if !text.is_empty() {
                    let label = self.label();
                    self.say(&format!("{label}: {}", spoken(text)));
                }
            }
            TurnEvent::Awaiting { seconds, limit, setting, .. } => {
                let near = limit.filter(|limit| *seconds * 2.0 >= *limit);
                if let Some(limit) = near {
                    if std::mem::replace(&mut self.progress.wait, (true, true)).1 {
                        return;
                    }
                    self.say(&format!(
                        "Waiting for the first token, {seconds:.0} of {limit:.0} s. {setting} sets the limit."
                    ));
                } else if !std::mem::replace(&mut self.progress.wait.0, true) {
                    self.say("Waiting for the first token. /stop cancels it.");
                }
            }
            TurnEvent::Retrying { attempt, of, seconds, why, .. } => {
                self.end_words();
                self.say(&format!("Retry {attempt} of {of} in {seconds:.0} s: {why}. /stop cancels it."));
            }
            TurnEvent::Compacted { tokens_before, tokens_after, .. } => {
                self.say(&format!("Conversation compacted: {tokens_before} tokens became {tokens_after}."));
            }
            TurnEvent::TurnFinished { status, cost_usd, error, .. } => {
                self.end_words();
                let word = match status {
                    TurnStatus::Done => "Done",
                    TurnStatus::Interrupted => "Stopped",
                    TurnStatus::Failed => "Failed",
                    TurnStatus::Refused => "Denied: an answer was needed",
                    TurnStatus::Limit => "A budget or limit was reached",
                    TurnStatus::Store => "Stopped: the session cannot be saved",
                };
                let money = crate::view::words::money;
                let cost = cost_usd.map_or_else(String::new, |c| format!(" Cost so far {}.", money(c)));
                self.say(&format!("{word}.{cost}"));
                if let Some(n) = error {
                    self.notice(n);
                }
            }
            _ => {}
        }
    }

    fn label(&self) -> String {
        if self.model.agent.session.model.is_demo() { "Demo".into() } else { "Assistant".into() }
    }

    /// Words of the reply: whole lines are read out as they come.
    fn words(&mut self, text: &str) {
        if !self.reply.begun {
            self.reply.begun = true;
            self.reply.partial = format!("{}: ", self.label());
        }
        self.reply.partial.push_str(text);
        if let Some(end) = self.reply.partial.rfind('\n') {
            let rest = self.reply.partial.split_off(end + 1);
            let lines = std::mem::replace(&mut self.reply.partial, rest);
            self.lines(&lines);
        }
    }

    /// Whole lines of the reply. A table is kept until it ends, then read out as sentences.
    fn lines(&mut self, lines: &str) {
        let mut ready = String::new();
        for line in lines.split_inclusive('\n') {
            if line.trim_start().starts_with('|') {
                self.reply.table.push_str(line);
                continue;
            }
            self.take_table(&mut ready);
            ready.push_str(line);
        }
        if !ready.trim().is_empty() {
            self.say(&ready);
        }
    }

    /// The table, if there is one, as sentences behind `out`.
    fn take_table(&mut self, out: &mut String) {
        let table = std::mem::take(&mut self.reply.table);
        if !table.is_empty() {
            out.push_str(&spoken(&table));
            out.push('\n');
        }
    }

    fn end_words(&mut self) {
        let rest = std::mem::take(&mut self.reply.partial);
        self.lines(&rest);
        let mut ready = String::new();
        self.take_table(&mut ready);
        if !ready.trim().is_empty() {
            self.say(&ready);
        }
        self.reply.begun = false;
    }

    fn tool(&mut self, e: &ToolEvent) {
        match e {
            ToolEvent::ToolStarted { call_id, verb, target, .. } => {
                self.end_words();
                // It runs before its message is sent.
                let of =
                    if ToolCall::is_of_message(call_id) { "Tool, for the waiting message" } else { "Tool" };
                self.say(&format!("{of}: {verb} {target}"));
            }
            ToolEvent::ToolFinished { name, outcome, seconds, display, output, node, .. } => {
                let word = match outcome {
                    ToolOutcome::Ok => "ok",
                    ToolOutcome::Error => "failed",
                    ToolOutcome::Denied => "denied",
                    ToolOutcome::Interrupted => "stopped",
                    ToolOutcome::TimedOut => "timed out",
                };
                let measure = match display {
                    Some(Display::Measure { text }) => format!(", {text}"),
                    Some(Display::Diff { files }) => files
                        .iter()
                        .map(|f| format!(", {} plus {} minus {}", f.path, f.added, f.removed))
                        .collect(),
                    Some(Display::Output { exit: Some(n), .. }) => format!(", exit {n}"),
                    Some(Display::Calls { calls, .. }) => match calls.len() {
                        1 => ", 1 call".into(),
                        n => format!(", {n} calls"),
                    },
                    _ => String::new(),
                };
                self.say(&format!("Tool: {name} {word}{measure}, {seconds:.1} s"));
                if !outcome.ok() {
                    let own = node.body.own_text();
                    let output = denied_for_person(own.as_deref().unwrap_or(output));
                    let first: Vec<&str> = output.lines().take(3).collect();
                    self.say(&first.join("\n"));
                }
            }
            ToolEvent::InnerCall { call, most, .. } if call.outcome.is_some() || call.waits => {
                let InnerCall { number, verb, target, .. } = call;
                let word = match call.outcome {
                    None => "waits for your answer",
                    Some(outcome) if outcome.ok() => "ok",
                    Some(_) => "failed",
                };
                self.say(&format!("Call {number} of at most {most}: {verb} {target} {word}"));
            }
            ToolEvent::InnerCall { .. } => {}
            ToolEvent::ShellStarted { line } if line.waits => {
                self.say(&format!("Shell: {} is waiting for the previous command", line.line));
            }
            ToolEvent::ShellStarted { line } => {
                self.say(&format!("Shell: {} is running. Ctrl-C stops it.", line.line));
                self.progress.shell = Some(ShellLine::new(&line.call_id, self.clock.mono()));
            }
            ToolEvent::ShellLine { call_id, line, output, exit, .. } => {
                let shell = self.progress.shell.take_if(|s| s.id == *call_id);
                let exit = exit.map_or_else(String::new, |n| format!(" (exit {n})"));
                // What was read out while it ran is not read out again.
                let rest = shell.filter(|s| s.read_out).map_or_else(|| output.clone(), |s| s.partial);
                self.say(&format!("Shell: {line}{exit}\n{rest}"));
            }
            ToolEvent::ToolProgress { call_id, text } => {
                let shell = self.progress.shell.as_mut().filter(|s| s.id == *call_id);
                if let Some(lines) = shell.and_then(|s| s.push(text)) {
                    self.say(&lines);
                }
            }
        }
    }

    fn state(&mut self, e: &StateEvent) {
        match e {
            StateEvent::TodoChanged { todos, .. } => {
                let done = todos.iter().filter(|t| t.status == TodoStatus::Completed).count();
                let now = todos.iter().find(|t| t.status == TodoStatus::InProgress);
                let now = now.map_or_else(String::new, |t| format!(" Now: {}.", t.content));
                self.say(&format!("Todo: {done} of {} done.{now}", todos.len()));
            }
            StateEvent::WorkspaceChanged { changes } => {
                for c in changes.iter().take(CHANGES) {
                    let kind = match c.kind {
                        ChangeKind::Added => "added",
                        ChangeKind::Modified => "changed",
                        ChangeKind::Deleted => "deleted",
                        ChangeKind::Renamed => "renamed",
                        ChangeKind::Storm => "many files changed",
                        ChangeKind::Git => "git",
                    };
                    let who = match (&c.who, &c.during) {
                        (Who::Shell { .. }, Some(command)) => format!("during {command}"),
                        (Who::Shell { .. }, None) => "by a command".into(),
                        (Who::You, _) => "by you".into(),
                        (Who::Agent { .. }, _) => "by an agent".into(),
                        (Who::Git, _) => "by git".into(),
                    };
                    self.say(&format!("File {kind} {who}: {}", c.path));
                }
                if changes.len() > CHANGES {
                    self.say(&format!("Files: {} more changed.", changes.len() - CHANGES));
                }
            }
            StateEvent::EffortChanged { effort } if effort.chosen != Effort::Default => {
                self.say(&format!("Effort: {}.", effort.used.word()));
            }
            StateEvent::ProfileChanged { profile } => self.say(&format!("Mode: {}.", profile.word())),
            StateEvent::GoalChanged { goal: Some(goal) } => {
                self.say(&format!("{}.", crate::slash::session::goal::described(goal)));
            }
            StateEvent::HeadMoved { draft: Some(draft), .. } => {
                self.say(&format!("The conversation continues before this message: {}", draft.text));
            }
            StateEvent::ModelChanged { model, .. } => self.say(&format!("Model: {model}.")),
            StateEvent::QueueChanged { queue } if !queue.is_empty() => {
                self.say(&format!("Waiting messages: {}.", queue.len()));
            }
            StateEvent::Notice { notice } => self.notice(notice),
            StateEvent::Saving { ok: false, why } => self.say(&format!("Warning: not saving: {why}.")),
            StateEvent::Saving { ok: true, .. } => self.say("Saving works again."),
            StateEvent::Stopped {} => self.exit = Some(Exit::Quit),
            _ => {}
        }
    }

    pub(crate) fn notice(&mut self, n: &Notice) {
        let hints: String = n.hints.iter().map(|h| format!(" What to do: {}", sentence(h))).collect();
        self.say(&format!("Notice: {}{hints}", sentence(&n.message)));
    }

    pub(super) fn reply(&mut self, r: &ReplyEvent) {
        match r {
            ReplyEvent::SnapshotReply { snapshot } => {
                let words: Vec<String> = snapshot
                    .entries
                    .iter()
                    .filter_map(|e| match &e.body {
                        EntryBody::User { message, origin: Origin::Task, .. } => {
                            Some(format!("Task from Tiller: {}", message.text))
                        }
                        EntryBody::User { message, .. } => Some(format!("You: {}", message.text)),
                        EntryBody::Assistant { .. } => {
                            Some(format!("{}: {}", self.label(), spoken(&e.body.search_text())))
                        }
                        _ => None,
                    })
                    .collect();
                if !words.is_empty() {
                    self.say(&words.join("\n"));
                }
                if let Some(ask) = snapshot.asks.first() {
                    self.ask(ask);
                }
            }
            ReplyEvent::SessionsReply { sessions } => {
                self.sessions.clone_from(sessions);
                let lines: Vec<String> =
                    sessions.iter().enumerate().map(|(i, s)| format!("{}: {}", i + 1, s.title)).collect();
                self.say(&format!(
                    "Sessions: {}. /open NUMBER opens one.\n{}",
                    sessions.len(),
                    lines.join("\n")
                ));
            }
            ReplyEvent::ModelsReply { models } => {
                let line = |m: &tiller_protocol::view::ModelChoice| {
                    let why =
                        m.unavailable.as_ref().map_or_else(String::new, |w| format!(", not available: {w}"));
                    format!("{}, {}{why}", m.model, m.source)
                };
                self.say(&format!("Models:\n{}", models.iter().map(line).collect::<Vec<_>>().join("\n")));
            }
            ReplyEvent::CostsReply { rows, total } => {
                for r in rows {
                    let cost =
                        r.cost.map_or_else(|| "price unknown".into(), |c| crate::view::words::money(c.usd()));
                    self.say(&format!("Cost: {}: {} calls, {cost}", r.key, r.calls));
                }
                if let Some(t) = total {
                    self.say(&format!("Total cost: {}.", crate::view::words::money(t.usd())));
                }
            }
            ReplyEvent::ContextReply { report } => {
                let window = report.window.map_or_else(|| "unknown".into(), |w| w.to_string());
                self.say(&format!("Context: {} tokens used, window {window}.", report.used));
                for l in &report.layers {
                    self.say(&format!("Layer {}: {} tokens, from {}", l.name, l.tokens, l.source));
                }
            }
            ReplyEvent::CompactPreviewReply { preview } => self.say(&format!(
                "Compacting would turn {} tokens into {}. {} entries would be summarized, {} kept.{}",
                preview.tokens_before,
                preview.tokens_after,
                preview.summarised,
                preview.kept,
                preview
                    .by_role
                    .iter()
                    .map(|r| format!("\nBy {}: {} entries, {} tokens", r.role, r.entries, r.tokens))
                    .collect::<String>()
            )),
            ReplyEvent::AuditReply { rows } => {
                for r in rows {
                    self.say(&format!(
                        "Audit: {} {}: {} by {}, {}",
                        r.tool,
                        r.what,
                        r.decision.label(),
                        r.by,
                        r.outcome
                    ));
                }
            }
            ReplyEvent::ReviewReply { review } => {
                self.say(&format!("Review: {}, {} files.", review.title, review.files.len()));
                for f in &review.files {
                    self.say(&format!("{}: plus {} minus {}\n{}", f.path, f.added, f.removed, f.diff));
                }
            }
            ReplyEvent::RejectReply { rejected, conflicts } => {
                self.say(&format!("Rejected: {rejected} hunks. Conflicts: {}", conflicts.len()));
            }
            ReplyEvent::HistoryReply { prompts } => self.say(&format!("History:\n{}", prompts.join("\n"))),
            ReplyEvent::SearchReply { page, .. } if page.cancelled => {}
            ReplyEvent::SearchReply { query, page } => {
                let hits = page.hits.iter().map(|hit| format!("{}: {}", hit.title, hit.preview));
                let documents =
                    page.documents.iter().map(|d| format!("{} {}: {}", d.kind.name(), d.title, d.preview));
                let lines: Vec<String> = hits.chain(documents).collect();
                let more = if page.more { " and more" } else { "" };
                let found = |text: &str| format!("Found {text}: {}{more}", lines.len());
                let found = match (&page.instead, &page.suggestion) {
                    (Some(near), _) => format!("Nothing for {}. {}", query.text, found(near.trim())),
                    (None, Some(near)) => format!("{}. Did you mean {}?", found(&query.text), near.trim()),
                    (None, None) => found(&query.text),
                };
                self.say(&format!("{found}\n{}", lines.join("\n")));
            }
            ReplyEvent::ProcessesReply { rows } => {
                let all: Vec<String> = rows.iter().map(ToString::to_string).collect();
                self.say(&format!("Processes: {}\n{}", rows.len(), all.join("\n")))
            }
            ReplyEvent::McpReply { servers, .. } => self.say(&crate::dialog::report::mcp::lines(servers)),
            ReplyEvent::SkillsReply { reply: SkillReply::Skills { rows } } => {
                self.say(&crate::dialog::report::skills::lines(rows));
            }
            ReplyEvent::HooksReply { rows } => self.say(&super::command::hooks(rows)),
            ReplyEvent::WorkflowsReply { files } => self.say(&super::flow::files(files)),
            ReplyEvent::OpsReply { ops, .. } => {
                let lines: Vec<&str> = ops.iter().map(|o| o.title.as_str()).collect();
                self.say(&format!("Operations:\n{}", lines.join("\n")));
            }
            ReplyEvent::BranchesReply { branches, .. } => {
                let line = |b: &tiller_protocol::BranchView| {
                    format!("{}{}: {}", b.name.word(), if b.open { " (open)" } else { "" }, b.words)
                };
                let lines: Vec<String> = branches.iter().map(line).collect();
                self.say(&format!("Branches:\n{}", lines.join("\n")));
            }
            ReplyEvent::CompareReply { compared, .. } => {
                let (left, right) = (&compared.left, &compared.right);
                self.say(&format!(
                    "Comparing {} ({} entries) with {} ({} entries).",
                    left.name, left.entries, right.name, right.entries
                ));
                for f in &compared.files {
                    self.say(&format!("{}: plus {} minus {}\n{}", f.path, f.added, f.removed, f.diff));
                }
            }
            ReplyEvent::TakeReply { said, .. } => self.say(said),
            ReplyEvent::CompareRunReply { line, left, right, .. } => {
                for side in [left, right] {
                    let exit = side.exit.map_or("ended".into(), |n| format!("exit {n}"));
                    self.say(&format!("{line} on {}: {exit}\n{}", side.name, side.tail));
                }
            }
            ReplyEvent::ToolOutputReply { text, .. } => self.say(text),
            ReplyEvent::RestorePreviewReply { preview, .. } => self.say(&super::restore::preview(preview)),
            ReplyEvent::AsideReply { answer, .. } => self.say(&format!("On the side:\n{answer}")),
            ReplyEvent::DiffReply { path, diff } => self.say(&format!("Difference of {path}:\n{diff}")),
            ReplyEvent::ErrorReply { notice } => self.notice(notice),
            ReplyEvent::DoneReply { said } => self.say(said),
            _ => {}
        }
    }
}
