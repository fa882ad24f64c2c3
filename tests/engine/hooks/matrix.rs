//! X19: a denial denies everywhere. 5 kinds of tools, agents at 4 depths, with and without a user, 3 ways to deny; and
//! workflows, commands of the user's edited call, and requests of external programs.

use serde_json::{Value, json};
use tiller_config::schema;
use tiller_engine::Human;
use tiller_protocol::event::{ToolEvent, TurnStatus};
use tiller_protocol::{AgentState, EventBody, PermissionOutcome, Profile, ToolOutcome};
use tiller_provider::Request;

use crate::agents::delegation::{delegate, first, result, state};
use crate::agents::external::{ACP, spawn, toy};
use crate::hooks::{audit, hook_for, hooks};
use crate::rig::*;

/// What denies: by exit code, by JSON, by taking too long.
const WAYS: [(&str, &str); 3] = [
    ("exit code", "exit 2"),
    ("json", r#"echo '{"decision":"deny","reason":"no"}'"#),
    ("timeout", "sleep 3000"),
];

/// One call of each kind of tool: a reader, a writer, a command, the network, another agent.
fn denied_calls() -> Vec<Step> {
    calls(&[
        ("c1", "read_file", json!({"path": "DENY.txt"})),
        ("c2", "write_file", json!({"path": "new-DENY.txt", "content": "x"})),
        ("c3", "terminal", json!({"command": "echo a >DENY-a; true"})),
        ("c4", "web_fetch", json!({"url": "http://127.0.0.1:9/DENY"})),
        ("c5", "delegate_task", json!({"tasks": [{"goal": "DENY this"}]})),
    ])
}

const RULES: [&str; 5] = [
    "read_file(*DENY*)",
    "write_file(*DENY*)",
    "terminal(*DENY*)",
    "web_fetch(*DENY*)",
    "delegate_task(*DENY*)",
];

fn guards(place: &Place, way: (&str, &str)) -> tiller_hooks::Hooks {
    hooks(place, |h| {
        for rule in RULES {
            let timeout = way.0 == "timeout";
            let guard = hook_for(rule, way.1);
            let seconds = if timeout { 1 } else { guard.timeout };
            h.before_tool_call.push(schema::Hook { blocking: timeout, timeout: seconds, ..guard });
        }
    })
}

/// The agent of a goal makes the calls that are denied, then starts the agent below it.
fn script(request: &Request) -> Vec<Step> {
    let depth: u32 = first(request).trim().trim_start_matches("depth ").parse().unwrap_or(0);
    let replies = request
        .messages
        .iter()
        .filter(|m| matches!(m, tiller_provider::ChatMessage::Assistant { .. }))
        .count();
    match replies {
        0 => denied_calls(),
        1 if depth < 3 => delegate(json!([{"goal": format!("depth {}", depth + 1)}])),
        _ => says("Done."),
    }
}

fn denials(rig: &Rig) -> Vec<(String, String, ToolOutcome, String)> {
    let mut all: Vec<_> = rig
        .seen
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::Tool(ToolEvent::ToolFinished { call_id, outcome, output, .. })
                if call_id.starts_with('c') =>
            {
                Some((e.agent.0.clone(), call_id.clone(), *outcome, output.clone()))
            }
            _ => None,
        })
        .collect();
    all.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    all
}

