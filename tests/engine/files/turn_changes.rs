//! What a turn changed, by tools and by commands: the same list and figures everywhere, and one undo.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tiller_engine::Open;
use tiller_protocol::command::{Query, ReviewCommand, SessionCommand, TurnCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnStatus};
use tiller_protocol::op::OpChange;
use tiller_protocol::restore::TurnChanges;
use tiller_protocol::review::Reject;
use tiller_protocol::{ChangeKind, CommandBody, Entry, EntryBody, EventBody, Op, SessionId};
use tiller_store::{Options, StepOf, StepRow, Store};

use crate::files::checkpoints::{keeps, kept, session_command};
use crate::rig::*;
use crate::sessions::branches::{fork, open};

/// The files of a turn with the figures of each: `~a.txt +2 -1`.
type Shown = Vec<String>;

fn row(kind: ChangeKind, path: &str, (added, removed): (u32, u32)) -> String {
    let sign = match kind {
        ChangeKind::Added => '+',
        ChangeKind::Deleted => '-',
        _ => '~',
    };
    format!("{sign}{path} +{added} -{removed}")
}

async fn event(rig: &mut Rig) -> TurnChanges {
    rig.until("what the turn changed", |e| match e {
        EventBody::State(StateEvent::TurnChanged { changes }) => Some((**changes).clone()),
        _ => None,
    })
    .await
}

fn listed(changes: &TurnChanges) -> Shown {
    changes.files.iter().map(|f| row(f.kind, &f.path, f.lines.unwrap_or_default())).collect()
}

async fn reviewed(rig: &mut Rig) -> Shown {
    rig.send(CommandBody::Review(ReviewCommand::Open { turn: None }));
    let ReplyEvent::ReviewReply { review } = rig.reply().await else { panic!("no review") };
    let mut rows: Shown = review.files.iter().map(|f| row(f.kind, &f.path, (f.added, f.removed))).collect();
    rows.sort_by(|a, b| a[1..].cmp(&b[1..]));
    rows
}

/// Added and removed lines of `@diff`, as the list of mentions offers it.
async fn mentioned(rig: &mut Rig) -> Option<(usize, usize)> {
    rig.send(CommandBody::Query(Query::Mentions { text: "dif".into(), limit: 9 }));
    let ReplyEvent::MentionsReply { mentions, .. } = rig.reply().await else { panic!("no list") };
    let diff = &mentions.iter().find(|m| m.name == "diff")?.preview;
    let count =
        |sign: char, head: &str| diff.lines().filter(|l| l.starts_with(sign) && !l.starts_with(head)).count();
    Some((count('+', "+++"), count('-', "---")))
}

async fn ops(rig: &mut Rig) -> Vec<Op> {
    let ReplyEvent::OpsReply { ops, .. } = rig.query(Query::Ops { limit: 100 }).await else {
        panic!("no log")
    };
    ops
}

async fn undo(rig: &mut Rig, redo: bool) -> String {
    session_command(rig, SessionCommand::UndoOp { redo }).await
}

fn command(line: &str) -> Value {
    json!({ "command": line })
}

/// Every path of the workspace with its content; a folder ends with a slash.
fn tree(place: &Place) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![place.work.clone()];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(folder).unwrap().flatten() {
            let path = item.path();
            let name = path.strip_prefix(&place.work).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                all.insert(format!("{name}/"), String::new());
                folders.push(path);
            } else {
                all.insert(name, std::fs::read_to_string(path).unwrap());
            }
        }
    }
    all
}

