//! File changes in the project with their time and author, newest first.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::WatchCommand;
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::feed::Who;
use tiller_protocol::{ChangeKind, CommandBody, Event, EventBody, FileChange, Notice, NoticeKind};

use super::rows::{Rows, clock};
use super::{
    Attention, DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply, View,
};
use crate::app::effect::{ComposerInput, Effect, Task, Token};
use crate::dialog::reader::text::Text;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::{Model, Slice};
use crate::registry::PanelEntry;
use crate::text::line::{Line, Look, Wrap};
use crate::text::{clean, shorten_middle, width};
use crate::theme::Role;
use crate::widget::draw;

/// Registers the panel.
pub(crate) const PANEL: PanelEntry = PanelEntry {
    view: View::Watch,
    make: |_| Box::new(Watch::default()),
    reads: &[Slice::Crew, Slice::Workspace],
    groups: &[("Watch", ACTIONS)],
    scopes: &[Scope::new("watch", Some("list"), "Watch", false).keys(&[
        ("@", "watch.mention"),
        ("m", "watch.mute"),
        ("p", "watch.pause"),
    ])],
};

/// Its actions, besides those of a list.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("watch.mention", "mention", "Mention the file in the message"),
    ActionSpec::key_only("watch.mute", "mute", "Hide this path"),
    ActionSpec::new("watch.pause", "pause", "Pause or resume watching the files").menu(Menu::View),
];

const DIFF: Token = Token(1);
/// Changes of one path by one author within this many milliseconds are one row.
const BURST: i64 = 10_000;
/// Characters of the command that ran at the time.
const DURING: usize = 24;

/// The panel.
#[derive(Default)]
pub struct Watch {
    rows: Rows,
    /// The row for each line, newest first.
    shown: Vec<FileChange>,
    /// Changes since the panel was looked at.
    unseen: u64,
    paused: bool,
    focus: bool,
    /// Paths that are not shown.
    muted: Vec<String>,
}

/// Message to the feed ([`Effect::Tell`]): mutes this path, or shows it again if it is muted. Without a path, lists the
/// muted paths.
pub struct Mute(pub Option<String>);

fn letter(kind: ChangeKind) -> (&'static str, Role) {
    match kind {
        ChangeKind::Added => ("A", Role::Added),
        ChangeKind::Modified => ("M", Role::Text),
        ChangeKind::Deleted => ("D", Role::Removed),
        ChangeKind::Renamed => ("R", Role::Text),
        ChangeKind::Storm => ("*", Role::Dim),
        ChangeKind::Git => ("G", Role::Accent),
    }
}

/// The author of a change: one word where there is little room, else with the agent's name.
fn who(model: &Model, change: &FileChange, long: bool) -> String {
    let of = |word: &str, agent: &tiller_protocol::AgentId| match (agent.is_main(), long) {
        (true, _) => word.to_owned(),
        (false, true) => format!("{word} {}", model.name_of(agent)),
        (false, false) => agent.name().to_owned(),
    };
    if let (Who::Shell { .. }, Some(command), true) = (&change.who, &change.during, long) {
        // The author is not known, only the command that ran.
        let short: String = clean::plain(command).chars().take(DURING).collect();
        return format!("during {short}{}", if command.chars().count() > DURING { "..." } else { "" });
    }
    match &change.who {
        Who::You => "you".into(),
        Who::Agent { agent } => of("agent", agent),
        Who::Shell { agent } => of("shell", agent),
        Who::Git => "git".into(),
    }
}

/// Thousands apart: `2,314`.
fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Newest first, bursts folded into one row.
fn fold(feed: &[FileChange]) -> Vec<FileChange> {
    let mut out: Vec<FileChange> = Vec::new();
    for c in feed.iter().rev() {
        let last =
            out.iter_mut().rev().take(8).find(|o| o.path == c.path && o.who == c.who && o.kind == c.kind);
        match last {
            Some(o) if c.kind != ChangeKind::Storm && o.time.millis() - c.time.millis() < BURST => {
                o.count = o.count.saturating_add(c.count);
            }
            _ => out.push(c.clone()),
        }
    }
    out
}

