//! The skills: where each is from and what is wrong with it. Enter shows its text; keys edit it, turn it off or on, and
//! show its versions.

use std::path::PathBuf;

use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::notice::sentence;
use tiller_protocol::skill::{SkillCommand, SkillQuery, SkillReply, SkillRow, SkillUse, SkillVersionRow};
use tiller_protocol::{CommandBody, Cost, Event, EventBody, Notice, NoticeKind};

use crate::app::effect::{Effect, External, Task, Token};
use crate::dialog::commands::palette::ago;
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
    groups: &[("Skills", ACTIONS), ("Versions of a skill", VERSION_ACTIONS)],
    scopes: &[
        Scope::new("skills", Some("picker"), "Skills", true).keys(KEYS),
        Scope::new("skill_versions", Some("picker"), "Versions of a skill", true).keys(VERSION_KEYS),
    ],
    samples: &[("skills", || Box::new(sample())), ("skill versions", || Box::new(sample_versions()))],
    ..Dialog::NONE
};

const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("skills.edit", "edit", "Edit the skill in your editor"),
    ActionSpec::key_only("skills.switch", "off or on", "Turn the skill off or on").deciding(),
    ActionSpec::key_only("skills.try", "try", "Try the skill on your past prompts, with and without it"),
    ActionSpec::key_only("skills.versions", "versions", "Show the earlier versions of the skill"),
];

const KEYS: &[DefaultKey] = &[
    ("leader e", "skills.edit"),
    ("leader t", "skills.try"),
    ("leader v", "skills.versions"),
    ("leader x", "skills.switch"),
];

const VERSION_ACTIONS: &[ActionSpec] =
    &[ActionSpec::key_only("skill_versions.restore", "restore", "Restore the version").deciding()];

const VERSION_KEYS: &[DefaultKey] = &[("leader r", "skill_versions.restore")];

const COLUMNS: &[Column] = &[
    Column::text("Skill").keeps(28),
    Column::text("For").grows(),
    Column::text("From").rank(2),
    Column::text("State").rank(1),
    Column::number("Uses").rank(3),
    Column::number("Cost").rank(4),
];

const VERSION_COLUMNS: &[Column] = &[
    Column::text("Version"),
    Column::text("Replaced by").grows(),
    Column::text("Who").rank(1),
    Column::right("When"),
];

/// Rows of the preview.
const PREVIEW: u16 = 6;
/// Token of a list, and of a change.
const LIST: Token = Token(1);
const CHANGE: Token = Token(2);

