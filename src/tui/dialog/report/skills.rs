//! The skills: where each is from and what is wrong with it. Enter shows its text; keys edit it, turn it off or on, and
//! show its versions.

use std::path::PathBuf;

use tiller_protocol::command::Query;
use tiller_protocol::event::{ReplyEvent, TurnEvent};
use tiller_protocol::notice::sentence;
use tiller_protocol::skill::{SkillCommand, SkillQuery, SkillReply, SkillRow, SkillUse};
use tiller_protocol::{CommandBody, Cost, Event, EventBody, Notice, NoticeKind};

use super::skill_versions::Versions;
use crate::app::effect::{Effect, External, SettingEdit, Task, Token};
use crate::dialog::picker::{EngineQuery, Item, ListSpec, Outcome, Picker, Source};
use crate::dialog::reader::text::Text;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::panel::Hint;
use crate::registry::{Dialog, Opener};
use crate::theme::Role;
use crate::widget::table::{Cell, Column};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new(
        "skills.open",
        "skills",
        "Skills: read, edit, turn off, restore versions",
        |_| Ok(Box::new(Picker::new(SkillList::default()))),
    )
    .menu(Menu::Go)],
    groups: &[("Skills", ACTIONS)],
    scopes: &[Scope::new("skills", Some("picker"), "Skills", true).keys(KEYS)],
    samples: &[("skills", || Box::new(sample()))],
    ..Dialog::NONE
};

const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("skills.copy", "copy", "Copy the skill to your own, to edit the copy").deciding(),
    ActionSpec::key_only("skills.edit", "edit", "Edit the skill in your editor"),
    ActionSpec::key_only("skills.switch", "off or on", "Turn the skill off or on").deciding(),
    ActionSpec::key_only(
        "skills.trust",
        "trust",
        "Show what changed in a pack or folder, and trust it or not",
    ),
    ActionSpec::key_only("skills.try", "try", "Try the skill on your past prompts, with and without it"),
    ActionSpec::key_only("skills.versions", "versions", "Show the earlier versions of the skill"),
];

const KEYS: &[DefaultKey] = &[
    ("leader c", "skills.copy"),
    ("leader e", "skills.edit"),
    ("leader r", "skills.trust"),
    ("leader t", "skills.try"),
    ("leader v", "skills.versions"),
    ("leader x", "skills.switch"),
];

const COLUMNS: &[Column] = &[
    Column::text("Skill").keeps(28),
    Column::text("For").grows(),
    Column::text("From").rank(2),
    Column::text("State").rank(1),
    Column::number("Uses").rank(3),
    Column::number("Cost").rank(4),
];

/// Rows of the preview.
pub(super) const PREVIEW: u16 = 6;
/// Token of a list, and of a change.
pub(super) const LIST: Token = Token(1);
pub(super) const CHANGE: Token = Token(2);

#[derive(Default)]
struct SkillList {
    rows: Vec<SkillRow>,
    loaded: bool,
    /// Id of the row under the cursor.
    at: Option<String>,
    /// The outcome of the last change, until it is shown.
    said: Option<String>,
}

fn sample() -> Picker {
    let row = |name: &str, state| SkillRow {
        name: name.into(),
        description: "What it is for".into(),
        source: "yours".into(),
        file: format!("/home/u/skills/{name}/SKILL.md"),
        state,
        ..SkillRow::default()
    };
    Picker::new(SkillList {
        rows: vec![row("deploy", SkillUse::Used), row("notes", SkillUse::Broken)],
        loaded: true,
        ..SkillList::default()
    })
}

/// Its state in a word.
fn state(row: &SkillRow) -> (&'static str, Role) {
    match row.state {
        SkillUse::Used if !row.problems.is_empty() => ("warning", Role::Waiting),
        SkillUse::Used => ("", Role::Dim),
        SkillUse::Off => ("off", Role::Dim),
        SkillUse::Hidden => ("hidden", Role::Dim),
        SkillUse::Broken => ("not used", Role::Error),
        SkillUse::Untrusted => ("not trusted", Role::Waiting),
    }
}

/// Returns what the row does not say.
fn about(row: &SkillRow) -> String {
    let mut lines = vec![row.description.clone()];
    lines.extend(row.problems.iter().cloned());
    if row.state == SkillUse::Hidden {
        lines.push("Another skill of this name takes its place".into());
    }
    if matches!(row.state, SkillUse::Used | SkillUse::Off) {
        lines.push(sentence(&row.record.words()));
        if let Some(trial) = &row.record.trial {
            let cut = if trial.cut { " (cut by its budget)" } else { "" };
            lines.push(format!("Last trial{cut}: {}", trial.words()));
        }
    }
    if row.state == SkillUse::Used {
        let arguments = if row.arguments.is_empty() { String::new() } else { format!(" {}", row.arguments) };
        lines.push(format!("Write ${}{arguments} in a message to load it", row.name));
    }
    if !row.file.is_empty() {
        lines.push(row.file.clone());
    }
    lines.join("\n")
}

