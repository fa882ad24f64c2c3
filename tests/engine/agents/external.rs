//! External programs as agents: small scripts play them here; the real ones are driven in `tests/it`.

use std::sync::Arc;

use serde_json::json;
use tiller_external::Adapters;
use tiller_permit::{Effect, Rule, Source};
use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::{ReplyEvent, ToolEvent, TurnEvent, TurnStatus};
use tiller_protocol::{AgentCommand, AgentState, Block, CommandBody, EntryBody, EventBody, Profile};

use crate::agents::delegation::{agent, delegate, first, result, state};
use crate::files::outside_changes::Scripted;
use crate::rig::*;
use tiller_engine::crew::Programs;

/// A program `toy` that is this script, run as aider is.
pub(crate) fn toy(place: &Place, script: &str) -> Programs {
    let folder = place.tmp.path().join("adapters");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("toy.sh");
    tiller_testkit::program(&program, &format!("#!/bin/sh\n{script}\n"));
    let adapter = format!(
        "name = \"toy\"\ntitle = \"Toy\"\n[program]\ncommand = \"{0}\"\ninstall = \"nothing\"\n\
         [headless]\nformat = \"text\"\nargs = []\nlast = [\"{{prompt}}\"]\nprompt = \"argument\"\n\
         edited = '^Applied edit to (.+)$'\n[acp]\ncommand = \"{0}\"\ninstall = \"nothing\"\n\
         [env.careful]\nTOY_ASKS = \"1\"\n",
        program.display()
    );
    std::fs::write(folder.join("toy.toml"), adapter).unwrap();
    let adapters = Adapters::new(&[folder]);
    assert!(adapters.get("toy").is_some(), "the adapter is right");
    Programs {
        adapters,
        host: tiller_tool::shell::Host::default(),
        lookup: Arc::new(|_| None),
        trust: Arc::new(|_, _, _| None),
    }
}

/// An engine with this program, and a model that is not used.
pub(crate) async fn with_toy(place: &Place, script: &str, profile: Profile) -> Rig {
    let toy = toy(place, script);
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.crew.programs = Some(toy);
        p.session.profile = Some(profile);
    };
    place.start_with(&Fake::new([]), change).await
}

/// A session in `full` whose rules deny `pattern`.
pub(crate) async fn full_with_denied(place: &Place, toy: Programs, pattern: &'static str) -> Rig {
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.crew.programs = Some(toy);
        p.session.profile = Some(Profile::Full);
        let rule =
            Rule::parse(Effect::Deny, Source::User, pattern, &tiller_tool::Registry::built_in().catalog())
                .unwrap();
        p.permit = p.permit.clone().live(Arc::new(move || Some((Some(vec![rule.clone()]), Vec::new()))));
        let _ = p.permit.refresh();
    };
    place.start_with(&Fake::new([]), change).await
}

pub(crate) fn spawn(cli: &str, goal: &str) -> CommandBody {
    let cli = Some(cli.into());
    CommandBody::Agent(AgentCommand::Spawn {
        goal: goal.into(),
        role: None,
        model: None,
        cli,
        isolated: false,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_does_a_task_and_its_report_comes_back() {
    let place = Place::new();
    let toy =
        toy(&place, "echo 'I was asked to:' \"$1\"; echo new > made.txt; echo 'Applied edit to made.txt'");
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([
            {"goal": "build it", "cli": "toy:headless"}, {"goal": "own work"}, {"goal": "x", "cli": "nobody"}
        ])),
        "go" => says(&result(r).unwrap()),
        _ => says("own work is done"),
    });
    let mut rig = place.start_with(&fake, |p| p.crew.programs = Some(toy)).await;
    let (status, text) = rig.turn("go").await;
    assert_eq!(status, TurnStatus::Done);
    assert!(text.contains("I was asked to: build it") && text.contains("own work is done"), "{text}");
    assert!(text.contains("there is no adapter for nobody; available: aider, claude"), "{text}");
    assert!(text.contains("made.txt"), "{text}");
    assert!(place.work.join("made.txt").exists());
    let row = state(&mut rig, "main/a1", AgentState::Done).await;
    let child = row.child.unwrap();
    assert_eq!(
        (child.backend.to_string().as_str(), row.cost),
        ("toy, headless", None),
        "what it cost is not known"
    );
    // Its conversation is a session like any other.
    let store = place.parts(&Fake::new([])).store;
    let tail = store.paths().tail(child.session.unwrap(), "main", 100).unwrap();
    let shape = shape(&tail.entries);
    assert_eq!(shape[0], "user Prompt build it");
    assert!(shape.last().unwrap().starts_with("reply"), "{shape:?}");
    drop(store);
    rig.quit().await;
}

