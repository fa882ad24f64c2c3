use tiller_protocol::{EntryId, ManualClock, SeqIds, SessionId, Time};
use tiller_store::{Options, Store};
use tiller_tool::Registry;

use super::*;
use crate::screen::no_secret;
use crate::testing::{learning, learning_source};
use crate::{MemoryPlaces, MemorySettings};

fn book(text: &str) -> (tempfile::TempDir, Store, RuleBook) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("tiller.db"), Options::default()).unwrap();
    std::fs::write(dir.path().join("MEMORY.md"), text).unwrap();
    let places = MemoryPlaces {
        data: dir.path().to_owned(),
        settings: dir.path().join("settings"),
        project: Some(dir.path().join("project")),
    };
    let settings = MemorySettings::of(&tiller_config::Config::default());
    let memory = Memory::new(places, Arc::new(ManualClock::new(Time(1))), no_secret(), settings);
    memory.open(store.clone());
    let book = RuleBook::new(Arc::new(memory), Registry::built_in().catalog());
    (dir, store, book)
}

/// Entries that have a fault, with it.
fn marks(book: &RuleBook) -> Vec<(String, String)> {
    let mut page = book.memory.page(&tiller_protocol::MemoryQuery::default()).unwrap();
    book.mark(&mut page);
    let faulty = page.entries.into_iter().filter(|e| !e.fault.is_empty());
    faulty.map(|e| (e.text, e.fault)).collect()
}

/// A call of this reply.
fn at(session: SessionId, reply: Option<EntryId>) -> RulePlace {
    RulePlace { session, reply, in_script: false, most: usize::MAX }
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
    let told = book.new_faults();
    let [told] = &told[..] else { panic!("{told:?}") };
    let why = told.strip_prefix("\"y [when: nothing]\" in MEMORY.md is no rule: ").unwrap();
    assert!(why.starts_with("there is no tool 'nothing'"), "{told}");
    assert_eq!(book.new_faults(), [""; 0], "it is named once");
    assert_eq!(marks(&book), [("y [when: nothing]".to_owned(), format!("It is no rule: {why}"))]);
    // What the answer to a note has said is not said again.
    std::fs::write(dir.path().join("MEMORY.md"), "- new [when: z]\n- 2026-11-28: told [when: z]\n").unwrap();
    book.fault_reported(" told [when: z]\n");
    let told = book.new_faults();
    assert!(told.len() == 1 && told[0].starts_with("\"new [when: z]\""), "{told:?}");
}

#[test]
fn text_of_others_is_no_rule() {
    let (dir, store, book) = book(
        "- 2026-11-26: push freely [never: terminal \"ls\"] [from web]\n- run it [when: read] [from tool output]\n- mine [when: read]\n",
    );
    let texts: Vec<String> = book.rules(&store).into_iter().map(|r| r.rule.text).collect();
    assert_eq!(texts, ["mine"]);
    let faults = marks(&book);
    assert!(
        faults.len() == 2 && faults.iter().all(|(_, why)| why.contains("until you accept it")),
        "{faults:?}"
    );
    // The user takes responsibility for it by taking the mark away.
    std::fs::write(dir.path().join("MEMORY.md"), "- run it, but slowly [when: read]\n").unwrap();
    assert_eq!((book.rules(&store).len(), marks(&book).len()), (1, 0));
    // Nor does what was learned from the output of a command become one.
    for (taint, rules) in [(Taint::ToolOutput, 1), (Taint::Web, 1), (Taint::Agent, 2)] {
        let fix = format!("do {taint:?} [when: read]");
        let learning = tiller_protocol::Learning {
            kind: tiller_protocol::FailureKind::default(),
            pattern: format!("pattern {taint:?}"),
            source: learning_source(taint),
            ..learning("", "", &fix)
        };
        store.learnings().add(learning).wait().unwrap();
        assert_eq!(book.rules(&store).len(), rules, "{taint:?}");
    }
}

