//! A command that runs without a question, in a sandbox that blocks it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tiller_engine::{EngineConfig, SandboxFindings};
use tiller_protocol::ask::OutsideAnswer;
use tiller_protocol::command::{Query, TurnCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent, ToolEvent, TurnStatus};
use tiller_protocol::tool::Display;
use tiller_protocol::{
    AskReply, CommandBody, Decision, EventBody, Notice, NoticeKind, Profile, SandboxState,
};
use tiller_tool::Workspace;
use tiller_tool::shell::{BlockedAction, BlockedKind, CommandWatch, Confiner, Confiners, Deletion, Launch};

use crate::rig::*;
use crate::turns::questions::permission;

/// Gives what it confines a `cat` that fails as under a sandbox.
#[derive(Debug)]
struct Blocking(PathBuf);

impl Confiner for Blocking {
    fn confine(&self, mut launch: Launch, _workspace: &Path, _scratch: &Path) -> Launch {
        for (name, value) in &mut launch.env {
            if name == "PATH" {
                *value = format!("{}:{value}", self.0.display());
            }
        }
        launch
    }
}

fn blocking(place: &Place, profile: Profile) -> impl FnOnce(&mut EngineConfig) + use<> {
    let folder = place.tmp.path().join("blocked");
    std::fs::create_dir_all(&folder).unwrap();
    let cat = folder.join("cat");
    tiller_testkit::program(&cat, "#!/bin/sh\necho \"cat: $1: Permission denied\" >&2\nexit 1\n");
    let work = place.work.clone();
    move |parts| {
        parts.session.profile = Some(profile);
        let workspace = Workspace::new(&work).unwrap();
        let read: Arc<dyn Confiner> = Arc::new(Blocking(folder));
        parts.workspace = workspace.confine(Confiners { read: Some(read), ..Confiners::default() });
    }
}

/// The same in both profiles of the sandbox.
fn blocking_all(place: &Place, profile: Profile, rules: &str) -> impl FnOnce(&mut EngineConfig) + use<> {
    let narrow = blocking(place, profile);
    let work = place.work.clone();
    let folder = place.tmp.path().join("blocked");
    let rules = rules.to_owned();
    move |parts| {
        narrow(parts);
        let confiner =
            |folder: &Path| -> Option<Arc<dyn Confiner>> { Some(Arc::new(Blocking(folder.to_owned()))) };
        let confiners = Confiners { read: confiner(&folder), workspace: confiner(&folder), outside: None };
        parts.workspace = Workspace::new(&work).unwrap().confine(confiners);
        if !rules.is_empty() {
            let tools = tiller_tool::Registry::built_in().catalog();
            let loaded =
                tiller_permit::rules::rulefile::load(&rules, tiller_permit::Source::User, &tools).unwrap();
            assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
            parts.permit = permit_with(&work, loaded.rules);
        }
    }
}

fn permit_with(work: &Path, rules: Vec<tiller_permit::Rule>) -> tiller_engine::Permit {
    let tools = tiller_tool::Registry::built_in().catalog();
    let mut policy = tiller_permit::Policy::new(tiller_permit::Roots::new(work, None, Vec::new()), tools);
    policy.rules.add(rules, true);
    tiller_engine::Permit::new(policy, Arc::new(|_| Ok(())))
}

/// Not read-only, so that it runs in the workspace.
fn copy(id: &str) -> Vec<Step> {
    calls(&[(id, "terminal", json!({"command": "cat a.txt > b.txt; cat b.txt"}))])
}

