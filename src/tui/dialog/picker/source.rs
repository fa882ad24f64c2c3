//! The content of a picker: rows, and where they come from.

use std::any::Any;

use tiller_protocol::{CommandBody, Event};

use super::ACTIONS;
use crate::app::effect::{Effect, Job, Token};
use crate::keymap::action::{Action, ActionSpec};
use crate::model::Model;
use crate::panel::Hint;
use crate::theme::Role;
use crate::widget::table::{Cell, Column};

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Identifies it to the source.
    pub id: String,
    /// The text of the first column, which is searched.
    pub text: String,
    /// Before the text: what the row is, for instance a mark of the session that is open.
    pub sign: Option<(&'static str, Role)>,
    /// The other columns: a key, a time, a price. See [`ListSpec::columns`].
    pub cells: Vec<Cell>,
    /// Heading above the first of the rows that have it, while nothing is typed; empty: none.
    pub group: String,
    /// Also searched, not shown (help text, path).
    pub more: String,
    /// Why it cannot be chosen; shown in place of the other columns.
    pub disabled: Option<String>,
    /// The part of the preview's first line, and of the text where this is the same, that is marked: start and end in bytes.
    pub mark: Option<(usize, usize)>,
    /// True for the choice in force now: the list starts on it.
    pub current: bool,
    /// The id that the row had before the last action.
    pub former: Option<String>,
    /// It stands out: the sum of the others.
    pub strong: bool,
    /// The effect of choosing it, for the footer.
    pub enter: Enter,
    /// Choosing it grants, ends or takes away something: then keys that come before the list was readable do not count.
    pub decides: bool,
}

/// The effect of choosing a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enter {
    /// The effect that [`ListSpec::verb`] names.
    #[default]
    Usual,
    Verb(&'static str),
    Nothing,
}

impl From<Option<&'static str>> for Enter {
    fn from(verb: Option<&'static str>) -> Self {
        verb.map_or(Self::Nothing, Self::Verb)
    }
}

impl Item {
    /// Only a text.
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: id.into(), text: text.into(), ..Self::default() }
    }

    /// With a dim text in the next column.
    #[must_use]
    pub fn detail(self, detail: impl Into<String>) -> Self {
        self.cell(Cell::dim(detail))
    }

    /// With a cell in the next column.
    #[must_use]
    pub fn cell(mut self, cell: Cell) -> Self {
        self.cells.push(cell);
        self
    }

    /// Below this heading.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = group.into();
        self
    }

    /// With a part of its text and of the preview's first line, which are the same, marked, unless it is empty.
    #[must_use]
    pub fn marked(mut self, mark: (usize, usize)) -> Self {
        self.mark = (mark.0 < mark.1).then_some(mark);
        self
    }

    /// With a sign before the text.
    #[must_use]
    pub fn sign(mut self, sign: &'static str, role: Role) -> Self {
        self.sign = Some((sign, role));
        self
    }

    /// The sum of the other rows.
    #[must_use]
    pub fn strong(self) -> Self {
        Self { strong: true, ..self }
    }

    /// In force now, or not.
    #[must_use]
    pub fn current(mut self, current: bool) -> Self {
        self.current = current;
        self
    }

    /// All cells in one line, as a person reads them.
    #[cfg(test)]
    pub(crate) fn figures(&self) -> String {
        let words = self.cells.iter().map(|c| format!("{}{}", c.text, c.unit));
        words.filter(|w| !w.is_empty()).collect::<Vec<_>>().join("  ")
    }
}

/// A text, and another one at the right end.
const COLUMNS: &[Column] = &[Column::text(""), Column::right(""), Column::right("")];

/// A question to the engine, and the token that its answer carries.
pub type EngineQuery = (CommandBody, Token);

/// How a list looks and behaves.
pub struct ListSpec {
    /// Section of the key file; its parent must be `picker`.
    pub scope: &'static str,
    /// Actions of the source, and those of every picker.
    pub actions: &'static [ActionSpec],
    /// The effect of Enter, for the footer.
    pub verb: &'static str,
    /// The columns: the first is [`Item::text`], the others [`Item::cells`].
    pub columns: &'static [Column],
    /// A wide table: the preview stands below with this many rows (0: there is none). `None`: a list, with the preview
    /// beside it.
    pub table: Option<u16>,
    /// Shown in the field while nothing is typed.
    pub prompt: &'static str,
    /// Shown when there are no rows.
    pub empty: &'static str,
    /// The picker filters the rows (fuzzy). `false`: the source searches by itself, see [`LateRows::filter`].
    pub filtered: bool,
    /// True when an event of the engine changes the rows: they are read again, and so are the answers to the questions.
    pub changed_by: fn(&Event) -> bool,
    /// Its own actions that cannot be done for the row under the cursor: they are not offered.
    pub refused: Vec<Action>,
    /// Its own actions that decide about the text of the preview: where that is cut, all of it is shown before.
    pub decides_on_text: &'static [&'static str],
}

