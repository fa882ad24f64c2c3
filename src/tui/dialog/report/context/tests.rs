use std::time::Duration;

use tiller_protocol::ModelRef;

use super::*;
use crate::testing::Robot;

fn report() -> ContextReport {
    let layer = |name: &str, source: &str, tokens, budget| LayerCost {
        name: name.into(),
        source: source.into(),
        tokens,
        budget,
        shortened: name == "project",
        part: (name == "prompt").then_some((0, 19)),
    };
    ContextReport {
        model: ModelRef("fake/m".into()),
        window: Some(100_000),
        used: 20_000,
        layers: vec![
            layer("prompt", "built in", 700, 4_000),
            layer("project", "/w/AGENTS.md", 9_000, 12_000),
        ],
        system: "You are a good pair.\n\n# Project\nUse tabs.".into(),
        tools: 2_000,
        tool_texts: "read_file\nReads a file.".into(),
        messages: 8_300,
        exact: false,
    }
}

fn opened(width: u16, height: u16) -> Robot {
    let mut r = Robot::new(width, height);
    r.app.model.environment.folders.config = Some("/home/me/.config/tiller".into());
    r.app.model.environment.folders.data = Some("/home/me/.local/share/tiller".into());
    assert!(r.app.act(Action("context.open")));
    r.wait(Duration::from_secs(1));
    r.reply(ReplyEvent::ContextReply { report: report() });
    r
}

fn editor(r: &Robot) -> Option<&Path> {
    r.tasks.iter().find_map(|t| match t {
        Task::Suspend(External::Editor { file, .. }) => Some(file.as_path()),
        _ => None,
    })
}

#[test]
fn each_layer_shows_its_cost_its_budget_and_its_file() {
    for (width, height) in [(118, 25), (80, 24)] {
        let mut r = opened(width, height);
        let screen = r.screen();
        let row = screen.lines().find(|l| l.contains("Project: AGENTS.md")).unwrap();
        assert!(row.contains("9.0 %") && row.contains("9,000"), "{screen}");
        assert!(width < 100 || row.contains("12,000"), "{screen}");
        for name in ["Prompt: SOUL.md", "User: USER.md", "Memory: MEMORY.md"] {
            assert!(screen.contains(name), "{name}: {screen}");
        }
        r.run("down");
        assert!(r.screen().contains("From /w/AGENTS.md, shortened to fit"), "{}", r.screen());
    }
}

#[test]
fn files_of_one_name_are_told_apart_and_one_made_since_says_when_it_counts() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::write(tmp.path().join("USER.md"), "- likes tabs\n").unwrap();
    let mut report = report();
    let memory = |source: String| LayerCost {
        name: "memory".into(),
        source,
        tokens: 10,
        budget: 3_000,
        shortened: false,
        part: None,
    };
    report.layers.push(memory(tmp.path().join("MEMORY.md").display().to_string()));
    report.layers.push(memory("/w/.tiller/MEMORY.md".into()));
    let mut r = Robot::new(80, 24);
    r.app.model.environment.folders.config = Some("/home/me/.config/tiller".into());
    r.app.model.environment.folders.data = Some(tmp.path().to_owned());
    assert!(r.app.act(Action("context.open")));
    r.wait(Duration::from_secs(1));
    let at = r.tasks.iter().position(|t| matches!(t, Task::Job(..))).unwrap();
    let Task::Job(job, token) = r.tasks.remove(at) else { panic!() };
    r.reply(ReplyEvent::ContextReply { report });
    r.msg(crate::app::msg::Msg::Job(token, job()));
    let screen = r.screen();
    assert!(screen.contains("Memory: MEMORY.md") && screen.contains("Memory: .tiller/MEMORY.md"), "{screen}");
    r.run("type USER.md; wait 1");
    let screen = r.screen();
    assert!(screen.contains("next session") && !screen.contains("none yet"), "{screen}");
    assert!(screen.contains("made since this session began"), "{screen}");
    assert!(r.footer().contains("Enter edit"), "{}", r.footer());
}

