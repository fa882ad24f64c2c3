//! The scene of plain mode: lines of text, nothing is drawn.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tiller_protocol::{AgentId, Event, EventBody, lock};

use super::scene::Scene;
use super::stage::Stage;
use super::story;
use crate::app::msg::Msg;
use crate::plain::Plain as Mode;

pub(super) const PLAIN: Scene = Scene::new("plain", "Plain mode", plain);

/// What was printed.
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
    let mut mode = Mode::new(Box::new(paper.clone()), s.clock.clone());
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
