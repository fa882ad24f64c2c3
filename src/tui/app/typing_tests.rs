//! U11: typing without a look at the screen, at human speeds, while questions open.

use tiller_protocol::command::AskCommand;
use tiller_protocol::event::{AskEvent, StateEvent};
use tiller_protocol::{AgentId, AgentState, AgentView, Ask, AskBody, AskId, CommandBody, EventBody, SeqIds};

use super::*;
use crate::app::msg::Msg;
use crate::input::Input;
use crate::testing::{Random, Robot};

/// Words with letters that answer questions, alone and at the start of words.
const WORDS: &str =
    "yes no so or as try to 1 3 4 once always never run it out of here any y n a t s o you should not";

/// One of each kind of question.
fn questions() -> Vec<Ask> {
    let mut all = crate::dialog::question::program::samples();
    all.push(crate::dialog::question::clarify::granting_sample());
    let approval = crate::dialog::question::approval::sample_ask();
    let body = AskBody::Clarify {
        question: "Which one?".into(),
        choices: vec!["yes".into(), "no".into()],
        allow_freetext: true,
        multiple: false,
        default: None,
        decides: Vec::new(),
    };
    all.extend([Ask { body, ..approval.clone() }, approval]);
    let ids = SeqIds::default();
    all.iter_mut().for_each(|ask| ask.id = AskId::fresh(&ids, crate::testing::START));
    all
}

fn asked(r: &mut Robot, ask: &Ask) {
    let body = match &ask.body {
        AskBody::Permission(_) => AskEvent::PermissionAsked { ask: ask.clone() },
        _ => AskEvent::QuestionAsked { ask: ask.clone() },
    };
    r.event(EventBody::Ask(body));
}

fn press(r: &mut Robot, key: &str) {
    let key = if key == " " { "space" } else { key };
    r.msg(Msg::Input(Input::Key(Chord::parse(key).expect(key).event())));
}

/// Answers that were sent.
fn answers(r: &Robot) -> Vec<AskId> {
    let answer = |c: &CommandBody| match c {
        CommandBody::Ask(AskCommand::Answer { id, .. }) => Some(*id),
        _ => None,
    };
    r.commands().into_iter().filter_map(answer).collect()
}

/// A pause between two keys: within a word, between words, while thinking, at random moments.
fn pause(random: &mut Random) -> u64 {
    match random.below(20) {
        0 => 400 + random.below(1500),
        1 => 2000 + random.below(9000),
        2..5 => 200 + random.below(300),
        _ => 30 + random.below(170),
    }
}

/// The draft, however it is cut into rows.
fn draft(r: &Robot) -> String {
    let panel: &dyn std::any::Any =
        r.app.panel(crate::app::state::Owner::View(crate::panel::View::Composer)).unwrap();
    panel.downcast_ref::<crate::panel::composer::Composer>().unwrap().draft_text()
}

/// Questions open while a sentence is being written: none is answered, and the sentence is whole.
fn written_over(seed: u64, rounds: u64) {
    let mut random = Random(seed);
    let words: Vec<&str> = WORDS.split(' ').collect();
    for round in 0..rounds {
        let mut waiting = questions();
        let mut r = Robot::new([80, 118, 40][random.below(3) as usize], 24);
        // Begun, or sent a moment ago.
        let mut text = String::new();
        if random.below(2) == 0 {
            r.run("type x; enter").clear();
            r.wait(Duration::from_millis(random.below(1900)));
        } else {
            press(&mut r, "w");
            text.push('w');
        }
        let sentence: Vec<&str> = (0..14).map(|_| words[random.below(words.len() as u64) as usize]).collect();
        let mut begun = !text.is_empty();
        for c in sentence.join(" ").chars() {
            // Keys come at any moment, so questions do.
            let ms = if begun { pause(&mut random) } else { random.below(90) };
            let first = random.below(ms.max(1));
            r.wait(Duration::from_millis(first));
            if random.below(6) == 0 && !waiting.is_empty() {
                let next = random.below(waiting.len() as u64) as usize;
                asked(&mut r, &waiting.swap_remove(next));
            }
            r.wait(Duration::from_millis(ms - first));
            press(&mut r, c.encode_utf8(&mut [0; 4]));
            text.push(c);
            begun = true;
        }
        r.wait(Duration::from_millis(500));
        assert_eq!(answers(&r), [], "seed {seed}, round {round}: {text}\n{}", r.screen());
        assert_eq!(draft(&r), text, "seed {seed}, round {round}\n{}", r.screen());
        // A question is in sight.
        if waiting.len() < questions().len() {
            let open =
                r.app.folded_question().and_then(|id| r.app.model.questions.open.iter().find(|a| a.id == id));
            assert!(open.is_some(), "seed {seed}, round {round}\n{}", r.screen());
            let title = r.screen().lines().any(|l| l.contains("▲") && l.contains("Ctrl-X a answers"));
            assert!(title || r.app.is_folded_hidden(), "seed {seed}, round {round}\n{}", r.screen());
        }
    }
}

