//! U11: keys typed without looking, into every dialog.

use std::time::Duration;

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::agent::AgentCommand;
use tiller_protocol::command::{AskCommand, ReviewCommand, SessionCommand, TurnCommand};
use tiller_protocol::{AskReply, CommandBody, Profile};

use super::*;
use crate::app::effect::Effect;
use crate::app::msg::Msg;
use crate::app::state::Owner;
use crate::app::task::Task;
use crate::dialog::confirm::Confirm;
use crate::keymap::Chord;
use crate::shipped;
use crate::testing::Robot;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// What words are made of, and the keys that end them.
const KEYS: &str =
    "y n a s o r x d q e t i l c j k g 1 2 3 4 A D R Y space enter enter enter tab backspace up down left";

fn quit() -> Box<Confirm> {
    let then = vec![Effect::Send(CommandBody::Session(SessionCommand::Quit))];
    Box::new(
        Confirm::new("Quit?", "A turn is running.", "quit", then).otherwise("leave", vec![Effect::Leave]),
    )
}

/// What a task grants, ends or takes away; `None`: nothing.
fn accident(task: &Task) -> Option<String> {
    let body = match task {
        Task::Quit => return Some("it ends".into()),
        Task::Send(c) => &c.body,
        _ => return None,
    };
    let bad = match body {
        CommandBody::Session(s) => matches!(
            s,
            SessionCommand::Quit
                | SessionCommand::SetProfile { profile: Profile::Full | Profile::AutoEdit }
                | SessionCommand::Restore { .. }
                | SessionCommand::ArchiveBranch { .. }
        ),
        CommandBody::Ask(AskCommand::Answer { reply, .. }) => match reply {
            AskReply::Yes { .. } => true,
            AskReply::Permission { decision, .. } => !matches!(
                decision,
                tiller_protocol::Decision::Deny { .. } | tiller_protocol::Decision::Edit { .. }
            ),
            _ => false,
        },
        CommandBody::Review(r) => matches!(r, ReviewCommand::Reject { .. }),
        CommandBody::Turn(t) => matches!(t, TurnCommand::Interrupt { .. }),
        CommandBody::Agent(a) => matches!(a, AgentCommand::Cancel { .. }),
        _ => false,
    };
    bad.then(|| format!("{body:?}"))
}

fn press(r: &mut Robot, key: &str) {
    r.app.update(Msg::Key(Chord::parse(key).expect(key).event()));
}

