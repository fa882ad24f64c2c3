//! Hooks before and after calls of tools.

use serde_json::json;
use tiller_config::schema;
use tiller_permit::{Effect, Rule, Source};
use tiller_protocol::event::{StateEvent, ToolEvent, TurnStatus};
use tiller_protocol::{
    AskReply, Decision, EventBody, HookOutcome, NoticeKind, PermissionOutcome, Profile, ToolOutcome,
};

use crate::hooks::{audit, hook, hook_for, hooks};
use crate::rig::*;
use crate::turns::questions::permission;

fn write(id: &str, path: &str) -> Vec<Step> {
    calls(&[(id, "write_file", json!({"path": path, "content": "x"}))])
}

/// The outcome and output of the next result.
async fn result(rig: &mut Rig) -> (ToolOutcome, String) {
    rig.until("a result", |e| match e {
        EventBody::Tool(ToolEvent::ToolFinished { outcome, output, .. }) => Some((*outcome, output.clone())),
        _ => None,
    })
    .await
}

/// The model, the user and the audit are told which hook denied, and why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denial_names_the_hook_and_the_reason() {
    let place = Place::new();
    let fake = Fake::new([write("w1", "a.txt"), write("w2", "b.txt"), says("Done.")]);
    let hooks = hooks(&place, |h| {
        let guard = hook_for("write_file(a.txt)", "echo 'not on Friday' >&2; exit 2");
        h.before_tool_call.push(schema::Hook { name: Some("friday".into()), ..guard });
    });
    let rows = hooks.clone();
    let mut rig = place.start_with(&fake, |p| p.hooks = hooks).await;
    rig.submit("go");
    let (outcome, text) = result(&mut rig).await;
    assert_eq!(outcome, ToolOutcome::Denied);
    assert_eq!(text, "Denied by the hook `friday`: not on Friday.");
    assert_eq!(result(&mut rig).await.0, ToolOutcome::Ok);
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert!(!place.work.join("a.txt").exists() && place.work.join("b.txt").exists());
    let row = rows.rows().remove(0);
    let last = row.last.unwrap();
    assert_eq!((row.runs, last.outcome, last.why.as_str()), (1, HookOutcome::Denied, "not on Friday"));
    rig.quit().await;
    let denied = audit(&place).into_iter().find(|row| row.what.contains("a.txt")).unwrap();
    assert_eq!(
        (denied.decision, denied.by.as_str()),
        (PermissionOutcome::Denied, "hook friday: not on Friday")
    );
}

/// The input has the documented form, and a hook may replace arguments: the rules judge what it made of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_arguments_are_judged_by_the_rules() {
    let place = Place::new();
    let fake = Fake::new([write("w1", "a.txt"), write("w2", "b.txt"), says("Done.")]);
    // The first call becomes a permitted one, the second one that a rule denies.
    let script = r#"input=$(cat); printf '%s' "$input" >input.json
        case $input in
            *a.txt*) echo '{"arguments":{"path":"c.txt","content":"by the hook"}}';;
            *b.txt*) echo '{"arguments":{"path":"secret.txt","content":"by the hook"}}';;
        esac"#;
    let hooks = hooks(&place, |h| h.before_tool_call.push(hook_for("write_file", script)));
    let rule = Rule::written(Effect::Deny, Source::User, "edit_file(secret.txt)", &place.tools.catalog());
    let rule = rule.unwrap();
    let mut rig = place
        .start_with(&fake, |p| {
            p.hooks = hooks;
            let live = move || Some((Some(vec![rule.clone()]), Vec::new()));
            p.permit = p.permit.clone().live(std::sync::Arc::new(live));
        })
        .await;
    rig.submit("go");
    let (outcome, text) = result(&mut rig).await;
    assert_eq!(outcome, ToolOutcome::Ok, "{text}");
    assert!(
        text.starts_with("[The hook ") && text.contains("changed the arguments to: {\"path\":\"c.txt\""),
        "{text}"
    );
    assert_eq!(place.read("c.txt"), "by the hook");
    let (outcome, text) = result(&mut rig).await;
    assert_eq!(outcome, ToolOutcome::Denied, "{text}");
    assert!(text.contains("denied by the rule"), "{text}");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    for name in ["a.txt", "b.txt", "secret.txt"] {
        assert!(!place.work.join(name).exists(), "{name}");
    }
    let input: serde_json::Value = serde_json::from_str(&place.read("input.json")).unwrap();
    assert_eq!(
        (&input["version"], &input["event"], &input["agent"]),
        (&json!(1), &json!("before-tool-call"), &json!("main"))
    );
    assert_eq!(input["folder"], json!(place.work.display().to_string()));
    assert_eq!(input["session"], json!(rig.session().to_string()));
    assert_eq!((&input["call"]["id"], &input["call"]["tool"]), (&json!("w2"), &json!("write_file")));
    rig.quit().await;
}