/// Each row opens the text that is sent, and the list stays below it.
#[test]
fn enter_reads_what_is_sent_and_the_list_stays() {
    for (width, height) in [(118, 25), (80, 24)] {
        let mut r = opened(width, height);
        assert!(r.footer().contains("Enter read"), "{}", r.footer());
        r.run("enter");
        let screen = r.screen();
        assert!(screen.contains("You are a good pair") && !screen.contains("Use tabs"), "{screen}");
        // A prompt of an earlier version is not divided.
        r.run("esc; down; enter");
        let screen = r.screen();
        assert!(screen.contains("not divided into its layers") && screen.contains("Use tabs"), "{screen}");
        r.run("esc; type Tools; enter");
        assert!(r.screen().contains("Reads a file."), "{}", r.screen());
        r.run("esc");
        assert!(r.screen().contains("Context"), "{}", r.screen());
        r.run("ctrl-u; type Total; enter");
        assert!(r.screen().contains("Context"), "a sum has no text, and the list stays: {}", r.screen());
    }
}

#[test]
fn a_budget_that_cannot_be_used_stays_in_its_field() {
    let mut r = opened(118, 25);
    r.run("down; ctrl-b; ctrl-u; type 99999999; enter");
    let screen = r.screen();
    assert!(screen.contains("Tokens: 99999999") && screen.contains("from 1 to 1,000,000"), "{screen}");
    r.run("backspace; backspace; backspace; backspace; enter; wait 1");
    assert!(r.screen().contains("project = 9999"), "{}", r.screen());
    // A row without a budget does not offer its key.
    let mut r = opened(118, 25);
    r.run("type Free");
    assert!(!r.footer().contains("budget"), "{}", r.footer());
}

#[test]
fn a_key_edits_the_file_of_a_layer_and_says_when_the_change_shows() {
    let mut r = opened(118, 25);
    r.run("down; ctrl-x e");
    assert_eq!(editor(&r), Some(Path::new("/w/AGENTS.md")));
    assert!(r.screen().contains("takes effect in the next session"), "{}", r.screen());
    // A file that does not exist yet is made by the editor.
    for name in ["USER", "MEMORY"] {
        let mut r = opened(118, 25);
        r.run(&format!("type {name}"));
        assert!(r.footer().contains("Enter make"), "{}", r.footer());
        r.run("enter");
        let file = format!("/home/me/.local/share/tiller/{name}.md");
        assert_eq!(editor(&r), Some(Path::new(&file)));
    }
    let mut r = opened(118, 25);
    assert!(!r.footer().contains("edit"), "what is built in has no file: {}", r.footer());
    r.run("down");
    assert!(r.footer().contains("edit"), "{}", r.footer());
    let mut r = opened(118, 25);
    r.run("ctrl-x e");
    assert_eq!(editor(&r), None);
}

#[test]
fn a_budget_is_written_after_its_line_was_shown() {
    for (width, height) in [(118, 25), (80, 24)] {
        let mut r = opened(width, height);
        r.run("down; ctrl-b");
        assert!(r.screen().contains("12000"), "the present one: {}", r.screen());
        r.run("ctrl-u; type 9,500; enter");
        let screen = r.screen();
        assert!(screen.contains("[context.layers]") && screen.contains("project = 9500"), "{screen}");
        let saved = |r: &Robot| {
            r.tasks.iter().find_map(|t| match t {
                Task::SaveSetting { key, value } => Some((key.clone(), value.clone())),
                _ => None,
            })
        };
        assert_eq!(saved(&r), None);
        r.wait(Duration::from_secs(5)).run("y");
        assert_eq!(saved(&r), Some(("context.layers.project".to_owned(), SettingEdit::Value(9_500.into()))));
    }
    for wrong in ["0", "-1", "many", "99999999"] {
        let mut r = opened(118, 25);
        r.run(&format!("down; ctrl-b; ctrl-u; type {wrong}; enter"));
        assert!(r.screen().contains("A budget is a number of tokens"), "{wrong}: {}", r.screen());
    }
    let mut r = opened(118, 25);
    r.run("type Messages; ctrl-b");
    assert!(r.screen().contains("Only layers of the prompt have a budget"), "{}", r.screen());
}
