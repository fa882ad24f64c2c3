//! Hooks for sessions, prompts, answers, compaction, agents, files and questions.

use serde_json::{Value, json};
use tiller_protocol::command::ContextCommand;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AgentState, CommandBody, HookEvent, NoticeKind, Who};

use crate::agents::delegation::{agent, delegate, first, result, state};
use crate::files::outside_changes::Scripted;
use crate::hooks::{hook, hook_for, hooks};
use crate::rig::*;

/// Writes its input to a file of this name, whole at once, also where two hooks run at the same time.
fn keep(name: &str) -> String {
    format!("cat >{name}.$$ && mv {name}.$$ {name}")
}

/// Waits for the input that [`keep`] wrote.
async fn kept(place: &Place, name: &str) -> Value {
    let path = place.work.join(name);
    let until = std::time::Instant::now() + DEADLINE;
    while !path.exists() {
        assert!(std::time::Instant::now() < until, "no {name}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    serde_json::from_str(&place.read(name)).unwrap()
}

/// What the hooks of a session's start and of a prompt add is at the end of the first message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_start_and_user_prompt_add_text_at_the_end() {
    let place = Place::new();
    let fake = Fake::new([says("One."), says("Two.")]);
    let hooks = hooks(&place, |h| {
        h.session_start.push(hook(&format!("{}; echo '{{\"add\":\"the build is red\"}}'", keep("start"))));
        h.user_prompt.push(hook(&format!("{}; echo '{{\"add\":\"answer briefly\"}}'", keep("prompt"))));
        h.session_end.push(hook(&keep("end")));
        h.notification.push(hook(&keep("notification")));
    });
    let mut rig = place.start_with(&fake, |p| p.hooks = hooks).await;
    rig.turn("go").await;
    rig.turn("more").await;
    let text = message_text(&fake.request(0), 0);
    let (message, added) = text.split_at(2);
    assert_eq!(message, "go");
    assert!(added.contains("answer briefly]") && added.ends_with("the build is red]"), "{text}");
    let last = fake.request(1);
    let text = message_text(&last, last.messages.len() - 1);
    assert!(text.starts_with("more") && text.ends_with("answer briefly]") && !text.contains("red"), "{text}");
    assert_eq!(kept(&place, "start").await["source"], "new");
    assert_eq!(kept(&place, "prompt").await["prompt"], "more");
    let notification = kept(&place, "notification").await;
    assert_eq!(
        (&notification["kind"], &notification["event"]),
        (&json!("turn-finished"), &json!("notification"))
    );
    rig.quit().await;
    assert_eq!(kept(&place, "end").await["reason"], "quit");
}

/// A prompt that a hook denies is not sent; the user is told why and keeps the text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_prompt_is_not_sent() {
    let place = Place::new();
    let fake = Fake::new([says("Fine.")]);
    let hooks = hooks(&place, |h| {
        h.user_prompt.push(hook("if grep -q password; then echo 'it holds a password' >&2; exit 2; fi"));
    });
    let mut rig = place.start_with(&fake, |p| p.hooks = hooks).await;
    rig.submit("my password is x");
    let refused = rig.refused().await;
    assert_eq!(refused.kind, NoticeKind::Denied);
    assert!(refused.message.contains("it holds a password"), "{refused:?}");
    assert_eq!(fake.count(), 0);
    assert_eq!(rig.turn("hello").await, (TurnStatus::Done, "Fine.".into()));
    rig.quit().await;
}

/// A denied answer goes back to the model with the reason, a limited number of times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_answer_sends_the_model_on() {
    let place = Place::new();
    let fake = Fake::new([says("Done."), says("Tests pass now.")]);
    let script = r#"grep -q 'Tests pass' || { echo 'run the tests first' >&2; exit 2; }"#;
    let set = hooks(&place, |h| h.before_response.push(hook(script)));
    let mut rig = place.start_with(&fake, |p| p.hooks = set).await;
    assert_eq!(rig.turn("go").await, (TurnStatus::Done, "Tests pass now.".into()));
    let last = fake.request(1);
    let told = message_text(&last, last.messages.len() - 1);
    assert!(told.contains("The turn does not end yet") && told.contains("run the tests first"), "{told}");
    rig.quit().await;

    let place = Place::new();
    let fake = Fake::with(|_, _| says("Done."));
    let set = hooks(&place, |h| h.before_response.push(hook("exit 2")));
    let mut rig = place.start_with(&fake, |p| p.hooks = set).await;
    assert_eq!(rig.turn("go").await, (TurnStatus::Done, "Done.".into()));
    assert_eq!(fake.count(), 4, "three times, then the turn ends");
    rig.quit().await;
}

/// An interrupt while hooks look at the answer ends the turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_ends_the_look_at_the_answer() {
    let place = Place::new();
    let fake = Fake::new([says("Done.")]);
    let set = hooks(&place, |h| h.before_response.push(hook(&format!("{}; sleep 3000", keep("answer")))));
    let mut rig = place.start_with(&fake, |p| p.hooks = set).await;
    rig.submit("go");
    assert_eq!(kept(&place, "answer").await["answer"], "Done.");
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    rig.quit().await;
}