/// A question that is in sight is written into: nothing is answered when the second letter comes at once.
fn written_into(seed: u64, rounds: u64) {
    let mut random = Random(seed);
    let words: Vec<&str> = WORDS.split(' ').filter(|w| w.len() > 1).collect();
    for round in 0..rounds {
        for ask in questions() {
            // Letters filter a list: they are no draft.
            if matches!(&ask.body, AskBody::Clarify { decides, .. } if decides.is_empty()) {
                continue;
            }
            let mut r = Robot::new(80, 24);
            asked(&mut r, &ask);
            // Before it takes keys, and after.
            r.wait(Duration::from_millis(random.below(1200)));
            let sentence: Vec<&str> =
                (0..6).map(|_| words[random.below(words.len() as u64) as usize]).collect();
            let text = sentence.join(" ");
            for (n, c) in text.chars().enumerate() {
                press(&mut r, c.encode_utf8(&mut [0; 4]));
                let ms = if n == 0 { random.below(150) } else { pause(&mut random) };
                r.wait(Duration::from_millis(ms));
            }
            assert_eq!(answers(&r), [], "seed {seed}, round {round}: {text}\n{}", r.screen());
            assert_eq!(draft(&r), text, "seed {seed}, round {round}\n{}", r.screen());
            assert!(r.app.folded_question() == Some(ask.id), "{}", r.screen());
        }
    }
}

#[test]
fn u11_a_typist_at_human_speeds_answers_no_question() {
    for seed in [0x7171, 0x1234_5678] {
        written_over(seed, 12);
        written_into(seed, 2);
    }
}

#[test]
#[ignore = "the full form of the one above: a thousand sentences take minutes in a debug build"]
fn u11_whole_a_thousand_sentences() {
    written_over(0x1234_5678_9abc, 1000);
    written_into(0x1234_5678_9abc, 100);
}

fn approval() -> Ask {
    questions().into_iter().find(|a| matches!(a.body, AskBody::Permission(_))).unwrap()
}

/// The tests above can fail: one key answers an unfolded question.
#[test]
fn unfolded_by_an_action_or_a_click_it_takes_one_letter() {
    use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
    for click in [false, true] {
        let mut r = Robot::new(118, 25);
        r.run("type half a thought");
        asked(&mut r, &approval());
        assert!(r.words().contains("Ctrl-X a answers") && r.footer().contains("Esc later"), "{}", r.screen());
        r.run("wait 5000; alt-enter; type y; wait 5000");
        assert_eq!(
            (answers(&r), draft(&r).as_str()),
            (vec![], "half a thought\ny"),
            "keys that edit are the draft's"
        );
        if click {
            let row = r.screen().lines().position(|l| l.contains("wants to")).unwrap() as u16;
            let kind = MouseEventKind::Down(MouseButton::Left);
            let click = MouseEvent { kind, column: 9, row, modifiers: KeyModifiers::NONE };
            r.msg(Msg::Input(Input::Mouse(click)));
        } else {
            r.run("ctrl-x a");
        }
        assert!(
            r.app.folded_question().is_none() && !r.screen().contains("half a thought"),
            "{}",
            r.screen()
        );
        r.wait(Duration::from_millis(401));
        press(&mut r, "y");
        r.wait(Duration::from_millis(149));
        assert_eq!(answers(&r), []);
        r.wait(Duration::from_millis(1));
        assert_eq!(answers(&r), [approval().id]);
    }
}

/// A key that repeats is writing, whatever it is bound to.
#[test]
fn a_key_that_repeats_is_writing() {
    for key in ["y", "n", "j", "space", "?"] {
        let mut r = Robot::new(80, 24);
        asked(&mut r, &approval());
        r.wait(Duration::from_millis(500));
        for _ in 0..8 {
            press(&mut r, key);
            r.wait(Duration::from_millis(33));
        }
        r.wait(Duration::from_millis(500));
        let one = if key == "space" { " " } else { key };
        assert_eq!((answers(&r), draft(&r)), (vec![], one.repeat(8)), "{}", r.screen());
    }
    // Enter at once after a letter sends nothing and answers nothing.
    let mut r = Robot::new(80, 24);
    asked(&mut r, &approval());
    r.wait(Duration::from_millis(500));
    ["y", "enter"].iter().for_each(|key| press(&mut r, key));
    r.wait(Duration::from_millis(5000));
    assert!(r.commands().is_empty() && draft(&r) == "y", "{:?}\n{}", r.commands(), r.screen());
}