/// The skills, one a line, for plain mode.
pub(crate) fn lines(rows: &[SkillRow]) -> String {
    let line = |row: &SkillRow| {
        let (state, _) = state(row);
        let state = if state.is_empty() { String::new() } else { format!(", {state}") };
        let problems: String = row.problems.iter().map(|p| format!("\n  {p}")).collect();
        let record = if row.record.uses > 0 { format!("\n  {}", row.record.words()) } else { String::new() };
        format!("{}, {}{state}: {}{record}{problems}", row.name, row.source, row.description)
    };
    let all: Vec<String> = rows.iter().map(line).collect();
    format!("Skills: {}\n{}", rows.len(), all.join("\n"))
}

/// True when a skill belongs to a plugin, which is no pack.
fn of_plugin(row: &SkillRow) -> bool {
    row.fixed && row.pack.is_empty()
}

/// Why the files of a skill are not changed.
fn stays(row: &SkillRow) -> String {
    match (row.pack.as_str(), row.file.is_empty()) {
        ("", true) => "A built-in skill stays as it is.".into(),
        ("", false) => "It belongs to a plugin, whose files stay as you agreed to them.".into(),
        (pack, _) => format!("It belongs to the pack {pack}, whose files stay as you agreed to them."),
    }
}

fn toast(text: impl Into<String>) -> Outcome {
    Outcome::Stay { effects: vec![Effect::Toast(Notice::new(NoticeKind::Info, text))], reload: false }
}

impl SkillList {
    fn row(&self, item: Option<&Item>) -> Option<&SkillRow> {
        self.by_id(&item?.id)
    }

    fn by_id(&self, id: &str) -> Option<&SkillRow> {
        self.rows.iter().find(|row| row_id(row) == id)
    }
}

/// Identifies a row: several folders may have a skill of one name.
fn row_id(row: &SkillRow) -> String {
    format!("{}\n{}\n{}", row.name, row.source, row.file)
}

impl SkillList {
    /// True when one of its own actions can be done now, for the row under the cursor.
    fn available(&self, action: Action) -> bool {
        let row = self.at.as_deref().and_then(|id| self.by_id(id));
        match (action.0, row) {
            ("skills.edit" | "skills.versions", Some(row)) => !row.file.is_empty() && !row.fixed,
            ("skills.copy", Some(row)) => row.fixed && row.state == SkillUse::Used,
            ("skills.trust", Some(row)) => row.state == SkillUse::Untrusted && !of_plugin(row),
            ("skills.try", Some(row)) => row.state == SkillUse::Used,
            ("skills.switch", Some(row)) => matches!(row.state, SkillUse::Used | SkillUse::Off),
            (id, row) => row.is_some() || !id.starts_with("skills."),
        }
    }
}

impl SkillList {
    /// True when an action that cannot be done says why for this row, and what can be done instead.
    fn explains(&self, action: Action) -> bool {
        let row = self.at.as_deref().and_then(|id| self.by_id(id));
        row.is_some_and(|row| match action.0 {
            "skills.edit" | "skills.versions" => row.fixed,
            "skills.trust" => row.state == SkillUse::Untrusted && of_plugin(row),
            _ => false,
        })
    }
}

