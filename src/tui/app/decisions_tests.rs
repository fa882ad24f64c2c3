//! U11: keys typed without looking, into every dialog.

use std::time::Duration;

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::agent::AgentCommand;
use tiller_protocol::command::{
    AskCommand, ContextCommand, QueueCommand, ReviewCommand, SessionCommand, TurnCommand,
};
use tiller_protocol::event::{AskEvent, StateEvent};
use tiller_protocol::skill::SkillCommand;
use tiller_protocol::{
    AskReply, CommandBody, Decision, EventBody, Message, Profile, QueueId, Queued, QueuedState, SendMode,
};

use super::*;
use crate::app::effect::{Effect, External, Task};
use crate::app::msg::Msg;
use crate::app::state::Owner;
use crate::dialog::confirm::Confirm;
use crate::input::Input;
use crate::keymap::Chord;
use crate::shipped;
use crate::testing::{Random, Robot};

/// The letters of words, and the keys that end them.
const KEYS: &str = "y n a s o r x d q e t i l c j k g u m 1 2 3 4 A D R Y T S K ! space enter enter enter tab backspace up down left";
/// The keys that move a focus and press the button that has it.
const BLIND: &str = "enter space tab enter up down left right enter space";
const DRAFT: &str = "half a thought";

fn quit() -> Box<Confirm> {
    let then = vec![Effect::send(CommandBody::Session(SessionCommand::Quit))];
    Box::new(
        Confirm::new("Quit?", "A turn is running.", "quit", then)
            .otherwise("leave", vec![Effect::Task(Task::Leave)]),
    )
}

/// Returns what a task grants, ends or takes away; `None`: nothing. All that is not known to be harmless counts.
fn accident(task: &Task) -> Option<String> {
    use SessionCommand as S;
    let body = match task {
        Task::Send(c) => &c.body,
        Task::Quit => return Some("it ends".into()),
        Task::Leave => return Some("it detaches".into()),
        Task::Suspend(External::Stop) => return Some("it stops".into()),
        Task::SaveSetting { key, value } => {
            return key.starts_with("ui.approval").then(|| format!("{key} becomes {value:?}"));
        }
        _ => return None,
    };
    let harmless = match body {
        CommandBody::Query(_) | CommandBody::Todo(_) | CommandBody::Watch(_) => true,
        CommandBody::Ask(AskCommand::Answer { reply, .. }) => match reply {
            AskReply::Declined | AskReply::ReadOnly => true,
            AskReply::Permission { decision, .. } => {
                matches!(decision, Decision::Deny { .. } | Decision::Edit { .. })
            }
            AskReply::Yes { .. } | AskReply::Never | AskReply::Branch | AskReply::Choice { .. } => false,
        },
        // What is open changes; nothing is lost by that.
        CommandBody::Session(s) => match s {
            S::Open { .. } | S::OpenBranch { .. } | S::Fork { .. } => true,
            S::Rename { .. } | S::LabelBranch { .. } | S::Tag { .. } | S::Checkpoint { .. } => true,
            S::Export { .. } | S::SetModel { .. } | S::SetEffort { .. } | S::Reload => true,
            S::SetProfile { profile } => !matches!(profile, Profile::Full | Profile::AutoEdit),
            _ => false,
        },
        CommandBody::Context(c) => !matches!(c, ContextCommand::Compact { .. }),
        CommandBody::Review(r) => matches!(r, ReviewCommand::Open { .. }),
        CommandBody::Queue(q) => {
            !matches!(q, QueueCommand::Remove { .. } | QueueCommand::Mode { mode: SendMode::Now, .. })
        }
        // Words for a new agent stand in a field that the person opened for them.
        CommandBody::Agent(a) => {
            matches!(a, AgentCommand::Diff { .. } | AgentCommand::Pause { .. } | AgentCommand::Spawn { .. })
        }
        CommandBody::Skill(c) => matches!(c, SkillCommand::Style { .. } | SkillCommand::Reload),
        // A question on the side goes with its dialog, and can be asked again.
        CommandBody::Turn(TurnCommand::StopTool { id }) => id == "aside",
        CommandBody::Turn(_)
        | CommandBody::Goal(_)
        | CommandBody::Compare(_)
        | CommandBody::Pane(_)
        | CommandBody::Memory(_)
        | CommandBody::Learning(_) => false,
    };
    (!harmless).then(|| format!("{body:?}"))
}

fn press(r: &mut Robot, key: &str) {
    r.app.update(Msg::Input(Input::Key(Chord::parse(key).expect(key).event())));
}

