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

use crossterm::event::{KeyEvent, MouseEvent, MouseEventKind};
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32String};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::Event;

use crate::app::effect::{ComposerInput, Effect, Token};
use crate::input::escape::EscapeStep;
use crate::keymap::Chord;
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::panel::{
    Availability, DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply,
};
use crate::registry::Dialog;
use crate::widget::{edit::Edit, list::ListState};

mod draw;
mod source;
pub use source::{EngineQuery, Item, ListSpec, Outcome, Source};

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

/// Actions of every picker.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("picker.choose", "choose", "Choose the selected row"),
    ActionSpec::key_only("picker.down", "down", "Next row"),
    ActionSpec::key_only("picker.up", "up", "Previous row"),
    ActionSpec::key_only("picker.page_down", "page down", "One page down"),
    ActionSpec::key_only("picker.page_up", "page up", "One page up"),
    ActionSpec::key_only("picker.first", "first", "First row"),
    ActionSpec::key_only("picker.last", "last", "Last row"),
    ActionSpec::key_only("picker.complete", "complete", "Copy the selected row's text into the filter"),
    ActionSpec::key_only("picker.send", "done", "Submit the text"),
];

/// Default keys of the section `picker`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("enter", "picker.choose"),
    ("down", "picker.down"),
    ("up", "picker.up"),
    ("ctrl-n", "picker.down"),
    ("ctrl-p", "picker.up"),
    ("pagedown", "picker.page_down"),
    ("pageup", "picker.page_up"),
    ("ctrl-home", "picker.first"),
    ("ctrl-end", "picker.last"),
    ("tab", "picker.complete"),
];

/// Score of a match in the shown text, above a match in the hidden text of a row.
const SEEN: u32 = 10_000;

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
    items: Vec<Item>,
    needles: Vec<Utf32String>,
    /// Rows that match, best first.
    found: Vec<usize>,
    /// The filter that they match.
    sought: String,
    list: ListState,
    page: usize,
    matcher: Matcher,
    words: Option<InputField>,
}

impl Picker {
    /// Shows what `source` lists.
    pub fn new(source: impl Source) -> Self {
        Self {
            source: Box::new(source),
            input: Edit::default(),
            items: Vec::new(),
            needles: Vec::new(),
            found: Vec::new(),
            sought: String::new(),
            list: ListState::default(),
            page: 10,
            matcher: Matcher::new(Config::DEFAULT),
            words: None,
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
        self.found.get(self.list.chosen).and_then(|i| self.items.get(*i))
    }

    /// All rows.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> &[Item] {
        &self.items
    }

    fn load(&mut self, model: &Model) {
        self.items = self.source.items(model);
        self.needles = self
            .items
            .iter()
            .map(|i| {
                if i.more.is_empty() {
                    i.text.as_str().into()
                } else {
                    format!("{} {}", i.text, i.more).into()
                }
            })
            .collect();
        self.sought.clear();
        self.search();
    }

    /// Rows that can match `text`: where it only goes on from the last filter, those that matched that.
    fn among(&self, text: &str) -> Vec<usize> {
        // Characters of the filter's syntax may widen the result as well as narrow it.
        let words = |t: &str| t.chars().all(|c| c.is_alphanumeric() || c == ' ');
        if !self.sought.is_empty() && text.starts_with(&self.sought) && words(text) {
            let mut rows = self.found.clone();
            rows.sort_unstable();
            return rows;
        }
        (0..self.items.len()).collect()
    }

    fn search(&mut self) {
        let text = self.input.text().trim().to_owned();
        if text.is_empty() || !self.source.spec().filtered {
            self.found = (0..self.items.len()).collect();
            self.sought.clear();
            return;
        }
        let pattern = Pattern::parse(&text, CaseMatching::Smart, Normalization::Smart);
        // A contiguous match counts more than a fuzzy one.
        let whole = Pattern::new(&text, CaseMatching::Smart, Normalization::Smart, AtomKind::Substring);
        let mut scored: Vec<(u32, usize)> = self
            .among(&text)
            .into_iter()
            .filter_map(|i| {
                let all = pattern.score(self.needles[i].slice(..), &mut self.matcher)?;
                // A match in the shown text counts more than one in the hidden text.
                let text = Utf32String::from(self.items[i].text.as_str());
                let seen = pattern.score(text.slice(..), &mut self.matcher);
                let there = match seen {
                    Some(_) if whole.score(text.slice(..), &mut self.matcher).is_some() => 3 * SEEN,
                    _ if whole.score(self.needles[i].slice(..), &mut self.matcher).is_some() => 2 * SEEN,
                    Some(_) => SEEN,
                    None => 0,
                };
                Some((seen.unwrap_or(all).saturating_add(there), i))
            })
            .collect();
        // Equal scores keep the source's order, so that the list does not jump.
        scored.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        self.found = scored.into_iter().map(|(_, i)| i).collect();
        self.sought = text;
    }

    fn asked(list: Vec<EngineQuery>) -> Vec<Effect> {
        list.into_iter().map(|(body, token)| Effect::ask(body, token)).collect()
    }

    /// After the filter changed.
    fn typed(&mut self, model: &Model) -> Reply {
        let text = self.input.text().to_owned();
        let mut effects = Self::asked(self.source.filter(&text));
        if !self.source.spec().filtered {
            self.load(model);
        }
        self.search();
        self.list = ListState::default();
        effects.extend(self.hover());
        Reply::Done(effects)
    }

