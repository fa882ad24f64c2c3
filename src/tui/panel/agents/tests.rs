//! The agents panel, driven by the robot.

use tiller_protocol::event::{StateEvent, ToolEvent, TurnEvent};
use tiller_protocol::{Cost, EventBody, ModelRef, ProcessRow, Time, Usage};

use tiller_protocol::command::TurnCommand;
use tiller_protocol::{AgentState, AgentView};

use super::*;
use crate::testing::{Robot, START};

fn agent(id: &str, parent: Option<&str>, state: AgentState) -> AgentView {
    AgentView {
        id: AgentId(id.into()),
        parent: parent.map(|p| AgentId(p.into())),
        label: id.rsplit('/').next().unwrap_or(id).into(),
        state,
        act: "edit src/client.rs".into(),
        model: ModelRef("vendor/model".into()),
        usage: Usage { input: 12_000, output: 900, ..Usage::default() },
        cost: Some(Cost::from_usd(0.31)),
        context: 82_000,
        window: Some(200_000),
        since: Some(Time(START.millis() - 125_000)).filter(|_| state == AgentState::Running),
        child: None,
    }
}

fn crew(r: &mut Robot) {
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    for view in [
        agent("main", None, AgentState::Running),
        agent("main/a1", Some("main"), AgentState::Running),
        agent("main/a2", Some("main"), AgentState::Waiting),
        agent("main/a1/b1", Some("main/a1"), AgentState::Done),
    ] {
        r.event(EventBody::State(StateEvent::AgentChanged { view }));
    }
    r.event(EventBody::Tool(ToolEvent::ToolStarted {
        call_id: "c1".into(),
        name: "terminal".into(),
        arguments: serde_json::json!({"command": "cargo test -p api"}),
        verb: "shell".into(),
        target: "cargo test -p api".into(),
    }));
}

fn sent(r: &Robot) -> Vec<TurnCommand> {
    let turn = |c: &CommandBody| match c {
        CommandBody::Turn(t) => Some(t.clone()),
        _ => None,
    };
    r.commands().into_iter().filter_map(turn).collect()
}

#[test]
fn looks_well_in_the_rail_and_alone() {
    let mut r = Robot::new(118, 25);
    crew(&mut r);
    insta::assert_snapshot!("agents_at_118x25", r.screen());
    r.run("size 80x24; alt-3");
    insta::assert_snapshot!("agents_at_80x24", r.screen());
}

#[test]
fn blocked_ones_come_first_and_children_below_their_parent() {
    let mut r = Robot::new(80, 24);
    crew(&mut r);
    let what = rows(&r);
    let agent = |id: &str| RowTarget::Agent(AgentId(id.into()));
    let heading = || RowTarget::Heading;
    let want = [
        agent("main"),
        RowTarget::Tool("c1".into()),
        heading(),
        agent("main/a2"),
        heading(),
        agent("main/a1"),
        RowTarget::Finished,
        agent("main/a1/b1"),
    ];
    assert_eq!(what, want);
    // Parents that go round in a circle hang nothing up.
    r.app.model.crew.agents[0].parent = Some(AgentId("main/a1".into()));
    let _ = rows(&r);
}

/// Returns what the rows stand for, with the agents that have ended.
fn rows(r: &Robot) -> Vec<RowTarget> {
    let style = ListStyle { finished: Some(true), ..ListStyle::default() };
    AgentTree::of(&r.app.model).list(&r.app.model, 80, style).what
}

/// Agents: twelve done, two failed, one running, one waiting.
fn crowd(r: &mut Robot) {
    tell(r, agent("main", None, AgentState::Running));
    for n in 1..=12 {
        tell(r, child(&format!("main/a{n}"), &format!("done{n}"), AgentState::Done));
    }
    tell(r, child("main/a13", "broken", AgentState::Failed));
    tell(r, child("main/a14", "busy", AgentState::Running));
    tell(r, child("main/a15", "asking", AgentState::Waiting));
    tell(r, child("main/a16", "later", AgentState::Queued));
}