/// A screen with words in the composer that are not sent.
fn drafted() -> Robot {
    let mut r = Robot::new(80, 24);
    r.run(&format!("paste {DRAFT}"));
    r.app.take_tasks();
    r
}

/// The words in the composer are there still, or one key away.
fn kept(r: &mut Robot, name: &str) {
    r.app.layers.clear();
    // A row of a list may have led to another view.
    r.app.act(Action("view.composer"));
    r.app.redraw();
    r.run("wait 0");
    if r.screen().contains("draft stashed") {
        // The list of keys does what its row says, too.
        r.app.act(Action("composer.aside"));
        r.app.redraw();
        r.run("wait 0");
    }
    // So it does with the keys that edit the text: what they cut comes back by their opposite.
    for opposite in ["edit.redo", "edit.undo"] {
        if r.screen().contains(DRAFT) {
            return;
        }
        r.app.act(Action(opposite));
        r.app.redraw();
        r.run("wait 0");
    }
    if !r.screen().contains(DRAFT) {
        // What took its place goes; it is the last of the history.
        r.run("ctrl-u; up");
        r.reply(tiller_protocol::event::ReplyEvent::HistoryReply { prompts: Vec::new() });
    }
    assert!(r.screen().contains(DRAFT), "{name}: the draft is lost\n{}", r.screen());
}

/// A dialog opens while the person types a word and its end, at typing speed.
fn typed_into(r: &mut Robot, random: &mut Random, name: &str, presses: u64) -> Option<String> {
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
            r.app.update(Msg::Input(Input::Mouse(MouseEvent {
                kind,
                column,
                row,
                modifiers: KeyModifiers::NONE,
            })));
            // A click beside it may put it away.
            if r.app.layers.len() != depth {
                break;
            }
        }
        press(r, key);
        for task in r.app.take_tasks() {
            let writes = name == "recorder" && matches!(task, Task::Job(..));
            if let Some(what) = accident(&task).or(writes.then(|| "it writes the key file".into())) {
                return Some(format!("{name}: {key} after {spent} ms: {what}"));
            }
        }
        // Before the person can have read it.
        let step = random.below(90);
        if spent + step >= r.app.model.ui.approval_deaf || r.app.layers.len() != depth {
            break;
        }
        spent += step;
        r.clock.advance(Duration::from_millis(step));
        r.app.update(Msg::Tick);
        r.app.draw(&mut buf);
    }
    None
}

