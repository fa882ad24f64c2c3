//! Random keys, clicks and pastes, with questions that appear, change and go at random moments.
//!
//! An approval is an answer other than "no" that lets the call run: once, session, always. ("Edit" is
//! none: the changed text is judged again.) It is an accident unless one key that says yes was pressed
//! on purpose. The robot here never does that: yes keys are pressed only while a question is not on the
//! screen, is folded, or has been there (or the window has had the focus) for less than the input delay; at
//! other times each of them is replaced by a harmless letter. What is harmless may be approved by Enter too.

use std::time::Duration;
use tiller_protocol::EventBody;
use tiller_protocol::PermissionOutcome;

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::event::AskEvent;
use tiller_protocol::{AgentId, SeqIds};

use super::tests::{ask, permission};
use super::*;
use crate::app::effect::Task;
use crate::app::msg::Msg;
use crate::app::state::Owner;
use crate::input::Input;
use crate::keymap::Chord;
use crate::testing::{Random, Robot};

/// Events of the quick form; the full one is run by name.
const QUICK: u32 = 50_000;
const FULL: u32 = 1_000_000;

/// Keys that say yes, and Enter, which may to what is harmless.
const YES: [&str; 6] = ["y", "s", "A", "3", "4", "6"];
const KEYS: [&str; 40] = [
    "y",
    "s",
    "A",
    "3",
    "4",
    "6",
    "enter",
    "enter",
    "space",
    "n",
    "c",
    "e",
    "1",
    "2",
    "5",
    "a",
    "b",
    "x",
    "z",
    "tab",
    "shift-tab",
    "left",
    "right",
    "up",
    "down",
    "pagedown",
    "pageup",
    "home",
    "end",
    "g",
    "G",
    "esc",
    "backspace",
    "ctrl-j",
    "ctrl-x",
    "-",
    "ctrl-p",
    "j",
    "k",
    "?",
];

/// Everything seen and done, kept apart from the dialog's own bookkeeping.
struct Watch {
    /// The question on top, the text it shows, and since when.
    top: Option<(AskId, String, Duration)>,
    focused: Duration,
    answers: u32,
    asked: u32,
}

fn run(events: u32, seed: u64) {
    let mut random = Random(seed);
    let ids = SeqIds::default();
    let mut r = Robot::new(60, 16);
    let mut buf = Buffer::empty(Rect::new(0, 0, 60, 16));
    let mut w = Watch { top: None, focused: Duration::ZERO, answers: 0, asked: 0 };
    let setting = r.app.model.ui.approval_deaf;
    let delay = Duration::from_millis(setting);
    for n in 0..events {
        // Random keys reach the settings, too, and 0 there switches off what is tested here.
        std::sync::Arc::make_mut(&mut r.app.model.ui).approval_deaf = setting;
        use tiller_protocol::Clock;
        let now = r.clock.mono();
        let listening =
            w.top.as_ref().is_some_and(|t| now >= t.2.max(w.focused) + delay) && !r.app.model.window.away;
        let low = w.top.as_ref().is_some_and(|t| t.1.starts_with("low"));
        match random.below(100) {
            0..70 => {
                let mut name = KEYS[random.below(KEYS.len() as u64) as usize];
                if listening && (YES.contains(&name) || low && name == "enter") {
                    name = "x";
                }
                if r.app.model.window.away {
                    w.focused = now;
                }
                r.app.update(Msg::Input(Input::Key(Chord::parse(name).expect("a key").event())));
            }
            70..82 => {
                let kind = [
                    MouseEventKind::Down(MouseButton::Left),
                    MouseEventKind::Up(MouseButton::Left),
                    MouseEventKind::Drag(MouseButton::Left),
                    MouseEventKind::ScrollDown,
                    MouseEventKind::ScrollUp,
                ][random.below(5) as usize];
                let (column, row) = (random.below(60) as u16, random.below(16) as u16);
                r.app.update(Msg::Input(Input::Mouse(MouseEvent {
                    kind,
                    column,
                    row,
                    modifiers: KeyModifiers::NONE,
                })));
            }
            82..84 => r.app.update(Msg::Input(Input::Paste("y\ny\n3".into()))),
            84 => r.app.update(Msg::Input(Input::FocusLost)),
            85..87 => {
                w.focused = now;
                r.app.update(Msg::Input(Input::FocusGained));
            }
            87..90 => {
                // A new question, a changed question, or an answer from elsewhere.
                let risk = if random.below(2) == 0 { Risk::Low } else { Risk::High };
                let word = if risk == Risk::Low { "low" } else { "high" };
                let a = ask(&ids, permission(&format!("{word} {n}"), risk));
                let old = r.app.model.questions.open.first().cloned();
                let body = match (random.below(3), old) {
                    (0, Some(old)) => AskEvent::PermissionAsked { ask: Ask { body: a.body, ..old } },
                    (1, Some(old)) => decided(old.id),
                    _ if r.app.model.questions.open.len() < 4 => AskEvent::PermissionAsked { ask: a },
                    _ => continue,
                };
                w.asked += 1;
                send(&mut r, body);
            }
            98.. => {
                // Out of whatever random keys have opened, and back to a question: otherwise most of the
                // run would go by in dialogs in which nothing can be approved.
                if r.app.model.window.away {
                    w.focused = now;
                }
                let mut press = |name| {
                    r.app.update(Msg::Input(Input::Key(Chord::parse(name).expect("a key").event())));
                };
                ["esc", "esc", "esc", "ctrl-x", "a"].into_iter().for_each(&mut press);
                // Sometimes the person reads it, and denies.
                if random.below(2) == 0 {
                    look(&mut r, &mut buf, &mut w);
                    for (ms, name) in [(450, "n"), (200, "down")] {
                        r.clock.advance(Duration::from_millis(ms));
                        r.app.update(Msg::Tick);
                        r.app.draw(&mut buf);
                        r.app.update(Msg::Input(Input::Key(Chord::parse(name).expect("a key").event())));
                    }
                }
            }
            _ => {
                // Time passes, and what changed is drawn.
                let ms = [1, 10, 60, 200, 450, 1200][random.below(6) as usize];
                r.clock.advance(Duration::from_millis(ms));
                r.app.update(Msg::Tick);
                r.app.draw(&mut buf);
            }
        }
        answers(&mut r, &mut w, n);
        look(&mut r, &mut buf, &mut w);
    }
    assert!(w.asked > events / 100 && w.answers > events / 2000, "{} asked, {} answered", w.asked, w.answers);
}

