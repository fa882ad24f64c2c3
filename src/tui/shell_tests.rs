//! The shell as a whole, driven by the robot.

use std::time::Duration;

use tiller_protocol::command::{SessionCommand, TurnCommand};
use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{CommandBody, EventBody, Message, Notice, NoticeKind, Profile, SendMode};

use crate::app::effect::Task;
use crate::keymap::action::Action;
use crate::panel::View;
use crate::testing::Robot;

fn submit(text: &str, mode: SendMode) -> CommandBody {
    CommandBody::Turn(TurnCommand::Submit { message: Message::text(text), mode })
}

fn running(r: &mut Robot) {
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
}

#[test]
fn typing_and_enter_sends() {
    let mut r = Robot::new(80, 24);
    r.run("type hello world; enter");
    assert_eq!(r.commands(), [&submit("hello world", SendMode::Steer)]);
    assert!(!r.screen().contains("hello world"), "the composer is empty again");
}

#[test]
fn a_backslash_and_ctrl_j_make_lines() {
    let mut r = Robot::new(80, 24);
    r.run("type one\\; enter; type two; ctrl-j; type three; enter");
    assert_eq!(r.commands(), [&submit("one\ntwo\nthree", SendMode::Steer)]);
}

#[test]
fn while_a_turn_runs_enter_steers_and_tab_queues() {
    let mut r = Robot::new(118, 25);
    running(&mut r);
    r.run("type a");
    assert!(r.footer().contains("Enter steer") && r.footer().contains("Tab queue"), "{}", r.footer());
    r.run("tab; type b; enter");
    assert_eq!(r.commands(), [&submit("a", SendMode::Queue), &submit("b", SendMode::Steer)]);
}

#[test]
fn escape_stops_and_the_second_time_kills() {
    let mut r = Robot::new(80, 24);
    running(&mut r);
    assert!(r.footer().contains("Esc stop"));
    r.run("esc; esc");
    let stop = |hard| CommandBody::Turn(TurnCommand::Interrupt { hard });
    assert_eq!(r.commands(), [&stop(false), &stop(true)]);
}

#[test]
fn ctrl_c_clears_then_asks_then_quits() {
    let mut r = Robot::new(80, 24);
    r.run("type draft; ctrl-c");
    assert!(!r.screen().contains("draft"));
    r.run("ctrl-c");
    assert!(r.screen().contains("Press Ctrl-C again to quit"));
    assert!(!r.tasks.iter().any(|t| matches!(t, Task::Quit)));
    r.run("ctrl-c");
    assert!(
        r.tasks.iter().any(|t| matches!(t, Task::Quit)),
        "the engine is not there yet, so it ends at once"
    );
}

#[test]
fn the_leader_shows_what_can_follow_after_a_while() {
    let mut r = Robot::new(80, 24);
    r.run("ctrl-x");
    assert!(!r.screen().contains("errors"));
    r.run("wait 260");
    assert!(r.screen().contains("e errors"), "{}", r.screen());
    r.run("esc");
    assert!(!r.screen().contains("e errors"));
    r.run("ctrl-x ?");
    assert!(r.screen().contains("e errors"), "at once on ?");
    r.run("t");
    assert!(r.screen().contains("gruvbox-dark"), "the next key still counts: {}", r.screen());
}

#[test]
fn an_unknown_sequence_says_so_and_types_nothing() {
    let mut r = Robot::new(80, 24);
    r.run("ctrl-x Q");
    assert!(r.screen().contains("Ctrl-X Q has no function here"));
    r.run("type x; enter");
    assert_eq!(r.commands(), [&submit("x", SendMode::Steer)]);
}

#[test]
fn risky_mode_needs_a_yes() {
    let mut r = Robot::new(80, 24);
    r.event(EventBody::State(StateEvent::ProfileChanged { profile: Profile::AutoEdit }));
    r.clear().run("shift-tab");
    assert!(r.commands().is_empty());
    assert!(r.screen().contains("AUTO"));
    r.run("enter");
    assert!(r.commands().is_empty(), "the focus starts on no");
    r.run("shift-tab; y");
    let set = CommandBody::Session(SessionCommand::SetProfile { profile: Profile::Full });
    assert_eq!(r.commands(), [&set]);
}

