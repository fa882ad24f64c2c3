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

    /// Streams a reply.
    fn say(&mut self, text: &str) {
        for words in text.split_inclusive(' ').collect::<Vec<_>>().chunks(3) {
            self.stage.turn(TurnEvent::TextDelta { text: words.concat() });
            self.run(FRAME);
        }
    }

    /// Runs a call.
    fn call(&mut self, call: &Call, ms: u64) {
        let id = self.stage.begin(call);
        self.run(ms);
        self.stage.finish(&id, call);
        self.show(FRAME);
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
    film.stage.turn(TurnEvent::ThinkingDelta { text: story::THOUGHT.into() });
    film.run(1500);
    film.say("I will look at the client and its tests first.");
    film.call(&Call::new("read_file", "read", "src/client.py", "39 lines"), 250);
    film.call(&Call::new("read_file", "read", "tests/test_client.py", "19 lines"), 250);
    film.stage.state(StateEvent::TodoChanged { todos: story::todo(1), by_person: false });
    film.say("The header has two forms, and the client only reads the first one.");
    approve(&mut film);
    film.stage.state(StateEvent::TodoChanged { todos: story::todo(3), by_person: false });
    film.call(&story::edit("src/client.py", answers::CLIENT), 250);
    film.call(&story::edit("tests/test_client.py", answers::TESTS), 500);
    film.stage.state(StateEvent::WorkspaceChanged { changes: story::feed() });
    film.call(&story::shell("python -m pytest -q", "8 passed in 1.12s\n", 0, 1.9), 1900);
    film.stage.state(StateEvent::TodoChanged { todos: story::todo(6), by_person: false });
    film.say("Both forms of the header are honoured, and no pause is longer than the policy allows. All 8 tests pass.");
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
fn approve(film: &mut Film<'_>) {
    let id = AskId(Default::default());
    let diff = "--- a/src/client.py\n+++ b/src/client.py\n@@ -37,3 +37,3 @@\n         header = \
                response.headers.get(\"Retry-After\")\n-        if header:\n+        if header is not None:\n             \
                return float(header)\n";
    let ask = Ask {
        id,
        agent: AgentId::main(),
        call: None,
        body: AskBody::Permission(PermissionAsk {
            tool: "edit_file".into(),
            verb: "edit".into(),
            shown: "src/client.py".into(),
            hash: "5f1c".into(),
            diff: Some(diff.into()),
            folder: "/home/ann/api".into(),
            why: "parse both forms of the header".into(),
            rule: "no rule matches".into(),
            effects: vec!["changes src/client.py".into()],
            risk: Risk::Low,
            always: Some("edit_file(src/**)".into()),
            editable: false,
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
}
