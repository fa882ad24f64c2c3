//! The list of everything: each action with its keys and the place where they work.

use super::essentials::DRAFT;
use crate::app::App;
use crate::app::effect::Effect;
use crate::dialog::picker::{Item, ListSpec, Source};
use crate::keymap::KeyRow;
use crate::keymap::show;
use crate::keymap::vocabulary::Vocabulary;
use crate::model::Model;
use crate::theme::Role;
use crate::widget::table::{Cell, Column};

/// Every action with its keys, those of this place first, then every action without a key, with its `/` command. An
/// action stands once: with the keys of the nearest place that has some.
pub(super) fn everything(app: &App) -> Vec<Item> {
    let words = app.registry.words();
    let here = app.scopes();
    let near = |scope: &str| here.iter().position(|s| *s == scope).unwrap_or(usize::MAX);
    let mut table = app.keys.map.table();
    table.sort_by_key(|row| near(row.scope));
    let mut rows: Vec<(&'static str, Item)> = Vec::new();
    for row in &table {
        match rows.iter_mut().find(|(_, i)| i.id == row.action.0) {
            Some((scope, item)) if *scope == row.scope => add_key(item, show(&row.keys)),
            Some(_) => {}
            None => rows.push((row.scope, keyed(words, row, near(row.scope) < usize::MAX))),
        }
    }
    let mut rows: Vec<Item> = rows.into_iter().map(|(_, item)| item).collect();
    for (group, s) in words.actions().filter(|(_, s)| s.palette && app.keys.map.anywhere(s.action).is_none())
    {
        let command =
            app.registry.commands().0.iter().find(|c| c.action().is_some_and(|a| a.0 == s.action.0));
        let reach = command.map_or("no key".into(), |c| format!("/{}", c.name()));
        let mut item = Item::new(s.action.0, s.help).detail("");
        item.more = format!("{} {} {group} {reach}", s.action.0, s.label);
        item = item.cell(Cell::dim(reach));
        item.decides = s.ends;
        rows.push(item);
    }
    rows
}

/// Keys of an action that are shown.
const KEYS: usize = 2;

/// Adds a further key to a row; all can be searched for.
fn add_key(item: &mut Item, key: String) {
    item.more = format!("{} {key}", item.more);
    if let Some(cell) = item.cells.last_mut().filter(|c| c.text.split(", ").count() < KEYS) {
        cell.text = format!("{}, {key}", cell.text);
    }
}

/// A row of an action with its first key. `here`: the place of the key is the one from which help was opened.
fn keyed(words: &Vocabulary, row: &KeyRow, here: bool) -> Item {
    let (key, place) = (show(&row.keys), words.scope(row.scope).map_or(row.scope, |s| s.title));
    let spec = words.find(row.action.0);
    let mut item = Item::new(row.action.0, row.help).detail(if here { "" } else { place });
    // A key of another place does nothing here; what has a name in the palette can be done all the same.
    item.disabled = (!here && !spec.is_some_and(|s| s.palette)).then(|| format!("{key} in {place}"));
    if matches!(row.action.0, "composer.send" | "composer.queue" | "composer.now" | "composer.take") {
        item.disabled = Some(format!("{key}: {}", lower(DRAFT)));
    }
    item.more = format!("{} {} {key} {place}", row.action.0, spec.map_or("", |s| s.label));
    item.decides = spec.is_some_and(|s| s.ends);
    item.cell(Cell::new(key, Role::Accent))
}

fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_lowercase().chain(chars).collect())
}

/// The action, where it holds, and its key.
const COLUMNS: &[Column] = &[Column::text("").grows(), Column::right("").rank(1), Column::key("")];

/// The list of everything.
pub(super) struct Everything {
    pub(super) words: &'static Vocabulary,
    pub(super) items: Vec<Item>,
}

impl Source for Everything {
    fn title(&self) -> String {
        "Help".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "help",
            columns: COLUMNS,
            verb: "do it",
            prompt: "Type to search all keys and commands",
            ..ListSpec::default()
        }
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        self.items.clone()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        self.words.find(&item.id).map(|s| Effect::Act(s.action)).into_iter().collect()
    }
}
