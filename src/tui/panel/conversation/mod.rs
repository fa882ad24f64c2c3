//! The conversation: scrolling, selection, search. The same panel is the full viewer.

pub mod copy_mode;
mod draw;
pub(crate) mod empty;
mod mouse;
mod moves;
mod panel;
pub mod search;
pub mod viewport;

use std::any::Any;
use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::{PathPlace, Query};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandBody, Event, EventBody, Notice, NoticeKind};

use crate::app::effect::{Effect, External, Task, Token};
use crate::cell;
use crate::input::escape::EscapeStep;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::conversation::Conversation;
use crate::model::{Model, Slice};
use crate::panel::{
    Availability, DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply, View,
};
use crate::registry::PanelEntry;
use crate::text::paint;
use crate::theme::Role;
use crate::widget::sign;
use copy_mode::CopyMode;
use search::Search;
use viewport::{ScrollPosition, TextPosition, Viewport};

/// Gives a window its size, and what every window takes from the frame.
pub(crate) fn fit(view: &mut Viewport, area: Rect, cx: &DrawCx<'_>) {
    let env = &mut view.env;
    env.columns = usize::from(area.width).max(1);
    env.rows = usize::from(area.height);
    env.measure = usize::from(cx.model.ui.measure).max(20);
    env.ascii = cx.ascii;
    env.now = cx.now;
}

/// The cells with a spinner of a window that was measured.
pub(crate) fn spinners(view: &Viewport, cx: &DrawCx<'_>) -> Vec<(u16, u16)> {
    if cx.reduced_motion { Vec::new() } else { view.spinners() }
}

/// Draws the rows of a window that was measured, without anything over them.
pub(crate) fn window(view: &Viewport, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
    draw::rows(view, draw::Overlay::default(), cx, area, buf);
}

/// Registers the panel.
pub(crate) const PANEL: PanelEntry = PanelEntry {
    view: View::Conversation,
    make: |_| Box::new(ConversationPanel::default()),
    reads: &[Slice::Session, Slice::Conversation, Slice::Outline, Slice::Turn, Slice::Crew, Slice::Engine],
    groups: &[("Conversation", ACTIONS), ("Copy mode", copy_mode::ACTIONS)],
    scopes: &[
        Scope::new("conversation", Some("list"), "Conversation", false).keys(KEYS),
        Scope::new("copy", Some("list"), "Copy mode", false).keys(copy_mode::KEYS),
    ],
};

/// Actions of the conversation. The first ones need no focus.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("conversation.page_up", "page up", "Scroll the conversation up by a page"),
    ActionSpec::key_only("conversation.page_down", "page down", "Scroll the conversation down by a page"),
    ActionSpec::key_only("conversation.message_up", "message up", "Scroll to the previous message"),
    ActionSpec::key_only("conversation.message_down", "message down", "Scroll to the next message"),
    ActionSpec::new("conversation.first", "start", "Go to the start of the conversation").menu(Menu::Go),
    ActionSpec::new("conversation.last", "end", "Go to the end of the conversation").menu(Menu::Go),
    ActionSpec::new("conversation.unfold", "unfold", "Unfold or fold the current turn").menu(Menu::View),
    ActionSpec::key_only("conversation.turn_up", "turn up", "Previous turn"),
    ActionSpec::key_only("conversation.turn_down", "turn down", "Next turn"),
    ActionSpec::key_only("conversation.tool_up", "tool up", "Previous tool call"),
    ActionSpec::key_only("conversation.tool_down", "tool down", "Next tool call"),
    ActionSpec::key_only(
        "conversation.learning_wrong",
        "learning was wrong",
        "Retire the learnings of this call",
    )
    .deciding(),
    ActionSpec::new("conversation.search", "search", "Search the whole conversation").menu(Menu::Go),
    ActionSpec::new("conversation.copy_mode", "copy mode", "Select and copy with the keyboard")
        .menu(Menu::View),
    ActionSpec::new("conversation.copy_reply", "copy reply", "Copy the last reply as Markdown")
        .menu(Menu::View),
    ActionSpec::new("conversation.dump", "dump", "Write the conversation to the terminal's scrollback")
        .menu(Menu::View),
    ActionSpec::new("conversation.edit", "editor", "Open the conversation in the editor").menu(Menu::View),
];

/// Default keys of the section `conversation`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("[", "conversation.turn_up"),
    ("]", "conversation.turn_down"),
    ("{", "conversation.tool_up"),
    ("}", "conversation.tool_down"),
    ("o", "conversation.unfold"),
    ("x", "conversation.learning_wrong"),
    ("v", "conversation.copy_mode"),
];

/// Where another panel wants the conversation to go ([`Effect::Tell`]).
pub enum GoTo {
    Entry(tiller_protocol::EntryId),
    /// A tool call by its id.
    Call(String),
    /// To the end, where the next text appears.
    End,
}