/// A dialog comes while somebody types: a word and what ends it, at the speed of a hand.
fn typed_into(r: &mut Robot, random: &mut Random, name: &str, presses: u64) {
    let keys: Vec<&str> = KEYS.split(' ').collect();
    let mut buf = Buffer::empty(Rect::new(0, 0, 80, 24));
    r.app.draw(&mut buf);
    let depth = r.app.layers.len();
    let mut spent = 0;
    for _ in 0..presses {
        let key = keys[random.below(keys.len() as u64) as usize];
        if random.below(12) == 0 {
            let (column, row) = (random.below(80) as u16, random.below(24) as u16);
            let kind = MouseEventKind::Down(MouseButton::Left);
            r.app.update(Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
        }
        press(r, key);
        for task in r.app.take_tasks() {
            if let Some(what) = accident(&task) {
                panic!("{name}: {key} after {spent} ms: {what}");
            }
        }
        // Within the time in which nobody can have read it.
        let step = random.below(90);
        if spent + step >= r.app.model.ui.approval_deaf || r.app.layers.len() > depth {
            break;
        }
        spent += step;
        r.clock.advance(Duration::from_millis(step));
        r.app.update(Msg::Tick);
        r.app.draw(&mut buf);
    }
}

fn run(rounds: u64, seed: u64) {
    let mut random = Random(seed);
    for _ in 0..rounds {
        for (name, make) in shipped::registry().samples() {
            let mut r = Robot::new(80, 24);
            r.push(make());
            typed_into(&mut r, &mut random, name, 12);
        }
        let mut r = Robot::new(80, 24);
        r.push(quit());
        typed_into(&mut r, &mut random, "quit", 12);
        for opener in shipped::registry().openers() {
            let mut r = Robot::new(80, 24);
            r.app.act(opener.spec.action);
            typed_into(&mut r, &mut random, opener.spec.action.0, 12);
        }
        for profile in [Profile::Full] {
            let mut r = Robot::new(80, 24);
            for effect in crate::dialog::profile::change(profile) {
                r.app.effects(Owner::Shell, vec![effect]);
            }
            typed_into(&mut r, &mut random, "auto", 12);
        }
    }
}

#[test]
fn u11_keys_typed_without_looking_grant_end_and_lose_nothing() {
    run(30, 0x7171);
}

#[test]
#[ignore = "the full form of the one above: a thousand rounds over every dialog take minutes in a debug build"]
fn u11_whole_a_thousand_rounds_over_every_dialog() {
    run(1_000, 0x1234_5678_9abc);
}

/// The tests above can fail: a key on purpose is taken.
#[test]
fn a_yes_counts_once_the_dialog_was_in_sight_and_enter_is_never_one() {
    let quits =
        |r: &Robot| r.commands().iter().any(|c| matches!(c, CommandBody::Session(SessionCommand::Quit)));
    let fresh = || {
        let mut r = Robot::new(80, 24);
        r.push(quit());
        r
    };
    let mut r = fresh();
    r.msg(Msg::Key(Chord::parse("y").unwrap().event()));
    assert!(!quits(&r) && r.screen().contains("Quit?"), "too early: {}", r.screen());
    r.wait(Duration::from_millis(401));
    r.msg(Msg::Key(Chord::parse("y").unwrap().event()));
    assert!(quits(&r));
    // The focus may be moved to the yes; Enter and Space do not press it.
    let mut r = fresh();
    r.run("wait 500; tab; enter; space; enter");
    assert!(!quits(&r) && r.screen().contains("press the key of the button"), "{}", r.screen());
    r.run("wait 401; y");
    assert!(quits(&r));
    // A word that is no answer makes it deaf again.
    let mut r = fresh();
    r.run("wait 500; z; y");
    assert!(!quits(&r), "part of a word");
    r.run("wait 401; y");
    assert!(quits(&r));
    // It takes a no at once.
    let mut r = fresh();
    r.msg(Msg::Key(Chord::parse("n").unwrap().event()));
    assert!(!r.screen().contains("Quit?"), "{}", r.screen());
}

#[test]
fn the_palette_never_begins_on_what_ends_something() {
    let mut r = Robot::new(118, 25);
    for keys in [["ctrl-p", "enter"], ["ctrl-p", "enter"]] {
        keys.iter().for_each(|k| press(&mut r, k));
        for task in r.app.take_tasks() {
            assert_eq!(accident(&task), None);
        }
        r.run("esc; esc; esc");
    }
    // Found by its name, it waits until it has been in sight.
    let mut r = Robot::new(118, 25);
    press(&mut r, "ctrl-p");
    for c in "save and quit".chars() {
        let key = if c == ' ' { "space".to_owned() } else { c.to_string() };
        press(&mut r, &key);
    }
    press(&mut r, "enter");
    assert!(r.app.take_tasks().iter().all(|t| accident(t).is_none()));
    assert!(!r.app.layers.is_empty(), "it is still open");
}

#[test]
fn trust_begins_on_not_now() {
    let mut r = Robot::new(80, 24);
    let ask = crate::dialog::ask::samples().swap_remove(0);
    r.event(tiller_protocol::EventBody::Ask(tiller_protocol::event::AskEvent::PermissionAsked { ask }));
    r.run("wait 1200; wait 500");
    assert!(r.screen().contains("Trust this folder?"), "{}", r.screen());
    r.clear().run("enter");
    let sent: Vec<String> = r.commands().iter().map(|c| format!("{c:?}")).collect();
    assert!(sent.iter().any(|c| c.contains("Declined")), "{sent:?}");
    assert!(!sent.iter().any(|c| c.contains("Never") || c.contains("Yes")), "{sent:?}");
}

#[test]
fn every_dialog_says_what_it_decides() {
    for id in DECIDES {
        assert!(shipped::registry().words().find(id).is_some(), "{id} is no action");
    }
}
