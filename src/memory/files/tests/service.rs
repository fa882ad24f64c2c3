use std::sync::Arc;

use tiller_config::schema::MemoryApproval;
use tiller_protocol::memory::MemoryPage;
use tiller_protocol::{
    AgentId, Entry as Entry_, EntryBody, EntryId, ManualClock, MemoryFile, MemoryQuery, MemoryScope,
    MemoryState, MemoryTarget, ModelRef, Profile, Provenance, SessionId, Taint, Time,
};
use tiller_store::{Append, MadeBy, NewSession, Options, Store};
use uuid::Uuid;

use super::*;

const MINE: MemoryTarget = MemoryTarget { file: MemoryFile::Memory, scope: MemoryScope::User };

fn memory(dir: &Path) -> Memory {
    let places = MemoryPlaces {
        data: dir.join("data"),
        settings: dir.join("config"),
        project: Some(dir.join("project")),
    };
    let settings = MemorySettings { approve: MemoryApproval::Always, memory: 300, user: 300 };
    let memory = Memory::new(
        places,
        Arc::new(ManualClock::new(Time(1_795_000_000_000))),
        Arc::new(|_| None),
        settings,
    );
    memory.open(Store::open(&dir.join("data/tiller.db"), Options::default()).unwrap());
    memory
}

fn from(entry: u128) -> Provenance {
    Provenance {
        session: Some(SessionId(Uuid::from_u128(1))),
        entry: Some(EntryId(Uuid::from_u128(entry))),
        branch: "main".into(),
        agent: AgentId::main(),
        taint: Taint::Agent,
    }
}

fn text(memory: &Memory) -> String {
    memory.slot(MINE).unwrap().read().unwrap().unwrap_or_default()
}

fn append(memory: &Memory, text: &str, from: Provenance) {
    memory.write(MINE, &Edit::Append(text.into()), from).unwrap();
}

fn page(memory: &Memory) -> MemoryPage {
    memory.page(&MemoryQuery::default()).unwrap()
}

#[test]
fn an_entry_knows_where_it_comes_from_and_one_of_an_editor_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(dir.path());
    append(&memory, "by the agent", from(7));
    std::fs::write(dir.path().join("data/MEMORY.md"), text(&memory) + "- by hand\n").unwrap();
    let page = page(&memory);
    let of = |text: &str| page.entries.iter().find(|e| e.text == text).unwrap().from.clone();
    assert_eq!(of("by the agent"), Some(from(7)));
    assert_eq!(of("by hand"), None);
    assert_eq!(page.files.len(), 2, "the project is not trusted");
    let hits = memory.page(&MemoryQuery { filter: "HAND by".into() }).unwrap();
    assert_eq!(hits.entries.len(), 1);
}

#[test]
fn a_change_is_undone_and_redone_and_an_edited_entry_stays() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(dir.path());
    append(&memory, "one", from(1));
    memory.write(MINE, &Edit::Replace { old: "one".into(), text: "two".into() }, from(2)).unwrap();
    memory.write(MINE, &Edit::Remove { old: "two".into() }, from(3)).unwrap();
    assert_eq!(text(&memory), "");
    assert_eq!(memory.undo(false).unwrap(), "undone: two");
    assert_eq!(text(&memory), "- 2026-11-18: two\n");
    memory.undo(false).unwrap();
    assert_eq!(text(&memory), "- 2026-11-18: one\n");
    memory.undo(true).unwrap();
    assert_eq!(text(&memory), "- 2026-11-18: two\n");
    std::fs::write(dir.path().join("data/MEMORY.md"), "- 2026-11-18: two, by hand\n").unwrap();
    let why = memory.undo(false).unwrap_err().to_string();
    assert!(why.contains("edited since"), "{why}");
    assert_eq!(text(&memory), "- 2026-11-18: two, by hand\n");
    memory.undo(true).unwrap_err();
}

#[test]
fn an_undone_removal_brings_an_entry_back_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(dir.path());
    append(&memory, "live", from(1));
    append(&memory, "old", from(2));
    memory.archive(MINE, "old", true).unwrap();
    let before = text(&memory);
    memory.write(MINE, &Edit::Remove { old: "old".into() }, from(3)).unwrap();
    assert!(!text(&memory).contains("old"));
    assert_eq!(memory.undo(false).unwrap(), "undone: old");
    assert_eq!(text(&memory), before, "models do not see it again");
    memory.undo(true).unwrap();
    assert!(!text(&memory).contains("old"));
    // Taken back by a branch that is left, it returns to the archive as well.
    memory.undo(false).unwrap();
    memory.write(MINE, &Edit::Replace { old: "old".into(), text: "older".into() }, from(4)).unwrap();
    memory.undo(false).unwrap();
    assert_eq!(text(&memory), before);
}

