//! The queue, driven by the robot.

use tiller_protocol::event::StateEvent;
use tiller_protocol::{Attachment, IdSource, SeqIds};

use super::*;
use crate::testing::{Robot, START};

/// Messages that wait while a turn runs.
fn wait(r: &mut Robot, messages: &[(&str, SendMode)]) -> Vec<Queued> {
    crate::scene::running(r);
    let ids = SeqIds::default();
    let queue: Vec<Queued> = messages
        .iter()
        .map(|(text, mode)| Queued {
            state: QueuedState::Accepted,
            ..Queued::new(QueueId(ids.next(START)), Message::text(*text), *mode)
        })
        .collect();
    changed(r, &queue);
    r.clear();
    queue
}

fn changed(r: &mut Robot, queue: &[Queued]) {
    r.event(EventBody::State(StateEvent::QueueChanged { queue: queue.to_vec() }));
}

/// The engine did what was asked for last.
fn confirmed(r: &mut Robot, queue: &[Queued]) {
    let id = r.asked(|c| matches!(c, CommandBody::Queue(_)));
    r.cause(id, EventBody::State(StateEvent::QueueChanged { queue: queue.to_vec() }));
}

fn sent(r: &Robot) -> Vec<QueueCommand> {
    r.commands()
        .into_iter()
        .filter_map(|c| match c {
            CommandBody::Queue(q) => Some(q.clone()),
            _ => None,
        })
        .collect()
}

const THREE: [(&str, SendMode); 3] =
    [("first of all", SendMode::Steer), ("then this", SendMode::Queue), ("at last that", SendMode::Queue)];

#[test]
fn looks_well_and_the_footer_names_its_keys() {
    let mut r = Robot::new(118, 25);
    wait(&mut r, &THREE);
    r.run("ctrl-x j");
    insta::assert_snapshot!("queue_at_118x25", r.screen());
    r.run("size 80x24; e");
    insta::assert_snapshot!("queue_at_80x24", r.screen());
}

#[test]
fn every_key_of_the_queue_does_what_it_says() {
    let mut r = Robot::new(80, 24);
    let q = wait(&mut r, &THREE);
    r.run("ctrl-x j");
    for (keys, want) in [
        ("J", QueueCommand::Move { id: q[0].id, to: 1 }),
        ("down; K", QueueCommand::Move { id: q[1].id, to: 0 }),
        ("s", QueueCommand::Mode { id: q[1].id, mode: SendMode::Steer }),
        ("up; a", QueueCommand::Mode { id: q[0].id, mode: SendMode::Queue }),
        ("!", QueueCommand::Mode { id: q[0].id, mode: SendMode::Now }),
        ("e; ctrl-u; type other; enter", QueueCommand::Edit { id: q[0].id, message: Message::text("other") }),
        ("x", QueueCommand::Remove { id: q[0].id }),
    ] {
        r.clear().run(keys);
        assert_eq!(sent(&r), [want], "{keys}\n{}", r.screen());
    }
    // At the ends nothing is sent.
    r.clear().run("K; G; J");
    assert!(sent(&r).is_empty());
}

#[test]
fn the_chosen_message_stays_chosen_and_an_empty_queue_closes() {
    let mut r = Robot::new(80, 24);
    let q = wait(&mut r, &THREE);
    r.run("ctrl-x j; down");
    confirmed(&mut r, &[q[2].clone(), q[0].clone(), q[1].clone()]);
    r.run("x");
    assert_eq!(sent(&r), [QueueCommand::Remove { id: q[1].id }], "it moved, and is still the chosen one");
    changed(&mut r, &[q[0].clone()]);
    r.clear().run("s");
    assert!(sent(&r).is_empty(), "it steers already");
    changed(&mut r, &[]);
    assert!(r.app.layers.is_empty(), "{}", r.screen());
}

#[test]
fn attachments_stay_with_their_message() {
    let mut r = Robot::new(80, 24);
    let mut q = wait(&mut r, &THREE[..1]);
    let paste = Attachment::Paste { label: "[paste 1: 9 lines]".into(), text: "x\n".repeat(9).into() };
    q[0].message = Message {
        text: "see [paste 1: 9 lines]".into(),
        attachments: vec![paste.clone()],
        ..Message::default()
    };
    changed(&mut r, &q);
    r.run("ctrl-x j; e; type  please; enter");
    let message = Message {
        text: "see [paste 1: 9 lines] please".into(),
        attachments: vec![paste],
        ..Message::default()
    };
    assert_eq!(sent(&r), [QueueCommand::Edit { id: q[0].id, message }]);
}

#[test]
fn words_for_a_message_that_has_gone_out_are_not_lost() {
    let mut r = Robot::new(80, 24);
    wait(&mut r, &THREE[..1]);
    r.run("ctrl-x j; e; type  and more; enter");
    let id = r.asked(|c| matches!(c, CommandBody::Queue(_)));
    changed(&mut r, &[]);
    let notice = Notice::new(NoticeKind::User, "this message is no longer waiting");
    r.cause(id, EventBody::Reply(Box::new(ReplyEvent::ErrorReply { notice })));
    assert!(r.screen().contains("no longer waiting"), "{}", r.screen());
    r.run("esc; up");
    r.reply(ReplyEvent::HistoryReply { prompts: vec![] });
    assert!(r.screen().contains("first of all and more"), "{}", r.screen());
}

