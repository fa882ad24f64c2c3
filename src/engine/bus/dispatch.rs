//! Hands each command to the concern that carries it out.

use crate::bus::queries;
use crate::bus::view;
use crate::compare::run;
use crate::compare::take;
use crate::context::compaction;
use crate::context::effort;
use crate::core::hooks;
use crate::files::restore;
use crate::files::restore::undo;
use crate::goal;
use crate::money;
use crate::prompts::aside;
use crate::prompts::message_commands::go_on;
use crate::prompts::queue;
use crate::prompts::shell_line;
use crate::questions::answers;
use crate::questions::keys;
use crate::session::branch;
use crate::session::branch::carry;
use crate::session::branch::fork;
use crate::session::branch::names;
use crate::session::manage;
use crate::session::mcp;
use crate::session::open;
use crate::session::settings;
use crate::tool_call::{calls, inner};
use crate::undo::export;
use crate::undo::review;
use crate::undo::undoing;
use crate::watching::feed;
use tiller_protocol::command::{
    AskCommand, CompareCommand, ContextCommand, SessionCommand, TodoCommand, TurnCommand, WatchCommand,
};
use tiller_protocol::event::StateEvent;
use tiller_protocol::{Command, CommandBody, CommandId, EventBody, Notice, NoticeKind};

use crate::bus::ClientId;
use crate::core::Core;
use crate::files::restore::back::RestoreChoices;
use crate::lock::lock;
use crate::turn::Input;

pub(crate) fn dispatch(core: &mut Core, client: ClientId, command: Command) {
    let id = command.id;
    if core.lifecycle.quitting.is_some() {
        return;
    }
    let everybodys = matches!(command.body, CommandBody::Agent(_) | CommandBody::Ask(_));
    if let Some(agent) = command.agent.clone().filter(|a| *a != core.identity.id && !everybodys) {
        return core.with_crew(|crew, host| crew.route(host, client, &agent, command));
    }
    match command.body {
        CommandBody::Turn(c) => match c {
            TurnCommand::Submit { message, mode } => queue::submit(core, client, id, message, mode),
            TurnCommand::Interrupt { hard } => core.interrupt(hard),
            TurnCommand::Continue => go_on::go_on(core, client, id),
            TurnCommand::SkipWait => core.child_driver().skip_retry_wait(),
            TurnCommand::Shell { line, share } => shell_line::shell_line(core, client, id, line, share),
            TurnCommand::Aside { question } => aside::aside(core, client, id, &question),
            TurnCommand::StopTool { id: tool } => stop_tool(core, client, id, tool),
        },
        CommandBody::Queue(c) => queue::queue_command(core, client, id, c),
        CommandBody::Ask(AskCommand::Answer { id: ask, reply }) => {
            answers::answer(core, client, id, ask, reply)
        }
        CommandBody::Session(c) => match c {
            SessionCommand::New => open::open(core, client, id, None),
            SessionCommand::Open { id: session } => open::open(core, client, id, Some(session)),
            SessionCommand::Rename { id: session, title } => {
                manage::rename(core, client, id, session, &title)
            }
            SessionCommand::Trash { id: session, trashed } => {
                manage::trash(core, client, id, session, trashed)
            }
            SessionCommand::Archive { id: session, archived } => {
                manage::archive(core, client, id, session, archived)
            }
            SessionCommand::Fork { entry } => fork::fork(core, client, id, entry, None),
            SessionCommand::CarryOver { from, focus } => carry::carry_over(core, client, id, from, focus),
            SessionCommand::OpenBranch { head } => branch::open_branch(core, client, id, head),
            SessionCommand::LabelBranch { session, head, label } => {
                names::label_branch(core, client, id, session, head, &label)
            }
            SessionCommand::ArchiveBranch { session, head, archived } => {
                names::archive_branch(core, client, id, session, head, archived)
            }
            SessionCommand::Tag { session, name, entry } => {
                names::tag(core, client, id, session, &name, entry)
            }
            SessionCommand::Checkpoint { name } => restore::checkpoint(core, client, id, &name),
            SessionCommand::Restore { entry, what, keep, force, parts } => restore::restore(
                core,
                client,
                id,
                entry,
                what,
                RestoreChoices { keep, force, parts, ..RestoreChoices::default() },
            ),
            SessionCommand::UndoRestore { redo } => undo::undo_restore(core, client, id, redo),
            SessionCommand::UndoOp { redo } => undoing::undo_op(core, client, id, redo),
            SessionCommand::Export { id: session, file } => export::export(core, client, id, session, &file),
            SessionCommand::SetModel { model } => manage::set_model(core, client, id, model),
            SessionCommand::SetProfile { profile } => manage::set_profile(core, client, id, profile),
            SessionCommand::SetEffort { effort } => effort::set_effort(core, client, id, effort),
            SessionCommand::SetBudget { usd } => manage::set_budget(core, client, id, usd),
            SessionCommand::StoreKey { provider, key } => keys::store_key(core, client, id, provider, &key),
            SessionCommand::SwitchHook { id: hook, on } => hooks::switch(core, client, id, &hook, on),
            SessionCommand::Mcp { server, act, shown } => mcp::act(core, client, id, server, act, shown),
            SessionCommand::Reload => settings::reload(core, Some((client, id))),
            SessionCommand::Quit => core.quit(Some(id)),
        },
        CommandBody::Context(c) => match c {
            ContextCommand::Compact { focus } => compact_by_hand(core, client, id, focus),
            ContextCommand::CompactPreview => view::compact_preview(core, client, id),
            ContextCommand::Report => view::context_report(core, client, id),
        },
        CommandBody::Goal(c) => goal::goal_command(core, client, id, c),
        CommandBody::Todo(c) => todo_command(core, client, id, &c),
        CommandBody::Review(c) => review::review_command(core, client, id, c),
        CommandBody::Compare(CompareCommand::Take { pair, parts }) => {
            take::start_take(core, client, id, pair, parts)
        }
        CommandBody::Compare(CompareCommand::Run { pair, line }) => {
            run::run_both(core, client, id, pair, line)
        }
        CommandBody::Watch(c) => match c {
            WatchCommand::Pause { paused } => core.watching.pause(paused),
            WatchCommand::Mute { path } => core.watching.mute(&path),
            WatchCommand::Diff { path } => feed::watch_diff(core, client, id, path),
        },
        CommandBody::Agent(c) => core.with_crew(|crew, host| crew.command(host, client, id, c)),
        CommandBody::Pane(c) => core.external_driver().terminal_command(c),
        CommandBody::Skill(c) => crate::prompts::skills::command(core, client, id, c),
        CommandBody::Memory(c) => crate::memory::commands::command(core, client, id, c),
        CommandBody::Learning(c) => crate::learning::command(core, client, id, c),
        CommandBody::Query(q) => queries::query(core, client, id, q),
    }
}

