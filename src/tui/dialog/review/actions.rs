//! Actions of the diff review, its default keys, and what the actions do.

use tiller_protocol::{Notice, NoticeKind};

use super::talk::say;
use super::{CommentField, Phase, Review};
use crate::app::effect::{Effect, Task};
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::DefaultKey;
use crate::model::Model;
use crate::panel::Reply;
use crate::widget::edit::Edit;

/// The actions of a review.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("review.accept", "accept", "Accept this hunk and go to the next one"),
    ActionSpec::key_only("review.reject", "reject", "Revert this hunk or the selected lines").deciding(),
    ActionSpec::key_only("review.accept_file", "accept file", "Accept this file and go to the next one"),
    ActionSpec::key_only("review.reject_file", "reject file", "Revert the whole file").deciding(),
    ActionSpec::key_only("review.hunk_down", "next hunk", "Next hunk"),
    ActionSpec::key_only("review.hunk_up", "previous hunk", "Previous hunk"),
    ActionSpec::key_only("review.file_down", "next file", "Next file"),
    ActionSpec::key_only("review.file_up", "previous file", "Previous file"),
    ActionSpec::key_only("review.lines", "lines", "Select lines from here on"),
    ActionSpec::key_only("review.comment", "comment", "Comment on this line for the agent"),
    ActionSpec::key_only("review.send", "send", "Send all comments as one message").deciding(),
    ActionSpec::key_only(
        "review.discard",
        "discard comments",
        "Discard all unsent comments; their text stays in the prompt history",
    ),
    ActionSpec::key_only("review.edit", "edit", "Open the file here in the editor"),
    ActionSpec::key_only("review.undo", "undo", "Undo the last rejection").deciding(),
    ActionSpec::key_only("review.blanks", "whitespace", "Show or hide whitespace-only changes"),
    ActionSpec::key_only("review.less", "less context", "Fewer lines around changes"),
    ActionSpec::key_only("review.more", "more context", "More lines around changes"),
    ActionSpec::key_only(
        "review.side",
        "side by side",
        "Show old and new side by side, or one below the other",
    ),
    ActionSpec::key_only("review.load", "load", "Reload what the last turn changed"),
];

/// Default keys of the section `diff`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("a", "review.accept"),
    ("r", "review.reject"),
    ("A", "review.accept_file"),
    ("R", "review.reject_file"),
    ("]", "review.hunk_down"),
    ("[", "review.hunk_up"),
    ("l", "review.file_down"),
    ("h", "review.file_up"),
    ("right", "review.file_down"),
    ("left", "review.file_up"),
    ("tab", "review.file_down"),
    ("v", "review.lines"),
    ("c", "review.comment"),
    ("S", "review.send"),
    ("D", "review.discard"),
    ("e", "review.edit"),
    ("z", "review.undo"),
    ("w", "review.blanks"),
    ("{", "review.less"),
    ("}", "review.more"),
    ("|", "review.side"),
    ("ctrl-r", "review.load"),
];

impl Review {
    /// Performs an action of the review.
    pub(super) fn do_action(&mut self, action: Action, model: &Model) -> Reply {
        if let Some(field) = &mut self.typing {
            return if field.edit.act(action.0) { Reply::done() } else { Reply::Ignored };
        }
        if action.0 == "list.back" && self.layer {
            return Reply::with(Effect::Pop);
        }
        if self.phase != Phase::Ready {
            return match action.0 {
                "list.open" | "review.load" if self.phase != Phase::Loading => Reply::with(self.load(None)),
                "review.undo" if self.state.rejected > 0 => Self::undo(),
                "review.send" => self.send(),
                "review.discard" => self.discard(),
                _ => Reply::Ignored,
            };
        }
        let s = &mut self.state;
        match action.0 {
            "list.down" => s.step_line(true),
            "list.up" => s.step_line(false),
            "list.page_down" => (0..self.rows / 2).for_each(|_| s.step_line(true)),
            "list.page_up" => (0..self.rows / 2).for_each(|_| s.step_line(false)),
            "list.first" => s.go_file(0),
            "list.last" => {
                s.go_file(usize::MAX);
                s.go_hunk(s.current().map_or(0, |f| f.hunks.len().saturating_sub(1)));
            }
            "review.hunk_down" | "list.next" => s.step_hunk(true),
            "review.hunk_up" | "list.previous" => s.step_hunk(false),
            "review.file_down" => s.go_file(s.file + 1),
            "review.file_up" => s.go_file(s.file.saturating_sub(1)),
            "review.accept" => s.step_hunk(true),
            "review.accept_file" => {
                let at = s.file;
                if let Some(f) = s.files.get_mut(at) {
                    f.accepted = true;
                }
                s.go_file(at + 1);
            }
            "review.reject" => {
                let hunks = self.state.reject_hunk();
                return self.reject(hunks, model);
            }
            "review.reject_file" => {
                let hunks = self.state.reject_file();
                return self.reject(hunks, model);
            }
            "review.lines" | "list.mark" => s.mark = if s.mark.is_some() { None } else { Some(s.line) },
            "review.comment" => {
                let Some(spot) = s.place() else { return say("There is no line here to comment on") };
                self.typing = Some(CommentField { edit: Edit::with(&s.remarks.text_on(&spot)), spot });
            }
            "review.send" => return self.send(),
            "review.discard" => return self.discard(),
            "review.edit" | "list.open" => return self.edit(model),
            "review.undo" => return Self::undo(),
            "review.blanks" => s.show.ignore_blanks = !s.show.ignore_blanks,
            "review.less" => s.show.context = s.show.context.saturating_sub(1),
            "review.more" => s.show.context = (s.show.context + 1).min(3),
            "review.side" => match self.beside {
                Some(beside) => s.show.side = Some(!beside),
                None => {
                    let why = "The pane is too narrow for a side-by-side view";
                    return Reply::with(Effect::Toast(Notice::new(NoticeKind::User, why)));
                }
            },
            "review.load" => return Reply::with(self.load(None)),
            "list.copy" => {
                let text = s.hunk().zip(s.current()).map(|(h, f)| h.to_patch(&f.diff.path, f.diff.kind));
                return text.map_or(Reply::Ignored, |text| {
                    Reply::with(Effect::Task(Task::Copy { text, what: "hunk" }))
                });
            }
            _ => return Reply::Ignored,
        }
        Reply::done()
    }
}
