use crate::app::inbox::inbox;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use ratatui::layout::Rect;
use tiller_config::schema::Ui;
use tiller_protocol::StopReason;

use super::*;
use crate::app::effect::Task;
use crate::app::ui::{UiOptions, make_app};
use crate::model::conversation::script::{Script, text as text_block};
use crate::testing::{Robot, text_of};
use crate::theme::{Depth, Themes};

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, b: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(b);
        Ok(b.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A loop that is not running, with these variables and options, and its bytes.
fn stopped(vars: &'static [&'static str], change: impl FnOnce(&mut UiOptions)) -> (Loop, Sink) {
    let env: crate::app::ui::Env = Arc::new(move |k| match k {
        "TERM" => Some("xterm-256color".into()),
        "COLORTERM" => Some("truecolor".into()),
        k => vars.contains(&k).then(|| "1".into()),
    });
    let mut o = UiOptions::new(env);
    change(&mut o);
    let (app, wrong) = make_app(&o);
    assert!(wrong.is_empty(), "{wrong:?}");
    let sink = Sink::default();
    let messages = inbox(64);
    let mut l =
        Loop::with_output(app, messages, Box::new(|_| true), None, &o, Box::new(sink.clone())).unwrap();
    l.options = Some(o);
    (l, sink)
}

/// Returns what the loop's app shows. It draws into the frame before.
fn shown(l: &mut Loop) -> ratatui::buffer::Buffer {
    let area = Rect::new(0, 0, 80, 24);
    if l.buf.area != area {
        l.buf = ratatui::buffer::Buffer::empty(area);
    }
    l.app.draw(&mut l.buf);
    l.buf.clone()
}

const THEME: &str = "inherits = \"gruvbox-dark\"\n[roles]\nground = \"fg on #123456\"\n";

#[test]
fn a_changed_key_file_and_theme_are_seen_at_once_and_a_wrong_one_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_owned();
    std::fs::create_dir(folder.join("themes")).unwrap();
    std::fs::write(folder.join("themes/mine.toml"), "inherits = \"gruvbox-dark\"\n").unwrap();
    let settings = Arc::new(Mutex::new(Ui { theme: "mine".into(), ..Ui::default() }));
    let read = Arc::clone(&settings);
    let (mut l, _) = stopped(&[], |o| {
        o.config = settings.lock().unwrap().clone();
        o.folders.config = Some(folder.clone());
        o.hooks.settings = Some(Box::new(move || Ok(read.lock().unwrap().clone())));
    });
    let footer = |l: &mut Loop| text_of(&shown(l)).lines().last().unwrap().to_owned();
    let ground = |l: &mut Loop| shown(l)[(0, 0)].bg;
    assert!(footer(&mut l).contains("Ctrl-P palette"));
    let before = ground(&mut l);
    // The keys.
    std::fs::write(folder.join("keys.toml"), "[global]\nf9 = \"palette.open\"\n").unwrap();
    l.reload();
    assert!(footer(&mut l).contains("F9 palette"), "{}", footer(&mut l));
    // The theme.
    std::fs::write(folder.join("themes/mine.toml"), THEME).unwrap();
    l.reload();
    let after = ground(&mut l);
    assert_ne!(before, after, "the header has another ground");
    // A setting.
    settings.lock().unwrap().ascii = true;
    l.reload();
    assert!(text_of(&shown(&mut l)).is_ascii(), "{}", text_of(&shown(&mut l)));
    // What is wrong is told with its line, and the last good ones stay.
    for (file, text, line) in [
        ("keys.toml", "[global]\nf9 = \"no.such\"\n", "keys.toml:2"),
        ("themes/mine.toml", "[roles]\nbarr = \"red\"\n", "mine.toml:2"),
    ] {
        let old = std::fs::read_to_string(folder.join(file)).unwrap();
        std::fs::write(folder.join(file), text).unwrap();
        l.reload();
        let said = l.app.model.notices.last().map(|(_, n)| n.message.clone()).unwrap_or_default();
        assert!(said.contains(line), "{file}: {said}");
        assert_eq!(ground(&mut l), after);
        assert!(footer(&mut l).contains("F9 palette"), "{file}");
        std::fs::write(folder.join(file), old).unwrap();
    }
}