/// Without a watcher (`exec`, a workflow, ACP) the files that a program changed without reporting calls are known as
/// well, and can be restored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_of_a_program_that_tells_no_calls_are_its_own_without_a_watcher() {
    let place = Place::new();
    let toy = toy(&place, "echo made >made.txt; echo done");
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([{"goal": "build it", "cli": "toy:headless"}])),
        _ => says(&result(r).unwrap()),
    });
    let mut rig = place
        .start_with(&fake, |p| {
            crate::files::checkpoints::keeps(&place, p);
            p.crew.programs = Some(toy);
            p.files.watcher = None;
        })
        .await;
    let (status, text) = rig.turn("go").await;
    assert_eq!(status, TurnStatus::Done);
    assert!(text.contains(r#""files":["made.txt"]"#), "{text}");
    let message = crate::files::checkpoints::messages(&mut rig).await[0];
    let ReplyEvent::RestorePreviewReply { preview, .. } =
        rig.query(Query::RestorePreview { entry: message }).await
    else {
        panic!("no preview")
    };
    let files: Vec<_> = preview.files.iter().map(|f| (f.path.as_str(), f.conflict.is_some())).collect();
    assert_eq!(files, [("made.txt", false)], "nobody else's");
    rig.quit().await;
}

/// Fault A3 with programs: a crash, a hang and invalid output are results, and no process is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_a_program_that_crashes_or_hangs_is_one_result() {
    let place = Place::new();
    let toy = toy(
        &place,
        "case \"$1\" in crash*) kill -9 $$;; hang*) sleep 3000 & echo $! >hung; wait;; esac; printf '\\377\\000\\033[2J'",
    );
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([
            {"goal": "crash", "cli": "toy:headless"}, {"goal": "hang", "cli": "toy:headless"}, {"goal": "garbage", "cli": "toy:headless"}
        ])),
        _ => says(&result(r).unwrap()),
    });
    let mut rig = place
        .start_with(&fake, |p| {
            p.crew.programs = Some(toy);
            p.config.agents.seconds = 8;
        })
        .await;
    let (_, text) = rig.turn("go").await;
    let states = text.matches("\"status\":\"failed\"").count();
    assert!(states >= 2, "{text}");
    rig.quit().await;
    // Its end is not waited for: it is killed, and that takes its moment.
    let pid = place.read("hung").trim().to_owned();
    let end = std::time::Instant::now() + DEADLINE;
    let lives =
        || std::process::Command::new("kill").args(["-0", &pid]).stderr(std::process::Stdio::null()).status();
    while lives().unwrap().success() {
        assert!(std::time::Instant::now() < end, "the hanging program's child lives on");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// The files of a call are often reported only when it has finished; and the reason of a program's end is in its
/// conversation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_talk_of_a_program_that_died_has_its_call_and_the_reason() {
    let place = Place::new();
    let tell = |what: &str| {
        format!(
            r#"echo '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s1","update":{{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Terminal","kind":"execute",{what}}}}}}}'
      "#
        )
    };
    let call = tell(r#""status":"pending","rawInput":{}"#)
        + &tell(r#""status":"pending","rawInput":{"command":"make it"}"#)
        + "kill -9 $$;;";
    let script = ACP.replace(&format!("{TOUCH_ASKS};;"), &call);
    let mut rig = with_toy(&place, &script, Profile::Ask).await;
    rig.send(spawn("toy:acp", "run it"));
    let failed = state(&mut rig, "main/a1", AgentState::Failed).await;
    let session = failed.child.unwrap().session.unwrap();
    rig.quit().await;
    let store = place.parts(&Fake::new([])).store;
    let entries = store.paths().tail(session, "main", 100).unwrap().entries;
    let shape = shape(&entries);
    assert!(shape.last().unwrap().starts_with("note The turn ended early: "), "{shape:?}");
    let calls: Vec<_> = entries
        .iter()
        .filter_map(|e| match &e.body {
            EntryBody::Assistant { blocks, .. } => blocks.iter().find_map(|b| match b {
                Block::ToolCall(call) => Some(call.arguments["command"].as_str()?.to_owned()),
                _ => None,
            }),
            _ => None,
        })
        .collect();
    assert_eq!(calls, ["make it"], "{shape:?}");
}

/// A model of ours does not exist for a program; its own model is used from its next turn, also after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_of_a_program_is_one_of_its_own() {
    let place = Place::new();
    let toy = toy(&place, "echo said");
    let change = |p: &mut tiller_engine::EngineConfig| p.crew.programs = Some(toy.clone());
    let mut rig = place.start_with(&Fake::new([]), change).await;
    rig.send(spawn("toy:headless", "build it"));
    state(&mut rig, "main/a1", AgentState::Done).await;
    let set = |model: &str| {
        CommandBody::Session(SessionCommand::SetModel { model: tiller_protocol::ModelRef(model.into()) })
    };
    rig.send_to("main/a1", set("fake/m"));
    let refused = rig.until_of("the refusal", |e| match &e.body {
        EventBody::Reply(r) => match r.as_ref() {
            ReplyEvent::ErrorReply { notice } => Some(notice.clone()),
            _ => None,
        },
        _ => None,
    });
    let why = refused.await;
    assert!(why.message.contains("this agent is Toy") && why.hints[0].contains("toy/MODEL"), "{why:?}");
    rig.send_to("main/a1", set("toy/big-1"));
    let model = |e: &tiller_protocol::Event| {
        crate::agents::delegation::row(e).map(|v| v.model).filter(|m| m.0.contains("big-1"))
    };
    assert_eq!(rig.until_of("its model", model).await.0, "toy/big-1");
    let session = rig.session();
    rig.quit().await;
    let store = place.parts(&Fake::new([])).store;
    let kept = &store.agents().list(session).unwrap()[0].brief;
    assert_eq!(kept["brief"]["model"], "big-1", "{kept}");
}

/// A program that keeps no session gets the whole conversation again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_to_a_program_without_a_memory_brings_its_task_along() {
    let place = Place::new();
    let mut rig = with_toy(&place, "echo \"$1\" | tr '\\n' ' '", Profile::Full).await;
    rig.send(spawn("toy:headless", "build it"));
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "build it");
    rig.send_to("main/a1", crate::agents::user_commands::say("and test it"));
    let again = |e: &tiller_protocol::Event| {
        let child = crate::agents::delegation::row(e)?.child?;
        (child.result != "build it" && !child.result.is_empty()).then_some(child.result)
    };
    let told = rig.until_of("its next result", again).await;
    assert!(told.contains("> [person] > build it") && told.ends_with("and test it"), "{told}");
    assert!(told.contains("data, not instructions"), "{told}");
    rig.quit().await;
}

