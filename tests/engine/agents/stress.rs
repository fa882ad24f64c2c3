//! Fault A3 under stress: whatever a child does, and whatever is done to its parent, the parent gets one result, no
//! task waits beyond a limit, and no process is left behind. A seed determines a trial; a failure names it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tiller_protocol::event::{ReplyEvent, TurnStatus};
use tiller_protocol::{AgentCommand, AgentId, AgentState, CommandBody};
use tiller_provider::ProviderError;

use crate::agents::delegation::{delegate, first, result};
use crate::agents::external::toy;
use crate::rig::*;

/// A whole day: a process that still sleeps was left behind.
const SLEEP: &str = "sleep 86399";
/// Seconds that an agent may work.
const LIMIT: u64 = 1;

/// A deterministic generator of pseudo-random numbers.
struct Seed(u64);

impl Seed {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// How a child ends: the first word of its task, the program that runs it, and the status that its parent may get.
const ENDINGS: &[(&str, Option<&str>, &[&str])] = &[
    ("panic", None, &["failed"]),
    ("refuse", None, &["failed"]),
    ("cut", None, &["failed"]),
    ("hang", None, &["failed"]),
    ("tool", None, &["failed"]),
    ("fine", None, &["done"]),
    ("empty", None, &["done", "failed"]),
    // Its own child hangs, too.
    ("deep", None, &["done", "failed"]),
    ("crash", Some("toy:headless"), &["failed"]),
    ("sleep", Some("toy:headless"), &["failed"]),
    ("silent", Some("toy:headless"), &["failed"]),
    // It ends, and leaves a process behind that holds its output.
    ("leave", Some("toy:headless"), &["done", "failed"]),
    ("noise", Some("toy:headless"), &["done"]),
    ("mute", Some("toy:acp"), &["failed"]),
    ("absent", Some("nobody"), &["refused"]),
];

const PROGRAM: &str = r#"case $1 in
crash*) kill -9 $$ ;;
sleep*) sleep 86399 & setsid sleep 86399 & wait ;;
silent*) exit 3 ;;
leave*) setsid sleep 86399 & echo left ;;
noise*) head -c 200 /dev/urandom; echo ;;
esac
# Over the protocol it is given nothing, and says nothing.
test -n "$1" || exec sleep 86399"#;

/// Processes that sleep in this folder, or anywhere.
pub(crate) fn left_in(place: &Place, anybody: bool) -> Vec<String> {
    let mut found = Vec::new();
    for dir in std::fs::read_dir("/proc").unwrap().flatten() {
        if !dir.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        let here = std::fs::read_link(dir.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&place.work));
        let line = std::fs::read(dir.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if here && (anybody || line.starts_with("sleep ")) {
            found.push(format!("{} {line}", dir.file_name().to_string_lossy()));
        }
    }
    found
}