/// Those that wait behind it open unfolded, until a letter reaches the draft.
#[test]
fn those_behind_an_unfolded_question_take_keys_too() {
    let mut r = Robot::new(118, 25);
    r.run("type half a thought");
    let all: Vec<Ask> = questions().into_iter().take(4).collect();
    all.iter().for_each(|a| asked(&mut r, a));
    r.run("ctrl-x a");
    let top = |r: &Robot| r.app.layers.last().and_then(|l| l.question(&r.app.model));
    close(&mut r, all[0].id);
    assert_eq!(top(&r), Some(all[1].id), "{}", r.screen());
    // A letter comes too soon.
    press(&mut r, "y");
    assert_eq!((top(&r), r.app.folded_question()), (None, Some(all[1].id)), "{}", r.screen());
    assert_eq!(draft(&r), "half a thoughty");
    close(&mut r, all[1].id);
    assert_eq!((top(&r), r.app.folded_question()), (None, Some(all[2].id)), "{}", r.screen());
    assert_eq!(answers(&r), []);
}

/// Escape is "later" in every question; what was put aside comes back by itself.
#[test]
fn what_was_put_aside_comes_back_when_a_pane_is_left_and_when_the_turn_waits() {
    let shown = |r: &Robot| r.app.dialogs().any(|l| l.question(&r.app.model).is_some());
    for ask in questions() {
        let ask = Ask { agent: AgentId::main(), ..ask };
        // "Not now" of the question about trust is the answer until the next start.
        if matches!(ask.body, AskBody::Trust { .. }) {
            continue;
        }
        let mut r = Robot::new(118, 25);
        asked(&mut r, &ask);
        assert!(r.footer().contains("Esc later"), "{}", r.screen());
        r.run("wait 500; esc; wait 5000");
        assert!(!shown(&r) && answers(&r).is_empty(), "{}", r.screen());
        assert!(r.screen().contains("Waiting for your answer (Ctrl-X a)"), "{}", r.screen());
        r.run("alt-3; wait 5000");
        assert!(!shown(&r), "{}", r.screen());
        r.run("esc");
        assert!(shown(&r), "a pane was left\n{}", r.screen());
        r.run("wait 500; esc");
        assert!(!shown(&r));
        let row = |state| AgentView { id: AgentId::main(), state, ..AgentView::default() };
        for state in [AgentState::Running, AgentState::Waiting] {
            r.event(EventBody::State(StateEvent::AgentChanged { view: row(state) }));
        }
        assert!(shown(&r), "the turn waits\n{}", r.screen());
        // Escape does the same to a folded question.
        r.run("esc; type words");
        r.event(EventBody::State(StateEvent::AgentChanged { view: row(AgentState::Running) }));
        r.event(EventBody::State(StateEvent::AgentChanged { view: row(AgentState::Waiting) }));
        assert_eq!(r.app.folded_question(), Some(ask.id), "{}", r.screen());
        r.run("esc");
        assert!(!shown(&r) && draft(&r) == "words" && answers(&r).is_empty(), "{}", r.screen());
    }
}

/// A dialog over a question is answered: the next key was not meant for the question.
#[test]
fn a_confirmation_over_a_question_does_not_hand_its_key_on() {
    let quit = || Box::new(crate::dialog::confirm::Confirm::new("Quit?", "", "quit", Vec::new()));
    for key in ["n", "y", "enter"] {
        let mut r = Robot::new(80, 24);
        asked(&mut r, &approval());
        r.wait(Duration::from_millis(500));
        r.push(quit());
        r.wait(Duration::from_millis(500));
        // No frame lies between the two.
        for _ in 0..2 {
            r.app.update(Msg::Input(Input::Key(Chord::parse(key).unwrap().event())));
        }
        r.wait(Duration::from_millis(399));
        assert_eq!(answers(&r), [], "{key}: {}", r.screen());
    }
}

