//! Changes by others while the agent works, and a store that cannot be written.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tiller_protocol::command::SessionCommand;
use tiller_protocol::event::{StateEvent, TurnStatus};
use tiller_protocol::view::GitState;
use tiller_protocol::{AgentId, ChangeKind, CommandBody, EventBody, FileChange, NoticeKind, Part, Time, Who};
use tiller_provider::ChatMessage;
use tiller_tool::shell::Witness;

use crate::rig::*;
use crate::scripted_model::lock;
use tiller_engine::{Human, StaleFile, StaleFiles, WatchReport, WatchSink, Watcher};

/// A watcher that reports what the test says, and records its calls.
#[derive(Default)]
pub(crate) struct Scripted {
    sink: Mutex<Option<WatchSink>>,
    told: Mutex<Vec<String>>,
    /// Its answer to the next query.
    outside: Mutex<Option<StaleFiles>>,
    known: Mutex<Vec<String>>,
    for_hooks: bool,
}

impl Scripted {
    /// One that is there for hooks alone.
    pub(crate) fn for_hooks() -> Self {
        Self { for_hooks: true, ..Self::default() }
    }

    fn sees(&self, seen: WatchReport) {
        assert!(lock(&self.sink).as_ref().unwrap()(seen));
    }

    /// The calls that it got.
    pub(crate) fn told(&self) -> Vec<String> {
        lock(&self.told).clone()
    }

    /// Reports that a command of this agent's changed these files.
    pub(crate) fn sees_of<const N: usize>(&self, agent: &AgentId, paths: [&str; N]) {
        self.sees_by(&Who::Shell { agent: agent.clone() }, paths);
    }

    /// Reports that these files were changed.
    pub(crate) fn sees_by<const N: usize>(&self, who: &Who, paths: [&str; N]) {
        let changes = paths.map(|path| change(path, who.clone())).into();
        self.sees(WatchReport { changes, ..WatchReport::default() });
    }

    fn say(&self, text: String) {
        lock(&self.told).push(text);
    }
}

impl Watcher for Scripted {
    fn start(&self, sink: WatchSink) {
        *lock(&self.sink) = Some(sink);
    }
    fn is_for_hooks(&self) -> bool {
        self.for_hooks
    }
    fn writing(&self, agent: &AgentId, paths: &[PathBuf]) {
        self.say(format!("{agent} writing {}", paths[0].file_name().unwrap().display()));
    }
    fn wrote(&self, agent: &AgentId, paths: &[PathBuf]) {
        self.say(format!("{agent} wrote {}", paths[0].file_name().unwrap().display()));
    }
    fn command(&self, agent: &AgentId, what: &str, _: Option<&Witness>, running: bool) {
        self.say(format!("{agent} runs {what} {running}"));
    }
    fn has_changes(&self, _: &AgentId) -> bool {
        lock(&self.outside).is_some()
    }
    fn stale(&self, _: &AgentId, seen: &HashMap<PathBuf, tiller_tool::cx::SeenFile>) -> StaleFiles {
        let mut outside = lock(&self.outside).take().unwrap_or_default();
        outside.files.retain(|f| seen.keys().any(|p| p.ends_with(&f.path)));
        outside
    }
    fn known(&self, path: &Path, text: &Arc<str>) {
        let name = path.file_name().unwrap().display();
        lock(&self.known).push(format!("{name} {}", text.len()));
    }
    fn pause(&self, _: bool) {}
    fn mute(&self, _: &str) {}
    fn diff(&self, path: &str) -> Result<String, String> {
        Ok(format!("-{path}"))
    }
}

fn change(path: &str, who: Who) -> FileChange {
    FileChange {
        time: Time(0),
        kind: ChangeKind::Modified,
        path: path.into(),
        who,
        count: 1,
        lines: Some((2, 1)),
        during: None,
    }
}