const PAGE: Token = Token(1);
/// A learning that was called wrong.
const WRONG: Token = Token(2);
/// Entries of a page: when scrolling, and when searching. Keys are taken between two of them.
const PAGE_COUNT: u32 = 200;
const SEARCH_COUNT: u32 = 500;
/// So near the edge of what is loaded, the next page is asked for.
const NEAR: usize = 30;

/// The panel of the conversation, or the full viewer.
pub struct ConversationPanel {
    view: Viewport,
    /// It is the full viewer: a layer, everything unfolded.
    viewer: bool,
    /// The chosen cell.
    cursor: Option<u64>,
    search: Option<Search>,
    hit: Option<(u64, usize, usize)>,
    copy: Option<CopyMode>,
    /// Selected by mouse, from where to where.
    selection: Option<(TextPosition, TextPosition)>,
    /// Where the button went down: not yet a selection.
    pressed: Option<(TextPosition, u16, u16)>,
    /// Time and place of the last click.
    clicked: Option<(Duration, u16, u16)>,
    /// An entry to show, that is not loaded.
    wanted: Option<tiller_protocol::EntryId>,
    /// The start of the conversation is to be shown, once it is here.
    to_start: bool,
    loading: bool,
    /// The query that was sent last: asked once only, whatever comes.
    asked: Option<Query>,
    /// The file that the editor has open.
    file: Option<PathBuf>,
    /// The content that was drawn last.
    shown: Option<viewport::WindowContent>,
}

impl Default for ConversationPanel {
    fn default() -> Self {
        let zone = crate::zone::local();
        Self {
            view: Viewport::new(zone),
            viewer: false,
            cursor: None,
            search: None,
            hit: None,
            copy: None,
            selection: None,
            pressed: None,
            clicked: None,
            wanted: None,
            to_start: false,
            loading: false,
            asked: None,
            file: None,
            shown: None,
        }
    }
}

impl ConversationPanel {
    /// As the full viewer.
    pub fn viewer() -> Self {
        let mut panel = Self { viewer: true, ..Self::default() };
        panel.view.all = true;
        panel
    }

    /// The colours of code that is shown are not there yet.
    #[cfg(test)]
    pub(crate) fn waits_for_colours(&self) -> bool {
        self.view.waits_for_colours()
    }

    /// Asks for what is needed next and not loaded: a place that is gone to, what is near the visible rows, what is to be
    /// searched.
    fn page(&mut self, model: &Model) -> Vec<Effect> {
        let conv = &model.agent.conversation;
        self.hold_pages(model);
        let next = self.place_part(conv).or_else(|| self.near_part(conv)).or_else(|| self.search_part());
        match next {
            Some(query) if !self.loading && self.asked.as_ref() != Some(&query) => {
                self.loading = true;
                self.asked = Some(query.clone());
                self.hold_pages(model);
                vec![Effect::ask(CommandBody::Query(query), PAGE)]
            }
            _ => Vec::new(),
        }
    }

    /// The part with the entry that is gone to.
    fn place_part(&self, conv: &Conversation) -> Option<Query> {
        let at = match self.wanted {
            Some(entry) => PathPlace::Around { entry },
            None if self.to_start => PathPlace::Start {},
            None => return None,
        };
        Some(Query::PathPart { before: conv.page_before()?, at, count: PAGE_COUNT })
    }

    /// The part beside the visible rows, when they come near the edge of what is loaded.
    fn near_part(&self, conv: &Conversation) -> Option<Query> {
        let before = conv.page_before()?;
        let end = conv.end_start();
        let rows = self.view.visible.first().zip(self.view.visible.last());
        let rows = rows.filter(|_| self.view.scroll != ScrollPosition::End).map(|(a, b)| (a.index, b.index));
        let part = |at| Some(Query::PathPart { before, at, count: PAGE_COUNT });
        let above_end = PathPlace::Before { entry: before };
        let (Some(first), Some(next)) = (conv.part_first(), conv.part_next()) else {
            let near = conv.cells().len() < NEAR || rows.is_some_and(|(top, _)| top < NEAR);
            return if near { part(above_end) } else { None };
        };
        match rows {
            Some((top, _)) if top < NEAR && conv.above() > 0 => part(PathPlace::Before { entry: first }),
            Some((top, bottom)) if top + 1 < end && bottom + NEAR >= end => {
                part(PathPlace::From { entry: next })
            }
            Some((top, _)) if top >= end && top - end < NEAR => part(above_end),
            _ => None,
        }
    }

    /// The part that the search has not looked through. Some of it may have been loaded since.
    fn search_part(&self) -> Option<Query> {
        let entry = self.search.as_ref().filter(|s| s.whole)?.before?;
        Some(Query::PathPart { before: entry, at: PathPlace::Search { entry }, count: SEARCH_COUNT })
    }

    fn done(&mut self, model: &Model) -> Reply {
        Reply::Done(self.page(model))
    }

