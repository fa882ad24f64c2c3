//! A list to pick from: type to filter (fuzzy), arrows to move, Enter to choose, a preview where there is
//! room. Everything that is a list of things uses it; what is listed comes from a [`Source`].
//!
//! ```text
//! struct Colours;
//! impl Source for Colours {
//!     fn title(&self) -> String { "Colour".into() }
//!     fn items(&mut self, _: &Model) -> Vec<Item> { vec![Item::new("r", "red"), Item::new("b", "blue")] }
//!     fn choose(&mut self, item: &Item, _: &Model) -> Vec<Effect> { vec![/* item.id */] }
//! }
//! // ... Effect::Push(Box::new(Picker::new(Colours)))
//! ```
//! A source that needs the engine returns its questions in [`Source::queries`] and takes the answers in
//! [`Source::reply`].

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::{Notice, NoticeKind};

pub(crate) use self::actions::ACTIONS;
use self::actions::KEYS;
use self::filtered_rows::FilteredRows;
use self::whole_text::WholeText;
use crate::app::effect::{ComposerInput, Effect};
use crate::input::escape::EscapeStep;
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::{
    Availability, DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply,
};
use crate::registry::Dialog;
use crate::widget::edit::Edit;
use crate::widget::list::GroupedList;
use crate::widget::table::Widths;

mod actions;
mod draw;
mod filtered_rows;
mod input;
mod load;
mod source;
mod whole_text;
pub use source::{EngineQuery, Enter, FILTER_PROMPT, Item, LateRows, ListSpec, Outcome, Source};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    groups: &[("Pickers", ACTIONS)],
    scopes: &[
        Scope::new("picker", Some("input"), "Pickers", true).keys(KEYS),
        Scope::new("picker_text", Some("input"), "Pickers, words", true).keys(&[("enter", "picker.send")]),
    ],
    samples: &[("picker", || Box::new(sample()))],
    ..Dialog::NONE
};

/// A text that an action of the source requested; it is typed in place of the filter.
struct InputField {
    label: String,
    edit: Edit,
    /// The row that the text is about.
    item: Item,
}

/// The dialog.
pub struct Picker {
    source: Box<dyn Source>,
    input: Edit,
    rows: FilteredRows,
    list: GroupedList,
    /// How wide the columns of all rows are, and whether a row has a sign.
    widths: Widths,
    signs: bool,
    /// A row has a preview.
    previews: bool,
    page: usize,
    /// The user has moved or typed: the list does not go to what is in force by itself any more.
    moved: bool,
    /// The source searches for words that were just typed: the cursor goes to the first row of its answer.
    searching: bool,
    words: Option<InputField>,
    /// In place of the rows.
    whole: Option<WholeText>,
    /// Where it was drawn last.
    area: Rect,
}

impl Picker {
    /// Shows what `source` lists.
    pub fn new(source: impl Source) -> Self {
        Self {
            source: Box::new(source),
            input: Edit::default(),
            rows: FilteredRows::default(),
            list: GroupedList::default(),
            widths: Widths::default(),
            signs: false,
            previews: false,
            page: 10,
            moved: false,
            searching: false,
            words: None,
            whole: None,
            area: Rect::default(),
        }
    }

    /// Starts with this in the filter.
    #[must_use]
    pub fn filtered(mut self, text: &str) -> Self {
        self.input = Edit::with(text);
        self
    }

    /// The chosen row.
    pub fn chosen(&self) -> Option<&Item> {
        self.rows.get(self.list.chosen)
    }

    /// Nothing is typed in the filter, and no text is asked for.
    pub(crate) fn is_unfiltered(&self) -> bool {
        self.input.is_empty() && self.words.is_none()
    }

    /// All rows.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> &[Item] {
        self.rows.all()
    }

    /// Carries out the outcome of an action of the source.
    fn come_of(&mut self, outcome: Outcome, model: &Model) -> Reply {
        match outcome {
            Outcome::Stay { effects, reload } => {
                if reload {
                    let place = self.place();
                    self.load(model);
                    self.keep(place);
                }
                Reply::Done(effects)
            }
            Outcome::Input { label, text } => {
                if let Some(item) = self.chosen().cloned() {
                    self.words =
                        Some(InputField { label: format!("{label}: "), edit: Edit::with(&text), item });
                }
                Reply::done()
            }
            Outcome::Filter(text) => {
                self.input = Edit::with(&text);
                self.typed(model)
            }
            Outcome::Refuse(why) => Reply::with(said(why)),
            Outcome::Close(effects) => {
                let mut all = vec![Effect::Pop];
                all.extend(effects);
                Reply::Done(all)
            }
        }
    }

    /// Submits the requested text to the source. One that cannot be used stays in the field.
    fn written(&mut self, model: &Model) -> Reply {
        let Some(w) = self.words.take() else { return Reply::Ignored };
        let outcome = self.source.submit(&w.item, w.edit.text().trim(), model);
        if matches!(outcome, Outcome::Refuse(_)) {
            self.words = Some(w);
        }
        self.come_of(outcome, model)
    }

    fn hover(&mut self) -> Vec<Effect> {
        let item = self.chosen().cloned();
        self.source.hover(item.as_ref())
    }

    fn choose(&mut self, model: &Model) -> Reply {
        let Some(item) = self.chosen().cloned() else { return Reply::done() };
        if let Some(why) = item.disabled {
            return Reply::with(said(why));
        }
        let mut effects = vec![Effect::Pop];
        effects.extend(self.source.choose(&item, model));
        Reply::Done(effects)
    }
}

