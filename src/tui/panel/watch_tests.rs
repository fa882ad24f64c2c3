//! The feed, driven by the robot.

use tiller_protocol::{AgentId, Time};

use super::*;
use crate::testing::{Robot, START};

pub(crate) fn change(seconds: i64, kind: ChangeKind, path: &str, who: Who, count: u64) -> FileChange {
    let lines = (kind == ChangeKind::Modified).then_some((18, 4));
    FileChange {
        time: Time(START.millis() + seconds * 1000),
        kind,
        path: path.into(),
        who,
        count,
        lines,
        during: None,
    }
}

fn feed(r: &mut Robot) {
    let main = AgentId::main;
    let changes = vec![
        change(0, ChangeKind::Modified, "README.md", Who::You, 1),
        change(
            20,
            ChangeKind::Modified,
            "src/a/very/long/way/down/client.rs",
            Who::Agent { agent: main() },
            1,
        ),
        change(
            22,
            ChangeKind::Modified,
            "src/a/very/long/way/down/client.rs",
            Who::Agent { agent: main() },
            1,
        ),
        change(60, ChangeKind::Storm, "target", Who::Shell { agent: main() }, 2314),
        change(90, ChangeKind::Added, "src/\u{202e}evil.rs", Who::Shell { agent: main() }, 1),
        change(95, ChangeKind::Git, "switched to branch docs", Who::Git, 1),
    ];
    r.event(EventBody::State(StateEvent::WorkspaceChanged { changes }));
}

fn sent(r: &Robot) -> Vec<WatchCommand> {
    let watch = |c: &CommandBody| match c {
        CommandBody::Watch(w) => Some(w.clone()),
        _ => None,
    };
    r.commands().into_iter().filter_map(watch).collect()
}

#[test]
fn looks_well_in_the_rail_and_alone() {
    let mut r = Robot::new(118, 25);
    feed(&mut r);
    assert!(r.screen().contains("Changes 2,319 new"), "{}", r.screen());
    insta::assert_snapshot!("watch_at_118x25", r.screen());
    r.run("size 80x24; alt-4");
    insta::assert_snapshot!("watch_at_80x24", r.screen());
    r.run("esc");
    assert!(!r.screen().contains(" new"), "it was looked at: {}", r.screen());
}

#[test]
fn enter_shows_the_difference_and_the_other_keys_work() {
    let mut r = Robot::new(80, 24);
    feed(&mut r);
    r.run("alt-4").clear();
    r.run("enter");
    assert!(sent(&r).is_empty(), "a branch is no file");
    r.run("G; enter");
    assert_eq!(sent(&r), [WatchCommand::Diff { path: "README.md".into() }]);
    let diff = "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-old words\n+new words\n".into();
    r.reply(ReplyEvent::DiffReply { path: "README.md".into(), diff });
    assert!(
        r.screen().contains("new words") && r.screen().contains("since the session began"),
        "{}",
        r.screen()
    );
    r.clear().run("q; m; p");
    let mute = WatchCommand::Mute { path: "README.md".into() };
    assert_eq!(sent(&r), [mute, WatchCommand::Pause { paused: true }]);
    assert!(r.screen().contains("resume"), "{}", r.screen());
    r.run("@");
    assert_eq!(r.app.screen.focus, View::Composer);
    assert!(r.screen().contains("@README.md"), "{}", r.screen());
}

#[test]
fn files_stand_below_their_author_with_their_lines_in_columns() {
    let mut r = Robot::new(118, 25);
    let main = || Who::Agent { agent: AgentId::main() };
    let mut more = change(40, ChangeKind::Modified, "src/client.rs", main(), 1);
    more.lines = Some((100, 7));
    let changes = vec![
        change(0, ChangeKind::Modified, "notes.md", Who::You, 1),
        change(20, ChangeKind::Modified, "src/client.rs", main(), 1),
        more,
        change(50, ChangeKind::Modified, "src/lib.rs", main(), 1),
    ];
    r.event(EventBody::State(StateEvent::WorkspaceChanged { changes }));
    r.run("alt-4");
    let screen = r.screen();
    let row = |word: &str| {
        let at = screen.lines().position(|l| l.contains(word)).unwrap_or_else(|| panic!("{word}: {screen}"));
        (at, screen.lines().nth(at).unwrap().to_owned())
    };
    // One row a file, with all that its author changed in it.
    assert_eq!(screen.matches("src/client.rs").count(), 1, "{screen}");
    let (group, heading) = row("main 2");
    assert!(heading.contains("+136 −15"), "{screen}");
    assert_eq!((row("src/lib.rs").0, row("src/client.rs").0), (group + 1, group + 2), "{screen}");
    assert!(row("You and other programs").0 > row("src/client.rs").0, "{screen}");
    let end =
        |line: &str, word: &str| line[..line.find(word).unwrap()].chars().count() + word.chars().count();
    assert_eq!(end(&row("src/client.rs").1, "+118"), end(&row("src/lib.rs").1, "+18"), "{screen}");
    assert_eq!(end(&row("src/client.rs").1, "−11"), end(&row("src/lib.rs").1, "−4"), "{screen}");
    // The name of a group is not selected.
    let y = usize::from(r.cursor().unwrap().y);
    assert_eq!(y, group + 1, "{screen}");
}

/// U9: a name that turns the reading direction is spelled out.
#[test]
fn u9_odd_names_are_spelled_out_in_the_feed() {
    let mut r = Robot::new(118, 25);
    feed(&mut r);
    r.run("alt-4");
    assert!(r.screen().contains("<U+202E>"), "{}", r.screen());
}

#[test]
fn a_path_is_muted_and_shown_again_by_name() {
    let mut r = Robot::new(118, 25);
    r.run("type /mute target/; enter");
    assert_eq!(sent(&r), [WatchCommand::Mute { path: "target".into() }]);
    assert!(r.screen().contains("No longer shown: target"), "{}", r.screen());
    r.run("type /mute; space; enter");
    assert!(r.screen().contains("Hidden: target"), "{}", r.screen());
    r.clear().run("type /mute target; enter");
    assert_eq!(sent(&r), [WatchCommand::Mute { path: "target".into() }], "the engine turns it round");
    assert!(r.screen().contains("Shown again: target"), "{}", r.screen());
}
