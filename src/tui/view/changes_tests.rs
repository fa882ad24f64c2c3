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
    fn of(mut r: Robot) -> Self {
        scene::play(&mut r);
        let mut screen = Self { buf: Buffer::empty(r.buffer().area), r, seq: 1000 };
        screen.draw();
        screen
    }

    fn new() -> Self {
        let screen = Self::of(Robot::new(220, 60));
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

/// Eight frames of the spinner a second: the bytes of each, the panels that were drawn, and the cells.
fn spin(s: &mut Screen, seconds: u32) -> (Vec<usize>, Vec<View>, Vec<Vec<Rect>>) {
    let mut encoder = crate::output::Encoder::default();
    s.r.app.redraw();
    let cursor = s.r.app.draw(&mut s.buf);
    let mut out = String::new();
    encoder.frame(&s.buf, &[s.buf.area], cursor, &mut out);
    s.r.app.views.iter_mut().for_each(|v| v.calls = (0, 0));
    let (mut bytes, mut views, mut drawn) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..8 * seconds {
        s.r.clock.advance(crate::widget::sign::SPINNER_FRAME);
        assert!(s.r.app.due(), "a frame is due");
        if s.r.app.ticks() {
            s.r.app.update(Msg::Tick);
        }
        out.clear();
        let cursor = s.r.app.draw(&mut s.buf);
        encoder.frame(&s.buf, s.r.app.drawn(), cursor, &mut out);
        bytes.push(out.len());
        drawn.push(s.r.app.drawn().to_vec());
        for v in &mut s.r.app.views {
            views.extend(std::iter::repeat_n(v.view, std::mem::take(&mut v.calls.1) as usize));
        }
    }
    (bytes, views, drawn)
}

#[test]
fn while_a_call_runs_only_its_spinner_moves_and_few_bytes_are_written() {
    for theme in ["tiller-dark", "tiller-light", "ansi", "mono"] {
        let ui = tiller_config::schema::Ui { theme: theme.into(), ..Default::default() };
        let mut s = Screen::of(Robot::with(118, 32, ui));
        // The question opens once the person is not typing, and is put aside.
        s.r.run("wait 2000; esc; wait 2000");
        assert!(s.r.app.layers.is_empty() && s.r.screen().contains("cargo test -p api"));
        let (bytes, views, drawn) = spin(&mut s, 10);
        let all: usize = bytes.iter().sum();
        assert!(bytes.iter().all(|b| *b > 0) && all < 10 * 500, "{theme}: {all} bytes in 10 s: {bytes:?}");
        let cell = |r: &Vec<Rect>| r.len() == 1 && r[0].area() == 1;
        let more = drawn.iter().filter(|r| !cell(r)).count();
        assert!(more <= 11, "{theme}: {more} of 80 frames draw more than the spinner: {drawn:?}");
        for view in View::ALL {
            let times = views.iter().filter(|v| **v == view).count();
            assert!(times <= 11, "{theme}: {view:?} is drawn {times} times in 10 s");
        }
        // What was drawn in parts is what drawing all of it gives.
        let partly = s.buf.clone();
        s.r.app.redraw();
        s.draw();
        assert!(partly == s.buf, "{theme}");
    }
}

#[test]
fn a_spinner_that_a_dialog_covers_wakes_nothing_and_stays_below_it() {
    let s = Screen::of(Robot::new(118, 32));
    assert!(s.r.app.frame.spin.is_some());
    let at = super::spinners(&s.r.app, &s.r.app.frame.last.as_ref().unwrap().parts)[0];
    // It fills the screen, or lies over the cell.
    for open in ["tree.open", "palette.open"] {
        let mut s = Screen::of(Robot::new(118, 32));
        assert!(s.r.app.act(crate::keymap::action::Action(open)), "{open}");
        s.draw();
        s.wait_until_readable();
        let areas = s.r.app.screen.areas.clone().unwrap();
        let layers = overlay::layer_areas(&s.r.app, &areas, s.buf.area, 0);
        let covers = layers[0].outer.contains(at);
        assert_eq!(s.r.app.frame.spin.is_none(), covers, "{open}: {at:?} {layers:?}");
        s.r.clock.advance(crate::widget::sign::SPINNER_FRAME);
        let before = s.buf.clone();
        s.draw();
        assert_eq!(before == s.buf, covers, "{open}");
        let partly = s.buf.clone();
        s.r.app.redraw();
        s.draw();
        assert!(partly == s.buf, "{open}: a part was drawn as the whole is");
    }
}

#[test]
fn with_reduced_motion_nothing_spins() {
    let ui = tiller_config::schema::Ui { reduced_motion: true, ..Default::default() };
    let s = Screen::of(Robot::with(118, 32, ui));
    assert_eq!(s.r.app.frame.spin, None);
    assert!(s.r.app.sleep().is_some_and(|t| t > std::time::Duration::ZERO), "the time of the call goes on");
}

/// A frame that streamed words cause, below what lies over the views: the views that are drawn. What was drawn in parts
/// is what drawing all of it gives.
fn words_below(s: &mut Screen, what: &str) -> Vec<View> {
    s.draw();
    s.r.app.update(Msg::Tick);
    s.draw();
    assert_eq!(s.frame(), (vec![], vec![]), "{what}: nothing changed");
    s.event("main", EventBody::Turn(TurnEvent::TextDelta { text: " and more words of the reply".into() }));
    let drawn = s.frame().0;
    assert_ne!(*s.r.app.drawn(), [s.buf.area], "{what}: everything was drawn");
    // Enough of it that the rows below a toast move.
    s.event("main", EventBody::Turn(TurnEvent::TextDelta { text: "\n\nwords\n\nof\n\nit".repeat(20) }));
    s.frame();
    assert_ne!(*s.r.app.drawn(), [s.buf.area], "{what}: everything was drawn");
    let partly = s.buf.clone();
    s.r.app.redraw();
    s.draw();
    assert!(partly == s.buf, "{what}: a part was drawn as the whole is");
    drawn
}

#[test]
fn below_toasts_key_sequences_and_the_tour_only_what_changes_is_drawn() {
    for (width, height) in [(220, 60), (118, 32), (80, 24)] {
        let screen = |steps: &str| {
            let mut s = Screen::of(Robot::new(width, height));
            s.r.run("wait 2000; esc; wait 2000");
            assert!(s.r.app.layers.is_empty());
            steps.split(' ').filter(|k| !k.is_empty()).for_each(|k| s.key(k));
            s
        };
        let mut s = screen("");
        s.r.app.say("A toast of two words or more");
        assert_eq!(words_below(&mut s, "toast"), [View::Conversation]);
        assert!(crate::testing::text_of(&s.buf).contains("A toast of two"));
        let mut s = screen("ctrl-x");
        assert!(!s.r.app.keys.pending.is_empty());
        assert_eq!(words_below(&mut s, "keys"), [View::Conversation]);
        s.r.clock.advance(s.r.app.which_delay());
        s.draw();
        assert_eq!(*s.r.app.drawn(), [s.buf.area], "the keys that can follow appear");
        assert_eq!(words_below(&mut s, "keys that can follow"), [View::Conversation]);
        let mut s = screen("");
        let step = ("Do this".to_owned(), "And that.".to_owned(), String::new());
        *s.r.app.model.tour = crate::model::tour::Tour::new(&[step]);
        assert!(s.r.app.act(crate::keymap::action::Action("tour.open")));
        assert!(s.r.app.layers.is_empty());
        assert_eq!(words_below(&mut s, "tour"), [View::Conversation]);
        assert!(crate::testing::text_of(&s.buf).contains("Do this"));
    }
}
