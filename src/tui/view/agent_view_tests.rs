//! Another agent on the screen, driven by the robot.

use tiller_protocol::event::{ReplyEvent, StateEvent, TurnEvent};
use tiller_protocol::{AgentState, AgentView, ChildView, Cost, Message, SendMode, SessionId};

use tiller_protocol::tree::TreeQuery;

use super::*;
use crate::model::conversation::script::Script;
use crate::scene::{changed, child, crew, says};
use crate::testing::Robot;

#[test]
fn an_agent_in_the_background_that_fails_is_told_once() {
    let mut r = Robot::new(80, 24);
    let view = |state, background| {
        let mut view = child("main/a1", "tests", state);
        view.child =
            Some(Box::new(ChildView { background, result: "no key".into(), ..ChildView::default() }));
        view
    };
    changed(&mut r, view(AgentState::Running, false));
    changed(&mut r, view(AgentState::Failed, false));
    assert!(!r.screen().contains("has failed"), "its parent was told: {}", r.screen());
    changed(&mut r, view(AgentState::Running, true));
    changed(&mut r, view(AgentState::Failed, true));
    changed(&mut r, view(AgentState::Failed, true));
    assert!(r.screen().contains("Agent a1 tests failed: no key"), "{}", r.screen());
    assert_eq!(r.app.model.notices.len(), 1);
}

fn snapshot(r: &mut Robot, agent: &str, said: &str) {
    let asked = r.asked(|c| matches!(c, CommandBody::Query(Query::Snapshot)));
    let mut script = Script::new();
    let entries = vec![script.user("the task"), {
        let block = tiller_protocol::Block::Text { text: said.into() };
        script.assistant(vec![block], tiller_protocol::StopReason::EndTurn)
    }];
    let EventBody::Reply(reply) = script.snapshot(entries, 0, false).body else { unreachable!() };
    r.of(agent, asked, EventBody::Reply(reply));
}

fn show(r: &mut Robot, agent: &str) {
    r.app.show_agent(&AgentId(agent.into()));
    r.run("wait 0");
}

#[test]
fn an_agent_is_opened_talked_to_and_left_and_main_goes_on() {
    let mut r = crew(118, 25);
    r.run("type for main").clear();
    show(&mut r, "main/a2");
    // With its tree, for the panel of its session.
    let tree = TreeQuery::Nodes { session: Some(SessionId(Default::default())) };
    let asked = [("main", Query::Tree { query: tree }), ("main/a2", Query::Snapshot)];
    let asked = asked.map(|(whom, query)| (whom.to_owned(), CommandBody::Query(query)));
    let asked = asked.each_ref().map(|(whom, body)| (whom.clone(), body));
    assert_eq!(r.addressed(), asked);
    snapshot(&mut r, "main/a2", "words of docs");
    let screen = r.screen();
    assert!(screen.contains("words of docs") && !screen.contains("words of main"), "{screen}");
    assert!(screen.contains("> a2 docs") && screen.contains("Message to a2 docs"), "{screen}");
    assert!(!screen.contains("for main"), "the draft is main's: {screen}");
    // It goes on live; what main says meanwhile is not here, and not lost.
    r.of("main/a2", None, EventBody::Turn(TurnEvent::TurnStarted {}));
    says(&mut r, "main/a2", "and more of docs");
    says(&mut r, "main", " and more of main");
    says(&mut r, "main/a1", "words of tests");
    let screen = r.screen();
    assert!(screen.contains("and more of docs") && !screen.contains("words of tests"), "{screen}");
    r.clear().run("type use short words; enter");
    let message = Message::text("use short words");
    let submit = CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer });
    assert_eq!(r.addressed(), [("main/a2".to_owned(), &submit)]);
    // Escape goes back and stops no agent; each view keeps its draft.
    r.clear().run("type for docs");
    assert!(r.footer().contains("Esc back to main"), "{}", r.footer());
    r.run("esc");
    assert!(r.commands().iter().all(|c| matches!(c, CommandBody::Query(_))), "{:?}", r.commands());
    let screen = r.screen();
    assert!(screen.contains("words of main and more of main") && screen.contains("for main"), "{screen}");
    show(&mut r, "main/a2");
    assert!(r.screen().contains("for docs"), "{}", r.screen());
    r.run("alt-0");
    assert!(r.app.model.shown.is_none());
}

