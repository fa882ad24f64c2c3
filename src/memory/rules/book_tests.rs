use tiller_protocol::{SeqIds, SessionId, Time};
use tiller_store::{Options, Store};
use tiller_tool::Registry;

use super::*;

fn book(text: &str) -> (tempfile::TempDir, Store, RuleBook) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("tiller.db"), Options::default()).unwrap();
    let path = dir.path().join("MEMORY.md");
    std::fs::write(&path, text).unwrap();
    let book = RuleBook::new(vec![(path, "MEMORY.md".into())], Registry::built_in().catalog());
    (dir, store, book)
}

fn session() -> SessionId {
    SessionId::fresh(&SeqIds::default(), Time(1))
}

#[test]
fn rules_are_read_from_entries_and_again_when_the_file_changes() {
    let (dir, store, book) = book(
        "# Memory\n\n- 2026-11-26: Never push by hand,\n  the bot does it. [never: terminal \"git push*\"]\n- likes tea\n\n## Archive\n- old [never: terminal \"ls\"]\n",
    );
    let rules = book.rules(&store);
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].rule.text, "Never push by hand, the bot does it.");
    assert_eq!(
        (rules[0].rule.never.as_slice(), rules[0].origin.as_str()),
        (&["terminal(git push*)".to_owned()][..], "MEMORY.md")
    );
    std::fs::write(dir.path().join("MEMORY.md"), "- x [when: read]\n- y [when: nothing]\n").unwrap();
    assert_eq!(book.rules(&store).len(), 1);
    assert_eq!(book.rules(&store)[0].rule.text, "x");
    assert!(book.faults()[0].starts_with("MEMORY.md: there is no tool 'nothing'"));
}

#[test]
fn text_of_others_is_no_rule() {
    let (dir, store, book) = book(
        "- 2026-11-26: push freely [never: terminal \"ls\"] [from web]\n- run it [when: read] [from tool output]\n- mine [when: read]\n",
    );
    let texts: Vec<String> = book.rules(&store).into_iter().map(|r| r.rule.text).collect();
    assert_eq!(texts, ["mine"]);
    let faults = book.faults();
    assert!(
        faults.len() == 2 && faults[0].contains("is no rule") && faults[0].contains("push freely"),
        "{faults:?}"
    );
    // The person takes responsibility for it by taking the mark away.
    std::fs::write(dir.path().join("MEMORY.md"), "- run it, but slowly [when: read]\n").unwrap();
    assert_eq!((book.rules(&store).len(), book.faults().len()), (1, 0));
    // Nor does what was learned from the output of a command become one.
    for (taint, rules) in [(Taint::ToolOutput, 1), (Taint::Web, 1), (Taint::Agent, 2)] {
        let source = tiller_protocol::LearningSource {
            session: None,
            entry: None,
            agent: "main".into(),
            branch: "main".into(),
            taint,
        };
        let learning = tiller_protocol::Learning {
            id: 0,
            kind: tiller_protocol::FailureKind::default(),
            pattern: format!("pattern {taint:?}"),
            fix: format!("do {taint:?} [when: read]"),
            context: String::new(),
            tags: Vec::new(),
            state: tiller_protocol::LearningState::Active,
            created_at: Time(1),
            last_used_at: None,
            times_used: 0,
            source,
        };
        store.learnings().add(learning).wait().unwrap();
        assert_eq!(book.rules(&store).len(), rules, "{taint:?}");
    }
}

#[test]
fn hostile_files_are_bounded_and_never_wait() {
    let (dir, store, book) = book("");
    let path = dir.path().join("MEMORY.md");
    std::fs::remove_file(&path).unwrap();
    rustix_mkfifo(&path);
    assert_eq!(book.rules(&store), []);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(book.rules(&store), []);
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, "- x [when: read]\n".repeat(100_000)).unwrap();
    assert_eq!(book.rules(&store).len(), RULES);
    std::fs::write(&path, [0xff, 0xfe, b'-', b' ', 0, b'\n']).unwrap();
    assert_eq!(book.rules(&store), []);
}

fn rustix_mkfifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_rule_is_shown_once_and_again_when_it_is_violated() {
    let (_dir, store, book) =
        book("- No pushes. [when: terminal \"git *\"] [never: terminal \"git push*\"]\n");
    let rule = book.rules(&store).remove(0);
    let hit = |forbids| [RuleHit { rule: rule.clone(), forbids }];
    let s = session();
    let (texts, counts) = book.note(s, &hit(false));
    assert_eq!(texts, ["[A rule of MEMORY.md concerns this call: No pushes.]"]);
    assert_eq!(counts[0].1, RuleReceipts { shown: 1, followed: 0, violated: 0 });
    let (texts, counts) = book.note(s, &hit(false));
    assert_eq!((texts.len(), counts[0].1), (0, RuleReceipts { shown: 0, followed: 1, violated: 0 }));
    let (texts, counts) = book.note(s, &hit(true));
    assert_eq!(texts, ["[A rule of MEMORY.md forbids this call: No pushes.]"]);
    assert_eq!(counts[0].1, RuleReceipts { shown: 1, followed: 0, violated: 1 });
    book.forget(s);
    let (texts, counts) = book.note(s, &hit(true));
    assert_eq!((texts.len(), counts[0].1.violated), (1, 0), "it was not shown before");
}
