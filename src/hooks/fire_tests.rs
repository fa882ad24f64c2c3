use std::sync::Arc;

use serde_json::json;
use tiller_config::schema;
use tiller_protocol::{AgentId, SessionId, SystemClock, ToolCatalog};

use super::*;
use crate::list::{HookSource, HooksConfig};

/// The hooks of a session in `folder`.
fn session(folder: &Path) -> Hooks {
    Hooks::new(HooksConfig {
        folder: folder.to_owned(),
        env: tiller_tool::ChildEnv::new(vec![("PATH".into(), "/usr/bin:/bin".into())]),
        confiner: None,
        tools: ToolCatalog::default(),
        clock: Arc::new(SystemClock::default()),
    })
}

fn hook(command: &str, blocking: bool, timeout: u64) -> schema::Hook {
    schema::Hook {
        command: command.into(),
        name: Some("guard".into()),
        matches: None,
        timeout,
        blocking,
        format: schema::HookFormat::Tiller,
    }
}

async fn fire(hooks: &Hooks, folder: &Path, event: HookEvent) -> HookAnswer {
    let agent = AgentId::main();
    let scene = HookScene {
        event,
        session: SessionId::fresh(&tiller_protocol::SeqIds::default(), tiller_protocol::Time(0)),
        agent: &agent,
        folder,
    };
    let about =
        Map::from_iter([("call".to_owned(), json!({"tool": "terminal", "arguments": {"command": "x"}}))]);
    hooks.before_call(scene, about, &|_, _| true, &CancellationToken::new()).await
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comes {
    Passes,
    Asks,
    Denied,
}

impl Comes {
    fn of(answer: &HookAnswer) -> Self {
        match (&answer.deny, &answer.ask) {
            (Some(_), _) => Self::Denied,
            (None, Some(_)) => Self::Asks,
            (None, None) => Self::Passes,
        }
    }
}

const DENY: &str = r#"echo '{"decision": "deny", "reason": "no"}'"#;

/// Real commands: what a call comes to after a hook that is not blocking, and after one that is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_way_to_end_has_its_decision() {
    use Comes::{Asks, Denied, Passes};
    let dir = tempfile::tempdir().unwrap();
    let long = "i=0; while [ $i -lt 32 ]; do head -c 65536 /dev/zero | tr '\\0' 'x'; i=$((i + 1)); done";
    for (command, other, blocking) in [
        ("true".to_owned(), Passes, Passes),
        ("echo fine".into(), Passes, Passes),
        ("echo '{}'".into(), Passes, Passes),
        ("echo '{\"decision\":\"allow\"}'".into(), Passes, Passes),
        ("echo Ready; echo '{\"decision\":\"allow\"}'".into(), Passes, Passes),
        ("echo no >&2; exit 2".into(), Denied, Denied),
        ("echo '{'; exit 2".into(), Denied, Denied),
        ("echo '{\"decision\":\"allow\"}'; exit 2".into(), Denied, Denied),
        (format!("{long}; exit 2"), Denied, Denied),
        (format!("{long} >&2; exit 2"), Denied, Denied),
        (DENY.into(), Denied, Denied),
        (format!("echo 'Shell ready'; {DENY}"), Denied, Denied),
        (format!("printf '\\357\\273\\277'; {DENY}"), Denied, Denied),
        (format!("printf '\\033[0m'; {DENY}; printf '\\033[0m'"), Denied, Denied),
        (format!("echo '{{\"level\":\"info\"}}'; {DENY}"), Denied, Denied),
        (format!("{DENY}; echo done"), Denied, Denied),
        (format!("{DENY}; {long}"), Denied, Denied),
        (format!("{DENY}; exit 1"), Denied, Denied),
        (format!("{DENY}; kill -9 $$"), Denied, Denied),
        (format!("{DENY}; sleep 3000"), Denied, Denied),
        ("printf '{\\n\"decision\":\\n\"deny\"\\n}'".into(), Denied, Denied),
        (long.into(), Asks, Denied),
        ("echo '{\"decision\": \"deny\"'".into(), Asks, Denied),
        ("echo '{'".into(), Asks, Denied),
        ("sleep 3000".into(), Asks, Denied),
        ("kill -TERM $$".into(), Asks, Denied),
        ("kill -9 $$".into(), Asks, Denied),
        ("/no/such/guard".into(), Asks, Denied),
        (dir.path().display().to_string(), Asks, Denied),
        ("exit 1".into(), Passes, Denied),
    ] {
        for (is_blocking, expected) in [(false, other), (true, blocking)] {
            let hooks = session(dir.path());
            let limit = if command.contains("sleep") { 1 } else { 300 };
            let settings = schema::Hooks {
                before_tool_call: vec![hook(&command, is_blocking, limit)],
                ..schema::Hooks::default()
            };
            assert_eq!(hooks.set(&HookSource::User, &settings, None), []);
            let answer = fire(&hooks, dir.path(), HookEvent::BeforeToolCall).await;
            assert_eq!(Comes::of(&answer), expected, "blocking {is_blocking}: {command}: {answer:?}");
        }
    }
}

/// Only the hook whose file changed is off: it denies or asks, the others run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_hook_never_passes_a_call() {
    let dir = tempfile::tempdir().unwrap();
    for (blocking, expected) in [(false, Comes::Asks), (true, Comes::Denied)] {
        let hooks = session(dir.path());
        let settings = schema::Hooks {
            before_tool_call: vec![hook("sh guard.sh", blocking, 300), hook("touch other", true, 300)],
            ..schema::Hooks::default()
        };
        let changed: crate::ChangedHook =
            Arc::new(|_, hook| hook.command.contains("guard.sh").then(|| "guard.sh".to_owned()));
        assert_eq!(hooks.set_trusted(&HookSource::Project, &settings, None, changed), []);
        let answer = fire(&hooks, dir.path(), HookEvent::BeforeToolCall).await;
        assert_eq!(Comes::of(&answer), expected, "{answer:?}");
        assert_eq!(dir.path().join("other").exists(), !blocking);
        let said = answer.ask.or(answer.deny.map(|denial| denial.reason)).unwrap();
        assert!(said.contains("guard.sh has changed since you trusted it"), "{said}");
        let _ = std::fs::remove_file(dir.path().join("other"));
    }
}