#[test]
fn what_nobody_looks_at_draws_nothing() {
    let mut r = crew(118, 25);
    assert!(!r.app.due());
    for n in 0..1000 {
        let event = Event {
            seq: 1000 + n,
            time: r.app.model.now,
            session: SessionId(Default::default()),
            agent: AgentId("main/a1".into()),
            cause: None,
            body: EventBody::Turn(TurnEvent::TextDelta { text: "words ".into() }),
        };
        r.app.update(crate::app::msg::Msg::Engine(Box::new(event)));
        assert!(!r.app.due(), "event {n} of an agent that is not shown draws");
    }
    let view = child("main/a1", "tests", AgentState::Waiting);
    let body = EventBody::State(StateEvent::AgentChanged { view });
    let event = Event {
        seq: 3000,
        time: r.app.model.now,
        session: SessionId(Default::default()),
        agent: AgentId("main/a1".into()),
        cause: None,
        body,
    };
    r.app.update(crate::app::msg::Msg::Engine(Box::new(event)));
    assert!(r.app.due(), "its row changed");
}

#[test]
fn an_answer_reaches_the_composer_that_asked_though_another_is_shown() {
    let mut r = crew(118, 25);
    show(&mut r, "main/a1");
    r.clear().run("type first; enter");
    let id = r.sent()[0].0;
    r.run("esc");
    let notice = tiller_protocol::Notice::new(tiller_protocol::NoticeKind::User, "It has ended");
    r.of("main/a1", Some(id), EventBody::Reply(Box::new(ReplyEvent::ErrorReply { notice })));
    assert!(!r.screen().contains("first"), "not in main's composer: {}", r.screen());
    show(&mut r, "main/a1");
    assert!(r.screen().contains("first"), "it is back where it was written: {}", r.screen());
}

#[test]
fn commands_go_to_whom_they_are_for() {
    let mut r = crew(118, 25);
    show(&mut r, "main/a1");
    r.clear();
    let stop = CommandBody::Turn(TurnCommand::Interrupt { hard: false });
    let models = CommandBody::Query(Query::Models);
    r.app.effects(Owner::Shell, vec![Effect::send(stop), Effect::send(models)]);
    let home = CommandBody::Turn(TurnCommand::Continue);
    r.app.effects(Owner::Shell, vec![Effect::send_to(AgentId::main(), home)]);
    r.run("wait 0");
    let whom: Vec<String> = r.addressed().into_iter().map(|(to, _)| to).collect();
    assert_eq!(whom, ["main/a1", "main", "main"]);
}

#[test]
fn an_agent_without_a_conversation_is_not_opened() {
    let mut r = crew(80, 24);
    let mut view = child("main/a3", "later", AgentState::Queued);
    view.child = Some(Box::default());
    changed(&mut r, view);
    show(&mut r, "main/a3");
    assert!(r.app.model.shown.is_none() && r.screen().contains("a3 later has no conversation yet"));
    show(&mut r, "main/nobody");
    assert!(r.app.model.shown.is_none());
}

/// The view of an agent that waits in line says so, and what the agent will do, in place of the texts for newcomers.
#[test]
fn an_agent_without_a_word_tells_what_it_waits_for() {
    for (width, height) in [(118, 25), (80, 24)] {
        let mut r = crew(width, height);
        let mut queued = child("main/a3", "later", AgentState::Queued);
        if let Some(child) = &mut queued.child {
            child.task = "mend what is \u{1b}[31mbroken".into();
        }
        changed(&mut r, queued.clone());
        show(&mut r, "main/a3");
        let asked = r.asked(|c| matches!(c, CommandBody::Query(Query::Snapshot)));
        let EventBody::Reply(reply) = Script::new().snapshot(Vec::new(), 0, false).body else {
            unreachable!()
        };
        r.of("main/a3", asked, EventBody::Reply(reply));
        let screen = r.screen();
        for words in ["a3 later", "mend what is", "Queued.", "under [agents] in config.toml"] {
            assert!(screen.contains(words), "{words}: {screen}");
        }
        assert!(!screen.contains("a workbench") && !screen.contains('\u{1b}'), "{screen}");
        queued.state = AgentState::Running;
        changed(&mut r, queued);
        assert!(r.screen().contains("Just started"), "{}", r.screen());
    }
}