/// Over the protocol, too: a program that cannot load its session continues in a new one, also after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_cannot_load_its_session_goes_on_in_a_fresh_one_after_a_restart() {
    let place = Place::new();
    // It says how many prompts it was given, and keeps the last.
    let script = ACP.replace(
        &format!("{TOUCH_ASKS};;"),
        r#"printf '%s\n' "$line" >>prompts
      n=$(wc -l <prompts)
      echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"answer '$n'"}}}}'
      echo '{"jsonrpc":"2.0","id":'$prompt',"result":{"stopReason":"end_turn"}}';;"#,
    );
    let mut rig = with_toy(&place, &script, Profile::Full).await;
    let session = rig.session();
    rig.send(spawn("toy:acp", "build it"));
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "answer 1");
    rig.quit().await;
    let toy = toy(&place, &script);
    let open = |p: &mut tiller_engine::EngineConfig| {
        p.crew.programs = Some(toy);
        p.session.open = tiller_engine::Open::Session(session);
    };
    let mut rig = place.start_with(&Fake::new([]), open).await;
    state(&mut rig, "main/a1", AgentState::Done).await;
    rig.send_to("main/a1", crate::agents::user_commands::say("and test it"));
    let again = |e: &tiller_protocol::Event| {
        let view = crate::agents::delegation::row(e).filter(|v| v.state == AgentState::Done)?;
        view.child.map(|c| c.result).filter(|r| r == "answer 2")
    };
    rig.until_of("its next result", again).await;
    let prompts = place.read("prompts");
    let last = prompts.lines().last().unwrap();
    assert!(last.contains("[person]") && last.contains("build it") && last.contains("answer 1"), "{last}");
    assert!(last.contains("data, not instructions") && last.contains("and test it"), "{last}");
    let store = place.parts(&Fake::new([])).store;
    let child = store.agents().list(session).unwrap().remove(0).session;
    let shape = shape(&store.paths().tail(child, "main", 100).unwrap().entries);
    let note =
        "note Toy could not resume its earlier session: a new session received the previous conversation.";
    assert!(shape.iter().any(|s| s == note), "{shape:?}");
    rig.quit().await;
}