/// A key that was typed while the session opens must not go on from a mode that only the screen assumes.
#[test]
fn the_mode_changes_by_key_only_once_it_is_known() {
    let mut r = Robot::new(80, 24);
    r.clear().run("shift-tab");
    assert!(r.commands().is_empty(), "{:?}", r.commands());
    r.event(EventBody::State(StateEvent::ProfileChanged { profile: Profile::ReadOnly }));
    let set = CommandBody::Session(SessionCommand::SetProfile { profile: Profile::Plan });
    assert_eq!(r.commands(), [&set], "it goes on from the mode that holds");
}

#[test]
fn the_palette_finds_and_does() {
    let mut r = Robot::new(80, 24);
    r.run("ctrl-p; type new session");
    assert!(r.screen().contains("Ctrl-X n"), "it shows the key: {}", r.screen());
    r.clear().run("enter");
    assert_eq!(r.commands(), [&CommandBody::Session(SessionCommand::New)]);
    r.run("alt-x; type Answer the next");
    assert!(r.screen().contains("  No question is waiting"), "{}", r.screen());
}

#[test]
fn help_lists_what_applies_here_first() {
    let mut r = Robot::new(100, 30);
    r.run("f1");
    let screen = r.screen();
    assert!(screen.contains("Enter") && screen.contains("send") && screen.contains("Control"), "{screen}");
    r.run("type palette");
    assert!(r.screen().contains("Ctrl-P"));
    r.run("esc");
    assert!(r.app.layers.is_empty());
}

#[test]
fn errors_are_kept_and_counted() {
    let mut r = Robot::new(118, 25);
    let notice = Notice::new(NoticeKind::Network, "the server did not answer")
        .hint("try again")
        .detail("ECONNREFUSED");
    r.event(EventBody::State(StateEvent::Notice { notice }));
    let screen = r.screen();
    let toast = screen.lines().next().unwrap_or_default();
    assert!(toast.ends_with("The server did not answer  Try again"), "{screen}");
    r.wait(Duration::from_secs(10));
    assert!(!r.screen().contains("The server did not answer"), "a toast goes");
    assert!(r.screen().contains("✗ 1 error · Ctrl-X e"), "the badge stays: {}", r.screen());
    r.run("ctrl-x e");
    assert!(r.screen().contains("ECONNREFUSED"), "{}", r.screen());
    r.run("esc");
    assert!(!r.screen().contains("1 error"), "looked at");
}

#[test]
fn theme_preview_is_live_and_escape_brings_the_old_one_back() {
    let mut r = Robot::new(80, 24);
    r.run("ctrl-x t; type gruvbox-dark");
    assert_eq!(r.app.themes.current().name, "gruvbox-dark");
    r.run("esc");
    assert_eq!(r.app.themes.current().name, "mono");
    r.run("ctrl-x t; type gruvbox-dark; enter");
    assert_eq!(r.app.themes.current().name, "gruvbox-dark");
}

#[test]
fn focus_moves_and_escape_leads_back() {
    let mut r = Robot::new(118, 25);
    r.run("alt-1");
    assert_eq!(r.app.screen.focus, View::Conversation);
    assert!(r.footer().contains("Esc back"), "{}", r.footer());
    r.run("alt-j");
    assert_ne!(r.app.screen.focus, View::Conversation);
    r.run("esc");
    assert_eq!(r.app.screen.focus, View::Composer);
}

#[test]
fn every_view_can_be_reached_at_every_size() {
    for (w, h) in [(40, 12), (60, 20), (80, 24), (118, 25), (160, 50), (220, 60)] {
        let mut r = Robot::new(w, h);
        for (i, view) in View::ALL.into_iter().enumerate().skip(1) {
            r.run(&format!("ctrl-x {i}"));
            assert_eq!(r.app.screen.focus, view, "{w}x{h}");
            let areas = r.app.screen.areas.as_ref().unwrap();
            assert!(
                areas.part(view).is_some() || areas.rail.iter().any(|p| p.view == view),
                "{view:?} at {w}x{h}"
            );
            r.run("esc");
            assert_eq!(r.app.screen.focus, View::Composer);
            assert!(r.cursor().is_some(), "the caret is back at {w}x{h}");
        }
    }
}

