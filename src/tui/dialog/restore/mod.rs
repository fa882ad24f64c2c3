//! Going back: what would happen to each file, before anything does. What somebody else changed is not marked: it
//! stays, unless the person marks it. Of a file some hunks can be marked: the rest of it stays as it is now.

mod choice;
mod draw;

use crossterm::event::MouseEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{
    CommandBody, EntryId, Event, EventBody, Notice, NoticeKind, RestoreFile, RestorePreview, RestoreWhat,
};

use self::choice::Choice;
use crate::action::{Action, ActionSpec};
use crate::effect::{Effect, Token};
use crate::model::Model;
use crate::panel::rows::Rows;
use crate::panel::{DrawCx, Hint, Panel, Place, Reply, View};
use crate::widget::scroll::Scroll;

/// What it can do besides a list.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only(
        "restore.both",
        "go back",
        "Restore the marked files, and go back in the conversation",
    ),
    ActionSpec::key_only("restore.files", "files only", "Restore the marked files; the conversation stays"),
    ActionSpec::key_only("restore.talk", "talk only", "Go back in the conversation; the files stay"),
    ActionSpec::key_only(
        "restore.hunk",
        "mark hunk",
        "Restore this hunk of the file, or leave it as it is now",
    ),
    ActionSpec::key_only("restore.hunk_down", "next hunk", "To the next hunk of the file"),
    ActionSpec::key_only("restore.hunk_up", "last hunk", "To the hunk before"),
    ActionSpec::key_only("restore.diff_down", "scroll down", "Scroll the difference down"),
    ActionSpec::key_only("restore.diff_up", "scroll up", "Scroll the difference up"),
];

const PREVIEW: Token = Token(1);
const DONE: Token = Token(2);

/// The dialog.
pub(crate) struct Restore {
    entry: EntryId,
    preview: Option<RestorePreview>,
    /// What of each file changes, in the preview's order.
    choices: Vec<Choice>,
    rows: Rows,
    /// Of the chosen file.
    hunk: usize,
    diff: Scroll,
    /// The difference must be laid out anew; `moved`: from the chosen hunk on.
    stale: bool,
    moved: bool,
    /// For which width and file it was.
    laid: (u16, usize),
    /// Asked for; the answer closes it.
    going: bool,
    failed: Option<String>,
}

impl Restore {
    /// To what was at this entry.
    pub(crate) fn to(entry: EntryId) -> Self {
        Self {
            entry,
            preview: None,
            choices: Vec::new(),
            rows: Rows::default(),
            hunk: 0,
            diff: Scroll::default(),
            stale: true,
            moved: true,
            laid: (0, 0),
            going: false,
            failed: None,
        }
    }

    fn files(&self) -> &[RestoreFile] {
        self.preview.as_ref().map_or(&[], |p| &p.files)
    }

    fn go(&mut self, what: RestoreWhat, model: &Model) -> Reply {
        let Some(preview) = self.preview.as_ref().filter(|_| !self.going) else { return Reply::done() };
        let no = if model.running {
            Some("a turn runs; stop it first")
        } else if model.session.read_only {
            Some("this session is open read-only")
        } else if what.files() && preview.time.is_none() {
            Some("the files of that moment were not kept: the conversation alone can go back")
        } else {
            None
        };
        if let Some(why) = no {
            return Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, why)));
        }
        if !what.files() {
            let fork = SessionCommand::Fork { entry: self.entry };
            return Reply::Done(vec![
                Effect::Pop,
                Effect::Send(CommandBody::Session(fork)),
                Effect::Focus(View::Composer),
            ]);
        }
        let files = || self.files().iter().zip(&self.choices);
        let named = |fits: fn(&Choice) -> bool, conflict: bool| {
            let files = files().filter(|(f, c)| fits(c) && f.conflict.is_some() == conflict);
            files.map(|(f, _)| f.path.clone()).collect()
        };
        let restore = SessionCommand::Restore {
            entry: self.entry,
            what,
            keep: named(Choice::none, false),
            force: named(Choice::all, true),
            parts: files().flat_map(|(f, c)| c.parts(f)).collect(),
        };
        self.going = true;
        Reply::with(Effect::Ask(CommandBody::Session(restore), DONE))
    }

    fn toggle(&mut self) {
        if let Some(choice) = self.choices.get_mut(self.rows.chosen) {
            choice.toggle();
            self.stale = true;
        }
    }

    fn toggle_hunk(&mut self) {
        let hunk = self.hunk;
        if let Some(choice) = self.choices.get_mut(self.rows.chosen) {
            choice.toggle_hunk(hunk);
            self.stale = true;
        }
    }

    fn step_hunk(&mut self, down: bool) {
        let all = self.choices.get(self.rows.chosen).map_or(0, |c| c.hunks.len());
        let to = if down { self.hunk + 1 } else { self.hunk.saturating_sub(1) };
        self.hunk = to.min(all.saturating_sub(1));
        (self.stale, self.moved) = (true, true);
    }
}

