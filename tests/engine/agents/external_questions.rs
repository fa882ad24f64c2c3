//! Questions of external programs, and their answers: by our rules first, then by the user.

use tiller_protocol::command::SessionCommand;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    AgentCommand, AgentState, AskBody, AskReply, CommandBody, Decision, EventBody, Profile,
};

use crate::agents::delegation::{agent, state};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tiller_protocol::ask::{TrustItem, TrustKind};

use crate::agents::external::{ACP, TOUCH, TOUCH_ASKS, full_with_denied, spawn, toy, with_toy};
use crate::rig::*;

/// A program over the Agent Client Protocol asks, and the user answers in our dialog.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_programs_question_is_ours_and_our_rules_come_first() {
    let place = Place::new();
    let mut rig = with_toy(&place, ACP, Profile::Ask).await;
    rig.send(spawn("toy:acp", "run it"));
    let ask = rig.asked().await;
    assert_eq!(ask.agent, agent("main/a1"));
    let AskBody::Permission(p) = &ask.body else { panic!("{ask:?}") };
    assert!(p.shown.contains("touch asked"), "{p:?}");
    state(&mut rig, "main/a1", AgentState::Waiting).await;
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash.clone() });
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    let child = done.child.unwrap();
    assert_eq!(
        (child.result.as_str(), child.backend.to_string().as_str()),
        ("it said allow-once", "toy, acp")
    );
    rig.quit().await;
}

/// A program's changes cannot be undone when the states of the files are not kept: they are asked about in `full`,
/// too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_program_that_cannot_be_undone_is_asked_about_in_full_too() {
    let place = Place::new();
    let update = |status: &str| {
        format!(
            r#"echo '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s1","update":{{"sessionUpdate":"{status}","toolCallId":"t0","title":"make","kind":"execute","status":"{}","rawInput":{{"command":"make"}}}}}}}}'"#,
            if status == "tool_call" { "in_progress" } else { "completed" }
        )
    };
    let wait = "while [ ! -e go ]; do sleep 0.01; done";
    let calls = [&update("tool_call"), &update("tool_call_update"), wait, TOUCH_ASKS].join("\n      ");
    let toy = toy(&place, &ACP.replace(TOUCH_ASKS, &calls));
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.crew.programs = Some(toy);
        p.session.profile = Some(Profile::Full);
        crate::files::unprotected_calls::cannot_keep(&place, p, true);
    };
    let mut rig = place.start_with(&Fake::new([]), change).await;
    rig.send(spawn("toy:acp", "run it"));
    let notice = |e: &tiller_protocol::Event| match &e.body {
        EventBody::State(StateEvent::Notice { notice }) => {
            notice.message.contains("cannot be undone").then_some(())
        }
        _ => None,
    };
    rig.until_of("the notice", notice).await;
    place.file("go", "");
    let ask = rig.asked().await;
    let AskBody::Permission(p) = &ask.body else { panic!("{ask:?}") };
    assert!(p.effects.iter().any(|e| e.contains("cannot be undone")) && p.always.is_none(), "{p:?}");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash.clone() });
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "it said allow-once");
    rig.quit().await;
}

/// The call of a program is approved once where the rule of the answer cannot be written, and the user is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_for_a_program_that_cannot_be_saved_is_reported() {
    use tiller_permit::{Policy, Roots};
    let place = Place::new();
    let toy = toy(&place, ACP);
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.crew.programs = Some(toy);
        p.session.profile = Some(Profile::Ask);
        let roots = Roots::new(&place.work, Some(place.home()), vec![place.home()]);
        let policy = Policy::new(roots, tiller_tool::Registry::built_in().catalog());
        let write = |_: &str| -> Result<(), String> { Err("the disk is full".to_owned()) };
        p.permit = tiller_engine::Permit::new(policy, Arc::new(write));
    };
    let mut rig = place.start_with(&Fake::new([]), change).await;
    rig.send(spawn("toy:acp", "run it"));
    let ask = rig.asked().await;
    let AskBody::Permission(p) = &ask.body else { panic!("{ask:?}") };
    let decision = Decision::Always { pattern: "terminal(touch asked)".into() };
    rig.answer(&ask, AskReply::Permission { decision, hash: p.hash.clone() });
    let notice = |e: &tiller_protocol::Event| match &e.body {
        EventBody::State(StateEvent::Notice { notice }) => {
            notice.message.contains("the rule could not be saved: the disk is full").then_some(())
        }
        _ => None,
    };
    rig.until_of("the notice", notice).await;
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "it said allow-once");
    rig.quit().await;
}