/// A button that a dialog has on a wide screen it also has on a narrow one.
#[test]
fn dialogs_have_the_same_options_at_every_width() {
    for (name, make) in crate::shipped::registry().samples() {
        let mut seen: Option<Vec<(String, Action)>> = None;
        for width in [200, 120, 80, 60, 40] {
            let mut r = Robot::new(width, 24);
            r.push(make());
            let options: Vec<(String, Action)> = r
                .app
                .hints()
                .into_iter()
                .filter_map(|h| Some((r.app.keys.map.describe(h.action, &r.app.scopes())?, h.action)))
                .collect();
            match &seen {
                None => seen = Some(options),
                Some(first) => assert_eq!(first, &options, "{name} at {width}"),
            }
            let screen = r.screen();
            for (key, label) in buttons(&screen_of(*make, 200)) {
                assert!(
                    screen.contains(&format!("[{key}] {label}")),
                    "{name}: [{key}] {label} at {width}\n{screen}"
                );
            }
        }
    }
}

fn screen_of(make: fn() -> Box<dyn crate::panel::Panel>, width: u16) -> String {
    Robot::new(width, 24).push(make()).screen()
}

/// `[k] word` on a screen.
fn buttons(screen: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for part in screen.split('[').skip(1) {
        if let Some((key, rest)) = part.split_once("] ")
            && key.chars().count() == 1
        {
            out.push((key.into(), rest.split([' ', '\n']).next().unwrap_or("").into()));
        }
    }
    out
}

/// For many states: each key that the footer names does the action that it names.
#[test]
fn the_footer_tells_the_truth() {
    /// States from here on differ only in the dialog, not in the preset: one preset is enough for them.
    const ONCE: usize = 10;
    let states: &[(&str, bool, &str)] = &[
        ("empty", false, ""),
        ("draft", false, "type hi"),
        ("running", true, ""),
        ("running with a draft", true, "type hi"),
        ("conversation", false, "alt-1"),
        ("todo", false, "alt-2"),
        ("palette", false, "ctrl-p"),
        ("help", false, "f1"),
        ("theme", false, "ctrl-x t"),
        ("errors", false, "ctrl-x e"),
        ("agents", true, "alt-3"),
        ("watch", false, "alt-4"),
        ("session tree", false, "alt-5"),
        ("search in a panel", false, "alt-2; /; type x; enter"),
        ("sessions", false, "ctrl-x s"),
        ("models", false, "ctrl-x m"),
        ("settings", false, "ctrl-x ,"),
        ("history", false, "ctrl-r"),
        ("key recorder", false, "ctrl-x K"),
        ("permissions", false, "alt-x; type permissions; enter"),
    ];
    for preset in ["default", "vim", "emacs"] {
        let all = if preset == "default" { states } else { &states[..ONCE] };
        for (name, run, steps) in all {
            let make = || {
                let ui = tiller_config::schema::Ui { keymap: preset.into(), ..Default::default() };
                let mut r = Robot::with(160, 40, ui);
                if *run {
                    running(&mut r);
                }
                r.run(steps).clear();
                r
            };
            let told = told(&make());
            assert!(!told.is_empty(), "{preset} {name}");
            for (key, action) in told {
                let mut r = make();
                r.app.keys.log.clear();
                if action == crate::keymap::action::LEADER {
                    r.run(&key);
                    assert_eq!(r.app.keys.pending.len(), 1, "{preset} {name}: {key}");
                    continue;
                }
                r.run(&key);
                assert!(r.app.keys.log.contains(&action), "{preset} {name}: {key} is not {action:?}");
            }
        }
    }
}

fn told(r: &Robot) -> Vec<(String, Action)> {
    let scopes = r.app.scopes();
    r.app
        .hints()
        .into_iter()
        .filter_map(|h| Some((r.app.keys.map.describe(h.action, &scopes)?, h.action)))
        .collect()
}

