use crate::app::inbox::{Post, inbox};
use std::io;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tiller_protocol::command::TurnCommand;
use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{
    AgentId, Command, CommandBody, Event, EventBody, Notice, NoticeKind, SeqIds, SessionId, SystemClock,
};

use super::*;
use crate::app::ui::{UiOptions, make_app};
use crate::keymap::Chord;
use crate::testing::START;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, b: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(b);
        Ok(b.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Sink {
    /// Returns what an 80x24 terminal shows after all of it.
    fn shown(&self) -> String {
        let size = |n| std::num::NonZeroU16::new(n).unwrap();
        let mut vt = vt100::Parser::new(size(24), size(80), 0);
        vt.process(&self.0.lock().unwrap());
        vt.screen().contents()
    }
}

type Sent = Arc<Mutex<Vec<CommandBody>>>;

/// A loop on a thread of its own, with its bytes and its commands.
fn start(
    take: impl Fn(&CommandBody) -> bool + Send + 'static,
) -> (Post, Sink, Sent, std::thread::JoinHandle<Exit>) {
    let env: crate::app::ui::Env = Arc::new(|k| (k == "TERM").then(|| "xterm-256color".into()));
    let mut o = UiOptions::new(env);
    o.clock = Arc::new(SystemClock::default());
    let (tx, rx) = inbox(4096);
    let (sink, sent) = (Sink::default(), Sent::default());
    let (out, list, msgs) = (sink.clone(), Arc::clone(&sent), tx.clone());
    let thread = std::thread::spawn(move || {
        let (app, _) = make_app(&o);
        let commands = Box::new(move |c: Command| {
            let ok = take(&c.body);
            if ok {
                list.lock().unwrap().push(c.body);
            }
            ok
        });
        let l = Loop::with_output(app, (msgs, rx), commands, None, &o, Box::new(out)).unwrap();
        l.run().unwrap()
    });
    (tx, sink, sent, thread)
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(90);
    while !done() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::yield_now();
    }
}

fn event(body: EventBody) -> Msg {
    let session = SessionId::fresh(&SeqIds::default(), START);
    Msg::Engine(Box::new(Event { seq: 1, time: START, session, agent: AgentId::main(), cause: None, body }))
}

fn keys(tx: &Post, text: &str) {
    for k in text.split(' ') {
        tx.send(Msg::Input(crate::input::Input::Key(Chord::parse(k).unwrap().event()))).unwrap();
    }
}

#[test]
fn a_prompt_typed_before_the_engine_is_ready_is_sent_when_it_is() {
    let open = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let gate = Arc::clone(&open);
    let (tx, sink, sent, thread) = start(move |_| gate.load(std::sync::atomic::Ordering::Relaxed));
    until("the first frame", || sink.shown().contains("ASK"));
    keys(&tx, "h i enter");
    tx.send(Msg::Tick).unwrap();
    assert!(sent.lock().unwrap().is_empty());
    open.store(true, std::sync::atomic::Ordering::Relaxed);
    until("the prompt", || {
        sent.lock().unwrap().iter().any(
            |c| matches!(c, CommandBody::Turn(TurnCommand::Submit { message, .. }) if message.text == "hi"),
        )
    });
    tx.send(Msg::Signal(crate::app::msg::SignalMsg::Terminate(15))).unwrap();
    assert_eq!(thread.join().unwrap(), Exit::Signal(15));
}

#[test]
fn at_rest_nothing_is_written_and_nothing_wakes() {
    let (tx, sink, _, thread) = start(|_| true);
    keys(&tx, "a");
    until("the key", || sink.shown().contains("ASK"));
    let quiet = || {
        until("quiet", || {
            let (before, calm) = (sink.0.lock().unwrap().len(), Instant::now());
            while calm.elapsed() < Duration::from_millis(500) {
                std::thread::yield_now();
            }
            before == sink.0.lock().unwrap().len()
        });
        sink.0.lock().unwrap().len()
    };
    // The first keys bring footer and look into place; then a key costs a few bytes, and rest costs none.
    for want in ["b", "c", "d"] {
        let before = quiet();
        keys(&tx, want);
        until("the next key", || sink.0.lock().unwrap().len() > before);
        let after = quiet();
        let bytes = String::from_utf8_lossy(&sink.0.lock().unwrap()[before..after]).into_owned();
        assert!(want == "b" || (bytes.ends_with(want) && bytes.len() <= 8), "{want}: {bytes:?}");
    }
    tx.send(Msg::Signal(crate::app::msg::SignalMsg::Terminate(15))).unwrap();
    thread.join().unwrap();
}

