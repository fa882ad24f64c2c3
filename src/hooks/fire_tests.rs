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
    fire_for(hooks, folder, event, json!({"tool": "terminal", "arguments": {"command": "x"}})).await
}

async fn fire_for(hooks: &Hooks, folder: &Path, event: HookEvent, call: Value) -> HookAnswer {
    let agent = AgentId::main();
    let scene = HookScene {
        event,
        session: SessionId::fresh(&tiller_protocol::SeqIds::default(), tiller_protocol::Time(0)),
        agent: &agent,
        folder,
        profile: None,
    };
    let about = Map::from_iter([("call".to_owned(), call)]);
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

/// Of several runs for one call, a question stays whatever another run ends with.
#[test]
fn a_failure_beside_a_question_asks() {
    let asks = || Ok(Decision { ask: Some("x".into()), ..Decision::default() });
    let fails = || Err(Failure { why: "y".into(), asks: false });
    for both in [joined(asks(), fails()), joined(fails(), asks())] {
        assert!(both.unwrap_err().asks);
    }
    assert!(!joined(fails(), Ok(Decision::default())).unwrap_err().asks);
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
        let check: crate::CheckHook = Arc::new(|_, hook| match hook.command.contains("guard.sh") {
            true => Err("guard.sh".to_owned()),
            false => Ok(tiller_permit::pin::Held::default()),
        });
        assert_eq!(hooks.set_trusted(&HookSource::Project, &settings, None, check), []);
        let answer = fire(&hooks, dir.path(), HookEvent::BeforeToolCall).await;
        assert_eq!(Comes::of(&answer), expected, "{answer:?}");
        assert_eq!(dir.path().join("other").exists(), !blocking);
        let said = answer.ask.or(answer.deny.map(|denial| denial.reason)).unwrap();
        assert!(said.contains("guard.sh has changed since you trusted it"), "{said}");
        let _ = std::fs::remove_file(dir.path().join("other"));
    }
}

/// A script that is replaced behind the check: what it answers passes no call, whether it is put back or not, and it is not run
/// again. A denial stands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_that_is_replaced_while_it_runs_passes_no_call() {
    const GUARD: &str = "exit 2\n";
    for (evil, put_back, is_blocking, expected) in [
        ("touch ran; exit 0\n", false, false, Comes::Asks),
        ("touch ran; exit 0\n", true, false, Comes::Asks),
        ("touch ran; exit 0\n", true, true, Comes::Denied),
        ("touch ran; exit 2\n", true, false, Comes::Denied),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let guard = dir.path().canonicalize().unwrap().join("guard.sh");
        std::fs::write(&guard, GUARD).unwrap();
        // The hook waits until its script is another one, and for the end until that is put back.
        let command = "touch here; until [ -e go ]; do sleep 0.01; done; sh guard.sh; code=$?; touch there; \
            until [ -e end ]; do sleep 0.01; done; exit $code";
        let hooks = session(dir.path());
        let hook = hook(command, is_blocking, 300);
        let settings = schema::Hooks { before_tool_call: vec![hook], ..schema::Hooks::default() };
        let trusted =
            tiller_permit::pin::Pins::of(dir.path(), command).items(&tiller_protocol::TrustKind::Hook);
        let runs = || tiller_permit::pin::Held::of_command(dir.path(), command);
        assert!(trusted.iter().any(|item| item.path == "guard.sh"), "{trusted:?}");
        let folder = dir.path().to_owned();
        let check: crate::CheckHook =
            Arc::new(move |_, hook| Ok(tiller_permit::pin::Held::of_command(&folder, &hook.command)));
        assert_eq!(runs().changed(), None);
        assert_eq!(hooks.set_trusted(&HookSource::Project, &settings, None, check), []);
        let swap = async {
            let until = async |name: &str| {
                while !dir.path().join(name).exists() {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            };
            until("here").await;
            std::fs::rename(&guard, dir.path().join("kept")).unwrap();
            std::fs::write(&guard, evil).unwrap();
            std::fs::write(dir.path().join("go"), "").unwrap();
            until("there").await;
            if put_back {
                std::fs::rename(dir.path().join("kept"), &guard).unwrap();
            }
            std::fs::write(dir.path().join("end"), "").unwrap();
        };
        let (answer, ()) = tokio::join!(fire(&hooks, dir.path(), HookEvent::BeforeToolCall), swap);
        assert!(dir.path().join("ran").exists());
        assert_eq!(Comes::of(&answer), expected, "{evil} {put_back} {is_blocking}: {answer:?}");
        std::fs::remove_file(dir.path().join("ran")).unwrap();
        let again = fire(&hooks, dir.path(), HookEvent::BeforeToolCall).await;
        assert_eq!(Comes::of(&again), if is_blocking { Comes::Denied } else { Comes::Asks }, "{again:?}");
        assert!(!dir.path().join("ran").exists(), "it is not run again");
    }
}