#[test]
fn what_waits_to_be_drawn_outlives_news_of_the_terminal() {
    let mut r = Robot::new(80, 24);
    running(&mut r);
    r.app.update(crate::app::msg::Msg::Config(crate::app::msg::ConfigMsg::Changed));
    assert!(r.app.due());
    r.app.update(crate::app::msg::Msg::Output(crate::app::msg::OutputMsg::Ready));
    assert!(r.app.due(), "the frame that the terminal had no room for");
}

/// A line of the person's own, as the engine tells of it.
fn line(r: &mut Robot, id: &str, text: &str, waits: bool) {
    use tiller_protocol::view::ShellLineView;
    let line = ShellLineView { call_id: id.into(), line: text.into(), shared: true, waits };
    r.event(EventBody::Tool(tiller_protocol::event::ToolEvent::ShellStarted { line }));
}

fn stopped(r: &Robot) -> Vec<String> {
    use tiller_protocol::command::TurnCommand;
    let id = |c: &CommandBody| match c {
        CommandBody::Turn(TurnCommand::StopTool { id }) => Some(id.clone()),
        CommandBody::Turn(TurnCommand::Interrupt { .. }) => Some("the turn".into()),
        _ => None,
    };
    r.commands().into_iter().filter_map(id).collect()
}

/// A row of the screen with both texts.
fn row_with(screen: &str, one: &str, other: &str) -> bool {
    screen.lines().any(|l| l.contains(one) && l.contains(other))
}

#[test]
fn a_line_of_the_persons_own_is_a_live_row_that_escape_and_ctrl_c_end() {
    use tiller_protocol::event::ToolEvent;
    for key in ["esc", "ctrl-c"] {
        let mut r = Robot::new(80, 24);
        r.event(EventBody::Turn(tiller_protocol::event::TurnEvent::TurnStarted {}));
        line(&mut r, "line-1", "make watch", false);
        line(&mut r, "line-2", "echo later", true);
        let text = "built in 3 s\n".into();
        r.event(EventBody::Tool(ToolEvent::ToolProgress { call_id: "line-1".into(), text }));
        let screen = r.screen();
        assert!(
            row_with(&screen, "$ make watch", "running 0s") && screen.contains("built in 3 s"),
            "{screen}"
        );
        assert!(row_with(&screen, "$ echo later", "waiting for the previous command"), "{screen}");
        assert!(r.footer().contains("Esc end command"), "{}", r.footer());
        r.clear().run(key);
        assert_eq!(stopped(&r), ["line-1"], "the command first, not the turn");
        let ended = ToolEvent::ShellLine {
            line: "make watch".into(),
            output: "built in 3 s\n".into(),
            exit: Some(130),
            shared: true,
            call_id: "line-1".into(),
        };
        r.event(EventBody::Tool(ended));
        line(&mut r, "line-2", "echo later", false);
        let screen = r.screen();
        assert_eq!(screen.matches("make watch").count(), 1, "one row: {screen}");
        assert!(
            row_with(&screen, "$ make watch", "exit 130") && row_with(&screen, "$ echo later", "running"),
            "{screen}"
        );
        r.clear().run(key);
        assert_eq!(stopped(&r), ["line-2"]);
        let ended = ToolEvent::ShellLine {
            line: "echo later".into(),
            output: String::new(),
            exit: Some(0),
            shared: true,
            call_id: "line-2".into(),
        };
        r.event(EventBody::Tool(ended));
        r.clear().run(key);
        assert_eq!(stopped(&r), ["the turn"]);
    }
}

