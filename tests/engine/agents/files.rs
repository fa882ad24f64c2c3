//! Changes of files by agents, and restoring them: they worked for the session, so the changes are its own.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tiller_protocol::ask::Decision;
use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::{AskEvent, ReplyEvent, TurnStatus};
use tiller_protocol::{AskBody, AskReply, EntryBody, EntryId, EventBody, Profile, RestoreWhat};
use tiller_provider::ChatMessage;

use crate::agents::delegation::{delegate, first, result};
use crate::files::checkpoints::{back, keeps, kept, messages, session_command};
use crate::rig::*;

/// Two agents, one after the other: one writes with the tool for it, the other by a command.
fn writers() -> std::sync::Arc<Fake> {
    Fake::with(|_, r| match first(r).as_str() {
        "go" if result(r).is_none() => {
            delegate(json!([{"id": "a", "goal": "by tool"}, {"goal": "by shell", "depends_on": ["a"]}]))
        }
        "go" => says("Both are done."),
        task if task.starts_with("by tool") && result(r).is_none() => {
            calls(&[("c1", "write_file", json!({"path": "tool.txt", "content": "tool\n"}))])
        }
        task if task.starts_with("by shell") && result(r).is_none() => {
            calls(&[("c1", "terminal", json!({"command": "printf 'shell\\n' > shell.txt"}))])
        }
        _ => says("Done."),
    })
}

