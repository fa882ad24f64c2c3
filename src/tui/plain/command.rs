//! The `/` commands of plain mode.

use tiller_protocol::command::{
    ContextCommand, CostBy, HistoryScope, Query, QueueCommand, ReviewCommand, SessionCommand, TodoCommand,
    TurnCommand, WatchCommand,
};
use tiller_protocol::skill::SkillQuery;
use tiller_protocol::{CommandBody, Effort, Message, ModelRef, Profile, SearchQuery, SendMode, TodoStatus};

use super::Plain;

/// A command by word: help, and what it does with the rest of the line.
pub(super) struct PlainCommand {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) run: fn(&mut Plain, &str) -> Result<(), String>,
}

/// All commands, in the order of the help text.
pub(super) const ALL: &[PlainCommand] = &[
    PlainCommand {
        name: "help",
        help: "this list",
        run: |p, _| {
            p.help();
            Ok(())
        },
    },
    PlainCommand {
        name: "stop",
        help: "stop the running turn",
        run: |p, _| {
            p.stop_turn(false);
            Ok(())
        },
    },
    PlainCommand {
        name: "kill",
        help: "stop the running turn and its commands at once",
        run: |p, _| send(p, CommandBody::Turn(TurnCommand::Interrupt { hard: true })),
    },
    PlainCommand {
        name: "go",
        help: "continue a turn that failed or was stopped; retry now instead of waiting",
        run: |p, _| {
            let c = if p.model.agent.turn.retry.is_some() {
                TurnCommand::SkipWait
            } else {
                TurnCommand::Continue
            };
            send(p, CommandBody::Turn(c))
        },
    },
    PlainCommand {
        name: "queue",
        help: "queue TEXT: send it as a separate turn afterwards",
        run: |p, text| submit(p, text, SendMode::Queue),
    },
    PlainCommand {
        name: "now",
        help: "now TEXT: stop the turn, then send it",
        run: |p, text| submit(p, text, SendMode::Now),
    },
    PlainCommand {
        name: "waiting",
        help: "waiting messages; waiting drop NUMBER, waiting edit NUMBER TEXT, waiting first NUMBER",
        run: waiting,
    },
    PlainCommand {
        name: "btw",
        help: "btw QUESTION: ask something on the side; the conversation does not change",
        run: |p, text| {
            if text.is_empty() {
                return Err("write the question after it".into());
            }
            send(p, CommandBody::Turn(TurnCommand::Aside { question: text.into() }))
        },
    },
    PlainCommand {
        name: "new",
        help: "start a new session",
        run: |p, _| send(p, CommandBody::Session(SessionCommand::New)),
    },
    PlainCommand {
        name: "sessions",
        help: "list the sessions of this folder",
        run: |p, text| {
            send(
                p,
                CommandBody::Query(Query::Sessions {
                    everywhere: false,
                    filter: text.into(),
                    archived: false,
                    trashed: false,
                }),
            )
        },
    },
    PlainCommand {
        name: "open",
        help: "open NUMBER: open a session of the last list",
        run: |p, text| {
            let id = numbered(text, p.sessions.len()).map(|i| p.sessions[i].id)?;
            send(p, CommandBody::Session(SessionCommand::Open { id }))
        },
    },
    PlainCommand {
        name: "rename",
        help: "rename TITLE: name this session",
        run: |p, text| {
            let id = p.model.agent.session.summary.as_ref().map(|s| s.id).ok_or("no session is open yet")?;
            send(p, CommandBody::Session(SessionCommand::Rename { id, title: text.into() }))
        },
    },
    PlainCommand {
        name: "models",
        help: "list the models",
        run: |p, _| send(p, CommandBody::Query(Query::Models)),
    },
    PlainCommand {
        name: "model",
        help: "model PROVIDER/NAME: use this model",
        run: |p, text| {
            send(p, CommandBody::Session(SessionCommand::SetModel { model: ModelRef(text.into()) }))
        },
    },
    PlainCommand {
        name: "effort",
        help: "effort off, low, medium, high, max or default: how much the model thinks; with TEXT: \
            for that message only",
        run: |p, text| {
            if let Some((effort, text)) = crate::slash::settings::effort::of_message(text) {
                let message = Message { effort: Some(effort), ..Message::text(text) };
                return send(p, CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer }));
            }
            let effort: Effort = text.parse()?;
            send(p, CommandBody::Session(SessionCommand::SetEffort { effort }))
        },
    },
    PlainCommand {
        name: "mode",
        help: "mode read-only, plan, ask, auto-edit or full: what runs without asking",
        run: |p, text| {
            let profile: Profile = text.parse()?;
            send(p, CommandBody::Session(SessionCommand::SetProfile { profile }))
        },
    },
    PlainCommand {
        name: "budget",
        help: "budget DOLLARS: limit of this session",
        run: |p, text| {
            let usd: f64 = text.parse().map_err(|_| "a number of dollars is needed")?;
            send(p, CommandBody::Session(SessionCommand::SetBudget { usd }))
        },
    },
    PlainCommand {
        name: "answer",
        help: "read the open question again",
        run: |p, _| {
            let ask = p.model.questions.open.first().cloned().ok_or("no question is waiting")?;
            p.question.id = None;
            p.ask(&ask);
            Ok(())
        },
    },
    PlainCommand { name: "todo", help: "read the todo list; todo add TEXT, todo done NUMBER", run: todo },
    PlainCommand { name: "agents", help: super::crew::HELP, run: super::crew::run },
    PlainCommand { name: "tell", help: super::crew::TELL, run: super::crew::tell },
    PlainCommand { name: "rewind", help: super::restore::HELP, run: super::restore::rewind },
    PlainCommand { name: "workflow", help: super::flow::HELP, run: super::flow::run },
    PlainCommand {
        name: "files",
        help: "the last file changes; files pause, files resume",
        run: |p, text| match text {
            "pause" => send(p, CommandBody::Watch(WatchCommand::Pause { paused: true })),
            "resume" | "go on" => send(p, CommandBody::Watch(WatchCommand::Pause { paused: false })),
            _ => {
                let from = p.model.workspace.feed.len().saturating_sub(20);
                let lines: Vec<String> =
                    p.model.workspace.feed[from..].iter().map(|c| c.path.clone()).collect();
                p.say(&format!("Changed files:\n{}", lines.join("\n")));
                Ok(())
            }
        },
    },
    PlainCommand {
        name: "diff",
        help: "diff PATH: what changed in a file",
        run: |p, text| send(p, CommandBody::Watch(WatchCommand::Diff { path: text.into() })),
    },
    PlainCommand {
        name: "review",
        help: "read what the last turn changed; review undo restores rejected hunks",
        run: |p, text| {
            let c =
                if text == "undo" { ReviewCommand::UndoReject } else { ReviewCommand::Open { turn: None } };
            send(p, CommandBody::Review(c))
        },
    },
    PlainCommand {
        name: "compact",
        help: "compact [FOCUS]: compact the conversation so far",
        run: |p, text| {
            let focus = (!text.is_empty()).then(|| text.to_owned());
            send(p, CommandBody::Context(ContextCommand::Compact { focus }))
        },
    },
    PlainCommand {
        name: "compact-preview",
        help: "preview of a compaction",
        run: |p, _| send(p, CommandBody::Context(ContextCommand::CompactPreview)),
    },
    PlainCommand {
        name: "context",
        help: "what takes up the model's context",
        run: |p, _| send(p, CommandBody::Context(ContextCommand::Report)),
    },
    PlainCommand {
        name: "cost",
        help: "cost so far",
        run: |p, _| send(p, CommandBody::Query(Query::Costs { by: CostBy::Model })),
    },
    PlainCommand {
        name: "audit",
        help: "calls that were allowed and denied",
        run: |p, text| send(p, CommandBody::Query(Query::Audit { filter: text.into(), limit: 50 })),
    },
    PlainCommand {
        name: "sandbox",
        help: "what confines commands, and what it does not stop",
        run: |p, _| {
            let lines = crate::dialog::report::sandbox::lines(&p.model);
            p.say(&lines);
            Ok(())
        },
    },
    PlainCommand {
        name: "hooks",
        help: "hooks and how their last runs ended",
        run: |p, _| send(p, CommandBody::Query(Query::Hooks)),
    },
    PlainCommand {
        name: "skills",
        help: "skills, where they are from and what is wrong with them",
        run: |p, _| send(p, CommandBody::Query(Query::Skills { query: SkillQuery::Skills })),
    },
    PlainCommand {
        name: "mcp",
        help: "MCP servers, with their tools and state",
        run: |p, _| send(p, CommandBody::Query(Query::Mcp)),
    },
    PlainCommand {
        name: "processes",
        help: "running background processes",
        run: |p, _| send(p, CommandBody::Query(Query::Processes)),
    },
    PlainCommand {
        name: "ops",
        help: "operations that changed the session",
        run: |p, _| send(p, CommandBody::Query(Query::Ops { limit: 50 })),
    },
    PlainCommand {
        name: "history",
        help: "history [TEXT]: earlier messages",
        run: |p, text| {
            send(
                p,
                CommandBody::Query(Query::History {
                    scope: HistoryScope::Project,
                    filter: text.into(),
                    limit: 20,
                }),
            )
        },
    },
    PlainCommand {
        name: "search",
        help: "search TEXT: find a text in all sessions",
        run: |p, text| {
            if text.is_empty() {
                return Err("write the text after it".into());
            }
            let query = SearchQuery { text: text.into(), limit: 20, ..SearchQuery::default() };
            send(p, CommandBody::Query(Query::Search { query }))
        },
    },
    PlainCommand {
        name: "branches",
        help: "list the branches of this session",
        run: |p, _| send(p, CommandBody::Query(Query::Branches)),
    },
    PlainCommand {
        name: "errors",
        help: "errors so far",
        run: |p, _| {
            let all: Vec<String> = p.model.notices.iter().map(|(_, n)| n.message.clone()).collect();
            p.say(&format!("Notices: {}\n{}", all.len(), all.join("\n")));
            Ok(())
        },
    },
    PlainCommand {
        name: "setup",
        help: "set up a model: a key, a server or the demo",
        run: |p, _| {
            p.open_setup();
            Ok(())
        },
    },
    PlainCommand {
        name: "kill-process",
        help: "kill-process ID: end a background process of /processes",
        run: |p, text| {
            if text.is_empty() {
                return Err("the id of a process is needed: /processes lists them".into());
            }
            send(p, CommandBody::Turn(TurnCommand::StopTool { id: text.into() }))
        },
    },
    PlainCommand {
        name: "quit",
        help: "save and quit",
        run: |p, _| {
            p.quit();
            Ok(())
        },
    },
];