/// Hostile words in everything that an event can carry: none of their control characters reaches the terminal.
#[test]
fn u1_hostile_events_send_no_control_of_their_own() {
    const ROUNDS: usize = 200;
    let (tx, sink, _, thread) = start(|_| true);
    let evil = "a\x1b]52;c;aGk=\x07\x1b[2J\x1b[31m\u{9b}5n\u{202e}\r\x08\x00\x7f\u{200b}\x1bPq\x1b\\z";
    for i in 0..ROUNDS {
        let text = format!("{i}{evil}");
        let notice = Notice::new(NoticeKind::Network, text.clone()).hint(text.clone()).detail(text.clone());
        tx.send(event(EventBody::State(StateEvent::Notice { notice }))).unwrap();
        tx.send(event(EventBody::State(StateEvent::TitleChanged { title: text.clone() }))).unwrap();
        tx.send(event(EventBody::Turn(TurnEvent::TextDelta { text: text.clone() }))).unwrap();
        let git = tiller_protocol::view::GitState {
            branch: text.clone(),
            changed: 1,
            under_way: text.as_str().into(),
        };
        tx.send(event(EventBody::State(StateEvent::GitChanged { git }))).unwrap();
        let model = tiller_protocol::ModelRef(text);
        tx.send(event(EventBody::State(StateEvent::ModelChanged { model, window: None }))).unwrap();
        tx.send(Msg::Input(crate::input::Input::Paste(evil.into()))).unwrap();
        if i % 20 == 0 {
            keys(&tx, "ctrl-x e");
            keys(&tx, "esc");
        }
    }
    tx.send(Msg::Signal(crate::app::msg::SignalMsg::Terminate(15))).unwrap();
    thread.join().unwrap();
    let text = sink.text();
    assert!(text.len() > 500, "{text:?}");
    // The title is the one sequence besides those of frames.
    let mut rest = text.as_str();
    let mut frames = String::new();
    while let Some(i) = rest.find("\x1b]0;") {
        frames.push_str(&rest[..i]);
        let end = rest[i..].find("\x1b\\").expect("an ended title");
        assert!(!rest[i + 4..i + end].chars().any(char::is_control));
        rest = &rest[i + end + 2..];
    }
    frames.push_str(rest);
    crate::output::tests::grammar(&frames);
}

/// Sizes from 1x1 to 1000x500 in any order: no panic, and the last frame is right.
fn resizes(storm: u32) {
    let (tx, sink, _, thread) = start(|_| true);
    keys(&tx, "h e y");
    let mut n: u32 = 7;
    for i in 0..storm {
        n = n.wrapping_mul(1_103_515_245).wrapping_add(12345);
        let big = i % 50 == 0;
        let (w, h) =
            (1 + (n >> 16) % if big { 1000 } else { 200 }, 1 + (n >> 3) % if big { 500 } else { 60 });
        tx.send(Msg::Resize(w as u16, h as u16)).unwrap();
        if i % 7 == 0 {
            keys(&tx, "ctrl-p");
            keys(&tx, "esc");
        }
    }
    tx.send(Msg::Resize(80, 24)).unwrap();
    let begin = Instant::now();
    let shown = || {
        let size = |n| std::num::NonZeroU16::new(n).unwrap();
        let mut vt = vt100::Parser::new(size(24), size(80), 0);
        let text = sink.text();
        vt.process(&text.as_bytes()[text.rfind("\x1b[0m\x1b[2J").unwrap_or(0)..]);
        vt.screen().contents()
    };
    until("the last frame", || shown().lines().count() == 24 && shown().contains("Enter send"));
    println!("{storm} sizes: settled {:?} after the last", begin.elapsed());
    assert!(shown().contains("hey"));
    tx.send(Msg::Signal(crate::app::msg::SignalMsg::Terminate(15))).unwrap();
    thread.join().unwrap();
}

#[test]
fn u2_resize_storm() {
    resizes(300);
}

#[test]
#[ignore = "the row's size"]
fn u2_whole_10_000_sizes() {
    resizes(10_000);
}

/// A terminal that never takes a byte: events are still taken in, and a signal still ends it.
#[test]
fn u6_the_engine_is_never_blocked_by_a_stalled_terminal() {
    struct Never(std::sync::mpsc::Receiver<()>);
    impl io::Write for Never {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (hold, never) = sync_channel(1);
    let env: crate::app::ui::Env = Arc::new(|_| None);
    let o = UiOptions::new(env);
    let (tx, rx) = inbox(64);
    let msgs = tx.clone();
    let thread = std::thread::spawn(move || {
        let (app, _) = make_app(&o);
        let l =
            Loop::with_output(app, (msgs, rx), Box::new(|_| true), None, &o, Box::new(Never(never))).unwrap();
        l.run().unwrap()
    });
    // Far more than the channel holds.
    for i in 0..5000 {
        tx.send(event(EventBody::Turn(TurnEvent::TextDelta { text: format!("word {i} ") }))).unwrap();
    }
    tx.send(Msg::Signal(crate::app::msg::SignalMsg::Terminate(15))).unwrap();
    assert_eq!(thread.join().unwrap(), Exit::Signal(15));
    drop(hold);
}