#[test]
fn what_the_terminal_says_about_its_ground_chooses_the_theme_of_the_pair() {
    let ui = Ui {
        theme: "auto".into(),
        theme_dark: "gruvbox-dark".into(),
        theme_light: "gruvbox-light".into(),
        ..Ui::default()
    };
    let mut r = Robot::with(80, 24, ui.clone());
    r.app.themes = Themes::new(&ui, Depth::True, None).0;
    r.app.redraw();
    let look = |r: &Robot| r.buffer()[(0, 0)].bg;
    r.msg(Msg::Input(crate::input::Input::Background(250, 250, 245)));
    assert_eq!(r.app.themes.current().name, "gruvbox-light");
    let light = look(&r);
    r.msg(Msg::Input(crate::input::Input::Background(16, 16, 20)));
    assert_eq!(r.app.themes.current().name, "gruvbox-dark");
    assert_ne!(light, look(&r), "and it is seen");
    r.msg(Msg::Input(crate::input::Input::Scheme { dark: false }));
    assert_eq!(r.app.themes.current().name, "gruvbox-light", "mode 2031 too");
    // A theme that was chosen by name stays.
    let ui = Ui { theme: "tokyonight".into(), ..ui };
    r.app.themes = Themes::new(&ui, Depth::True, None).0;
    r.app.redraw();
    r.msg(Msg::Input(crate::input::Input::Background(250, 250, 245)));
    assert_eq!(r.app.themes.current().name, "tokyonight");
}

/// Returns what goes to the terminal, and what the person is told.
fn copied(vars: &'static [&'static str], text: &str) -> (String, String) {
    let (mut l, sink) = stopped(vars, |_| {});
    l.copy(text, "reply");
    l.io.writer.settle(Duration::from_secs(90));
    let screen = text_of(&shown(&mut l));
    let bytes = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
    (bytes, screen)
}

#[test]
fn copies_go_by_the_honest_route_and_say_which() {
    let coded = base64::engine::general_purpose::STANDARD.encode("hello");
    let (bytes, screen) = copied(&[], "hello");
    assert!(bytes.contains(&format!("\x1b]52;c;{coded}\x07")), "{bytes:?}");
    assert!(screen.contains("sent to the terminal by OSC 52") && screen.contains("cannot be"), "{screen}");
    // Over ssh the display here is not the person's: only the terminal is.
    let (bytes, screen) = copied(&["SSH_TTY", "DISPLAY"], "hello");
    assert!(bytes.contains("]52;c;") && screen.contains("OSC 52"), "{screen}");
    // Inside tmux it is wrapped for the terminal outside.
    let (bytes, _) = copied(&["TMUX"], "hello");
    assert!(bytes.starts_with("\x1bPtmux;\x1b\x1b]52;c;"), "{bytes:?}");
    // Too long for any terminal, and no display: said, not pretended.
    let (bytes, screen) = copied(&[], &"x".repeat(clipboard::OSC52_MAX + 1));
    assert!(bytes.is_empty() && screen.contains("not copied"), "{screen}");
}

#[test]
fn the_conversation_is_dumped_to_the_scrollback_as_clean_lines() {
    let mut r = Robot::new(80, 24);
    let mut s = Script::new();
    let entries = vec![
        s.user("what is it?"),
        s.assistant(vec![text_block("**this** \x1b[2Jit is")], StopReason::EndTurn),
    ];
    r.msg(Msg::Engine(Box::new(s.snapshot(entries, 0, false))));
    r.run("ctrl-x [; s");
    let dumped = r.tasks.iter().find_map(|t| match t {
        Task::Suspend(External::Dump { text }) => Some(text.clone()),
        _ => None,
    });
    let text = crate::text::clean::plain_lines(&dumped.expect("a dump"));
    assert!(text.contains("what is it?") && text.contains("this") && text.contains("it is"), "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

/// Ctrl-Z asks for the stop; after it, whatever the shell did to the terminal, everything is drawn anew.
#[test]
fn ctrl_z_stops_and_what_comes_back_is_drawn_anew() {
    let mut r = Robot::new(80, 24);
    r.run("type half a thought; ctrl-z");
    assert!(r.tasks.iter().any(|t| matches!(t, Task::Suspend(External::Stop))));
    r.tasks.clear();
    r.msg(Msg::Signal(crate::app::msg::SignalMsg::Continued));
    assert!(r.tasks.iter().any(|t| matches!(t, Task::Repaint)));
    assert!(r.screen().contains("half a thought"), "and what was typed is there");
    // Where no shell waits for the program it says so and goes on.
    let (mut l, _) = stopped(&[], |_| {});
    l.stop(true);
    assert!(l.app.due(), "everything is drawn anew");
    assert!(text_of(&shown(&mut l)).contains("Cannot suspend"), "{}", text_of(&shown(&mut l)));
}

#[test]
fn the_last_exchange_is_left_as_plain_lines() {
    let mut r = Robot::new(80, 24);
    assert_eq!(last_exchange(r.app.model.agent.conversation.cells(), 80), "");
    let mut script = Script::new();
    let mut entries = Vec::new();
    for (question, answer) in [("first", "old"), ("second\x1b]0;x\x07", "**new** \x1b[2Jwords")] {
        entries.push(script.user(question));
        entries.push(script.assistant(vec![text_block(answer)], StopReason::EndTurn));
    }
    let event = script.snapshot(entries, 0, false);
    r.msg(Msg::Engine(Box::new(event)));
    let text = last_exchange(r.app.model.agent.conversation.cells(), 80);
    assert!(text.contains("second") && text.contains("new"), "{text}");
    assert!(!text.contains("first") && !text.contains("old"), "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}