pub(super) fn send(p: &mut Plain, body: CommandBody) -> Result<(), String> {
    p.send(body);
    Ok(())
}

pub(super) fn submit(p: &mut Plain, text: &str, mode: SendMode) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("a text is needed".into());
    }
    send(p, CommandBody::Turn(TurnCommand::Submit { message: Message::text(text), mode }))
}

/// A number from 1 to `len`, as an index.
pub(super) fn numbered(text: &str, len: usize) -> Result<usize, String> {
    match text.trim().parse::<usize>() {
        Ok(n) if (1..=len).contains(&n) => Ok(n - 1),
        _ if len == 0 => Err("no list was shown yet".into()),
        _ => Err(format!("a number from 1 to {len} is needed")),
    }
}

fn waiting(p: &mut Plain, text: &str) -> Result<(), String> {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    let (number, words) = rest.trim().split_once(' ').unwrap_or((rest, ""));
    let at = |p: &Plain| numbered(number, p.model.agent.queue.len());
    match verb {
        "" => {}
        "drop" => {
            let id = at(p).map(|i| p.model.agent.queue[i].id)?;
            return send(p, CommandBody::Queue(QueueCommand::Remove { id }));
        }
        "edit" if words.trim().is_empty() => return Err("the new text is needed".into()),
        "edit" => {
            let q = at(p).map(|i| p.model.agent.queue[i].clone())?;
            // What is attached stays with it.
            let message = Message { text: words.trim().into(), ..q.message };
            return send(p, CommandBody::Queue(QueueCommand::Edit { id: q.id, message }));
        }
        "first" => {
            let id = at(p).map(|i| p.model.agent.queue[i].id)?;
            return send(p, CommandBody::Queue(QueueCommand::Move { id, to: 0 }));
        }
        _ => return Err("drop, edit or first is needed".into()),
    }
    let lines: Vec<String> = p
        .model
        .agent
        .queue
        .iter()
        .enumerate()
        .map(|(i, q)| format!("{}: {}", i + 1, q.message.text))
        .collect();
    p.say(&format!("Waiting messages: {}\n{}", lines.len(), lines.join("\n")));
    Ok(())
}

