//! Restoring an earlier state: shows what would happen to each file first. Changes that no agent of the session made
//! are not marked: they stay unless the person marks them. Single hunks of a file can be marked: the rest of the file
//! stays as it is.

mod actions;
mod choice;
mod draw;

use crossterm::event::MouseEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::notice::sentence;
use tiller_protocol::{
    CommandBody, EntryId, Event, EventBody, Notice, NoticeKind, Origin, RestoreFile, RestorePreview,
    RestoreWhat,
};

pub(crate) use self::actions::ACTIONS;
use self::actions::KEYS;
use self::choice::FileChoice;
use crate::app::effect::{Effect, Token};
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::model::conversation::{Body, Cell};
use crate::panel::{
    DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply, View,
};
use crate::registry::Dialog;
use crate::text::clean;
use crate::widget::diff::DiffScroll;
use crate::widget::line_list::LineList;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    groups: &[("Restore", ACTIONS)],
    scopes: &[
        Scope::new("restore", Some("list"), "Restore", false).keys(KEYS),
        Scope::new("branch_go", Some("restore"), "Go to a branch", false)
            .keys(&[("enter", "restore.talk"), ("f", "restore.both")]),
    ],
    samples: &[("restore", || Box::new(sample())), ("open a branch", || Box::new(branch_sample()))],
    ..Dialog::NONE
};

const PREVIEW: Token = Token(1);
const DONE: Token = Token(2);
const WENT: Token = Token(3);

/// A branch to open: its conversation in any case, its files on request.
struct TargetBranch {
    head: String,
    /// Its name on the screen.
    word: String,
}

/// The dialog.
pub(crate) struct Restore {
    /// The entry to restore; of a branch its last entry.
    entry: EntryId,
    /// The branch to open, if the entry is on another branch.
    branch: Option<TargetBranch>,
    preview: Option<RestorePreview>,
    /// The marks of each file, in the preview's order.
    choices: Vec<FileChoice>,
    rows: LineList,
    /// Of the chosen file.
    hunk: usize,
    diff: DiffScroll,
    /// The difference must be laid out again; `moved`: from the selected hunk on.
    stale: bool,
    moved: bool,
    /// For which width and file it was.
    laid: (u16, usize),
    /// Messages from that entry on, where they are known; and whether the entry is a checkpoint.
    messages: Option<usize>,
    checkpoint: bool,
    /// The restore was requested; its answer closes the dialog.
    going: bool,
    failed: Option<String>,
}

impl Restore {
    /// Restores the state at this entry.
    pub(crate) fn to(entry: EntryId) -> Self {
        Self {
            entry,
            branch: None,
            preview: None,
            choices: Vec::new(),
            rows: LineList::default(),
            hunk: 0,
            diff: DiffScroll::default(),
            stale: true,
            moved: true,
            laid: (0, 0),
            messages: None,
            checkpoint: false,
            going: false,
            failed: None,
        }
    }

    /// Opens the branch `head`, which is named `word` and ends at `tip`. Files stay as they are unless the person
    /// restores those of the branch.
    pub(crate) fn branch(head: String, word: String, tip: EntryId) -> Self {
        Self { branch: Some(TargetBranch { head, word }), ..Self::to(tip) }
    }

    /// Counts the messages that would leave the branch.
    fn look_at(&mut self, model: &Model) {
        let conversation = &model.agent.conversation;
        let cells = conversation.cells();
        let at = cells.iter().position(|c| c.entry == Some(self.entry));
        // All up to the end must be loaded.
        self.messages = at.filter(|at| *at >= conversation.end_start()).map(|at| {
            let sent = |c: &&Cell| matches!(c.body, Body::User { origin: Origin::Prompt | Origin::Task, .. });
            cells.iter().skip(at).filter(sent).count()
        });
        self.checkpoint =
            at.and_then(|at| cells.get(at)).is_some_and(|c| matches!(c.body, Body::Checkpoint { .. }));
    }

    fn files(&self) -> &[RestoreFile] {
        self.preview.as_ref().map_or(&[], |p| &p.files)
    }