impl Panel for Restore {
    fn scope(&self) -> &'static str {
        if self.rows.typing() { "input" } else { "restore" }
    }

    fn title(&self, _model: &Model) -> String {
        "go back?".into()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn opened(&mut self, _model: &Model) -> Vec<Effect> {
        vec![Effect::Ask(CommandBody::Query(Query::RestorePreview { entry: self.entry }), PREVIEW)]
    }

    fn place(&self, _model: &Model) -> Place {
        Place::Center { width: 100, height: 20 }
    }

    fn reply(&mut self, token: Token, event: &Event, _model: &Model) -> Reply {
        let EventBody::Reply(reply) = &event.body else { return Reply::Ignored };
        match (token, reply.as_ref()) {
            (PREVIEW, ReplyEvent::RestorePreviewReply { preview, .. }) => {
                self.choices = preview.files.iter().map(Choice::of).collect();
                (self.stale, self.moved) = (true, true);
                self.preview = Some(preview.clone());
                Reply::done()
            }
            (DONE, ReplyEvent::DoneReply { said }) => Reply::Done(vec![
                Effect::Pop,
                Effect::Focus(View::Composer),
                Effect::Toast(Notice::new(NoticeKind::Info, format!("{said}. /undo takes it back."))),
            ]),
            (_, ReplyEvent::ErrorReply { notice }) => {
                self.going = false;
                self.failed = Some(notice.message.clone());
                Reply::done()
            }
            _ => Reply::Ignored,
        }
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        match action.0 {
            "restore.both" => {
                let files = self.preview.as_ref().is_some_and(|p| p.time.is_some());
                self.go(if files { RestoreWhat::Both } else { RestoreWhat::Talk }, model)
            }
            "restore.files" => self.go(RestoreWhat::Files, model),
            "restore.talk" => self.go(RestoreWhat::Talk, model),
            "list.mark" => {
                self.toggle();
                Reply::done()
            }
            "restore.hunk" => {
                self.toggle_hunk();
                Reply::done()
            }
            id @ ("restore.hunk_down" | "restore.hunk_up") => {
                self.step_hunk(id == "restore.hunk_down");
                Reply::done()
            }
            id @ ("restore.diff_down" | "restore.diff_up") => {
                self.diff.wheel(id == "restore.diff_down");
                Reply::done()
            }
            id if self.rows.act(id) => Reply::done(),
            _ => Reply::Ignored,
        }
    }

    fn mouse(&mut self, event: &MouseEvent, area: Rect, _model: &Model) -> Reply {
        let (list, at) = (self.parts(area).list, Position::new(event.column, event.row));
        if list.contains(at) {
            if self.rows.mouse(event, list) {
                self.toggle();
            }
        } else {
            self.diff.mouse(event);
        }
        Reply::done()
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        match &self.preview {
            None => Vec::new(),
            Some(p) if p.time.is_none() => vec![Hint::of("restore.talk")],
            Some(p) if p.files.is_empty() => vec![Hint::of("restore.both")],
            Some(_) => {
                let mut hints = vec![Hint::of("restore.both"), Hint::as_("list.mark", "mark")];
                if self.choices.get(self.rows.chosen).is_some_and(Choice::parted) {
                    hints.extend(["restore.hunk", "restore.hunk_down"].map(Hint::of));
                }
                hints.extend(["restore.files", "restore.talk"].map(Hint::of));
                hints
            }
        }
    }

    fn measure(&mut self, area: Rect, _cx: &DrawCx<'_>) {
        self.lay(area);
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.paint(cx, area, buf);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        self.rows.cursor(self.parts(area).list).filter(|_| !self.files().is_empty())
    }
}

/// With plausible content, for the tests that walk all dialogs.
pub(crate) fn sample() -> Restore {
    use tiller_protocol::{ChangeKind, Time};
    let file = |path: &str, kind, diff: &str, conflict: Option<&str>| RestoreFile {
        path: path.into(),
        kind,
        added: 1,
        removed: 2,
        diff: diff.into(),
        conflict: conflict.map(Into::into),
    };
    let mut sample = Restore::to(EntryId(Default::default()));
    let two = "@@ -1,3 +1,2 @@\n one\n-two\n-three\n+TWO\n@@ -30,2 +29,3 @@\n thirty\n+more\n end\n";
    let files = vec![
        file("src/client.rs", ChangeKind::Modified, two, None),
        file("src/retry.rs", ChangeKind::Deleted, "@@ -1 +0,0 @@\n-gone\n", None),
        file("notes.md", ChangeKind::Modified, two, Some("changed since by you or another program")),
    ];
    sample.choices = files.iter().map(Choice::of).collect();
    let title = "Make the retry logic honour Retry-After".into();
    let notes = vec!["Not covered: video.mp4 (too large)".into()];
    sample.preview =
        Some(RestorePreview { title, time: Some(Time(0)), files, notes, ..RestorePreview::default() });
    sample
}

#[cfg(test)]
mod tests;
