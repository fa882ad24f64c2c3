//! Choose how answers are written.

use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::skill::{SkillCommand, SkillQuery, SkillReply, StyleRow};
use tiller_protocol::{CommandBody, Event, EventBody};

use crate::app::effect::{Effect, Token};
use crate::dialog::picker::{EngineQuery, Item, ListSpec, Picker, Source};
use crate::keymap::action::Menu;
use crate::model::Model;
use crate::registry::{Dialog, Opener};
use crate::widget::table::Column;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("style.open", "style", "Choose how answers are written", |_| {
        Ok(Box::new(Picker::new(Styles::default())))
    })
    .menu(Menu::Session)],
    ..Dialog::NONE
};

const COLUMNS: &[Column] = &[Column::text(""), Column::text("").grows(), Column::text("").rank(1)];

/// The row without a style.
const NONE: &str = "";

#[derive(Default)]
struct Styles {
    rows: Vec<StyleRow>,
    loaded: bool,
}

/// The command for a style; an empty name: none.
pub(crate) fn choose(name: &str) -> CommandBody {
    CommandBody::Skill(SkillCommand::Style { name: (name != NONE).then(|| name.to_owned()) })
}

impl Source for Styles {
    fn title(&self) -> String {
        "Output style".into()
    }

    fn spec(&self) -> ListSpec {
        let empty = if self.loaded { "No styles" } else { "Loading..." };
        ListSpec { columns: COLUMNS, empty, ..ListSpec::default() }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        vec![(CommandBody::Query(Query::Skills { query: SkillQuery::Styles }), Token(1))]
    }

    fn reply(&mut self, _token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        let ReplyEvent::SkillsReply { reply: SkillReply::Styles { rows } } = reply.as_ref() else {
            return None;
        };
        self.rows.clone_from(rows);
        self.loaded = true;
        Some(Vec::new())
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        if !self.loaded {
            return Vec::new();
        }
        let usual = Item::new(NONE, "as usual")
            .detail("No style")
            .detail("")
            .current(!self.rows.iter().any(|row| row.current));
        let row = |row: &StyleRow| {
            Item { more: row.text.clone(), ..Item::new(&row.name, &row.name) }
                .detail(row.description.clone())
                .detail(row.source.clone())
                .current(row.current)
        };
        std::iter::once(usual).chain(self.rows.iter().map(row)).collect()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        vec![Effect::send(choose(&item.id))]
    }

    fn preview(&self, item: &Item) -> Option<String> {
        Some(item.more.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keymap::action::Action;
    use crate::testing::Robot;

    #[test]
    fn styles_are_listed_with_their_texts_and_chosen() {
        for (width, height) in [(118, 25), (80, 24)] {
            let mut r = Robot::new(width, height);
            assert!(r.app.act(Action("style.open")));
            r.run("wait 1");
            let id =
                r.asked(|c| matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Styles })));
            let row = |name: &str, description: &str, source: &str| StyleRow {
                name: name.into(),
                description: description.into(),
                source: source.into(),
                text: format!("Write in the style {name}."),
                current: name == "concise",
            };
            let rows = vec![
                row("concise", "Short answers without preamble", "built in"),
                row("pirate", "Arr", "project"),
            ];
            let reply = SkillReply::Styles { rows };
            r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply })));
            r.run("wait 1");
            insta::assert_snapshot!(format!("styles_at_{width}x{height}"), r.screen());
            r.run("down; enter");
            let chosen = |c: &CommandBody| *c == choose("pirate");
            assert!(r.commands().iter().any(|c| chosen(c)), "{:?}", r.commands());
        }
    }
}
