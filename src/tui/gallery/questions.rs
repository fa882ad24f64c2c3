//! Scenes with a question that waits for the person.

use tiller_protocol::ask::{AskedCall, OutsideAnswer, PermissionAsk, TrustItem};
use tiller_protocol::event::{AskEvent, StateEvent};
use tiller_protocol::{
    AgentId, AgentState, Ask, AskBody, AskId, EventBody, Risk, SandboxState, TerminalPlace,
};

use super::scene::Scene;
use super::stage::{Call, Stage};
use super::story;
use super::{answers, menus};

pub(super) const APPROVE_EDIT: Scene = Scene::new("approve_edit", "Approval of an edit", approve_edit);
pub(super) const APPROVE_SHELL: Scene = Scene::new("approve_shell", "Approval of a command", approve_shell);
pub(super) const APPROVE_DESTRUCTIVE: Scene =
    Scene::new("approve_destructive", "Approval of a destructive command", approve_destructive);
pub(super) const APPROVE_OUTSIDE: Scene =
    Scene::new("approve_outside", "A command that the sandbox stopped", approve_outside);
pub(super) const APPROVE_ELSEWHERE: Scene =
    Scene::new("approve_elsewhere", "A command at a terminal elsewhere", approve_elsewhere);
pub(super) const APPROVE_SCRIPT: Scene =
    Scene::new("approve_script", "One approval for the calls of a script", approve_script);
pub(super) const APPROVE_CALLS: Scene =
    Scene::new("approve_calls", "Each of the calls that one answer is for", approve_calls);
pub(super) const CLARIFY: Scene = Scene::new("clarify", "A question of the agent", clarify);
pub(super) const PLAN: Scene = Scene::new("plan", "A plan to approve", plan);
pub(super) const TRUST: Scene = Scene::new("trust", "A folder that brings settings", trust);

fn ask(s: &mut Stage, agent: &str, call: Option<String>, body: AskBody) {
    let id = AskId(uuid(7));
    let ask = Ask { id, agent: AgentId(agent.into()), call, body };
    let event = match ask.body {
        AskBody::Permission(_) => AskEvent::PermissionAsked { ask },
        _ => AskEvent::QuestionAsked { ask },
    };
    s.state(StateEvent::AgentChanged { view: story::main_row(AgentState::Waiting, "waits for you") });
    s.event(EventBody::Ask(event));
    s.read();
}

fn uuid<T: Default + std::str::FromStr>(n: u128) -> T {
    format!("{n:032x}").parse().unwrap_or_default()
}

fn permission(verb: &str, shown: &str, risk: Risk) -> PermissionAsk {
    PermissionAsk {
        tool: if verb == "edit" { "edit_file".into() } else { "terminal".into() },
        verb: verb.into(),
        shown: shown.into(),
        hash: "5f1c".into(),
        diff: None,
        folder: "/home/ann/api".into(),
        why: String::new(),
        rule: "no permission rule matches".into(),
        effects: Vec::new(),
        risk,
        always: None,
        editable: verb != "edit",
        outside: if verb == "shell" { OutsideAnswer::Offered } else { OutsideAnswer::No },
        calls: Vec::new(),
        draft: None,
        source: None,
    }
}

fn approve_edit(s: &mut Stage) {
    story::open(s);
    story::reading(s);
    let id = s.begin(&Call::new("edit_file", "edit", "src/client.py", ""));
    let p = PermissionAsk {
        diff: Some(answers::CLIENT.into()),
        why: "parse both forms of the header and cap the pause".into(),
        effects: vec!["changes src/client.py".into()],
        always: Some("edit_file(src/**)".into()),
        ..permission("edit", "src/client.py", Risk::Low)
    };
    ask(s, "main", Some(id), AskBody::Permission(p));
}

fn approve_shell(s: &mut Stage) {
    story::working(s);
    let id = s.begin(&Call::new("terminal", "shell", "python -m pytest -q tests/test_client.py", ""));
    let p = PermissionAsk {
        why: "run the new tests".into(),
        effects: vec!["runs code of this folder".into()],
        always: Some("terminal(python -m pytest *)".into()),
        ..permission("shell", "python -m pytest -q tests/test_client.py", Risk::Low)
    };
    ask(s, "main", Some(id), AskBody::Permission(p));
}

fn approve_outside(s: &mut Stage) {
    story::working(s);
    let line = "cargo add serde --features derive";
    let id = s.begin(&Call::new("terminal", "shell", line, ""));
    let p = PermissionAsk {
        why: "needed for the new settings".into(),
        rule: "blocked by the sandbox".into(),
        effects: vec![
            "it failed in the sandbox, where commands write in the workspace and have no network".into(),
        ],
        outside: OutsideAnswer::Only,
        ..permission("shell", line, Risk::High)
    };
    ask(s, "main", Some(id), AskBody::Permission(p));
}

