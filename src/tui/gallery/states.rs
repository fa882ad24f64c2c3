//! Scenes of the start, of panels, notices, empty states and plain mode.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{
    AgentId, Event, EventBody, Message, Notice, NoticeKind, Queued, QueuedState, SendMode, lock,
};

use super::menus;
use super::scene::Scene;
use super::stage::Stage;
use super::story;
use crate::app::msg::Msg;
use crate::plain::Plain;

pub(super) const START: Scene = Scene::new("start", "Start", start);
pub(super) const START_SELECTED: Scene = Scene::new("start_selected", "Start, a session selected", |s| {
    s.start();
    menus::tested(s, &["protected names", "outside writes"]);
    s.press("down");
    s.press("down");
});
pub(super) const START_FIRST: Scene = Scene::new("start_first", "Start in a new folder", start_first);
pub(super) const START_DIALOG: Scene = Scene::new("start_dialog", "A dialog on the start screen", |s| {
    s.start();
    s.act("model.open");
});
pub(super) const FIRST_RUN: Scene = Scene::new("first_run", "First run", first_run);
pub(super) const TODO: Scene = Scene::new("todo", "Todo list", todo);
pub(super) const CHANGES: Scene = Scene::new("changes", "Changed files", changes);
pub(super) const QUEUE: Scene = Scene::new("queue", "Messages that wait", queue);
pub(super) const NOTICES: Scene = Scene::new("notices", "Notices", notices);
pub(super) const ERRORS: Scene = Scene::new("errors", "Error log", errors);
pub(super) const RETRY: Scene = Scene::new("retry", "A request that is tried again", retry);
pub(super) const EMPTY_AGENTS: Scene = Scene::new("empty_agents", "No agents yet", empty_agents);
pub(super) const EMPTY_SESSIONS: Scene = Scene::new("empty_sessions", "No sessions yet", empty_sessions);
pub(super) const EMPTY_TODO: Scene = Scene::new("empty_todo", "No plan yet", |s| {
    s.start();
    s.act("view.todo");
});
pub(super) const EMPTY_MODELS: Scene = Scene::new("empty_models", "No models yet", |s| {
    s.new_here = true;
    s.start();
    s.act("model.open");
});
pub(super) const ASCII: Scene = Scene::new("ascii", "ASCII signs", ascii).with(|ui| ui.ascii = true);
/// Lines of text: nothing is drawn.
pub(super) const PLAIN: Scene = Scene::new("plain", "Plain mode", plain);

fn start(s: &mut Stage) {
    s.start();
    menus::tested(s, &[]);
}

fn start_first(s: &mut Stage) {
    s.new_here = true;
    s.start();
}

fn first_run(s: &mut Stage) {
    s.snapshot.model = tiller_protocol::ModelRef::default();
    s.new_here = true;
    s.start();
    s.act("setup.open");
}

fn todo(s: &mut Stage) {
    story::working(s);
    s.act("view.todo");
}

fn changes(s: &mut Stage) {
    story::working(s);
    s.act("view.watch");
}

fn queue(s: &mut Stage) {
    story::working(s);
    let message = |n: u128, text: &str, mode| Queued {
        state: QueuedState::Accepted,
        ..Queued::new(
            format!("{n:032x}").parse().unwrap_or(tiller_protocol::QueueId(Default::default())),
            Message::text(text),
            mode,
        )
    };
    s.state(StateEvent::QueueChanged {
        queue: vec![
            message(1, "use UTC everywhere, not the local zone", SendMode::Steer),
            message(2, "then update the changelog", SendMode::Queue),
        ],
    });
    s.act("queue.open");
}

fn failures() -> [Notice; 3] {
    [
        Notice::new(NoticeKind::Info, "src/client.py changed on disk; the agent will read it again."),
        Notice::new(NoticeKind::Network, "The server answered 529 (overloaded).")
            .hint("wait, or choose another model with /model")
            .detail(
                "POST https://api.acme.example/v1/messages\nHTTP 529\n{\"error\":{\"type\":\"overloaded\"}}",
            ),
        Notice::new(
            NoticeKind::Config,
            "keys.toml, line 12: there is no action 'composer.sent'. Did you mean composer.send?",
        )
        .hint("correct the line; the last valid key bindings stay in use"),
    ]
}

fn notices(s: &mut Stage) {
    story::working(s);
    for notice in failures() {
        s.notice(notice);
        s.wait(200);
    }
}

fn errors(s: &mut Stage) {
    notices(s);
    s.wait(20_000);
    s.act("errors.open");
}

fn retry(s: &mut Stage) {
    story::open(s);
    story::reading(s);
    s.turn(TurnEvent::Retrying {
        attempt: 2,
        of: 5,
        seconds: 8.0,
        why: "the server answered 529 (overloaded)".into(),
        discard: true,
    });
    s.wait(1000);
}

fn empty_agents(s: &mut Stage) {
    s.start();
    s.act("view.agents");
}

fn empty_sessions(s: &mut Stage) {
    s.new_here = true;
    s.start();
    s.act("sessions.open");
}

fn ascii(s: &mut Stage) {
    story::working(s);
    s.act("view.todo");
}

/// The text that was printed.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn plain(s: &mut Stage) {
    story::finished(s);
    let paper = Paper::default();
    let mut mode = Plain::new(Box::new(paper.clone()), s.clock.clone());
    let snapshot =
        tiller_protocol::event::ReplyEvent::SnapshotReply { snapshot: Box::new(s.snapshot.clone()) };
    let first = Event {
        seq: 0,
        time: super::stage::START,
        session: s.session(),
        agent: AgentId::main(),
        cause: None,
        body: EventBody::Reply(Box::new(snapshot)),
    };
    mode.take(Msg::Engine(Box::new(first)));
    for event in s.played() {
        mode.take(Msg::Engine(Box::new(event)));
    }
    let printed = lock(&paper.0).clone();
    s.print(&String::from_utf8_lossy(&printed));
}
