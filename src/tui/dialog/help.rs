//! Help: every key and every action, what applies here first. Made from the keymap and the list of
//! actions, so it is never out of date. Choosing a row does it.

use super::picker::{Item, Picker, Source};
use crate::action;
use crate::app::App;
use crate::effect::Effect;
use crate::keymap::scope;
use crate::model::Model;

struct Help {
    items: Vec<Item>,
}

/// Makes it for where the focus is now.
pub(crate) fn open(app: &App) -> Picker {
    let here = app.scopes();
    let mut rows: Vec<(usize, Item)> = Vec::new();
    for row in app.keys.map.table() {
        let near = here.iter().position(|s| *s == row.scope);
        let place = scope::find(row.scope).map_or(row.scope, |s| s.title);
        let label = action::find(row.action.0).map_or("", |s| s.label);
        let mut item = Item::new(row.action.0, format!("{:<16} {}", row.keys, row.help));
        if near.is_none() {
            item.detail = place.to_owned();
            // A key of another place does nothing here; what has a name in the palette can be done all the same.
            let anywhere = action::find(row.action.0).is_some_and(|s| s.palette);
            item.disabled = (!anywhere).then(|| format!("in: {place}"));
        }
        item.more = format!("{} {label} {place}", row.action.0);
        rows.push((near.unwrap_or(usize::MAX), item));
    }
    for (group, s) in action::all() {
        if app.keys.map.anywhere(s.action).is_none() && s.palette {
            let mut item = Item::new(s.action.0, format!("{:<16} {}", "--", s.help));
            item.detail = group.into();
            rows.push((usize::MAX, item));
        }
    }
    rows.sort_by_key(|(near, _)| *near);
    Picker::new(Help { items: rows.into_iter().map(|(_, i)| i).collect() })
}

impl Source for Help {
    fn title(&self) -> String {
        "help: keys and commands".into()
    }

    fn scope(&self) -> &'static str {
        "help"
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        self.items.clone()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        action::find(&item.id).map(|s| Effect::Act(s.action)).into_iter().collect()
    }
}