#[test]
fn a_search_misses_no_entry_that_contains_the_words() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(dir.path());
    append(&memory, "我们的项目使用制表符", from(1));
    append(&memory, "spaces in Python", from(2));
    // Words of this script are not found by the index.
    memory.order_by(Arc::new(|_: &str, texts: Vec<String>| {
        Some((texts.iter().position(|t| t.contains("spaces")).into_iter().collect(), Some("tables".into())))
    }));
    let found = memory.page(&MemoryQuery { filter: "制表符".into() }).unwrap();
    let texts: Vec<&str> = found.entries.iter().map(|e| e.text.as_str()).collect();
    assert_eq!(texts, ["spaces in Python", "我们的项目使用制表符"]);
    assert_eq!(memory.page(&MemoryQuery { filter: "python".into() }).unwrap().entries.len(), 1, "each once");
}

#[test]
fn a_pending_entry_is_accepted_declined_or_changed() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(dir.path());
    let web = Provenance { taint: Taint::Web, ..from(1) };
    let pend =
        |t: &str| memory.pend(&memory.plan(MINE, &Edit::Append(t.into()), web.clone()).unwrap()).unwrap();
    let (a, b, c) = (pend("a"), pend("b"), pend("c"));
    assert_eq!(pend("a"), a, "the same waits once");
    assert!(page(&memory).entries.iter().all(|e| e.state == MemoryState::Pending));
    memory.decide(a, true, None).unwrap();
    memory.decide(b, false, None).unwrap();
    memory.decide(c, true, Some("c, better")).unwrap();
    assert_eq!(text(&memory), "- 2026-11-18: a [from web]\n- 2026-11-18: c, better\n");
    assert!(memory.decide(b, true, None).is_err(), "decided once");
    let of = page(&memory).entries.iter().find(|e| e.text == "c, better").unwrap().from.clone();
    assert_eq!(of.unwrap().taint, Taint::Web);
}

/// The name of a branch, and its entries with their parents.
type Branch<'a> = (&'a str, &'a [(u128, Option<u128>)]);

/// A session with entries: id and parent of each, on a head of its own for each branch.
fn tree(dir: &Path, branches: &[Branch<'_>]) {
    let store = Store::open(&dir.join("data/tiller.db"), Options::default()).unwrap();
    let session = SessionId(Uuid::from_u128(1));
    let new = NewSession {
        id: session,
        project: "/p".into(),
        title: String::new(),
        model: ModelRef::default(),
        profile: Profile::Ask,
        spawned_by: None,
        made_by: MadeBy::Person,
    };
    store.sessions().create(new).wait().unwrap();
    for (head, rows) in branches {
        let entries = rows.iter().map(|(id, parent)| Entry_ {
            id: EntryId(Uuid::from_u128(*id)),
            parent: parent.map(|p| EntryId(Uuid::from_u128(p))),
            session,
            agent: AgentId::main(),
            time: Time(0),
            body: EntryBody::Note { text: "x".into() },
            snapshot: None,
        });
        store.entries().append(Append::new(session, *head).entries(entries.collect())).wait().unwrap();
    }
}

#[test]
fn entries_follow_the_branch_that_wrote_them() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(dir.path());
    // 1 - 2 - 3 and 1 - 4.
    tree(dir.path(), &[("main", &[(1, None), (2, Some(1)), (3, Some(2))]), ("other", &[(4, Some(1))])]);
    let (session, head) = (SessionId(Uuid::from_u128(1)), |id| Some(EntryId(Uuid::from_u128(id))));
    append(&memory, "before", from(1));
    append(&memory, "on two", from(2));
    memory.write(MINE, &Edit::Replace { old: "before".into(), text: "after".into() }, from(3)).unwrap();
    // The person's own entries belong to no branch.
    append(&memory, "mine", Provenance { entry: None, taint: Taint::Person, ..from(0) });
    let all = text(&memory);
    let preview = memory.would_move(session, head(4)).unwrap();
    assert_eq!((preview.aside.len(), text(&memory)), (2, all), "a preview changes nothing");
    let moved = memory.head_moved(session, head(4)).unwrap();
    assert_eq!(moved.aside, ["after", "on two"]);
    assert_eq!(text(&memory), "- 2026-11-18: before\n- 2026-11-18: mine\n");
    assert_eq!(page(&memory).entries.iter().filter(|e| e.state == MemoryState::Aside).count(), 2);
    assert_eq!(memory.head_moved(session, head(4)).unwrap(), Moved::default());
    let back = memory.head_moved(session, head(3)).unwrap();
    assert_eq!(back.back, ["on two", "after"]);
    let found = |t: &str| text(&memory).contains(t);
    assert!(found("on two") && found("after") && found("mine") && !found("before"), "{}", text(&memory));
    // The person edits one: it stays when the branch is left.
    std::fs::write(dir.path().join("data/MEMORY.md"), text(&memory).replace("on two", "on two, by hand"))
        .unwrap();
    assert_eq!(memory.head_moved(session, head(1)).unwrap().aside, ["after"]);
    assert!(text(&memory).contains("on two, by hand"));
}

