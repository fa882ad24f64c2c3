//! Requests of a review to the engine, and their answers.

use tiller_protocol::command::ReviewCommand;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::review::RejectConflict;
use tiller_protocol::{CommandBody, Message, Notice, NoticeKind};

use super::{OPEN, Phase, REJECT, Review, UNDO};
use crate::app::effect::{Effect, External, Task, Token};
use crate::model::Model;
use crate::model::remarks::{Comment, said};
use crate::panel::composer::request::ComposerRequest;
use crate::panel::{Reply, View};
use crate::text::clean;

impl Review {
    pub(super) fn load(&mut self, turn: Option<tiller_protocol::EntryId>) -> Effect {
        if self.phase != Phase::Ready {
            self.phase = Phase::Loading;
        }
        Effect::ask(CommandBody::Review(ReviewCommand::Open { turn }), OPEN)
    }

    pub(super) fn reject(
        &mut self,
        hunks: Option<Vec<tiller_protocol::review::Reject>>,
        model: &Model,
    ) -> Reply {
        if model.agent.session.read_only {
            return say("This session is open read-only: nothing can be reverted");
        }
        let (Some(turn), Some(hunks)) = (self.state.turn, hunks) else {
            return say("There is no change here to reject");
        };
        self.pending = hunks.iter().map(|h| h.path.clone()).collect();
        self.state.mark = None;
        Reply::with(Effect::ask(CommandBody::Review(ReviewCommand::Reject { turn, hunks }), REJECT))
    }

    pub(super) fn undo() -> Reply {
        Reply::with(Effect::ask(CommandBody::Review(ReviewCommand::UndoReject), UNDO))
    }

    /// Sends the finished remarks as one message, by way of the composer: a message that the engine refuses comes
    /// back there.
    pub(super) fn send(&mut self) -> Reply {
        let Some(text) = self.state.remarks.take_message() else {
            let begun = !self.state.remarks.begun.is_empty();
            return say(match begun {
                true => "This comment is a draft: press c on its line to continue, Enter to save it",
                false => "No comments yet: press c to write one",
            });
        };
        let send = ComposerRequest::Send(Message::text(text));
        let mut effects = vec![Effect::Tell(View::Composer, Box::new(send))];
        if self.layer {
            effects.push(Effect::Pop);
        }
        Reply::Done(effects)
    }

    /// Discards all comments; their text stays in the prompt history.
    pub(super) fn discard(&mut self) -> Reply {
        let remarks = std::mem::take(&mut self.state.remarks);
        let all: Vec<Comment> = remarks.done.into_iter().chain(remarks.begun).collect();
        if all.is_empty() {
            return say("There are no comments to discard");
        }
        let keep = ComposerRequest::Keep(Message::text(said(&all)));
        let told = "Comments discarded; Up in the composer restores their text";
        Reply::Done(vec![
            Effect::Tell(View::Composer, Box::new(keep)),
            Effect::Toast(Notice::new(NoticeKind::Info, told)),
        ])
    }

    /// Takes over comments that another review of this window changed.
    pub(super) fn read_remarks(&mut self, model: &Model) {
        let Some(session) = model.shown_session() else { return };
        let (remarks, revision) = model.remarks.read(model.environment.folders.draft.as_deref(), session);
        if revision != self.revision {
            self.revision = revision;
            self.changes += 1;
            self.state.remarks = remarks;
        }
    }

    /// Saves the comments, including the unfinished one in the field.
    pub(super) fn keep_remarks(&mut self, model: &Model) {
        if let Some(f) = &self.typing {
            self.state.remarks.begin(&f.spot, f.edit.text());
        }
        if let Some(session) = model.shown_session() {
            self.revision = model.remarks.write(session, &self.state.remarks);
        }
    }

    pub(super) fn edit(&self, model: &Model) -> Reply {
        let Some(summary) = &model.agent.session.summary else { return Reply::Ignored };
        let Some((path, line, _)) = self.state.place() else { return Reply::Ignored };
        let file = tiller_protocol::names::path(&summary.project).join(path);
        Reply::with(Effect::Task(Task::Suspend(External::Editor { file, line: Some(line) })))
    }

    pub(super) fn answered(&mut self, token: Token, reply: &ReplyEvent) -> Reply {
        match (token, reply) {
            (OPEN, ReplyEvent::ReviewReply { review }) => {
                self.state.load(review.clone());
                self.phase = match review.files.is_empty() {
                    false => Phase::Ready,
                    true if self.state.rejected > 0 => Phase::None("No changes of this turn are left".into()),
                    true => Phase::None(nothing(&review.taken_back)),
                };
                Reply::done()
            }
            (OPEN, ReplyEvent::ErrorReply { notice }) => {
                self.phase = Phase::None(clean::plain(&notice.message).into_owned());
                Reply::done()
            }
            (REJECT, ReplyEvent::RejectReply { rejected, conflicts }) => {
                self.state.rejected += rejected;
                let pending = std::mem::take(&mut self.pending);
                for f in &mut self.state.files {
                    if pending.contains(&f.diff.path) {
                        f.conflict = conflicts.iter().any(|c| c.path == f.diff.path);
                    }
                }
                Reply::Done([self.load(self.state.turn)].into_iter().chain(stays(conflicts)).collect())
            }
            (UNDO, ReplyEvent::RejectReply { .. } | ReplyEvent::DoneReply { .. }) => {
                // What was rejected last comes back as a whole; nothing is left of it to undo.
                self.state.rejected = 0;
                let stays = match reply {
                    ReplyEvent::RejectReply { conflicts, .. } => stays(conflicts),
                    _ => None,
                };
                Reply::Done([self.load(self.state.turn)].into_iter().chain(stays).collect())
            }
            (REJECT | UNDO, ReplyEvent::ErrorReply { notice }) => {
                self.pending.clear();
                Reply::with(Effect::Toast(notice.clone()))
            }
            _ => Reply::Ignored,
        }
    }
}

/// Tells what stayed as it was, and why.
fn stays(conflicts: &[RejectConflict]) -> Option<Effect> {
    let first = conflicts.first()?;
    let more = match conflicts.len() {
        1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    // The path is said once.
    let first = if first.why.starts_with(&first.path) { first.why.clone() } else { first.to_string() };
    let text = format!("Not changed (nothing was forced): {}{more}", clean::plain(&first));
    Some(Effect::Toast(Notice::new(NoticeKind::User, text).hint("Edit the file by hand with e")))
}

pub(super) fn say(text: &str) -> Reply {
    Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, text)))
}

/// Says why there is nothing to review. `taken_back`: the files that the turn changed and that are as they were before it.
fn nothing(taken_back: &[String]) -> String {
    let files = match taken_back {
        [] => return "This turn changed no files".into(),
        [one] => format!("{} is as it was before this turn", clean::plain(one)),
        [one, other] => {
            format!("{} and {} are as they were before this turn", clean::plain(one), clean::plain(other))
        }
        [one, more @ ..] => {
            format!("{} and {} more files are as they were before this turn", clean::plain(one), more.len())
        }
    };
    format!("{files}. If you undid it, /redo repeats it")
}