#[test]
fn a_line_that_runs_is_still_a_row_after_everything_is_read_anew_and_quitting_says_so() {
    use tiller_protocol::view::ShellLineView;
    let mut r = Robot::new(80, 24);
    let mut script = crate::model::conversation::script::Script::new();
    let EventBody::Reply(mut reply) = script.snapshot(Vec::new(), 0, false).body else { unreachable!() };
    if let tiller_protocol::event::ReplyEvent::SnapshotReply { snapshot } = reply.as_mut() {
        let call_id = "line-1".into();
        snapshot.shell_lines.push(ShellLineView {
            call_id,
            line: "make watch".into(),
            shared: true,
            waits: false,
        });
    }
    r.event(EventBody::Reply(reply));
    assert!(row_with(&r.screen(), "$ make watch", "running"), "{}", r.screen());
    r.run("ctrl-d");
    assert!(r.words().contains("One of your commands is running. Quitting ends it."), "{}", r.screen());
}

#[test]
fn a_key_that_can_do_nothing_says_so_and_one_at_an_end_does_not() {
    let mut r = Robot::new(80, 24);
    for (keys, said) in [("f7", "f7 has no function here"), ("tab", "no turn is running")] {
        r.run("wait 9000");
        r.run(keys);
        assert!(r.words().to_lowercase().contains(said), "{keys}: {}", r.screen());
    }
    r.run("wait 9000; left; backspace; ctrl-k; down");
    assert!(!r.screen().contains("no function"), "{}", r.screen());
    r.run("alt-2; wait 0; ö");
    assert!(r.screen().contains("ö has no function here"), "{}", r.screen());
}

#[test]
fn toasts_cover_nothing_of_any_dialog() {
    for (name, make) in crate::shipped::registry().samples() {
        for (w, h) in [(118, 25), (80, 24), (60, 20)] {
            let mut r = Robot::new(w, h);
            r.push(make());
            let said = "Toast-that-is-long-enough-to-be-seen-wherever-it-is";
            r.app.say(said);
            r.app.redraw();
            r.run("wait 0");
            // A layer over the whole screen has no box, and leaves rows for what is said.
            let inner = r.app.screen.boxes.last().copied().unwrap_or_default();
            let screen = r.screen();
            let at = screen.lines().position(|l| l.contains("Toast-that-is"));
            let at = at.unwrap_or_else(|| panic!("{name} {w}x{h}: it is not to be seen\n{screen}")) as u16;
            assert!(!(inner.top()..inner.bottom()).contains(&at), "{name} {w}x{h}\n{screen}");
        }
    }
}

/// A dialog that floats lies over the start screen as it is.
#[test]
fn a_dialog_moves_nothing_of_the_start_screen() {
    for (width, height) in [(80, 24), (118, 32), (220, 60)] {
        for (name, make) in crate::shipped::registry().samples() {
            let mut r = Robot::new(width, height);
            r.run("type a draft");
            let before = r.app.screen.areas.clone();
            r.push(make());
            let docked = crate::view::layout_request::docked(&r.app).is_some();
            assert!(docked || r.app.screen.areas == before, "{name} at {width}x{height}: {}", r.screen());
        }
    }
}

/// The person is told of an effort that they chose, not of the effort of another model or session.
#[test]
fn an_effort_that_no_command_asked_for_is_not_reported() {
    use tiller_protocol::{CommandId, Effort, EffortView};

    let effort = EffortView { chosen: Effort::High, used: Effort::High, offered: Vec::new() };
    let event = || EventBody::State(StateEvent::EffortChanged { effort: effort.clone() });
    let mut r = Robot::new(100, 30);
    r.event(event());
    assert!(!r.screen().contains("Effort high"), "{}", r.screen());
    r.cause(Some(CommandId(7)), event());
    assert!(r.screen().contains("Effort high"), "{}", r.screen());
}

/// A panel without rows says what will appear there, whole also where it is narrow.
#[test]
fn an_empty_panel_says_what_appears_there() {
    for (width, height) in [(80, 24), (118, 32), (160, 45)] {
        for view in [View::Todo, View::Agents, View::Watch, View::Sessions, View::Terminals] {
            let mut r = Robot::new(width, height);
            r.app.focus(view);
            r.run("wait 10");
            let (screen, words) = (r.screen(), r.words());
            assert!(words.contains("appear"), "{view:?} at {width}x{height}: {screen}");
            assert!(!screen.contains('…'), "{view:?} at {width}x{height}: {screen}");
        }
    }
}