/// Every list and figure of the last turn is this one.
async fn agree(rig: &mut Rig, changes: &TurnChanges, want: &[&str]) {
    assert_eq!(listed(changes), want);
    assert_eq!(reviewed(rig).await, want, "the review");
    let totals = (changes.added as usize, changes.removed as usize);
    assert_eq!(mentioned(rig).await, Some(totals), "@diff");
    assert_eq!(rig.snapshot().await.turns.last(), Some(changes), "a new client");
    let log = ops(rig).await;
    let row_of = |op: &Op| match &op.change {
        OpChange::Files { files, of: None, turn: Some(turn), .. } => Some((files.clone(), turn.entry)),
        _ => None,
    };
    let (files, entry) = log.iter().find_map(row_of).unwrap();
    let logged: Shown = files.iter().map(|f| row(f.kind, &f.path, f.lines.unwrap_or_default())).collect();
    assert_eq!((logged, entry), (listed(changes), changes.turn), "the log");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_and_commands_are_shown_together_and_taken_back_by_one_undo() {
    let place = Place::new();
    place.file("a.txt", "one\ntwo\nthree\n");
    place.file("b.txt", "1\n2\n3\n");
    place.file("gone.txt", "x\ny\n");
    place.file("old.txt", "moved\n");
    place.file("mine.txt", "mine\n");
    let before = tree(&place);
    let line = "sed -i s/two/TWO/ a.txt; sed -i 's/^1$/one/; s/^3$/three\\nfour/' b.txt; rm gone.txt; \
                mv old.txt new.txt; mkdir -p d/empty; printf 'n\\n' > d/new.txt; printf t > t; rm t";
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "read_file", read_args("a.txt"))]),
        1 => calls(&[("c1", "edit_file", json!({"path": "a.txt", "old": "three", "new": "three\nfour"}))]),
        2 => calls(&[("c2", "terminal", command(line))]),
        _ => says("Done."),
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    rig.turn("change a lot").await;
    let changes = event(&mut rig).await;
    assert_eq!((changes.added, changes.removed, changes.more), (7, 6, 0));
    let all = [
        "~a.txt +2 -1",
        "~b.txt +3 -2",
        "+d/new.txt +1 -0",
        "-gone.txt +0 -2",
        "+new.txt +1 -0",
        "-old.txt +0 -1",
    ];
    agree(&mut rig, &changes, &all).await;
    let after = tree(&place);
    let told = undo(&mut rig, false).await;
    assert!(told.starts_with("Undone: turn: change a lot; "), "{told}");
    assert!(told.contains("a.txt, b.txt, ") && told.contains(" more"), "it names them: {told}");
    assert_eq!(tree(&place), before);
    assert_eq!(reviewed(&mut rig).await, Shown::new(), "nothing of it is left");
    rig.send(CommandBody::Review(ReviewCommand::Open { turn: None }));
    let ReplyEvent::ReviewReply { review } = rig.reply().await else { panic!("no review") };
    let taken_back: Vec<&str> = review.taken_back.iter().map(String::as_str).collect();
    assert_eq!(taken_back, all.map(|row| row[1..].split(' ').next().unwrap()), "and what was is named");
    let told = undo(&mut rig, true).await;
    assert!(told.starts_with("Redone: turn: change a lot; "), "{told}");
    assert_eq!(tree(&place), after);
    agree(&mut rig, &changes, &all).await;
    undo(&mut rig, false).await;
    assert_eq!(tree(&place), before);
    rig.send(CommandBody::Session(SessionCommand::UndoOp { redo: false }));
    assert!(rig.refused().await.message.contains("there is nothing to undo"));
    // The restores of files alone do not reach a turn.
    rig.send(CommandBody::Session(SessionCommand::UndoRestore { redo: true }));
    assert!(rig.refused().await.message.contains("no restore has been undone"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_changed_during_the_turn_or_since_stays_and_is_named() {
    let place = Place::new();
    for name in ["a.txt", "b.txt", "c.txt", "d.txt"] {
        place.file(name, "0\n");
    }
    let theirs = place.work.join("c.txt");
    let gate = Arc::new(Gate::new());
    let between = Arc::clone(&gate);
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "terminal", command("echo 1 > a.txt; echo 1 > b.txt; echo 1 > c.txt"))]),
        1 => {
            let next = calls(&[("c1", "terminal", command("echo 2 >> a.txt; echo 2 >> c.txt"))]);
            std::iter::once(Step::Gate(Arc::clone(&between))).chain(next).collect()
        }
        _ => says("Done."),
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    rig.submit("count");
    fake.requested(2).await;
    // The person, between two calls.
    kept(&mut rig).await;
    std::fs::write(&theirs, "theirs\n").unwrap();
    gate.pass_one();
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(listed(&event(&mut rig).await), ["~a.txt +2 -1", "~b.txt +1 -1", "~c.txt +2 -1"]);
    place.file("b.txt", "mine\n");
    place.file("d.txt", "mine too\n");
    let told = undo(&mut rig, false).await;
    assert!(told.starts_with("Partly undone: turn: count; a.txt was restored; "), "{told}");
    assert!(told.contains("; left unchanged: b.txt"), "{told}");
    for name in ["b.txt", "c.txt"] {
        assert!(told.contains(&format!("{name} (you or another program changed it since)")), "{told}");
    }
    assert!(!told.contains("d.txt"), "no file of the turn: {told}");
    let read = ["a.txt", "b.txt", "c.txt", "d.txt"].map(|name| place.read(name));
    assert_eq!(read, ["0\n", "mine\n", "theirs\n2\n", "mine too\n"]);
    undo(&mut rig, true).await;
    assert_eq!(place.read("a.txt"), "1\n2\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_are_taken_back_one_by_one_each_on_its_branch_and_by_a_later_process() {
    let place = Place::new();
    place.file("a.txt", "0\n");
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "terminal", command("echo 1 > a.txt; echo 1 > b.txt"))]),
        2 => calls(&[("c1", "terminal", command("echo 2 > a.txt; rm b.txt"))]),
        5 => calls(&[("c2", "terminal", command("echo 3 > a.txt"))]),
        n => says(&format!("Done {n}.")),
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    rig.turn("first").await;
    let first = event(&mut rig).await;
    rig.turn("second").await;
    let second = event(&mut rig).await;
    assert_eq!(
        (listed(&first).len(), listed(&second)),
        (2, vec!["~a.txt +1 -1".into(), "-b.txt +0 -1".into()])
    );
    // A turn that changed nothing costs no row, and the review is that of the one before.
    rig.turn("third").await;
    assert_eq!(ops(&mut rig).await.len(), 2);
    agree(&mut rig, &second, &["~a.txt +1 -1", "-b.txt +0 -1"]).await;
    // Another branch has turns of its own: its undo takes back no turn of this one.
    let entries = rig.snapshot().await.entries;
    let last = entries.iter().rfind(|e| e.body.begins_turn()).unwrap().id;
    fork(&mut rig, last).await;
    rig.turn("instead").await;
    assert_eq!(listed(&event(&mut rig).await), ["~a.txt +1 -1"]);
    open(&mut rig, "main").await;
    assert_eq!(reviewed(&mut rig).await, ["~a.txt +1 -1", "-b.txt +0 -1"], "from before it to now");
    assert_eq!(rig.snapshot().await.turns, [first.clone(), second.clone()]);
    let session = rig.session();
    rig.quit().await;
    let again = |p: &mut tiller_engine::EngineConfig| {
        keeps(&place, p);
        p.session.open = Open::Session(session);
    };
    let mut rig = place.start_with(&fake, again).await;
    assert_eq!(rig.snapshot().await.turns, [first, second]);
    let mut said = Vec::new();
    for _ in 0..4 {
        said.push(undo(&mut rig, false).await);
    }
    assert!(said[0].starts_with("Undone: open branch"), "{said:?}");
    assert!(said[1].starts_with("Undone: turn: instead; a.txt was restored"), "{said:?}");
    assert!(said[2].starts_with("Undone: fork"), "{said:?}");
    assert!(said[3].starts_with("Undone: turn: second; 2 files were restored: a.txt, b.txt"), "{said:?}");
    assert_eq!((place.read("a.txt").as_str(), place.read("b.txt").as_str()), ("1\n", "1\n"));
    assert!(undo(&mut rig, false).await.starts_with("Undone: turn: first; "));
    assert_eq!(place.read("a.txt"), "0\n");
    assert!(!place.work.join("b.txt").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hunk_that_a_command_made_is_rejected_and_told() {
    let place = Place::new();
    place.file("a.txt", "one\ntwo\nthree\n");
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "terminal", command("sed -i s/two/TWO/ a.txt; echo n > new.txt"))]),
        _ => says("Done."),
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    rig.turn("loud").await;
    rig.send(CommandBody::Review(ReviewCommand::Open { turn: None }));
    let ReplyEvent::ReviewReply { review } = rig.reply().await else { panic!() };
    let hunk = Reject { path: "a.txt".into(), hunk: review.files[0].diff.clone() };
    rig.send(CommandBody::Review(ReviewCommand::Reject { turn: review.turn, hunks: vec![hunk] }));
    let ReplyEvent::RejectReply { rejected: 1, .. } = rig.reply().await else { panic!() };
    assert_eq!(place.read("a.txt"), "one\ntwo\nthree\n");
    assert_eq!(reviewed(&mut rig).await, ["+new.txt +1 -0"]);
}