    /// Carries out the outcome of an action of the source.
    fn come_of(&mut self, outcome: Outcome, model: &Model) -> Reply {
        match outcome {
            Outcome::Stay { effects, reload } => {
                if reload {
                    let id = self.chosen().map(|i| i.id.clone());
                    self.load(model);
                    self.keep(id);
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
            Outcome::Close(effects) => {
                let mut all = vec![Effect::Pop];
                all.extend(effects);
                Reply::Done(all)
            }
        }
    }

    /// Keeps the row with this id selected, though rows came or went.
    fn keep(&mut self, id: Option<String>) {
        if let Some(at) = id.and_then(|id| self.found.iter().position(|i| self.items[*i].id == id)) {
            self.list.chosen = at;
        }
        self.list.show(self.found.len(), self.page);
    }

    /// Submits the requested text to the source.
    fn written(&mut self, model: &Model) -> Reply {
        let Some(w) = self.words.take() else { return Reply::Ignored };
        let outcome = self.source.submit(&w.item, w.edit.text().trim(), model);
        self.come_of(outcome, model)
    }

    fn hover(&mut self) -> Vec<Effect> {
        let item = self.chosen().cloned();
        self.source.hover(item.as_ref())
    }

    fn choose(&mut self, model: &Model) -> Reply {
        let Some(item) = self.chosen().cloned() else { return Reply::done() };
        if let Some(why) = item.disabled {
            use tiller_protocol::{Notice, NoticeKind};
            return Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, why)));
        }
        let mut effects = vec![Effect::Pop];
        effects.extend(self.source.choose(&item, model));
        Reply::Done(effects)
    }
}

impl Panel for Picker {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new(if self.words.is_some() { "picker_text" } else { self.source.spec().scope })
            .escape(self.words.is_some().then_some(EscapeStep::Popup))
    }

    fn title(&self, _model: &Model) -> String {
        self.source.title()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        self.source.spec().actions
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        let preview = self.chosen().is_some_and(|i| self.source.preview(i).is_some());
        let wide = preview || self.source.spec().table.is_some();
        Placement::Center { width: if wide { 110 } else { 72 }, height: 20 }
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
        if let Some(outcome) = self.source.act(action, item.as_ref(), model) {
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
        self.list.act(moved, self.found.len(), self.page);
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
            _ => Reply::Ignored,
        }
    }

    fn availability(&self, action: Action, _model: &Model) -> Availability {
        let decides = action.0 == "picker.choose" && self.chosen().is_some_and(|i| i.decides);
        if decides { Availability::Decides } else { Availability::Available }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        if self.words.is_some() {
            return vec![Hint::as_("picker.send", "keep")];
        }
        let any = !self.found.is_empty();
        let choose = any.then(|| Hint::as_("picker.choose", self.source.spec().verb));
        choose.into_iter().chain(self.source.hints(any)).collect()
    }

    fn measure(&mut self, area: Rect, _cx: &DrawCx<'_>) -> Refresh {
        let (_, list, _) = self.split(area);
        self.page = usize::from(list.height).max(1);
        self.list.show(self.found.len(), self.page);
        Refresh::default()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.paint(cx, area, buf);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        Some(self.caret(area))
    }
}

impl Picker {
    fn on_key(&mut self, key: &KeyEvent, model: &Model) -> Reply {
        match (Chord::of(key).text(), &mut self.words) {
            (Some(c), Some(w)) => {
                w.edit.insert(c.encode_utf8(&mut [0; 4]));
                Reply::done()
            }
            (Some(c), None) => {
                self.input.insert(c.encode_utf8(&mut [0; 4]));
                self.typed(model)
            }
            (None, _) => Reply::Ignored,
        }
    }

    fn on_paste(&mut self, text: &str, model: &Model) -> Reply {
        if let Some(w) = &mut self.words {
            w.edit.insert(&text.replace(['\n', '\r'], " "));
            return Reply::done();
        }
        self.input.insert(&text.replace(['\n', '\r'], " "));
        self.typed(model)
    }

    fn on_mouse(&mut self, event: &MouseEvent, area: Rect) -> Reply {
        if self.words.is_some() {
            return Reply::done();
        }
        let (_, list, _) = self.split(area);
        match event.kind {
            MouseEventKind::ScrollDown => self.list.wheel(true, self.found.len(), self.page),
            MouseEventKind::ScrollUp => self.list.wheel(false, self.found.len(), self.page),
            MouseEventKind::Down(_) if list.contains(Position::new(event.column, event.row)) => {
                let row = self.list.top + usize::from(event.row - list.y);
                if row >= self.found.len() {
                    return Reply::done();
                }
                if row == self.list.chosen {
                    // As by key: a row that decides something waits until the list was readable.
                    return Reply::with(Effect::Act(Action("picker.choose")));
                }
                self.list.chosen = row;
                return Reply::Done(self.hover());
            }
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn on_escape(&mut self, escape_step: EscapeStep) -> Reply {
        self.words = None;
        if escape_step != EscapeStep::Layer {
            return Reply::done();
        }
        let mut effects = self.source.hover(None);
        effects.push(Effect::Pop);
        Reply::Done(effects)
    }

    fn on_open(&mut self, model: &Model) -> Vec<Effect> {
        self.load(model);
        let mut effects = Self::asked(self.source.queries());
        let text = self.input.text().to_owned();
        effects.extend(Self::asked(self.source.filter(&text)));
        effects
    }

    fn on_answer(&mut self, token: Token, event: &Event, model: &Model) -> Reply {
        let Some(queries) = self.source.reply(token, event, model) else { return Reply::Ignored };
        let id = self.chosen().map(|i| i.id.clone());
        self.load(model);
        self.keep(id);
        let mut effects = Self::asked(queries);
        effects.extend(self.hover());
        Reply::Done(effects)
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
