//! Search of sessions while the text is typed: those of this folder, all, or the open one; best or newest first. Enter opens the
//! hit; another key continues from it on a new branch.

use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{
    CommandBody, DocumentHit, DocumentKind, EntryId, Event, EventBody, SearchHit, SearchMeaning, SearchOrder,
    SearchPage, SearchQuery, SearchRole, SessionId,
};

use crate::app::effect::{Effect, EntryAction, Navigation, Token};
use crate::dialog::picker::{EngineQuery, Item, LateRows, ListSpec, Outcome, Picker, Source};
use crate::dialog::session::sessions::ago;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::Hint;
use crate::registry::{Dialog, Opener};
use crate::theme::Role;
use crate::widget::table::{Cell, Column};
use crate::widget::{draw, sign};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("search.open", "find", "Search the text of all sessions", |app| {
        Ok(Box::new(open(&app.model)))
    })
    .menu(Menu::Go)
    .keys(&["leader F"])],
    groups: &[("Search in sessions", ACTIONS)],
    scopes: &[Scope::new("search", Some("picker"), "Search in sessions", true).keys(&[
        ("ctrl-t", "search.wider"),
        ("leader w", "search.role"),
        ("leader o", "search.order"),
        ("leader s", "search.spelling"),
        ("leader f", "search.branch"),
    ])],
    samples: &[("search", || Box::new(open(&Model::default())))],
    ..Dialog::NONE
};

/// Its actions, besides those of a picker.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only(
        "search.wider",
        "widen scope",
        "Widen the scope: this folder, everywhere, this session",
    ),
    ActionSpec::key_only("search.role", "author", "Filter by author: all, people, models, tools"),
    ActionSpec::key_only("search.order", "order", "Order the hits: best first, newest first"),
    ActionSpec::key_only("search.spelling", "use spelling", "Search with the suggested spelling"),
    ActionSpec::key_only("search.branch", "branch here", "Start a branch at the hit"),
];

/// The columns of the list.
const COLUMNS: &[Column] = &[
    Column::text("").grows(),
    Column::text("Session").rank(3),
    Column::text("Folder").rank(2),
    Column::right("When"),
];

/// Hits shown at most.
const LIMIT: u32 = 200;

/// Which sessions are searched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SearchScope {
    Project,
    All,
    Session,
}

struct Search {
    text: String,
    scope: SearchScope,
    role: Option<SearchRole>,
    order: SearchOrder,
    project: String,
    session: Option<SessionId>,
    page: SearchPage,
    /// An answer for the present words is here.
    loaded: bool,
    /// `page` is an answer, for the present words or for those before.
    answered: bool,
    /// The row under the cursor leads to an entry of a session.
    on_entry: bool,
    /// An action that was requested before the hits for the present words were here: it is done at the first of them.
    wanted: Option<Action>,
}

/// Makes it.
pub(crate) fn open(model: &Model) -> Picker {
    let here = model.agent.session.summary.as_ref();
    Picker::new(Search {
        text: String::new(),
        scope: SearchScope::Project,
        role: None,
        order: SearchOrder::Best,
        project: here.map_or_else(String::new, |s| s.project.clone()),
        session: here.map(|s| s.id),
        page: SearchPage::default(),
        loaded: false,
        answered: false,
        on_entry: false,
        wanted: None,
    })
}

impl Search {
    fn query(&self) -> SearchQuery {
        SearchQuery {
            text: self.text.clone(),
            project: (self.scope == SearchScope::Project).then(|| self.project.clone()),
            session: self.session.filter(|_| self.scope == SearchScope::Session),
            roles: self.role.into_iter().collect(),
            order: self.order,
            limit: LIMIT,
            ..SearchQuery::default()
        }
    }

    fn look(&mut self) -> Vec<(CommandBody, Token)> {
        self.loaded = false;
        self.wanted = None;
        if self.text.trim().is_empty() {
            self.page = SearchPage::default();
            self.answered = false;
            return Vec::new();
        }
        vec![(CommandBody::Query(Query::Search { query: self.query() }), Token(1))]
    }

    fn again(&mut self) -> Outcome {
        let effects = self.look().into_iter().map(|(body, token)| Effect::ask(body, token)).collect();
        Outcome::Stay { effects, reload: true }
    }

    fn hit(&self, item: &Item) -> Option<&SearchHit> {
        self.page.hits.iter().find(|h| h.entry.to_string() == item.id)
    }

    fn document(&self, item: &Item) -> Option<&DocumentHit> {
        self.page.documents.iter().find(|d| row_id(d) == item.id)
    }

    /// The entry that a row leads to.
    fn place(&self, item: &Item) -> Option<(SessionId, EntryId)> {
        match self.document(item) {
            Some(document) => document.session.zip(document.entry),
            None => self.hit(item).map(|h| (h.session, h.entry)),
        }
    }

    fn visit((session, entry): (SessionId, EntryId), branch: bool) -> Vec<Effect> {
        let then = if branch { EntryAction::Branch } else { EntryAction::Show };
        vec![Effect::Navigate(Navigation::Entry { session, entry, then })]
    }
}

