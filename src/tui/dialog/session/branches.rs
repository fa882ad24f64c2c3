//! The branches of the session: open one, name it, archive it, begin another, carry over a summary of one.

use tiller_protocol::branch::BranchView;
use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandBody, EntryId, Event, EventBody, Notice, NoticeKind};

use crate::app::effect::{Effect, Token};
use crate::dialog::picker::{self, EngineQuery, Item, ListSpec, Outcome, Picker, Source};
use crate::dialog::session::restore::Restore;
use crate::dialog::session::sessions::ago;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::panel::Hint;
use crate::registry::{Dialog, Opener};
use crate::theme::Role;
use crate::widget::table::{Cell, Column};
use crate::widget::{draw, sign};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new(
        "branches.open",
        "branches",
        "Branches of this session: open, name, archive",
        |_| Ok(Box::new(open())),
    )
    .menu(Menu::Session)],
    groups: &[("Branches", ACTIONS)],
    scopes: &[Scope::new("branches", Some("picker"), "Branches", true).keys(KEYS)],
    samples: &[("branches", || Box::new(sample()))],
    ..Dialog::NONE
};

/// Its actions, besides those of a picker.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("branches.new", "new", "Start another branch here; this one stays as it is"),
    ActionSpec::key_only("branches.name", "name", "Name the branch"),
    ActionSpec::key_only("branches.archive", "archive", "Archive or unarchive the branch").deciding(),
    ActionSpec::key_only("branches.archived", "show all", "Show or hide archived branches"),
    ActionSpec::key_only(
        "branches.carry",
        "summary",
        "Add a summary of that branch to this one: what was tried and found",
    )
    .deciding(),
];

/// Default keys of the section `branches`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("ctrl-t", "branches.archived"),
    ("leader f", "branches.new"),
    ("leader r", "branches.name"),
    ("leader s", "branches.carry"),
    ("leader x", "branches.archive"),
];

/// The columns of the list.
const COLUMNS: &[Column] = &[
    Column::text("Branch"),
    Column::text("Last message").grows(),
    Column::text("").rank(1),
    Column::right("Used"),
];

/// Token of the list; changes have other tokens.
const LIST: Token = Token(1);
const CHANGE: Token = Token(2);

/// The use of the typed text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BranchInput {
    #[default]
    Name,
    Focus,
}

#[derive(Default)]
struct Branches {
    rows: Vec<BranchView>,
    archived: bool,
    wanted: BranchInput,
    loaded: bool,
}

/// Makes it.
pub(crate) fn open() -> Picker {
    Picker::new(Branches::default())
}

/// With rows, for the tests that visit all dialogs.
pub(crate) fn sample() -> Picker {
    let row = |head: &str, words: &str, open| BranchView {
        name: tiller_protocol::BranchName { head: head.into(), label: String::new() },
        words: words.into(),
        open,
        ..BranchView::default()
    };
    let rows = vec![row("main", "make it retry", true), row("branch-1a2b3c4d", "try with a library", false)];
    Picker::new(Branches { rows, loaded: true, ..Branches::default() })
}

fn toast(text: &str) -> Outcome {
    let said = Notice::new(NoticeKind::Info, text);
    Outcome::Stay { effects: vec![Effect::Toast(said)], reload: false }
}

/// Opens a branch. If the branch has entries, a dialog says first that files stay as they are, and can restore the
/// files of the branch.
pub(crate) fn open_branch(head: String, word: &str, tip: Option<EntryId>) -> Effect {
    match tip {
        Some(tip) => Effect::Push(Box::new(Restore::branch(head, word.to_owned(), tip))),
        None => Effect::send(CommandBody::Session(SessionCommand::OpenBranch { head })),
    }
}

impl Branches {
    fn row(&self, item: Option<&Item>) -> Option<&BranchView> {
        let head = &item?.id;
        self.rows.iter().find(|b| b.name.head == *head)
    }

    /// Sends a change, then reads the list again.
    fn change(command: SessionCommand) -> Outcome {
        let effects = vec![
            Effect::ask(CommandBody::Session(command), CHANGE),
            Effect::ask(CommandBody::Query(Query::Branches), LIST),
        ];
        Outcome::Stay { effects, reload: false }
    }
}

impl Branches {
    /// Returns what the list says while it has no rows.
    fn empty_text(&self) -> &'static str {
        match (self.loaded, self.rows.is_empty()) {
            (false, _) => "Loading...",
            (true, true) => "Branches appear here once you have sent a message",
            (true, false) => "No branch matches",
        }
    }
}