    /// Opens the branch; `bring`: then restores its files.
    fn go_to_branch(&mut self, bring: bool, model: &Model) -> Reply {
        let Some(branch) = self.branch.as_ref().filter(|_| !self.going) else { return Reply::done() };
        let known = self.preview.as_ref().is_some_and(|p| p.time.is_some());
        let no = if model.agent.turn.running {
            Some("A turn is running; stop it first")
        } else if bring && self.preview.is_none() {
            Some("The files are still being compared")
        } else if bring && !known {
            Some("There is no snapshot of the files on that branch; only its conversation can be opened")
        } else {
            None
        };
        if let Some(why) = no {
            return Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, why)));
        }
        let open = CommandBody::Session(SessionCommand::OpenBranch { head: branch.head.clone() });
        if bring {
            self.going = true;
            return Reply::with(Effect::ask(open, WENT));
        }
        Reply::Done(vec![Effect::Pop, Effect::send(open), Effect::Focus(View::Composer)])
    }

    fn go(&mut self, what: RestoreWhat, model: &Model) -> Reply {
        if self.branch.is_some() {
            return self.go_to_branch(what.files(), model);
        }
        let Some(preview) = self.preview.as_ref().filter(|_| !self.going) else { return Reply::done() };
        let no = if model.agent.turn.running {
            Some("A turn is running; stop it first")
        } else if model.agent.session.read_only {
            Some("This session is open read-only")
        } else if what.files() && preview.time.is_none() {
            Some("There is no snapshot of the files at that point; only the conversation can be restored")
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
                Effect::send(CommandBody::Session(fork)),
                Effect::Focus(View::Composer),
            ]);
        }
        self.going = true;
        Reply::with(self.bring(what))
    }

    /// Restores the marked files.
    fn bring(&self, what: RestoreWhat) -> Effect {
        let files = || self.files().iter().zip(&self.choices);
        let named = |fits: fn(&FileChoice) -> bool, conflict: bool| {
            let files = files().filter(|(f, c)| fits(c) && f.conflict.is_some() == conflict);
            files.map(|(f, _)| f.path.clone()).collect()
        };
        let restore = SessionCommand::Restore {
            entry: self.entry,
            what,
            keep: named(FileChoice::none, false),
            force: named(FileChoice::all, true),
            parts: files().flat_map(|(f, c)| c.parts(f)).collect(),
        };
        Effect::ask(CommandBody::Session(restore), DONE)
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
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new(self.scope())
    }

    fn title(&self, _model: &Model) -> String {
        match &self.branch {
            Some(b) => format!("Open the branch {}?", clean::plain(&b.word)),
            None => "Restore?".into(),
        }
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        Placement::Center { width: 100, height: 20 }
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        match action.0 {
            "restore.both" if self.branch.is_some() => self.go(RestoreWhat::Both, model),
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
                self.diff.scroll.wheel(id == "restore.diff_down");
                Reply::done()
            }
            id if self.rows.act(id) => Reply::done(),
            _ => Reply::Ignored,
        }
    }

    fn input(&mut self, input: PanelInput<'_>, _model: &Model) -> Reply {
        match input {
            PanelInput::Mouse(event, area) => self.on_mouse(event, area),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(self.on_open()),
            PanelEvent::Answer(token, event) => self.on_answer(token, event),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        if self.branch.is_some() {
            let mut hints = vec![Hint::as_("restore.talk", "open, keep files")];
            if self.preview.as_ref().is_some_and(|p| p.time.is_some() && !p.files.is_empty()) {
                hints.extend([
                    Hint::as_("restore.both", "open, restore files"),
                    Hint::as_("list.mark", "mark"),
                ]);
                if self.choices.get(self.rows.chosen).is_some_and(FileChoice::parted) {
                    hints.extend(["restore.hunk", "restore.hunk_down"].map(Hint::of));
                }
            }
            return hints;
        }
        match &self.preview {
            None => Vec::new(),
            Some(p) if p.time.is_none() => vec![Hint::of("restore.talk")],
            Some(p) if p.files.is_empty() => vec![Hint::of("restore.both")],
            Some(_) => {
                let mut hints = vec![Hint::of("restore.both"), Hint::as_("list.mark", "mark")];
                if self.choices.get(self.rows.chosen).is_some_and(FileChoice::parted) {
                    hints.extend(["restore.hunk", "restore.hunk_down"].map(Hint::of));
                }
                hints.extend(["restore.files", "restore.talk"].map(Hint::of));
                hints
            }
        }
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        self.look_at(cx.model);
        self.lay(area);
        Refresh::after(self.diff.colours.wake())
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.paint(cx, area, buf);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        self.rows.cursor(self.parts(area).list).filter(|_| !self.files().is_empty())
    }
}

impl Restore {
    fn scope(&self) -> &'static str {
        match &self.branch {
            _ if self.rows.typing() => "input",
            Some(_) => "branch_go",
            None => "restore",
        }
    }

    fn on_mouse(&mut self, event: &MouseEvent, area: Rect) -> Reply {
        let (list, at) = (self.parts(area).list, Position::new(event.column, event.row));
        if list.contains(at) {
            if self.rows.mouse(event, list) {
                self.toggle();
            }
        } else {
            self.diff.scroll.mouse(event);
        }
        Reply::done()
    }

    fn on_open(&mut self) -> Vec<Effect> {
        vec![Effect::ask(CommandBody::Query(Query::RestorePreview { entry: self.entry }), PREVIEW)]
    }

    fn on_answer(&mut self, token: Token, event: &Event) -> Reply {
        let reply = match &event.body {
            EventBody::State(StateEvent::HeadMoved { .. }) if token == WENT => {
                return Reply::with(self.bring(RestoreWhat::Files));
            }
            EventBody::Reply(reply) => reply,
            _ => return Reply::Ignored,
        };
        match (token, reply.as_ref()) {
            (PREVIEW, ReplyEvent::RestorePreviewReply { preview, .. }) => {
                self.choices = preview.files.iter().map(FileChoice::of).collect();
                (self.stale, self.moved) = (true, true);
                self.preview = Some(preview.clone());
                Reply::done()
            }
            (DONE, ReplyEvent::DoneReply { said }) => Reply::Done(vec![
                Effect::Pop,
                Effect::Focus(View::Composer),
                Effect::Toast(Notice::new(NoticeKind::Info, format!("{said}. /undo reverts it."))),
            ]),
            (_, ReplyEvent::ErrorReply { notice }) => {
                self.going = false;
                self.failed = Some(sentence(&notice.message));
                Reply::done()
            }
            _ => Reply::Ignored,
        }
    }
}

/// The dialog with plausible content, for the tests that visit all dialogs.
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
    sample.choices = files.iter().map(FileChoice::of).collect();
    let title = "Make the retry logic honour Retry-After".into();
    let notes = vec!["Not covered: video.mp4 (too large)".into()];
    sample.preview =
        Some(RestorePreview { title, time: Some(Time(0)), files, notes, ..RestorePreview::default() });
    sample
}

/// The same for another branch.
pub(crate) fn branch_sample() -> Restore {
    let branch = TargetBranch { head: "branch-1a2b3c4d".into(), word: "try with a library".into() };
    Restore { branch: Some(branch), ..sample() }
}

#[cfg(test)]
mod tests;