/// A paused agent needs no process: its output is kept, and a new session continues from there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_rests_needs_no_process_and_goes_on_where_it_was() {
    let place = Place::new();
    let said = |text: &str| {
        format!(
            r#"echo '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s1","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}'
      "#
        )
    };
    let script = ACP.replace(
        &format!("{TOUCH_ASKS};;"),
        &format!(
            "printf '%s\\n' \"$line\" >>prompts\n      [ -e begun ] || {{ {}echo $$ >begun; sleep 3000; }}\n      {}{}",
            said("half of it"),
            said("the rest of it"),
            r#"echo '{"jsonrpc":"2.0","id":'$prompt',"result":{"stopReason":"end_turn"}}';;"#
        ),
    );
    let mut rig = with_toy(&place, &script, Profile::Full).await;
    rig.send(spawn("toy:acp", "build it"));
    let half = |e: &tiller_protocol::Event| match &e.body {
        EventBody::Turn(tiller_protocol::event::TurnEvent::TextDelta { text }) if !e.agent.is_main() => {
            Some(text.clone())
        }
        _ => None,
    };
    assert!(rig.until_of("its first words", half).await.starts_with("half"));
    let until = |what: &'static str, done: Box<dyn Fn() -> bool>| async move {
        let end = std::time::Instant::now() + DEADLINE;
        while !done() {
            assert!(std::time::Instant::now() < end, "{what}");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let begun = place.work.join("begun");
    let there = begun.clone();
    until("it did not begin", Box::new(move || std::fs::read_to_string(&there).is_ok_and(|t| !t.is_empty())))
        .await;
    rig.send(CommandBody::Agent(AgentCommand::Pause { id: agent("main/a1") }));
    state(&mut rig, "main/a1", AgentState::Paused).await;
    let pid = place.read("begun").trim().to_owned();
    let gone = move || {
        let mut kill = std::process::Command::new("kill");
        !kill.args(["-0", &pid]).stderr(std::process::Stdio::null()).status().unwrap().success()
    };
    until("its process lives on", Box::new(gone)).await;
    rig.send(CommandBody::Agent(AgentCommand::Resume { id: agent("main/a1") }));
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "the rest of it");
    let prompts = place.read("prompts");
    let last = prompts.lines().last().unwrap();
    assert!(last.contains("> half of it") && last.contains("You were stopped in the middle"), "{last}");
    rig.quit().await;
}