#[test]
fn groups_stand_in_the_order_of_what_needs_the_person_and_the_finished_are_folded_with_a_count() {
    let mut r = Robot::new(118, 25);
    crowd(&mut r);
    r.run("alt-3; +; +");
    let screen = r.screen();
    let at = |word: &str| screen.find(word).unwrap_or_else(|| panic!("no {word}: {screen}"));
    for pair in ["Needs you 1", "asking", "Running 1", "busy", "Waiting 1", "later", "Finished 13  1 failed"]
        .windows(2)
    {
        assert!(at(pair[0]) < at(pair[1]), "{pair:?}: {screen}");
    }
    assert!(!screen.contains("done7") && !screen.contains("broken"), "{screen}");
    // The last row opens them, what failed first, and folds them again.
    r.run("G; enter");
    let screen = r.screen();
    let at = |word: &str| screen.find(word).unwrap_or_else(|| panic!("no {word}: {screen}"));
    assert!(at("broken") < at("done1 "), "{screen}");
    r.run("enter");
    assert!(!r.screen().contains("done7") && !r.screen().contains("broken"), "{}", r.screen());
}

#[test]
fn while_no_other_is_there_the_finished_are_shown_and_a_selected_one_leaves_no_other_selected() {
    let mut r = Robot::new(118, 25);
    tell(&mut r, agent("main", None, AgentState::Idle));
    tell(&mut r, child("main/a1", "tests", AgentState::Running));
    tell(&mut r, child("main/a2", "docs", AgentState::Running));
    r.run("alt-3; +; +; j");
    // The selected one ends: nothing is done to the other in its place.
    tell(&mut r, child("main/a1", "tests", AgentState::Done));
    r.clear().run("k; k");
    assert_eq!(crew_commands(&r), [], "{}", r.screen());
    assert!(r.screen().contains("· a1 tests") || r.screen().contains("✓ a1 tests"), "{}", r.screen());
    tell(&mut r, child("main/a2", "docs", AgentState::Done));
    assert!(r.screen().contains("a1 tests") && r.screen().contains("Finished 2"), "{}", r.screen());
    r.run("g; j; enter");
    assert_eq!(r.app.model.shown_agent(), AgentId("main/a1".into()), "{}", r.screen());
}

#[test]
fn the_selection_never_rests_on_the_name_of_a_group() {
    for size in [(118, 25), (80, 24)] {
        let mut r = Robot::new(size.0, size.1);
        crowd(&mut r);
        r.run("alt-3; g");
        let y = |r: &mut Robot| usize::from(r.cursor().unwrap().y);
        let line = |r: &mut Robot| {
            let y = y(r);
            r.screen().lines().nth(y).unwrap().to_owned()
        };
        let mut seen = Vec::new();
        for _ in 0..6 {
            seen.push(line(&mut r));
            r.run("j");
        }
        let words = ["main", "asking", "busy", "later", "Finished", "Finished"];
        assert!(seen.iter().zip(words).all(|(line, word)| line.contains(word)), "{seen:#?}");
        r.run("up; up; up");
        assert!(line(&mut r).contains("asking"), "{}", r.screen());
    }
}

#[test]
fn an_agent_whose_parent_is_in_another_group_names_it() {
    let mut r = Robot::new(118, 25);
    crowd(&mut r);
    let below = |id: &str, parent: &str| AgentView {
        parent: Some(AgentId(parent.into())),
        ..child(id, "helper", AgentState::Running)
    };
    tell(&mut r, below("main/a14/b1", "main/a14"));
    tell(&mut r, below("main/a15/b2", "main/a15"));
    r.run("alt-3; +; +");
    let screen = r.screen();
    let row = |word: &str| screen.lines().find(|l| l.contains(word)).unwrap_or_default().to_owned();
    assert!(row("b1 helper").contains("  ● b1 helper"), "below its parent: {screen}");
    assert!(row("b2 helper").contains("● a15/b2 helper"), "{screen}");
}

#[test]
fn what_needs_you_says_what_and_which_key_answers() {
    let mut r = Robot::new(118, 25);
    states(&mut r);
    let body = tiller_protocol::AskBody::Clarify {
        question: "UTC or the local zone?".into(),
        choices: vec!["UTC".into(), "local".into()],
        allow_freetext: false,
        multiple: false,
        default: None,
        decides: Vec::new(),
    };
    let id = tiller_protocol::AskId::fresh(&tiller_protocol::SeqIds::default(), START);
    let ask = tiller_protocol::Ask { id, agent: AgentId("main/a2".into()), call: None, body };
    r.event(EventBody::Ask(tiller_protocol::event::AskEvent::QuestionAsked { ask }));
    r.run("ctrl-x -; alt-3");
    let beside = r.words();
    assert!(beside.contains("a answer") && beside.contains("UTC or the local zone?"), "{}", r.screen());
    r.run("+; +; j");
    let screen = r.screen();
    assert!(screen.contains("UTC or the local zone?  a answer"), "{screen}");
}

