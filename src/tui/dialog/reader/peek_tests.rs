//! Peeking at an agent, and the keys for the next agent and the next that needs the person.

use tiller_protocol::event::{StateEvent, TurnEvent};

use super::*;
use crate::model::conversation::script::Script;
use crate::scene::{self, changed, child, says};
use crate::testing::Robot;

/// Two agents at work, and one that is done.
fn crew(width: u16, height: u16) -> Robot {
    let mut r = scene::crew(width, height);
    changed(&mut r, child("main/a3", "old", AgentState::Done));
    r
}

/// Requests for this agent's conversation.
fn snapshots(r: &Robot, agent: &str) -> Vec<tiller_protocol::CommandId> {
    let all = r.addressed().into_iter().zip(r.sent());
    let fits = |to: &str, c: &CommandBody| to == agent && matches!(c, CommandBody::Query(Query::Snapshot));
    all.filter(|((to, c), _)| fits(to, c)).map(|(_, (id, _))| id).collect()
}

/// Answers the last request for a conversation.
fn conversation(r: &mut Robot, agent: &str, said: &str) {
    let asked = snapshots(r, agent).pop();
    let mut script = Script::new();
    let block = tiller_protocol::Block::Text { text: said.into() };
    let entries =
        vec![script.user("the task"), script.assistant(vec![block], tiller_protocol::StopReason::EndTurn)];
    let EventBody::Reply(mut reply) = script.snapshot(entries, 0, true).body else { unreachable!() };
    if let ReplyEvent::SnapshotReply { snapshot } = reply.as_mut() {
        snapshot.seq = 0;
    }
    r.of(agent, asked, EventBody::Reply(reply));
}

#[test]
fn peeking_shows_an_agent_live_and_the_same_key_or_escape_goes_back() {
    for (width, height) in [(40, 12), (60, 16), (80, 24), (118, 32), (220, 60)] {
        for back in ["alt-p", "esc", "ctrl-x P"] {
            let mut r = crew(width, height);
            r.run("type a draft; alt-p");
            conversation(&mut r, "main/a1", "words of tests");
            let screen = r.screen();
            assert!(screen.contains("words of tests") && screen.contains("Peek at a1"), "{screen}");
            assert!(r.app.model.shown.is_none() && r.app.screen.focus == View::Composer);
            // It goes on; the others do not appear in it.
            r.of("main/a1", None, EventBody::Turn(TurnEvent::TurnStarted {}));
            says(&mut r, "main/a1", "and more of tests");
            says(&mut r, "main/a2", "words of docs");
            says(&mut r, "main", " and more of main");
            let screen = r.screen();
            assert!(screen.contains("and more of tests") && !screen.contains("words of docs"), "{screen}");
            r.run(back);
            let screen = r.screen();
            assert!(r.app.layers.is_empty() && r.app.model.shown.is_none(), "{back}: {screen}");
            assert!(screen.contains("a draft") && screen.contains("and more of main"), "{screen}");
            assert!(r.app.model.agent.turn.running, "nothing was stopped");
        }
    }
}

/// A frame is due for what the look shows, and not for what goes on elsewhere.
#[test]
fn agents_that_are_not_looked_at_draw_nothing() {
    let mut r = crew(118, 32);
    r.run("alt-p");
    conversation(&mut r, "main/a1", "words of tests");
    r.run("wait 1");
    for (seq, agent, drawn) in [(1000, "main/a2", false), (1001, "main/a1", true)] {
        let event = Event {
            seq,
            time: crate::testing::START,
            session: tiller_protocol::SessionId(Default::default()),
            agent: AgentId(agent.into()),
            cause: None,
            body: EventBody::Turn(TurnEvent::TextDelta { text: "more".into() }),
        };
        assert!(!r.app.due());
        r.app.update(crate::app::msg::Msg::Engine(Box::new(event)));
        assert_eq!(r.app.due(), drawn, "{agent}");
    }
}