/// Approved, it runs in the sandbox; blocked there, it runs outside by another answer only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_command_runs_in_the_sandbox_and_outside_after_a_second_answer() {
    let place = Place::new();
    place.file("a.txt", "the content\n");
    let fake = Fake::new([copy("c1"), says("Done.")]);
    let mut rig = place.start_with(&fake, blocking_all(&place, Profile::Ask, "")).await;
    rig.submit("copy");
    let ask = rig.asked().await;
    let p = permission(&ask);
    assert_eq!(p.outside, OutsideAnswer::Offered, "{p:?}");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash });
    let ask = rig.asked().await;
    let p = permission(&ask);
    assert_eq!((p.rule.text(), p.outside), ("blocked by the sandbox", OutsideAnswer::Only));
    rig.answer(&ask, AskReply::Permission { decision: Decision::Outside, hash: p.hash });
    let (_, output) = rig.tool_finished().await;
    assert_eq!(output.trim(), "the content");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    rig.quit().await;
    let rows = place.parts(&Fake::new([])).store.audit().list(None, "", 10).unwrap();
    let row = rows.iter().find(|row| row.tool == "terminal").unwrap();
    assert_eq!((row.decision.audit_word(), row.by.as_str()), ("ask:outside", "you"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_answer_can_be_to_run_it_outside() {
    let place = Place::new();
    place.file("a.txt", "the content\n");
    let fake = Fake::new([copy("c1"), says("Done.")]);
    let mut rig = place.start_with(&fake, blocking_all(&place, Profile::Ask, "")).await;
    rig.submit("copy");
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Permission { decision: Decision::Outside, hash: permission(&ask).hash });
    let (_, output) = rig.tool_finished().await;
    assert_eq!(output.trim(), "the content");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
}

/// No mode steps out of the sandbox by itself, and AUTO does not wait for a person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_mode_stays_in_the_sandbox_and_the_model_is_told() {
    for command in ["cat a.txt", "cat a.txt > b.txt; cat b.txt"] {
        let place = Place::new();
        place.file("a.txt", "the content\n");
        let fake = Fake::new([calls(&[("c1", "terminal", json!({ "command": command }))]), says("I see.")]);
        let mut rig = place.start_with(&fake, blocking_all(&place, Profile::Full, "")).await;
        rig.submit("copy");
        let (_, output) = rig.tool_finished().await;
        assert!(output.contains("Permission denied") && !output.contains("the content"), "{output}");
        assert!(output.contains("Only the user can let it run outside"), "{output}");
        assert_eq!(rig.finished().await.0, TurnStatus::Done);
        assert!(!rig.kinds().contains(&"permission_asked".into()), "{command}");
    }
}

/// The person's own rule leads out, and the audit says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outside_rule_of_the_person_leads_out_in_every_mode() {
    let place = Place::new();
    place.file("a.txt", "the content\n");
    let rules = "allow:\n  - terminal(tee *)\noutside:\n  - terminal(cat *)\n  - terminal(tee *)\n";
    let fake = Fake::new([
        calls(&[("c1", "terminal", json!({"command": "cat a.txt | tee b.txt"}))]),
        calls(&[("c2", "terminal", json!({"command": "cat a.txt | tee b.txt; make x"}))]),
        says("Done."),
    ]);
    let mut rig = place.start_with(&fake, blocking_all(&place, Profile::Full, rules)).await;
    rig.submit("copy");
    let (_, output) = rig.tool_finished().await;
    assert_eq!(output.trim(), "the content");
    let (_, output) = rig.tool_finished().await;
    assert!(!output.contains("the content"), "a part that no rule names keeps all of it inside: {output}");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    rig.quit().await;
    let rows = place.parts(&Fake::new([])).store.audit().list(None, "", 10).unwrap();
    let row = rows.iter().find(|row| row.what.contains("tee b.txt\"")).unwrap();
    assert!(row.by.contains("yours: outside terminal(cat *)"), "{row:?}");
}

/// The user's own line is not confined.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_of_the_users_runs_unconfined() {
    let place = Place::new();
    place.file("a.txt", "the content\n");
    let mut rig = place.start_with(&Fake::new([]), blocking_all(&place, Profile::Ask, "")).await;
    rig.send(CommandBody::Turn(TurnCommand::Shell { line: "cat a.txt".into(), share: false }));
    let output = rig
        .until("output", |e| match e {
            EventBody::Tool(ToolEvent::ShellLine { output, .. }) => Some(output.clone()),
            _ => None,
        })
        .await;
    assert_eq!(output.trim(), "the content");
}

/// Refuses something to what it confines, without a word in the output: when the command has made the file `ran` in this
/// folder. It makes the file `told` then.
#[derive(Debug)]
struct Watched(PathBuf);

impl Confiner for Watched {
    fn confine(&self, launch: Launch, _workspace: &Path, _scratch: &Path) -> Launch {
        launch
    }

    fn confine_watched(&self, launch: Launch, _: &Path, _: &Path, watch: &CommandWatch) -> Launch {
        watch.supervised();
        let (log, folder) = (watch.blocked.clone(), self.0.clone());
        // Ends with the test's folder.
        std::thread::spawn(move || {
            while !folder.join("ran").exists() {
                if !folder.exists() {
                    return;
                }
                std::thread::park_timeout(std::time::Duration::from_millis(5));
            }
            log.push(BlockedAction {
                kind: BlockedKind::Write,
                target: "/etc/hosts".into(),
                program: "sed".into(),
                minor: false,
            });
            std::fs::write(folder.join("told"), "").unwrap();
        });
        launch
    }
}