#[test]
fn the_limits_of_the_selected_agent_are_gauges() {
    let mut r = Robot::new(118, 25);
    states(&mut r);
    r.run("alt-3; +; +; j; j");
    let screen = r.screen();
    let row = |word: &str| screen.lines().find(|l| l.contains(word)).unwrap_or_default().to_owned();
    assert!(row("Task").contains("the task of tests"), "{screen}");
    assert!(row("Requests").contains("▰▰▰▰▰▰▰▰▰▱") && row("Requests").contains("90%"), "{screen}");
    assert!(row("Requests").contains("9 of 10") && screen.contains("$0.31 of $1.00"), "{screen}");
    assert!(!screen.contains("400k"), "tokens are not limited: {screen}");
}

#[test]
fn columns_have_names_and_stay_in_place() {
    let mut r = Robot::new(118, 25);
    crowd(&mut r);
    tell(
        &mut r,
        AgentView { cost: None, usage: Usage::default(), ..child("main/a14", "busy", AgentState::Running) },
    );
    r.run("alt-3; +; +; G; enter");
    let screen = r.screen();
    let head = screen.lines().find(|l| l.contains("Tokens")).unwrap_or_else(|| panic!("{screen}"));
    let column = |line: &str, word: &str| line.find(word).map(|at| line[..at].chars().count());
    for word in ["Agent", "State", "Model", "Time", "Tokens", "Cost", "Files"] {
        assert!(column(head, word).is_some(), "{word}: {head}");
    }
    // Figures end where their column's name ends, whatever else a row says.
    let end = column(head, "Tokens").unwrap() + "Tokens".len();
    let rows: Vec<&str> = screen.lines().filter(|l| l.contains("12k")).collect();
    assert!(rows.len() >= 4, "{screen}");
    for row in rows {
        assert_eq!(column(row, "12k").unwrap() + 3, end, "{row}");
    }
    let state = column(head, "State").unwrap();
    for (row, words) in
        [("asking", "edit src"), ("busy", "edit src"), ("later", "queued"), ("broken", "failed")]
    {
        let line = screen.lines().find(|l| l.contains(row)).unwrap();
        assert_eq!(column(line, words), Some(state), "{line}");
    }
}

#[test]
fn stop_stops_what_is_chosen_and_twice_kills() {
    let mut r = Robot::new(80, 24);
    crew(&mut r);
    r.run("alt-3; down").clear().run("k");
    assert!(
        sent(&r).is_empty() && r.screen().contains("Press the key again to end this tool"),
        "{}",
        r.screen()
    );
    r.run("k");
    assert_eq!(sent(&r), [TurnCommand::StopTool { id: "c1".into() }]);
    // A key that is held, or pressed once more, goes no further and meets no other row.
    r.clear().run("k; up; k; k; down; k; k");
    assert_eq!(sent(&r), [], "{}", r.screen());
    r.clear().run("wait 4000; up; k; k; k; k");
    let stop = |hard| TurnCommand::Interrupt { hard };
    assert_eq!(sent(&r), [stop(false)]);
    r.clear().run("wait 4000; k; k; wait 800; k");
    let stop = |hard| TurnCommand::Interrupt { hard };
    assert_eq!(sent(&r), [stop(false), stop(true)]);
    // Two presses that are far apart end nothing.
    r.clear().run("wait 4000; k; wait 4000; k");
    assert_eq!(sent(&r), []);
    r.run("k");
    assert_eq!(sent(&r), [stop(false)]);
    r.clear().run("K; enter");
    assert!(sent(&r).is_empty(), "the focus is on no");
    r.run("K; y");
    assert_eq!(sent(&r), [stop(true)]);
}

#[test]
fn enter_looks_inside() {
    let mut r = Robot::new(80, 24);
    crew(&mut r);
    r.run("alt-3; down; enter");
    assert_eq!(r.app.screen.focus, View::Conversation);
    r.run("alt-3; M");
    assert!(r.screen().contains("Model"), "{}", r.screen());
}

fn process(r: &mut Robot, rows: &[&str]) {
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Processes)));
    assert!(id.is_some(), "the processes were not asked for");
    let rows = rows.iter().map(|row| ProcessRow::from(*row)).collect();
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::ProcessesReply { rows })));
}

fn terminal_done(r: &mut Robot) {
    let mut s = crate::model::conversation::script::Script::new();
    for e in s.tool("t1", "terminal", "shell", "npm run dev &", "started", None) {
        r.msg(crate::app::msg::Msg::Engine(Box::new(e)));
    }
}

