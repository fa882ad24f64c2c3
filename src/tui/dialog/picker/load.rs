//! The content of the list: the rows of the source, its questions to the engine, the filter, and the row that is selected then.

use tiller_protocol::Event;
use unicode_width::UnicodeWidthStr;

use super::{EngineQuery, Item, Picker};
use crate::app::effect::{Effect, Task, Token};
use crate::model::Model;
use crate::panel::Reply;
use crate::widget::table::Widths;

/// Names the work of a source at opening.
const WORK: Token = Token(u64::MAX);
/// Rows above and below the cursor that may take its place.
const NEIGHBOURS: usize = 200;
/// Rows that are asked whether they have a preview.
const ASKED: usize = 50;

/// Where the cursor is in a list.
#[derive(Default)]
pub(super) struct CursorPlace {
    /// The row under it; `None`: there are no rows.
    id: Option<String>,
    /// The rows around it, by their ids: those that take its place when it is gone, the best first.
    near: Vec<String>,
}

impl Picker {
    /// Reads the rows of the source.
    pub(super) fn load(&mut self, model: &Model) {
        self.rows.set(self.source.items(model));
        self.signs = self.rows.all().iter().any(|i| i.sign.is_some());
        self.widths = Widths::default();
        for item in self.rows.all() {
            self.widths.cell(0, item.text.width(), 0);
            // A row that cannot be chosen says why in place of its figures.
            if item.disabled.is_none() {
                self.widths.add_from(1, &item.cells);
            }
        }
        self.search();
        if !self.moved && self.input.is_empty() {
            self.start();
        }
    }

    /// Applies the filter to the rows.
    fn search(&mut self) {
        // A source that is not filtered here searches by itself.
        let filter = if self.source.spec().filtered { self.input.text().trim() } else { "" };
        self.rows.search(filter);
        let rows = || (0..self.rows.len()).filter_map(|n| self.rows.get(n));
        // The best match stands first, whatever its group.
        let grouped = filter.is_empty();
        self.list.set(rows().map(|i| if grouped { i.group.as_str() } else { "" }));
        self.previews = rows().take(ASKED).any(|i| self.source.preview(i).is_some());
    }

    /// Goes to what is in force now; else to the first row that can be chosen and takes nothing away.
    fn start(&mut self) {
        let all = || (0..self.rows.len()).filter_map(|n| self.rows.get(n));
        let current = all().position(|i| i.current);
        let harmless = || all().position(|i| i.disabled.is_none() && !i.decides);
        let possible = || all().position(|i| i.disabled.is_none());
        self.list.chosen = current.or_else(harmless).or_else(possible).unwrap_or(0);
        self.list.show(self.page);
    }

    /// The questions of the source, as effects.
    pub(super) fn asked(list: Vec<EngineQuery>) -> Vec<Effect> {
        list.into_iter().map(|(body, token)| Effect::ask(body, token)).collect()
    }

    /// Has sources that search by themselves search for this filter.
    fn searched(&mut self, text: &str) -> Vec<Effect> {
        Self::asked(self.source.late().map_or_else(Vec::new, |late| late.filter(text)))
    }

    /// Slow work of the source, on another thread.
    pub(super) fn work(&mut self, model: &Model) -> Option<Effect> {
        let job = self.source.late()?.work(model)?;
        Some(Effect::Task(Task::Job(job, WORK)))
    }

    /// After the filter changed.
    pub(super) fn typed(&mut self, model: &Model) -> Reply {
        let text = self.input.text().to_owned();
        let mut effects = self.searched(&text);
        if !self.source.spec().filtered {
            self.load(model);
            self.searching = true;
        }
        self.moved = true;
        self.search();
        self.list.reset();
        if text.is_empty() {
            self.start();
        }
        effects.extend(self.hover());
        Reply::Done(effects)
    }

    /// Where the cursor is now.
    pub(super) fn place(&self) -> CursorPlace {
        let at = self.list.chosen;
        let Some(item) = self.rows.get(at) else { return CursorPlace::default() };
        let below = (at + 1..self.rows.len()).take(NEIGHBOURS);
        let above = (0..at).rev().take(NEIGHBOURS);
        let near = below.chain(above).filter_map(|n| self.rows.get(n));
        // Those of the same group come first.
        let (same, others): (Vec<&Item>, Vec<&Item>) = near.partition(|near| near.group == item.group);
        let near = same.into_iter().chain(others).map(|near| near.id.clone()).collect();
        CursorPlace { id: Some(item.id.clone()), near }
    }

    /// Keeps the row of the cursor selected, though rows came or went: that row by its id, or by the id that it has now, or else
    /// the nearest one that is still there.
    pub(super) fn keep(&mut self, place: CursorPlace) {
        if let Some(id) = place.id.filter(|_| self.moved) {
            let same = self.rows.position(&id);
            let is_renamed = |item: &Item| item.former.as_deref() == Some(&id);
            let renamed = || (0..self.rows.len()).find(|n| self.rows.get(*n).is_some_and(is_renamed));
            let near = || place.near.iter().find_map(|id| self.rows.position(id));
            if let Some(at) = same.or_else(renamed).or_else(near) {
                self.list.chosen = at;
            }
        }
        self.list.show(self.page);
    }

    /// Rows change that the user has seen: the cursor stays where it is, unless the list shows what is in force.
    pub(super) fn seen(&mut self) {
        let mut rows = self.rows.all().iter();
        self.moved |= self.rows.len() > 0 && !rows.any(|item| item.current);
    }

    /// Begins everything that the source needs when the dialog opens.
    pub(super) fn on_open(&mut self, model: &Model) -> Vec<Effect> {
        self.load(model);
        let mut effects = Self::asked(self.source.queries());
        effects.extend(self.work(model));
        let text = self.input.text().to_owned();
        effects.extend(self.searched(&text));
        effects
    }

    /// An answer of the engine to a question of the source.
    pub(super) fn on_answer(&mut self, token: Token, event: &Event, model: &Model) -> Reply {
        let Some(queries) = self.source.reply(token, event, model) else { return Reply::Ignored };
        let place = self.place();
        self.load(model);
        if std::mem::take(&mut self.searching) {
            // The cursor stands on a row of the words before.
            self.list.reset();
        } else {
            self.keep(place);
        }
        let mut effects = Self::asked(queries);
        effects.extend(self.hover());
        Reply::Done(effects)
    }
}
