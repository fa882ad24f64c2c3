//! The price of safety: questions in eight everyday stories, in each mode. `cargo test -p tiller-engine-tests question_budget --
//! --nocapture` prints the table.

use std::process::Command;

use serde_json::{Value, json};
use tiller_engine::EngineConfig;
use tiller_protocol::event::{AskEvent, TurnEvent};
use tiller_protocol::{AskBody, AskReply, Decision, EventBody, Profile};

use crate::rig::*;

/// Questions of a story that are too many.
const MOST: [(Profile, usize); 5] = [
    (Profile::ReadOnly, 0),
    (Profile::Plan, 0),
    (Profile::Ask, 4),
    (Profile::AutoEdit, 3),
    (Profile::Full, 1),
];
/// Of all stories together in AUTO, which are more than an hour's work.
const MOST_IN_AUTO: usize = 1;

type Story = (&'static str, Vec<(&'static str, Value)>);

fn run(command: &str) -> (&'static str, Value) {
    ("terminal", json!({ "command": command }))
}

fn read(path: &str) -> (&'static str, Value) {
    ("read_file", read_args(path))
}

fn write(path: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": "new\n"}))
}

fn stories() -> Vec<Story> {
    vec![
        (
            "a fix",
            vec![
                ("search", json!({"pattern": "old", "path": "src"})),
                read("src/a.txt"),
                run("sh check.sh"),
                write("src/a.txt"),
                run("sh check.sh"),
                run("git diff --stat && git status --short"),
            ],
        ),
        (
            "a refactoring",
            vec![
                read("src/a.txt"),
                write("src/a.txt"),
                write("src/b.txt"),
                write("src/c.txt"),
                run("mv src/c.txt src/d.txt"),
                run("sh check.sh"),
                run("grep -rn new src | wc -l"),
            ],
        ),
        (
            "tests in a venv",
            vec![
                read("tests/test_a.py"),
                write("tests/test_b.py"),
                run(".venv/bin/python -m pytest -q tests"),
                write("tests/test_b.py"),
                run(".venv/bin/python -m pytest -q tests"),
                run(".venv/bin/python -m pytest -q tests/test_b.py"),
            ],
        ),
        (
            "a Node project",
            vec![
                read("package.json"),
                run("npm run lint"),
                write("src/index.js"),
                run("npm test"),
                run("npm run build"),
                run("npm test"),
            ],
        ),
        (
            "a release",
            vec![
                run("git log --oneline -5"),
                read("CHANGELOG.md"),
                write("CHANGELOG.md"),
                run("git commit -qam 'Release 1.1'"),
                run("git tag v1.1"),
                run("git show --stat HEAD"),
            ],
        ),
        (
            "a look at the web",
            vec![
                ("web_fetch", json!({"url": "http://127.0.0.1:9/guide"})),
                ("web_fetch", json!({"url": "http://127.0.0.1:9/guide/two"})),
                write("notes.md"),
            ],
        ),
        (
            "a folder of documents",
            vec![
                ("list_dir", json!({"path": "docs"})),
                read("docs/one.md"),
                write("docs/two.md"),
                run("wc -w docs/*.md"),
                run("sed -i s/one/two/ docs/one.md"),
                read("docs/one.md"),
            ],
        ),
        (
            "a worktree",
            vec![
                run("git worktree add -q .worktrees/topic -b topic"),
                write(".worktrees/topic/src/a.txt"),
                run("git -C .worktrees/topic status --short"),
                run("git worktree list"),
            ],
        ),
    ]
}

fn place() -> Place {
    let place = Place::new();
    for (name, text) in [
        ("src/a.txt", "old\n"),
        ("src/b.txt", "old\n"),
        ("check.sh", "grep -q new src/a.txt\n"),
        ("tests/test_a.py", "def test_a(): pass\n"),
        ("package.json", "{}\n"),
        ("CHANGELOG.md", "# Changes\n"),
        ("docs/one.md", "one\n"),
    ] {
        std::fs::create_dir_all(place.work.join(name).parent().unwrap()).unwrap();
        place.file(name, text);
    }
    let git = |args: &[&str]| {
        let own = ["-c", "user.name=a", "-c", "user.email=a", "-c", "init.defaultBranch=main"];
        let done = Command::new("git").args(own).args(args).current_dir(&place.work).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    place
}

/// The user agrees to everything, for the session where that is offered, as people do.
fn agreed(body: &AskBody) -> AskReply {
    let AskBody::Permission(p) = body else { panic!("{body:?}") };
    let decision = match &p.always {
        Some(pattern) => Decision::Session { pattern: pattern.clone() },
        None => Decision::Once,
    };
    AskReply::Permission { decision, hash: p.hash.clone() }
}

async fn questions(profile: Profile, steps: &[(&'static str, Value)]) -> usize {
    let place = place();
    let replies = steps.iter().enumerate().map(|(at, (tool, args))| {
        let id = format!("c{at}");
        calls(&[(id.as_str(), tool, args.clone())])
    });
    let fake = Fake::new(replies.chain([says("Done.")]));
    let change = |parts: &mut EngineConfig| {
        parts.session.profile = Some(profile);
        parts.config.limits.fetch_private = true;
    };
    let mut rig = place.start_with(&fake, change).await;
    rig.submit("do it");
    let mut count = 0;
    loop {
        let ask = rig
            .until("a question, or the end", |e| match e {
                EventBody::Ask(AskEvent::PermissionAsked { ask } | AskEvent::QuestionAsked { ask }) => {
                    Some(Some(ask.clone()))
                }
                EventBody::Turn(TurnEvent::TurnFinished { .. }) => Some(None),
                _ => None,
            })
            .await;
        let Some(ask) = ask else { return count };
        count += 1;
        let reply = agreed(&ask.body);
        rig.answer(&ask, reply);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everyday_stories_ask_no_more_than_their_budget() {
    let mut all = tokio::task::JoinSet::new();
    for (at, (profile, _)) in MOST.into_iter().enumerate() {
        for (name, steps) in stories() {
            all.spawn(async move { (at, name, questions(profile, &steps).await) });
        }
    }
    let mut counts = all.join_all().await;
    counts.sort_unstable();
    for (at, (profile, most)) in MOST.into_iter().enumerate() {
        let of_mode: Vec<_> = counts.iter().filter(|(mode, ..)| *mode == at).collect();
        println!(
            "{profile:?}: {:?}",
            of_mode.iter().map(|(_, name, count)| (*name, *count)).collect::<Vec<_>>()
        );
        let most_of_all = if profile == Profile::Full { MOST_IN_AUTO } else { usize::MAX };
        assert!(of_mode.iter().all(|(.., count)| *count <= most), "{profile:?}, at most {most}: {of_mode:?}");
        assert!(
            of_mode.iter().map(|(.., count)| count).sum::<usize>() <= most_of_all,
            "{profile:?}: {of_mode:?}"
        );
    }
}