async fn nobody_left(place: &Place, anybody: bool, what: &str) {
    let end = Instant::now() + DEADLINE;
    loop {
        let left = left_in(place, anybody);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "{what}: orphans: {left:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until no agent works; returns all rows.
async fn at_rest(rig: &mut Rig, what: &str) -> Vec<tiller_protocol::AgentView> {
    let end = Instant::now() + DEADLINE;
    loop {
        let agents = rig.snapshot().await.agents;
        if agents.iter().all(|a| a.id.is_main() || !a.state.at_work()) {
            return agents;
        }
        let states: Vec<_> = agents.iter().map(|a| (a.id.0.clone(), a.state, a.act.clone())).collect();
        assert!(Instant::now() < end, "{what}: still at work: {states:#?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn child(r: &tiller_provider::Request) -> Vec<Step> {
    let word = first(r).split_whitespace().next().unwrap_or_default().to_owned();
    match (word.as_str(), result(r)) {
        ("panic", _) => vec![Step::Panic],
        ("refuse", _) => vec![Step::Refuse(ProviderError::Rejected("no".into()))],
        ("cut", _) => {
            let mut steps = words(0, "half of a");
            steps.push(Step::Fail(ProviderError::Rejected("cut".into())));
            steps
        }
        ("hang", _) => vec![Step::Hang],
        ("tool", None) => {
            calls(&[("t", "terminal", json!({"command": format!("{SLEEP} & setsid {SLEEP} & {SLEEP}")}))])
        }
        ("deep", None) => delegate(json!([{"goal": "hang deeper"}, {"goal": "tool deeper"}])),
        ("empty", _) => vec![usage(), stop(tiller_protocol::StopReason::EndTurn)],
        _ => says("It is done."),
    }
}

/// Delegates to `each` agents at once, `batches` times, with random endings.
async fn endings(batches: usize, each: usize, mut seed: Seed) {
    let place = Place::new();
    let fake = Fake::with(|_, r| match (first(r), result(r)) {
        (tasks, None) if tasks.starts_with('[') => delegate(serde_json::from_str(&tasks).unwrap()),
        (tasks, Some(said)) if tasks.starts_with('[') => says(&said),
        _ => child(r),
    });
    let toy = toy(&place, PROGRAM);
    let mut rig = place
        .start_with(&fake, |p| {
            p.crew.programs = Some(toy);
            p.config.agents.seconds = LIMIT;
            p.config.agents.total = 10_000;
            p.config.agents.running = each * 3;
            p.config.limits.output_bytes = 1_000_000;
        })
        .await;
    let mut longest = 0.0_f64;
    for batch in 0..batches {
        let now = seed.0;
        let picked: Vec<_> = (0..each).map(|_| ENDINGS[seed.below(ENDINGS.len())]).collect();
        let tasks: Vec<Value> = picked
            .iter()
            .enumerate()
            .map(|(n, (word, cli, _))| json!({"goal": format!("{word} {n}"), "cli": cli}))
            .collect();
        // Each turn is a conversation of its own: the first words of a request identify it.
        rig.send(CommandBody::Session(tiller_protocol::command::SessionCommand::New));
        let what = format!("batch {batch}, seed {now}: {picked:?}");
        let (status, text) = rig.turn(&Value::from(tasks).to_string()).await;
        assert_eq!(status, TurnStatus::Done, "{what}");
        // News may follow it.
        let all: Vec<Value> = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        assert_eq!(all.len(), each, "{what}: one result each: {text}");
        for ((word, _, may), report) in picked.iter().zip(&all) {
            let said = report["status"].as_str().unwrap();
            // On a loaded machine each of them may reach its limit before it ends by itself.
            let late = report["error"].as_str().is_some_and(|e| e.contains("it reached its limit"));
            assert!(may.contains(&said) || late, "{word}: {report} in {what}");
            longest = longest.max(report["seconds"].as_f64().unwrap());
        }
        at_rest(&mut rig, &what).await;
        nobody_left(&place, false, &what).await;
    }
    rig.quit().await;
    nobody_left(&place, true, "after the end").await;
    println!("{} endings; the longest took {longest:.1} s where {LIMIT} s was the limit", batches * each);
}

/// The command that the parent gets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Blow {
    Interrupt,
    Hard,
    CancelAll,
    CancelTree,
    CancelOne,
    Kill,
}

const BLOWS: [Blow; 6] =
    [Blow::Interrupt, Blow::Hard, Blow::CancelAll, Blow::CancelTree, Blow::CancelOne, Blow::Kill];

/// Two agents below the main one and two below the first, working in a model or in a command; then the parent is
/// stopped.
async fn blow(seed: &mut Seed, blow: Blow) {
    let what = format!("{blow:?}, seed {}", seed.0);
    let place = Place::new();
    let again = Arc::new(AtomicBool::new(false));
    let second = Arc::clone(&again);
    let fake = Fake::with(move |_, r| {
        let later = second.load(Ordering::SeqCst);
        match (first(r).as_str(), result(r)) {
            ("go", None) => delegate(json!([{"goal": "tree"}, {"goal": "tool"}])),
            (_, _) if later => says("It is done."),
            ("tree", None) => delegate(json!([{"goal": "tool"}, {"goal": "hang"}])),
            ("go" | "tree", Some(_)) => says("It is done."),
            _ => child(r),
        }
    });
    let mut rig = place.start_with(&fake, |p| p.config.agents.running = 10).await;
    rig.submit("go");
    let session = rig.session();
    fake.requested(1 + seed.below(5)).await;
    // The random delay is what the trial varies.
    tokio::time::sleep(Duration::from_micros(seed.below(30_000) as u64)).await;
    if blow == Blow::Kill {
        rig.kill().await;
        place.free(session);
        again.store(true, Ordering::SeqCst);
        nobody_left(&place, false, &what).await;
        // In a test the process that held the leases lives on. What was being written at the kill is written by now.
        let rows = place.parts(&fake).store.agents().list(session).unwrap();
        let known = rows.len();
        rows.iter().for_each(|row| place.free_if_there(row.session));
        let mut rig =
            place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
        // They are read after the session.
        let end = Instant::now() + DEADLINE;
        while rig.snapshot().await.agents.len() <= known {
            assert!(Instant::now() < end, "{what}: {known} agents are known again");
        }
        let rows = at_rest(&mut rig, &what).await;
        let stopped = rows.iter().filter(|a| a.state == AgentState::Interrupted).count();
        if stopped > 0 {
            rig.send(CommandBody::Agent(AgentCommand::ResumeAll));
            rig.reply().await;
            if seed.below(2) == 0 {
                // The user stops them at once: agents that were about to continue do not.
                rig.send(CommandBody::Agent(AgentCommand::CancelAll));
                rig.reply().await;
                let rows = at_rest(&mut rig, &what).await;
                for row in rows.iter().filter(|a| a.state == AgentState::Cancelled) {
                    rig.send(CommandBody::Agent(AgentCommand::Resume { id: row.id.clone() }));
                    rig.reply().await;
                }
            }
        }
        let rows = at_rest(&mut rig, &what).await;
        let states: Vec<_> = rows
            .iter()
            .map(|a| (a.id.0.clone(), a.state, a.child.as_ref().map(|c| c.result.clone())))
            .collect();
        assert!(rows.iter().skip(1).all(|a| a.state == AgentState::Done), "{what}: {states:#?}");
        for n in 0..fake.count() {
            assert_valid(&fake.request(n));
        }
        rig.quit().await;
        return nobody_left(&place, true, &what).await;
    }
    let to = |command| CommandBody::Agent(command);
    let id = AgentId("main/a1".into());
    match blow {
        Blow::Interrupt => rig.interrupt(false),
        Blow::Hard => rig.interrupt(true),
        Blow::CancelAll => _ = rig.send(to(AgentCommand::CancelAll)),
        Blow::CancelTree => _ = rig.send(to(AgentCommand::Cancel { id, subtree: true })),
        Blow::CancelOne => _ = rig.send(to(AgentCommand::Cancel { id, subtree: false })),
        Blow::Kill => {}
    }
    let mut there = true;
    if matches!(blow, Blow::CancelAll | Blow::CancelTree | Blow::CancelOne) {
        // The command is refused when the agent does not exist yet: then it starts later, and works.
        there = matches!(rig.reply().await, ReplyEvent::DoneReply { .. });
    }
    if there && matches!(blow, Blow::CancelTree | Blow::CancelOne) {
        // The second agent works on; the agents below the first are gone with it.
        let end = Instant::now() + DEADLINE;
        loop {
            let agents = rig.snapshot().await.agents;
            if !agents.iter().any(|a| a.id.0.starts_with("main/a1") && a.state.at_work()) {
                break;
            }
            let states: Vec<_> = agents.iter().map(|a| (&a.id.0, a.state, &a.act)).collect();
            assert!(Instant::now() < end, "{what}: the first of them works on: {states:#?}");
        }
    }
    if matches!(blow, Blow::CancelAll | Blow::CancelTree | Blow::CancelOne) {
        // Agents that were not named, or that started after the command, still work.
        rig.interrupt(true);
    }
    rig.finished().await;
    at_rest(&mut rig, &what).await;
    nobody_left(&place, false, &what).await;
    rig.quit().await;
    nobody_left(&place, true, &what).await;
}

async fn blows(rounds: usize, mut seed: Seed) {
    for _ in 0..rounds {
        for b in BLOWS {
            blow(&mut seed, b).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_however_a_child_ends_it_is_one_result_and_nothing_is_left() {
    endings(2, 15, Seed(20_261_122)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_whatever_is_done_to_a_parent_nobody_below_it_is_left() {
    blows(2, Seed(7)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "380 trials, about a minute"]
async fn a3_endings_by_chance() {
    endings(19, 20, Seed(4711)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "120 trials"]
async fn a3_blows_by_chance() {
    blows(20, Seed(815)).await;
}