/// Between "take it back" and the engine's word it could still be sent: it must not be in both places.
#[test]
fn a_message_taken_back_appears_only_when_the_engine_has_let_it_go() {
    let mut r = Robot::new(80, 24);
    let q = wait(&mut r, &THREE);
    r.run("up");
    assert_eq!(sent(&r), [QueueCommand::Remove { id: q[2].id }]);
    let typed = |r: &Robot| r.screen().lines().rev().take(2).any(|l| l.contains("at last that"));
    assert!(!typed(&r), "{}", r.screen());
    r.run("enter; up");
    assert_eq!(r.commands().len(), 1, "nothing is sent, and nothing is asked for twice");
    // Another change of the queue says nothing about it.
    changed(&mut r, &[q[2].clone(), q[0].clone(), q[1].clone()]);
    assert!(!typed(&r));
    confirmed(&mut r, &q[..2]);
    assert!(typed(&r), "{}", r.screen());
}

#[test]
fn a_message_that_was_faster_stays_sent_and_is_not_typed() {
    let mut r = Robot::new(80, 24);
    wait(&mut r, &THREE[..1]);
    r.run("up");
    let id = r.asked(|c| matches!(c, CommandBody::Queue(_)));
    changed(&mut r, &[]);
    let notice = Notice::new(NoticeKind::User, "this message is no longer waiting");
    r.cause(id, EventBody::Reply(Box::new(ReplyEvent::ErrorReply { notice })));
    r.clear().run("enter");
    assert!(r.commands().is_empty(), "the composer is empty");
}

#[test]
fn what_was_typed_meanwhile_is_not_overwritten() {
    let mut r = Robot::new(80, 24);
    wait(&mut r, &THREE[..1]);
    r.run("up; type new words");
    confirmed(&mut r, &[]);
    assert!(r.screen().contains("new words"));
    r.run("ctrl-x p");
    assert!(r.screen().contains("first of all"), "{}", r.screen());
}

/// A crash between the two: what an earlier process took back is there, and what it did not is not.
#[test]
fn a_crash_while_taking_back_loses_and_doubles_nothing() {
    use crate::model::conversation::script::Script;
    for gone in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("draft.json");
        let make = || {
            let mut r = Robot::new(80, 24);
            r.app.model.environment.folders.draft = Some(path.clone());
            r.app.start();
            r.size(80, 24);
            r
        };
        let mut r = make();
        let q = wait(&mut r, &THREE[..1]);
        r.run("up");
        drop(r);
        let mut r = make();
        let mut script = Script::new();
        let mut event = script.snapshot(Vec::new(), 0, false);
        if let EventBody::Reply(reply) = &mut event.body
            && let ReplyEvent::SnapshotReply { snapshot } = reply.as_mut()
            && !gone
        {
            snapshot.queue = q;
        }
        r.msg(crate::app::msg::Msg::Engine(Box::new(event)));
        r.clear().run("enter");
        let submitted = r.commands().iter().filter(|c| matches!(c, CommandBody::Turn(_))).count();
        assert_eq!(submitted, usize::from(gone), "gone: {gone}\n{}", r.screen());
    }
}

#[test]
fn a_click_on_the_waiting_lines_opens_the_queue_and_one_in_it_chooses() {
    use crossterm::event::{KeyModifiers, MouseButton, MouseEventKind};
    let mut r = Robot::new(80, 24);
    let q = wait(&mut r, &THREE);
    let click = |r: &mut Robot, text: &str| {
        let row = r.screen().lines().position(|l| l.contains(text)).unwrap() as u16;
        for kind in [MouseEventKind::Down(MouseButton::Left), MouseEventKind::Up(MouseButton::Left)] {
            r.msg(crate::app::msg::Msg::Input(crate::input::Input::Mouse(MouseEvent {
                kind,
                column: 12,
                row,
                modifiers: KeyModifiers::NONE,
            })));
        }
    };
    click(&mut r, "then this");
    assert_eq!(r.app.layers.len(), 1, "{}", r.screen());
    click(&mut r, "queue  at");
    r.run("x");
    assert_eq!(sent(&r), [QueueCommand::Remove { id: q[2].id }]);
}

/// Low screens have no lines for it: the header says how many wait, and the same key opens them.
#[test]
fn on_a_low_screen_the_queue_folds_into_the_status_line() {
    for (w, h) in [(40, 12), (80, 15), (118, 18)] {
        let mut r = Robot::new(w, h);
        wait(&mut r, &THREE);
        let screen = r.screen();
        assert!(!screen.contains("first of all"), "{screen}");
        assert!(screen.contains("queue 3"), "{w}x{h}\n{screen}");
        r.run("ctrl-x j");
        assert!(r.screen().contains("first of all"), "{w}x{h}\n{}", r.screen());
    }
}

#[test]
fn a_message_that_goes_out_while_it_is_changed_is_neither_lost_nor_sent_twice() {
    for (typed, history) in [("type  and more", true), ("left", false)] {
        let mut r = Robot::new(80, 24);
        let queue = wait(&mut r, &THREE);
        r.run("ctrl-x j; e").run(typed);
        changed(&mut r, &queue[1..]);
        let screen = r.words();
        assert!(screen.contains("was already sent unchanged"), "{screen}");
        assert_eq!(screen.contains("composer's history"), history, "{screen}");
        r.run("enter");
        let edits = sent(&r).into_iter().filter(|c| matches!(c, QueueCommand::Edit { .. })).count();
        assert_eq!(edits, 0, "{typed}");
        r.run("esc; esc");
        // All of it: the composer is empty, and Up brings what waits or was changed.
        assert_eq!(r.app.model.agent.queue.len(), 2);
    }
}