/// A hook sees what the user made of a command, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_the_user_changed_passes_the_hooks_again() {
    let place = Place::new();
    let fake = Fake::new([calls(&[("t1", "terminal", json!({"command": "touch a"}))]), says("Done.")]);
    let hooks = hooks(&place, |h| h.before_tool_call.push(hook_for("terminal(touch b*)", "exit 2")));
    let mut rig = place
        .start_with(&fake, |p| {
            p.hooks = hooks;
            p.session.profile = Some(Profile::Ask);
        })
        .await;
    rig.submit("go");
    let ask = rig.asked().await;
    let hash = permission(&ask).hash;
    let decision = Decision::Edit { text: "true && touch b".into() };
    rig.answer(&ask, AskReply::Permission { decision, hash });
    let (outcome, text) = result(&mut rig).await;
    assert_eq!(outcome, ToolOutcome::Denied, "{text}");
    assert!(!place.work.join("a").exists() && !place.work.join("b").exists());
    rig.quit().await;
}

/// After a call a hook replaces the result, adds to its end, or withholds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_is_replaced_extended_or_withheld() {
    let place = Place::new();
    for name in ["a.txt", "b.txt", "c.txt"] {
        place.file(name, "the content\n");
    }
    let read = |id: &str, path: &str| calls(&[(id, "read_file", read_args(path))]);
    let fake = Fake::new([read("r1", "a.txt"), read("r2", "b.txt"), read("r3", "c.txt"), says("Done.")]);
    let hooks = hooks(&place, |h| {
        let all = &mut h.after_tool_call;
        all.push(hook_for(
            "read_file(a.txt)",
            r#"grep -q '"result":"1.*the content' || exit 1; echo '{"result":"other"}'"#,
        ));
        all.push(hook_for("read_file(b.txt)", r#"echo '{"add":"see the guide"}'"#));
        all.push(hook_for("read_file(c.txt)", "echo 'it is confidential' >&2; exit 2"));
    });
    let mut rig = place.start_with(&fake, |p| p.hooks = hooks).await;
    rig.submit("go");
    let (_, text) = result(&mut rig).await;
    assert!(text.starts_with("other\n[The hook ") && !text.contains("1\t"), "{text}");
    let (outcome, text) = result(&mut rig).await;
    assert!(outcome.ok() && text.contains("the content") && text.ends_with(": see the guide]"), "{text}");
    let (outcome, text) = result(&mut rig).await;
    assert_eq!(outcome, ToolOutcome::Denied);
    assert!(text.contains("withheld") && text.contains("it is confidential"), "{text}");
    assert!(!text.contains("the content"), "{text}");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    // Each request is the one before it with more at its end.
    let all = fake.requests.lock().unwrap().clone();
    for pair in all.windows(2) {
        assert_eq!(pair[0].system, pair[1].system);
        let old = pair[0].messages.iter().map(|m| format!("{m:?}"));
        let new = pair[1].messages.iter().map(|m| format!("{m:?}"));
        assert!(new.zip(old).all(|(new, old)| new == old), "the prefix changed");
    }
    rig.quit().await;
}

/// A hook that fails by its exit code and is not blocking changes nothing. The user is told once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_hook_breaks_nothing_and_is_told_once() {
    let place = Place::new();
    let many = ["exit 7", "echo why >&2; exit 1"];
    let fake = Fake::new([write("w1", "a.txt"), write("w2", "b.txt"), says("Done.")]);
    let hooks = hooks(&place, |h| many.iter().for_each(|command| h.before_tool_call.push(hook(command))));
    let rows = hooks.clone();
    let mut rig = place.start_with(&fake, |p| p.hooks = hooks).await;
    assert_eq!(rig.turn("go").await, (TurnStatus::Done, "Done.".into()));
    assert!(place.work.join("a.txt").exists() && place.work.join("b.txt").exists());
    let notices = rig.seen.iter().filter(|e| match &e.body {
        EventBody::State(StateEvent::Notice { notice }) => {
            notice.kind == NoticeKind::Config && notice.message.contains("before-tool-call")
        }
        _ => false,
    });
    assert_eq!(notices.count(), many.len(), "each once, though each ran twice");
    for row in rows.rows() {
        assert_eq!((row.runs, row.last.unwrap().outcome), (2, HookOutcome::Failed), "{}", row.name);
    }
    rig.quit().await;
}

/// A hook that did not get to decide and is not blocking: the call asks also in the mode that asks for nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_asks_after_a_hook_that_did_not_decide() {
    for command in [
        "/no/such/program",
        "echo '{\"decision\":'",
        "echo '{\"decision\":\"perhaps\"}'",
        "kill -9 $$",
        "yes",
    ] {
        let place = Place::new();
        let fake = Fake::new([write("w1", "a.txt"), says("Done.")]);
        let hooks = hooks(&place, |h| h.before_tool_call.push(hook(command)));
        let mut rig = place
            .start_with(&fake, |p| {
                p.hooks = hooks;
                p.session.profile = Some(Profile::Full);
                p.user.human = tiller_engine::Human::Absent;
            })
            .await;
        rig.submit("go");
        let (outcome, text) = result(&mut rig).await;
        assert_eq!(outcome, ToolOutcome::Denied, "{command}: {text}");
        assert!(text.contains("needs an approval") && text.contains("the hook `"), "{command}: {text}");
        rig.finished().await;
        assert!(!place.work.join("a.txt").exists(), "{command}");
        rig.quit().await;
    }
}