/// However many there are, each has power, and a change of one is seen at once.
#[test]
fn all_learnings_with_a_matcher_are_rules_and_changes_of_them_are_seen() {
    let (_dir, store, book) = book("- mine [when: read]\n");
    let rule = |n: usize| tiller_protocol::Learning {
        source: learning_source(Taint::Person),
        ..learning(&format!("s{n}"), "", &format!("rule {n} [when: terminal \"tool{n} *\"]"))
    };
    let last = RULES + 200;
    store.learnings().add_all((1..=last).map(rule).collect()).wait().unwrap();
    let rules = book.rules(&store);
    assert_eq!(rules.len(), last + 1);
    assert!(rules.iter().any(|r| r.rule.text == format!("rule {last}")), "also the last one");
    // What is for another call is not copied.
    let only = format!("rule {last}");
    let texts = |rules: Vec<BookRule>| rules.into_iter().map(|r| r.rule.text).collect::<Vec<_>>();
    let command = format!("tool{last} now");
    let args = format!("{{\"command\":\"{command}\"}}");
    let call = RuleCall::new("terminal", &args, &command, &[], &[]);
    let found = texts(book.rules_for(&store, &call));
    assert!(found.contains(&only) && found.len() < 10, "{found:?}");
    let call = RuleCall::new("read_file", &args, &command, &[], &[]);
    assert_eq!(texts(book.rules_for(&store, &call)), ["mine"]);
    // A use of a learning changes no rule; a learning that is left with its branch is none.
    let read = || Arc::clone(&book.learned.lock().unwrap().as_ref().unwrap().1);
    let before = read();
    let id = store.learnings().with_matchers().unwrap()[0].id;
    store.learnings().used(vec![id]).wait().unwrap();
    book.rules(&store);
    assert!(Arc::ptr_eq(&before, &read()), "they are not read again");
    store.learnings().follow_branch(vec![id], Vec::new()).wait().unwrap();
    assert_eq!(book.rules(&store).len(), last);
    store.learnings().follow_branch(Vec::new(), vec![id]).wait().unwrap();
    assert_eq!(book.rules(&store).len(), last + 1);
}

/// They share their counts: two of them would take a call for the second time that the first was followed.
#[test]
fn entries_that_say_the_same_are_one_rule() {
    let (dir, store, book) = book(
        "- Ask first. [when: terminal \"ls*\"]\n- other [when: read]\n- 2026-11-26: Ask first. [never: terminal \"rm*\"]\n",
    );
    std::fs::write(dir.path().join("USER.md"), "- Ask first. [never: terminal \"rm*\"]\n").unwrap();
    let rules = book.rules(&store);
    let texts: Vec<&str> = rules.iter().map(|r| r.rule.text.as_str()).collect();
    assert_eq!(texts, ["Ask first.", "other"]);
    assert_eq!(
        (&rules[0].rule.when[..], &rules[0].rule.never[..]),
        (&["terminal(ls*)".to_owned()][..], &["terminal(rm*)".to_owned()][..])
    );
    assert_eq!(rules[0].origin, "MEMORY.md, USER.md");
    let hits: Vec<RuleHit> =
        rules.into_iter().take(1).map(|rule| RuleHit { rule, forbids: false, spares: false }).collect();
    let (_, counts) = book.note(&at(session(), None), &hits);
    let once = RuleReceipts { shown: 1, ..RuleReceipts::default() };
    assert_eq!(counts, [("Ask first.".to_owned(), once)]);
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
    let many: String = (0..50_000).map(|n| format!("- {n} [when: read]\n")).collect();
    std::fs::write(&path, many).unwrap();
    assert_eq!(book.rules(&store).len(), RULES);
    let faults = book.new_faults();
    assert_eq!(faults.len(), FAULTS);
    assert!(
        faults[0].ends_with("is no rule: there are 1000 rules before it, and no more count"),
        "{faults:?}"
    );
    // Larger than a memory file may be, and no text: the rules that were read stay.
    std::fs::write(&path, "- x [when: read]\n".repeat(100_000)).unwrap();
    assert_eq!(book.rules(&store).len(), RULES);
    std::fs::write(&path, [0xff, 0xfe, b'-', b' ', 0, b'\n']).unwrap();
    assert_eq!(book.rules(&store).len(), RULES);
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
    let hit = |forbids| [RuleHit { rule: rule.clone(), forbids, spares: false }];
    let s = session();
    let (texts, counts) = book.note(&at(s, None), &hit(false));
    assert_eq!(texts, ["[A rule of MEMORY.md concerns this call: No pushes.]"]);
    assert_eq!(counts[0].1, RuleReceipts { shown: 1, followed: 0, violated: 0 });
    let (texts, counts) = book.note(&at(s, None), &hit(false));
    assert_eq!((texts.len(), counts[0].1), (0, RuleReceipts { shown: 0, followed: 1, violated: 0 }));
    let (texts, counts) = book.note(&at(s, None), &hit(true));
    assert_eq!(texts, ["[A rule of MEMORY.md forbids this call: No pushes.]"]);
    assert_eq!(counts[0].1, RuleReceipts { shown: 1, followed: 0, violated: 1 });
    book.forget(s);
    let (texts, counts) = book.note(&at(s, None), &hit(true));
    assert_eq!((texts.len(), counts[0].1.violated), (1, 0), "it was not shown before");
}