fn stop_tool(core: &mut Core, client: ClientId, cause: CommandId, id: String) {
    if inner::stop(core, &id) {
        return;
    }
    if core.turn.live.as_ref().is_some_and(|l| l.calls.running.contains_key(&id)) {
        core.feed(Input::StopTool { call_id: id });
    } else {
        shell_line::stop_process(core, client, cause, id);
    }
}

fn todo_command(core: &mut Core, client: ClientId, cause: CommandId, command: &TodoCommand) {
    if core.session.read_only {
        let notice = Notice::new(NoticeKind::User, "this session is open read-only");
        return core.refuse(client, cause, notice);
    }
    let edited = {
        let mut todo = lock(&core.context.todo);
        todo.edit(command).map(|said| (said, todo.items.clone()))
    };
    match edited {
        Err(why) => core.refuse(client, cause, Notice::new(NoticeKind::User, why)),
        Ok((said, items)) => {
            core.context.news.add(format!("the user edited the todo list: {said}"));
            calls::todos_saved(core, items, true);
        }
    }
}

fn compact_by_hand(core: &mut Core, client: ClientId, cause: CommandId, focus: Option<String>) {
    let why = if core.session.read_only {
        "this session is open read-only"
    } else if core.occupied() {
        "a turn is running: compact after it ends"
    } else if let Err(notice) = money::may_ask(core, &compaction::summariser(core)) {
        return core.refuse(client, cause, notice);
    } else {
        return compaction::compact(core, None, false, 1, focus, Some((client, cause)));
    };
    core.refuse(client, cause, Notice::new(NoticeKind::User, why));
}

pub(crate) fn stopped_event() -> EventBody {
    EventBody::State(StateEvent::Stopped {})
}
