//! The list of sessions: of this project, or all; last used first.

use std::collections::HashSet;

use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandBody, Event, EventBody, Notice, NoticeKind, SessionId, SessionSummary, Time};

use crate::app::effect::{Effect, Navigation, Token};
use crate::dialog::picker::{self, EngineQuery, Item, ListSpec, Outcome, Picker, Source};
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::panel::Hint;
use crate::registry::{Dialog, Opener};
use crate::theme::Role;
use crate::view::words::money;
use crate::widget::table::{Cell, Column};
use crate::widget::{draw, sign};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("sessions.open", "sessions", "Open another session", |_| Ok(Box::new(open())))
        .menu(Menu::Session)
        .keys(&["leader s"])],
    groups: &[("Session picker", ACTIONS)],
    scopes: &[Scope::new("resume", Some("picker"), "Session picker", true).keys(KEYS)],
    samples: &[("sessions", || Box::new(open()))],
    ..Dialog::NONE
};

/// Its actions, besides those of a picker.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only(
        "sessions.everywhere",
        "all projects",
        "Show the sessions of all projects, or of this one",
    ),
    ActionSpec::key_only("sessions.rename", "rename", "Rename the session"),
    ActionSpec::key_only("sessions.archive", "archive", "Archive or unarchive the session").deciding(),
    ActionSpec::key_only(
        "sessions.archived",
        "archived",
        "Show archived sessions and those of `tiller exec` too, then the trash, then neither",
    ),
    ActionSpec::key_only("sessions.trash", "delete", "Delete the session; it can be restored for 30 days")
        .deciding(),
    ActionSpec::key_only("sessions.fork", "fork", "Continue it on a branch; the original stays as it is"),
];

/// Default keys of the section `resume`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("ctrl-t", "sessions.everywhere"),
    ("leader r", "sessions.rename"),
    ("leader x", "sessions.archive"),
    ("leader f", "sessions.fork"),
    ("leader v", "sessions.archived"),
    ("leader d", "sessions.trash"),
];

/// Which sessions are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SessionFilter {
    #[default]
    Current,
    /// Archived sessions and those of `tiller exec` too.
    Archived,
    /// Only sessions in the trash.
    Trash,
}

/// How to undo a change in the list that the engine refused.
enum Rollback {
    Row(Box<SessionSummary>),
    Trash(SessionId),
}

/// The columns of the list.
const COLUMNS: &[Column] = &[
    Column::text("Title").grows(),
    Column::text("").rank(1),
    Column::path("Folder").rank(4),
    Column::path("Git branch").rank(5),
    Column::right("Used"),
    Column::number("Entries").rank(3),
    Column::number("Cost").rank(2),
];

/// Tokens of changes begin here.
const CHANGES: u64 = 10;

#[derive(Default)]
struct Sessions {
    everywhere: bool,
    show: SessionFilter,
    rows: Vec<SessionSummary>,
    /// Sessions moved to the trash, or restored from it, since the list came.
    moved: HashSet<SessionId>,
    /// Changes that the engine has not answered.
    changes: Vec<(Token, Rollback)>,
    next: u64,
    loaded: bool,
}

/// Makes it.
pub(crate) fn open() -> Picker {
    Picker::new(Sessions::default())
}

/// How long ago, in the unit that reads best.
pub(crate) fn ago(then: Time, now: Time) -> String {
    let s = (now.millis() - then.millis()).max(0) / 1000;
    match s {
        0..60 => "now".into(),
        60..3600 => format!("{} min ago", s / 60),
        3600..86_400 => format!("{} h ago", s / 3600),
        86_400..604_800 => format!("{} d ago", s / 86_400),
        _ => then.to_rfc3339()[..10].to_owned(),
    }
}

/// Returns what a session is called: its title, else the first line of its first message.
pub(crate) fn name(s: &SessionSummary) -> &str {
    match (s.title.is_empty(), s.preview.lines().next().unwrap_or_default()) {
        (false, _) => s.title.as_str(),
        (true, "") => "(no messages yet)",
        (true, first) => first,
    }
}

/// A cost in cents, so that the points of a column stand below one another.
fn cents(usd: f64) -> String {
    if usd >= 0.005 { format!("${usd:.2}") } else { money(usd) }
}