#[derive(Default)]
struct SkillList {
    rows: Vec<SkillRow>,
    loaded: bool,
    /// The row under the cursor.
    at: Option<usize>,
    /// What the last change did, until it is shown.
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

fn sample_versions() -> Picker {
    let row = |version| SkillVersionRow {
        version,
        time: tiller_protocol::Time(0),
        action: "edit".into(),
        by: "main".into(),
        diff: String::new(),
    };
    Picker::new(Versions { name: "deploy".into(), project: false, rows: vec![row(2), row(1)], loaded: true })
}

/// Its state in a word.
fn state(row: &SkillRow) -> (&'static str, Role) {
    match row.state {
        SkillUse::Used if !row.problems.is_empty() => ("warning", Role::Waiting),
        SkillUse::Used => ("", Role::Dim),
        SkillUse::Off => ("off", Role::Dim),
        SkillUse::Hidden => ("hidden", Role::Dim),
        SkillUse::Broken => ("not used", Role::Error),
    }
}

/// What the row does not say.
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

fn toast(text: impl Into<String>) -> Outcome {
    Outcome::Stay { effects: vec![Effect::Toast(Notice::new(NoticeKind::Info, text))], reload: false }
}

impl SkillList {
    fn row(&self, item: Option<&Item>) -> Option<&SkillRow> {
        self.rows.get(item?.id.parse::<usize>().ok()?)
    }
}

impl SkillList {
    /// Whether one of its own actions can be done now, for the row under the cursor.
    fn available(&self, action: Action) -> bool {
        let row = self.at.and_then(|at| self.rows.get(at));
        match (action.0, row) {
            ("skills.edit" | "skills.versions", Some(row)) => !row.file.is_empty(),
            ("skills.try", Some(row)) => row.state == SkillUse::Used,
            ("skills.switch", Some(row)) => matches!(row.state, SkillUse::Used | SkillUse::Off),
            (id, row) => row.is_some() || !id.starts_with("skills."),
        }
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
            refused: ListSpec::refused(ACTIONS, |action| self.available(action)),
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
        let item = |(at, row): (usize, &SkillRow)| {
            let (word, role) = state(row);
            let record = &row.record;
            let uses =
                if record.uses > 0 { Cell::number(record.uses.to_string(), "") } else { Cell::dim("") };
            let cost = match record.cost {
                cost if cost == Cost::default() => Cell::dim(""),
                cost => Cell::number(cost.to_string(), ""),
            };
            Item { more: about(row), ..Item::new(at.to_string(), &row.name) }
                .detail(row.description.clone())
                .detail(row.source.clone())
                .cell(Cell::new(word, role))
                .cell(uses)
                .cell(cost)
        };
        self.rows.iter().enumerate().map(item).collect()
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        if !matches!(
            action.0,
            "picker.choose" | "skills.edit" | "skills.try" | "skills.switch" | "skills.versions"
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
            "skills.edit" if row.file.is_empty() => toast(
                "A built-in skill stays as it is. A skill of the same name in your folder takes its place.",
            ),
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
                    let off = |r: &&SkillRow| (r.state == SkillUse::Off) != (r.name == row.name);
                    let mut disabled: Vec<&str> =
                        self.rows.iter().filter(off).map(|r| r.name.as_str()).collect();
                    disabled.dedup();
                    let keep = Task::SaveSetting { key: "skills.disabled".into(), value: disabled.into() };
                    let switch = SkillCommand::Switch { name: row.name, on };
                    Outcome::reload(vec![Effect::ask(CommandBody::Skill(switch), CHANGE), Effect::Task(keep)])
                }
                SkillUse::Hidden => toast("Another skill of this name is used. Turn that one off first."),
                SkillUse::Broken => toast("It is not used already. Edit the file to correct it."),
            },
            _ if row.file.is_empty() => toast("A built-in skill has one version only."),
            _ => {
                let versions =
                    Versions { name: row.name, project: row.project, rows: Vec::new(), loaded: false };
                let push = Effect::Push(Box::new(Picker::new(versions)));
                Outcome::Stay { effects: vec![push], reload: false }
            }
        })
    }

    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    fn hover(&mut self, item: Option<&Item>) -> Vec<Effect> {
        self.at = item.and_then(|item| item.id.parse().ok());
        self.said.take().map(|said| Effect::Toast(Notice::new(NoticeKind::Info, said))).into_iter().collect()
    }

    fn hints(&self, any: bool) -> Vec<Hint> {
        let all = ["skills.edit", "skills.try", "skills.switch", "skills.versions"];
        all.into_iter().filter(|id| any && self.available(Action(id))).map(Hint::of).collect()
    }

    fn preview(&self, item: &Item) -> Option<String> {
        Some(item.more.clone())
    }
}

/// The versions of a skill.
struct Versions {
    name: String,
    project: bool,
    rows: Vec<SkillVersionRow>,
    loaded: bool,
}