/// Confines the commands that write in the workspace at `work`.
fn confine(parts: &mut EngineConfig, work: &Path, confiner: impl Confiner + 'static) {
    let workspace: Arc<dyn Confiner> = Arc::new(confiner);
    let confiners = Confiners { workspace: Some(workspace), ..Confiners::default() };
    parts.workspace = Workspace::new(work).unwrap().confine(confiners);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_sandbox_refused_stands_in_the_question_the_result_and_the_audit() {
    let place = Place::new();
    let command = "touch ran; until [ -e told ]; do sleep 0.01; done; false";
    let fake = Fake::new([calls(&[("c1", "terminal", json!({ "command": command }))]), says("I see.")]);
    let work = place.work.clone();
    let start = move |parts: &mut EngineConfig| {
        parts.session.profile = Some(Profile::Ask);
        confine(parts, &work, Watched(work.clone()));
    };
    let mut rig = place.start_with(&fake, start).await;
    rig.submit("change it");
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: permission(&ask).hash });
    let ask = rig.asked().await;
    let p = permission(&ask);
    let refused = "the sandbox blocked writing /etc/hosts (sed)";
    assert!(p.effects.iter().any(|effect| effect == refused), "{p:?}");
    assert_eq!(p.outside, OutsideAnswer::Only);
    rig.answer(&ask, AskReply::Permission { decision: Decision::Deny { comment: None }, hash: p.hash });
    let (_, output) = rig.tool_finished().await;
    assert!(output.contains("[The sandbox blocked writing /etc/hosts (sed)]"), "{output}");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    let query = Query::Audit { filter: String::new(), limit: 10 };
    let ReplyEvent::AuditReply { rows } = rig.query(query).await else { panic!("no audit") };
    assert_eq!(rows[0].by, format!("you; {refused}"), "{rows:?}");
}

/// Without a supervisor the output is all there is, and the question says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_sandbox_seems_to_have_refused_is_named_by_the_capability() {
    let place = Place::new();
    let command = "echo 'curl: (6) Could not resolve host: x' >&2; false";
    let fake = Fake::new([calls(&[("c1", "terminal", json!({ "command": command }))]), says("I see.")]);
    let mut rig = place.start_with(&fake, blocking_all(&place, Profile::Ask, "")).await;
    rig.submit("load it");
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: permission(&ask).hash });
    let ask = rig.asked().await;
    let p = permission(&ask);
    assert!(p.effects.iter().any(|e| e == "its output shows that the network was refused"), "{p:?}");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Deny { comment: None }, hash: p.hash });
    let (_, output) = rig.tool_finished().await;
    assert!(output.contains("The sandbox may be why it failed"), "{output}");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
}

/// Asks whether files may be removed, when the command has made the file `ran` in this folder; the answer is the content of
/// the file `told` then.
#[derive(Debug)]
struct Removing(PathBuf);

impl Confiner for Removing {
    fn confine(&self, launch: Launch, _workspace: &Path, _scratch: &Path) -> Launch {
        launch
    }

    fn confine_watched(&self, launch: Launch, _: &Path, _: &Path, watch: &CommandWatch) -> Launch {
        let (watch, folder) = (watch.clone(), self.0.clone());
        // Ends with the test's folder.
        std::thread::spawn(move || {
            while !folder.join("ran").exists() {
                if !folder.exists() {
                    return;
                }
                std::thread::park_timeout(std::time::Duration::from_millis(5));
            }
            let (removed, next) = (vec!["src/a.rs".into(), "src/b.rs".into()], vec!["src/c.rs".into()]);
            let yes = watch.ask_deletion(Deletion { folder: folder.clone(), removed, next });
            std::fs::write(folder.join("new"), if yes { "go on" } else { "stop" }).unwrap();
            std::fs::rename(folder.join("new"), folder.join("told")).unwrap();
        });
        launch
    }
}

/// In AUTO too: the list is asked about while the command waits, and only a person's yes lets it go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_removal_of_many_files_is_asked_about_with_the_list() {
    for (decision, said, audit) in [
        (Decision::Once, "go on", "allowed"),
        (Decision::Deny { comment: None }, "stop", "stopped"),
        (Decision::Outside, "stop", "stopped"),
    ] {
        let place = Place::new();
        let command = "touch ran; until [ -e told ]; do sleep 0.01; done; cat told";
        let call = calls(&[("c1", "terminal", json!({ "command": command }))]);
        let fake = Fake::new([call, says("I see.")]);
        let work = place.work.clone();
        let start = move |parts: &mut EngineConfig| {
            parts.session.profile = Some(Profile::Full);
            confine(parts, &work, Removing(work.clone()));
        };
        let mut rig = place.start_with(&fake, start).await;
        rig.submit("clean up");
        let ask = rig.asked().await;
        let p = permission(&ask);
        assert_eq!(p.rule.text(), "many files are removed");
        assert_eq!(p.shown, "next: src/c.rs\nremoved: src/a.rs\nremoved: src/b.rs");
        assert_eq!((p.outside, p.editable, p.always.is_none()), (OutsideAnswer::No, false, true));
        assert_eq!(ask.call, None, "a restart must not run the command again");
        rig.answer(&ask, AskReply::Permission { decision, hash: p.hash });
        let (_, output) = rig.tool_finished().await;
        assert_eq!(output.trim(), said);
        assert_eq!(rig.finished().await.0, TurnStatus::Done);
        let query = Query::Audit { filter: String::new(), limit: 10 };
        let ReplyEvent::AuditReply { rows } = rig.query(query).await else { panic!("no audit") };
        let row = rows.iter().find(|row| row.tool == "terminal" && row.what.contains("touch ran")).unwrap();
        assert!(row.by.ends_with(&format!("; removal of 3 files and more {audit}")), "{row:?}");
    }
}