const ROWS: [&str; 2] =
    ["p1: running for 12 s: npm run dev\n  ready on :3000", "p2: ended, exit 1: cargo run"];

#[test]
fn background_processes_have_rows_and_end_by_key() {
    let mut r = Robot::new(80, 24);
    r.event(EventBody::State(StateEvent::AgentChanged { view: agent("main", None, AgentState::Idle) }));
    r.run("alt-3");
    terminal_done(&mut r);
    process(&mut r, &ROWS);
    let screen = r.screen();
    let row = screen.lines().find(|l| l.contains("p1 ")).unwrap_or_default();
    assert!(row.contains("npm run dev: ready on :3000") && row.contains("12s"), "{screen}");
    assert!(!screen.contains("cargo run"), "what has ended is no row: {screen}");
    // They are looked at while they live, and not otherwise.
    r.run("wait 2000");
    assert!(r.commands().is_empty());
    r.run("wait 1000");
    process(&mut r, &["p1: running for 15 s: npm run dev"]);
    assert!(r.screen().contains("15s"), "{}", r.screen());
    r.clear().run("G k k");
    assert_eq!(sent(&r), [TurnCommand::StopTool { id: "p1".into() }]);
    r.reply(ReplyEvent::DoneReply { said: "p1: ended, exit 143".into() });
    assert!(r.screen().contains("p1: ended, exit 143"), "{}", r.screen());
    process(&mut r, &["p1: ended, exit 143: npm run dev"]);
    assert!(!r.screen().contains("npm run dev"), "{}", r.screen());
    r.run("wait 9000");
    assert!(r.commands().is_empty(), "nothing lives");
}

#[test]
fn quitting_asks_while_a_process_runs_in_the_background() {
    let mut r = Robot::new(80, 24);
    r.app.model.engine.ready = true;
    terminal_done(&mut r);
    process(&mut r, &ROWS);
    r.clear().run("ctrl-d");
    assert!(r.screen().contains("Quit?") && r.screen().contains("npm run dev"), "{}", r.screen());
    assert!(r.commands().is_empty());
    r.run("y");
    assert_eq!(r.commands().len(), 1);
    let mut r = Robot::new(80, 24);
    r.app.model.engine.ready = true;
    terminal_done(&mut r);
    process(&mut r, &ROWS[1..]);
    r.clear().run("ctrl-d");
    assert_eq!(r.commands().len(), 1, "nothing runs: {}", r.screen());
}

fn child(id: &str, label: &str, state: AgentState) -> AgentView {
    use tiller_protocol::{AgentLimits, ChildView, SessionId};
    let view = ChildView {
        session: Some(SessionId(Default::default())),
        role: "coder".into(),
        task: format!("the task of {label}"),
        used: AgentLimits { turns: Some(9), cost: Some(Cost::from_usd(0.31)), ..AgentLimits::default() },
        limits: AgentLimits { turns: Some(10), cost: Some(Cost::from_usd(1.0)), ..AgentLimits::default() },
        files: 2,
        ..ChildView::default()
    };
    AgentView { label: label.into(), child: Some(Box::new(view)), ..agent(id, Some("main"), state) }
}

fn tell(r: &mut Robot, view: AgentView) {
    r.event(EventBody::State(StateEvent::AgentChanged { view }));
}

/// Six children in six states, the first three with something to tell.
fn states(r: &mut Robot) {
    tell(r, agent("main", None, AgentState::Running));
    tell(r, child("main/a1", "tests", AgentState::Running));
    tell(r, child("main/a2", "docs", AgentState::Waiting));
    let mut done = child("main/a3", "research", AgentState::Done);
    if let Some(c) = &mut done.child {
        (c.result, c.took) = ("Retry-After is honoured\nin two of three clients".into(), 72.0);
    }
    tell(r, done);
    tell(r, AgentView { cost: None, ..child("main/a4", "foreign", AgentState::Interrupted) });
    tell(r, child("main/a5", "later", AgentState::Queued));
    tell(r, child("main/a6", "resting", AgentState::Paused));
}

fn crew_commands(r: &Robot) -> Vec<tiller_protocol::AgentCommand> {
    let crew = |c: &CommandBody| match c {
        CommandBody::Agent(a) => Some(a.clone()),
        _ => None,
    };
    r.commands().into_iter().filter_map(crew).collect()
}

/// Puts the choice on the row of this agent.
fn choose(r: &mut Robot, id: &str) {
    r.run("alt-3");
    let agents = crate::app::state::Owner::View(View::Agents);
    r.app.tell(agents, PanelEvent::Message(Box::new(AgentId(id.into()))));
    r.run("wait 1");
}