impl Versions {
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
            actions: VERSION_ACTIONS,
            verb: "difference",
            columns: VERSION_COLUMNS,
            table: Some(PREVIEW),
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
            row.diff
                .lines()
                .filter(|l| !l.starts_with("---") && !l.starts_with("+++"))
                .collect::<Vec<_>>()
                .join("\n")
        })
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::Time;
    use tiller_protocol::skill::{SkillRecord, SkillTrial, TrialRuns};

    use super::*;
    use crate::testing::Robot;

    fn rows() -> Vec<SkillRow> {
        let row = |name: &str, description: &str, source: &str, state| SkillRow {
            name: name.into(),
            description: description.into(),
            source: source.into(),
            file: if source == "built in" {
                String::new()
            } else {
                format!("/home/u/.config/tiller/skills/{name}/SKILL.md")
            },
            text: format!("# {name}\n\nDo it.\n"),
            state,
            ..SkillRow::default()
        };
        vec![
            row("code-review", "Reviews a change for faults before it is merged", "built in", SkillUse::Used),
            SkillRow {
                arguments: "[stage]".into(),
                record: SkillRecord {
                    uses: 3,
                    done: 2,
                    checked: 2,
                    passed: 1,
                    cost: Cost(120_000),
                    trial: Some(SkillTrial {
                        with: TrialRuns {
                            runs: 2,
                            used: 2,
                            done: 2,
                            cost: Cost(30_000),
                            ..TrialRuns::default()
                        },
                        without: TrialRuns { runs: 2, done: 1, cost: Cost(20_000), ..TrialRuns::default() },
                        ..SkillTrial::default()
                    }),
                    ..SkillRecord::default()
                },
                ..row(
                    "deploy",
                    "How this service is deployed, and what to check first",
                    "yours",
                    SkillUse::Used,
                )
            },
            SkillRow {
                problems: vec!["skills/lint/SKILL.md:3:1: the description is missing".into()],
                text: String::new(),
                ..row("lint", "the description is missing", "", SkillUse::Broken)
            },
            row("notes", "How notes are taken", "project", SkillUse::Off),
        ]
    }

    #[test]
    fn only_what_a_skill_can_do_is_offered_and_a_change_names_it() {
        let mut r = Robot::new(118, 25);
        assert!(r.app.act(Action("skills.open")));
        r.run("wait 1");
        let list = |r: &mut Robot| {
            let id =
                r.asked(|c| matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Skills })));
            let reply = SkillReply::Skills { rows: rows() };
            r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply })));
        };
        list(&mut r);
        r.run("ctrl-home; wait 1000");
        assert!(r.footer().contains("try") && !r.footer().contains("edit"), "built in: {}", r.footer());
        r.run("down; wait 1000");
        assert!(r.footer().contains("edit") && r.footer().contains("versions"), "{}", r.footer());
        r.run("ctrl-x; x; wait 1");
        r.reply(ReplyEvent::DoneReply { said: "The skill deploy is turned off".into() });
        list(&mut r);
        r.run("wait 1");
        assert!(r.screen().contains("The skill deploy is turned off"), "{}", r.screen());
        r.run("type zzz; wait 1");
        assert!(r.screen().contains("No skill matches"), "{}", r.screen());
    }

    #[test]
    fn skills_are_listed_read_switched_and_their_versions_restored() {
        for (width, height) in [(118, 25), (80, 24)] {
            let mut r = Robot::new(width, height);
            assert!(r.app.act(Action("skills.open")));
            r.run("wait 1");
            let id =
                r.asked(|c| matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Skills })));
            let reply = SkillReply::Skills { rows: rows() };
            r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply })));
            r.run("down; wait 1");
            insta::assert_snapshot!(format!("skills_at_{width}x{height}"), r.screen());
            r.run("enter; wait 1");
            assert!(r.screen().contains("Skill deploy") && r.screen().contains("Do it."), "{}", r.screen());
            r.run("esc; wait 1000");
            r.run("ctrl-x; x; wait 1");
            let off = |c: &CommandBody| matches!(c, CommandBody::Skill(SkillCommand::Switch { name, on: false }) if name == "deploy");
            assert!(r.commands().iter().any(|c| off(c)), "{:?}", r.commands());
            let kept = r.tasks.iter().find_map(|t| match t {
                Task::SaveSetting { key, value } => Some(format!("{key} {value}")),
                _ => None,
            });
            assert_eq!(kept.as_deref(), Some("skills.disabled [\"deploy\",\"notes\"]"));

            r.run("ctrl-x; v; wait 1");
            let id = r.asked(|c| {
                matches!(c, CommandBody::Query(Query::Skills { query: SkillQuery::Versions { .. } }))
            });
            let version = |version, action: &str, by: &str| {
                SkillVersionRow {
                version,
                time: Time(r.app.model.now.millis() - 90_000),
                action: action.into(),
                by: by.into(),
                diff: "--- a/skills/deploy/SKILL.md\n+++ b/skills/deploy/SKILL.md\n@@ -1,1 +1,1 @@\n-Deploy at night.\n+Deploy by day.\n".into(),
            }
            };
            let reply = SkillReply::Versions {
                name: "deploy".into(),
                rows: vec![
                    version(2, "edit", "main in session 4"),
                    version(1, "create", "main in session 4"),
                ],
            };
            r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::SkillsReply { reply })));
            r.run("wait 1");
            insta::assert_snapshot!(format!("skill_versions_at_{width}x{height}"), r.screen());
            r.run("wait 1000; ctrl-x; r; wait 1");
            let restore = |c: &CommandBody| matches!(c, CommandBody::Skill(SkillCommand::Restore { name, version: 2, project: false }) if name == "deploy");
            assert!(r.commands().iter().any(|c| restore(c)), "{:?}", r.commands());
        }
    }
}
