//! The parts that the screen is made of: dialogs, panels and `/` commands. Each is one value in its own file, and one line in the
//! list of its folder; actions, sections of the key file, keys, help, palette and tests are made from these lists.

use tiller_protocol::Ask;

use crate::app::App;
use crate::keymap::action::{ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::keymap::vocabulary::Vocabulary;
use crate::model::Slice;
use crate::panel::{Panel, View, empty_view};
use crate::slash::Commands;

/// Title for help, and the actions.
pub type Group = (&'static str, &'static [ActionSpec]);

/// A name and a function that makes a dialog with plausible content.
pub type Sample = (&'static str, fn() -> Box<dyn Panel>);

/// Makes the dialog for a question; `None`: the question is another dialog's.
pub type Answers = fn(&Ask) -> Option<Box<dyn Panel>>;

/// An action that puts a dialog on the screen.
pub struct Opener {
    /// Its name, its label and what help and palette say of it.
    pub spec: ActionSpec,
    /// Makes the dialog, or says why it cannot be shown now.
    pub open: fn(&App) -> Result<Box<dyn Panel>, String>,
    /// Keys of the section `global` that open it where no key file says otherwise, as key files write them. Help lists
    /// them last unless `keymaps/default.toml` gives them a place (`"KEY" = true`).
    pub keys: &'static [&'static str],
}

impl Opener {
    /// With the id, the label and the help text of its action; without keys.
    pub const fn new(
        id: &'static str,
        label: &'static str,
        help: &'static str,
        open: fn(&App) -> Result<Box<dyn Panel>, String>,
    ) -> Self {
        Self { spec: ActionSpec::new(id, label, help), open, keys: &[] }
    }

    /// The same opener in a group of the palette and of the box after the leader key.
    #[must_use]
    pub const fn menu(self, menu: Menu) -> Self {
        Self { spec: self.spec.menu(menu), ..self }
    }

    /// The same opener with default keys.
    #[must_use]
    pub const fn keys(self, keys: &'static [&'static str]) -> Self {
        Self { keys, ..self }
    }
}

/// The dialogs that a file registers.
pub struct Dialog {
    /// Actions that open it.
    pub openers: &'static [Opener],
    /// Actions of its own.
    pub groups: &'static [Group],
    /// Sections of the key file of its own.
    pub scopes: &'static [Scope],
    /// It with content, for the tests that visit all dialogs.
    pub samples: &'static [Sample],
    /// Makes it for a question of the engine, when it answers questions.
    pub answers: Option<Answers>,
}

impl Dialog {
    /// Registers empty_view.
    pub const NONE: Self = Self { openers: &[], groups: &[], scopes: &[], samples: &[], answers: None };
}

/// A panel of the layout, as its file registers it.
pub struct PanelEntry {
    /// Where it is shown.
    pub view: View,
    /// Makes it.
    pub make: fn(&Registry) -> Box<dyn Panel>,
    /// Slices of the model that it reads besides [`Slice::SHARED`]: it is drawn again when one of them changes, or its
    /// own state.
    pub reads: &'static [Slice],
    /// Actions of its own.
    pub groups: &'static [Group],
    /// Sections of the key file of its own.
    pub scopes: &'static [Scope],
}

/// All of it.
pub struct Registry {
    dialogs: &'static [&'static [Dialog]],
    panels: &'static [PanelEntry],
    commands: Commands,
    words: Vocabulary,
}

/// Groups of actions in the order of help and palette. Others come after them, in the order of the lists.
const GROUPS: &[&str] = &[
    "Everywhere",
    "Panes",
    "Agent view",
    "Dialogs",
    "Composer",
    "Conversation",
    "Copy mode",
    "Todo",
    "Agents",
    "Program terminal",
    "Changes",
    "Session tree",
    "Tree of all sessions",
    "Viewer",
    "Diff review",
    "Lists",
    "Text fields",
    "Pickers",
    "Approval",
    "Questions",
    "Other questions",
    "Setup",
    "Confirm",
    "Message box",
    "Error log",
    "Session picker",
    "Branches",
    "History search",
    "Restore",
    "Workflow",
    "Branch summary",
    "Search in sessions",
    "Queue",
    "Reports",
    "Compaction",
    "Compare",
];