/// The same without snapshots: what the calls report is all that is known, and an undo says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_snapshots_a_review_has_what_the_calls_report_and_undo_says_why() {
    let place = Place::new();
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[
            ("c0", "write_file", json!({"path": "a.txt", "content": "1\n"})),
            ("c1", "terminal", command("echo 1 > b.txt")),
        ]),
        _ => says("Done."),
    });
    let mut rig = place.start(&fake).await;
    rig.turn("write").await;
    assert_eq!(reviewed(&mut rig).await, ["+a.txt +1 -0"]);
    assert_eq!(rig.snapshot().await.turns, []);
    rig.send(CommandBody::Session(SessionCommand::UndoOp { redo: false }));
    let why = rig.refused().await;
    assert!(why.message.contains("there is nothing to undo"), "{why:?}");
    assert!(why.hints.iter().any(|h| h.contains("no snapshots are kept")), "{why:?}");
}

/// The engine ends while files are restored: the row of it is in the log, so it can be undone and redone later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_and_a_redo_before_the_end_are_in_the_log() {
    let place = Place::new();
    let names: Vec<String> = (0..300).map(|n| format!("f{n}")).collect();
    names.iter().for_each(|name| place.file(name, "0\n"));
    let line = format!("sed -i s/0/1/ {}", names.join(" "));
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "terminal", command(&line))]),
        n => says(&format!("Done {n}.")),
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    rig.turn("first").await;
    event(&mut rig).await;
    let session = rig.session();
    for (redo, content) in [(false, "0\n"), (true, "1\n"), (false, "0\n"), (true, "1\n")] {
        rig.send(CommandBody::Session(SessionCommand::UndoOp { redo }));
        // It begins once the log is on disk: then a file is another one.
        wait_until("a file", async || names.iter().any(|name| place.read(name) == content)).await;
        rig.quit().await;
        let again = |p: &mut tiller_engine::EngineConfig| {
            keeps(&place, p);
            p.session.open = Open::Session(session);
        };
        rig = place.start_with(&fake, again).await;
        assert!(names.iter().all(|name| place.read(name) == content), "redo: {redo}");
    }
    let said = undo(&mut rig, false).await;
    assert!(said.starts_with("Undone: turn: first; 300 files were restored"), "{said}");
    rig.quit().await;
}