fn decided(id: AskId) -> AskEvent {
    let (tool, what) = ("terminal".into(), "x".into());
    AskEvent::PermissionDecided {
        id: Some(id),
        tool,
        what,
        decision: PermissionOutcome::Refused,
        by: "person".into(),
        allow: None,
        change: false,
    }
}

fn send(r: &mut Robot, body: AskEvent) {
    use tiller_protocol::Clock;
    let session = tiller_protocol::SessionId(Default::default());
    let (time, agent) = (r.clock.now(), AgentId::main());
    let event = Event { seq: 1, time, session, agent, cause: None, body: EventBody::Ask(body) };
    r.app.update(Msg::Engine(Box::new(event)));
}

/// Answers that were sent: none may approve. The engine takes each.
fn answers(r: &mut Robot, w: &mut Watch, n: u32) {
    for task in r.app.take_tasks() {
        let Task::Send(c) = task else { continue };
        let CommandBody::Ask(AskCommand::Answer { id, reply }) = c.body else { continue };
        w.answers += 1;
        let AskReply::Permission { decision, .. } = &reply else { continue };
        assert!(
            matches!(decision, Decision::Deny { .. } | Decision::Edit { .. }),
            "event {n}: {reply:?} with {:?} on the screen",
            w.top
        );
        send(r, decided(id));
    }
}

/// Notes the question that lies on top now, and since when it has been seen there.
fn look(r: &mut Robot, buf: &mut Buffer, w: &mut Watch) {
    use tiller_protocol::Clock;
    let top = match r.app.top() {
        Owner::Layer(id) => r.app.status_of(Owner::Layer(id)).and_then(|s| s.question),
        _ => None,
    };
    let now = top.and_then(|id| {
        let ask = r.app.model.questions.open.iter().find(|a| a.id == id)?;
        let AskBody::Permission(p) = &ask.body else { return None };
        Some((id, p.shown.clone()))
    });
    let same = match (&w.top, &now) {
        (Some(a), Some(b)) => a.0 == b.0 && a.1 == b.1,
        (None, None) => true,
        _ => false,
    };
    if !same {
        r.app.draw(buf);
        w.top = now.map(|(id, text)| (id, text, r.clock.mono()));
    }
}

#[test]
fn no_accidental_approvals_by_random_events() {
    run(QUICK, 0x7171);
}

#[test]
#[ignore = "the full form of the one above: about four minutes of processor time in a debug build"]
fn no_accidental_approvals_by_a_million_random_events() {
    run(FULL, 0x1234_5678_9abc);
}

/// The test above can fail: one key on purpose approves.
#[test]
fn one_key_on_purpose_approves() {
    let mut r = Robot::new(60, 16);
    let a = ask(&SeqIds::default(), permission("high", Risk::High));
    send(&mut r, AskEvent::PermissionAsked { ask: a });
    r.run("wait 1; wait 401; y");
    assert!(matches!(
        r.commands()[..],
        [CommandBody::Ask(AskCommand::Answer {
            reply: AskReply::Permission { decision: Decision::Once, .. },
            ..
        })]
    ));
}