/// Returns what the row of a document is known by; an entry's row by its id.
fn row_id(document: &DocumentHit) -> String {
    format!("{} {}", document.kind.name(), document.key)
}

/// The preview's line for a hit without a match of its own.
const NO_MATCH: &str = "in the entries before or after it, in another spelling, or by meaning";

/// The fact about where the match of a hit is; empty: it is marked.
fn where_matched((from, to): (usize, usize)) -> String {
    if from < to { String::new() } else { format!("\nMatch    {NO_MATCH}") }
}

/// Rows of the preview: the text in two, a blank one and the facts.
const PREVIEW: u16 = 8;

/// The action that opens the list of these documents.
fn list_of(kind: DocumentKind) -> Action {
    Action(match kind {
        DocumentKind::Memory => "memory.open",
        DocumentKind::Learning => "learnings.open",
        DocumentKind::Skill => "skills.open",
    })
}

/// As in the tree of sessions.
fn mark(role: SearchRole) -> (&'static str, Role) {
    match role {
        SearchRole::User => (draw::sign(sign::FULL), Role::User),
        SearchRole::Assistant => (draw::sign(sign::DOT), Role::Agent),
        SearchRole::Tool => (draw::sign(sign::OK), Role::Dim),
        SearchRole::Summary => (draw::sign(sign::WRAPPED), Role::Dim),
        SearchRole::Note => (draw::sign(sign::DOT), Role::Dim),
    }
}

impl Source for Search {
    fn late(&mut self) -> Option<&mut dyn LateRows> {
        Some(self)
    }

