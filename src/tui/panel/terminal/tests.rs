//! The terminal of a program, driven by the robot.

use crossterm::event::MouseButton;
use tiller_protocol::command::Query;
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{
    ActivitySource, AgentCommand, AgentState, AgentView, ChildView, CommandBody, CommandId, GridRun,
    ModelRef, PaneKey, ScreenView, SessionId,
};

use super::*;
use crate::app::msg::Msg;
use crate::input::Input;
use crate::testing::Robot;

fn program(doing: Activity, bells: u32) -> AgentView {
    let id = AgentId("main/a1".into());
    let pane = PaneView {
        doing,
        source: ActivitySource::Screen,
        title: "toy \u{202e}works".into(),
        bells,
        ..PaneView::default()
    };
    let session = Some(SessionId(Default::default()));
    let child = ChildView { session, pane: Some(Box::new(pane)), background: true, ..ChildView::default() };
    AgentView {
        parent: id.parent(),
        id,
        label: "toy".into(),
        state: AgentState::Running,
        model: ModelRef("toy".into()),
        child: Some(Box::new(child)),
        ..AgentView::default()
    }
}

fn tell(r: &mut Robot, view: AgentView) {
    r.of("main/a1", None, EventBody::State(StateEvent::AgentChanged { view }));
}

fn row(at: u16, text: &str) -> (u16, Vec<GridRun>) {
    (at, vec![GridRun { text: text.into(), ..GridRun::default() }])
}

/// The question for the next picture that is open.
fn question(r: &Robot) -> Option<CommandId> {
    r.asked(|c| matches!(c, CommandBody::Query(Query::Screen { .. })))
}

fn picture(r: &mut Robot, rev: u64, rows: Vec<(u16, Vec<GridRun>)>, mouse: bool) {
    let asked = question(r);
    assert!(asked.is_some(), "nobody asks for a picture");
    r.clear();
    show(r, asked, rev, rows, mouse);
}

fn show(r: &mut Robot, asked: Option<CommandId>, rev: u64, rows: Vec<(u16, Vec<GridRun>)>, mouse: bool) {
    let screen = ScreenView { rev, cols: 40, height: 10, rows, cursor: Some((2, 1)), mouse, ended: false };
    r.of("main/a1", asked, EventBody::Reply(Box::new(ReplyEvent::ScreenReply { screen })));
}

/// The program's terminal on the screen, opened from the agents.
fn opened(width: u16, height: u16) -> Robot {
    let mut r = Robot::new(width, height);
    tell(&mut r, AgentView { id: AgentId::main(), state: AgentState::Running, ..AgentView::default() });
    tell(&mut r, program(Activity::Idle, 0));
    r.run("alt-3; j; enter; wait 0");
    picture(&mut r, 7, vec![row(0, "welcome to toy"), row(1, "> ")], false);
    r
}

fn sent(r: &Robot) -> Vec<PaneCommand> {
    let own = |(whom, body): (String, &CommandBody)| match body {
        CommandBody::Pane(c) => {
            assert_eq!(whom, "main/a1");
            Some(c.clone())
        }
        _ => None,
    };
    r.addressed().into_iter().filter_map(own).collect()
}

#[test]
fn it_is_opened_from_its_row_and_looks_as_it_should() {
    for (width, height) in [(118, 25), (80, 24), (60, 20)] {
        let mut r = Robot::new(width, height);
        tell(&mut r, program(Activity::Idle, 2));
        r.run("alt-3; enter; wait 0");
        let size = sent(&r);
        picture(&mut r, 7, vec![row(0, "welcome to toy"), row(1, "> ")], false);
        let screen = r.screen();
        assert!(screen.contains("welcome to toy") && screen.contains("idle (from its screen)"), "{screen}");
        assert!(
            screen.contains("bell 2") && screen.contains("r enter") && !screen.contains('\u{202e}'),
            "{screen}"
        );
        // The program was told how large the pane is.
        let [PaneCommand::Size { cols, rows }] = size[..] else { panic!("{size:?}") };
        assert!(cols <= width && rows < height && cols >= width / 2 && rows >= height / 2, "{cols}x{rows}");
        insta::assert_snapshot!(format!("terminal_at_{width}x{height}"), screen);
    }
}

