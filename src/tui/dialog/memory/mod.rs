//! The memory browser: what is kept across sessions, and where each entry comes from. Enter goes to the message that wrote an
//! entry; keys edit, remove and archive entries, and decide about those that wait.

pub(crate) mod learnings;
mod list_state;
mod rows;

pub(crate) use rows::sample as sample_page;

use tiller_protocol::command::Query;
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::memory::MemoryPage;
use tiller_protocol::{
    CommandBody, EntryId, Event, EventBody, MemoryCommand, MemoryEntry, MemoryQuery, MemoryState, SessionId,
    VIOLATED,
};

use crate::app::effect::{Effect, Token};
use crate::dialog::picker::{self, EngineQuery, Item, ListSpec, Outcome, Picker, Source};
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::panel::Hint;
use crate::registry::{Dialog, Opener};
use list_state::{LIST, ListState, ListUpdate, TO_SOURCE, toast, visit};

/// The dialogs of this group.
pub(crate) const DIALOGS: &[Dialog] = &[DIALOG, learnings::DIALOG];

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("memory.open", "memory", "Memory: what is kept across sessions", |_| {
        Ok(Box::new(Picker::new(Browser::default())))
    })
    .menu(Menu::Go)],
    groups: &[("Memory", ACTIONS)],
    scopes: &[Scope::new("memory", Some("picker"), "Memory", true).keys(KEYS)],
    samples: &[("memory", || Box::new(sample()))],
    ..Dialog::NONE
};

/// Its actions, besides those of a picker.
const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only(
        "memory.accept",
        "accept",
        "Keep the entry that waits, or take one of others as yours",
    )
    .deciding(),
    ActionSpec::key_only(
        "memory.decline",
        "decline",
        "Decline the entry that waits, or take a removed one off the list",
    )
    .deciding(),
    ActionSpec::key_only("memory.edit", "edit", "Edit the entry; one that waits is kept with the new text"),
    ActionSpec::key_only("memory.delete", "delete", "Delete the entry; undo brings it back").deciding(),
    ActionSpec::key_only("memory.archive", "archive", "Archive the entry, or bring it back").deciding(),
    ActionSpec::key_only(
        "memory.restore",
        "restore",
        "Restore the entry that was removed or changed outside Tiller",
    )
    .deciding(),
    ActionSpec::key_only(
        "memory.restore-all",
        "restore all",
        "Restore all entries that were found missing with this one",
    )
    .deciding(),
    ActionSpec::key_only("memory.rule", "rule", "Show the rule of the entry, and what it can become"),
    ActionSpec::key_only("memory.undo", "undo", "Undo the last change of memory").deciding(),
    ActionSpec::key_only("memory.redo", "redo", "Redo the change that was undone last").deciding(),
];

/// Default keys of the section `memory`.
const KEYS: &[DefaultKey] = &[
    ("leader a", "memory.accept"),
    ("leader x", "memory.decline"),
    ("leader e", "memory.edit"),
    ("leader d", "memory.delete"),
    ("leader v", "memory.archive"),
    ("leader b", "memory.restore"),
    ("leader B", "memory.restore-all"),
    ("leader p", "memory.rule"),
    ("leader z", "memory.undo"),
    ("leader Z", "memory.redo"),
];

/// The list.
#[derive(Default)]
struct Browser {
    page: MemoryPage,
    /// The ids of the rows of `page`.
    ids: Vec<String>,
    state: ListState,
    /// The row that the last action was about, and the id that it has once the action is done.
    renamed: Option<(String, String)>,
    /// The entry that the list starts on: the name of its file, and a part of its text in one line.
    start: Option<(String, String)>,
}

/// With the cursor on the entry of the file `label` in which the text `part` stands.
pub(crate) fn open_at(label: &str, part: &str) -> Picker {
    Picker::new(Browser { start: Some((label.to_owned(), one_line(part))), ..Browser::default() })
}

/// With rows, for the tests that visit all dialogs.
fn sample() -> Picker {
    let mut browser = Browser { state: ListState::loaded(), ..Browser::default() };
    browser.set_page(rows::sample());
    Picker::new(browser)
}

impl Browser {
    /// The entry of a row.
    fn entry(&self, item: Option<&Item>) -> Option<&MemoryEntry> {
        self.by_id(&item?.id)
    }

    fn by_id(&self, id: &str) -> Option<&MemoryEntry> {
        let at = self.ids.iter().position(|own| own == id)?;
        self.page.entries.get(at)
    }

