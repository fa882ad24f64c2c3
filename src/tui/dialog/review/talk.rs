//! What a review asks of the engine, and what it makes of the answers.

use tiller_protocol::command::{ReviewCommand, TurnCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandBody, Message, Notice, NoticeKind, SendMode};

use super::{OPEN, Phase, REJECT, Review, UNDO};
use crate::effect::{Effect, External, Token};
use crate::model::Model;
use crate::panel::Reply;
use crate::text::clean;

impl Review {
    pub(super) fn load(&mut self, turn: Option<tiller_protocol::EntryId>) -> Effect {
        if self.phase != Phase::Ready {
            self.phase = Phase::Loading;
        }
        Effect::Ask(CommandBody::Review(ReviewCommand::Open { turn }), OPEN)
    }

    pub(super) fn reject(
        &mut self,
        hunks: Option<Vec<tiller_protocol::review::Reject>>,
        model: &Model,
    ) -> Reply {
        if model.session.read_only {
            return say("this session is open read-only: nothing can be taken back");
        }
        let (Some(turn), Some(hunks)) = (self.state.turn, hunks) else {
            return say("there is no change here to reject");
        };
        self.pending = hunks.iter().map(|h| h.path.clone()).collect();
        self.state.mark = None;
        Reply::with(Effect::Ask(CommandBody::Review(ReviewCommand::Reject { turn, hunks }), REJECT))
    }

    pub(super) fn undo() -> Reply {
        Reply::with(Effect::Ask(CommandBody::Review(ReviewCommand::UndoReject), UNDO))
    }

    pub(super) fn send(&mut self) -> Reply {
        let Some(text) = self.state.message() else { return say("there are no comments yet: c writes one") };
        self.state.comments.clear();
        let submit = TurnCommand::Submit { message: Message::text(text), mode: SendMode::default() };
        let mut effects = vec![Effect::Send(CommandBody::Turn(submit))];
        if self.layer {
            effects.push(Effect::Pop);
        }
        Reply::Done(effects)
    }

    pub(super) fn edit(&self, model: &Model) -> Reply {
        let Some(summary) = &model.session.summary else { return Reply::Ignored };
        let Some((path, line, _)) = self.state.place() else { return Reply::Ignored };
        let file = std::path::Path::new(&summary.project).join(path);
        Reply::with(Effect::Suspend(External::Editor { file, line: Some(line) }))
    }

    pub(super) fn answered(&mut self, token: Token, reply: &ReplyEvent) -> Reply {
        match (token, reply) {
            (OPEN, ReplyEvent::ReviewReply { review }) => {
                self.state.load(review.clone());
                self.phase = match review.files.is_empty() {
                    false => Phase::Ready,
                    true if self.state.rejected > 0 => Phase::None("nothing of this turn is left".into()),
                    true => Phase::None("this turn changed no files".into()),
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
                        f.conflict = conflicts.iter().any(|c| about(c, &f.diff.path));
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

/// Whether the engine's sentence is about this path.
fn about(conflict: &str, path: &str) -> bool {
    conflict.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(": "))
}

/// Tells what stayed as it was, and why.
fn stays(conflicts: &[String]) -> Option<Effect> {
    let first = conflicts.first()?;
    let more = match conflicts.len() {
        1 => String::new(),
        n => format!(" ({} more like it)", n - 1),
    };
    // The path is said once.
    let twice = first.split_once(": ").filter(|(path, why)| why.starts_with(path));
    let first = twice.map_or(first.as_str(), |(_, why)| why);
    let text = format!("not changed, nothing was forced: {}{more}", clean::plain(first));
    Some(Effect::Toast(Notice::new(NoticeKind::User, text).hint("edit the file by hand with e")))
}

pub(super) fn say(text: &str) -> Reply {
    Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, text)))
}
