//! A short story as timed pictures, for the animated one of the README.

use std::time::Duration;

use tiller_config::schema::Ui;
use tiller_protocol::ask::PermissionAsk;
use tiller_protocol::event::{AskEvent, StateEvent, TurnEvent, TurnStatus};
use tiller_protocol::{AgentId, AgentState, Ask, AskBody, AskId, Decision, EventBody, Risk, Usage};

use super::answers;
use super::look::Look;
use super::stage::{Call, Picture, Stage};
use super::story;

/// Milliseconds of a frame while something moves.
const FRAME: u64 = 125;

/// Takes each picture with the time for which it is shown.
pub type Take<'a> = &'a mut dyn FnMut(&Picture, Duration);

struct Film<'a> {
    stage: Stage,
    take: Take<'a>,
}

impl Film<'_> {
    /// Shows the screen as it is.
    fn show(&mut self, ms: u64) {
        self.stage.coloured();
        (self.take)(self.stage.picture(), Duration::from_millis(ms));
    }

    /// Lets time pass.
    fn run(&mut self, ms: u64) {
        for _ in 0..ms / FRAME {
            self.stage.wait(FRAME);
            self.show(FRAME);
        }
    }

    /// Streams a reply, which thought before (empty: it did not) and makes calls.
    fn say(&mut self, thinking: &str, text: &str, calls: &[&Call]) {
        if !thinking.is_empty() {
            self.stage.turn(TurnEvent::ThinkingDelta { text: thinking.into() });
            self.run(1500);
        }
        for words in text.split_inclusive(' ').collect::<Vec<_>>().chunks(3) {
            self.stage.turn(TurnEvent::TextDelta { text: words.concat() });
            self.run(FRAME);
        }
        self.stage.store(thinking, text, calls.iter().copied());
    }

    /// Runs a call for so many milliseconds.
    fn call(&mut self, call: &Call, ms: u64) {
        let id = self.stage.begin(call);
        self.run(ms);
        self.stage.finish(&id, call);
        self.show(FRAME);
    }

    fn todo(&mut self, done: usize) {
        self.stage.state(StateEvent::TodoChanged { todos: story::todo(done), by_person: false });
    }
}

/// Plays the story.
///
/// # Errors
/// As [`super::draw`].
pub fn film(size: (u16, u16), look: &Look, take: Take<'_>) -> Result<(), String> {
    let mut film = Film { stage: Stage::new(size, Ui::default(), look)?, take };
    film.stage.start();
    film.show(1000);
    for word in story::WISH.split_inclusive(' ') {
        film.stage.write(word);
        film.show(90);
    }
    film.show(500);
    film.stage.press("enter");
    film.stage.user(story::WISH);
    film.stage.state(StateEvent::TitleChanged { title: "Honour Retry-After".into() });
    let [client, tests] = [("src/client.py", "39 lines"), ("tests/test_client.py", "19 lines")]
        .map(|(path, measure)| Call::new("read_file", "read", path, measure));
    film.say(story::THOUGHT, "I will look at the client and its tests first.", &[&client, &tests]);
    film.call(&client, 250);
    film.call(&tests, 250);
    film.todo(1);
    let client = story::edit("src/client.py", answers::CLIENT);
    let tests = story::edit("tests/test_client.py", answers::TESTS);
    film.say("", "The header has two forms, and the client only reads the first one.", &[&client, &tests]);
    approve(&mut film, &client);
    film.todo(3);
    film.call(&tests, 500);
    film.stage.state(StateEvent::WorkspaceChanged { changes: story::feed() });
    let run = story::shell("python -m pytest -q", "8 passed in 1.12s\n", 0, 1.9);
    film.say("", "Now the tests.", &[&run]);
    film.call(&run, 1900);
    film.todo(6);
    let done = "Both forms of the header are honoured, and no pause is longer than the policy allows. All 8 tests pass.";
    film.say("", done, &[]);
    film.stage.turn(TurnEvent::TurnFinished {
        status: TurnStatus::Done,
        text: String::new(),
        usage: Usage { input: 24_800, output: 4_100, ..Usage::default() },
        cost_usd: Some(0.83),
        error: None,
    });
    film.show(2500);
    film.stage.act("review.open");
    film.show(3500);
    Ok(())
}

/// The edit is asked about, and allowed.
fn approve(film: &mut Film<'_>, call: &Call) {
    let call_id = film.stage.begin(call);
    let id = AskId(Default::default());
    let diff = "--- a/src/client.py\n+++ b/src/client.py\n@@ -37,3 +37,3 @@\n         header = \
                response.headers.get(\"Retry-After\")\n-        if header:\n+        if header is not None:\n             \
                return float(header)\n";
    let ask = Ask {
        id,
        agent: AgentId::main(),
        call: Some(call_id.clone()),
        body: AskBody::Permission(PermissionAsk {
            tool: "edit_file".into(),
            verb: "edit".into(),
            shown: "src/client.py".into(),
            hash: "5f1c".into(),
            diff: Some(diff.into()),
            folder: "/home/ann/api".into(),
            why: "parse both forms of the header".into(),
            rule: "no permission rule matches".into(),
            effects: vec!["changes src/client.py".into()],
            risk: Risk::Low,
            always: Some("edit_file(src/**)".into()),
            editable: false,
            outside: tiller_protocol::ask::OutsideAnswer::No,
            calls: Vec::new(),
            draft: None,
            source: None,
        }),
    };
    film.stage
        .state(StateEvent::AgentChanged { view: story::main_row(AgentState::Waiting, "waits for you") });
    film.stage.event(EventBody::Ask(AskEvent::PermissionAsked { ask }));
    film.run(2500);
    film.stage.press("y");
    film.stage.event(EventBody::Ask(AskEvent::QuestionAnswered {
        id,
        reply: tiller_protocol::AskReply::Permission { decision: Decision::Once, hash: "5f1c".into() },
    }));
    film.stage
        .state(StateEvent::AgentChanged { view: story::main_row(AgentState::Running, "edit src/client.py") });
    film.run(250);
    film.stage.finish(&call_id, call);
    film.show(FRAME);
}