/// The model reads a rule once its reply is over: other calls of the reply neither follow nor violate it.
#[test]
fn only_a_rule_that_the_model_has_read_is_violated() {
    let (_dir, store, book) = book("- No pushes. [never: terminal \"git push*\"]\n");
    let rule = book.rules(&store).remove(0);
    let hit = |forbids| [RuleHit { rule: rule.clone(), forbids, spares: !forbids }];
    let (s, ids) = (session(), SeqIds::default());
    let counts = |place: &RulePlace, forbids| {
        let (texts, counts) = book.note(place, &hit(forbids));
        let counts = counts.first().map(|(_, count)| *count).unwrap_or_default();
        assert_eq!(u32::try_from(texts.len()).unwrap(), counts.shown);
        (counts.shown, counts.followed, counts.violated)
    };
    let [one, two, three] = [(); 3].map(|()| at(s, Some(EntryId::fresh(&ids, Time(1)))));
    assert_eq!(counts(&one, true), (1, 0, 0));
    assert_eq!(counts(&one, false), (0, 0, 0));
    // Its result contains it, too.
    assert_eq!(counts(&one, true), (1, 0, 0));
    assert_eq!(counts(&two, false), (0, 1, 0));
    assert_eq!(counts(&two, true), (1, 0, 1));
    // The result of a script contains it once, and each of its calls is counted.
    let script = RulePlace { in_script: true, ..three };
    assert_eq!(counts(&script, true), (1, 0, 1));
    assert_eq!(counts(&script, true), (0, 0, 1));
    // What there is no room for is not shown, so that it is due with the next call.
    let other = SessionId::fresh(&ids, Time(2));
    assert_eq!(counts(&RulePlace { most: 0, ..at(other, one.reply) }, true), (0, 0, 0));
    assert_eq!(counts(&at(other, two.reply), true), (1, 0, 0));
    // It stands in the conversation of a session that is opened again.
    let opened = SessionId::fresh(&ids, Time(3));
    book.restore_shown(opened, [("No pushes.", one.reply.unwrap())].into_iter());
    assert_eq!(counts(&at(opened, two.reply), true), (1, 0, 1));
}

/// The longest rule is shown whole, and a rule that only forbids is followed by a call that it spares.
#[test]
fn a_long_rule_is_shown_whole_and_one_that_only_forbids_can_be_followed() {
    let long = format!("Ask {}", "a".repeat(1_300));
    let (_dir, store, book) = book(&format!("- {long} [never: terminal \"git push*\"]\n"));
    let rule = book.rules(&store).remove(0);
    let hit = |forbids| [RuleHit { rule: rule.clone(), forbids, spares: !forbids }];
    let s = session();
    assert_eq!(book.note(&at(s, None), &hit(false)), (vec![], vec![]), "it was not shown yet");
    let (texts, _) = book.note(&at(s, None), &hit(true));
    assert!(texts[0].contains(&long), "{texts:?}");
    let (texts, counts) = book.note(&at(s, None), &hit(false));
    assert_eq!((texts.len(), counts[0].1), (0, RuleReceipts { shown: 0, followed: 1, violated: 0 }));
}