    fn set_page(&mut self, page: MemoryPage) {
        self.ids = rows::ids(&page.entries);
        self.page = page;
    }

    /// The cursor follows the row to the entry with this text.
    fn follow(&mut self, item: Option<&Item>, entry: &MemoryEntry, text: &str) {
        let now = rows::id_of_text(entry.target, text);
        self.renamed = item.map(|item| (item.id.clone(), now));
    }

    /// The entry under the cursor.
    fn current(&self) -> Option<&MemoryEntry> {
        self.by_id(self.state.at()?)
    }

    fn send(command: MemoryCommand) -> Outcome {
        list_state::send(CommandBody::Memory(command))
    }

    /// True when an entry waits for the user, or becomes the user's when it is accepted.
    fn may_accept(entry: &MemoryEntry) -> bool {
        entry.state == MemoryState::Pending || rows::is_of_others(entry)
    }

    fn decide(entry: &MemoryEntry, accept: bool, text: Option<String>) -> Outcome {
        let waits = match entry.state {
            MemoryState::Pending => true,
            MemoryState::Removed => !accept,
            _ => accept && Self::may_accept(entry),
        };
        match entry.change.filter(|_| waits) {
            Some(change) => Self::send(MemoryCommand::Decide { change, accept, text }),
            None => toast("This entry does not wait for you"),
        }
    }
}

/// A text with one blank in place of each run of blanks and line breaks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// True for an action that needs no row.
fn undoes(action: Action) -> bool {
    matches!(action.0, "memory.undo" | "memory.redo")
}

/// True when an entry is a rule that calls are compared with.
fn is_rule(entry: &MemoryEntry) -> bool {
    entry.state == MemoryState::Kept
        && entry.has_matcher()
        && entry.fault.is_empty()
        && !rows::is_of_others(entry)
}

/// The message that wrote an entry.
fn source(entry: &MemoryEntry) -> Option<(SessionId, EntryId)> {
    entry.from.as_ref().and_then(|from| from.session.zip(from.entry))
}

impl Browser {
    /// True when one of its own actions can be done now, for the row under the cursor.
    fn available(&self, action: Action) -> bool {
        let Some(entry) = self.current() else { return !action.0.starts_with("memory.") || undoes(action) };
        let (pending, aside) = (entry.state == MemoryState::Pending, entry.state == MemoryState::Aside);
        let removed = entry.state == MemoryState::Removed;
        match action.0 {
            "memory.restore" | "memory.restore-all" => removed,
            "memory.accept" => Self::may_accept(entry),
            "memory.decline" => pending || removed,
            "memory.edit" | "memory.delete" => !aside && !removed,
            "memory.archive" => !aside && !pending && !removed,
            "memory.rule" => is_rule(entry),
            _ => true,
        }
    }
}