#[test]
fn what_is_typed_while_peeking_is_for_the_draft() {
    let mut r = crew(80, 24);
    r.run("type a draft; alt-p");
    conversation(&mut r, "main/a1", "words of tests");
    r.run("type  and a word");
    assert!(r.app.layers.is_empty() && r.screen().contains("a draft and a word"), "{}", r.screen());
    r.run("alt-p; paste  pasted");
    assert!(r.app.layers.is_empty() && r.screen().contains("a draft and a word pasted"), "{}", r.screen());
    let sent = |c: &&CommandBody| !matches!(c, CommandBody::Query(_));
    assert_eq!(r.commands().iter().filter(|c| sent(c)).count(), 0);
}

#[test]
fn the_next_agent_while_peeking_and_enter_opens_it() {
    let mut r = crew(118, 32);
    r.run("alt-p");
    conversation(&mut r, "main/a1", "words of tests");
    r.run("alt-n");
    conversation(&mut r, "main/a2", "words of docs");
    let screen = r.screen();
    assert!(screen.contains("words of docs") && !screen.contains("words of tests"), "{screen}");
    r.run("enter");
    assert_eq!(r.app.model.shown_agent(), AgentId("main/a2".into()));
    assert!(r.app.layers.is_empty());
    // From there the main agent is one of the others.
    r.run("alt-p");
    assert!(r.screen().contains("Peek at main"), "{}", r.screen());
    r.run("alt-n");
    assert!(r.screen().contains("Peek at a1 tests"), "{}", r.screen());
}

#[test]
fn it_looks_at_the_selected_agent_then_at_one_that_needs_the_person() {
    let mut r = crew(118, 32);
    changed(&mut r, child("main/a2", "docs", AgentState::Waiting));
    r.run("alt-p");
    assert!(r.screen().contains("Peek at a2 docs"), "{}", r.screen());
    r.run("alt-p; alt-3");
    crate::scene::running(&mut r);
    let chosen = |r: &Robot| {
        let panel: &dyn std::any::Any = r.app.panel(Owner::View(View::Agents)).unwrap();
        panel.downcast_ref::<Agents>().unwrap().selected(&r.app.model)
    };
    for _ in 0..8 {
        if chosen(&r) == Some(AgentId("main/a1".into())) {
            break;
        }
        r.run("down");
    }
    r.run("alt-p");
    assert!(r.screen().contains("Peek at a1 tests"), "{}", r.screen());
    r.run("esc");
    assert_eq!(r.app.screen.focus, View::Agents);
}

#[test]
fn an_agent_that_cannot_be_read_says_why_and_none_at_all_too() {
    let mut r = Robot::new(80, 24);
    for key in ["alt-p", "alt-n"] {
        r.run(key);
        assert!(
            r.app.layers.is_empty() && r.screen().contains("No other agent has a conversation"),
            "{}",
            r.screen()
        );
        r.run("wait 9000");
    }
    let mut r = crew(80, 24);
    r.run("alt-p");
    let asked = r.asked(|c| matches!(c, CommandBody::Query(Query::Snapshot)));
    let notice = tiller_protocol::Notice::new(tiller_protocol::NoticeKind::User, "the session is gone");
    r.of("main/a1", asked, EventBody::Reply(Box::new(ReplyEvent::ErrorReply { notice })));
    assert!(r.screen().contains("the session is gone"), "{}", r.screen());
}

#[test]
fn the_next_agent_goes_round_those_at_work() {
    for (width, height) in [(80, 24), (118, 32)] {
        let mut r = crew(width, height);
        let at = |r: &Robot| r.app.model.shown_agent().0;
        r.run("type a draft");
        let visited: Vec<String> = (0..3).map(|_| at(r.run("alt-n"))).collect();
        assert_eq!(visited, ["main/a1", "main/a2", "main"]);
        assert!(r.screen().contains("a draft"), "{}", r.screen());
        for agent in ["main/a1", "main/a2"] {
            let label = if agent.ends_with('1') { "tests" } else { "docs" };
            changed(&mut r, child(agent, label, AgentState::Done));
        }
        let visited: Vec<String> = (0..4).map(|_| at(r.run("ctrl-x N"))).collect();
        assert_eq!(visited, ["main/a1", "main/a2", "main/a3", "main"], "where none is at work");
    }
}

