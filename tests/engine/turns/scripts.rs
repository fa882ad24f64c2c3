//! Scripts that call tools.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tiller_engine::{EngineConfig, Human, Permit};
use tiller_permit::{Effect, Policy, Roots, Rule, Source};
use tiller_protocol::event::{ToolEvent, TurnEvent, TurnStatus};
use tiller_protocol::tool::{Display, InnerCall};
use tiller_protocol::{AskReply, Decision, EntryBody, EventBody, Profile, ToolOutcome};
use tiller_tool::shell::{Confiner, Confiners, Launch};
use tiller_tool::{ChildEnv, Workspace};

use crate::rig::*;
use crate::scripted_model::lock;
use crate::turns::questions::permission;

/// Confines nothing, and says that it does: these stories are about the rules.
#[derive(Debug)]
struct Free;

impl Confiner for Free {
    fn confine(&self, launch: Launch, _workspace: &Path, _scratch: &Path) -> Launch {
        launch
    }
}

fn env() -> Vec<(String, String)> {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
    vec![("PATH".into(), path)]
}

/// Whether there is no python3, which the test says.
pub(crate) fn lacks_python(place: &Place) -> bool {
    let lacks = tiller_tool::code::find_python("python3", &env(), &place.work).is_none();
    if lacks {
        eprintln!("skipped: there is no python3");
    }
    lacks
}

/// With a sandbox, in this mode, with these rules of the user.
pub(crate) fn ready(
    place: &Place,
    profile: Profile,
    rules: &[(Effect, &str)],
) -> impl FnOnce(&mut EngineConfig) + use<> {
    let tools = place.tools.catalog();
    let rules: Vec<Rule> = rules
        .iter()
        .map(|(effect, text)| Rule::written(*effect, Source::User, text, &tools).unwrap())
        .collect();
    let work = place.work.clone();
    move |parts| {
        parts.session.profile = Some(profile);
        parts.config.code.time = 600;
        parts.environment.child_env = ChildEnv::new(env());
        let confiner = || -> Option<Arc<dyn Confiner>> { Some(Arc::new(Free)) };
        let confiners = Confiners { read: confiner(), workspace: confiner(), outside: None };
        parts.workspace = Workspace::new(&work).unwrap().confine(confiners);
        let mut policy = Policy::new(Roots::new(&work, None, Vec::new()), tools);
        policy.sandboxed = || true;
        policy.rules.add(rules, true);
        parts.permit = Permit::new(policy, Arc::new(|_| Ok(())));
    }
}

pub(crate) fn script(id: &str, code: &str) -> Vec<Step> {
    calls(&[(id, "execute_code", json!({"code": code}))])
}

/// The calls of the finished script, as the transcript has them: each from its own entry, if it has one.
fn inner(rig: &Rig) -> Vec<InnerCall> {
    let own = |number: u32| {
        rig.seen.iter().rev().find_map(|e| match &e.body {
            EventBody::Turn(TurnEvent::EntryAdded { node }) => match &node.body {
                EntryBody::InnerCall { call, .. } if call.number == number => Some((**call).clone()),
                _ => None,
            },
            _ => None,
        })
    };
    let of = |e: &EventBody| match e {
        EventBody::Tool(ToolEvent::ToolFinished { node, .. }) => match &node.body {
            EntryBody::ToolResult { display: Some(Display::Calls { calls, .. }), .. } => Some(calls.clone()),
            _ => None,
        },
        _ => None,
    };
    let rows = rig.seen.iter().rev().find_map(|e| of(&e.body)).expect("a finished script");
    rows.into_iter().map(|row| own(row.number).filter(|_| row.outcome.is_some()).unwrap_or(row)).collect()
}

const WRITES: &str = "from tiller_tools import read_file, write_file\nfor n in range(3):\n    write_file(f'out{n}.txt', read_file('in.txt') + str(n))\nprint('written')\n";

/// The bytes that a turn adds to the requests of the model.
fn added(fake: &Fake) -> usize {
    let requests = lock(&fake.requests);
    let size = |request: &tiller_provider::Request| serde_json::to_string(&request.messages).unwrap().len();
    size(requests.last().unwrap()) - size(&requests[0])
}