/// Python runs the source that was trusted, and not what lies compiled beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compiled_python_beside_a_trusted_source_is_not_run() {
    const PLANT: &str = "import importlib.util as u, py_compile as p; p.compile('evil.py', \
        cfile=u.cache_from_source('rules.py'), invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)";
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("guard.py", "import rules, sys\nsys.exit(rules.CODE)\n"),
        ("rules.py", "CODE = 2\n"),
        ("evil.py", "CODE = 0\n"),
    ] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let python = |args: &[&str]| {
        std::process::Command::new("python3").args(args).current_dir(dir.path()).output().ok()
    };
    if !python(&["-c", PLANT]).is_some_and(|out| out.status.success()) {
        return eprintln!("skipped: python3 is not installed");
    }
    assert_eq!(python(&["guard.py"]).unwrap().status.code(), Some(0), "the planted code runs elsewhere");
    let hooks = session(dir.path());
    let settings = schema::Hooks {
        before_tool_call: vec![hook("python3 guard.py", true, 300)],
        ..schema::Hooks::default()
    };
    let check: crate::CheckHook = Arc::new(|_, _| Ok(tiller_permit::pin::Held::default()));
    assert_eq!(hooks.set_trusted(&HookSource::Project, &settings, None, check), []);
    let answer = fire(&hooks, dir.path(), HookEvent::BeforeToolCall).await;
    assert_eq!(Comes::of(&answer), Comes::Denied, "{answer:?}");
}

/// A hook of Claude Code, which bash runs as there, is asked about each file of a patch, up to a bound; beyond it the call does
/// not pass unseen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_is_asked_about_each_part_of_a_call_or_the_call_asks() {
    let dir = tempfile::tempdir().unwrap();
    let patch = |files: usize| {
        let parts: String = (0..files).map(|n| format!("*** Add File: f{n}\n+x\n")).collect();
        json!({"tool": "patch", "arguments": {"patch": format!("*** Begin Patch\n{parts}*** End Patch\n")}})
    };
    // A test that only bash reads: another shell would pass over it.
    let guard = |file: &str| {
        format!("echo >> runs; read -r input; if [[ $input =~ /{file}\\\" ]]; then echo no >&2; exit 2; fi")
    };
    for (files, file, blocking, runs, expected) in [
        (3, "none", false, 3, Comes::Passes),
        (3, "f1", false, 2, Comes::Denied),
        (RUNS, "none", false, RUNS, Comes::Passes),
        (RUNS + 1, "none", false, RUNS, Comes::Asks),
        (RUNS + 1, "none", true, RUNS, Comes::Denied),
        (10_000, "f4", false, 5, Comes::Denied),
    ] {
        let hooks = session(dir.path());
        let hook = schema::Hook { format: schema::HookFormat::Claude, ..hook(&guard(file), blocking, 300) };
        let settings = schema::Hooks { before_tool_call: vec![hook], ..schema::Hooks::default() };
        assert_eq!(hooks.set(&HookSource::User, &settings, None), []);
        let answer = fire_for(&hooks, dir.path(), HookEvent::BeforeToolCall, patch(files)).await;
        assert_eq!(Comes::of(&answer), expected, "{files} {file} {blocking}: {answer:?}");
        let ran = std::fs::read_to_string(dir.path().join("runs")).unwrap();
        assert_eq!(ran.lines().count(), runs, "{files} {file}");
        std::fs::remove_file(dir.path().join("runs")).unwrap();
    }
}