#[test]
fn every_state_is_told_in_words_with_limits_sums_and_results() {
    let mut r = Robot::new(118, 25);
    states(&mut r);
    insta::assert_snapshot!("crew_at_118x25", r.screen());
    r.run("size 80x24; alt-3");
    insta::assert_snapshot!("crew_at_80x24", r.screen());
    r.run("size 118x25; +; +");
    insta::assert_snapshot!("crew_zoomed_at_118x25", r.screen());
}

#[test]
fn each_key_does_what_it_says_to_the_chosen_agent() {
    use tiller_protocol::{AgentCommand, AgentLimits};
    let id = |n: &str| AgentId(format!("main/{n}"));
    for (agent, keys, want) in [
        ("a1", "p", vec![AgentCommand::Pause { id: id("a1") }]),
        ("a6", "p", vec![AgentCommand::Resume { id: id("a6") }]),
        ("a4", "u", vec![AgentCommand::Resume { id: id("a4") }]),
        // A failed agent can be resumed; an agent that is done cannot.
        ("a7", "u", vec![AgentCommand::Resume { id: id("a7") }]),
        ("a3", "u", vec![]),
        ("a1", "U", vec![AgentCommand::ResumeAll]),
        ("a1", "B", vec![AgentCommand::Background { id: id("a1") }]),
        ("a3", "d", vec![AgentCommand::Diff { id: id("a3") }]),
        ("a1", "k", vec![]),
        ("a1", "k; k", vec![AgentCommand::Cancel { id: id("a1"), subtree: false }]),
        ("a1", "K; y", vec![AgentCommand::CancelAll]),
        (
            "a3",
            "r; type mind the tabs; enter",
            vec![AgentCommand::Retry { id: id("a3"), note: Some("mind the tabs".into()) }],
        ),
        ("a3", "r; enter", vec![AgentCommand::Retry { id: id("a3"), note: None }]),
        (
            "a1",
            "l; ctrl-u; type turns 50; enter",
            vec![AgentCommand::Raise {
                id: id("a1"),
                limits: AgentLimits { turns: Some(50), ..AgentLimits::default() },
            }],
        ),
        ("a1", "l; ctrl-u; type turns none; enter", vec![]),
        (
            "a1",
            "S; type @explorer find it; enter",
            vec![AgentCommand::Spawn {
                goal: "find it".into(),
                role: Some("explorer".into()),
                model: None,
                cli: None,
                isolated: false,
            }],
        ),
        // Nothing that makes no sense is sent.
        ("a3", "p; u; B; k", vec![]),
        ("a1", "r; u; b", vec![]),
    ] {
        let mut r = Robot::new(118, 25);
        states(&mut r);
        tell(&mut r, child("main/a7", "broken", AgentState::Failed));
        choose(&mut r, &format!("main/{agent}"));
        r.clear().run(keys);
        assert_eq!(crew_commands(&r), want, "{agent} {keys}\n{}", r.screen());
        assert!(r.addressed().iter().all(|(to, _)| to == "main"), "the crew is main's to steer");
    }
}

#[test]
fn the_second_stop_ends_what_it_started_too() {
    use tiller_protocol::AgentCommand;
    let mut r = Robot::new(118, 25);
    states(&mut r);
    let below = AgentView {
        parent: Some(AgentId("main/a1".into())),
        ..child("main/a1/a7", "sub", AgentState::Running)
    };
    tell(&mut r, below);
    choose(&mut r, "main/a1");
    r.clear().run("k; k; k; k; wait 800; k");
    let cancel = |subtree| AgentCommand::Cancel { id: AgentId("main/a1".into()), subtree };
    assert_eq!(crew_commands(&r), [cancel(false), cancel(true)]);
}