fn line(model: &Model, c: &FileChange, columns: usize) -> Line {
    let (letter, role) = letter(c.kind);
    let long = columns >= 60;
    let who = who(model, c, long);
    let counts = match c.lines.filter(|_| long) {
        Some((added, removed)) => format!("+{added} -{removed} "),
        None if c.count > 1 && c.kind != ChangeKind::Storm => format!("x{} ", thousands(c.count)),
        None => String::new(),
    };
    let tail = format!(" {counts}{who:<5}");
    let mut line = Line::new(Wrap::Cut);
    line.push(&clock(c.time), Look::of(Role::Dim));
    line.push(&format!(" {letter} "), Look::of(role));
    let room = columns.saturating_sub(width(line.text()) + width(&tail));
    let path = clean::plain(&c.path);
    let text = match c.kind {
        ChangeKind::Storm => {
            let n = format!("{} under ", thousands(c.count));
            format!(
                "{n}{}",
                shorten_middle(&path, room.saturating_sub(width(&n)), crate::widget::draw::ascii())
            )
        }
        _ => shorten_middle(&path, room, crate::widget::draw::ascii()),
    };
    line.push_strict(&text, Look::of(role));
    line.pad_to(columns.saturating_sub(width(&tail)), Look::of(Role::Text));
    line.push_strict(&tail, Look::of(Role::Dim));
    line
}

impl Watch {
    fn chosen(&self) -> Option<&FileChange> {
        self.shown.get(self.rows.chosen)
    }

    /// The chosen change, when it is one of a file.
    fn file(&self) -> Result<&FileChange, Reply> {
        let say = |text: &str| Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, text)));
        match self.chosen() {
            None => Err(Reply::done()),
            Some(c) if matches!(c.kind, ChangeKind::Git) => Err(say("This row is not about a single file")),
            Some(c) => Ok(c),
        }
    }

    /// Toggles the mute of a path; the engine keeps the list.
    fn mute(&mut self, path: String) -> Reply {
        let shown = clean::plain(&path).into_owned();
        let said = match self.muted.iter().position(|m| *m == path) {
            Some(at) => {
                self.muted.remove(at);
                Notice::new(NoticeKind::Info, format!("{shown} is shown again"))
            }
            None => {
                self.muted.push(path.clone());
                Notice::new(NoticeKind::Info, format!("{shown} is no longer shown"))
                    .hint(format!("/mute {shown} shows it again"))
            }
        };
        let mute = CommandBody::Watch(WatchCommand::Mute { path });
        Reply::Done(vec![Effect::send(mute), Effect::Toast(said)])
    }

    fn open(&self) -> Reply {
        match self.file() {
            Ok(c) => {
                let path = c.path.clone();
                Reply::with(Effect::ask(CommandBody::Watch(WatchCommand::Diff { path }), DIFF))
            }
            Err(reply) => reply,
        }
    }
}

impl Panel for Watch {
    fn status(&self, model: &Model) -> PanelStatus {
        PanelStatus::new(if self.rows.typing() { "input" } else { "watch" })
            .escape(self.rows.escape_step())
            .empty(model.workspace.feed.is_empty())
            .attention(if !self.paused && self.unseen > 0 { Attention::Unseen } else { Attention::None })
    }

    fn title(&self, _model: &Model) -> String {
        match (self.paused, self.unseen) {
            (true, _) => "Watch paused".into(),
            (false, 0) => "Watch".into(),
            (false, n) => format!("Watch +{}", thousands(n)),
        }
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _width: u16, model: &Model) -> Placement {
        Placement::Rows(u16::try_from(fold(&model.workspace.feed).len()).unwrap_or(u16::MAX))
    }