/// The group of a day.
fn day(then: Time, now: Time) -> String {
    let zone = crate::zone::local();
    let date =
        |t: Time| jiff::Timestamp::from_millisecond(t.millis()).map(|t| t.to_zoned(zone.clone()).date());
    let (Ok(then), Ok(now)) = (date(then), date(now)) else { return String::new() };
    let days = then.until(now).map_or(0, |span| span.get_days());
    match days {
        ..=0 => "Today".into(),
        1 => "Yesterday".into(),
        2..=6 => "This week".into(),
        _ => "Earlier".into(),
    }
}

impl Sessions {
    fn query(&self) -> CommandBody {
        CommandBody::Query(Query::Sessions {
            everywhere: self.everywhere,
            filter: String::new(),
            archived: self.show == SessionFilter::Archived,
            trashed: self.show == SessionFilter::Trash,
        })
    }

    fn again(&self) -> Outcome {
        Outcome::Stay { effects: vec![Effect::ask(self.query(), Token(1))], reload: true }
    }

    /// Requests a change that is shown already; a refusal undoes it in the list.
    fn change(&mut self, command: SessionCommand, before: Rollback) -> Outcome {
        self.next += 1;
        let token = Token(CHANGES + self.next);
        self.changes.push((token, before));
        Outcome::Stay { effects: vec![Effect::ask(CommandBody::Session(command), token)], reload: true }
    }

    fn trashed(&self, id: SessionId) -> bool {
        (self.show == SessionFilter::Trash) != self.moved.contains(&id)
    }

    /// Returns what is to be said of a session besides its title.
    fn state(&self, s: &SessionSummary, here: bool) -> (&'static str, Role) {
        match () {
            () if self.trashed(s.id) => ("in the trash", Role::Dim),
            () if s.archived => ("archived", Role::Dim),
            () if s.exec => ("exec", Role::Dim),
            () if s.open_in.is_some() && !here => ("open elsewhere", Role::Dim),
            () if s.interrupted.is_some() && !here => ("interrupted", Role::Text),
            () => ("", Role::Dim),
        }
    }

    fn row(&self, item: Option<&Item>) -> Option<&SessionSummary> {
        let id = &item?.id;
        self.rows.iter().find(|s| s.id.to_string() == *id)
    }
}

