use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{AgentId, Event, EventBody, SeqIds, SessionId};

use super::*;
use crate::app::msg::Msg;
use crate::input::Input;
use crate::keymap::Chord;
use crate::panel::View;
use crate::scene;
use crate::testing::{Robot, START};
use crate::view::layout_request::RAIL;

/// The app with all views on the screen, drawn by hand: the robot draws everything a second time to compare.
struct Screen {
    r: Robot,
    buf: Buffer,
    seq: u64,
}

impl Screen {
    fn new() -> Self {
        let mut r = Robot::new(220, 60);
        scene::play(&mut r);
        let mut screen = Self { r, buf: Buffer::empty(Rect::new(0, 0, 220, 60)), seq: 1000 };
        screen.draw();
        let shown = screen.shown();
        assert!(
            RAIL.iter().chain(&[View::Conversation, View::Composer]).all(|v| shown.contains(v)),
            "{shown:?}"
        );
        screen
    }

    /// Views on the screen.
    fn shown(&self) -> Vec<View> {
        let areas = self.r.app.screen.areas.as_ref().unwrap();
        areas.parts().filter(|p| p.inner.area() > 0).map(|p| p.view).collect()
    }

    fn draw(&mut self) {
        self.r.app.draw(&mut self.buf);
    }

    /// Views that the next frame draws, and those whose rows it counts.
    fn frame(&mut self) -> (Vec<View>, Vec<View>) {
        self.r.app.views.iter_mut().for_each(|v| v.calls = (0, 0));
        self.draw();
        let views = &self.r.app.views;
        assert!(
            views.iter().all(|v| v.calls.0 <= 1 && v.calls.1 <= 1),
            "a frame counts and draws a panel once"
        );
        let of =
            |which: fn(&ViewPanel) -> u32| views.iter().filter(|v| which(v) > 0).map(|v| v.view).collect();
        (of(|v| v.calls.1), of(|v| v.calls.0))
    }

    fn event(&mut self, agent: &str, body: EventBody) {
        self.seq += 1;
        let session = SessionId::fresh(&SeqIds::default(), START);
        let agent = AgentId(agent.into());
        let event = Event { seq: self.seq, time: START, session, agent, cause: None, body };
        self.r.app.update(Msg::Engine(Box::new(event)));
    }

    /// Lets the time pass in which a dialog takes no decisions.
    fn wait_until_readable(&mut self) {
        self.r.clock.advance(std::time::Duration::from_millis(self.r.app.model.ui.approval_deaf + 1));
        self.draw();
    }

    fn key(&mut self, key: &str) {
        self.r.app.update(Msg::Input(Input::Key(Chord::parse(key).unwrap().event())));
    }
}

#[test]
fn a_panel_is_drawn_when_a_slice_that_it_reads_changes_and_only_then() {
    let mut s = Screen::new();
    let shown = s.shown();
    for slice in Slice::ALL {
        s.r.app.redraw();
        s.draw();
        assert_eq!(s.frame(), (vec![], vec![]), "nothing changed");
        s.r.app.model.touch(slice);
        let (drawn, counted) = s.frame();
        for view in &shown {
            let reads = s.r.app.registry.reads(*view).contains(&slice) || Slice::SHARED.contains(&slice);
            assert_eq!(drawn.contains(view), reads, "{view:?} is drawn for {slice:?}");
            assert_eq!(counted.contains(view), reads, "rows of {view:?} are counted for {slice:?}");
        }
    }
}

#[test]
fn a_key_draws_the_panel_that_takes_it_and_nothing_else() {
    let mut s = Screen::new();
    s.key("x");
    assert_eq!(s.frame().0, [View::Composer]);
    s.key("y");
    assert_eq!(s.frame(), (vec![View::Composer], vec![View::Composer]));
    let inside = s.r.app.screen.areas.as_ref().unwrap().composer.inner;
    assert!(s.r.app.drawn().iter().all(|r| inside.intersection(*r) == *r), "{:?}", s.r.app.drawn());
}

#[test]
fn words_of_a_reply_draw_the_conversation_and_a_change_of_files_the_feed() {
    let mut s = Screen::new();
    s.event("main", EventBody::Turn(TurnEvent::TextDelta { text: " and more".into() }));
    assert_eq!(s.frame().0, [View::Conversation]);
    let changes = s.r.app.model.workspace.feed.clone();
    s.event("main", EventBody::State(StateEvent::WorkspaceChanged { changes }));
    let (drawn, _) = s.frame();
    assert!(drawn.contains(&View::Watch), "{drawn:?}");
    assert!(!drawn.contains(&View::Conversation) && !drawn.contains(&View::Composer), "{drawn:?}");
    s.event("a1", EventBody::Turn(TurnEvent::TextDelta { text: "of an agent that is not shown".into() }));
    assert_eq!(s.frame(), (vec![], vec![]));
    assert!(s.r.app.drawn().is_empty(), "{:?}", s.r.app.drawn());
}

#[test]
fn at_rest_nothing_wakes_the_loop() {
    let mut r = Robot::new(170, 48);
    r.run("type a draft; wait 60000");
    assert!(!r.app.due());
    assert_eq!(r.app.sleep(), None);
}

#[test]
fn a_key_in_a_dialog_draws_the_dialog_and_no_view() {
    let mut s = Screen::new();
    s.key("f1");
    s.draw();
    assert_eq!(*s.r.app.drawn(), [s.buf.area], "a dialog that opens draws everything");
    s.wait_until_readable();
    assert_eq!(s.frame(), (vec![], vec![]));
    assert!(s.r.app.drawn().is_empty(), "nothing changed: {:?}", s.r.app.drawn());
    s.key("x");
    assert_eq!(s.frame(), (vec![], vec![]));
    let areas = s.r.app.screen.areas.clone().unwrap();
    let dialog = overlay::layer_areas(&s.r.app, &areas, s.buf.area, 0)[0].outer;
    let drawn = s.r.app.drawn();
    assert!(drawn.contains(&dialog), "{drawn:?}");
    assert!(drawn.iter().all(|r| [dialog, areas.header, areas.footer].contains(r)), "{drawn:?}");
    s.key("esc");
    s.draw();
    assert_eq!(*s.r.app.drawn(), [s.buf.area], "a dialog that closes draws everything");
}

#[test]
fn what_changes_below_a_dialog_is_drawn_below_it() {
    let mut s = Screen::new();
    s.key("f1");
    s.draw();
    s.wait_until_readable();
    s.event("main", EventBody::Turn(TurnEvent::TextDelta { text: " and more".into() }));
    assert_eq!(s.frame().0, [View::Conversation]);
    let partly = s.buf.clone();
    s.r.app.redraw();
    s.draw();
    assert!(partly == s.buf, "a part was drawn as the whole is");
}