fn again(place: &Place, session: SessionId) -> impl FnOnce(&mut tiller_engine::EngineConfig) + '_ {
    move |parts| {
        keeps(place, parts);
        parts.session.open = Open::Session(session);
    }
}

/// The process is killed within a turn: the next one has the turn in its log once, and its undo takes back what the calls changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_a_crash_cut_off_is_taken_back() {
    let place = Place::new();
    place.file("a.txt", "0\n");
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "terminal", command("echo 1 > a.txt"))]),
        // The state behind a call is surely stored when the next one has begun.
        1 => calls(&[("c1", "terminal", command("touch ../there; sleep 1000"))]),
        _ => says("Done."),
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    let session = rig.session();
    rig.submit("write");
    let there = place.work.parent().unwrap().join("there");
    wait_until("the second command", async || there.exists()).await;
    rig.kill().await;
    for _ in 0..2 {
        place.free_if_there(session);
        let mut rig = place.start_with(&fake, again(&place, session)).await;
        let of_turn = |op: &&Op| matches!(&op.change, OpChange::Files { turn: Some(_), .. });
        let mut rows = 0;
        wait_until("a row", async || {
            rows = ops(&mut rig).await.iter().filter(of_turn).count();
            rows > 0
        })
        .await;
        assert_eq!(rows, 1);
        rig.quit().await;
    }
    let mut rig = place.start_with(&fake, again(&place, session)).await;
    let said = undo(&mut rig, false).await;
    assert!(said.starts_with("Undone: turn: write; a.txt was restored"), "{said}");
    assert_eq!(place.read("a.txt"), "0\n");
    rig.quit().await;
}