/// X18: even where everything is allowed, rules that deny answer a program's question.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x18_in_full_deny_rules_still_hold_for_what_a_program_asks() {
    for (command, answer) in [("touch asked", "it said allow-once"), ("touch denied", "it said refused")] {
        let place = Place::new();
        let toy = toy(&place, &ACP.replace("touch asked", command));
        let mut rig = full_with_denied(&place, toy, "terminal(touch denied)").await;
        rig.send(spawn("toy:acp", "run it"));
        let done = state(&mut rig, "main/a1", AgentState::Done).await;
        assert_eq!(done.child.unwrap().result, answer, "{command}");
        rig.quit().await;
    }
}

/// Rules are read again before each call, of a program's too; an answer for the session is kept over a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_that_changed_hold_for_a_programs_next_call_and_those_of_the_session_stay() {
    use tiller_permit::{Effect, Rule, Source};
    for (changed, said) in [(false, "it said allow-once"), (true, "it said refused")] {
        let place = Place::new();
        let toy = toy(&place, ACP);
        let deny = Rule::parse(
            Effect::Deny,
            Source::User,
            "terminal(touch asked)",
            &tiller_tool::Registry::built_in().catalog(),
        )
        .unwrap();
        let change = |p: &mut tiller_engine::EngineConfig| {
            p.crew.programs = Some(toy);
            p.session.profile = Some(Profile::Ask);
            // The file changes once the session has begun.
            let reader = move || changed.then(|| (Some(vec![deny.clone()]), Vec::new()));
            p.permit = p.permit.clone().live(Arc::new(reader));
        };
        let mut rig = place.start_with(&Fake::new([]), change).await;
        rig.send(spawn("toy:acp", "run it"));
        if !changed {
            let ask = rig.asked().await;
            let AskBody::Permission(p) = &ask.body else { panic!("{ask:?}") };
            let decision = Decision::Session { pattern: "terminal(touch asked)".into() };
            rig.answer(&ask, AskReply::Permission { decision, hash: p.hash.clone() });
        }
        let done = state(&mut rig, "main/a1", AgentState::Done).await;
        assert_eq!(done.child.unwrap().result, said);
        let session = rig.session();
        rig.quit().await;
        let store = tiller_store::Store::open(&place.db(), tiller_store::Options::default()).unwrap();
        let kept = store.rules().list(session).unwrap();
        let wanted: &[&str] = if changed { &[] } else { &["terminal(touch asked)"] };
        assert_eq!(kept, wanted);
        let rows = store.audit().list(None, "", 10).unwrap();
        let by: Vec<&str> = rows.iter().map(|row| row.by.as_str()).collect();
        assert_eq!(by, if changed { ["yours: deny terminal(touch asked)"] } else { ["you"] });
    }
}

/// A mode that the user chooses while a hook still looks at the call holds for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mode_that_changes_while_a_call_is_decided_holds_for_it() {
    let place = Place::new();
    let toy = toy(&place, ACP);
    let wait = format!("while [ ! -e {}/go ]; do sleep 0.02; done", place.work.display());
    let slow = crate::hooks::hooks(&place, |h| {
        h.before_tool_call.push(crate::hooks::hook_for("terminal(touch *)", &wait));
    });
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.crew.programs = Some(toy);
        p.session.profile = Some(Profile::Full);
        p.hooks = slow;
    };
    let mut rig = place.start_with(&Fake::new([]), change).await;
    rig.send(spawn("toy:acp", "run it"));
    state(&mut rig, "main/a1", AgentState::Running).await;
    rig.send(CommandBody::Session(SessionCommand::SetProfile { profile: Profile::Ask }));
    rig.until("the mode", |e| match e {
        EventBody::State(StateEvent::ProfileChanged { .. }) => Some(()),
        _ => None,
    })
    .await;
    place.file("go", "");
    let ask = rig.asked().await;
    let AskBody::Permission(p) = &ask.body else { panic!("{ask:?}") };
    assert!(p.shown.contains("touch asked"), "{p:?}");
    rig.answer(&ask, AskReply::Declined);
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "it said refused");
    rig.quit().await;
}

/// A tool's name does not make it read-only, and a description is no path.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_whose_name_only_sounds_harmless_is_asked_about() {
    let place = Place::new();
    let about = r#""title":"mcp__mail__notification","rawInput":{"description":"send it"}"#;
    let mut rig = with_toy(&place, &ACP.replace(TOUCH, about), Profile::AutoEdit).await;
    rig.send(spawn("toy:acp", "run it"));
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Declined);
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "it said refused");
    rig.quit().await;
}