/// Some programs send all of a call's output each time: it is shown once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_that_is_told_again_and_again_is_shown_once() {
    let place = Place::new();
    let tell = |status: &str, text: &str| {
        format!(
            r#"echo '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s1","update":{{"sessionUpdate":"tool_call_update","toolCallId":"t1","title":"make","kind":"execute","status":"{status}","content":[{{"type":"content","content":{{"type":"text","text":"{text}"}}}}]}}}}}}'
      "#
        )
    };
    let updates = ["one", "one two", "one two three"].map(|t| tell("in_progress", t)).concat();
    let end = r#"echo '{"jsonrpc":"2.0","id":'$prompt',"result":{"stopReason":"end_turn"}}';;"#;
    let updates = updates + &tell("completed", "one two three") + end;
    let script = ACP.replace(&format!("{TOUCH_ASKS};;"), &updates);
    let mut rig = with_toy(&place, &script, Profile::Ask).await;
    rig.send(spawn("toy:acp", "run it"));
    state(&mut rig, "main/a1", AgentState::Done).await;
    let shown: String = rig
        .seen
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::Tool(ToolEvent::ToolProgress { text, .. }) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(shown, "one two three");
    rig.quit().await;
}

/// A secret is masked as well when it arrives in two pieces.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_is_cut_over_two_pieces_of_output_is_masked() {
    let place = Place::new();
    let secret = "ghp_abcdEFGH1234ijklMNOP5678qrstUVWX90";
    let tell = |text: &str| {
        let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
        let update = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "t1", "title": "make", "kind": "execute",
            "status": "in_progress", "content": content,
        });
        let params = json!({"sessionId": "s1", "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
    };
    // Both in one write, so that no pause is between them.
    let (half, whole) = (tell(&format!("key {}", &secret[..12])), tell(&format!("key {secret} and more")));
    let updates = format!("printf '%s\\n%s\\n' '{half}' '{whole}'\n");
    let end = r#"echo '{"jsonrpc":"2.0","id":'$prompt',"result":{"stopReason":"end_turn"}}';;"#;
    let toy = toy(&place, &ACP.replace(&format!("{TOUCH_ASKS};;"), &(updates + end)));
    let redactor = tiller_permit::Redactor::new([]);
    let mut rig = place
        .start_with(&Fake::new([]), |p| {
            p.crew.programs = Some(toy);
            p.redaction.redact = Arc::new(move |t: &str| redactor.redact(t).into_owned());
        })
        .await;
    rig.send(spawn("toy:acp", "run it"));
    state(&mut rig, "main/a1", AgentState::Done).await;
    let shown: String = rig
        .seen
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::Tool(ToolEvent::ToolProgress { text, .. }) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert!(shown.starts_with("key [") && shown.ends_with("] and more"), "{shown}");
    assert!(!shown.contains(&secret[..12]), "{shown}");
    rig.quit().await;
}

/// A program that begins the call `make it` without asking, waits for the file `go`, makes `made.txt` and ends.
pub(crate) fn makes_unasked(place: &Place, go: &std::path::Path) -> Programs {
    let tell = |status: &str| {
        format!(
            r#"echo '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s1","update":{{"sessionUpdate":"tool_call_update","toolCallId":"t1","title":"make","kind":"execute","status":"{status}","rawInput":{{"command":"make it"}}}}}}}}'
      "#
        )
    };
    let wait = format!("while [ ! -e '{}' ]; do sleep 0.02; done; echo made >made.txt\n", go.display());
    let end = r#"echo '{"jsonrpc":"2.0","id":'$prompt',"result":{"stopReason":"end_turn"}}';;"#;
    let script = tell("in_progress") + &wait + &tell("completed") + end;
    toy(place, &ACP.replace(&format!("{TOUCH_ASKS};;"), &script))
}