impl ListSpec {
    /// Those of `all` that are not `available`, for [`ListSpec::refused`].
    pub fn refused(all: &[ActionSpec], available: impl Fn(Action) -> bool) -> Vec<Action> {
        all.iter().map(|spec| spec.action).filter(|action| !available(*action)).collect()
    }
}

/// In an empty field that filters a list.
pub const FILTER_PROMPT: &str = "Type to filter";

impl Default for ListSpec {
    fn default() -> Self {
        Self {
            scope: "picker",
            actions: ACTIONS,
            verb: "choose",
            columns: COLUMNS,
            table: None,
            prompt: FILTER_PROMPT,
            empty: "Nothing found",
            filtered: true,
            changed_by: |_| false,
            refused: Vec::new(),
            decides_on_text: &[],
        }
    }
}

/// The rows of a picker, and the effect of choosing one. A simple list needs the first three methods.
pub trait Source: Any {
    /// Title of the box.
    fn title(&self) -> String;

    /// The rows, best first. Read at opening, and again when `reply` or an [`Outcome`] says so.
    fn items(&mut self, model: &Model) -> Vec<Item>;

    /// A row was chosen. The picker is closed before these effects.
    fn choose(&mut self, item: &Item, model: &Model) -> Vec<Effect>;

    /// How the list looks and behaves now.
    fn spec(&self) -> ListSpec {
        ListSpec::default()
    }

    /// Performs one of its own actions on the selected row. `None`: not one of its actions.
    fn act(&mut self, _action: Action, _item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        None
    }

    /// Takes the text that [`Outcome::Input`] asked for about `item`, trimmed.
    fn submit(&mut self, _item: &Item, _text: &str, _model: &Model) -> Outcome {
        Outcome::none()
    }

    /// Hints besides "choose"; `any`: a row is selected.
    fn hints(&self, _any: bool) -> Vec<Hint> {
        Vec::new()
    }

    /// Text for the preview pane; `None`: there is no pane.
    fn preview(&self, _item: &Item) -> Option<String> {
        None
    }

    /// Rows that are not there at once; `None`: all are.
    fn late(&mut self) -> Option<&mut dyn LateRows> {
        None
    }

    /// Questions to the engine at opening, besides those of [`LateRows::filter`].
    fn queries(&mut self) -> Vec<EngineQuery> {
        Vec::new()
    }

    /// Takes an answer. `Some`: the rows changed and are read again, and these questions follow.
    fn reply(&mut self, _token: Token, _event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        None
    }

    /// Another row is selected (live preview), or an answer came; `None`: no row, or the list was closed without choosing.
    fn hover(&mut self, _item: Option<&Item>) -> Vec<Effect> {
        Vec::new()
    }
}

/// Rows that a source has to read on another thread, or searches for by itself.
pub trait LateRows {
    /// The filter changed; also called at opening. Questions for sources that search by themselves.
    fn filter(&mut self, _text: &str) -> Vec<EngineQuery> {
        Vec::new()
    }

    /// Slow work at opening, such as reading files, which is done on another thread.
    fn work(&mut self, _model: &Model) -> Option<Job> {
        None
    }

    /// Takes what [`LateRows::work`], or a job of an action, has brought. The rows are read again before the outcome.
    fn worked(&mut self, _result: Box<dyn Any + Send>, _model: &Model) -> Outcome {
        Outcome::none()
    }
}

/// The outcome of an action of a source.
pub enum Outcome {
    /// Stay open; `reload`: read the items again.
    Stay { effects: Vec<Effect>, reload: bool },
    /// Ask the user for text about the selected row, beginning with `text`; it goes to [`Source::submit`].
    Input { label: &'static str, text: String },
    /// Stay open with this text in the filter.
    Filter(String),
    /// The text that [`Source::submit`] got cannot be used: why. It stays in its field.
    Refuse(&'static str),
    /// Close, then carry these out.
    Close(Vec<Effect>),
}

impl Outcome {
    /// Stay open; nothing changes.
    pub fn none() -> Self {
        Self::Stay { effects: Vec::new(), reload: false }
    }

    /// Stay open, read the items again, and carry these out.
    pub fn reload(effects: Vec<Effect>) -> Self {
        Self::Stay { effects, reload: true }
    }
}