impl Source for Browser {
    fn title(&self) -> String {
        "Memory".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "memory",
            actions: picker::ACTIONS,
            verb: TO_SOURCE,
            columns: rows::COLUMNS,
            table: Some(rows::PREVIEW),
            refused: ListSpec::refused(ACTIONS, |action| self.available(action)),
            decides_on_text: if self.current().is_some_and(|e| e.state == MemoryState::Pending) {
                &["memory.accept", "memory.edit"]
            } else {
                &["memory.accept", "memory.restore"]
            },
            changed_by: |event| matches!(&event.body, EventBody::State(StateEvent::MemoryChanged { .. })),
            empty: match (self.state.loaded, self.page.entries.is_empty()) {
                (false, _) => "Loading...",
                (true, true) => "Nothing is kept yet: a message that begins with # is kept here",
                (true, false) => "No entry matches",
            },
            ..ListSpec::default()
        }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        vec![(CommandBody::Query(Query::Memory(MemoryQuery::default())), LIST)]
    }

    fn reply(&mut self, token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        match reply.as_ref() {
            ReplyEvent::MemoryReply { page } => {
                self.set_page(rows::sorted((**page).clone()));
                self.state.loaded = true;
                Some(Vec::new())
            }
            other => Some(match self.state.reply(token, other)? {
                ListUpdate::Again => self.queries(),
                ListUpdate::Stay => Vec::new(),
            }),
        }
    }

    fn hover(&mut self, item: Option<&Item>) -> Vec<Effect> {
        self.state.hover(item)
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        self.page
            .entries
            .iter()
            .zip(&self.ids)
            .map(|(entry, id)| {
                let enter = source(entry).map(|_| TO_SOURCE).into();
                let item = rows::item(entry, id);
                let starts = |(label, part): &(String, String)| {
                    let kept = matches!(entry.state, MemoryState::Kept | MemoryState::Archived);
                    let text = || one_line(&entry.marked_text());
                    kept && entry.target.label() == label && text().contains(part.as_str())
                };
                let current = self.start.as_ref().is_some_and(starts);
                let renamed = self.renamed.as_ref().filter(|(_, now)| now == id);
                Item { enter, current, former: renamed.map(|(was, _)| was.clone()), ..item }
            })
            .collect()
    }

    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        match action.0 {
            "memory.undo" => return Some(Self::send(MemoryCommand::Undo { redo: false })),
            "memory.redo" => return Some(Self::send(MemoryCommand::Undo { redo: true })),
            _ => {}
        }
        let entry = &self.entry(item)?.clone();
        let (target, old) = (entry.target, entry.text.clone());
        let pending = entry.state == MemoryState::Pending;
        let aside = entry.state == MemoryState::Aside;
        let removed = entry.state == MemoryState::Removed;
        match action.0 {
            "picker.choose" => {
                let none = if removed {
                    "No call of an agent ran: there is no message to go to"
                } else {
                    "You wrote this entry: there is no message to go to"
                };
                Some(visit(source(entry), none))
            }
            "memory.restore" | "memory.restore-all" => Some(match entry.change.filter(|_| removed) {
                Some(change) => {
                    Self::send(MemoryCommand::Restore { change, all: action.0 == "memory.restore-all" })
                }
                None => toast("This entry was not removed outside Tiller"),
            }),
            "memory.edit" | "memory.archive" if removed => Some(toast("Restore the entry first")),
            "memory.delete" if removed => Some(Self::decide(entry, false, None)),
            "memory.accept" => {
                self.follow(item, entry, &old);
                Some(Self::decide(entry, true, None))
            }
            "memory.decline" => Some(Self::decide(entry, false, None)),
            "memory.edit" | "memory.delete" | "memory.archive" if aside => {
                Some(toast("It belongs to another branch: open that branch to change it"))
            }
            "memory.edit" => Some(Outcome::Input { label: "entry", text: self.state.editable(&old) }),
            "memory.delete" if pending => Some(Self::decide(entry, false, None)),
            "memory.delete" => Some(Self::send(MemoryCommand::Delete { target, old })),
            "memory.archive" if !pending => {
                let archived = entry.state != MemoryState::Archived;
                Some(Self::send(MemoryCommand::Archive { target, old, archived }))
            }
            "memory.archive" => Some(toast("Accept the entry first")),
            "memory.rule" if is_rule(entry) => {
                let effects = vec![Effect::Push(Box::new(learnings::open_at(&old)))];
                Some(Outcome::Stay { effects, reload: false })
            }
            "memory.rule" => Some(toast("This entry is no rule in force")),
            _ => None,
        }
    }

    fn submit(&mut self, item: &Item, text: &str, _model: &Model) -> Outcome {
        let Some(entry) = self.entry(Some(item)).cloned() else {
            return Outcome::Refuse("The entry was changed meanwhile: copy your text, and press Esc");
        };
        let old = entry.text.clone();
        let Some(text) = self.state.edited(&old, text) else { return Outcome::none() };
        self.follow(Some(item), &entry, &text);
        if entry.state == MemoryState::Pending {
            return Self::decide(&entry, true, Some(text));
        }
        Self::send(MemoryCommand::Edit { target: entry.target, old, text })
    }

    fn hints(&self, any: bool) -> Vec<Hint> {
        let ids = [
            "memory.restore",
            "memory.restore-all",
            "memory.accept",
            "memory.decline",
            "memory.rule",
            "memory.edit",
            "memory.delete",
            "memory.undo",
        ];
        // Of a rule that was violated often enough, something can be made.
        let promotes = self.current().is_some_and(|e| e.counts.violated >= VIOLATED);
        let shown = |id: &&'static str| {
            let undo = *id == "memory.undo";
            (any || (undo && self.state.changed))
                && self.available(Action(id))
                && (promotes || *id != "memory.rule")
        };
        let removed = self.current().is_some_and(|e| e.state == MemoryState::Removed);
        let hint = |id| match id {
            "memory.decline" if removed => Hint::as_(id, "off the list"),
            _ => Hint::of(id),
        };
        ids.into_iter().filter(shown).map(hint).collect()
    }

    fn preview(&self, item: &Item) -> Option<String> {
        self.entry(Some(item)).map(|entry| rows::about(entry, &self.page))
    }
}

#[cfg(test)]
mod tests;