#[test]
fn a_message_goes_to_the_chosen_agent_and_the_draft_stays() {
    let mut r = Robot::new(118, 25);
    states(&mut r);
    r.run("type a draft for main");
    choose(&mut r, "main/a1");
    r.run("s");
    let screen = r.screen();
    assert!(screen.contains("Message to a1 tests") && screen.contains("at its next step"), "{screen}");
    r.clear().run("enter");
    assert!(r.commands().is_empty() && r.screen().contains("Write the message first"), "{}", r.screen());
    r.run("type use short words; enter");
    let message = tiller_protocol::Message::text("use short words");
    let mode = tiller_protocol::SendMode::Steer;
    let submit = CommandBody::Turn(TurnCommand::Submit { message, mode });
    assert_eq!(r.addressed(), [("main/a1".to_owned(), &submit)]);
    // It is refused: the words stay, with the reason.
    r.reply(ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, "it has ended just now") });
    let screen = r.screen();
    assert!(screen.contains("It has ended just now.") && screen.contains("use short words"), "{screen}");
    r.run("esc; esc");
    assert!(r.screen().contains("a draft for main"), "{}", r.screen());
    r.run("ctrl-u; up").reply(ReplyEvent::HistoryReply { prompts: Vec::new() });
    r.run("ctrl-u; up");
    assert!(r.screen().contains("use short words"), "what was not sent is in the history: {}", r.screen());
}

#[test]
fn its_question_is_answered_from_here_and_the_next_one_is_a_key_away() {
    let mut r = Robot::new(118, 25);
    states(&mut r);
    let ids = tiller_protocol::SeqIds::default();
    for (n, agent) in ["main", "main/a2", "main/a1"].into_iter().enumerate() {
        let question = format!("question {n}?");
        let body = tiller_protocol::AskBody::Clarify {
            question,
            choices: vec!["one".into(), "two".into()],
            allow_freetext: false,
            multiple: false,
            default: None,
            decides: Vec::new(),
        };
        let id = tiller_protocol::AskId::fresh(&ids, START);
        let ask = tiller_protocol::Ask { id, agent: AgentId(agent.into()), call: None, body };
        r.event(EventBody::Ask(tiller_protocol::event::AskEvent::QuestionAsked { ask }));
    }
    r.run("ctrl-x -");
    choose(&mut r, "main/a1");
    r.run("a");
    assert!(r.screen().contains("question 2?"), "{}", r.screen());
    r.run("ctrl-x -");
    choose(&mut r, "main/a2");
    r.run("n");
    assert!(r.screen().contains("question 0?"), "from the last row on it begins anew: {}", r.screen());
}

#[test]
fn nothing_wakes_when_all_have_ended() {
    let mut r = Robot::new(118, 25);
    tell(&mut r, AgentView { since: None, ..agent("main", None, AgentState::Idle) });
    let mut done = child("main/a1", "tests", AgentState::Done);
    done.since = Some(START);
    tell(&mut r, done);
    r.run("alt-3; wait 60000");
    assert_eq!(r.app.sleep(), None);
    tell(&mut r, child("main/a2", "docs", AgentState::Running));
    assert_eq!(r.app.sleep(), Some(Duration::from_secs(1)), "its time is shown");
}

#[test]
fn two_hundred_agents_in_a_tree_cost_little() {
    let mut r = Robot::new(118, 25);
    let mut parent = "main".to_owned();
    tell(&mut r, agent("main", None, AgentState::Running));
    for n in 0..200 {
        let id = format!("{parent}/a{n}");
        let view =
            AgentView { parent: Some(AgentId(parent.clone())), ..child(&id, "x", AgentState::Running) };
        r.app.model.crew.agents.push(view);
        if n % 20 == 0 {
            parent = id;
        }
    }
    let begun = std::time::Instant::now();
    for _ in 0..100 {
        assert_eq!(rows(&r).len(), 202, "with the name of their group");
    }
    assert!(begun.elapsed() < Duration::from_secs(90), "{:?} for 100 frames", begun.elapsed());
}

#[test]
fn the_background_is_offered_only_to_one_that_somebody_waits_for() {
    let mut r = Robot::new(118, 25);
    for background in [false, true] {
        let child = tiller_protocol::ChildView { background, ..Default::default() };
        let view =
            AgentView { child: Some(Box::new(child)), ..agent("main/a1", Some("main"), AgentState::Running) };
        r.event(EventBody::State(StateEvent::AgentChanged { view }));
        r.run("alt-3");
        let offered = r.app.hints().iter().any(|h| h.action.0 == "agents.background");
        assert_eq!(offered, !background);
    }
    r.run("B");
    assert!(r.screen().contains("its parent continues"), "{}", r.screen());
}