    fn title(&self) -> String {
        let place = match self.scope {
            SearchScope::Project => "this folder's sessions",
            SearchScope::All => "all sessions",
            SearchScope::Session => "this session",
        };
        let who = self.role.map_or_else(String::new, |r| format!(", {} only", r.name()));
        let (order, first) = match self.order {
            SearchOrder::Best => ("", "best"),
            SearchOrder::Newest => (", newest first", "last"),
        };
        let more = if self.page.more { format!(", the {first} {LIMIT}") } else { String::new() };
        let behind = match self.page.behind {
            0 => String::new(),
            n => format!(", {n} entries not searched yet"),
        };
        let spelling = match (&self.page.instead, &self.page.suggestion) {
            (Some(text), _) => format!(": nothing for this, hits for \"{}\"", text.trim()),
            (None, Some(text)) => format!(": did you mean \"{}\"?", text.trim()),
            (None, None) => String::new(),
        };
        let words = match self.page.meaning {
            SearchMeaning::Failed { .. } => ", by keywords only",
            // Where the title has room for it.
            SearchMeaning::Keywords if self.ranked() && behind.is_empty() && spelling.is_empty() => {
                ", by keywords"
            }
            SearchMeaning::Keywords | SearchMeaning::Used => "",
        };
        format!("Find in {place}{who}{order}{words}{more}{behind}{spelling}")
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "search",
            verb: "show",
            columns: COLUMNS,
            table: Some(PREVIEW),
            prompt: "Type words, \"a phrase\" or -excluded",
            empty: self.empty_text(),
            filtered: false,
            refused: ListSpec::refused(ACTIONS, |action| match action.0 {
                "search.spelling" => self.page.suggestion.is_some(),
                "search.branch" => self.on_entry,
                _ => true,
            }),
            ..ListSpec::default()
        }
    }

    fn reply(&mut self, _token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        let ReplyEvent::SearchReply { query, page } = reply.as_ref() else { return None };
        // An answer to words that were changed since.
        if page.cancelled || *query != self.query() {
            return None;
        }
        // A long history is indexed step by step, some of it with each query.
        let before = if self.loaded { self.page.behind } else { u64::MAX };
        let again = page.behind > 0 && page.behind < before;
        self.page = page.clone();
        self.loaded = true;
        self.answered = true;
        let query = || (CommandBody::Query(Query::Search { query: self.query() }), Token(1));
        Some(again.then(query).into_iter().collect())
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let row = |h: &SearchHit| {
            let elsewhere = self.scope == SearchScope::All && h.project != self.project;
            let folder = if elsewhere { h.project.rsplit('/').next().unwrap_or_default() } else { "" };
            let (glyph, role) = mark(h.role);
            let title = if self.scope == SearchScope::Session { "" } else { h.title.as_str() };
            Item::new(h.entry.to_string(), h.preview.as_str())
                .sign(glyph, role)
                .cell(Cell::dim(title))
                .cell(Cell::dim(folder))
                .cell(Cell::dim(ago(h.time, model.now)))
                .marked(h.mark)
        };
        let documents = self.page.documents.iter().map(|d| {
            Item::new(row_id(d), d.preview.as_str())
                .sign(draw::sign(sign::DOT), Role::Dim)
                .cell(Cell::dim(d.title.as_str()))
                .cell(Cell::dim(""))
                .cell(Cell::dim(d.kind.name()))
                .marked(d.mark)
        });
        // What was said is searched first of all.
        self.page.hits.iter().map(row).chain(documents).collect()
    }

    fn hover(&mut self, item: Option<&Item>) -> Vec<Effect> {
        self.on_entry = item.is_some_and(|item| self.place(item).is_some());
        let wanted = self.wanted.take().filter(|_| self.loaded);
        match (item, wanted) {
            (Some(item), Some(action)) => self.do_wanted(action, item),
            // More entries are being searched.
            (None, Some(action)) if self.page.behind > 0 => {
                self.wanted = Some(action);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        self.open_row(item)
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        if matches!(action.0, "picker.choose" | "search.branch") && self.is_waiting() {
            // The rows are those of other words, or there are none yet.
            self.wanted = Some(action);
            return Some(Outcome::none());
        }
        match action.0 {
            "search.wider" => {
                self.scope = match self.scope {
                    SearchScope::Project => SearchScope::All,
                    SearchScope::All if self.session.is_some() => SearchScope::Session,
                    SearchScope::All | SearchScope::Session => SearchScope::Project,
                };
                Some(self.again())
            }
            "search.role" => {
                self.role = match self.role {
                    None => Some(SearchRole::User),
                    Some(SearchRole::User) => Some(SearchRole::Assistant),
                    Some(SearchRole::Assistant) => Some(SearchRole::Tool),
                    Some(_) => None,
                };
                Some(self.again())
            }
            "search.order" => {
                self.order = match self.order {
                    SearchOrder::Best => SearchOrder::Newest,
                    SearchOrder::Newest => SearchOrder::Best,
                };
                Some(self.again())
            }
            "search.spelling" => self.page.suggestion.take().map(Outcome::Filter),
            "search.branch" => {
                let place = self.place(item?)?;
                Some(Outcome::Close(Self::visit(place, true)))
            }
            _ => None,
        }
    }

    fn hints(&self, any: bool) -> Vec<Hint> {
        let branch = (any && self.on_entry).then_some(Hint::of("search.branch"));
        let spelling = self.page.suggestion.is_some().then_some(Hint::of("search.spelling"));
        let others = [Hint::of("search.wider"), Hint::of("search.role"), Hint::of("search.order")];
        spelling.into_iter().chain(branch).chain(others).collect()
    }

    fn preview(&self, item: &Item) -> Option<String> {
        if let Some(d) = self.document(item) {
            let by = where_matched(d.mark);
            return Some(format!("{}\n\nSource   {}\nTitle    {}{by}", d.preview, d.kind.name(), d.title));
        }
        let h = self.hit(item)?;
        let when = h.time.to_rfc3339()[..16].replace('T', " ");
        let who = if h.agent.is_main() { String::new() } else { format!(" ({})", h.agent) };
        let facts = format!(
            "Session  {}\nFolder   {}\nWhen     {when}\nAuthor   {}{who}{}",
            h.title,
            h.project,
            h.role.name(),
            where_matched(h.mark)
        );
        Some(format!("{}\n\n{facts}", h.preview))
    }
}

impl LateRows for Search {
    fn filter(&mut self, text: &str) -> Vec<EngineQuery> {
        text.clone_into(&mut self.text);
        self.look()
    }
}

impl Search {
    /// The hits for the present words are not here yet.
    fn is_waiting(&self) -> bool {
        !self.loaded && !self.text.trim().is_empty()
    }

    /// Does at this row what was requested before it was here, and closes the list.
    fn do_wanted(&self, action: Action, item: &Item) -> Vec<Effect> {
        let effects = match (action.0, self.place(item)) {
            ("search.branch", None) => return Vec::new(),
            ("search.branch", Some(place)) => Self::visit(place, true),
            _ => self.open_row(item),
        };
        std::iter::once(Effect::Pop).chain(effects).collect()
    }

    /// Opens what a row leads to.
    fn open_row(&self, item: &Item) -> Vec<Effect> {
        match (self.place(item), self.document(item)) {
            (Some(place), _) => Self::visit(place, false),
            // What was not said in a session is in a list of its own.
            (None, Some(document)) if document.kind == DocumentKind::Memory => {
                vec![Effect::Push(Box::new(crate::dialog::memory::open_at(
                    &document.title,
                    // The text of the entry, without the signs where it is cut.
                    document.preview.trim_matches(tiller_protocol::search::CUT),
                )))]
            }
            (None, Some(document)) => vec![Effect::Act(list_of(document.kind))],
            (None, None) => Vec::new(),
        }
    }

    /// The page is an answer in the order of the best; another order has no use for meaning.
    fn ranked(&self) -> bool {
        self.answered && self.order == SearchOrder::Best
    }

    /// Returns what the list says while it has no rows.
    fn empty_text(&self) -> &'static str {
        match (self.text.trim().is_empty(), self.loaded) {
            (true, _) => "Matches in the text of your sessions appear here",
            (false, false) => "Loading...",
            (false, true) if self.page.behind > 0 => {
                "Nothing found so far; not all entries have been searched"
            }
            (false, true) if self.role.is_some() => "Nothing found by this author; try all authors",
            (false, true) if self.scope == SearchScope::All => "Nothing found",
            (false, true) => "Nothing found in this scope; try a wider one",
        }
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