/// A compaction is denied, or the hooks name what its summary keeps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_is_denied_or_directed() {
    for (script, denied) in
        [("echo 'not now' >&2; exit 2", true), (r#"echo '{"add":"keep the port 8081"}'"#, false)]
    {
        let place = Place::new();
        let fake = Fake::with(|_, _| says("Words."));
        let set = hooks(&place, |h| h.context_compact.push(hook(&format!("{}; {script}", keep("compact")))));
        let mut rig = place.start_with(&fake, |p| p.hooks = set).await;
        for text in ["one", "two", "three"] {
            rig.turn(text).await;
        }
        rig.send(CommandBody::Context(ContextCommand::Compact { focus: None }));
        if denied {
            assert!(rig.refused().await.message.contains("not now"));
            assert_eq!(fake.count(), 3);
        } else {
            rig.until("the compaction", |e| match e {
                tiller_protocol::EventBody::Turn(tiller_protocol::event::TurnEvent::Compacted { .. }) => {
                    Some(())
                }
                _ => None,
            })
            .await;
            let request = fake.request(3);
            let all: Vec<String> = (0..request.messages.len()).map(|at| message_text(&request, at)).collect();
            assert!(all.concat().contains("keep the port 8081"), "{all:?}");
        }
        assert_eq!(kept(&place, "compact").await["trigger"], "user");
        rig.quit().await;
    }
}

/// An agent that a hook denies does not start, and its parent is told why; one that runs is followed to its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_are_denied_and_followed() {
    let place = Place::new();
    let fake = Fake::with(|_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([{"goal": "good"}, {"goal": "bad"}])),
        "go" => says(&result(r).unwrap()),
        task => says(&format!("did {task}")),
    });
    let set = hooks(&place, |h| {
        h.agent_start.push(hook(r#"if grep -q '"task":"bad"'; then echo 'no bad work' >&2; exit 2; fi"#));
        // Both agents may end at the same time.
        h.agent_end.push(hook("grep '\"label\":\"good\"' >good.$$ && mv good.$$ good; true"));
        // The first task of an agent is no message of the user's.
        h.user_prompt.push(hook("echo x >>prompts"));
    });
    let mut rig = place.start_with(&fake, |p| p.hooks = set).await;
    let (status, text) = rig.turn("go").await;
    assert_eq!(status, TurnStatus::Done);
    assert!(text.contains("did good") && text.contains("no bad work") && !text.contains("did bad"), "{text}");
    state(&mut rig, "main/a2", AgentState::Failed).await;
    let end = kept(&place, "good").await;
    assert_eq!(
        (&end["ended"], &end["status"], &end["answer"]),
        (&json!("main/a1"), &json!("done"), &json!("did good"))
    );
    assert_eq!(place.read("prompts"), "x\n");
    rig.quit().await;
}

/// Changed files run the hooks whose pattern is for them; what a hook itself changes runs none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_files_run_their_hooks_once() {
    let place = Place::new();
    let set = hooks(&place, |h| {
        h.file_changed.push(hook_for("src/**", &format!("echo x >>runs; {}; sleep 3000", keep("changed"))));
    });
    let rows = set.clone();
    let watcher = std::sync::Arc::<Scripted>::default();
    let used = std::sync::Arc::clone(&watcher);
    let rig = place
        .start_with(&Fake::new([]), |p| {
            p.hooks = set;
            p.files.watcher = Some(used);
        })
        .await;
    watcher.sees_of(&agent("main"), ["README.md"]);
    watcher.sees_of(&agent("main"), ["src/a.rs"]);
    let input = kept(&place, "changed").await;
    assert_eq!(input["changes"][0]["path"], "src/a.rs");
    for _ in 0..5 {
        watcher.sees_of(&agent("main"), ["src/a.rs"]);
    }
    assert_eq!(place.read("runs"), "x\n");
    assert_eq!(rows.rows().iter().filter(|r| r.event == HookEvent::FileChanged).count(), 1);
    rig.quit().await;
}

/// Where files are watched for hooks alone, changes by agents during a run get a run of their own at the end: one for all,
/// without the changes by others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_by_agents_during_a_run_run_the_hooks_at_the_end() {
    let place = Place::new();
    let command = "cat >>inputs; echo >>inputs; echo x >>runs; while [ ! -e go ]; do sleep 0.1; done";
    let set = hooks(&place, |h| h.file_changed.push(hook_for("src/**", command)));
    let watcher = std::sync::Arc::new(Scripted::for_hooks());
    let used = std::sync::Arc::clone(&watcher);
    let rig = place
        .start_with(&Fake::new([]), |p| {
            p.hooks = set;
            p.files.watcher = Some(used);
        })
        .await;
    watcher.sees_of(&agent("main"), ["src/a.rs"]);
    let begun = place.work.join("runs");
    wait_until("the first run", async || begun.exists()).await;
    watcher.sees_of(&agent("main"), ["src/b.rs", "README.md"]);
    watcher.sees_by(&Who::You, ["src/own.rs"]);
    watcher.sees_of(&agent("main/a1"), ["src/c.rs", "src/b.rs"]);
    place.file("go", "");
    rig.quit().await;
    let inputs = place.read("inputs");
    let paths = |line: &str| -> Vec<String> {
        let input: Value = serde_json::from_str(line).unwrap();
        let changes = input["changes"].as_array().unwrap();
        changes.iter().map(|c| c["path"].as_str().unwrap().to_owned()).collect()
    };
    let runs: Vec<_> = inputs.lines().filter(|line| !line.is_empty()).map(paths).collect();
    assert_eq!(runs, [vec!["src/a.rs"], vec!["src/c.rs", "src/b.rs"]], "{inputs}");
}
