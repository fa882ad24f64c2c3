//! The versions of a skill: Enter shows what restoring one changes, a key restores it.

use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::skill::{SkillCommand, SkillQuery, SkillReply, SkillVersionRow};
use tiller_protocol::{CommandBody, Event, EventBody};

use super::skills::{CHANGE, LIST, PREVIEW};
use crate::app::effect::{Effect, Token};
use crate::dialog::commands::palette::ago;
use crate::dialog::picker::{EngineQuery, Item, ListSpec, Outcome, Picker, Source};
use crate::dialog::reader::text::Text;
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::panel::Hint;
use crate::registry::Dialog;
use crate::widget::table::Column;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    groups: &[("Versions of a skill", ACTIONS)],
    scopes: &[Scope::new("skill_versions", Some("picker"), "Versions of a skill", true).keys(KEYS)],
    samples: &[("skill versions", || Box::new(sample()))],
    ..Dialog::NONE
};

const ACTIONS: &[ActionSpec] =
    &[ActionSpec::key_only("skill_versions.restore", "restore", "Restore the version").deciding()];

const KEYS: &[DefaultKey] = &[("leader r", "skill_versions.restore")];

const COLUMNS: &[Column] = &[
    Column::text("Version"),
    Column::text("Replaced by").grows(),
    Column::text("Who").rank(1),
    Column::right("When"),
];

/// The versions of a skill.
pub(super) struct Versions {
    name: String,
    project: bool,
    rows: Vec<SkillVersionRow>,
    loaded: bool,
}

impl Versions {
    pub(super) fn new(name: String, project: bool) -> Self {
        Self { name, project, rows: Vec::new(), loaded: false }
    }

    fn row(&self, item: Option<&Item>) -> Option<&SkillVersionRow> {
        let version = item?.id.parse::<u64>().ok()?;
        self.rows.iter().find(|row| row.version == version)
    }
}

impl Source for Versions {
    fn title(&self) -> String {
        format!("Versions of {}", self.name)
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "skill_versions",
            actions: ACTIONS,
            verb: "difference",
            columns: COLUMNS,
            table: Some(PREVIEW),
            decides_on_text: &["skill_versions.restore"],
            empty: if self.loaded {
                "No versions: the skill has not been changed by an agent"
            } else {
                "Loading..."
            },
            ..ListSpec::default()
        }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        let query = SkillQuery::Versions { name: self.name.clone(), project: self.project };
        vec![(CommandBody::Query(Query::Skills { query }), LIST)]
    }

    fn reply(&mut self, token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        match reply.as_ref() {
            ReplyEvent::SkillsReply { reply: SkillReply::Versions { rows, .. } } => {
                self.rows.clone_from(rows);
                self.loaded = true;
                Some(Vec::new())
            }
            ReplyEvent::DoneReply { .. } if token == CHANGE => Some(self.queries()),
            _ => None,
        }
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let item = |row: &SkillVersionRow| {
            Item::new(row.version.to_string(), format!("{}", row.version))
                .detail(row.action.clone())
                .detail(row.by.clone())
                .detail(ago(model.now.millis() - row.time.millis()))
        };
        self.rows.iter().map(item).collect()
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        let row = self.row(item)?;
        match action.0 {
            "picker.choose" => {
                let text = Text::diff(&format!("What restoring version {} changes", row.version), &row.diff);
                Some(Outcome::Stay { effects: vec![Effect::Push(Box::new(text))], reload: false })
            }
            "skill_versions.restore" => {
                let restore = SkillCommand::Restore {
                    name: self.name.clone(),
                    project: self.project,
                    version: row.version,
                };
                Some(Outcome::reload(vec![Effect::ask(CommandBody::Skill(restore), CHANGE)]))
            }
            _ => None,
        }
    }

    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    fn hints(&self, any: bool) -> Vec<Hint> {
        any.then(|| Hint::of("skill_versions.restore")).into_iter().collect()
    }

    fn preview(&self, item: &Item) -> Option<String> {
        self.row(Some(item)).map(|row| {
            // The names of both files stand before the first hunk. Behind it, `---` is a line of the text.
            let header = |l: &&str| !l.starts_with("@@");
            let is_name = |l: &&str| l.starts_with("---") || l.starts_with("+++");
            let above = row.diff.lines().take_while(header).filter(|l| !is_name(l));
            let hunks = row.diff.lines().skip_while(header);
            above.chain(hunks).collect::<Vec<_>>().join("\n")
        })
    }
}

fn sample() -> Picker {
    let row = |version| SkillVersionRow {
        version,
        time: tiller_protocol::Time(0),
        action: "edit".into(),
        by: "main".into(),
        diff: String::new(),
    };
    Picker::new(Versions { name: "deploy".into(), project: false, rows: vec![row(2), row(1)], loaded: true })
}