/// The figure of the goal: at most 5 % of the bytes of direct calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_calls_in_a_script_put_a_twentieth_of_the_bytes_into_the_context() {
    let place = Place::new();
    if lacks_python(&place) {
        return;
    }
    for n in 0..50 {
        let text: String =
            (0..30).map(|line| format!("{line} of file {n}: some words, as text has them\n")).collect();
        place.file(&format!("f{n}.txt"), &format!("{text}needle {n}\n"));
    }
    let direct: Vec<(String, Value)> =
        (0..50).map(|n| (format!("c{n}"), json!({"path": format!("f{n}.txt")}))).collect();
    let direct: Vec<(&str, &str, Value)> =
        direct.iter().map(|(id, args)| (id.as_str(), "read_file", args.clone())).collect();
    let fake = Fake::new([calls(&direct), says("Done.")]);
    let mut rig = place.start_with(&fake, ready(&place, Profile::Ask, &[])).await;
    assert_eq!(rig.turn("sum the needles").await.0, TurnStatus::Done);
    let whole = added(&fake);
    rig.quit().await;

    let code = "# Sum of all needles\nfrom tiller_tools import read_file\nprint(sum(int(read_file(f'f{n}.txt').split()[-1]) for n in range(50)))\n";
    let fake = Fake::new([script("c1", code), says("Done.")]);
    let mut rig = place.start_with(&fake, ready(&place, Profile::Ask, &[])).await;
    assert_eq!(rig.turn("sum the needles").await.0, TurnStatus::Done);
    let requests = lock(&fake.requests).clone();
    assert_valid(&requests[1]);
    let result = message_text(&requests[1], requests[1].messages.iter().count() - 1);
    assert!(result.contains("tool_calls_made: 50") && result.contains("output:\n1225"), "{result}");
    let little = added(&fake);
    eprintln!(
        "50 direct calls: {whole} bytes; one script: {little} bytes, {:.1} %",
        100.0 * little as f64 / whole as f64
    );
    assert!(little * 20 <= whole, "{little} of {whole} bytes");
    // Shown live, kept in the transcript, and no part of what the model reads.
    let live =
        rig.seen.iter().filter(|e| matches!(e.body, EventBody::Tool(ToolEvent::InnerCall { .. }))).count();
    assert_eq!((live, inner(&rig).len()), (100, 50));
    assert!(
        inner(&rig)
            .iter()
            .all(|call| call.outcome == Some(ToolOutcome::Ok) && call.output.contains("needle"))
    );
    rig.quit().await;
    let rows = place.parts(&Fake::new([])).store.audit().list(None, "", 200).unwrap();
    assert_eq!(
        rows.iter().filter(|row| row.tool == "read_file").count(),
        100,
        "each call of both is in the audit"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_yes_is_for_all_calls_of_a_script() {
    let place = Place::new();
    if lacks_python(&place) {
        return;
    }
    place.file("in.txt", "x");
    let fake = Fake::new([script("c1", WRITES), says("Done.")]);
    let mut rig = place.start_with(&fake, ready(&place, Profile::Ask, &[])).await;
    rig.submit("write");
    let ask = rig.asked().await;
    let p = permission(&ask);
    assert_eq!(p.effects, ["3 calls: 1 x write out0.txt, 1 x write out1.txt, 1 x write out2.txt"]);
    assert_eq!(
        (p.calls.len(), p.diff.as_deref().map(|diff| diff.matches("+++ b/out").count())),
        (3, Some(3))
    );
    assert!(p.calls[1].diff && p.calls[1].detail.contains("+x\n+1"), "{:?}", p.calls[1]);
    assert!(!place.work.join("out0.txt").exists(), "nothing is written before the answer");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash });
    let (_, output) = rig.tool_finished().await;
    assert!(output.contains("output:\nwritten"), "{output}");
    assert_eq!(place.read("out2.txt"), "x\n2");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    let paths: Vec<String> =
        inner(&rig).iter().flat_map(|call| &call.files).map(|f| f.path.clone()).collect();
    assert_eq!(paths, ["out0.txt", "out1.txt", "out2.txt"]);
    rig.quit().await;
    let rows = place.parts(&Fake::new([])).store.audit().list(None, "", 50).unwrap();
    let write: Vec<_> = rows.iter().filter(|row| row.tool == "write_file").collect();
    assert_eq!(write.len(), 3);
    assert_eq!(
        (write[0].decision.audit_word(), write[0].by.as_str()),
        ("ask:once", "you, with the whole script")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_no_and_no_one_to_answer_leave_everything_as_it_is() {
    let place = Place::new();
    if lacks_python(&place) {
        return;
    }
    place.file("in.txt", "x");
    let fake = Fake::new([script("c1", WRITES), says("Done.")]);
    let mut rig = place.start_with(&fake, ready(&place, Profile::Ask, &[])).await;
    rig.submit("write");
    let ask = rig.asked().await;
    let decision = Decision::Deny { comment: Some("not these".into()) };
    rig.answer(&ask, AskReply::Permission { decision, hash: permission(&ask).hash });
    let (_, output) = rig.tool_finished().await;
    assert!(
        output.contains("not these") && output.contains("none of those that change something was made"),
        "{output}"
    );
    assert!(
        inner(&rig)
            .iter()
            .filter(|call| call.name == "write_file")
            .all(|c| c.outcome == Some(ToolOutcome::Denied))
    );
    rig.quit().await;
    let fake = Fake::new([script("c1", WRITES), says("Done.")]);
    let alone = ready(&place, Profile::Ask, &[]);
    let mut rig = place
        .start_with(&fake, |parts| {
            alone(parts);
            parts.user.human = Human::Absent;
        })
        .await;
    rig.submit("write");
    let (_, output) = rig.tool_finished().await;
    assert!(
        output.contains(
            "this call needs an approval, and no one is available to answer (rule: no permission rule matches)"
        ),
        "{output}"
    );
    assert!(output.contains("--allow 'write_file("), "{output}");
    assert!(!place.work.join("out0.txt").exists());
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pattern_holds_for_the_next_script_too_and_a_denied_call_raises() {
    let place = Place::new();
    if lacks_python(&place) {
        return;
    }
    place.file("in.txt", "x");
    let denied = "from tiller_tools import write_file, ToolError\ntry:\n    write_file('secret.txt', 'x')\nexcept ToolError as error:\n    print(error)\n";
    let fake = Fake::new([script("c1", WRITES), script("c2", WRITES), script("c3", denied), says("Done.")]);
    let rules = [(Effect::Deny, "write_file(secret.txt)")];
    let mut rig = place.start_with(&fake, ready(&place, Profile::Ask, &rules)).await;
    rig.submit("write");
    let ask = rig.asked().await;
    let decision = Decision::Session { pattern: "write_file(out*)".into() };
    rig.answer(&ask, AskReply::Permission { decision, hash: permission(&ask).hash });
    assert!(rig.tool_finished().await.1.contains("written"));
    // The second script asks nothing and runs once.
    assert!(rig.tool_finished().await.1.contains("tool_calls_made: 6"));
    let (_, output) = rig.tool_finished().await;
    assert!(output.contains("output:\nDenied: denied by the rule"), "{output}");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert!(!place.work.join("secret.txt").exists());
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_ends_the_script_and_the_call_that_it_makes() {
    let place = Place::new();
    if lacks_python(&place) {
        return;
    }
    let code =
        "from tiller_tools import terminal\nterminal('touch begun; sleep 3000')\nterminal('touch after')\n";
    let fake = Fake::new([script("c1", code), says("Done.")]);
    let mut rig = place.start_with(&fake, ready(&place, Profile::Full, &[])).await;
    rig.submit("wait");
    rig.until("the command", |e| match e {
        EventBody::Tool(ToolEvent::InnerCall { call, .. }) if call.name == "terminal" => Some(()),
        _ => None,
    })
    .await;
    let until = std::time::Instant::now() + DEADLINE;
    while !place.work.join("begun").exists() {
        assert!(std::time::Instant::now() < until, "the command does not begin");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    assert!(!place.work.join("after").exists());
    rig.quit().await;
}

/// Without a sandbox the script itself is asked about, and shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nothing_confines_it_a_script_asks_itself() {
    let place = Place::new();
    if lacks_python(&place) {
        return;
    }
    let fake = Fake::new([script("c1", "print('hello')\n"), says("Done.")]);
    let confined = ready(&place, Profile::Ask, &[]);
    let (work, tools) = (place.work.clone(), place.tools.catalog());
    let mut rig = place
        .start_with(&fake, |parts| {
            confined(parts);
            let policy = Policy::new(Roots::new(&work, None, Vec::new()), tools);
            parts.permit = Permit::new(policy, Arc::new(|_| Ok(())));
        })
        .await;
    rig.submit("go");
    let ask = rig.asked().await;
    let p = permission(&ask);
    assert_eq!(
        (p.shown.as_str(), p.rule.text()),
        ("print('hello')\n", "this system has no sandbox for scripts")
    );
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash });
    assert!(rig.tool_finished().await.1.contains("output:\nhello"));
    rig.quit().await;
}