fn approve_elsewhere(s: &mut Stage) {
    story::working(s);
    s.state(StateEvent::SandboxTested {
        sandbox: Box::new(SandboxState {
            method: Some("Landlock and seccomp".into()),
            elsewhere: menus::terminals(),
            main: Some("build".into()),
            ..SandboxState::default()
        }),
    });
    let id = s.begin(&Call::new("terminal", "shell", "python -m pytest -q tests/test_client.py", ""));
    let p = PermissionAsk {
        folder: "build:/home/ann/api".into(),
        why: "run the new tests".into(),
        effects: menus::terminals().last().map(TerminalPlace::words).into_iter().collect(),
        outside: OutsideAnswer::No,
        ..permission("shell", "python -m pytest -q tests/test_client.py", Risk::Low)
    };
    ask(s, "main", Some(id), AskBody::Permission(p));
}

fn approve_script(s: &mut Stage) {
    story::open(s);
    story::reading(s);
    s.begin(&Call::new("execute_code", "script", "Move the dates to one module", ""));
    let titles =
        ["edit src/client.py", "write src/dates.py", "write tests/test_dates.py", "run python -m pytest -q"];
    let lines: Vec<String> = (1..).zip(titles).map(|(n, title)| format!("{n}. {title}")).collect();
    let call = |title: &str| AskedCall {
        title: title.into(),
        detail: if title.starts_with("run") { "python -m pytest -q".into() } else { answers::CLIENT.into() },
        diff: !title.starts_with("run"),
        allowed: false,
    };
    let p = PermissionAsk {
        tool: "execute_code".into(),
        verb: "script".into(),
        diff: Some(answers::CLIENT.into()),
        folder: String::new(),
        why: "one place for both date formats".into(),
        effects: vec![
            "4 calls: 1 x edit src/**, 1 x write src/**, 1 x write tests/**, 1 x run python".into(),
            "runs code of this folder".into(),
        ],
        always: Some("write_file(src/**) && terminal(python -m pytest *)".into()),
        editable: false,
        outside: OutsideAnswer::No,
        calls: titles.map(call).into(),
        ..permission("shell", &lines.join("\n"), Risk::Low)
    };
    ask(s, "main", None, AskBody::Permission(p));
}

fn approve_calls(s: &mut Stage) {
    approve_script(s);
    s.press("v");
}

fn approve_destructive(s: &mut Stage) {
    story::working(s);
    let line = "git fetch origin && git reset --hard origin/main && rm -rf build dist *.egg-info";
    let id = s.begin(&Call::new("terminal", "shell", line, ""));
    let p = PermissionAsk {
        why: "start again from what is on the server".into(),
        effects: vec![
            "git reset --hard discards 3 changed files".into(),
            "rm -rf deletes build, dist and what matches *.egg-info".into(),
            "reaches the network: origin".into(),
        ],
        ..permission("shell", line, Risk::High)
    };
    ask(s, "main", Some(id), AskBody::Permission(p));
}

fn clarify(s: &mut Stage) {
    story::working(s);
    let id = s.begin(&Call::new("clarify", "ask", "What should happen when the server asks for more?", ""));
    let body = AskBody::Clarify {
        question: "What should happen when the server asks for a longer pause than policy.limit?".into(),
        choices: [
            "Wait for the limit, then try again",
            "Give up at once and return the 429",
            "Raise an error that names the pause",
        ]
        .map(Into::into)
        .to_vec(),
        allow_freetext: true,
        multiple: false,
        default: Some(0),
        decides: Vec::new(),
    };
    ask(s, "main", Some(id), body);
}

fn plan(s: &mut Stage) {
    s.snapshot.profile = tiller_protocol::Profile::Plan;
    story::open(s);
    story::reading(s);
    let plan = "# Honour Retry-After\n\n1. `parse_retry_after(value)` in `src/client.py`: seconds or an HTTP date\n\
                2. `Client.wait` takes the smaller of that and `policy.limit`\n3. Tests: the cap, a date, garbage\n\
                4. A sentence in the README\n\nNot part of it: retries of requests that are not idempotent.\n";
    ask(
        s,
        "main",
        None,
        AskBody::Plan {
            file: "/home/ann/.local/state/tiller/plans/retry-after.md".into(),
            plan: plan.into(),
        },
    );
}

fn trust(s: &mut Stage) {
    story::open(s);
    let item = |kind: &str, path: &str, detail: &str| TrustItem {
        kind: kind.into(),
        change: None,
        path: path.into(),
        detail: detail.into(),
        hash: "9a40".into(),
    };
    ask(
        s,
        "main",
        None,
        AskBody::Trust {
            folder: "/home/ann/api".into(),
            brings: vec![
                item("permissions", ".tiller/permissions.yaml", "allows terminal(python -m pytest *)"),
                item("agent", ".tiller/agents/reviewer.md", "an agent kind that reads and runs tests"),
                item("mcp servers", ".mcp.json", "runs npx @acme/issues-server"),
            ],
            changed: false,
        },
    );
}
