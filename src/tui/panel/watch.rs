//! File changes in the project, grouped by their author, newest first.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::WatchCommand;
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::feed::Who;
use tiller_protocol::{ChangeKind, CommandBody, Event, EventBody, FileChange, Notice, NoticeKind};

use super::empty_view::explain;
use super::headings;
use super::times::clock;
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
use crate::text::{clean, shorten_end, shorten_middle, width};
use crate::theme::Role;
use crate::view::words::grouped;
use crate::widget::line_list::LineList;
use crate::widget::{draw, sign};

/// Registers the panel.
pub(crate) const PANEL: PanelEntry = PanelEntry {
    view: View::Watch,
    make: |_| Box::new(Watch::default()),
    reads: &[Slice::Crew, Slice::Workspace],
    groups: &[("Changes", ACTIONS)],
    scopes: &[Scope::new("watch", Some("list"), "Changes", false).keys(&[
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
/// Columns of a time.
const TIME: usize = 5;
/// Fewest columns in which more is said of a change than its file.
const LEAST: usize = 12;

/// The panel.
#[derive(Default)]
pub struct Watch {
    rows: LineList,
    /// The change for each line; `None`: the name of a group.
    shown: Vec<Option<FileChange>>,
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
        ChangeKind::Modified => ("M", Role::Dim),
        ChangeKind::Deleted => ("D", Role::Removed),
        ChangeKind::Renamed => ("R", Role::Dim),
        ChangeKind::Storm => ("*", Role::Dim),
        ChangeKind::Git => (" ", Role::Dim),
    }
}

/// The name of a group.
fn origin(model: &Model, who: &Who) -> String {
    match who {
        Who::You => "You and other programs".into(),
        Who::Agent { agent } => model.name_of(agent),
        Who::Shell { agent } => format!("Commands of {}", model.name_of(agent)),
        Who::Git => "Git".into(),
    }
}

/// By origin, the one with the newest change first, and newest first in each: one row for each file.
fn groups(feed: &[FileChange]) -> Vec<Vec<FileChange>> {
    let mut out: Vec<Vec<FileChange>> = Vec::new();
    for c in feed.iter().rev() {
        let at = out.iter().position(|g| g.first().is_some_and(|f| f.who == c.who));
        let Some(group) = at.and_then(|at| out.get_mut(at)) else {
            out.push(vec![c.clone()]);
            continue;
        };
        let single = !matches!(c.kind, ChangeKind::Git | ChangeKind::Storm);
        match group.iter_mut().find(|o| single && o.path == c.path && o.kind != ChangeKind::Storm) {
            Some(newer) => merge(newer, c),
            None => group.push(c.clone()),
        }
    }
    out
}

/// Adds an earlier change of the same file by the same author.
fn merge(newer: &mut FileChange, c: &FileChange) {
    newer.count = newer.count.saturating_add(c.count);
    newer.lines = match (newer.lines, c.lines) {
        (Some((a, r)), Some((more_a, more_r))) => Some((a.saturating_add(more_a), r.saturating_add(more_r))),
        (known, other) => known.or(other),
    };
    if (newer.kind, c.kind) == (ChangeKind::Modified, ChangeKind::Added) {
        newer.kind = ChangeKind::Added;
    }
}

/// Widths of the columns of added and removed lines, signs included.
#[derive(Clone, Copy, Default)]
struct CountWidths(usize, usize);

fn added(n: u32) -> String {
    if n > 0 { format!("+{}", grouped(n.into())) } else { String::new() }
}

fn removed(n: u32) -> String {
    let minus = draw::sign(sign::MINUS);
    if n > 0 { format!("{minus}{}", grouped(n.into())) } else { String::new() }
}

/// The figures of a row or of a group: lines added and removed, and the time; each ends below those of other rows.
struct Figures {
    plus: String,
    minus: String,
    time: String,
}

impl Figures {
    fn new((plus, minus): (u32, u32), time: &str, widths: CountWidths) -> Self {
        let CountWidths(plus_width, minus_width) = widths;
        let before_time = if plus_width + minus_width > 0 { "  " } else { "" };
        Self {
            plus: format!("{:>plus_width$}", added(plus)),
            minus: format!(" {:>minus_width$}", removed(minus)),
            time: format!("{before_time}{time:>TIME$}"),
        }
    }

    fn all(&self) -> String {
        format!("{}{}{}", self.plus, self.minus, self.time)
    }

    /// Columns that they need, with the gap before them: what is blank at their left belongs to the text.
    fn width(&self) -> usize {
        let shown = width(self.all().trim_start());
        if shown > 0 { shown + 2 } else { 0 }
    }

    /// Adds them to the right end of a line.
    fn push(&self, line: &mut Line, columns: usize) {
        let shown = self.all();
        let mut skip = shown.len() - shown.trim_start().len();
        line.pad_to(columns.saturating_sub(width(shown.trim_start())), Look::of(Role::Text));
        let parts = [(&self.plus, Role::Added), (&self.minus, Role::Removed), (&self.time, Role::Dim)];
        for (text, role) in parts {
            let blank = skip.min(text.len());
            skip -= blank;
            line.push_strict(&text[blank..], Look::of(role));
        }
    }
}

fn heading(model: &Model, group: &[FileChange], widths: CountWidths, columns: usize) -> Line {
    let mut line = Line::new(Wrap::Cut);
    let name = group.first().map_or_else(String::new, |c| origin(model, &c.who));
    let several = group.len() > 1 && group.iter().all(|c| c.kind != ChangeKind::Git);
    let files = if several { format!(" {}", group.len()) } else { String::new() };
    let sum =
        |of: fn((u32, u32)) -> u32| group.iter().filter_map(|c| c.lines).map(of).fold(0, u32::saturating_add);
    let lines = if several { (sum(|l| l.0), sum(|l| l.1)) } else { (0, 0) };
    let figures = Figures::new(lines, "", widths);
    let room = columns.saturating_sub(figures.width() + width(&files));
    let name = shorten_end(&clean::plain(&name), room, draw::ascii());
    line.push_strict(&name, Look::of(Role::Text).bold());
    line.push(&files, Look::of(Role::Dim));
    figures.push(&mut line, columns);
    line
}

fn line(c: &FileChange, widths: CountWidths, columns: usize) -> Line {
    let (letter, role) = letter(c.kind);
    let mut line = Line::new(Wrap::Cut);
    line.push(&format!("{letter} "), Look::of(role));
    let storm = c.kind == ChangeKind::Storm;
    let more = if storm || c.lines.is_some() || c.count < 2 {
        String::new()
    } else {
        format!("  {} changes", grouped(c.count))
    };
    // The author is not known then, only the command that ran.
    let during = c.during.as_deref().map_or_else(String::new, |d| format!("  during {}", clean::plain(d)));
    let figures = Figures::new(c.lines.unwrap_or_default(), &clock(c.time), widths);
    let room = columns.saturating_sub(width(line.text()) + figures.width());
    let path = clean::plain(&c.path);
    let many = if storm { format!("{} files under ", grouped(c.count)) } else { String::new() };
    line.push_strict(&many, Look::of(Role::Dim));
    let path = match c.kind {
        ChangeKind::Git => shorten_end(&path, room, draw::ascii()),
        _ => shorten_middle(&path, room.saturating_sub(width(&many)), draw::ascii()),
    };
    let gone = c.kind == ChangeKind::Deleted;
    line.push_strict(&path, Look::of(if gone { Role::Dim } else { Role::Text }));
    for text in [more, during] {
        let left = (room + 2).saturating_sub(width(line.text()));
        if left >= LEAST && !text.is_empty() {
            line.push_strict(&shorten_end(&text, left, draw::ascii()), Look::of(Role::Dim));
        }
    }
    figures.push(&mut line, columns);
    line
}

/// The rows: groups with their names, each change on a line.
fn lines(model: &Model, columns: usize) -> (Vec<Line>, Vec<Option<FileChange>>) {
    let groups = groups(&model.workspace.feed);
    let mut widths = CountWidths::default();
    let mut wider = |(plus, minus): (u32, u32)| {
        widths.0 = widths.0.max(width(&added(plus)));
        widths.1 = widths.1.max(width(&removed(minus)));
    };
    for group in &groups {
        let all = group.iter().filter_map(|c| c.lines);
        wider(all.fold((0, 0), |(a, b), (c, d)| (a.saturating_add(c), b.saturating_add(d))));
    }
    let (mut lines, mut what) = (Vec::new(), Vec::new());
    for group in groups {
        lines.push(heading(model, &group, widths, columns));
        what.push(None);
        for c in group {
            lines.push(line(&c, widths, columns));
            what.push(Some(c));
        }
    }
    (lines, what)
}

impl Watch {
    fn chosen(&self) -> Option<&FileChange> {
        self.shown.get(self.rows.chosen)?.as_ref()
    }

    /// Moves on from the name of a group, in the direction of the last step.
    fn leave_heading(&mut self, before: usize) {
        let is_row = |at: usize| self.shown.get(at).is_some_and(Option::is_some);
        self.rows.chosen = headings::past(self.rows.chosen, before, self.shown.len(), is_row);
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
                Notice::new(NoticeKind::Info, format!("Shown again: {shown}"))
            }
            None => {
                self.muted.push(path.clone());
                Notice::new(NoticeKind::Info, format!("No longer shown: {shown}"))
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
            (true, _) => "Changes paused".into(),
            (false, 0) => "Changes".into(),
            (false, n) => format!("Changes {} new", grouped(n)),
        }
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _width: u16, model: &Model) -> Placement {
        let groups = groups(&model.workspace.feed);
        let rows: usize = groups.iter().map(|g| g.len() + 1).sum();
        Placement::Rows(u16::try_from(rows).unwrap_or(u16::MAX))
    }

    fn act(&mut self, action: Action, _model: &Model) -> Reply {
        let before = self.rows.chosen;
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
            id if self.rows.act(id) => self.leave_heading(before),
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
        let (lines, shown) = lines(cx.model, usize::from(area.width));
        self.shown = shown;
        // The choice stays with its file while new changes come in above, once the person has moved.
        if self.rows.chosen > 1
            && let Some(c) = before
            && let Some(at) = self
                .shown
                .iter()
                .flatten()
                .position(|s| s.path == c.path && s.who == c.who && s.kind == c.kind)
        {
            let rows = self.shown.iter().enumerate().filter(|(_, s)| s.is_some());
            self.rows.chosen = rows.map(|(n, _)| n).nth(at).unwrap_or(0);
        }
        self.leave_heading(0);
        self.rows.set(lines, area);
        Refresh::default()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        if self.shown.is_empty() {
            explain(cx, area, "Files that change in this folder appear here", buf);
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