/// Path, and whether another program changed it since.
async fn shown(rig: &mut Rig, entry: EntryId) -> Vec<(String, bool)> {
    match rig.query(Query::RestorePreview { entry }).await {
        ReplyEvent::RestorePreviewReply { preview, .. } => {
            preview.files.into_iter().map(|f| (f.path, f.conflict.is_some())).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_agents_wrote_goes_back_with_the_rest_and_comes_again() {
    let place = Place::new();
    place.file("mine.txt", "mine\n");
    let mut rig = place.start_with(&writers(), |p| keeps(&place, p)).await;
    let (status, _) = rig.turn("go").await;
    assert_eq!(status, TurnStatus::Done);
    assert_eq!((place.read("tool.txt").as_str(), place.read("shell.txt").as_str()), ("tool\n", "shell\n"));
    let start = messages(&mut rig).await[0];
    let end = rig.snapshot().await.entries.last().unwrap().id;
    let both = [("shell.txt".to_owned(), false), ("tool.txt".to_owned(), false)];
    assert_eq!(shown(&mut rig, start).await, both, "nobody else's");
    let told = session_command(&mut rig, back(start, RestoreWhat::Files)).await;
    assert!(told.starts_with("2 files were restored; you may have changed "), "{told}");
    assert!(!place.work.join("tool.txt").exists() && !place.work.join("shell.txt").exists());
    // The state at the end of the turn includes their changes.
    assert_eq!(shown(&mut rig, end).await, both);
    session_command(&mut rig, back(end, RestoreWhat::Files)).await;
    assert_eq!((place.read("tool.txt").as_str(), place.read("shell.txt").as_str()), ("tool\n", "shell\n"));
    session_command(&mut rig, SessionCommand::UndoRestore { redo: false }).await;
    assert!(!place.work.join("tool.txt").exists());
    assert_eq!(place.read("mine.txt"), "mine\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_person_changed_in_an_agent_s_file_stays() {
    let place = Place::new();
    let mut rig = place.start_with(&writers(), |p| keeps(&place, p)).await;
    rig.turn("go").await;
    kept(&mut rig).await;
    place.file("tool.txt", "mine\n");
    place.file("new.txt", "mine too\n");
    let start = messages(&mut rig).await[0];
    let files = shown(&mut rig, start).await;
    let wanted = [("new.txt", true), ("shell.txt", false), ("tool.txt", true)];
    assert_eq!(files, wanted.map(|(path, conflict)| (path.to_owned(), conflict)));
    session_command(&mut rig, back(start, RestoreWhat::Files)).await;
    assert_eq!((place.read("tool.txt").as_str(), place.read("new.txt").as_str()), ("mine\n", "mine too\n"));
    assert!(!place.work.join("shell.txt").exists());
}

/// A branch on which agents wrote is compared with their changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_branch_holds_what_its_agents_wrote() {
    let place = Place::new();
    let mut rig = place.start_with(&writers(), |p| keeps(&place, p)).await;
    rig.turn("go").await;
    let entries = rig.snapshot().await.entries;
    let call = entries.iter().find(|e| matches!(e.body, EntryBody::Assistant { .. })).unwrap();
    let (store, session) = (place.parts(&Fake::new([])).store, call.session);
    let files = |entry: EntryId| {
        let point = tiller_engine::files::restore::back::point(&store, session, entry).unwrap().unwrap();
        (point.snapshot, point.steps.len())
    };
    // The changes of a call are recorded a moment after its end.
    let limit = std::time::Instant::now() + DEADLINE;
    while files(call.id).1 < 2 && std::time::Instant::now() < limit {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let (before, after) = (files(call.id), files(entries.last().unwrap().id));
    assert_ne!(before.0, after.0);
    assert_eq!((before.1, after.1), (2, 0), "two steps lead from there to here");
}

/// A command of one agent begins during the other's and ends after it; a third agent writes by tool meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_agents_write_at_the_same_moment_is_nobody_elses() {
    let place = Place::new();
    let signs = place.tmp.path().join("signs");
    std::fs::create_dir(&signs).unwrap();
    let at = signs.clone();
    let gates = ["begun", "inside"].map(|sign| (at.join(sign), Arc::new(Gate::new())));
    let [inside, tool] = [0, 1].map(|n| Arc::clone(&gates[n].1));
    for (sign, gate) in gates {
        tokio::spawn(async move {
            while !sign.exists() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            gate.pass_one();
        });
    }
    let fake = Fake::with(move |_, r| {
        let after = |gate: &Arc<Gate>, then: Vec<Step>| {
            std::iter::once(Step::Gate(Arc::clone(gate))).chain(then).collect::<Vec<_>>()
        };
        let (until, path) = ("while [ ! -e", at.display());
        let shell = |line: String| calls(&[("c1", "terminal", json!({"command": line}))]);
        match (first(r).as_str(), result(r)) {
            ("go", None) => delegate(json!([{"goal": "outer"}, {"goal": "inner"}, {"goal": "tool"}])),
            ("outer", None) => shell(format!(
                "printf 1 > a.txt; : > '{path}/begun'; {until} '{path}/wrote' ]; do sleep 0.01; done; printf 2 > a.txt"
            )),
            ("outer", Some(_)) => {
                std::fs::write(at.join("ended"), "").unwrap();
                says("Done.")
            }
            ("inner", None) => {
                let line = format!(
                    "printf 1 > b.txt; : > '{path}/inside'; {until} '{path}/ended' ]; do sleep 0.01; done; printf 2 > b.txt"
                );
                after(&inside, shell(line))
            }
            ("tool", None) => {
                let write = ("c1", "write_file", json!({"path": "tool.txt", "content": "tool\n"}));
                after(&tool, calls(&[write]))
            }
            ("tool", Some(_)) => {
                std::fs::write(at.join("wrote"), "").unwrap();
                says("Done.")
            }
            _ => says("Done."),
        }
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
    assert_eq!((place.read("a.txt").as_str(), place.read("b.txt").as_str()), ("2", "2"));
    // A file belongs to the agent that wrote it by tool.
    let view = rig.snapshot().await;
    let files: Vec<u32> = view.agents.iter().skip(1).map(|a| a.child.as_ref().unwrap().files).collect();
    assert_eq!(files[2], 1, "the tool's file: {files:?}");
    let store = place.parts(&Fake::new([])).store;
    for agent in store.agents().list(rig.session()).unwrap() {
        let rows = store.steps().list(agent.session, 0).unwrap();
        let own = rows.iter().filter(|r| matches!(r.of, tiller_store::StepOf::Call(_)));
        let named: Vec<&str> = own.flat_map(|r| &r.files).map(|f| f.path.as_str()).collect();
        let tools = agent.id.name() == "a3";
        assert_eq!(named.contains(&"tool.txt"), tools, "{}: {named:?}", agent.id);
        assert!(!tools || named == ["tool.txt"], "{named:?}");
    }
    drop(store);
    let start = messages(&mut rig).await[0];
    let wanted = ["a.txt", "b.txt", "tool.txt"].map(|path| (path.to_owned(), false));
    assert_eq!(shown(&mut rig, start).await, wanted, "nobody else's");
    session_command(&mut rig, back(start, RestoreWhat::Files)).await;
    assert!(["a.txt", "b.txt", "tool.txt"].iter().all(|f| !place.work.join(f).exists()));
    rig.quit().await;
}

/// An agent with a folder of its own writes in the folder of the session, and outside of both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_with_a_folder_of_its_own_writes_elsewhere_is_kept() {
    let place = Place::new();
    place.file(".gitignore", ".env\n");
    place.file(".env", "theirs\n");
    let notes = place.tmp.path().canonicalize().unwrap().join("notes.txt");
    std::fs::write(&notes, "also theirs\n").unwrap();
    let env = place.work.canonicalize().unwrap().join(".env");
    let (a, b) = (env.display().to_string(), notes.display().to_string());
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([{"goal": "apart", "isolated": true}])),
        "go" => says("Done."),
        _ => match r.messages.iter().filter(|m| matches!(m, ChatMessage::Assistant { .. })).count() {
            0 => calls(&[
                ("r1", "read_file", json!({"path": a})),
                ("r2", "read_file", json!({"path": b})),
                ("w0", "write_file", json!({"path": "own.txt", "content": "own\n"})),
            ]),
            1 => calls(&[
                ("w1", "write_file", json!({"path": a, "content": "the agent's\n"})),
                ("w2", "write_file", json!({"path": b, "content": "the agent's\n"})),
            ]),
            _ => says("Written."),
        },
    });
    // Outside its folder it would ask.
    let tools = tiller_tool::Registry::built_in().catalog();
    let rule = format!("write_file({}/**)", place.tmp.path().canonicalize().unwrap().display());
    let source = tiller_permit::Source::User;
    let rule = tiller_permit::Rule::parse(tiller_permit::Effect::Allow, source, &rule, &tools).unwrap();
    let mut policy =
        tiller_permit::Policy::new(tiller_permit::Roots::new(&place.work, None, Vec::new()), tools);
    policy.rules.push(rule);
    let elsewhere = tiller_engine::Permit::new(policy, Arc::new(|_| Ok(())));
    let mut rig = place
        .start_with(&fake, |p| {
            keeps(&place, p);
            p.session.profile = Some(tiller_protocol::Profile::Full);
            p.permit = elsewhere;
            p.crew.folders = Some(Arc::new(|_, folder| {
                std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
                Ok(folder.to_owned())
            }));
        })
        .await;
    assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
    let now = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    assert_eq!((now(&env).as_str(), now(&notes).as_str()), ("the agent's\n", "the agent's\n"));
    let kept = place.home().join("data/snapshots/work/outside");
    let mut copies: Vec<String> = Vec::new();
    for call in std::fs::read_dir(kept).unwrap() {
        for name in [".env", "notes.txt"] {
            copies.extend(std::fs::read_to_string(call.as_ref().unwrap().path().join("0").join(name)));
        }
    }
    copies.sort();
    assert_eq!(copies, ["also theirs\n", "theirs\n"], "and none of its own folder");
    rig.quit().await;
}

/// Whatever the mode, AGENTS.md is not written for `/init` before the user has seen the difference: not by an agent that the
/// task was handed to either, with a tool for files or with a command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_init_delegates_to_asks_before_it_writes_agents_md() {
    const INIT: &str = include_str!("../../../assets/prompts/init.md");
    let writes = |task: &str| match task {
        "by tool" => ("write_file", json!({"path": "AGENTS.md", "content": "tool\n"})),
        _ => ("terminal", json!({"command": "printf 'shell\\n' > AGENTS.md"})),
    };
    for (task, yes) in [("by tool", false), ("by shell", false), ("by tool", true)] {
        let place = Place::new();
        let fake = Fake::with(move |_, r| match (first(r), result(r)) {
            (init, None) if init.starts_with(INIT.trim()) => delegate(json!([{"goal": task}])),
            (init, Some(_)) if init.starts_with(INIT.trim()) => says("Done."),
            (_, None) => {
                let (tool, args) = writes(task);
                calls(&[("c1", tool, args)])
            }
            _ => says("Tried."),
        });
        let mut rig = place.start_with(&fake, |p| p.session.profile = Some(Profile::Full)).await;
        rig.submit(INIT);
        let ask = rig
            .until_of("a question of the agent", |e| match &e.body {
                EventBody::Ask(AskEvent::PermissionAsked { ask }) => Some(ask.clone()),
                _ => None,
            })
            .await;
        assert!(!place.work.join("AGENTS.md").exists(), "{task}");
        let AskBody::Permission(asked) = &ask.body else { panic!("{ask:?}") };
        let decision = if yes { Decision::Once } else { Decision::Deny { comment: None } };
        rig.answer(&ask, AskReply::Permission { decision, hash: asked.hash.clone() });
        rig.finished().await;
        assert_eq!(place.work.join("AGENTS.md").exists(), yes, "{task}");
        rig.quit().await;
    }
}