impl Source for Sessions {
    fn title(&self) -> String {
        let of = if self.everywhere { "all projects" } else { "this project" };
        match self.show {
            SessionFilter::Current => format!("Sessions of {of}"),
            SessionFilter::Archived => format!("Sessions of {of}, archived included"),
            SessionFilter::Trash => format!("Trash of {of}"),
        }
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "resume",
            actions: picker::ACTIONS,
            verb: "open",
            columns: COLUMNS,
            table: Some(6),
            empty: self.empty_text(),
            ..ListSpec::default()
        }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        vec![(self.query(), Token(1))]
    }

    fn reply(&mut self, token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        match reply.as_ref() {
            ReplyEvent::SessionsReply { sessions } => {
                self.loaded = true;
                self.moved.clear();
                self.rows.clone_from(sessions);
                Some(Vec::new())
            }
            ReplyEvent::ErrorReply { .. } => {
                let at = self.changes.iter().position(|(t, _)| *t == token);
                match at.map(|i| self.changes.swap_remove(i).1) {
                    Some(Rollback::Row(old)) => {
                        if let Some(row) = self.rows.iter_mut().find(|s| s.id == old.id) {
                            *row = *old;
                        }
                        Some(Vec::new())
                    }
                    Some(Rollback::Trash(id)) => {
                        if !self.moved.remove(&id) {
                            self.moved.insert(id);
                        }
                        Some(Vec::new())
                    }
                    None => None,
                }
            }
            _ => None,
        }
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let now = model.now;
        let current = model.agent.session.summary.as_ref().map(|s| s.id);
        let item = |s: &SessionSummary| {
            let here = Some(s.id) == current;
            let (state, role) = self.state(s, here);
            let cost = s.cost.map_or(String::new(), |c| cents(c.usd()));
            let item = Item {
                more: format!("{} {} {}", s.project, s.git_branch, s.preview),
                ..Item::new(s.id.to_string(), name(s))
            }
            .group(day(s.used, now))
            .current(here)
            .cell(Cell::new(state, role))
            .cell(Cell::dim(if self.everywhere { s.project.as_str() } else { "" }))
            .cell(Cell::dim(s.git_branch.as_str()))
            .cell(Cell::dim(ago(s.used, now)))
            .cell(Cell::number(s.entries.to_string(), ""))
            .cell(Cell::number(cost, ""));
            if here { item.sign(draw::sign(sign::FULL), Role::Strong) } else { item }
        };
        self.rows.iter().map(item).collect()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        item.id
            .parse()
            .map_or(Vec::new(), |id| vec![Effect::send(CommandBody::Session(SessionCommand::Open { id }))])
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        match action.0 {
            "sessions.everywhere" => {
                self.everywhere = !self.everywhere;
                Some(self.again())
            }
            "sessions.archived" => {
                self.show = match self.show {
                    SessionFilter::Current => SessionFilter::Archived,
                    SessionFilter::Archived => SessionFilter::Trash,
                    SessionFilter::Trash => SessionFilter::Current,
                };
                Some(self.again())
            }
            "sessions.rename" => {
                let text = self.row(item)?.title.clone();
                Some(Outcome::Input { label: "title", text })
            }
            "sessions.archive" => {
                let id = self.row(item)?.id;
                let s = self.rows.iter_mut().find(|s| s.id == id)?;
                // It stays in this list, so that the same key brings it back.
                let before = s.clone();
                s.archived = !s.archived;
                let archive = SessionCommand::Archive { id, archived: s.archived };
                Some(self.change(archive, Rollback::Row(Box::new(before))))
            }
            "sessions.trash" => {
                let id = self.row(item)?.id;
                let trashed = !self.trashed(id);
                if !self.moved.remove(&id) {
                    self.moved.insert(id);
                }
                Some(self.change(SessionCommand::Trash { id, trashed }, Rollback::Trash(id)))
            }
            "sessions.fork" => {
                let s = self.row(item)?;
                if s.entries == 0 {
                    let said = Notice::new(NoticeKind::Info, "This session has no messages yet");
                    return Some(Outcome::Stay { effects: vec![Effect::Toast(said)], reload: false });
                }
                Some(Outcome::Close(vec![Effect::Navigate(Navigation::Branch(s.id))]))
            }
            _ => None,
        }
    }

    fn submit(&mut self, item: &Item, text: &str, _model: &Model) -> Outcome {
        let found = self.rows.iter_mut().find(|s| s.id.to_string() == item.id);
        let Some(s) = found.filter(|s| !text.is_empty() && s.title != text) else {
            return Outcome::none();
        };
        let before = s.clone();
        s.title = text.to_owned();
        let rename = SessionCommand::Rename { id: s.id, title: s.title.clone() };
        self.change(rename, Rollback::Row(Box::new(before)))
    }

    fn hints(&self, any: bool) -> Vec<Hint> {
        let all = if self.everywhere { "this project" } else { "all projects" };
        let away = match self.show {
            SessionFilter::Current => "archived",
            SessionFilter::Archived => "trash",
            SessionFilter::Trash => "hide trash",
        };
        let trash = if self.show == SessionFilter::Trash { "restore" } else { "delete" };
        let mut out = vec![Hint::as_("sessions.everywhere", all)];
        if any {
            let of_row = ["sessions.rename", "sessions.fork", "sessions.archive"];
            out.extend(of_row.map(Hint::of));
            out.push(Hint::as_("sessions.trash", trash));
        }
        out.push(Hint::as_("sessions.archived", away));
        out
    }

    fn preview(&self, item: &Item) -> Option<String> {
        let s = self.row(Some(item))?;
        let mut text = if s.preview.is_empty() { String::new() } else { format!("{}\n\n", s.preview) };
        text.push_str(&format!("Model    {}\nFolder   {}\n", s.model, s.project));
        if !s.git_branch.is_empty() {
            text.push_str(&format!("Branch   {}\n", s.git_branch));
        }
        text.push_str(&format!("Started  {}\n", s.created.to_rfc3339()[..16].replace('T', " ")));
        if let Some(pid) = &s.open_in {
            text.push_str(&format!("Open in  process {pid}\n"));
        }
        if let Some(what) = &s.interrupted {
            text.push_str(&format!("Interrupted while it ran: {what}\n"));
        }
        Some(format!("{text}Id       {}", s.id))
    }
}

impl Sessions {
    /// Returns what the list says while it has no rows.
    fn empty_text(&self) -> &'static str {
        match (self.loaded, self.rows.is_empty()) {
            (true, true) => "Sessions appear here once you have sent a message",
            (true, false) => "No session matches",
            (false, _) => "Loading...",
        }
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