#[test]
fn what_is_over_the_budget_moves_to_the_archive_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(dir.path());
    let long = |n: usize| format!("entry {n} {}", "word ".repeat(8).trim());
    std::fs::create_dir_all(dir.path().join("data")).unwrap();
    let lines: String = (1..=9).map(|n| format!("- 2026-01-0{n}: {}\n", long(n))).collect();
    std::fs::write(dir.path().join("data/MEMORY.md"), format!("- undated\n{lines}")).unwrap();
    let over = memory.over_budget();
    assert_eq!(over.len(), 1);
    let moved = memory.condense(&over[0], &["entries 1 to 4: words".into()], &from(1)).unwrap();
    assert_eq!(moved, over[0].entries.len());
    let document = memory.read(MINE).unwrap();
    for n in 1..=9 {
        assert!(document.entries().any(|e| e.text == long(n)), "entry {n} is lost");
    }
    assert!(document.live_text().len() as u64 <= 300, "{}", document.live_text());
    assert!(
        document.live_text().starts_with("- undated\n") && document.live_text().contains("entries 1 to 4")
    );
    assert!(memory.over_budget().is_empty());
    assert!(!memory.live(MemoryFile::Memory)[0].1.contains("entry 1 "));
}

#[test]
fn a_file_of_the_project_counts_only_when_it_is_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(dir.path());
    std::fs::create_dir_all(dir.path().join("project/.tiller")).unwrap();
    std::fs::write(dir.path().join("project/.tiller/MEMORY.md"), "- hostile\n").unwrap();
    assert!(memory.live(MemoryFile::Memory).is_empty());
    let project = MemoryTarget { scope: MemoryScope::Project, ..MINE };
    assert!(memory.write(project, &Edit::Append("x".into()), from(1)).is_err());
    memory.trust_project();
    assert_eq!(memory.live(MemoryFile::Memory)[0].1, "- hostile");
    // A USER.md of the settings folder is read, too.
    std::fs::create_dir_all(dir.path().join("config")).unwrap();
    std::fs::write(dir.path().join("config/USER.md"), "I am Robin.\n").unwrap();
    assert_eq!(memory.live(MemoryFile::User)[0].1, "I am Robin.");
}

#[test]
fn an_entry_that_is_a_rule_shows_what_came_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(dir.path());
    let text = "Never push by hand. [never: terminal \"git push*\"]";
    let target = MemoryTarget { file: MemoryFile::Memory, scope: MemoryScope::User };
    let from = Provenance { taint: Taint::Person, ..Provenance::default() };
    for text in [text, "likes tea"] {
        let planned = memory.plan(target, &Edit::Append(text.into()), from.clone()).unwrap();
        memory.carry_out(&planned).unwrap();
    }
    let counts = tiller_protocol::RuleReceipts { shown: 3, followed: 2, violated: 1 };
    let store = Store::open(&dir.path().join("data/tiller.db"), Options::default()).unwrap();
    store.receipts().count(vec![("Never push by hand.".into(), counts)]).wait().unwrap();
    let page = memory.page(&MemoryQuery::default()).unwrap();
    let of = |word: &str| page.entries.iter().find(|e| e.text.contains(word)).unwrap().counts;
    assert_eq!((of("push"), of("tea")), (counts, tiller_protocol::RuleReceipts::default()));
}