impl Source for Branches {
    fn title(&self) -> String {
        if self.archived { "Branches, archived included".into() } else { "Branches of this session".into() }
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "branches",
            actions: picker::ACTIONS,
            verb: "open",
            columns: COLUMNS,
            empty: self.empty_text(),
            table: Some(3),
            ..ListSpec::default()
        }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        vec![(CommandBody::Query(Query::Branches), LIST)]
    }

    fn reply(&mut self, token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        match reply.as_ref() {
            ReplyEvent::BranchesReply { branches, .. } if token == LIST => {
                self.loaded = true;
                self.rows.clone_from(branches);
                // The open one first, then the newest.
                self.rows.sort_by_key(|b| (!b.open, std::cmp::Reverse(b.time)));
                Some(Vec::new())
            }
            _ => None,
        }
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let shown = self.rows.iter().filter(|b| self.archived || !b.archived);
        let item = |b: &BranchView| {
            let words = if b.words.is_empty() { "(no messages)" } else { &b.words };
            let state = match (b.archived, &b.open_in) {
                (true, _) => "archived",
                (false, Some(_)) if !b.open => "open elsewhere",
                _ => "",
            };
            let when = b.time.map_or(String::new(), |t| ago(t, model.now));
            let item = Item {
                more: format!("{} {}", b.name.head, b.words),
                ..Item::new(&b.name.head, b.name.word())
            }
            .current(b.open)
            .cell(Cell::new(words, Role::Text))
            .cell(Cell::dim(state))
            .cell(Cell::dim(when));
            if b.open { item.sign(draw::sign(sign::FULL), Role::Strong) } else { item }
        };
        shown.map(item).collect()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        match self.row(Some(item)) {
            Some(b) if !b.open => vec![open_branch(b.name.head.clone(), b.name.word(), b.entry)],
            _ => Vec::new(),
        }
    }

    fn act(&mut self, action: Action, item: Option<&Item>, model: &Model) -> Option<Outcome> {
        match action.0 {
            "branches.archived" => {
                self.archived = !self.archived;
                Some(Outcome::reload(Vec::new()))
            }
            "branches.new" => {
                let tip = self.rows.iter().find(|b| b.open).and_then(|b| b.entry);
                Some(match tip {
                    _ if model.agent.turn.running => toast("A turn is running; stop it first"),
                    None => toast("No messages yet: there is nothing to branch from"),
                    Some(entry) => {
                        let fork = SessionCommand::Fork { entry };
                        Outcome::Close(vec![Effect::send(CommandBody::Session(fork))])
                    }
                })
            }
            "branches.name" => {
                let text = self.row(item)?.name.label.clone();
                self.wanted = BranchInput::Name;
                Some(Outcome::Input { label: "name", text })
            }
            "branches.archive" => {
                let b = self.row(item)?;
                let (head, archived) = (b.name.head.clone(), !b.archived);
                Some(if b.open {
                    toast("This is the current branch; open another one first")
                } else {
                    Self::change(SessionCommand::ArchiveBranch { session: None, head, archived })
                })
            }
            "branches.carry" => Some(match self.row(item)? {
                b if b.open => toast("This is the current branch"),
                b if b.entry.is_none() => toast("This branch has no messages"),
                _ if model.agent.turn.running => toast("A turn is running; stop it first"),
                _ => {
                    self.wanted = BranchInput::Focus;
                    Outcome::Input { label: "what the summary must keep (optional)", text: String::new() }
                }
            }),
            _ => None,
        }
    }

    fn submit(&mut self, item: &Item, text: &str, _model: &Model) -> Outcome {
        let nothing = Outcome::none();
        let Some(b) = self.row(Some(item)) else { return nothing };
        match (self.wanted, b.entry) {
            (BranchInput::Name, _) if text.is_empty() || text == b.name.label => nothing,
            (BranchInput::Name, _) => Self::change(SessionCommand::LabelBranch {
                session: None,
                head: b.name.head.clone(),
                label: text.to_owned(),
            }),
            (BranchInput::Focus, Some(from)) => {
                let focus = Some(text.to_owned()).filter(|t| !t.is_empty());
                let carry = SessionCommand::CarryOver { from, focus };
                Outcome::Close(vec![Effect::send(CommandBody::Session(carry))])
            }
            (BranchInput::Focus, None) => nothing,
        }
    }

    fn hints(&self, any: bool) -> Vec<Hint> {
        let all = Hint::as_("branches.archived", if self.archived { "hide archived" } else { "show all" });
        let of_row = ["branches.name", "branches.carry", "branches.archive"];
        let of_row = of_row.into_iter().filter(|_| any).map(Hint::of);
        [Hint::of("branches.new")].into_iter().chain(of_row).chain([all]).collect()
    }

    fn preview(&self, item: &Item) -> Option<String> {
        let b = self.row(Some(item))?;
        let mut text = format!("Id       {}\n", b.name.head);
        if b.open {
            text.push_str("The current branch\n");
        }
        if let Some(pid) = &b.open_in {
            text.push_str(&format!("Open in  process {pid}\n"));
        }
        Some(text)
    }
}

#[cfg(test)]
#[path = "branches_tests.rs"]
mod tests;
