//! Going back: what would happen to each file, before anything does. What somebody else changed is not marked: it
//! stays, unless the person marks it.

use crossterm::event::MouseEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{
    ChangeKind, CommandBody, EntryId, Event, EventBody, Notice, NoticeKind, RestoreFile, RestorePreview,
    RestoreWhat,
};

use super::confirm;
use crate::action::{Action, ActionSpec};
use crate::effect::{Effect, Token};
use crate::model::Model;
use crate::panel::rows::{Rows, clock};
use crate::panel::{DrawCx, Hint, Panel, Place, Reply, View};
use crate::text::line::{Line, Look, Wrap};
use crate::text::{clean, shorten_end, width};
use crate::theme::Role;
use crate::widget::draw;

/// What it can do besides a list.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only(
        "restore.both",
        "go back",
        "Restore the marked files, and go back in the conversation",
    ),
    ActionSpec::key_only("restore.files", "files only", "Restore the marked files; the conversation stays"),
    ActionSpec::key_only("restore.talk", "talk only", "Go back in the conversation; the files stay"),
];

const PREVIEW: Token = Token(1);
const DONE: Token = Token(2);

/// The dialog.
pub(crate) struct Restore {
    entry: EntryId,
    preview: Option<RestorePreview>,
    /// Which files change, in the preview's order.
    marked: Vec<bool>,
    rows: Rows,
    /// Asked for; the answer closes it.
    going: bool,
    failed: Option<String>,
}

impl Restore {
    /// To what was at this entry.
    pub(crate) fn to(entry: EntryId) -> Self {
        let (marked, rows) = (Vec::new(), Rows::default());
        Self { entry, preview: None, marked, rows, going: false, failed: None }
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
        let named = |marked: bool, conflict: bool| {
            let files = self.files().iter().zip(&self.marked);
            let fits = files.filter(|(f, m)| **m == marked && f.conflict.is_some() == conflict);
            fits.map(|(f, _)| f.path.clone()).collect()
        };
        let restore = SessionCommand::Restore {
            entry: self.entry,
            what,
            keep: named(false, false),
            force: named(true, true),
        };
        self.going = true;
        Reply::with(Effect::Ask(CommandBody::Session(restore), DONE))
    }

    /// What is said above the list.
    fn head(&self) -> Vec<String> {
        if let Some(why) = &self.failed {
            return vec![why.clone()];
        }
        let Some(p) = &self.preview else { return vec!["comparing the files...".into()] };
        let mut lines = Vec::new();
        let title = clean::plain(&p.title);
        match p.time {
            Some(time) => lines.push(format!("Back to {}, before \"{title}\".", clock(time))),
            None => lines.push(format!("Back to before \"{title}\", in the conversation only.")),
        }
        let kept = p.files.iter().filter(|f| f.conflict.is_some()).count();
        if p.time.is_some() && p.files.is_empty() {
            lines.push("No file differs.".into());
        }
        if kept > 0 {
            lines
                .push(format!("{kept} changed by you or another program since: kept, unless you mark them."));
        }
        if p.more > 0 {
            lines.push(format!("{} more files are not listed; they go back as well.", p.more));
        }
        lines.extend(p.left.iter().take(3).map(|l| format!("Stays: {}", clean::plain(l))));
        lines.extend(p.notes.iter().map(|n| clean::plain(n).into_owned()));
        if self.going {
            lines.push("restoring...".into());
        }
        lines
    }

    fn line(file: &RestoreFile, marked: bool, columns: usize) -> Line {
        let kind = match file.kind {
            ChangeKind::Added => "A",
            ChangeKind::Deleted => "D",
            _ => "M",
        };
        let tail = match (&file.conflict, file.added + file.removed) {
            (Some(_), _) => "  changed by you".to_owned(),
            (None, 0) => String::new(),
            (None, _) => format!("  +{} -{}", file.added, file.removed),
        };
        let head = format!("[{}] {kind} ", if marked { "x" } else { " " });
        let room = columns.saturating_sub(width(&head) + width(&tail));
        let mut line = Line::new(Wrap::Cut);
        line.push(&head, Look::of(if marked { Role::Accent } else { Role::Dim }));
        let path = shorten_end(&clean::plain(&file.path), room, draw::ascii());
        line.push_strict(&path, Look::of(Role::Text));
        let role = if file.conflict.is_some() { Role::Waiting } else { Role::Dim };
        line.pad_to(columns.saturating_sub(width(&tail)), Look::of(Role::Text));
        line.push(&tail, Look::of(role));
        line
    }