/// Questions of the screen's own, each in a screen of its own.
fn ours() -> Vec<(&'static str, Robot)> {
    let mut all: Vec<(&'static str, Robot)> =
        ["quit", "auto", "recorder"].map(|name| (name, drafted())).into();
    all[0].1.push(quit());
    for effect in crate::dialog::settings::profile::change(Profile::Full) {
        all[1].1.app.effects(Owner::Shell, vec![effect]);
    }
    let r = &mut all[2].1;
    r.app.model.environment.folders.config = Some(tempfile::env::temp_dir());
    r.run("ctrl-x K; type Redraw the whole screen; enter; f9");
    assert!(r.screen().contains("This key is free"), "{}", r.screen());
    all.iter_mut().for_each(|(_, r)| drop(r.app.take_tasks()));
    all
}

/// Every dialog that a test can make.
fn dialogs() -> Vec<(&'static str, Robot)> {
    let mut all = ours();
    for (name, make) in shipped::registry().samples() {
        let mut r = drafted();
        r.push(make());
        all.push((*name, r));
    }
    for opener in shipped::registry().openers() {
        let mut r = drafted();
        if opener.spec.action.0 == "queue.open" {
            crate::scene::running(&mut r);
            let queue = ["one", "two"].map(|text| Queued {
                state: QueuedState::Accepted,
                ..Queued::new(QueueId(Default::default()), Message::text(text), SendMode::Queue)
            });
            r.event(EventBody::State(StateEvent::QueueChanged { queue: queue.to_vec() }));
        }
        r.app.act(opener.spec.action);
        // Some open only where there is something to show.
        if !r.app.layers.is_empty() {
            all.push((opener.spec.action.0, r));
        }
    }
    // What a dialog asks for when it opens.
    all.iter_mut().for_each(|(_, r)| drop(r.app.take_tasks()));
    all
}

fn run(rounds: u64, seed: u64) {
    let mut random = Random(seed);
    // The first of each dialog.
    let mut accidents = std::collections::BTreeMap::new();
    for _ in 0..rounds {
        for (name, mut r) in dialogs() {
            if let Some(what) = typed_into(&mut r, &mut random, name, 12) {
                accidents.entry(name).or_insert(what);
            }
            kept(&mut r, name);
        }
    }
    assert!(accidents.is_empty(), "{accidents:#?}");
}

/// Questions that wait for a decision, each in a screen of its own.
fn questions() -> Vec<(String, Robot)> {
    let mut all: Vec<(String, Robot)> = ours().into_iter().map(|(name, r)| (name.to_owned(), r)).collect();
    for ask in crate::dialog::question::program::samples()
        .into_iter()
        .chain([crate::dialog::question::clarify::granting_sample()])
    {
        let name = format!("{:?}", ask.body);
        let mut r = drafted();
        r.run("wait 5000");
        r.event(EventBody::Ask(AskEvent::QuestionAsked { ask }));
        r.run("ctrl-x a");
        assert!(
            r.app.layers.last().is_some_and(|l| l.question(&r.app.model).is_some()),
            "{name}: {}",
            r.screen()
        );
        all.push((name, r));
    }
    all
}

/// Enter, Space and what moves the focus, with time to read between them, are no yes to any question.
#[test]
fn u11_no_question_has_a_yes_that_enter_presses() {
    let mut random = Random(0x7171);
    let keys: Vec<&str> = BLIND.split(' ').collect();
    for _ in 0..20 {
        for (name, mut r) in questions() {
            let depth = r.app.layers.len();
            for _ in 0..8 {
                r.wait(Duration::from_millis(500));
                let key = keys[random.below(keys.len() as u64) as usize];
                press(&mut r, key);
                for task in r.app.take_tasks() {
                    // These grant nothing, and a field for a new limit was opened by a key of its own.
                    let no = matches!(&task, Task::Send(c) if match &c.body {
                        CommandBody::Ask(AskCommand::Answer { reply, .. }) => match reply {
                            AskReply::Never | AskReply::Branch => true,
                            AskReply::Choice { answers } => answers[0].starts_with("No"),
                            _ => false,
                        },
                        _ => false,
                    });
                    let writes = name == "recorder" && matches!(task, Task::Job(..));
                    let bad = accident(&task).filter(|_| !no);
                    assert!(!writes && bad.is_none(), "{name}: {key}: {bad:?}");
                }
                if r.app.layers.len() != depth {
                    break;
                }
            }
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
    r.msg(Msg::Input(Input::Key(Chord::parse("y").unwrap().event())));
    assert!(!quits(&r) && r.screen().contains("Quit?"), "too early: {}", r.screen());
    r.wait(Duration::from_millis(401));
    r.msg(Msg::Input(Input::Key(Chord::parse("y").unwrap().event())));
    assert!(quits(&r));
    // The focus may be moved to the yes; Enter and Space do not press it.
    let mut r = fresh();
    r.run("wait 500; tab; enter; space; enter");
    assert!(!quits(&r) && r.screen().contains("press the key of the button"), "{}", r.screen());
    r.run("wait 401; y");
    assert!(quits(&r));
    // A word that is no answer begins the delay again.
    let mut r = fresh();
    r.run("wait 500; z; y");
    assert!(!quits(&r), "part of a word");
    r.run("wait 401; y");
    assert!(quits(&r));
    // It takes a no at once.
    let mut r = fresh();
    r.msg(Msg::Input(Input::Key(Chord::parse("n").unwrap().event())));
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
    let ask = crate::dialog::question::program::samples().swap_remove(0);
    r.event(tiller_protocol::EventBody::Ask(tiller_protocol::event::AskEvent::PermissionAsked { ask }));
    r.run("wait 1200; wait 500");
    assert!(r.screen().contains("Trust this folder?"), "{}", r.screen());
    r.clear().run("enter");
    let sent: Vec<String> = r.commands().iter().map(|c| format!("{c:?}")).collect();
    assert!(sent.iter().any(|c| c.contains("Declined")), "{sent:?}");
    assert!(!sent.iter().any(|c| c.contains("Never") || c.contains("Yes")), "{sent:?}");
}

#[test]
fn what_approves_decides_and_so_does_what_says_so() {
    let words = shipped::registry().words();
    for (_, spec) in words.actions() {
        assert!(spec.decides || !spec.yes, "{} approves", spec.action.0);
        assert_eq!(decides(words, spec.action), spec.decides, "{}", spec.action.0);
    }
    assert!(decides(words, Action("confirm.other")) && !decides(words, Action("confirm.next")));
}