/// Sections of the key file in the order of help. Others come after them, in the order of the lists.
const SCOPES: &[&str] = &[
    "global",
    "composer",
    "popup",
    "vim",
    "list",
    "conversation",
    "copy",
    "viewer",
    "todo",
    "todo_text",
    "text",
    "agents",
    "flow",
    "watch",
    "sessions",
    "tree",
    "diff",
    "queue",
    "queue_text",
    "input",
    "picker",
    "picker_text",
    "palette",
    "resume",
    "branches",
    "context",
    "report",
    "compact",
    "history",
    "search",
    "help",
    "errors",
    "compare",
    "leave",
    "restore",
    "branch_go",
    "words",
    "confirm",
    "approval",
    "approval_text",
    "clarify",
    "trust",
    "plan",
    "question",
    "question_text",
    "setup",
    "setup_text",
    "pane",
    "pane_copy",
    "terminal",
];

/// Actions of no panel.
const SHELL: &[Group] = &[
    ("Everywhere", crate::app::global::ACTIONS),
    ("Panes", crate::view::arrange::ACTIONS),
    ("Agent view", crate::view::agent_view::ACTIONS),
    ("Lists", crate::widget::list::ACTIONS),
    ("Text fields", crate::widget::input::ACTIONS),
];

/// Sections of no panel.
const SHARED: &[Scope] = &[
    Scope::new("global", None, "Everywhere", false),
    Scope::new("list", None, "Lists and panes", false),
    Scope::new("input", None, "Text fields", true),
];

impl Registry {
    /// The screen that is made of these.
    pub fn of(
        dialogs: &'static [&'static [Dialog]],
        panels: &'static [PanelEntry],
        commands: Commands,
    ) -> Self {
        let opens: Vec<ActionSpec> =
            dialogs.iter().copied().flatten().flat_map(|d| d.openers).map(|o| o.spec).collect();
        let own = dialogs
            .iter()
            .copied()
            .flatten()
            .flat_map(|d| d.groups)
            .chain(panels.iter().flat_map(|p| p.groups));
        let mut groups: Vec<(&'static str, Vec<ActionSpec>)> =
            SHELL.iter().chain(own).map(|(title, list)| (*title, list.to_vec())).collect();
        groups.push(("Dialogs", opens));
        groups.sort_by_key(|(title, _)| GROUPS.iter().position(|t| t == title).unwrap_or(GROUPS.len()));
        let own = dialogs
            .iter()
            .copied()
            .flatten()
            .flat_map(|d| d.scopes)
            .chain(panels.iter().flat_map(|p| p.scopes));
        let mut scopes: Vec<Scope> = SHARED.iter().chain(own).copied().collect();
        scopes.sort_by_key(|s| SCOPES.iter().position(|n| *n == s.name).unwrap_or(SCOPES.len()));
        let opening = dialogs.iter().copied().flatten().flat_map(|d| d.openers);
        let opening = opening.flat_map(|o| o.keys.iter().map(|key| (*key, o.spec.action))).collect();
        Self { dialogs, panels, commands, words: Vocabulary::new(groups, scopes, opening) }
    }

    /// Actions and sections of the key file.
    pub fn words(&self) -> &Vocabulary {
        &self.words
    }

    /// The `/` commands.
    pub fn commands(&self) -> Commands {
        self.commands
    }

    /// Every action that opens a dialog.
    pub fn openers(&self) -> impl Iterator<Item = &'static Opener> + use<> {
        self.dialogs.iter().copied().flatten().flat_map(|d| d.openers)
    }

    /// One of each dialog.
    pub fn samples(&self) -> impl Iterator<Item = &'static Sample> + use<> {
        self.dialogs.iter().copied().flatten().flat_map(|d| d.samples)
    }

    /// The dialog that answers this question; `None` when no dialog is registered for it.
    pub fn for_ask(&self, ask: &Ask) -> Option<Box<dyn Panel>> {
        self.dialogs.iter().copied().flatten().filter_map(|d| d.answers).find_map(|of| of(ask))
    }

    /// The slices of the model that the panel of a view reads.
    pub fn reads(&self, view: View) -> &'static [Slice] {
        self.panels.iter().find(|p| p.view == view).map_or(&[], |p| p.reads)
    }

    /// Makes the panel of a view. A view without a panel shows why it is empty.
    pub fn panel(&self, view: View) -> Box<dyn Panel> {
        let entry = self.panels.iter().find(|p| p.view == view);
        entry.map_or_else(|| Box::new(empty_view::EmptyView(view)) as Box<dyn Panel>, |p| (p.make)(self))
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