    /// The words, the list, and the difference of the chosen file.
    fn parts(&self, area: Rect) -> (Rect, Rect, Rect) {
        let words: usize = self.head().iter().map(|l| confirm::wrap(l, usize::from(area.width)).len()).sum();
        let words = (words as u16 + 1).min(area.height / 2);
        let room = area.height - words;
        let list = (self.files().len() as u16).clamp(1, (room / 2).max(1)).min(room);
        let top = Rect { height: words, ..area };
        let middle = Rect { y: top.bottom(), height: list, ..area };
        (top, middle, Rect { y: middle.bottom(), height: room - list, ..area })
    }

    fn toggle(&mut self) {
        if let Some(marked) = self.marked.get_mut(self.rows.chosen) {
            *marked = !*marked;
        }
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
                self.marked = preview.files.iter().map(|f| f.conflict.is_none()).collect();
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
            id if self.rows.act(id) => Reply::done(),
            _ => Reply::Ignored,
        }
    }

    fn mouse(&mut self, event: &MouseEvent, area: Rect, _model: &Model) -> Reply {
        let (_, list, _) = self.parts(area);
        if list.contains(Position::new(event.column, event.row)) && self.rows.mouse(event, list) {
            self.toggle();
        }
        Reply::done()
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        match &self.preview {
            None => Vec::new(),
            Some(p) if p.time.is_none() => vec![Hint::of("restore.talk")],
            Some(p) if p.files.is_empty() => vec![Hint::of("restore.both")],
            Some(_) => vec![
                Hint::of("restore.both"),
                Hint::of("restore.files"),
                Hint::of("restore.talk"),
                Hint::as_("list.mark", "mark"),
            ],
        }
    }

    fn measure(&mut self, area: Rect, _cx: &DrawCx<'_>) {
        let (_, list, _) = self.parts(area);
        let columns = usize::from(list.width);
        let lines = self.files().iter().zip(&self.marked).map(|(f, m)| Self::line(f, *m, columns)).collect();
        self.rows.set(lines, list);
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let (words, list, below) = self.parts(area);
        let rows =
            self.head().iter().flat_map(|l| confirm::wrap(l, usize::from(words.width))).collect::<Vec<_>>();
        for (row, y) in rows.iter().zip(words.top()..words.bottom()) {
            draw::text(buf, Rect { y, height: 1, ..words }, row, cx.theme.style(Role::Text));
        }
        if !self.files().is_empty() {
            self.rows.draw(cx, list, buf);
        }
        let Some(file) = self.files().get(self.rows.chosen).filter(|_| below.height > 1) else { return };
        let l = draw::lines(cx.ascii);
        for x in below.left()..below.right() {
            draw::put(buf, x, below.y, l.h, cx.theme.style(Role::Border));
        }
        let text = match (&file.conflict, file.diff.is_empty()) {
            (Some(why), true) => format!("{}: {why}", clean::plain(&file.path)),
            (None, true) => "no text to compare".to_owned(),
            (_, false) => file.diff.clone(),
        };
        for (line, y) in text.lines().zip(below.top() + 1..below.bottom()) {
            let role = match line.as_bytes().first() {
                Some(b'+') => Role::Added,
                Some(b'-') => Role::Removed,
                Some(b'@') => Role::Hunk,
                _ => Role::Text,
            };
            draw::text(buf, Rect { y, height: 1, ..below }, line, cx.theme.style(role));
        }
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        let (_, list, _) = self.parts(area);
        self.rows.cursor(list).filter(|_| !self.files().is_empty())
    }
}

/// With plausible content, for the tests that walk all dialogs.
pub(crate) fn sample() -> Restore {
    use tiller_protocol::Time;
    let file = |path: &str, kind, conflict: Option<&str>| RestoreFile {
        path: path.into(),
        kind,
        added: 1,
        removed: 2,
        diff: "@@ -1,3 +1,2 @@\n one\n-two\n-three\n+TWO\n".into(),
        conflict: conflict.map(Into::into),
    };
    let mut sample = Restore::to(EntryId(Default::default()));
    let files = vec![
        file("src/client.rs", ChangeKind::Modified, None),
        file("src/retry.rs", ChangeKind::Deleted, None),
        file("notes.md", ChangeKind::Modified, Some("changed since by you or another program")),
    ];
    sample.marked = files.iter().map(|f| f.conflict.is_none()).collect();
    let title = "Make the retry logic honour Retry-After".into();
    let notes = vec!["Not covered: video.mp4 (too large)".into()];
    sample.preview =
        Some(RestorePreview { title, time: Some(Time(0)), files, notes, ..RestorePreview::default() });
    sample
}

#[cfg(test)]
#[path = "restore_tests.rs"]
mod tests;
