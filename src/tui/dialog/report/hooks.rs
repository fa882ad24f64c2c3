//! The hooks of the session: what each runs for, and how its last run ended. Enter turns one off or on.

use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandBody, Event, EventBody, HookOutcome, HookRow};

use crate::app::effect::{Effect, Token};
use crate::dialog::commands::palette::ago;
use crate::dialog::picker::{ACTIONS, EngineQuery, Item, ListSpec, Outcome, Picker, Source};
use crate::keymap::action::{Action, Menu};
use crate::model::Model;
use crate::registry::{Dialog, Opener};
use crate::theme::Role;
use crate::widget::table::{Cell, Column};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("hooks.open", "hooks", "Hooks: what runs for which events", |_| {
        Ok(Box::new(Picker::new(HookList { rows: Vec::new(), loaded: false })))
    })
    .menu(Menu::Go)],
    ..Dialog::NONE
};

const COLUMNS: &[Column] = &[
    Column::text("Hook").grows(),
    Column::text("For").rank(1),
    Column::text("From").rank(3),
    Column::text("Last run"),
    Column::number("Took").rank(2),
    Column::right("When").rank(4),
];

/// Rows of the preview.
const PREVIEW: u16 = 6;

struct HookList {
    rows: Vec<HookRow>,
    loaded: bool,
}

/// Returns what a hook's last run came to.
pub(crate) fn outcome(row: &HookRow) -> (&'static str, Role) {
    match row.last.as_ref().map(|run| run.outcome) {
        _ if !row.on => ("off", Role::Dim),
        None => ("not yet", Role::Dim),
        Some(HookOutcome::Passed) => ("passed", Role::Text),
        Some(HookOutcome::Changed) => ("changed", Role::Text),
        Some(HookOutcome::Denied) => ("denied", Role::Waiting),
        Some(HookOutcome::Failed) => ("failed", Role::Error),
    }
}

/// Returns what it runs for, in words.
pub(crate) fn scope(row: &HookRow) -> &str {
    if row.matches.is_empty() { "everything" } else { &row.matches }
}

/// All of a hook, for the preview.
fn whole(row: &HookRow) -> String {
    let kind =
        if row.blocking { "Blocking: a failure denies" } else { "Not blocking: a failure is only reported" };
    let runs = if row.runs == 1 { "1 run".to_owned() } else { format!("{} runs", row.runs) };
    let why = row.last.as_ref().filter(|run| !run.why.is_empty());
    let why = why.map_or(String::new(), |run| format!("\n{}: {}", outcome(row).0, run.why));
    format!("{}{why}\n\n{kind}. At most {} s. {runs}", row.command, row.timeout)
}

impl Source for HookList {
    fn title(&self) -> String {
        "Hooks".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            actions: ACTIONS,
            verb: "turn off or on",
            columns: COLUMNS,
            table: Some(PREVIEW),
            empty: if self.loaded {
                "No hooks: commands of [hooks] in config.toml appear here, with their runs"
            } else {
                "Loading..."
            },
            ..ListSpec::default()
        }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        vec![(CommandBody::Query(Query::Hooks), Token(1))]
    }

    fn reply(&mut self, _token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        let ReplyEvent::HooksReply { rows } = reply.as_ref() else { return None };
        self.rows.clone_from(rows);
        self.loaded = true;
        Some(Vec::new())
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let item = |row: &HookRow| {
            let (word, role) = outcome(row);
            let took =
                row.last.as_ref().map_or(Cell::dim(""), |r| Cell::number(format!("{:.1}", r.seconds), " s"));
            let when = row.last.as_ref().map(|r| ago(model.now.millis() - r.time.millis()));
            Item { more: whole(row), decides: true, ..Item::new(&row.id, &row.name) }
                .group(row.event.name())
                .detail(scope(row))
                .detail(row.source.clone())
                .cell(Cell::new(word, role))
                .cell(took)
                .detail(when.unwrap_or_default())
        };
        self.rows.iter().map(item).collect()
    }

    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        if action.0 != "picker.choose" {
            return None;
        }
        let row = self.rows.iter_mut().find(|row| Some(row.id.as_str()) == item.map(|i| i.id.as_str()))?;
        row.on = !row.on;
        let command = SessionCommand::SwitchHook { id: row.id.clone(), on: row.on };
        Some(Outcome::reload(vec![Effect::send(CommandBody::Session(command))]))
    }

    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    fn preview(&self, item: &Item) -> Option<String> {
        (!item.more.is_empty()).then(|| item.more.clone())
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::{HookEvent, HookRun, Time};

    use super::*;
    use crate::testing::Robot;

    fn row(event: HookEvent, name: &str, matches: &str, last: Option<(HookOutcome, &str)>) -> HookRow {
        HookRow {
            id: name.into(),
            event,
            name: name.into(),
            command: format!("{name} --check"),
            matches: matches.into(),
            source: "yours".into(),
            blocking: last.is_none(),
            timeout: 30,
            on: true,
            runs: u64::from(last.is_some()),
            last: last.map(|(outcome, why)| HookRun {
                time: Time(0),
                seconds: 0.31,
                outcome,
                why: why.into(),
            }),
        }
    }

    #[test]
    fn hooks_are_listed_with_their_last_runs_and_switched() {
        for (width, height) in [(118, 25), (80, 24)] {
            let mut r = Robot::new(width, height);
            assert!(r.app.act(Action("hooks.open")));
            r.run("wait 1");
            let mut rows = vec![
                row(HookEvent::UserPrompt, "no-secrets.sh", "", Some((HookOutcome::Passed, ""))),
                row(
                    HookEvent::BeforeToolCall,
                    "guard.sh",
                    "terminal(git push*)",
                    Some((HookOutcome::Denied, "not on Friday")),
                ),
                row(
                    HookEvent::BeforeToolCall,
                    "lint.sh",
                    "write_file",
                    Some((HookOutcome::Failed, "exit code 7")),
                ),
                row(HookEvent::AgentEnd, "log.sh", "", None),
            ];
            let ago = r.app.model.now.millis() - 90_000;
            rows.iter_mut().filter_map(|row| row.last.as_mut()).for_each(|run| run.time = Time(ago));
            let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Hooks)));
            r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::HooksReply { rows })));
            r.run("down; wait 1");
            insta::assert_snapshot!(format!("hooks_at_{width}x{height}"), r.screen());
            r.run("wait 1000; enter");
            let off = |c: &CommandBody| matches!(c, CommandBody::Session(SessionCommand::SwitchHook { id, on: false }) if id == "guard.sh");
            assert!(r.commands().iter().any(|c| off(c)), "{:?}", r.commands());
            assert!(r.screen().contains("off"), "{}", r.screen());
        }
    }
}
