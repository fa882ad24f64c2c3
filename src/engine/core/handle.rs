//! What the loop does with each report: one method per concern.

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
            Msg::Crew(msg) => self.crew_msg(msg),
            Msg::Child(msg) => self.child_message(msg),
            Msg::External(msg) => self.external_message(msg),
            Msg::Watch(seen) => self.seen(seen),
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
            TurnMsg::Quiet { .. } => self.quiet(),
            TurnMsg::StreamEnded { n, result, .. } => self.feed(Input::StreamEnded { n, result }),
            TurnMsg::WaitOver { turn, n } => self.wait_over(turn, n),
            TurnMsg::ToolDone { call_id, done, .. } => self.tool_done(&call_id, *done),
        }
    }

    fn context_message(&mut self, msg: ContextMsg) {
        match msg {
            ContextMsg::Compacted(done) => self.compacted(*done),
            ContextMsg::Aside(done) => self.aside_done(*done),
            ContextMsg::TitleFound { session, title } => self.title_found(session, &title),
            ContextMsg::SideCall(msg) => self.side_msg(msg),
        }
    }

    fn prompt_message(&mut self, msg: PromptMsg) {
        match msg {
            PromptMsg::Composed(composed) => self.composed(*composed),
            PromptMsg::LineDone(done) => self.shell_done(*done),
            PromptMsg::RanOnBoth(audit) => self.ran_both(*audit),
            PromptMsg::Comments(found) => self.comments_found(found),
            PromptMsg::GoalChecked(checked) => self.goal_checked(*checked),
            PromptMsg::Todos { items, reply } => self.set_todos(items, reply),
        }
    }

    fn question_message(&mut self, msg: QuestionMsg) {
        match msg {
            QuestionMsg::Ask { agent, call, body, reply } => self.ask(agent, call, body, reply),
            QuestionMsg::Answered { about, reply } => self.answered(about, reply),
            QuestionMsg::Over => self.ask_over(),
            QuestionMsg::Decided { tool, what, decision, by } => {
                let decided = AskEvent::PermissionDecided { id: None, tool, what, decision, by };
                self.bus.publish(&self.place(), EventBody::Ask(decided));
            }
            QuestionMsg::Settled(audit) => self.outside_decided(*audit),
            QuestionMsg::Trusted { yes, result } => self.trusted(yes, result),
            QuestionMsg::KeyTried(tried) => self.key_tried(*tried),
            QuestionMsg::SettingsRead(read) => self.settings_read(*read),
        }
    }

    fn session_message(&mut self, msg: SessionMsg) {
        match msg {
            SessionMsg::Opened { no, client, cause, result } => self.opened(no, client, cause, *result),
            SessionMsg::Forked(forked) => self.forked(*forked),
            SessionMsg::Went(went) => self.went(*went),
            SessionMsg::Carried(done) => self.carried(*done),
        }
    }

    fn files_message(&mut self, msg: FilesMsg) {
        match msg {
            FilesMsg::UndoFound(found) => self.undo_found(*found),
            FilesMsg::Reviewed(reviewed) => self.reviewed(*reviewed),
            FilesMsg::NotKept(not_kept) => self.not_kept(&not_kept),
            FilesMsg::Restored(restored) => self.files_restored(*restored),
            FilesMsg::Asked(asked) => self.files_asked(asked),
            FilesMsg::Notices => self.files_words(),
            FilesMsg::Touched(files) => self.touched(files),
        }
    }

    fn child_message(&mut self, msg: ChildMsg) {
        match msg {
            ChildMsg::Pause(paused) => self.pause(paused),
            ChildMsg::Stop { hard } => self.stop_child(hard),
            ChildMsg::Limits(limits) => self.new_limits(limits),
            ChildMsg::Profile(profile) => self.parents_profile(profile),
            ChildMsg::ChildEnded { id, text } => self.hears(id, text),
            ChildMsg::TimeUp { turn } => self.time_up(turn),
            ChildMsg::BudgetChanged { turn } => self.purse_changed(turn),
            // The agent may have received another message meanwhile: then that turn's end is reported.
            ChildMsg::Ended { turns, status, text, why }
                if self.turn.begun == turns && !self.turn_begins() =>
            {
                self.child_over(status, text, why);
            }
            ChildMsg::Ended { .. } => {}
        }
    }

    fn external_message(&mut self, msg: ExternalMsg) {
        match msg {
            ExternalMsg::ProgramTrust { turn, found } => self.program_trust(turn, found),
            ExternalMsg::Said { turn, said } => self.outside_said(turn, *said),
            ExternalMsg::OutputRests { turn, call, piece } if self.is_live(turn) => {
                self.outside_rests(call, piece);
            }
            ExternalMsg::Titled { turn } if self.is_live(turn) => self.titled(),
            ExternalMsg::OutputRests { .. } | ExternalMsg::Titled { .. } => {}
        }
    }
}