/// No question stays open for a program that has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_question_of_a_program_that_dies_goes_with_it() {
    let place = Place::new();
    let dies = format!("{TOUCH_ASKS}\n while [ ! -e go ]; do sleep 0.05; done; exit 3;;");
    let script = ACP.replace(&format!("{TOUCH_ASKS};;"), &dies);
    let mut rig = with_toy(&place, &script, Profile::Ask).await;
    rig.send(spawn("toy:acp", "run it"));
    rig.asked().await;
    place.file("go", "");
    state(&mut rig, "main/a1", AgentState::Failed).await;
    let end = std::time::Instant::now() + DEADLINE;
    loop {
        let view = rig.snapshot().await;
        if view.asks.is_empty() {
            break;
        }
        assert!(std::time::Instant::now() < end, "{:#?}", view.asks);
    }
    rig.quit().await;
}

/// A program that was started without questions ends when the user wants to be asked, and asks when it continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_never_has_more_than_the_person_allows_now() {
    let place = Place::new();
    let waits = format!("[ -e begun ] || {{ : >begun; sleep 987656; }}\n      {TOUCH_ASKS};;");
    let script = ACP.replace(&format!("{TOUCH_ASKS};;"), &waits);
    let resume = r#"*'"method":"session/load"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}';;
    *'"method":"session/new"'*)"#;
    let script = script.replace(r#"*'"method":"session/new"'*)"#, resume);
    let script = script.replace(r#""agentCapabilities":{}"#, r#""agentCapabilities":{"loadSession":true}"#);
    let mut rig = with_toy(&place, &script, Profile::Full).await;
    rig.send(spawn("toy:acp", "run it"));
    let begun = place.work.join("begun");
    let end = std::time::Instant::now() + DEADLINE;
    while !begun.exists() {
        assert!(std::time::Instant::now() < end, "it did not begin");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let profile = |profile| CommandBody::Session(SessionCommand::SetProfile { profile });
    rig.send(profile(Profile::ReadOnly));
    let ended = state(&mut rig, "main/a1", AgentState::Interrupted).await;
    let said = ended.child.unwrap().result;
    assert!(said.contains("started without approval prompts"), "{said}");
    rig.send(CommandBody::Agent(AgentCommand::Resume { id: agent("main/a1") }));
    let refused = state(&mut rig, "main/a1", AgentState::Failed).await;
    let said = refused.child.unwrap().result;
    assert!(said.contains("may run commands, and the mode is read-only"), "{said}");
    rig.send(profile(Profile::Ask));
    rig.send(CommandBody::Agent(AgentCommand::Resume { id: agent("main/a1") }));
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Declined);
    state(&mut rig, "main/a1", AgentState::Done).await;
    rig.quit().await;
}

/// A toy that touches `started`, and whether its folder's `.toy/settings.json` is trusted.
fn distrusted(place: &Place) -> (tiller_engine::crew::Programs, Arc<AtomicBool>) {
    let trusted = Arc::new(AtomicBool::new(false));
    let mut toy = toy(place, "touch started; echo done");
    let yes = Arc::clone(&trusted);
    let never = Arc::new(AtomicBool::new(false));
    toy.trust = Arc::new(move |folder, adapter, _| {
        assert_eq!(adapter.name, "toy");
        let (yes, never) = (Arc::clone(&yes), Arc::clone(&never));
        let item = TrustItem {
            kind: TrustKind::ProgramSettings,
            change: None,
            path: ".toy/settings.json".into(),
            detail: String::new(),
            hash: "0".into(),
        };
        (!yes.load(Ordering::SeqCst)).then(|| tiller_engine::TrustOffer {
            folder: folder.display().to_string(),
            items: vec![item],
            changed: false,
            never: never.load(Ordering::SeqCst),
            decide: Arc::new(move |answer| {
                yes.store(answer, Ordering::SeqCst);
                never.store(!answer, Ordering::SeqCst);
                Ok(tiller_engine::TrustGrant::default())
            }),
        })
    });
    (toy, trusted)
}

/// Where no user can answer it does not start, and the reason says what to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_person_a_program_that_is_not_trusted_fails_with_what_to_do() {
    let place = Place::new();
    let (toy, _) = distrusted(&place);
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.crew.programs = Some(toy);
        p.session.profile = Some(Profile::Full);
        p.user.human = tiller_engine::Human::Absent;
    };
    let mut rig = place.start_with(&Fake::new([]), change).await;
    rig.send(spawn("toy:headless", "do it"));
    let failed = state(&mut rig, "main/a1", AgentState::Failed).await;
    let said = failed.child.unwrap().result;
    assert!(said.contains("Toy was not started") && said.contains(".toy/settings.json"), "{said}");
    assert!(!place.work.join("started").exists());
    rig.quit().await;
}