#[test]
fn quitting_says_what_becomes_of_agents_that_rest_and_offers_no_leaving_for_them() {
    let mut r = Robot::new(118, 25);
    (r.app.model.engine.ready, r.app.model.environment.detachable) = (true, true);
    // A call of it still runs.
    tell(&mut r, child("main/a1", "resting", AgentState::Paused));
    r.run("ctrl-d");
    let screen = r.screen();
    assert!(screen.contains("One agent is working") && screen.contains("detach"), "{screen}");
    r.run("esc");
    let rests =
        AgentView { act: tiller_protocol::Act::Nothing, ..child("main/a1", "resting", AgentState::Paused) };
    tell(&mut r, rests);
    r.run("ctrl-d");
    let screen = r.screen();
    assert!(screen.contains("One agent is paused; you can continue it later"), "{screen}");
    assert!(!screen.contains("detach") && !screen.contains("is working"), "{screen}");
    r.run("esc");
    tell(&mut r, child("main/a2", "docs", AgentState::Running));
    r.run("ctrl-d");
    let screen = r.screen();
    assert!(screen.contains("One agent is working"), "{screen}");
    assert!(screen.contains("detach"), "{screen}");
}

#[test]
fn the_goal_of_an_agent_stands_on_its_row() {
    use tiller_protocol::{Goal, GoalCheck, GoalState, GoalView};
    for (width, height) in [(118, 25), (80, 24)] {
        let mut r = Robot::new(width, height);
        tell(&mut r, agent("main", None, AgentState::Idle));
        let mut works = child("main/a1", "tests", AgentState::Running);
        let goal = Goal { text: "green".into(), check: GoalCheck::Judge, turns: 5, usd: None };
        let view = GoalView { goal, state: GoalState::Working, done: 2, spent: None, last: String::new() };
        if let Some(c) = &mut works.child {
            c.goal = Some(Box::new(view.clone()));
        }
        tell(&mut r, works.clone());
        r.run("ctrl-x 3");
        assert!(r.screen().contains("goal 2/5"), "{}", r.screen());
        if let Some(c) = &mut works.child {
            c.goal = Some(Box::new(GoalView { state: GoalState::Stopped, ..view }));
        }
        tell(&mut r, AgentView { state: AgentState::Failed, ..works });
        assert!(r.screen().contains("goal stopped"), "{}", r.screen());
    }
}

#[test]
fn without_other_agents_it_says_what_starts_one() {
    let mut r = Robot::new(118, 32);
    let says = |r: &Robot| r.screen().contains("/spawn GOAL starts one");
    r.run("alt-3");
    assert!(says(&r), "{}", r.screen());
    let view = agent("main", None, AgentState::Idle);
    r.event(EventBody::State(StateEvent::AgentChanged { view }));
    let screen = r.screen();
    let row = |text: &str| screen.lines().position(|l| l.contains(text));
    assert!(says(&r) && row("main") < row("/spawn"), "{screen}");
    let view = agent("main/a1", Some("main"), AgentState::Running);
    r.event(EventBody::State(StateEvent::AgentChanged { view }));
    assert!(!says(&r), "{}", r.screen());
}

#[test]
fn one_escape_stops_the_turn_alone_and_the_next_asks_about_the_agents() {
    use tiller_protocol::AgentCommand;
    for (width, height) in [(118, 25), (80, 24)] {
        let mut r = Robot::new(width, height);
        r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
        tell(&mut r, agent("main", None, AgentState::Running));
        for (id, label) in [("main/a1", "rain"), ("main/a2", "sun")] {
            tell(&mut r, child(id, label, AgentState::Running));
        }
        r.clear().run("esc");
        let stop = |hard| CommandBody::Turn(TurnCommand::Interrupt { hard });
        let release = CommandBody::Agent(AgentCommand::BackgroundAll);
        assert_eq!(r.commands(), [&release, &stop(false)], "before the turn is stopped, and nothing else");
        tell(&mut r, agent("main", None, AgentState::Idle));
        r.turn_done();
        assert!(r.footer().contains("Esc end agents"), "{}", r.footer());
        r.clear().run("esc");
        assert!(r.screen().contains("End 2 agents?") && r.commands().is_empty(), "{}", r.screen());
        r.run("n");
        assert!(r.commands().is_empty() && !r.footer().contains("end agents"), "{}", r.screen());
        // Much later Escape is about other things.
        r.run("wait 6000; esc");
        assert!(!r.screen().contains("End 2 agents?"), "{}", r.screen());
        // While its commands end: the second stop kills them, and asks as well.
        r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
        r.clear().run("esc; esc");
        assert_eq!(r.commands().last(), Some(&&stop(true)));
        assert!(r.screen().contains("End 2 agents?"), "{}", r.screen());
        r.clear().run("y");
        assert_eq!(r.commands(), [&CommandBody::Agent(AgentCommand::CancelAll)]);
    }
}