/// A question that was not waiting when the person turned to the others is none of the row, whatever else is aside.
#[test]
fn a_question_that_was_not_in_the_row_is_folded() {
    let mut r = Robot::new(118, 25);
    let all = questions();
    asked(&mut r, &all[1]);
    r.run("wait 500; esc; type half a thought");
    asked(&mut r, &all[2]);
    r.run("ctrl-x a; wait 401");
    let top = r.app.layers.last().and_then(|l| l.question(&r.app.model)).unwrap();
    close(&mut r, top);
    asked(&mut r, &all[3]);
    r.run("wait 401; enter; wait 500; type s; wait 500");
    assert_eq!(answers(&r), [], "{}", r.screen());
    assert!(draft(&r).ends_with('s') && r.app.folded_question().is_some(), "{}", r.screen());
}

fn close(r: &mut Robot, id: AskId) {
    let reply = tiller_protocol::AskReply::Declined;
    r.event(EventBody::Ask(AskEvent::QuestionAnswered { id, reply }));
}

/// A field in a question, below a confirmation and behind a pause, is not sent by the key for another one.
#[test]
fn a_field_is_not_sent_by_the_enter_of_a_confirmation() {
    let mut r = Robot::new(80, 24);
    asked(&mut r, &approval());
    r.run("wait 500; e; type  --force");
    r.push(Box::new(crate::dialog::confirm::Confirm::new("Quit?", "", "quit", Vec::new())));
    r.wait(Duration::from_millis(500));
    ["enter", "enter"].iter().for_each(|key| press(&mut r, key));
    assert_eq!(answers(&r), [], "{}", r.screen());
    // It is withdrawn while the person writes: what follows is no answer to the next one.
    let mut r = Robot::new(80, 24);
    let all = questions();
    asked(&mut r, &approval());
    r.run("wait 500; c; type no, because it would");
    asked(&mut r, &all[1]);
    close(&mut r, approval().id);
    r.run("wait 500; type s; wait 500");
    assert_eq!((answers(&r), draft(&r).as_str()), (vec![], "s"), "{}", r.screen());
}

/// A question over another dialog: what is typed at it is no command of that dialog, and the question stays.
#[test]
fn what_is_typed_at_a_question_over_a_dialog_reaches_no_dialog() {
    let mut r = Robot::new(118, 25);
    r.run("ctrl-p");
    let below = r.app.layers.len();
    asked(&mut r, &approval());
    r.app.open_this(approval().id);
    for key in ["s", "t", "o", "p", " ", "p", "k"] {
        press(&mut r, key);
        r.wait(Duration::from_millis(120));
    }
    assert_eq!((answers(&r), r.app.layers.len()), (vec![], below + 1), "{}", r.screen());
    assert_eq!(draft(&r), "stop pk");
    r.run("esc");
    assert!(r.screen().contains("Palette") && r.app.layers.len() == below, "{}", r.screen());
}

/// Text is kept as it was written, whatever its letters do in an empty composer or in vim mode.
#[test]
fn what_is_written_at_a_question_is_kept_literally() {
    let ui = tiller_config::schema::Ui { keymap: "vim".into(), ..tiller_config::schema::Ui::default() };
    for mut r in [Robot::new(80, 24), Robot::with(80, 24, ui)] {
        r.run("esc");
        asked(&mut r, &approval());
        r.wait(Duration::from_millis(100));
        press(&mut r, "?");
        assert_eq!((draft(&r).as_str(), r.app.layers.len()), ("?", 0), "{}", r.screen());
    }
    // A paste at a question with listed answers only.
    let mut r = Robot::new(80, 24);
    let mut ask = questions().into_iter().find(|a| matches!(a.body, AskBody::Clarify { .. })).unwrap();
    let AskBody::Clarify { allow_freetext, decides, .. } = &mut ask.body else { unreachable!() };
    (*allow_freetext, *decides) = (false, Vec::new());
    asked(&mut r, &ask);
    r.run("wait 500; paste some words");
    assert_eq!(draft(&r), "some words", "{}", r.screen());
}

/// Without room beside a pane a folded question stands in the header, costs nothing, and opens in a pause.
#[test]
fn a_folded_question_without_room_opens_in_a_pause() {
    let ui = tiller_config::schema::Ui { approval_timeout: 60, ..tiller_config::schema::Ui::default() };
    let mut r = Robot::with(80, 24, ui);
    r.run("alt-3; wait 5000");
    press(&mut r, "j");
    asked(&mut r, &approval());
    assert!(r.app.is_folded_hidden() && r.screen().contains("▲ 1"), "{}", r.screen());
    for _ in 0..4 {
        assert!(r.app.sleep().is_none_or(|t| t > Duration::ZERO), "it wakes for nothing");
        r.wait(Duration::from_millis(400));
    }
    r.wait(Duration::from_millis(500));
    assert!(r.app.layers.len() == 1 && r.screen().contains("wants to"), "{}", r.screen());
}