#[test]
fn the_next_that_needs_the_person_is_each_question_in_turn() {
    for (width, height, from) in [(80, 24, ""), (118, 32, ""), (118, 32, "alt-3")] {
        let mut r = crew(width, height);
        scene::ask(&mut r, 1);
        scene::ask(&mut r, 2);
        changed(&mut r, child("main/a1", "tests", AgentState::Waiting));
        let on_top = |r: &Robot| r.app.layers.last().and_then(|l| l.question(&r.app.model));
        r.run("esc; esc; wait 3000");
        r.app.put_asks_aside();
        r.app.redraw();
        r.run(from).run("alt-a");
        assert_eq!(on_top(&r), Some(scene::question(1).id), "{}", r.screen());
        r.run("alt-a");
        assert_eq!(on_top(&r), Some(scene::question(2).id), "{}", r.screen());
        r.run("alt-a");
        assert_eq!((on_top(&r), r.app.model.shown_agent().0.as_str()), (None, "main/a1"), "{}", r.screen());
        r.run("alt-a");
        assert_eq!(on_top(&r), Some(scene::question(1).id), "{}", r.screen());
        assert_eq!(r.app.model.questions.open.len(), 2, "none was answered");
    }
}

#[test]
fn what_is_typed_at_a_look_over_another_dialog_stays_out_of_the_draft() {
    let mut r = crew(118, 32);
    r.run("type a draft; f1; alt-p");
    conversation(&mut r, "main/a1", "words of tests");
    r.run("type xy");
    assert_eq!(r.app.layers.len(), 2, "{}", r.screen());
    r.run("esc; esc; esc");
    let screen = r.screen();
    assert!(r.app.layers.is_empty() && screen.contains("a draft"), "{screen}");
    assert!(!["draftx", "drafty"].iter().any(|t| screen.contains(t)), "{screen}");
}

#[test]
fn there_is_one_look_at_a_time() {
    let mut r = crew(118, 32);
    r.run("alt-p; f1; alt-p");
    let looks = |r: &Robot| {
        let scope = |l: &crate::app::state::Layer| l.panel().status(&r.app.model).scope == agent_view::PEEK;
        r.app.layers.iter().filter(|l| scope(l)).count()
    };
    assert_eq!((looks(&r), r.app.layers.len()), (1, 2), "{}", r.screen());
}

#[test]
fn what_was_missed_is_loaded_again() {
    let lagged = || EventBody::State(StateEvent::Lagged { missed: 4 });
    let moved =
        || EventBody::State(StateEvent::HeadMoved { head: None, draft: None, branch: Default::default() });
    for (agent, body) in [("main", lagged()), ("main/a2", lagged()), ("main/a1", moved())] {
        let mut r = crew(118, 32);
        r.run("alt-p");
        conversation(&mut r, "main/a1", "words of tests");
        r.clear().of(agent, None, body);
        assert!(r.screen().contains("words of tests"), "{}", r.screen());
        conversation(&mut r, "main/a1", "words after the gap");
        assert!(r.screen().contains("words after the gap"), "{agent}: {}", r.screen());
    }
}

#[test]
fn a_look_at_main_leaves_what_is_loaded_of_it() {
    let mut r = crew(118, 32);
    r.app.show_agent(&AgentId("main/a1".into()));
    r.run("wait 0; alt-p").clear().run("alt-n");
    let screen = r.screen();
    assert!(screen.contains("Peek at main") && screen.contains("words of main"), "{screen}");
    assert!(snapshots(&r, "main").is_empty(), "{:?}", r.commands());
    says(&mut r, "main", " and more of main");
    assert!(r.screen().contains("words of main and more of main"), "{}", r.screen());
}

#[test]
fn it_has_a_place_on_a_screen_of_any_size() {
    let mut r = crew(118, 32);
    r.app.model.window.screen = (u16::MAX, u16::MAX);
    let place = Peek::new(AgentId("main/a1".into()), true).placement(80, &r.app.model);
    assert_eq!(place, Placement::Center { width: WIDEST, height: TALLEST });
}