/// A file is restored between two parts of a turn: this is no change by others, and one undo takes back the turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_within_a_turn_is_no_change_by_others() {
    let place = Place::new();
    place.file("a.txt", "0\n");
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "terminal", command("echo 1 > a.txt"))]),
        1 => vec![Step::Refuse(tiller_provider::ProviderError::Auth("the key is wrong".into()))],
        2 => calls(&[("c1", "terminal", command("echo 2 >> a.txt"))]),
        _ => says("Done."),
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    rig.turn("write").await;
    let said = undo(&mut rig, false).await;
    assert!(said.starts_with("Undone: turn: write; a.txt was restored"), "{said}");
    rig.send(CommandBody::Turn(TurnCommand::Continue));
    rig.finished().await;
    assert_eq!(place.read("a.txt"), "0\n2\n");
    assert_eq!(reviewed(&mut rig).await, ["~a.txt +1 -0"]);
    let said = undo(&mut rig, false).await;
    assert!(said.starts_with("Undone: turn: write; a.txt was restored"), "{said}");
    assert_eq!(place.read("a.txt"), "0\n");
    rig.quit().await;
}

/// Two windows work on two branches of one session: each turn has its own calls, whichever began first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_of_two_windows_share_no_calls() {
    let place = Place::new();
    let gate = Arc::new(Gate::new());
    let waits = Arc::clone(&gate);
    let fake = Fake::with(move |n, _| match n {
        2 => calls(&[("c0", "terminal", command("echo 1 > main.txt"))]),
        3 => [
            vec![Step::Gate(Arc::clone(&waits))],
            calls(&[("c1", "terminal", command("echo 1 > later.txt"))]),
        ]
        .concat(),
        4 => calls(&[("c2", "terminal", command("echo 1 > b.txt"))]),
        n => says(&format!("Done {n}.")),
    });
    let mut first = place.start_with(&fake, |p| keeps(&place, p)).await;
    first.turn("hello").await;
    let entries = first.snapshot().await.entries;
    fork(&mut first, entries[1].id).await;
    first.turn("instead").await;
    let session = first.session();
    let mut second = place.start_with(&fake, again(&place, session)).await;
    second.asked().await;
    open(&mut second, "main").await;
    second.submit("on main");
    wait_until("its second request", async || fake.count() >= 4).await;
    first.turn("on the branch").await;
    let beside = event(&mut first).await;
    // Of a call of the other window the row is stored, and not yet its result.
    let store = Store::open(&place.db(), Options::default()).unwrap();
    let rows = store.steps().list(session, 0).unwrap();
    let theirs = rows.iter().rfind(|row| matches!(row.of, StepOf::Call(_))).unwrap();
    assert_eq!(theirs.files[0].path, "b.txt");
    let cut = StepRow { of: StepOf::Call("cut off".into()), ..theirs.clone() };
    store.steps().add(session, cut).wait().unwrap();
    gate.pass_one();
    second.finished().await;
    let main = event(&mut second).await;
    assert_eq!(listed(&beside), ["+b.txt +1 -0"]);
    assert_eq!(listed(&main), ["+later.txt +1 -0", "+main.txt +1 -0"]);
    assert_eq!(reviewed(&mut second).await, ["+later.txt +1 -0", "+main.txt +1 -0"]);
    assert!(undo(&mut second, false).await.starts_with("Undone: turn: on main; 2 files were restored"));
    assert!(place.work.join("b.txt").exists());
    first.quit().await;
    second.quit().await;
}

/// A file that no checkpoint covers and a command has changed: it is named at once, when the session is opened again, and in the
/// preview of the tree.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_covered_and_changed_is_named_later_too() {
    let place = Place::new();
    place.file(".gitignore", "*.bin\n");
    place.file("data.bin", &"0".repeat(300 << 10));
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "terminal", command("echo more >> data.bin"))]),
        _ => says("Done."),
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    let session = rig.session();
    rig.turn("append").await;
    let is_named = |e: &&Entry| matches!(&e.body, EntryBody::Note { text } if text.contains("data.bin"));
    wait_until("a note", async || rig.snapshot().await.entries.iter().any(|e| is_named(&e))).await;
    rig.quit().await;
    let mut rig = place.start_with(&fake, again(&place, session)).await;
    let entries = rig.snapshot().await.entries;
    assert_eq!(entries.iter().filter(is_named).count(), 1, "{entries:?}");
    let result = entries.iter().find(|e| matches!(e.body, EntryBody::ToolResult { .. })).unwrap().id;
    let shown = crate::sessions::tree::preview(&mut rig, result).await;
    assert!(shown.notes.iter().any(|note| note.contains("data.bin")), "{:?}", shown.notes);
    rig.quit().await;
}