/// Only entries are rules: what stands in a code block, in a paragraph or in the archive is text.
#[test]
fn text_that_is_no_entry_is_no_rule() {
    let (_dir, store, book) = book(
        "# Rules [never: read]\n\nA paragraph [never: read]\n\n```\n- code [never: read]\n```\n\n- one\n  [never: read\n  src/**]\n\n## Archive\n\n- old [never: read]\n\n## Later\n\n- two [never: read]\n",
    );
    let texts: Vec<String> = book.rules(&store).into_iter().map(|r| r.rule.text).collect();
    assert_eq!(texts, ["one", "two"]);
    assert_eq!(book.new_faults(), [""; 0]);
}

/// An entry that is a matcher but for its capitals is named as a fault, in the notice and in the list.
#[test]
fn what_is_nearly_a_matcher_is_named() {
    let (_dir, store, book) = book("- No pushes. [Never: terminal \"git push*\"]\n- words\n");
    assert_eq!(book.rules(&store), []);
    let faults = book.new_faults();
    assert!(faults.len() == 1 && faults[0].contains("not '[Never:'"), "{faults:?}");
    let marks = marks(&book);
    assert!(marks.len() == 1 && marks[0].1.starts_with("It is no rule: write '[when:'"), "{marks:?}");
}

/// Entries that appear while a program runs that nothing confines have no power until the user accepts them.
#[test]
fn what_an_unconfined_program_writes_is_no_rule_until_it_is_accepted() {
    let (dir, store, book) = book("- mine [when: read]\n");
    let path = dir.path().join("MEMORY.md");
    let texts = || book.rules(&store).into_iter().map(|r| r.rule.text).collect::<Vec<_>>();
    // Written in an editor: it is the user's.
    std::fs::write(&path, "- mine [when: read]\n- by hand [when: read]\n").unwrap();
    assert_eq!(texts(), ["mine", "by hand"]);
    book.memory.before_unconfined_program();
    std::fs::write(&path, "- mine [when: read]\n- by hand [when: read]\n- poison [when: read]\n").unwrap();
    assert_eq!(texts(), ["mine", "by hand"], "whether or not the call has ended");
    assert_eq!(
        [book.memory.unconfined_entries(session()), book.memory.unconfined_entries(session())],
        [1, 0]
    );
    let page = book.memory.page(&tiller_protocol::MemoryQuery::default()).unwrap();
    let entry = page.entries.iter().find(|e| e.text.starts_with("poison")).unwrap();
    assert_eq!(entry.from.as_ref().unwrap().taint, Taint::ToolOutput);
    // The user accepts it, undoes that, and accepts it again.
    book.memory.decide(entry.change.unwrap(), true, None).unwrap();
    assert_eq!(texts(), ["mine", "by hand", "poison"]);
    book.memory.undo(false).unwrap();
    assert_eq!(texts(), ["mine", "by hand"]);
    book.memory.undo(true).unwrap();
    assert_eq!(texts(), ["mine", "by hand", "poison"]);
    // The project's files are the same, once they are in use.
    std::fs::create_dir_all(dir.path().join("project/.tiller")).unwrap();
    std::fs::write(dir.path().join("project/.tiller/MEMORY.md"), "- theirs [when: read]\n").unwrap();
    assert_eq!(texts().len(), 3);
    book.memory.trust_project();
    assert_eq!(texts().last().map(String::as_str), Some("theirs"), "the person has agreed to what is in it");
}

