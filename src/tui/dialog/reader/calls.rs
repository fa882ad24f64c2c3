//! The calls of a script: each is opened like a direct call, and one that runs is stopped alone.

use tiller_protocol::command::TurnCommand;
use tiller_protocol::event::ToolEvent;
use tiller_protocol::tool::InnerCall;
use tiller_protocol::{CommandBody, EventBody, ToolOutcome};

use super::text::Text;
use super::viewer::OutputViewer;
use crate::app::effect::Effect;
use crate::cell;
use crate::dialog::picker::{Item, ListSpec, Outcome, Picker, Source};
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::model::conversation::{Body, ToolCell};
use crate::panel::{Hint, Panel};
use crate::registry::Dialog;
use crate::text::clean;
use crate::theme::Role;
use crate::widget::draw;
use crate::widget::table::{Cell, Column};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    groups: &[("Calls of a script", ACTIONS)],
    scopes: &[
        Scope::new("calls", Some("picker"), "Calls of a script", true).keys(&[("ctrl-k", "calls.stop")])
    ],
    ..Dialog::NONE
};

/// Its actions, besides those of a picker.
pub const ACTIONS: &[ActionSpec] =
    &[ActionSpec::key_only("calls.stop", "stop", "Stop this call; the script gets an error for it")
        .deciding()];

const COLUMNS: &[Column] = &[
    Column::text("Call"),
    Column::path("Target").grows(),
    Column::text("State").rank(1),
    Column::number("Changes").rank(3),
    Column::number("Took").rank(2),
];

/// The row of the script's own output.
const OUTPUT: &str = "output";

/// The calls of the script `script`.
struct CallList {
    /// Id of its call.
    script: String,
}

/// The list; `None`: the call is no script, or has made no call.
pub(crate) fn open(tool: &ToolCell) -> Option<Box<dyn Panel>> {
    tool.inner.as_ref().filter(|inner| !inner.calls.is_empty())?;
    Some(Box::new(Picker::new(CallList { script: tool.call_id.clone() })))
}

/// The script as it is now.
fn script<'a>(model: &'a Model, id: &str) -> Option<&'a ToolCell> {
    model.agent.conversation.cells().iter().rev().find_map(|c| match &c.body {
        Body::Tool(t) if t.call_id == id => Some(&**t),
        _ => None,
    })
}

fn state(call: &InnerCall) -> (&'static str, Role) {
    match call.outcome {
        None if call.waits => ("needs you", Role::Waiting),
        None => ("running", Role::Running),
        Some(ToolOutcome::Ok) => ("done", Role::Dim),
        Some(ToolOutcome::Error) => ("failed", Role::Error),
        Some(ToolOutcome::Denied) => ("denied", Role::Error),
        Some(ToolOutcome::Interrupted) => ("stopped", Role::Dim),
        Some(ToolOutcome::TimedOut) => ("timed out", Role::Error),
    }
}

fn item(call: &InnerCall) -> Item {
    let first = call.target.lines().next().unwrap_or_default();
    let verb = clean::plain(call.verb.word()).into_owned();
    let (word, role) = state(call);
    let (added, removed) = call.files.iter().fold((0, 0), |a, f| (a.0 + f.added, a.1 + f.removed));
    let changes = if call.files.is_empty() { String::new() } else { format!("+{added} -{removed}") };
    let took = if call.outcome.is_some() { cell::seconds(call.seconds) } else { String::new() };
    let (sign, sign_role) = cell::inner_sign(call, draw::ascii());
    Item::new(call.number.to_string(), format!("{}. {verb}", call.number))
        .sign(sign, sign_role)
        .cell(Cell::new(clean::plain(first), Role::Text))
        .cell(Cell::new(word, role))
        .detail(changes)
        .detail(took)
}

/// Opens what a call changed, else what it was given, where its result is not in the transcript yet.
fn opened(script: &ToolCell, call: &InnerCall) -> Box<dyn Panel> {
    let first = call.target.lines().next().unwrap_or_default();
    let title = format!("{} {}", clean::plain(call.verb.word()), clean::plain(first));
    if !call.files.is_empty() {
        let all: Vec<String> = call.files.iter().map(|f| format!("# {}\n{}", f.path, f.diff)).collect();
        return Box::new(Text::diff(&title, &all.join("\n")));
    }
    if call.outcome.is_none() {
        let exact = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
        return Box::new(Text::plain(&title, &exact));
    }
    let id = InnerCall::id(&script.call_id, call.number);
    Box::new(OutputViewer::new(&ToolCell {
        call_id: id,
        name: call.name.clone(),
        verb: call.verb.clone(),
        ..ToolCell::default()
    }))
}

impl CallList {
    fn chosen<'a>(
        &self,
        item: Option<&Item>,
        model: &'a Model,
    ) -> Option<(&'a ToolCell, Option<&'a InnerCall>)> {
        let (item, script) = (item?, script(model, &self.script)?);
        let number: Option<u32> = item.id.parse().ok();
        let calls = &script.inner.as_ref()?.calls;
        Some((script, calls.iter().find(|call| Some(call.number) == number)))
    }
}