fn said(words: impl Into<String>) -> Effect {
    Effect::Toast(Notice::new(NoticeKind::Info, words))
}

impl Panel for Picker {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new(if self.words.is_some() { "picker_text" } else { self.source.spec().scope })
            .escape((self.words.is_some() || self.whole.is_some()).then_some(EscapeStep::Popup))
    }

    fn title(&self, _model: &Model) -> String {
        self.source.title()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        self.source.spec().actions
    }

    fn placement(&self, _columns: u16, model: &Model) -> Placement {
        self.size(model)
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        if let Some(w) = &mut self.words {
            return match action.0 {
                "picker.send" => self.written(model),
                id if id.starts_with("edit.") => {
                    w.edit.act(id);
                    Reply::done()
                }
                _ => Reply::Ignored,
            };
        }
        let item = self.chosen().cloned();
        let asked = if self.whole.is_some() {
            self.act_on_whole(action, model)
        } else {
            item.as_ref().and_then(|item| self.show_whole(action, item, model))
        };
        if let Some(reply) = asked {
            return reply;
        }
        if let Some(outcome) = self.source.act(action, item.as_ref(), model) {
            // What the action changes does not move the cursor to the row that the list began with.
            self.moved |= item.is_some();
            return self.come_of(outcome, model);
        }
        let moved = match action.0 {
            "picker.choose" => return self.choose(model),
            "picker.complete" => {
                if let Some(i) = item {
                    self.input.set(&i.text);
                    return self.typed(model);
                }
                return Reply::done();
            }
            "picker.down" => "list.down",
            "picker.up" => "list.up",
            "picker.page_down" => "list.page_down",
            "picker.page_up" => "list.page_up",
            "picker.first" => "list.first",
            "picker.last" => "list.last",
            id => {
                let before = self.input.text().to_owned();
                if !self.input.act(id) {
                    // Editing keys never reach the panel below.
                    return if id.starts_with("edit.") { Reply::done() } else { Reply::Ignored };
                }
                return if before == self.input.text() { Reply::done() } else { self.typed(model) };
            }
        };
        self.moved = true;
        self.searching = false;
        self.list.act(moved, self.page);
        Reply::Done(self.hover())
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key, model),
            PanelInput::Paste(text) => self.on_paste(text, model),
            PanelInput::Mouse(event, area) => self.on_mouse(event, area),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(self.on_open(model)),
            PanelEvent::Answer(token, event) => self.on_answer(token, event, model),
            PanelEvent::Engine(event) if (self.source.spec().changed_by)(event) => {
                self.seen();
                let place = self.place();
                self.load(model);
                self.keep(place);
                Reply::Done(Self::asked(self.source.queries()))
            }
            PanelEvent::JobDone(_, result) => {
                let Some(late) = self.source.late() else { return Reply::Ignored };
                let outcome = late.worked(result, model);
                let place = self.place();
                self.load(model);
                self.keep(place);
                self.come_of(outcome, model)
            }
            PanelEvent::Edited(_) => {
                // What the program changed is asked for again.
                let asked = self.source.queries();
                let mut effects = Self::asked(asked);
                effects.extend(self.work(model));
                Reply::Done(effects)
            }
            _ => Reply::Ignored,
        }
    }

    fn availability(&self, action: Action, _model: &Model) -> Availability {
        let decides = action.0 == "picker.choose" && self.chosen().is_some_and(|i| i.decides);
        match decides {
            true => Availability::Decides,
            false => Availability::unless(
                self.source.spec().refused.contains(&action).then_some("Not for this row"),
            ),
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        if self.words.is_some() {
            return vec![Hint::as_("picker.send", "keep")];
        }
        let any = self.rows.len() > 0;
        let verb = self.chosen().and_then(|item| match item.enter {
            Enter::Usual => Some(self.source.spec().verb),
            Enter::Verb(verb) => Some(verb),
            Enter::Nothing => None,
        });
        if let Some(hints) = self.hints_of_whole() {
            return hints;
        }
        let choose = verb.map(|verb| Hint::as_("picker.choose", verb));
        choose.into_iter().chain(self.source.hints(any)).collect()
    }

    fn measure(&mut self, area: Rect, _cx: &DrawCx<'_>) -> Refresh {
        self.page = usize::from(self.split(area).list.height).max(1);
        self.list.show(self.page);
        self.measure_whole(area);
        Refresh::default()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        if !self.paint_whole(cx, area, buf) {
            self.paint(cx, area, buf);
        }
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        self.whole.is_none().then(|| self.caret(area))
    }
}

/// For tests.
pub(crate) fn sample() -> Picker {
    struct Colours;
    impl Source for Colours {
        fn title(&self) -> String {
            "Colour".into()
        }
        fn items(&mut self, _model: &Model) -> Vec<Item> {
            ["red", "green", "blue"].map(|c| Item::new(c, c).detail("a colour")).to_vec()
        }
        fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
            vec![Effect::Compose(ComposerInput::Text { text: item.id.clone(), replace: false })]
        }
        fn preview(&self, item: &Item) -> Option<String> {
            Some(format!("this is {}", item.text))
        }
    }
    Picker::new(Colours)
}

#[cfg(test)]
mod tests;
