//! Scenes of the conversation.

use tiller_protocol::event::{StateEvent, ToolEvent, TurnEvent};
use tiller_protocol::tool::{Display, InnerCall};
use tiller_protocol::{AgentState, EventBody, ToolOutcome};

use super::answers;
use super::scene::Scene;
use super::stage::{Call, Stage};
use super::story;

pub(super) const TURN: Scene = Scene::new("turn", "A turn with every kind of call", turn);
pub(super) const FAILURE: Scene = Scene::new("failure", "A call that failed", failure);
pub(super) const STREAMING: Scene =
    Scene::new("streaming", "Thinking, and prose that is being written", streaming);
pub(super) const DIFF: Scene = Scene::new("diff", "A diff in the conversation", diff);
pub(super) const PICTURE: Scene = Scene::new("picture", "A call that gave a picture", picture);
pub(super) const SCRIPT: Scene = Scene::new("script", "A script that calls tools", script);
pub(super) const SCRIPT_CALLS: Scene = Scene::new("script_calls", "The calls of a script", script_calls);
pub(super) const FINISHED: Scene = Scene::new("finished", "End of a turn", story::finished);

const FAILED: &str = include_str!("data/failure.txt");

fn turn(s: &mut Stage) {
    story::open(s);
    story::reading(s);
    s.reply(
        "",
        "",
        &[
            Call::new("list_dir", "list", "src", "9 entries"),
            Call::new("todo_write", "todo", "6 items", ""),
            Call {
                seconds: 1.3,
                ..Call::new("web_fetch", "fetch", "https://www.rfc-editor.org/rfc/rfc9110", "212 KB")
            },
            Call::new("session_search", "recall", "\"Retry-After\"", "2 sessions"),
        ],
    );
    story::editing(s);
    s.reply(
        "",
        "Now the tests, and a second pair of eyes.",
        &[
            Call::new("write_file", "write", "tests/conftest.py", "14 lines"),
            Call::new("checkpoint", "checkpoint", "before the tests", ""),
            Call {
                seconds: 41.0,
                ..Call::new("delegate_task", "delegate", "review the date handling", "done")
            },
            story::shell("python -m ruff check src tests", "All checks passed!\n", 0, 0.2),
            Call {
                outcome: ToolOutcome::Denied,
                ..Call::new("terminal", "shell", "git push origin retry-after", "")
            },
        ],
    );
    let line = Call::new("terminal", "shell", "python -m pytest -q", "");
    let id = s.begin(&line);
    s.wait(3000);
    s.event(EventBody::Tool(ToolEvent::ToolProgress { call_id: id, text: "....F...\n".into() }));
    s.state(StateEvent::AgentChanged {
        view: story::main_row(AgentState::Running, "shell python -m pytest -q"),
    });
    s.wait(2600);
}

/// A call of a script. `seconds`: below 0 it runs.
fn inner(number: u32, verb: &str, target: &str, seconds: f64) -> InnerCall {
    InnerCall {
        number,
        name: verb.into(),
        verb: verb.into(),
        target: target.into(),
        outcome: (seconds >= 0.0).then_some(ToolOutcome::Ok),
        waits: false,
        seconds: seconds.max(0.0),
        arguments: serde_json::Value::Null,
        output: String::new(),
        files: Vec::new(),
        decision: None,
        by: String::new(),
    }
}

fn script(s: &mut Stage) {
    story::open(s);
    let files = ["src/client.py", "src/dates.py", "src/errors.py", "src/retry.py"];
    let reads: Vec<InnerCall> = (1..).zip(files).map(|(n, file)| inner(n, "read", file, 0.02)).collect();
    let display = Display::Calls { calls: reads, most: 50, tail: "14 uses of Retry-After\n".into() };
    let first = Call {
        display: Some(display),
        seconds: 0.4,
        ..Call::new("execute_code", "script", "Count the uses of each header", "")
    };
    s.reply("", "One script can look through all of them.", &[first]);
    let id = s.begin(&Call::new("execute_code", "script", "Move the dates to one module", ""));
    let calls = [
        inner(1, "search", "\"parsedate\" in src", 0.03),
        inner(2, "read", "src/dates.py", 0.02),
        inner(3, "read", "src/client.py", 0.02),
        inner(4, "write", "src/dates.py", 0.05),
        inner(5, "shell", "python -m pytest -q tests/test_dates.py", -1.0),
    ];
    for call in calls {
        s.event(EventBody::Tool(ToolEvent::InnerCall { call_id: id.clone(), call, most: 50 }));
    }
    s.event(EventBody::Tool(ToolEvent::ToolProgress {
        call_id: id,
        text: "moved 2 of 3 functions\n".into(),
    }));
    s.wait(2600);
}

fn script_calls(s: &mut Stage) {
    script(s);
    s.press("alt-1 enter enter");
}

fn failure(s: &mut Stage) {
    story::working(s);
    s.reply("", "", &[story::shell("python3 -m unittest discover -s tests", FAILED, 1, 7.6)]);
    s.turn(TurnEvent::TextDelta {
        text: "The cap is missing where the header is a number. `wait` returns before it reaches `min`; I move the \
               comparison up."
            .into(),
    });
}

fn streaming(s: &mut Stage) {
    story::open(s);
    s.user("How does the client treat Retry-After today, and what should it do?");
    s.turn(TurnEvent::ThinkingDelta { text: story::THOUGHT.into() });
    s.wait(4200);
    s.turn(TurnEvent::TextDelta { text: include_str!("data/reply.md").trim_end().into() });
    story::usage(s, 9_800, 410, 0.12);
    s.wait(400);
}

fn diff(s: &mut Stage) {
    story::open(s);
    s.user(story::WISH);
    s.state(StateEvent::TodoChanged { todos: story::todo(1), by_person: false });
    s.reply(
        "",
        "I move the parsing into a function of its own and cap the pause.",
        &[story::edit("src/client.py", answers::CLIENT)],
    );
    s.act("conversation.unfold");
}

/// Shows the row in the place of a picture until it is opened.
fn picture(s: &mut Stage) {
    story::open(s);
    s.user("How does the error page look?");
    s.reply(
        "",
        "",
        &[Call {
            output: "shots/error.png: image/png, 1280x800 pixels, 93 KB",
            ..Call::new("read_file", "read", "shots/error.png", "image, 93 KB")
        }],
    );
    s.act("conversation.unfold");
}