fn todo(p: &mut Plain, text: &str) -> Result<(), String> {
    if let Some(content) = text.strip_prefix("add ") {
        return send(p, CommandBody::Todo(TodoCommand::Add { content: content.into() }));
    }
    if let Some(n) = text.strip_prefix("done ") {
        let id = numbered(n, p.model.agent.todo.len()).map(|i| p.model.agent.todo[i].id.clone())?;
        return send(p, CommandBody::Todo(TodoCommand::Status { id, status: TodoStatus::Completed }));
    }
    let word = |s: TodoStatus| match s {
        TodoStatus::Pending => "open",
        TodoStatus::InProgress => "now",
        TodoStatus::Completed => "done",
        TodoStatus::Cancelled => "cancelled",
    };
    let lines: Vec<String> = p
        .model
        .agent
        .todo
        .iter()
        .enumerate()
        .map(|(i, t)| format!("{}: {}, {}", i + 1, t.content, word(t.status)))
        .collect();
    p.say(&format!("Todo: {} items\n{}", lines.len(), lines.join("\n")));
    Ok(())
}

/// The hooks, one a line.
pub(super) fn hooks(rows: &[tiller_protocol::HookRow]) -> String {
    use crate::dialog::report::hooks::{outcome, scope};
    let line = |row: &tiller_protocol::HookRow| {
        format!(
            "{} for {}: {}, {}, last run: {}",
            row.event.name(),
            scope(row),
            row.name,
            row.source,
            outcome(row).0
        )
    };
    let lines: Vec<String> = rows.iter().map(line).collect();
    format!("Hooks: {}\n{}", rows.len(), lines.join("\n"))
}