/// Says that it has refused a connection.
#[derive(Debug)]
struct Refusing;

impl Confiner for Refusing {
    fn confine(&self, launch: Launch, _workspace: &Path, _scratch: &Path) -> Launch {
        launch
    }

    fn refused(&self) -> Vec<String> {
        vec!["evil.example: it is not listed".into()]
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn model_and_person_are_told_of_a_refused_connection_in_one_line() {
    let place = Place::new();
    let fake =
        Fake::new([calls(&[("c1", "terminal", json!({"command": "echo sent; exit 7"}))]), says("I see.")]);
    let work = place.work.clone();
    let mut rig = place
        .start_with(&fake, move |parts| {
            parts.session.profile = Some(Profile::Full);
            parts.workspace = Workspace::new(&work)
                .unwrap()
                .confine(Confiners { workspace: Some(Arc::new(Refusing)), ..Confiners::default() });
        })
        .await;
    rig.submit("send");
    let shown = rig
        .until("the end of the call", |e| match e {
            EventBody::Tool(ToolEvent::ToolFinished { output, display, .. }) => {
                Some((output.clone(), display.clone()))
            }
            _ => None,
        })
        .await;
    let line = "[The sandbox refused connections to evil.example: it is not listed]";
    assert_eq!(shown.0.matches(line).count(), 1, "{}", shown.0);
    let Some(Display::Output { tail, .. }) = shown.1 else { panic!("no output") };
    assert_eq!(tail, format!("sent\n{line}"));
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
}

/// A machine that cannot confine commands, as the self-test reports it.
fn no_sandbox(profile: Profile) -> impl FnOnce(&mut EngineConfig) {
    move |parts| {
        parts.session.profile = Some(profile);
        parts.startup.sandbox = Some(Arc::new(|| {
            let lacks = vec!["the kernel has no Landlock".into()];
            let notices = vec![Notice::new(NoticeKind::Info, "src/rc is the same file as .bashrc.")];
            SandboxFindings { state: Some(SandboxState { lacks, ..SandboxState::default() }), notices }
        }));
    }
}

/// The test reads many files where the folder has them: the engine answers meanwhile, and what is found arrives later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_waits_for_the_test_of_the_sandbox() {
    let place = Place::new();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let ended = std::sync::Mutex::new(ended);
    let mut rig = place
        .start_with(&Fake::new([]), |parts| {
            parts.startup.sandbox = Some(Arc::new(move || {
                // Ends when the test lets it end.
                let _ = ended.lock().unwrap().recv();
                let notices = vec![Notice::new(NoticeKind::Info, "src/rc is the same file as .bashrc.")];
                SandboxFindings { state: None, notices }
            }));
        })
        .await;
    assert_eq!(rig.snapshot().await.sandbox, None, "the engine answers while the test runs");
    drop(end);
    rig.until("the notice", |e| match e {
        EventBody::State(StateEvent::Notice { notice }) if notice.message.contains("the same file") => {
            Some(())
        }
        _ => None,
    })
    .await;
    rig.quit().await;
}

/// X5: the state goes to every client, and AUTO says at its start what it means.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_without_a_sandbox_is_reported_at_the_start() {
    let place = Place::new();
    for (profile, told) in [(Profile::Full, true), (Profile::Ask, false)] {
        let mut rig = place.start_with(&Fake::new([]), no_sandbox(profile)).await;
        let notices = std::cell::RefCell::new(Vec::new());
        let state = rig
            .until("the state", |e| match e {
                EventBody::State(StateEvent::Notice { notice }) => {
                    notices.borrow_mut().push(notice.message.clone());
                    None
                }
                EventBody::State(StateEvent::SandboxTested { sandbox }) => Some(sandbox.clone()),
                _ => None,
            })
            .await;
        assert!(state.is_missing());
        let said = notices.borrow().iter().any(|m| m.contains("no sandbox"));
        assert_eq!(said, told, "{profile:?}: {notices:?}");
        assert!(notices.borrow().iter().any(|m| m.contains("the same file")), "{notices:?}");
        assert_eq!(rig.snapshot().await.sandbox, Some(state), "also for a client that connects later");
        rig.quit().await;
    }
}