/// X4, X18: a folder's own files can make the program run commands. It is not started before they are approved,
/// whatever starts it; after the approval it is continued.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_does_not_start_before_the_files_that_steer_it_are_trusted() {
    let place = Place::new();
    let (toy, trusted) = distrusted(&place);
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.crew.programs = Some(toy);
        p.session.profile = Some(Profile::Full);
    };
    let mut rig = place.start_with(&Fake::new([]), change).await;
    rig.send(spawn("toy:headless", "do it"));
    let ask = rig.asked().await;
    let AskBody::Trust { brings, .. } = &ask.body else { panic!("{ask:?}") };
    assert_eq!(brings[0].path, ".toy/settings.json");
    assert!(!place.work.join("started").exists());
    rig.answer(&ask, AskReply::Declined);
    let failed = state(&mut rig, "main/a1", AgentState::Failed).await;
    let said = failed.child.unwrap().result;
    assert!(said.contains("Toy was not started") && said.contains(".toy/settings.json"), "{said}");
    // To continue it takes the yes as well.
    rig.send(CommandBody::Agent(AgentCommand::Resume { id: agent("main/a1") }));
    let ask = rig.asked().await;
    assert!(!place.work.join("started").exists());
    rig.answer(&ask, AskReply::Yes { value: None });
    state(&mut rig, "main/a1", AgentState::Done).await;
    assert!(place.work.join("started").exists() && trusted.load(Ordering::SeqCst));
    rig.quit().await;
}

/// X18: after "never" the program does not start and nothing is asked again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x18_never_is_asked_once_and_says_how_to_change_it() {
    let place = Place::new();
    let (toy, _) = distrusted(&place);
    let mut rig = place.start_with(&Fake::new([]), |p| p.crew.programs = Some(toy)).await;
    rig.send(spawn("toy:headless", "do it"));
    let ask = rig.asked().await;
    rig.answer(&ask, AskReply::Never);
    state(&mut rig, "main/a1", AgentState::Failed).await;
    rig.send(spawn("toy:headless", "do it"));
    let failed = state(&mut rig, "main/a2", AgentState::Failed).await;
    let said = failed.child.unwrap().result;
    assert!(said.contains("you chose never") && said.contains("tiller trust"), "{said}");
    assert!(!place.work.join("started").exists());
    rig.quit().await;
}

/// X17: a program that cannot enforce the user's rules about reading is not started before the user agrees.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x17_a_program_that_cannot_be_given_a_rule_is_asked_about() {
    let place = Place::new();
    let mut toy = toy(&place, "touch started; echo done");
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let rules = Arc::clone(&seen);
    toy.trust = Arc::new(move |_, _, open| {
        open.clone_into(&mut rules.lock().unwrap());
        None
    });
    let mut rig = full_with_denied(&place, toy, "read_file(.env)").await;
    rig.send(spawn("toy:headless", "do it"));
    state(&mut rig, "main/a1", AgentState::Done).await;
    let seen = seen.lock().unwrap().clone();
    assert!(seen.len() == 1 && seen[0].ends_with("deny read_file(.env)"), "{seen:?}");
    rig.quit().await;
}

/// Only a limited number of states is kept at once: a call beyond that is not passed silently.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_program_whose_state_is_not_kept_is_told() {
    let place = Place::new();
    let open = |n: usize| {
        format!(
            r#"echo '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s1","update":{{"sessionUpdate":"tool_call","toolCallId":"o{n}","title":"make","kind":"execute","status":"in_progress","rawInput":{{"command":"make"}}}}}}}}'"#
        )
    };
    let calls: Vec<String> = (0..9).map(open).chain([TOUCH_ASKS.to_owned()]).collect();
    let toy = toy(&place, &ACP.replace(TOUCH_ASKS, &calls.join("\n      ")));
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.crew.programs = Some(toy);
        p.session.profile = Some(Profile::Ask);
        crate::files::checkpoints::keeps(&place, p);
    };
    let mut rig = place.start_with(&Fake::new([]), change).await;
    rig.send(spawn("toy:acp", "run it"));
    let notice = |e: &tiller_protocol::Event| match &e.body {
        EventBody::State(StateEvent::Notice { notice }) => Some(notice.message.clone()),
        _ => None,
    };
    let told = rig.until_of("the notice", notice).await;
    assert!(told.contains("cannot be undone") && told.contains("too many changes are waiting"), "{told}");
    rig.quit().await;
}