fn git(branch: &str) -> WatchReport {
    WatchReport {
        git: Some(GitState { branch: branch.into(), ..GitState::default() }),
        ..WatchReport::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_of_sessions_names_the_git_branch_that_a_session_was_last_used_in() {
    use tiller_protocol::command::Query;
    use tiller_protocol::event::ReplyEvent;
    let place = Place::new();
    let fake = Fake::with(|_, _| says("ok"));
    let watcher = Arc::new(Scripted::default());
    let given = Arc::clone(&watcher) as Arc<dyn Watcher>;
    let mut rig = place.start_with(&fake, |p| p.files.watcher = Some(given)).await;
    watcher.sees(git("main"));
    rig.turn("one").await;
    for branch in ["main", "topic"] {
        watcher.sees(git(branch));
        let end = std::time::Instant::now() + std::time::Duration::from_secs(90);
        // Saved by another thread: not at once.
        loop {
            let list =
                Query::Sessions { everywhere: false, filter: String::new(), archived: false, trashed: false };
            let ReplyEvent::SessionsReply { sessions } = rig.query(list).await else { panic!("no list") };
            if sessions[0].git_branch == branch {
                break;
            }
            assert!(std::time::Instant::now() < end, "not {branch}: {sessions:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_person_changes_is_told_at_the_end_of_the_next_message_and_nothing_else() {
    let place = Place::new();
    for name in ["read.txt", "mine.txt", "made.txt", "unread.txt"] {
        place.file(name, "1\n2\n");
    }
    let fake = Fake::new([
        calls(&[
            ("c1", "read_file", read_args("read.txt")),
            ("c2", "read_file", read_args("mine.txt")),
            ("c3", "read_file", read_args("made.txt")),
            ("c4", "write_file", json!({"path": "mine.txt", "content": "3\n"})),
            ("c5", "terminal", json!({"command": "true"})),
        ]),
        says("Read."),
        says("I see."),
        says("Nothing new."),
    ]);
    let watcher = Arc::new(Scripted::default());
    let given = Arc::clone(&watcher) as Arc<dyn Watcher>;
    let mut rig = place.start_with(&fake, |p| p.files.watcher = Some(given)).await;
    watcher.sees(git("main"));
    rig.turn("read").await;
    let told = lock(&watcher.told).clone();
    assert_eq!(
        told,
        ["main writing mine.txt", "main wrote mine.txt", "main runs true true", "main runs true false"]
    );
    let known = lock(&watcher.known).clone();
    assert!(known.contains(&"read.txt 4".to_owned()), "what it knows can be compared with: {known:?}");
    let main = AgentId::main;
    watcher.sees(WatchReport {
        changes: vec![
            change("read.txt", Who::You),
            change("mine.txt", Who::Agent { agent: main() }),
            change("made.txt", Who::Shell { agent: main() }),
            change("unread.txt", Who::You),
        ],
        ..WatchReport::default()
    });
    let file = |path: &str, during: Option<&str>| StaleFile {
        path: path.into(),
        deleted: false,
        lines: Some((2, 1)),
        during: during.map(str::to_owned),
    };
    let files = vec![file("read.txt", None), file("made.txt", Some("true")), file("unread.txt", None)];
    *lock(&watcher.outside) = Some(StaleFiles { files, more: 0 });
    let feed = rig
        .until("the feed", |e| match e {
            EventBody::State(StateEvent::WorkspaceChanged { changes }) => Some(changes.len()),
            _ => None,
        })
        .await;
    assert_eq!(feed, 4, "the person sees all of it");
    watcher.sees(git("other"));
    rig.until("git", |e| {
        matches!(e, EventBody::State(StateEvent::GitChanged { git }) if git.branch == "other").then_some(())
    })
    .await;
    assert_eq!(rig.snapshot().await.git.unwrap().branch, "other");
    rig.turn("and now?").await;
    let request = fake.request(2);
    let Some(ChatMessage::User { content }) = request.messages.last() else { panic!() };
    let Some(Part::Text { text }) = content.last() else { panic!() };
    assert_eq!(
        text,
        "<news>\nthe git branch is now other\nread.txt was changed by someone else: 2 lines\n\
         changed while `true` ran: made.txt (2 lines)\n</news>"
    );
    // Reported once.
    rig.turn("again").await;
    let Some(ChatMessage::User { content }) = fake.request(3).messages.last().cloned() else { panic!() };
    assert_eq!(content.len(), 1, "{content:?}");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nobody_makes_room_a_store_that_fails_ends_the_turn_as_such() {
    let place = Place::new();
    let fake = Fake::new([says("Never shown.")]);
    let mut rig = place
        .start_with(&fake, |p| {
            p.user.human = Human::Absent;
            place.answer_failures(p);
        })
        .await;
    // Its rows are on disk; then the database goes away.
    rig.snapshot().await;
    std::fs::rename(place.db(), place.db().with_extension("gone")).unwrap();
    rig.submit("hello");
    let (status, _, error) = rig.finished().await;
    assert_eq!(status, TurnStatus::Store);
    assert_eq!(error.unwrap().kind, NoticeKind::Store);
    assert_eq!(fake.count(), 0, "nothing is sent that is not kept");
}

/// A watcher whose thread reports without an end, and whose drop waits for that thread.
#[derive(Default)]
struct Flood {
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = lock(&self.thread).take() {
            thread.join().unwrap();
        }
    }
}

impl Watcher for Flood {
    fn start(&self, sink: WatchSink) {
        let stop = Arc::clone(&self.stop);
        let flood = move || {
            while !stop.load(Ordering::Acquire)
                && sink(WatchReport { changes: vec![change("x", Who::You)], ..WatchReport::default() })
            {
            }
        };
        *lock(&self.thread) = Some(std::thread::spawn(flood));
    }
    fn writing(&self, _: &AgentId, _: &[PathBuf]) {}
    fn wrote(&self, _: &AgentId, _: &[PathBuf]) {}
    fn command(&self, _: &AgentId, _: &str, _: Option<&Witness>, _: bool) {}
    fn has_changes(&self, _: &AgentId) -> bool {
        false
    }
    fn stale(&self, _: &AgentId, _: &HashMap<PathBuf, tiller_tool::cx::SeenFile>) -> StaleFiles {
        StaleFiles::default()
    }
    fn known(&self, _: &Path, _: &Arc<str>) {}
    fn pause(&self, _: bool) {}
    fn mute(&self, _: &str) {}
    fn diff(&self, _: &str) -> Result<String, String> {
        Err(String::new())
    }
}

/// On one thread of the runtime: no other task takes reports while the engine ends.
#[tokio::test]
async fn quitting_does_not_wait_for_a_watcher_that_reports_without_an_end() {
    let place = Place::new();
    let fake = Fake::new([says("ok")]);
    let watcher: Arc<dyn Watcher> = Arc::new(Flood::default());
    let mut rig = place.start_with(&fake, move |p| p.files.watcher = Some(watcher)).await;
    assert_eq!(rig.turn("hello").await.0, TurnStatus::Done);
    rig.send(CommandBody::Session(SessionCommand::Quit));
    let begun = std::time::Instant::now();
    let ended = async { while rig.events.next().await.is_some() {} };
    tokio::time::timeout(DEADLINE, ended).await.expect("the end");
    rig.engine.take().unwrap().shutdown().await;
    assert!(begun.elapsed() < std::time::Duration::from_secs(18), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_comment_in_a_file_starts_a_turn_once_where_that_is_switched_on() {
    for on in [true, false] {
        let place = Place::new();
        let watcher = Arc::new(Scripted::default());
        let given = Arc::clone(&watcher);
        let fake = Fake::with(|_, _| says("Sorted."));
        let mut rig = place
            .start_with(&fake, |p| {
                p.config.watch.comments = on;
                p.files.watcher = Some(given);
            })
            .await;
        place.file("a.rs", "// sort these, tiller!\nfn b() {}\nfn a() {}\n");
        let change = |who| FileChange {
            time: Time(1),
            kind: ChangeKind::Modified,
            path: "a.rs".into(),
            who,
            count: 1,
            lines: None,
            during: None,
        };
        // Its own edits and git's start no turn.
        watcher.sees(WatchReport { changes: vec![change(Who::Git)], ..WatchReport::default() });
        watcher.sees(WatchReport { changes: vec![change(Who::You)], ..WatchReport::default() });
        watcher.sees(WatchReport { changes: vec![change(Who::You)], ..WatchReport::default() });
        if on {
            fake.requested(1).await;
            assert!(
                message_text(&fake.request(0), 0).contains("line 1: sort these,"),
                "{:?}",
                fake.request(0)
            );
        }
        // A turn of the user's follows, so that any other request would have come first.
        rig.turn("go on").await;
        let asked: Vec<String> = (0..fake.count())
            .map(|n| message_text(&fake.request(n), fake.request(n).messages.len() - 1))
            .collect();
        assert_eq!(asked.iter().filter(|t| t.contains("sort these")).count(), usize::from(on), "{asked:?}");
    }
}
