//! One line per command.

use tiller_protocol::command::{
    AskCommand, CompareCommand, ContextCommand, SessionCommand, TodoCommand, TurnCommand, WatchCommand,
};
use tiller_protocol::event::StateEvent;
use tiller_protocol::{Command, CommandBody, CommandId, EventBody, Notice, NoticeKind};

use crate::bus::ClientId;
use crate::core::Core;
use crate::files::back::Wishes;
use crate::lock::lock;
use crate::turn::Input;

impl Core {
    pub(crate) fn dispatch(&mut self, client: ClientId, command: Command) {
        let id = command.id;
        if self.lifecycle.quitting.is_some() {
            return;
        }
        let everybodys = matches!(command.body, CommandBody::Agent(_) | CommandBody::Ask(_));
        if let Some(agent) = command.agent.clone().filter(|a| *a != self.identity.id && !everybodys) {
            return self.route_to(client, &agent, command);
        }
        match command.body {
            CommandBody::Turn(c) => match c {
                TurnCommand::Submit { message, mode } => self.submit(client, id, message, mode),
                TurnCommand::Interrupt { hard } => self.interrupt(hard),
                TurnCommand::Continue => self.go_on(client, id),
                TurnCommand::SkipWait => self.skip_wait(),
                TurnCommand::Shell { line, share } => self.shell_line(client, id, line, share),
                TurnCommand::Aside { question } => self.aside(client, id, &question),
                TurnCommand::StopTool { id: tool } => self.stop_tool(client, id, tool),
            },
            CommandBody::Queue(c) => self.queue_command(client, id, c),
            CommandBody::Ask(AskCommand::Answer { id: ask, reply }) => self.answer(client, id, ask, reply),
            CommandBody::Session(c) => match c {
                SessionCommand::New => self.open(client, id, None),
                SessionCommand::Open { id: session } => self.open(client, id, Some(session)),
                SessionCommand::Rename { id: session, title } => self.rename(client, id, session, &title),
                SessionCommand::Trash { id: session, trashed } => self.trash(client, id, session, trashed),
                SessionCommand::Archive { id: session, archived } => {
                    self.archive(client, id, session, archived)
                }
                SessionCommand::Fork { entry } => self.fork(client, id, entry, None),
                SessionCommand::CarryOver { from, focus } => self.carry_over(client, id, from, focus),
                SessionCommand::OpenBranch { head } => self.open_branch(client, id, head),
                SessionCommand::LabelBranch { session, head, label } => {
                    self.label_branch(client, id, session, head, &label)
                }
                SessionCommand::ArchiveBranch { session, head, archived } => {
                    self.archive_branch(client, id, session, head, archived)
                }
                SessionCommand::Tag { session, name, entry } => self.tag(client, id, session, &name, entry),
                SessionCommand::Checkpoint { name } => self.checkpoint(client, id, &name),
                SessionCommand::Restore { entry, what, keep, force, parts } => {
                    self.restore(client, id, entry, what, Wishes { keep, force, parts, ..Wishes::default() })
                }
                SessionCommand::UndoRestore { redo } => self.undo_restore(client, id, redo),
                SessionCommand::UndoOp { redo } => self.undo_op(client, id, redo),
                SessionCommand::Export { id: session, file } => self.export(client, id, session, &file),
                SessionCommand::SetModel { model } => self.set_model(client, id, model),
                SessionCommand::SetProfile { profile } => self.set_profile(client, id, profile),
                SessionCommand::SetEffort { effort } => self.set_effort(client, id, effort),
                SessionCommand::SetBudget { usd } => self.set_budget(client, id, usd),
                SessionCommand::StoreKey { provider, key } => self.store_key(client, id, provider, &key),
                SessionCommand::Reload => self.reload(Some((client, id))),
                SessionCommand::Quit => self.quit(Some(id)),
            },
            CommandBody::Context(c) => match c {
                ContextCommand::Compact { focus } => self.compact_by_hand(client, id, focus),
                ContextCommand::CompactPreview => self.compact_preview(client, id),
                ContextCommand::Report => self.context_report(client, id),
            },
            CommandBody::Goal(c) => self.goal_command(client, id, c),
            CommandBody::Todo(c) => self.todo_command(client, id, &c),
            CommandBody::Review(c) => self.review_command(client, id, c),
            CommandBody::Compare(CompareCommand::Take { pair, parts }) => self.take(client, id, pair, parts),
            CommandBody::Compare(CompareCommand::Run { pair, line }) => self.run_both(client, id, pair, line),
            CommandBody::Watch(c) => match c {
                WatchCommand::Pause { paused } => self.watching.pause(paused),
                WatchCommand::Mute { path } => self.watching.mute(&path),
                WatchCommand::Diff { path } => self.watch_diff(client, id, path),
            },
            CommandBody::Agent(c) => self.agent_command(client, id, c),
            CommandBody::Pane(c) => self.pane_command(c),
            CommandBody::Query(q) => self.query(client, id, q),
        }
    }

    pub(crate) fn interrupt(&mut self, hard: bool) {
        if self.turn.live.is_some() {
            self.feed(Input::Interrupt { hard });
        } else {
            self.stop_job();
        }
    }

    fn stop_tool(&mut self, client: ClientId, cause: CommandId, id: String) {
        if self.turn.live.as_ref().is_some_and(|l| l.calls.contains_key(&id)) {
            self.feed(Input::StopTool { call_id: id });
        } else {
            self.stop_process(client, cause, id);
        }
    }

    fn todo_command(&mut self, client: ClientId, cause: CommandId, command: &TodoCommand) {
        if self.session.read_only {
            let notice = Notice::new(NoticeKind::User, "this session is open read-only");
            return self.refuse(client, cause, notice);
        }
        let edited = {
            let mut todo = lock(&self.context.todo);
            todo.edit(command).map(|said| (said, todo.items.clone()))
        };
        match edited {
            Err(why) => self.refuse(client, cause, Notice::new(NoticeKind::User, why)),
            Ok((said, items)) => {
                self.context.news.add(format!("the user edited the todo list: {said}"));
                self.todos_saved(items, true);
            }
        }
    }

    fn compact_by_hand(&mut self, client: ClientId, cause: CommandId, focus: Option<String>) {
        let why = if self.session.read_only {
            "this session is open read-only"
        } else if self.occupied() {
            "a turn is running: compact when it has ended"
        } else if let Err(notice) = self.may_ask(&self.summariser()) {
            return self.refuse(client, cause, notice);
        } else {
            return self.compact(None, false, 1, focus, Some((client, cause)));
        };
        self.refuse(client, cause, Notice::new(NoticeKind::User, why));
    }

    pub(crate) fn stopped_event() -> EventBody {
        EventBody::State(StateEvent::Stopped {})
    }
}