/// The first line tells what all of the work has cost, and that it is not all where a program does not tell.
#[test]
fn the_cost_of_the_session_holds_its_agents() {
    let cents = |n: f64| Some(Cost::from_usd(n));
    let mut r = crew(118, 25);
    changed(&mut r, AgentView { cost: cents(0.25), ..child("main/a1", "tests", AgentState::Done) });
    changed(&mut r, AgentView { cost: cents(0.5), ..child("main/a2", "docs", AgentState::Running) });
    let head = |r: &mut Robot| r.screen().lines().next().unwrap_or_default().to_owned();
    assert!(head(&mut r).contains("$0.75") && !head(&mut r).contains("+?"), "{}", head(&mut r));
    let usage = tiller_protocol::Usage { input: 10, ..Default::default() };
    changed(&mut r, AgentView { cost: None, usage, ..child("main/a3", "theirs", AgentState::Done) });
    assert!(head(&mut r).contains("$0.75+?"), "{}", head(&mut r));
    show(&mut r, "main/a2");
    let asked = r.asked(|c| matches!(c, CommandBody::Query(Query::Snapshot)));
    let EventBody::Reply(reply) = Script::new().snapshot(Vec::new(), 0, false).body else { unreachable!() };
    r.of("main/a2", asked, EventBody::Reply(reply));
    assert!(!head(&mut r).contains("$0.75"), "its own is not everybody's: {}", head(&mut r));
}

#[test]
fn another_session_brings_the_main_agent_back() {
    let mut r = crew(118, 25);
    show(&mut r, "main/a1");
    let EventBody::Reply(reply) = Script::new().snapshot(Vec::new(), 0, false).body else { unreachable!() };
    r.of("main", None, EventBody::Reply(reply));
    assert!(r.app.model.shown.is_none(), "its agents are others");
    assert!(r.app.agent_view.parked.is_empty());
}

#[test]
fn a_message_has_a_receipt_and_a_missed_one_comes_back() {
    let mut r = crew(118, 25);
    r.run("alt-3; j; s; type use short words; enter");
    let id = r.asked(|c| matches!(c, CommandBody::Turn(_)));
    let receipt = |r: &mut Robot, receipt| {
        r.of("main/a1", id, EventBody::State(StateEvent::Receipt { receipt }));
        r.screen()
    };
    let screen = receipt(&mut r, Receipt::Queued);
    assert!(
        screen.lines().any(|l| l.contains("a1 tests") && l.ends_with("queued"))
            && !screen.contains("Message to a1"),
        "{screen}"
    );
    let screen = receipt(&mut r, Receipt::Delivered { step: 5 });
    assert!(screen.contains("read at step 5"), "{screen}");
    // It stands in its conversation, too.
    show(&mut r, "main/a1");
    let screen = receipt(&mut r, Receipt::Delivered { step: 6 });
    assert!(screen.contains("Your message was delivered at step 6"), "{screen}");
    r.run("esc; alt-3; j; s; type and this; enter");
    let id = r.asked(|c| matches!(c, CommandBody::Turn(_)));
    let missed = Receipt::Missed { why: "it ended before".into() };
    r.of("main/a1", id, EventBody::State(StateEvent::Receipt { receipt: missed }));
    let screen = r.screen();
    assert!(
        screen.lines().any(|l| l.contains("a1 tests") && l.ends_with("missed"))
            && screen.contains("a1 tests did not read your message"),
        "{screen}"
    );
    r.run("esc; up").reply(ReplyEvent::HistoryReply { prompts: Vec::new() });
    r.run("up");
    assert!(r.screen().contains("and this"), "{}", r.screen());
}

/// `/goal` is for the agent on the screen, whose header shows it; the main one's is another.
#[test]
fn a_goal_is_that_of_the_agent_on_the_screen() {
    use tiller_protocol::command::GoalCommand;
    use tiller_protocol::{Goal, GoalCheck, GoalState, GoalView};
    let mut r = crew(118, 25);
    show(&mut r, "main/a1");
    snapshot(&mut r, "main/a1", "words of a1");
    let goal = Goal { text: "green".into(), check: GoalCheck::Judge, turns: 5, usd: None };
    let set = CommandBody::Goal(GoalCommand::Set { goal: goal.clone() });
    r.clear();
    r.app.send(set);
    r.run("wait 0");
    let sent = r.addressed();
    let to: Vec<&str> = sent.iter().map(|(whom, _)| whom.as_str()).collect();
    assert_eq!(to, ["main/a1"]);
    let view = GoalView { goal, state: GoalState::Working, done: 2, spent: None, last: String::new() };
    let changed = EventBody::State(StateEvent::GoalChanged { goal: Some(view) });
    r.of("main/a1", None, changed);
    assert!(r.screen().lines().next().unwrap().contains("goal 2/5"), "{}", r.screen());
    show(&mut r, "main");
    assert!(!r.screen().lines().next().unwrap().contains("goal"), "{}", r.screen());
}