    fn act(&mut self, action: Action, _model: &Model) -> Reply {
        match action.0 {
            "list.open" => return self.open(),
            "watch.mention" => {
                return match self.file() {
                    Ok(c) => {
                        let text = format!("@{} ", c.path);
                        Reply::Done(vec![
                            Effect::Focus(View::Composer),
                            Effect::Compose(ComposerInput::Text { text, replace: false }),
                        ])
                    }
                    Err(reply) => reply,
                };
            }
            "watch.mute" => {
                return match self.file() {
                    Ok(c) => {
                        let path = c.path.clone();
                        self.mute(path)
                    }
                    Err(reply) => reply,
                };
            }
            "watch.pause" => {
                self.paused = !self.paused;
                let pause = WatchCommand::Pause { paused: self.paused };
                return Reply::with(Effect::send(CommandBody::Watch(pause)));
            }
            "list.copy" => {
                if let Some(c) = self.chosen() {
                    return Reply::with(Effect::Task(Task::Copy { text: c.path.clone(), what: "path" }));
                }
            }
            "list.back" => return Reply::with(Effect::Focus(View::Composer)),
            id if self.rows.act(id) => {}
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn input(&mut self, input: PanelInput<'_>, _model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => {
                if self.rows.key(key) {
                    Reply::done()
                } else {
                    Reply::Ignored
                }
            }
            PanelInput::Mouse(event, area) => {
                if self.rows.mouse(event, area) {
                    self.open()
                } else {
                    Reply::done()
                }
            }
            PanelInput::Escape(_) => self.on_escape(),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        match event {
            PanelEvent::Engine(event) => self.on_event(event),
            PanelEvent::Answer(token, event) => self.on_answer(token, event),
            PanelEvent::Message(what) => self.on_message(what),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        if let Some(hints) = self.rows.find_hints() {
            return hints;
        }
        let pause = Hint::as_("watch.pause", if self.paused { "resume" } else { "pause" });
        if self.chosen().is_none() {
            return vec![pause];
        }
        vec![Hint::as_("list.open", "diff"), Hint::of("watch.mention"), Hint::of("watch.mute"), pause]
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        self.focus = cx.focus;
        if cx.focus {
            self.unseen = 0;
        }
        let before = self.chosen().cloned();
        self.shown = fold(&cx.model.workspace.feed);
        // The choice stays with its change while new ones come in above, once the person has moved.
        if self.rows.chosen > 0
            && let Some(c) = before
            && let Some(at) = self.shown.iter().position(|s| s.path == c.path && s.time == c.time)
        {
            self.rows.chosen = at;
        }
        let columns = usize::from(area.width);
        self.rows.set(self.shown.iter().map(|c| line(cx.model, c, columns)).collect(), area);
        Refresh::default()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        if self.shown.is_empty() {
            draw::text(buf, area, "No file has changed yet", cx.theme.style(Role::Dim));
        }
        self.rows.draw(cx, area, buf);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        self.rows.cursor(area)
    }
}

impl Watch {
    fn on_escape(&mut self) -> Reply {
        self.rows.end_find();
        Reply::done()
    }

    fn on_event(&mut self, event: &Event) -> Reply {
        match &event.body {
            EventBody::State(StateEvent::WorkspaceChanged { changes }) if !self.focus => {
                self.unseen += changes.iter().map(|c| c.count).sum::<u64>();
            }
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn on_answer(&mut self, token: Token, event: &Event) -> Reply {
        if let (DIFF, EventBody::Reply(r)) = (token, &event.body)
            && let ReplyEvent::DiffReply { path, diff } = r.as_ref()
        {
            let title = format!("{}: since the session began", clean::plain(path));
            return Reply::with(Effect::Push(Box::new(Text::diff(&title, diff))));
        }
        Reply::done()
    }

    fn on_message(&mut self, what: Box<dyn std::any::Any>) -> Reply {
        let Ok(mute) = what.downcast::<Mute>() else { return Reply::Ignored };
        if let Some(path) = mute.0 {
            return self.mute(path);
        }
        let said = match self.muted.as_slice() {
            [] => "No path is muted".to_owned(),
            all => clean::plain(&format!("Hidden: {}", all.join(", "))).into_owned(),
        };
        Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, said)))
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