async fn all_depths(way: (&'static str, &'static str), human: Human) {
    let place = Place::new();
    place.file("DENY.txt", "secret\n");
    let guards = guards(&place, way);
    let fake = Fake::with(|_, request| script(request));
    let mut rig = place
        .start_with(&fake, |p| {
            p.hooks = guards;
            p.user.human = human;
            p.config.agents.depth = 4;
        })
        .await;
    rig.submit("depth 0");
    // Forty hooks that take their whole second, one after the other.
    let (status, text, _) = rig.finished().await;
    assert_eq!((status, text.as_str()), (TurnStatus::Done, "Done."), "{way:?} {human:?}");
    let all = denials(&rig);
    assert_eq!(all.len(), 20, "{way:?} {human:?}: {all:#?}");
    for (agent, call, outcome, output) in &all {
        assert_eq!(*outcome, ToolOutcome::Denied, "{way:?} {human:?} {agent} {call}: {output}");
        assert!(output.contains("the hook `"), "{output}");
    }
    let depths: std::collections::BTreeSet<usize> =
        all.iter().map(|(agent, ..)| agent.matches('/').count()).collect();
    assert_eq!(depths.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    rig.quit().await;
    assert!(!place.work.join("new-DENY.txt").exists() && !place.work.join("DENY-a").exists());
    assert!(!fake.requests.lock().unwrap().iter().any(|r| first(r).contains("DENY this")));
    let rows = audit(&place);
    let by_hook =
        rows.iter().filter(|r| r.decision == PermissionOutcome::Denied && r.by.starts_with("hook "));
    assert_eq!(by_hook.count(), 20, "{rows:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x19_exit_code_denies_at_all_depths() {
    all_depths(WAYS[0], Human::Present).await;
    all_depths(WAYS[0], Human::Absent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x19_json_denies_at_all_depths() {
    all_depths(WAYS[1], Human::Present).await;
    all_depths(WAYS[1], Human::Absent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x19_timeout_of_a_blocking_hook_denies_at_all_depths_with_a_user() {
    all_depths(WAYS[2], Human::Present).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x19_timeout_of_a_blocking_hook_denies_at_all_depths_without_a_user() {
    all_depths(WAYS[2], Human::Absent).await;
}

/// The steps of a workflow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x19_steps_of_workflows_are_denied() {
    for way in WAYS {
        for human in [Human::Present, Human::Absent] {
            let place = Place::new();
            place.file("DENY.txt", "secret\n");
            let guards = guards(&place, way);
            let steps: Value =
                json!([{"id": "one", "goal": "step"}, {"id": "two", "goal": "step", "needs": ["one"]}]);
            let fake = Fake::with(move |_, r| match first(r).as_str() {
                "go" if result(r).is_none() => calls(&[("w", "delegate_task", json!({"workflow": steps}))]),
                task if task.starts_with("step") && result(r).is_none() => denied_calls(),
                _ => says("Done."),
            });
            let mut rig = place
                .start_with(&fake, |p| {
                    p.hooks = guards;
                    p.user.human = human;
                })
                .await;
            assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
            let all = denials(&rig);
            assert_eq!(all.len(), 10, "{way:?}: {all:#?}");
            assert!(all.iter().all(|(_, _, outcome, _)| *outcome == ToolOutcome::Denied), "{all:#?}");
            rig.quit().await;
        }
    }
}

/// An external program asks for a command: in the mode `full` as well, where it would not have to ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x19_requests_of_external_programs_are_denied() {
    for way in WAYS {
        for (human, profile) in
            [(Human::Present, Profile::Ask), (Human::Absent, Profile::Full), (Human::Present, Profile::Full)]
        {
            let place = Place::new();
            let toy = toy(&place, ACP);
            let guards = hooks(&place, |h| {
                let timeout = way.0 == "timeout";
                let guard = hook_for("terminal(touch asked*)", way.1);
                let seconds = if timeout { 1 } else { guard.timeout };
                h.before_tool_call.push(schema::Hook { blocking: timeout, timeout: seconds, ..guard });
            });
            let mut rig = place
                .start_with(&Fake::new([]), |p| {
                    p.crew.programs = Some(toy);
                    p.session.profile = Some(profile);
                    p.hooks = guards;
                    p.user.human = human;
                })
                .await;
            rig.send(spawn("toy:acp", "run it"));
            let done = state(&mut rig, "main/a1", AgentState::Done).await;
            assert_eq!(done.child.unwrap().result, "it said refused", "{way:?} {human:?} {profile:?}");
            rig.quit().await;
            let rows = audit(&place);
            assert!(
                rows.iter().any(|r| r.decision == PermissionOutcome::Denied && r.by.starts_with("hook ")),
                "{rows:#?}"
            );
        }
    }
}