impl Source for CallList {
    fn title(&self) -> String {
        "Calls of the script".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "calls",
            actions: ACTIONS,
            verb: "open",
            columns: COLUMNS,
            table: Some(0),
            empty: "No calls",
            changed_by: |event| {
                matches!(
                    event.body,
                    EventBody::Tool(ToolEvent::InnerCall { .. } | ToolEvent::ToolFinished { .. })
                )
            },
            ..ListSpec::default()
        }
    }

    fn items(&mut self, model: &Model) -> Vec<Item> {
        let Some(script) = script(model, &self.script) else { return Vec::new() };
        let calls = script.inner.iter().flat_map(|inner| &inner.calls).map(item);
        let own = Item::new(OUTPUT, "Output of the script").cell(Cell::dim(""));
        calls.chain([own]).collect()
    }

    fn act(&mut self, action: Action, item: Option<&Item>, model: &Model) -> Option<Outcome> {
        let stay = |effects| Some(Outcome::Stay { effects, reload: false });
        match (action.0, self.chosen(item, model)) {
            ("picker.choose", Some((script, Some(call)))) => stay(vec![Effect::Push(opened(script, call))]),
            ("picker.choose", Some((script, None))) => {
                stay(vec![Effect::Push(Box::new(OutputViewer::new(script)))])
            }
            ("calls.stop", Some((script, Some(call)))) if call.outcome.is_none() && !call.waits => {
                let id = InnerCall::id(&script.call_id, call.number);
                stay(vec![Effect::send(CommandBody::Turn(TurnCommand::StopTool { id }))])
            }
            ("calls.stop", _) => stay(Vec::new()),
            _ => None,
        }
    }

    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    fn hints(&self, any: bool) -> Vec<Hint> {
        any.then_some(Hint::of("calls.stop")).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tiller_protocol::ChangeKind;
    use tiller_protocol::tool::FileDiff;

    use super::*;
    use crate::testing::Robot;

    fn call(number: u32, verb: &str, target: &str, outcome: Option<ToolOutcome>) -> InnerCall {
        InnerCall {
            number,
            name: verb.into(),
            verb: verb.into(),
            target: target.into(),
            outcome,
            waits: false,
            seconds: 0.6,
            arguments: json!({"command": target}),
            output: String::new(),
            files: Vec::new(),
            decision: None,
            by: String::new(),
        }
    }

    fn makes(r: &mut Robot, call: InnerCall) {
        r.event(EventBody::Tool(ToolEvent::InnerCall { call_id: "c1".into(), call, most: 50 }));
    }

    #[test]
    fn each_call_of_a_script_opens_and_a_running_one_is_stopped_alone() {
        let mut r = Robot::new(118, 25);
        r.event(EventBody::Tool(ToolEvent::ToolStarted {
            call_id: "c1".into(),
            name: "execute_code".into(),
            arguments: json!({}),
            verb: "script".into(),
            target: "Move the dates".into(),
        }));
        let mut write = call(1, "write", "src/a.py", Some(ToolOutcome::Ok));
        write.files = vec![FileDiff {
            path: "src/a.py".into(),
            kind: ChangeKind::Modified,
            added: 1,
            removed: 1,
            diff: "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-old line\n+new line\n".into(),
        }];
        makes(&mut r, write);
        makes(&mut r, call(2, "shell", "sleep 30\u{1b}[31m", None));
        r.event(EventBody::Tool(ToolEvent::ToolProgress {
            call_id: "c1".into(),
            text: "half done\n".into(),
        }));
        let screen = r.screen();
        assert!(screen.contains("2/50 calls") && screen.contains("half done"), "{screen}");
        r.run("alt-1; enter; enter");
        let screen = r.screen();
        assert!(screen.contains("Calls of the script") && screen.contains("1. write"), "{screen}");
        assert!(screen.contains("running") && !screen.contains('\u{1b}'), "{screen}");
        r.run("enter");
        let screen = r.screen();
        assert!(screen.contains("new line") && screen.contains("old line"), "{screen}");
        r.run("esc; down; enter");
        let screen = r.screen();
        assert!(screen.contains("\"command\": \"sleep 30"), "the arguments of a running call: {screen}");
        r.run("esc");
        r.wait(std::time::Duration::from_secs(2));
        r.run("ctrl-k");
        let stops =
            |c: &CommandBody| matches!(c, CommandBody::Turn(TurnCommand::StopTool { id }) if id == "c1.2");
        assert!(r.asked(stops).is_some(), "{}", r.screen());
        // It is over: the row says so by itself.
        makes(&mut r, call(2, "shell", "sleep 30", Some(ToolOutcome::Interrupted)));
        assert!(r.screen().contains("stopped"), "{}", r.screen());
        r.run("esc");
        assert!(!r.screen().contains("Calls of the script"));
    }
}