/// The same hooks deny when they are blocking.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_hook_that_fails_denies() {
    for command in ["/no/such/program", "echo '{\"decision\":'", "exit 7", "yes", "kill -9 $$"] {
        let place = Place::new();
        let fake = Fake::new([write("w1", "a.txt"), says("Done.")]);
        let blocking = schema::Hook { blocking: true, ..hook(command) };
        let hooks = hooks(&place, |h| h.before_tool_call.push(blocking));
        let mut rig = place.start_with(&fake, |p| p.hooks = hooks).await;
        rig.submit("go");
        let (outcome, text) = result(&mut rig).await;
        assert_eq!(outcome, ToolOutcome::Denied, "{command}: {text}");
        assert!(text.contains("the hook `"), "{text}");
        assert_eq!(rig.finished().await.0, TurnStatus::Done);
        assert!(!place.work.join("a.txt").exists(), "{command}");
        rig.quit().await;
    }
}

/// Hooks that undo each other's changes end in a denial, not in a loop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_that_change_arguments_without_end_deny() {
    let place = Place::new();
    let script = r#"n=$(cat n 2>/dev/null || echo 0); n=$((n + 1)); echo $n >n
        echo "{\"arguments\":{\"path\":\"f$n\",\"content\":\"x\"}}""#;
    let fake = Fake::new([write("w1", "a.txt"), says("Done.")]);
    let hooks = hooks(&place, |h| h.before_tool_call.push(hook(script)));
    let mut rig = place.start_with(&fake, |p| p.hooks = hooks).await;
    rig.submit("go");
    let (outcome, text) = result(&mut rig).await;
    assert_eq!(outcome, ToolOutcome::Denied);
    assert!(text.contains("again and again"), "{text}");
    rig.quit().await;
}

/// An interrupt ends a hook that hangs, with all that it started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_ends_a_hook_that_hangs() {
    let place = Place::new();
    let fake = Fake::new([write("w1", "a.txt"), says("Done.")]);
    let script = "sleep 3000 & echo $! >pid.new; mv pid.new pid; wait";
    let hooks = hooks(&place, |h| h.before_tool_call.push(hook(script)));
    let mut rig = place.start_with(&fake, |p| p.hooks = hooks).await;
    rig.submit("go");
    let started = place.work.join("pid");
    let until = std::time::Instant::now() + DEADLINE;
    while !started.exists() {
        assert!(std::time::Instant::now() < until, "the hook did not start");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    assert!(!place.work.join("a.txt").exists());
    let stat = format!("/proc/{}/stat", place.read("pid").trim());
    let lives = || std::fs::read_to_string(&stat).is_ok_and(|s| !s.contains(") Z "));
    while lives() {
        assert!(std::time::Instant::now() < until, "it lives on");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    rig.quit().await;
}

/// What a hook leaves running ends with it, and does not hold it up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_hook_starts_ends_with_it() {
    let place = Place::new();
    let fake = Fake::new([write("w1", "a.txt"), says("Done.")]);
    let script = "sleep 3000 & echo $! >pid; setsid sleep 3000 & exit 0";
    let hooks = hooks(&place, |h| h.before_tool_call.push(hook(script)));
    let mut rig = place.start_with(&fake, |p| p.hooks = hooks).await;
    assert_eq!(rig.turn("go").await, (TurnStatus::Done, "Done.".into()));
    assert!(place.work.join("a.txt").exists());
    let stat = format!("/proc/{}/stat", place.read("pid").trim());
    let until = std::time::Instant::now() + DEADLINE;
    while std::fs::read_to_string(&stat).is_ok_and(|s| !s.contains(") Z ")) {
        assert!(std::time::Instant::now() < until, "it lives on");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    rig.quit().await;
}

/// A hook sees no variable but those that are listed: no key of the user's is among them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_sees_no_keys() {
    let place = Place::new();
    let fake = Fake::new([write("w1", "a.txt"), says("Done.")]);
    let hooks = hooks(&place, |h| h.before_tool_call.push(hook("env >env.txt")));
    let mut rig = place.start_with(&fake, |p| p.hooks = hooks).await;
    rig.turn("go").await;
    let env = place.read("env.txt");
    assert!(env.contains("TILLER_EVENT=before-tool-call"), "{env}");
    // What cargo sets for this process does not get through.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
    assert!(!env.contains("CARGO"), "{env}");
    rig.quit().await;
}