#[test]
fn entered_all_keys_are_the_programs_but_the_one_that_releases() {
    for release in ["ctrl-]", "f12"] {
        let mut r = opened(80, 24);
        r.clear().run("r");
        assert_eq!(sent(&r), [PaneCommand::Enter { on: true }]);
        assert!(r.screen().contains("Ctrl-] or F12 leave"), "{}", r.screen());
        r.clear().run("type qx; esc; ctrl-c; ctrl-x; alt-3; up; tab; shift-tab; f1");
        let keys: Vec<PaneKey> = sent(&r)
            .into_iter()
            .map(|c| match c {
                PaneCommand::Type { typed } => match typed[..] {
                    [TerminalInput::Key { key, .. }] => key,
                    ref other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            })
            .collect();
        use PaneKey::*;
        let all = [Char('q'), Char('x'), Escape, Char('c'), Char('x'), Char('3'), Up, Tab, Tab, F(1)];
        assert_eq!(keys, all);
        r.clear().run("paste two\nlines");
        assert_eq!(
            sent(&r),
            [PaneCommand::Type { typed: vec![TerminalInput::Paste { text: "two\nlines".into() }] }]
        );
        // Whether the window has the focus is told as long as one is in it.
        for (msg, on) in [(Msg::Input(Input::FocusLost), false), (Msg::Input(Input::FocusGained), true)] {
            r.clear().msg(msg);
            assert_eq!(sent(&r), [PaneCommand::Type { typed: vec![TerminalInput::Focus { on }] }]);
        }
        r.clear().run(release);
        assert_eq!(sent(&r), [PaneCommand::Enter { on: false }]);
        r.clear().msg(Msg::Input(Input::FocusLost));
        assert_eq!(sent(&r), []);
        r.msg(Msg::Input(Input::FocusGained));
        // Out of it, keys are ours again.
        r.clear().run("esc");
        assert!(!sent(&r).iter().any(|c| matches!(c, PaneCommand::Type { .. })));
        assert!(sent(&r).contains(&PaneCommand::Size { cols: 0, rows: 0 }), "{:?}", sent(&r));
    }
}

#[test]
fn pictures_are_asked_for_one_by_one_and_only_while_it_is_shown() {
    let mut r = opened(118, 25);
    assert!(question(&r).is_some(), "the next one");
    picture(&mut r, 8, vec![row(1, "> hello")], false);
    assert!(r.screen().contains("> hello") && r.screen().contains("welcome"), "{}", r.screen());
    assert!(question(&r).is_some());
    // Nothing is asked twice, whatever comes.
    r.clear();
    tell(&mut r, program(Activity::Working, 0));
    assert!(question(&r).is_none());
    assert!(r.screen().contains("working (from its screen)"), "{}", r.screen());
    // Gone: the answer that was on its way leads to no other question.
    r.run("esc").clear();
    let screen = ScreenView { rev: 9, cols: 40, height: 10, ..ScreenView::default() };
    r.of("main/a1", None, EventBody::Reply(Box::new(ReplyEvent::ScreenReply { screen })));
    assert!(question(&r).is_none());
    // Back: all of it is asked for.
    r.run("alt-7");
    assert!(question(&r).is_some());
    // A new size of ours is a new size of the program's.
    r.clear().run("size 100x30; wait 0");
    assert!(matches!(sent(&r)[..], [PaneCommand::Size { cols: 90..=100, rows: 20..=29 }]), "{:?}", sent(&r));
    r.clear().run("z; wait 0");
    assert!(matches!(sent(&r)[..], [] | [PaneCommand::Size { .. }]), "{:?}", sent(&r));
}

#[test]
fn text_is_copied_and_sent_to_main_as_a_quotation() {
    let mut r = opened(80, 24);
    r.clear().run("[");
    let asked = r.asked(|c| matches!(c, CommandBody::Query(Query::Scrollback { .. })));
    let mut rows: Vec<Vec<GridRun>> = vec![row(0, "long ago").1, row(0, "welcome to toy").1, row(0, "> ").1];
    rows.resize(11, Vec::new());
    r.of("main/a1", asked, EventBody::Reply(Box::new(ReplyEvent::ScrollbackReply { rows })));
    r.run("g V j s; wait 0");
    let screen = r.screen();
    assert!(screen.contains("> long ago") && screen.contains("> welcome to toy"), "{screen}");
    assert!(
        screen.contains("From the terminal of a1 toy:") && !screen.contains("Message to a1"),
        "main's: {screen}"
    );
    let mut r = opened(80, 24);
    r.run("[ k V y");
    let copied = r
        .tasks
        .iter()
        .any(|t| matches!(t, crate::app::effect::Task::Copy { text, .. } if text == "welcome to toy"));
    assert!(copied, "{}", r.screen());
    // Without a choice the screen is sent.
    r.run("s; wait 0");
    assert!(r.screen().contains("> welcome to toy"), "{}", r.screen());
}

#[test]
fn the_mouse_is_the_programs_only_when_it_asked_and_somebody_is_in() {
    let event = |kind| {
        crate::app::msg::Msg::Input(Input::Mouse(MouseEvent {
            kind,
            column: 5,
            row: 4,
            modifiers: KeyModifiers::NONE,
        }))
    };
    let down = MouseEventKind::Down(MouseButton::Left);
    let mut r = opened(80, 24);
    picture(&mut r, 8, vec![], true);
    let asked = question(&r);
    r.clear().msg(event(down));
    assert!(sent(&r).is_empty(), "nobody is in it");
    r.run("r").clear().msg(event(down));
    let [PaneCommand::Type { typed }] = &sent(&r)[..] else { panic!("{:?}", sent(&r)) };
    assert!(
        matches!(typed[..], [TerminalInput::Mouse { act: tiller_protocol::MouseAct::Down, .. }]),
        "{typed:?}"
    );
    show(&mut r, asked, 9, vec![], false);
    r.clear().msg(event(down));
    assert!(sent(&r).is_empty(), "it does not ask any more");
}

#[test]
fn nothing_opens_over_who_types_and_stopping_asks() {
    let mut r = opened(80, 24);
    r.run("r").run("wait 5000");
    let body = tiller_protocol::AskBody::Clarify {
        question: "Which one?".into(),
        choices: vec!["a".into(), "b".into()],
        allow_freetext: false,
        multiple: false,
        default: None,
        decides: Vec::new(),
    };
    let id = tiller_protocol::AskId::fresh(&tiller_protocol::SeqIds::default(), crate::testing::START);
    let ask = tiller_protocol::Ask { id, agent: AgentId("main/a1".into()), call: None, body };
    r.event(EventBody::Ask(tiller_protocol::event::AskEvent::QuestionAsked { ask }));
    r.run("wait 5000");
    assert!(r.app.layers.is_empty(), "{}", r.screen());
    r.run("ctrl-]; wait 5000");
    assert!(!r.app.layers.is_empty(), "{}", r.screen());
    let mut r = opened(80, 24);
    r.run("x").clear().run("wait 600; y");
    let stops =
        |c: &CommandBody| matches!(c, CommandBody::Agent(AgentCommand::Cancel { subtree: false, .. }));
    assert!(r.commands().into_iter().any(stops), "{:?} {}", r.commands(), r.screen());
}

#[test]
fn its_end_releases_and_the_last_picture_stays() {
    let mut r = opened(80, 24);
    r.run("r").clear();
    let mut view = program(Activity::Idle, 0);
    view.state = AgentState::Done;
    if let Some(child) = &mut view.child {
        (child.pane, child.exit) = (None, Some(0));
    }
    tell(&mut r, view.clone());
    let screen = r.screen();
    assert!(screen.contains("welcome to toy") && screen.contains("✓ done  exit 0"), "{screen}");
    view.state = AgentState::Failed;
    if let Some(child) = &mut view.child {
        child.exit = Some(137);
    }
    tell(&mut r, view);
    assert!(r.screen().contains("✗ failed  exit 137"), "{}", r.screen());
    r.run("type x");
    assert!(!sent(&r).iter().any(|c| matches!(c, PaneCommand::Type { .. })), "{:?}", sent(&r));
    r.run("r; wait 0");
    assert!(r.screen().contains("It has ended"), "{}", r.screen());
}