/// Waits until the program of [`makes_unasked`] makes its call.
pub(crate) async fn until_its_call(rig: &mut Rig) {
    rig.until_of("its call", |e| {
        let start =
            matches!(&e.body, EventBody::Tool(ToolEvent::ToolStarted { target, .. }) if target == "make it");
        start.then_some(())
    })
    .await;
}

/// What a program does by its own rules counts as its work: in the feed, on its row, in its diff, in the audit, and
/// when the user restores files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_program_does_unasked_is_known_as_its_own() {
    let place = Place::new();
    let go = place.tmp.path().join("go");
    let toy = makes_unasked(&place, &go);
    let watcher = Arc::new(Scripted::default());
    let given = Arc::clone(&watcher) as Arc<dyn tiller_engine::Watcher>;
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([{"goal": "build it", "cli": "toy:acp"}])),
        _ => says(&result(r).unwrap()),
    });
    let mut rig = place
        .start_with(&fake, |p| {
            crate::files::checkpoints::keeps(&place, p);
            p.crew.programs = Some(toy);
            p.files.watcher = Some(given);
        })
        .await;
    rig.submit("go");
    until_its_call(&mut rig).await;
    assert_eq!(watcher.told(), ["main/a1 runs make it true"]);
    // States are stored one after the other: with this answer, the state before the call is stored.
    let message = crate::files::checkpoints::messages(&mut rig).await[0];
    rig.query(Query::RestorePreview { entry: message }).await;
    std::fs::write(&go, "").unwrap();
    let text = rig.until_of("the end", |e| match &e.body {
        EventBody::Turn(TurnEvent::TurnFinished { text, .. }) if e.agent == agent("main") => {
            Some(text.clone())
        }
        _ => None,
    });
    let text = text.await;
    assert!(text.contains(r#""files":["made.txt"]"#), "{text}");
    assert_eq!(watcher.told(), ["main/a1 runs make it true", "main/a1 runs make it false"]);
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().files, 1);
    rig.send(CommandBody::Agent(AgentCommand::Diff { id: agent("main/a1") }));
    let diff = rig.until_of("its diff", |e| match &e.body {
        EventBody::Reply(r) => match r.as_ref() {
            ReplyEvent::DiffReply { diff, .. } => Some(diff.clone()),
            _ => None,
        },
        _ => None,
    });
    let diff = diff.await;
    assert!(diff.contains("# made.txt") && diff.contains("+made"), "{diff}");
    // A change that is seen a moment later counts, too; once.
    watcher.sees_of(&agent("main/a1"), ["made.txt", "late.txt"]);
    let files = |e: &tiller_protocol::Event| {
        crate::agents::delegation::row(e)?.child.map(|c| c.files).filter(|n| *n > 1)
    };
    assert_eq!(rig.until_of("one more", files).await, 2);
    let ReplyEvent::RestorePreviewReply { preview, .. } =
        rig.query(Query::RestorePreview { entry: message }).await
    else {
        panic!("no preview")
    };
    let files: Vec<_> = preview.files.iter().map(|f| (f.path.as_str(), f.conflict.is_some())).collect();
    assert_eq!(files, [("made.txt", false)], "nobody else's");
    let rows = place.parts(&Fake::new([])).store.audit().list(None, "", 10).unwrap();
    let row = rows.iter().find(|r| r.agent == "main/a1").unwrap();
    assert_eq!(
        (row.decision.audit_word(), row.by.as_str(), row.outcome.word()),
        ("its own", "Toy did not ask", "ok")
    );
    assert!(row.what.contains("make it"), "{row:?}");
    rig.quit().await;
}