impl Source for SkillList {
    fn title(&self) -> String {
        "Skills".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "skills",
            actions: ACTIONS,
            verb: "read",
            columns: COLUMNS,
            table: Some(PREVIEW),
            refused: ListSpec::refused(ACTIONS, |action| self.available(action) || self.explains(action)),
            // The uses of a turn are counted at its end.
            changed_by: |event| matches!(&event.body, EventBody::Turn(TurnEvent::TurnFinished { .. })),
            empty: match (self.loaded, self.rows.is_empty()) {
                (false, _) => "Loading...",
                (true, true) => "There are no skills",
                (true, false) => "No skill matches",
            },
            ..ListSpec::default()
        }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        vec![(CommandBody::Query(Query::Skills { query: SkillQuery::Skills }), LIST)]
    }

    fn reply(&mut self, token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        match reply.as_ref() {
            ReplyEvent::SkillsReply { reply: SkillReply::Skills { rows } } => {
                self.rows.clone_from(rows);
                self.loaded = true;
                Some(Vec::new())
            }
            ReplyEvent::DoneReply { said } if token == CHANGE => {
                self.said = Some(said.clone());
                Some(self.queries())
            }
            _ => None,
        }
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        let item = |row: &SkillRow| {
            let (word, role) = state(row);
            let record = &row.record;
            let uses =
                if record.uses > 0 { Cell::number(record.uses.to_string(), "") } else { Cell::dim("") };
            let cost = match record.cost {
                cost if cost == Cost::default() => Cell::dim(""),
                cost => Cell::number(cost.to_string(), ""),
            };
            Item { more: about(row), ..Item::new(row_id(row), &row.name) }
                .detail(row.description.clone())
                .detail(row.source.clone())
                .cell(Cell::new(word, role))
                .cell(uses)
                .cell(cost)
        };
        self.rows.iter().map(item).collect()
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        if !matches!(
            action.0,
            "picker.choose"
                | "skills.copy"
                | "skills.edit"
                | "skills.trust"
                | "skills.try"
                | "skills.switch"
                | "skills.versions"
        ) {
            return None;
        }
        let row = self.row(item)?.clone();
        Some(match action.0 {
            "picker.choose" if row.text.is_empty() => {
                toast("It could not be read. Edit the file to correct it.")
            }
            "picker.choose" => {
                let text = Text::prose(&format!("Skill {}", row.name), &row.text);
                Outcome::Stay { effects: vec![Effect::Push(Box::new(text))], reload: false }
            }
            "skills.edit" if row.fixed => {
                toast(format!("{} Copy it: the copy takes its place.", stays(&row)))
            }
            "skills.edit" if row.file.is_empty() => toast("It has no file on this machine."),
            "skills.copy" if row.fixed && row.state == SkillUse::Used => {
                let copy = SkillCommand::Copy { name: row.name };
                Outcome::reload(vec![Effect::ask(CommandBody::Skill(copy), CHANGE)])
            }
            "skills.copy" if row.fixed => toast("Only a skill that is used can be copied."),
            "skills.copy" => toast("It is no part of a pack: edit it where it is."),
            "skills.trust" if row.state != SkillUse::Untrusted => toast("It needs no decision."),
            "skills.trust" if of_plugin(&row) => {
                toast(format!("It belongs to a plugin: {}.", row.problems.last().map_or("", String::as_str)))
            }
            "skills.trust" => {
                let pack = (!row.pack.is_empty()).then_some(row.pack);
                let ask = Effect::Task(Task::Suspend(External::Trust { pack }));
                Outcome::Stay { effects: vec![ask], reload: false }
            }
            "skills.edit" => {
                let file = PathBuf::from(&row.file);
                let edit = Effect::Task(Task::Suspend(External::Editor { file, line: None }));
                Outcome::Close(vec![edit])
            }
            "skills.try" if row.state != SkillUse::Used => toast("A skill that is not used cannot be tried."),
            "skills.try" => {
                let trial = Effect::Task(Task::Suspend(External::Trial { skill: row.name }));
                Outcome::Stay { effects: vec![trial], reload: false }
            }
            "skills.switch" => match row.state {
                SkillUse::Used | SkillUse::Off => {
                    let on = row.state == SkillUse::Off;
                    // The list in the file has the names of other folders, too.
                    let member = SettingEdit::Member { name: row.name.clone(), present: !on };
                    let keep = Task::SaveSetting { key: "skills.disabled".into(), value: member };
                    let switch = SkillCommand::Switch { name: row.name, on };
                    Outcome::reload(vec![Effect::ask(CommandBody::Skill(switch), CHANGE), Effect::Task(keep)])
                }
                SkillUse::Hidden => toast("Another skill of this name is used. Turn that one off first."),
                SkillUse::Broken => {
                    toast("It has an error, so it is not used anyway. Edit the file to correct it.")
                }
                SkillUse::Untrusted => toast("It is not used before you trust its files."),
            },
            _ if row.fixed => toast(format!("{} It has no versions here.", stays(&row))),
            _ if row.file.is_empty() => toast("It has no file on this machine."),
            _ => {
                let push = Effect::Push(Box::new(Picker::new(Versions::new(row.name, row.project))));
                Outcome::Stay { effects: vec![push], reload: false }
            }
        })
    }

    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    fn hover(&mut self, item: Option<&Item>) -> Vec<Effect> {
        self.at = item.map(|item| item.id.clone());
        self.said.take().map(|said| Effect::Toast(Notice::new(NoticeKind::Info, said))).into_iter().collect()
    }

    fn hints(&self, any: bool) -> Vec<Hint> {
        let all =
            ["skills.trust", "skills.copy", "skills.edit", "skills.try", "skills.switch", "skills.versions"];
        all.into_iter().filter(|id| any && self.available(Action(id))).map(Hint::of).collect()
    }

    fn preview(&self, item: &Item) -> Option<String> {
        Some(item.more.clone())
    }
}

#[cfg(test)]
#[path = "skills_tests.rs"]
mod tests;