    /// Returns what is selected now, by mouse or in copy mode.
    fn range(&self, model: &Model) -> Option<(TextPosition, TextPosition)> {
        let conv = &model.agent.conversation;
        match &self.copy {
            Some(copy) => copy.range(&self.view, conv),
            None => self.selection.map(|(a, b)| self.view.order(conv, a, b)),
        }
    }

    fn selected_text(&mut self, model: &Model) -> Option<String> {
        let (a, b) = self.range(model)?;
        let text = self.view.text_between(&model.agent.conversation, a, b);
        (!text.is_empty()).then_some(text)
    }

    /// Keeps everything that is loaded while another part is on its way, or text is marked.
    fn hold_pages(&self, model: &Model) {
        let marks = self.copy.is_some_and(|c| c.mark.is_some());
        let waits = self.wanted.is_some() || self.to_start || self.loading;
        model.agent.conversation.reading.keep.set(waits || marks);
    }

    /// Everything that is loaded, as text.
    fn transcript(&self, model: &Model) -> String {
        let conv = &model.agent.conversation;
        let mut out = String::new();
        if conv.above() > 0 {
            out.push_str(&format!("({} earlier entries are not here)\n\n", conv.above()));
        }
        for c in conv.cells() {
            for line in cell::plain::plain_lines(c, 100) {
                out.push_str(&line);
                out.push('\n');
            }
            out.push('\n');
        }
        out
    }

    fn dump(&self, model: &Model) -> Reply {
        Reply::with(Effect::Task(Task::Suspend(External::Dump { text: self.transcript(model) })))
    }

    /// Opens the conversation in the editor, from a file that only this person can read.
    fn edit(&mut self, model: &Model) -> Reply {
        match private_file("conversation", &self.transcript(model)) {
            Ok(file) => {
                self.file = Some(file.clone());
                Reply::with(Effect::Task(Task::Suspend(External::Editor { file, line: None })))
            }
            Err(e) => {
                let text = format!("The conversation could not be written for the editor: {e}");
                Reply::with(Effect::Toast(Notice::new(NoticeKind::User, text)))
            }
        }
    }
}

/// Writes `text` to a new file that only its owner can read.
pub(crate) fn private_file(stem: &str, text: &str) -> std::io::Result<PathBuf> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let folder = tempfile::env::temp_dir();
    let mut n = 0;
    loop {
        let path = folder.join(format!("tiller-{stem}-{}-{n}.md", std::process::id()));
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut f) => {
                f.write_all(text.as_bytes())?;
                return Ok(path);
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && n < 100 => n += 1,
            Err(e) => return Err(e),
        }
    }
}

impl ConversationPanel {
    /// Draws the remarks over the last and the first row: the search line, "12 new", "earlier".
    fn remarks(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let conv = &cx.model.agent.conversation;
        let mut bottom = area.bottom();
        if let Some(s) = &self.search {
            bottom -= 1;
            let line = Rect { y: bottom, height: 1, ..area };
            crate::widget::draw::clear(buf, line, cx.theme.style(Role::Raised));
            let place = paint::PaintTarget { x: area.x, y: bottom, columns: area.width };
            let words = crate::text::clean::plain(s.words()).into_owned();
            let used = paint::text(buf, place, &format!("/{words}"), cx.theme.style(Role::Raised));
            let mut count = s.count();
            if s.whole {
                count.push_str(&format!(", {} earlier entries to search", s.earlier));
            }
            right(buf, Rect { x: area.x + used, width: area.width - used, ..line }, &count, cx, Role::Raised);
        }
        let Some(last) = bottom.checked_sub(1).filter(|y| *y >= area.y) else { return };
        if self.view.scroll != ScrollPosition::End {
            let down = sign::DOWN.text(cx.ascii);
            let text = match self.view.unseen(conv) {
                0 => format!(" {down} more "),
                n => format!(" {down} {n} new "),
            };
            right(buf, Rect { y: last, height: 1, ..area }, &text, cx, Role::Raised);
        }
        if self.view.visible.first().is_some_and(|s| s.index == 0 && s.from == 0) && conv.above() > 0 {
            let text = format!(" {} earlier{} ", conv.above(), if self.loading { ", loading" } else { "" });
            right(buf, Rect { height: 1, ..area }, &text, cx, Role::Raised);
        }
    }
}

/// Text at the right end of a row.
fn right(buf: &mut Buffer, row: Rect, text: &str, cx: &DrawCx<'_>, role: Role) {
    let columns = crate::text::width(text) as u16;
    let x = row.right().saturating_sub(columns).max(row.x);
    paint::text(
        buf,
        paint::PaintTarget { x, y: row.y, columns: row.right() - x },
        text,
        cx.theme.style(role),
    );
}

#[cfg(test)]
mod look_tests;
#[cfg(test)]
#[path = "tests.rs"]
mod tests;