#[test]
fn the_row_of_main_stops_the_turn_alone_as_escape_does() {
    let mut r = Robot::new(118, 25);
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    tell(&mut r, agent("main", None, AgentState::Running));
    tell(&mut r, child("main/a1", "rain", AgentState::Running));
    r.run("alt-3; g").clear().run("k; k");
    let release = CommandBody::Agent(tiller_protocol::AgentCommand::BackgroundAll);
    let stop = CommandBody::Turn(TurnCommand::Interrupt { hard: false });
    assert_eq!(r.commands(), [&release, &stop], "{}", r.screen());
}

#[test]
fn a_stop_of_another_agent_asks_nothing_about_those_beside_it() {
    let mut r = Robot::new(118, 25);
    tell(&mut r, agent("main", None, AgentState::Idle));
    for (id, label) in [("main/a1", "rain"), ("main/a2", "sun")] {
        tell(&mut r, child(id, label, AgentState::Running));
    }
    let shown = AgentId("main/a1".into());
    r.app.show_agent(&shown);
    r.run("wait 0");
    r.of("main/a1", None, EventBody::Turn(TurnEvent::TurnStarted {}));
    r.clear().run("ctrl-c; ctrl-c");
    let stop = |hard| CommandBody::Turn(TurnCommand::Interrupt { hard });
    assert_eq!(r.commands(), [&stop(false), &stop(true)], "{}", r.screen());
    assert!(!r.screen().contains("agents?"), "{}", r.screen());
    // Home again, soon after it.
    r.clear().run("esc; esc");
    assert!(r.app.model.shown.is_none() && !r.screen().contains("agents?"), "{}", r.screen());
}

/// The row of the agent has the words of its first question, unless the row of the call that it is about shows that it waits.
#[test]
fn the_row_below_an_agent_is_about_its_first_question() {
    use tiller_protocol::event::AskEvent;
    use tiller_protocol::{Ask, AskBody, AskId};

    let words = "UTC or the local zone?";
    let clarify = || AskBody::Clarify {
        question: words.into(),
        choices: Vec::new(),
        allow_freetext: true,
        multiple: false,
        default: None,
        decides: Vec::new(),
    };
    let ids = tiller_protocol::SeqIds::default();
    let ask = |call: Option<&str>, body| Ask {
        id: AskId::fresh(&ids, START),
        agent: AgentId::main(),
        call: call.map(str::to_owned),
        body,
    };
    // The call of each question: the one that is shown, one that is not, or none; and true if the row has the words of the
    // first question.
    for (calls, said) in [
        (&[None][..], true),
        (&[Some("c1")], false),
        (&[None, Some("c1")], true),
        (&[Some("c1"), None], false),
        (&[Some("gone"), Some("c1")], true),
        (&[Some("c1"), Some("gone")], false),
        (&[None, Some("c1"), Some("c1")], true),
    ] {
        let mut r = Robot::new(80, 24);
        r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
        tell(&mut r, agent("main", None, AgentState::Waiting));
        r.event(EventBody::Tool(ToolEvent::ToolStarted {
            call_id: "c1".into(),
            name: "terminal".into(),
            arguments: serde_json::json!({"command": "ls"}),
            verb: "shell".into(),
            target: "ls".into(),
        }));
        let asks: Vec<Ask> = calls.iter().map(|call| ask(*call, clarify())).collect();
        for ask in &asks {
            r.event(EventBody::Ask(AskEvent::QuestionAsked { ask: ask.clone() }));
        }
        let below = |r: &Robot| {
            let list = tree::AgentTree::of(&r.app.model).list(&r.app.model, 40, tree::ListStyle::default());
            list.lines.iter().any(|line| line.text().contains(words))
        };
        assert_eq!(below(&r), said, "{calls:?}");
        // Once they are answered, nothing of them stays; while one about the call is open, its row shows it.
        for (at, answered) in asks.iter().enumerate() {
            let waits = r.app.model.agent.conversation.tool("c1").unwrap().asked.is_some();
            assert_eq!(waits, calls[at..].contains(&Some("c1")), "{calls:?} {at}");
            r.event(EventBody::Ask(AskEvent::QuestionAnswered {
                id: answered.id,
                reply: tiller_protocol::AskReply::Declined,
            }));
            let next = calls.get(at + 1).copied();
            assert_eq!(below(&r), next.is_some_and(|call| call != Some("c1")), "{calls:?} {at}");
        }
        assert!(r.app.model.agent.conversation.tool("c1").unwrap().asked.is_none(), "{calls:?}");
    }
}