/// A limit is enforced for a program as soon as it reports usage and continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_has_used_up_its_money_does_not_go_on() {
    let place = Place::new();
    let cost = r#"echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"usage_update","used":5,"cost":{"amount":0.5,"currency":"USD"}}}}'
      echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"and on"}}}}'
      sleep 987655;;"#;
    let toy = toy(&place, &ACP.replace(&format!("{TOUCH_ASKS};;"), cost));
    let fake = Fake::new([]);
    let mut rig = place
        .start_with(&fake, |p| {
            p.crew.programs = Some(toy);
            p.config.agents.cost = Some(0.25);
        })
        .await;
    rig.send(spawn("toy:acp", "run it"));
    let failed = state(&mut rig, "main/a1", AgentState::Failed).await;
    assert_eq!(failed.child.unwrap().result, "it reached its limit of $0.25");
    rig.quit().await;
}

/// Endless output is no answer, however short its lines; the kept part is bounded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_only_talks_and_talks_is_ended() {
    let place = Place::new();
    let mut rig = with_toy(&place, "yes", Profile::Full).await;
    rig.send(spawn("toy:headless", "build it"));
    let failed = state(&mut rig, "main/a1", AgentState::Failed).await.child.unwrap();
    assert!(failed.result.contains("it wrote more than 4 MB"), "{}", failed.result);
    rig.quit().await;
    let store = place.parts(&Fake::new([])).store;
    let entries = store.paths().tail(failed.session.unwrap(), "main", 100).unwrap().entries;
    let longest = entries
        .iter()
        .filter_map(|e| match &e.body {
            EntryBody::Assistant { blocks, .. } => Some(blocks.iter().map(|b| match b {
                Block::Text { text } => text.len(),
                _ => 0,
            })),
            _ => None,
        })
        .flatten()
        .max();
    assert!(longest.is_some_and(|n| n > 1_000 && n < 3 << 20), "{longest:?}");
}

/// The subject of its question, and the line that asks it.
pub(crate) const TOUCH: &str =
    r#""title":"touch asked","kind":"execute","rawInput":{"command":"touch asked"}"#;
pub(crate) const TOUCH_ASKS: &str = r#"echo '{"jsonrpc":"2.0","id":900,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"touch asked","kind":"execute","rawInput":{"command":"touch asked"}},"options":[{"optionId":"yes1","name":"Yes","kind":"allow_once"},{"optionId":"no1","name":"No","kind":"reject_once"}]}}'"#;
/// A small agent of the protocol: it asks once, and says which option was chosen.
pub(crate) const ACP: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"agentCapabilities":{}}}';;
    *'"method":"session/new"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"s1"}}';;
    *'"method":"session/prompt"'*) prompt=$id
      echo '{"jsonrpc":"2.0","id":900,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"touch asked","kind":"execute","rawInput":{"command":"touch asked"}},"options":[{"optionId":"yes1","name":"Yes","kind":"allow_once"},{"optionId":"no1","name":"No","kind":"reject_once"}]}}';;
    *'"id":900'*) case "$line" in *yes1*) said=allow-once;; *) said=refused;; esac
      echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"it said '$said'"}}}}'
      echo '{"jsonrpc":"2.0","id":'$prompt',"result":{"stopReason":"end_turn"}}';;
  esac
done
"#;

/// A program writes with its own tools: the note about masks in its prompt says that they are no values.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_reads_a_mask_is_told_what_it_is() {
    let place = Place::new();
    let mut rig = with_toy(&place, "printf '%s' \"$1\" >told", Profile::Full).await;
    rig.send(spawn("toy:headless", "keep [redacted api key] as it is"));
    state(&mut rig, "main/a1", AgentState::Done).await;
    let told = place.read("told");
    assert!(
        told.starts_with("keep [redacted api key]") && told.contains("Never write such a mask"),
        "{told}"
    );
    rig.send(spawn("toy:headless", "nothing masked"));
    state(&mut rig, "main/a2", AgentState::Done).await;
    assert_eq!(place.read("told"), "nothing masked");
    rig.quit().await;
}
