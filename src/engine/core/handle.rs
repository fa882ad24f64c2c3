//! What the loop does with each report: one method per concern.

use crate::compare::run;
use crate::context::compaction;
use crate::context::side_call;
use crate::files::record;
use crate::files::restore;
use crate::files::restore::by_tool;
use crate::goal;
use crate::job::calls;
use crate::prompts::aside;
use crate::prompts::comments;
use crate::prompts::compose;
use crate::prompts::shell_line;
use crate::prompts::titles;
use crate::questions::answers;
use crate::questions::asking;
use crate::questions::keys;
use crate::questions::trust;
use crate::session::branch;
use crate::session::branch::carry;
use crate::session::branch::fork;
use crate::session::open;
use crate::session::settings;
use crate::turn::driver;
use crate::undo::review;
use crate::undo::undoing;
use crate::watching::feed;
use tiller_protocol::EventBody;
use tiller_protocol::event::AskEvent;

use crate::context::msg::ContextMsg;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::crew::msg::{ChildMsg, ExternalMsg};
use crate::files::msg::FilesMsg;
use crate::prompts::msg::PromptMsg;
use crate::questions::msg::QuestionMsg;
use crate::session::msg::SessionMsg;
use crate::turn::Input;
use crate::turn::msg::TurnMsg;

impl Core {
    pub(super) fn message(&mut self, msg: Msg) {
        match msg {
            // A report about an older turn is dropped.
            Msg::Turn(msg) if self.is_live(msg.turn()) => self.turn_message(msg),
            Msg::Turn(_) => {}
            Msg::Context(msg) => self.context_message(msg),
            Msg::Prompt(msg) => self.prompt_message(msg),
            Msg::Question(msg) => self.question_message(msg),
            Msg::Session(msg) => self.session_message(msg),
            Msg::Files(msg) => self.files_message(msg),
            Msg::Crew(msg) => self.crew_driver().message(msg),
            Msg::Child(msg) => self.child_message(msg),
            Msg::External(msg) => self.external_message(msg),
            Msg::Watch(seen) => feed::seen(self, seen),
            Msg::Quit => self.quit_pressed(),
        }
    }

    fn turn_message(&mut self, msg: TurnMsg) {
        match msg {
            TurnMsg::Chunks { n, chunks, .. } => {
                for chunk in chunks {
                    self.feed(Input::Chunk { n, chunk });
                }
            }
            TurnMsg::Quiet { .. } => driver::quiet(self),
            TurnMsg::StreamEnded { n, result, .. } => self.feed(Input::StreamEnded { n, result }),
            TurnMsg::WaitOver { turn, n } => self.child_driver().retry_wait_over(turn, n),
            TurnMsg::ToolDone { call_id, done, .. } => calls::tool_done(self, &call_id, *done),
        }
    }

    fn context_message(&mut self, msg: ContextMsg) {
        match msg {
            ContextMsg::Compacted(done) => compaction::compacted(self, *done),
            ContextMsg::Aside(done) => aside::aside_done(self, *done),
            ContextMsg::TitleFound { session, title } => titles::title_found(self, session, &title),
            ContextMsg::SideCall(msg) => side_call::side_msg(self, msg),
        }
    }

    fn prompt_message(&mut self, msg: PromptMsg) {
        match msg {
            PromptMsg::Composed(composed) => compose::composed(self, *composed),
            PromptMsg::LineDone(done) => shell_line::shell_done(self, *done),
            PromptMsg::RanOnBoth(audit) => run::ran_both(self, *audit),
            PromptMsg::Comments(found) => comments::comments_found(self, found),
            PromptMsg::GoalChecked(checked) => goal::goal_checked(self, *checked),
            PromptMsg::Todos { items, reply } => calls::set_todos(self, items, reply),
        }
    }

    fn question_message(&mut self, msg: QuestionMsg) {
        match msg {
            QuestionMsg::Ask { agent, call, body, reply } => asking::ask(self, agent, call, body, reply),
            QuestionMsg::Answered { about, reply } => answers::answered(self, about, reply),
            QuestionMsg::Over => self.child_driver().question_closed(),
            QuestionMsg::Decided { tool, what, decision, by } => {
                let decided = AskEvent::PermissionDecided { id: None, tool, what, decision, by };
                self.bus.publish(&self.place(), EventBody::Ask(decided));
            }
            QuestionMsg::Settled(audit) => self.external_driver().audit_decided(*audit),
            QuestionMsg::Trusted { yes, result } => trust::trusted(self, yes, result),
            QuestionMsg::KeyTried(tried) => keys::key_tried(self, *tried),
            QuestionMsg::SettingsRead(read) => settings::settings_read(self, *read),
        }
    }

    fn session_message(&mut self, msg: SessionMsg) {
        match msg {
            SessionMsg::Opened { no, client, cause, result } => {
                open::opened(self, no, client, cause, *result)
            }
            SessionMsg::Forked(forked) => fork::forked(self, *forked),
            SessionMsg::Went(went) => branch::went(self, *went),
            SessionMsg::Carried(done) => carry::carried(self, *done),
        }
    }

    fn files_message(&mut self, msg: FilesMsg) {
        match msg {
            FilesMsg::UndoFound(found) => undoing::undo_found(self, *found),
            FilesMsg::Reviewed(reviewed) => review::reviewed(self, *reviewed),
            FilesMsg::NotKept(not_kept) => record::not_kept(self, &not_kept),
            FilesMsg::Restored(restored) => restore::files_restored(self, *restored),
            FilesMsg::Asked(asked) => by_tool::files_asked(self, asked),
            FilesMsg::Notices => record::files_words(self),
            FilesMsg::Touched(files) => self.child_driver().record_files(files),
        }
    }

    fn child_message(&mut self, msg: ChildMsg) {
        match msg {
            ChildMsg::Pause(paused) => self.child_driver().set_paused(paused),
            ChildMsg::Stop { hard } => self.child_driver().stop(hard),
            ChildMsg::Limits(limits) => self.child_driver().set_limits(limits),
            ChildMsg::Profile(profile) => self.child_driver().parent_profile_changed(profile),
            ChildMsg::ChildEnded { id, text } => self.child_driver().child_ended(id, text),
            ChildMsg::TimeUp { turn } => self.child_driver().time_limit_reached(turn),
            ChildMsg::BudgetChanged { turn } => self.child_driver().budget_changed(turn),
            // The agent may have received another message meanwhile: then that turn's end is reported.
            ChildMsg::Ended { turns, status, text, why }
                if self.turn.begun == turns && !self.turn_begins() =>
            {
                self.child_driver().report_end(status, text, why);
            }
            ChildMsg::Ended { .. } => {}
        }
    }

    fn external_message(&mut self, msg: ExternalMsg) {
        match msg {
            ExternalMsg::ProgramTrust { turn, found } => self.external_driver().trust_checked(turn, found),
            ExternalMsg::Said { turn, said } => self.external_driver().message(turn, *said),
            ExternalMsg::OutputRests { turn, call, piece } if self.is_live(turn) => {
                self.external_driver().output_paused(call, piece);
            }
            ExternalMsg::Titled { turn } if self.is_live(turn) => {
                self.external_driver().title_interval_over()
            }
            ExternalMsg::OutputRests { .. } | ExternalMsg::Titled { .. } => {}
        }
    }
}