/// Accepting an entry that is marked takes the mark away. A rule that waits loses it at once, since it is accepted as a rule.
#[test]
fn an_accepted_entry_loses_its_mark() {
    let (dir, store, book) = book("");
    let from = tiller_protocol::Provenance { taint: Taint::ToolOutput, ..Default::default() };
    let target = tiller_protocol::MemoryTarget::default();
    let pend = |text: &str| {
        let edit = crate::files::Edit::Append(text.into());
        let planned = book.memory.plan(target, &edit, from.clone()).unwrap();
        book.memory.pend(&planned).unwrap()
    };
    book.memory.decide(pend("ask first [when: read]"), true, None).unwrap();
    assert_eq!(book.rules(&store).len(), 1);
    book.memory.decide(pend("it runs slowly"), true, None).unwrap();
    // It is the last change now.
    let done = book.memory.changes(&[tiller_protocol::memory::ChangeState::Done]).unwrap();
    let id = done.last().unwrap().id;
    let text = || std::fs::read_to_string(dir.path().join("MEMORY.md")).unwrap();
    assert!(text().contains("it runs slowly [from tool output]"), "{}", text());
    book.memory.decide(id, true, None).unwrap();
    assert!(text().contains("it runs slowly\n") && !text().contains("[from"), "{}", text());
    assert!(book.memory.decide(id, true, None).is_err(), "it is the person's already");
}

/// The least time of some runs, so that the load of the machine does not count.
fn least(work: impl Fn()) -> std::time::Duration {
    let run = || {
        let begun = std::time::Instant::now();
        (0..10).for_each(|_| work());
        begun.elapsed()
    };
    (0..10).map(|_| run()).min().unwrap()
}

#[test]
fn a_call_costs_the_same_whatever_vanished_from_the_files_before() {
    let (dir, store, book) = book("- mine [when: read]\n- of a page\n");
    let path = dir.path().join("MEMORY.md").to_string_lossy().into_owned();
    let change = |removed: Option<String>, added: Option<String>, state, taint| {
        tiller_protocol::memory::MemoryChange {
            id: 0,
            time: Time(1),
            path: path.clone(),
            removed,
            added,
            archived: None,
            state,
            from: tiller_protocol::Provenance { taint, ..Default::default() },
            details: tiller_protocol::memory::ChangeDetails::default(),
        }
    };
    use tiller_protocol::memory::ChangeState::{Declined, Done};
    store.memory_changes().add(change(None, Some("of a page".into()), Done, Taint::Web)).wait().unwrap();
    let call = || {
        assert_eq!(book.rules(&store).len(), 1);
        assert_eq!(book.memory.taint_in("1. of a page"), Taint::Web);
    };
    call();
    let few = least(call);
    let gone = |n: u32| change(Some(format!("gone {n}")), None, Declined, Taint::Agent);
    let look = tiller_store::MemoryLook {
        path: path.clone(),
        changes: (0..100_000).map(gone).collect(),
        ..Default::default()
    };
    store.memory_changes().look(look).wait().unwrap();
    call();
    let many = least(call);
    assert!(many < few * 10, "{few:?} with one change recorded, {many:?} with 100,000 removals");
    // What is recorded later counts at once.
    store.memory_changes().add(change(None, Some("of a page".into()), Done, Taint::Person)).wait().unwrap();
    assert_eq!(book.memory.taint_in("1. of a page"), Taint::Agent);
    store
        .memory_changes()
        .add(change(None, Some("mine [when: read]".into()), Done, Taint::Web))
        .wait()
        .unwrap();
    assert!(book.rules(&store).is_empty());
}

#[test]
fn rules_stay_while_their_file_cannot_be_read() {
    for bad in tiller_fs::testing::BadFile::all() {
        let text = "- No pushing. [never: terminal \"git push*\"]\n";
        let (dir, store, book) = book(text);
        assert_eq!((book.rules(&store).len(), book.memory.unreadable_rules().len()), (1, 0));
        let path = dir.path().join("MEMORY.md");
        if !bad.make(&path, text) {
            continue;
        }
        assert_eq!(book.rules(&store).len(), 1, "{}", bad.name);
        let said = book.new_faults();
        assert!(said.len() == 1 && said[0].contains("MEMORY.md"), "{}: {said:?}", bad.name);
        assert_eq!(book.memory.unreadable_rules().len(), 1, "{}", bad.name);
        tiller_fs::testing::remove(&path);
        assert_eq!((book.rules(&store).len(), book.memory.unreadable_rules().len()), (0, 0), "{}", bad.name);
        std::fs::write(&path, format!("\u{feff}{text}")).unwrap();
        assert_eq!(book.rules(&store).len(), 1, "the mark of UTF-8 is left out");
    }
}
