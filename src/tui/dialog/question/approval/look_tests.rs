//! How much of the screen a question takes, and how often it names its file.

use tiller_protocol::event::TurnEvent;
use tiller_protocol::{EventBody, SeqIds, ToolVerb};

use super::tests::{ask, asked, permission};
use super::*;
use crate::testing::Robot;

const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (118, 32), (200, 60)];

/// A change of one file, as the engine asks about it.
fn change(verb: &str, path: &str, effects: &[String], lines: usize) -> PermissionAsk {
    let added: String = (1..=lines).map(|n| format!("+line {n}\n")).collect();
    PermissionAsk {
        diff: Some(format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{lines} @@\n{added}")),
        effects: effects.to_vec(),
        always: None,
        editable: false,
        folder: String::new(),
        why: String::new(),
        verb: verb.into(),
        ..permission(path, Risk::Low)
    }
}

/// A robot whose agent has said something, and then asks.
fn asking(width: u16, height: u16, ask: &Ask) -> Robot {
    let mut r = Robot::new(width, height);
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    r.event(EventBody::Turn(TurnEvent::TextDelta { text: "said last".into() }));
    asked(&mut r, ask);
    r.run("wait 401");
    r
}

/// The rows of the dialog, without blanks between them.
fn dialog(r: &Robot) -> String {
    r.screen().lines().filter_map(|l| l.strip_prefix('▌')).map(str::trim).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_path_stands_once_whatever_is_done_to_it() {
    let path = "src/client.rs";
    for verb in ["write", "edit", "patch", "memory", "draw", "tool"] {
        for effects in [
            vec![],
            vec![format!("writes {path}")],
            vec![format!("changes {path}")],
            vec![format!("writes outside the workspace: {path}")],
            vec![format!("changes {path}: agents follow it"), format!("writes {path}")],
        ] {
            let p = change(verb, path, &effects, 3);
            let wants = p.wants().to_owned();
            for diff in [p.diff.clone(), None] {
                let p = PermissionAsk { diff, ..p.clone() };
                for (width, height) in SIZES {
                    let r = asking(width, height, &ask(&SeqIds::default(), p.clone()));
                    let text = dialog(&r);
                    assert_eq!(text.matches("client.rs").count(), 1, "{effects:?}\n{}", r.screen());
                    assert!(text.contains(&format!("main wants to {wants} {path}")), "{}", r.screen());
                    let outside = effects.iter().any(|e| e.contains("outside"));
                    let said = text.contains("outside the workspace");
                    assert!(said == outside || height < 24, "{}", r.screen());
                }
            }
        }
    }
}

#[test]
fn a_reason_stands_once() {
    let why = "agents follow what this file says";
    let effects = [format!("changes AGENTS.md: {why}")];
    let p = PermissionAsk { rule: why.into(), ..change("write", "AGENTS.md", &effects, 3) };
    let r = asking(118, 32, &ask(&SeqIds::default(), p));
    assert_eq!(dialog(&r).matches(why).count(), 1, "{}", r.screen());
}

#[test]
fn several_files_keep_their_headers() {
    let one = change("patch", "src/one.rs", &[], 2);
    let two = change("patch", "src/two.rs", &[], 2);
    let p = PermissionAsk {
        shown: format!("{}\n{}", one.shown, two.shown),
        diff: Some(one.diff.unwrap() + &two.diff.unwrap()),
        ..permission("", Risk::Low)
    };
    let p = PermissionAsk { verb: ToolVerb::Patch, ..p };
    let r = asking(118, 40, &ask(&SeqIds::default(), p));
    let text = dialog(&r);
    for name in ["src/one.rs", "src/two.rs"] {
        assert_eq!(text.matches(name).count(), 2, "in the list, and above its lines: {}", r.screen());
    }
}

#[test]
fn a_file_that_moves_is_named_with_both_names_once() {
    let (old, new) = ("src/old.rs", "lib/new.rs");
    let p = PermissionAsk {
        shown: format!("{old}\n{new}"),
        diff: Some(format!("--- a/{old}\n+++ b/{new}\n@@ -1 +1 @@\n-a\n+b\n")),
        ..change("patch", "x", &[format!("writes {old}"), format!("writes {new}")], 1)
    };
    let r = asking(118, 32, &ask(&SeqIds::default(), p.clone()));
    let text = dialog(&r);
    assert!(text.contains("main wants to move src/old.rs to lib/new.rs"), "{}", r.screen());
    assert!([old, new].iter().all(|name| text.matches(name).count() == 1), "{}", r.screen());
    // A difference of another file than those that are shown has its own header.
    for shown in [format!("{old}\nother.rs"), format!("other.rs\n{new}"), format!("{old}\n{new}\nthird.rs")] {
        let r = asking(118, 32, &ask(&SeqIds::default(), PermissionAsk { shown, ..p.clone() }));
        let text = dialog(&r);
        assert!(
            text.contains("wants to patch:") && text.contains("src/old.rs to lib/new.rs"),
            "{}",
            r.screen()
        );
    }
}

/// The file's name is never cut, and the whole path can be read.
#[test]
fn a_long_path_is_cut_in_its_middle_and_stands_whole_in_the_text() {
    let folders = "a-rather-long-folder/".repeat(8);
    for (width, height) in SIZES {
        let path = format!("{folders}client_settings.rs");
        let p = change("edit", &path, &[format!("writes {path}")], 3);
        let mut r = asking(width, height, &ask(&SeqIds::default(), p));
        let screen = r.screen();
        let title = screen.lines().find(|l| l.contains("main wants to edit")).unwrap();
        assert!(title.contains("/client_settings.rs") && title.contains('…'), "{screen}");
        r.run("g");
        let text: String = dialog(&r).split_whitespace().collect();
        assert!(height < 24 || text.contains(&path), "{}", r.screen());
    }
    // A name that does not fit leaves the title to the verb.
    let name = format!("{}.rs", "n".repeat(90));
    let r = asking(80, 24, &ask(&SeqIds::default(), change("edit", &name, &[], 3)));
    assert!(r.screen().contains("main wants to edit:"), "{}", r.screen());
}

/// A panel that fills the screen gives room to it.
#[test]
fn a_question_is_seen_beside_a_panel_that_fills_the_screen() {
    for (width, height) in [(40, 12), (60, 16), (80, 24), (118, 32)] {
        let mut r = crate::scene::crew(width, height);
        r.run("alt-3; +; +; wait 3000");
        asked(&mut r, &ask(&SeqIds::default(), change("write", "src/a.rs", &[], 1)));
        let screen = r.screen();
        assert!(screen.contains("▲ main wants to write") && screen.contains("[n] no"), "{screen}");
    }
}

/// The answers to every question are on the screen, and so is what the agent said last.
#[test]
fn a_question_leaves_the_conversation_in_sight_and_scrolls() {
    let ids = SeqIds::default();
    let long = |n: usize| (1..=n).map(|n| format!("{n}. do it\n\n")).collect::<String>();
    let body = |body| {
        let agent = tiller_protocol::AgentId::main();
        Ask { id: AskId::fresh(&ids, crate::testing::START), agent, call: None, body }
    };
    let plan = |n| body(AskBody::Plan { file: "/p.md".into(), plan: long(n) });
    let clarify = |n: usize| {
        body(AskBody::Clarify {
            question: long(n),
            choices: vec!["this way".into(), "that way".into()],
            allow_freetext: true,
            multiple: false,
            default: None,
            decides: Vec::new(),
        })
    };
    for (width, height) in SIZES {
        for lines in [1, 17, 400] {
            let edit = ask(&ids, change("write", "src/a.rs", &[], lines));
            let command = ask(&ids, permission(&long(lines), Risk::High));
            for (question, answers) in
                [(edit, "[y]"), (command, "[n] no"), (plan(lines), "approve"), (clarify(lines), "that way")]
            {
                let r = asking(width, height, &question);
                let screen = r.screen();
                assert!(screen.contains(answers), "{width}x{height} {lines}: {screen}");
                if height >= 24 {
                    assert!(screen.contains("said last"), "{width}x{height} {lines}: {screen}");
                }
                assert!(lines < 400 || screen.contains("more rows"), "{width}x{height}: {screen}");
            }
        }
    }
}

#[test]
fn the_folder_of_a_command_is_named_as_paths_are() {
    for (folder, said) in [
        ("/w/app", "Runs in this folder."),
        ("/w/app/web/api", "Runs in web/api."),
        ("/w/apple", "Runs in /w/apple."),
        ("/w/app/../b", "Runs in /w/app/../b."),
        ("box:/w/app", "Runs in box:/w/app."),
    ] {
        let ids = SeqIds::default();
        let p = PermissionAsk { folder: folder.into(), ..permission("make", Risk::Low) };
        let mut r = Robot::new(118, 32);
        r.app.model.environment.folders.workspace = vec!["/w/app".into()];
        let first = ask(&ids, p);
        asked(&mut r, &first);
        r.run("wait 401");
        assert!(dialog(&r).contains(said), "{}", r.screen());
        // Another event does not bring the whole path back.
        asked(&mut r, &ask(&ids, permission("other", Risk::Low)));
        r.run("wait 401");
        assert!(dialog(&r).contains(said), "{}", r.screen());
    }
}
