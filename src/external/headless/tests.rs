use tiller_tool::shell::Host;

use super::*;
use crate::adapter::Adapters;
use crate::event::CUT_OFF;
use crate::fake::{Fake, TIMEOUT, all};
use crate::{Receipt, Resume, StartError, start};

/// The stream as lines.
fn lines(said: &[AgentEvent]) -> String {
    let row = |s: &AgentEvent| match s {
        AgentEvent::Started { .. } => "started".into(),
        AgentEvent::Usage { usage, cost } => format!(
            "usage in {} out {} cached {} thought {} cost {:?}",
            usage.input,
            usage.output,
            usage.cache_read,
            usage.reasoning,
            cost.map(|c| c.0)
        ),
        AgentEvent::Tool(t) => format!("tool {} {} {}", t.name, t.verb, t.target),
        AgentEvent::ToolDone { ok, output, diffs, .. } => {
            let diffs: Vec<_> = diffs.iter().map(|d| format!("{} {:?}", d.path, d.new.as_deref())).collect();
            format!("done {ok} {output:?} {diffs:?}")
        }
        other => format!("{other:?}"),
    };
    said.iter().map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_the_real_programs_said_is_understood() {
    let all = Adapters::new(&[]);
    for (name, text) in [
        ("claude", include_str!("fixtures/claude.out")),
        ("codex", include_str!("fixtures/codex.out")),
        ("gemini", include_str!("fixtures/gemini.out")),
        ("opencode", include_str!("fixtures/opencode.out")),
        ("aider", include_str!("fixtures/aider.out")),
    ] {
        let mut records = reader(all.get(name).unwrap().headless.as_ref().unwrap(), Usage::default());
        let mut said = Vec::new();
        text.lines().for_each(|l| records.line(l, &mut said));
        let told = records.report(Some(0));
        assert!(matches!(told.over, Some(Ok(()))), "{name}: {told:?}");
        insta::assert_snapshot!(name, format!("{}\n=> {}", lines(&said), told.text));
    }
}

/// An answer that a limit cut off is not done.
#[test]
fn an_answer_that_was_cut_off_is_a_failure_where_the_program_says_so() {
    let all = Adapters::new(&[]);
    for (name, text, end, cut) in [
        ("claude", include_str!("fixtures/claude.out"), "\"end_turn\"", "\"max_tokens\""),
        ("opencode", include_str!("fixtures/opencode.out"), "\"reason\":\"stop\"", "\"reason\":\"length\""),
    ] {
        let mut records = reader(all.get(name).unwrap().headless.as_ref().unwrap(), Usage::default());
        let text = text.replace(end, cut);
        assert!(text.contains(cut), "{name}");
        text.lines().for_each(|l| records.line(l, &mut Vec::new()));
        let told = records.report(Some(0));
        assert_eq!(told.over, Some(Err(CUT_OFF.to_owned())), "{name}");
    }
}

#[test]
fn gemini_may_say_it_all_in_one_object_after_chatter() {
    let mut records = gemini::Gemini::default();
    let mut said = Vec::new();
    let text = "YOLO mode\n{\n  \"session_id\": \"s\",\n  \"response\": \"PONG\",\n  \"stats\": {\"models\": {\"m\": {\"tokens\": {\"prompt\": 9, \"cached\": 2, \"candidates\": 3}}}}\n}";
    text.lines().for_each(|l| records.line(l, &mut said));
    let told = records.report(Some(0));
    assert_eq!((told.text.as_str(), told.session.as_deref()), ("PONG", Some("s")));
    assert!(lines(&said).contains("usage in 7 out 3 cached 2"), "{}", lines(&said));
}

const DONE: &str = r#"echo '{"type":"result","subtype":"success","result":"fine","session_id":"s"}'"#;

#[tokio::test]
async fn what_goes_wrong_is_an_ending_never_a_stuck_stream() {
    use Status::{Crashed, Done, Failed};
    for (what, script, status, why) in [
        ("done", format!("cat >/dev/null; {DONE}"), Done, ""),
        ("done, lingers", format!("{DONE}; exec >&- 2>&-; sleep 3000 & exit 0"), Done, ""),
        ("claims and fails", format!("{DONE}; echo broken >&2; exit 3"), Failed, "reported success"),
        (
            "garbage",
            "echo '{\"type\":'; echo nonsense; printf '\\377\\000{}'".into(),
            Failed,
            "readable output",
        ),
        ("no word of an end", "echo '{\"type\":\"system\"}'".into(), Failed, "without reporting"),
        ("dies", "echo '{\"type\":\"system\"}'; kill -SEGV $$".into(), Crashed, "signal 11"),
        ("fails", "echo no such model >&2; exit 2".into(), Failed, "code 2: no such model"),
        ("login", "echo Not logged in >&2; exit 1".into(), Failed, "not logged in: log in"),
        (
            "says why",
            "echo '{\"type\":\"result\",\"subtype\":\"error_max_turns\"}'; exit 1".into(),
            Failed,
            "error_max_turns",
        ),
    ] {
        let fake = Fake::headless("claude", "", &script);
        let ending = fake.ending(fake.job("hello")).await;
        assert_eq!(ending.status, status, "{what}: {ending:?}");
        assert!(ending.why.contains(why), "{what}: {ending:?}");
    }
}

#[tokio::test]
async fn hanging_and_flooding_end_at_the_limits() {
    let fake = Fake::headless("claude", "", "sleep 3000 & wait");
    let mut job = fake.job("x");
    job.limits.idle = Duration::from_millis(300);
    let ending = fake.ending(job).await;
    assert_eq!(ending.status, Status::TimedOut, "{ending:?}");
    assert!(ending.why.contains("silent"), "{ending:?}");

    let fake = Fake::headless("claude", "", "while :; do echo '{\"type\":\"user\"}'; done");
    let mut job = fake.job("x");
    job.limits.wall = Duration::from_millis(500);
    assert_eq!(fake.ending(job).await.status, Status::TimedOut);

    let fake = Fake::headless("claude", "", "yes '{\"type\":\"user\"}'");
    let mut job = fake.job("x");
    job.limits.output = 3 << 20;
    let ending = fake.ending(job).await;
    assert!(ending.why.contains("more than 3 MB"), "{ending:?}");

    let script = format!("head -c 3000000 /dev/zero | tr '\\0' x; echo; {DONE}");
    let fake = Fake::headless("claude", "", &script);
    let mut job = fake.job("x");
    job.limits.line = 100_000;
    let (_control, said) = start(job, &Host::default()).unwrap();
    let (said, ending) = all(said).await;
    assert_eq!(ending.status, Status::Done, "{ending:?}");
    assert!(said.iter().any(|s| matches!(s, AgentEvent::Note(n) if n.contains("too long"))));
}

#[tokio::test]
async fn stopping_ends_the_whole_group_and_dropping_does_too() {
    for hard in [None, Some(false), Some(true)] {
        let fake = Fake::headless(
            "claude",
            "",
            "trap '' TERM; (sleep 3000; echo) & echo $! >child; wait; sleep 3000",
        );
        let (control, mut said) = start(fake.job("x"), &Host::default()).unwrap();
        let child = fake.tmp.path().join("child");
        let until = Instant::now() + TIMEOUT;
        let pid = loop {
            if let Ok(pid) = std::fs::read_to_string(&child).unwrap_or_default().trim().parse::<i32>() {
                break pid;
            }
            assert!(Instant::now() < until, "it did not start");
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        match hard {
            None => drop(control),
            Some(hard) => control.stop(hard),
        }
        let collect = async {
            loop {
                match said.recv().await {
                    Some(AgentEvent::Ended(e)) => break e,
                    Some(_) => {}
                    None => panic!("no ending"),
                }
            }
        };
        let ending = timeout(TIMEOUT, collect).await.unwrap();
        assert_eq!(ending.status, Status::Cancelled);
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        assert!(rustix::process::test_kill_process(pid).is_err(), "its child lives");
    }
}

#[tokio::test]
async fn a3_many_runs_ended_at_odd_moments_leave_nothing_behind() {
    // Each starts a child that hides in a session of its own; each is ended in another way.
    let script =
        format!("(setsid sleep 3111 &) ; sleep 0.0$(($$ % 9)); {DONE}; [ $(($$ % 2)) = 0 ] || sleep 3111");
    let fake = Fake::headless("claude", "", &script);
    let host = Host::default();
    let started = Instant::now();
    for trial in 0..60u64 {
        let mut job = fake.job("x");
        // Longer than any busy machine needs: reaching it means that the test hangs.
        job.limits.wall = Duration::from_secs(600);
        job.limits.grace = Duration::from_millis(50);
        let (control, said) = start(job, &host).unwrap();
        let kill = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(trial * 7 % 40)).await;
            match trial % 3 {
                0 => drop(control),
                hard => control.stop(hard == 1),
            }
        });
        let (_, ending) = all(said).await;
        kill.await.unwrap();
        assert!(matches!(ending.status, Status::Cancelled | Status::Done), "{trial}: {ending:?}");
    }
    let left = || {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ours = |p: &std::path::Path| {
            let read = |name: &str| std::fs::read(p.join(name)).unwrap_or_default();
            let marked = String::from_utf8_lossy(&read("environ")).contains(&host.marker());
            marked && String::from_utf8_lossy(&read("cmdline")).contains("3111")
        };
        all.filter(|e| ours(&e.path())).count()
    };
    let until = Instant::now() + Duration::from_secs(120);
    while left() > 0 {
        assert!(Instant::now() < until, "{} live on", left());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("60 runs in {:?}", started.elapsed());
}

#[tokio::test]
async fn messages_are_the_next_turn_or_are_told_as_missed() {
    let echo = r#"text=$(cat); echo "$*" >>args; echo '{"type":"system","subtype":"init","session_id":"s7"}'
while [ ! -e go ]; do sleep 0.02; done
printf '{"type":"result","subtype":"success","result":"%s"}\n' "$text""#;
    let fake = Fake::headless("claude", "args = [\"-p\"]\nresume = [\"--resume\", \"{session}\"]\n", echo);
    let (control, said) = start(fake.job("--first {model}"), &Host::default()).unwrap();
    let Receipt::Queued { id } = control.say("second") else { panic!("queued") };
    std::fs::write(fake.tmp.path().join("go"), "").unwrap();
    let (said, ending) = all(said).await;
    assert_eq!((ending.status, ending.text.as_str()), (Status::Done, "second"), "{ending:?}");
    assert!(said.iter().any(|s| matches!(s, AgentEvent::Delivered { id: d } if *d == id)));
    let args = std::fs::read_to_string(fake.tmp.path().join("args")).unwrap();
    assert_eq!(args, "-p\n-p --resume s7\n");

    let fake = Fake::headless("text", "", "cat; while [ ! -e go ]; do sleep 0.02; done");
    let (control, said) = start(fake.job("one"), &Host::default()).unwrap();
    let Receipt::Queued { id } = control.say("two") else { panic!("queued") };
    std::fs::write(fake.tmp.path().join("go"), "").unwrap();
    let (said, ending) = all(said).await;
    assert_eq!((ending.status, ending.text.as_str()), (Status::Done, "one"), "{ending:?}");
    assert!(said.iter().any(|s| matches!(s, AgentEvent::Missed { id: d, .. } if *d == id)));
    assert!(matches!(control.say("late"), Receipt::Missed { .. }));
}

#[tokio::test]
async fn one_that_cannot_resume_is_told_all_again() {
    let script = "cat; echo \"$*\" >args";
    for (more, told, args) in
        [("", "all of it", ""), ("resume = [\"--resume\", \"{session}\"]\n", "the last", "--resume s1")]
    {
        let fake = Fake::headless("text", more, script);
        let job = Job {
            resume: Resume { fresh_prompt: Some("all of it".into()), ..Resume::session("s1") },
            ..fake.job("the last")
        };
        let (_control, said) = start(job, &Host::default()).unwrap();
        let (said, ending) = all(said).await;
        assert_eq!(ending.text, told, "{ending:?}");
        assert_eq!(said.iter().any(|s| matches!(s, AgentEvent::Anew)), args.is_empty());
        assert_eq!(std::fs::read_to_string(fake.tmp.path().join("args")).unwrap().trim(), args);
    }
}

/// Row T6 for external programs: a program that exceeds the machine's limits is ended, and its ending gives the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t6_a_program_that_takes_too_much_is_ended_and_says_why() {
    let bomb = "for i in $(seq 300); do setsid sleep 90 & done; wait";
    let fakes = [
        Fake::headless("text", "", bomb),
        Fake::new("[acp]\ncommand = \"PROGRAM\"\ninstall = \"x\"\n", bomb),
        Fake::new("[pty]\nready = 'never'\n", bomb),
    ];
    for fake in fakes {
        let mut job = fake.job("x");
        job.limits.bounds.processes = 100;
        let ending = fake.ending(job).await;
        assert!(matches!(ending.status, Status::Failed | Status::Crashed), "{ending:?}");
        let why = "it had more than 100 processes at once (limits.program_processes)";
        assert!(ending.why.contains(why), "{ending:?}");
    }
}

#[tokio::test]
async fn one_that_stays_waits_for_more() {
    let script = "t=$(cat); echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\"}'; printf '{\"type\":\"result\",\"result\":\"%s\"}\\n' \"$t\"";
    let fake = Fake::headless("claude", "resume = [\"-r\", \"{session}\"]\n", script);
    let (control, mut said) = start(Job { stay: true, ..fake.job("a") }, &Host::default()).unwrap();
    let mut turns = Vec::new();
    let talk = async {
        while let Some(s) = said.recv().await {
            match s {
                AgentEvent::TurnDone { text } if turns.is_empty() => {
                    turns.push(text);
                    control.say("b");
                }
                AgentEvent::TurnDone { text } => {
                    turns.push(text);
                    control.stop(false);
                }
                AgentEvent::Ended(e) => return e,
                _ => {}
            }
        }
        panic!("no ending");
    };
    let ending = timeout(Duration::from_secs(60), talk).await.unwrap();
    assert_eq!((turns, ending.status), (vec!["a".to_owned(), "b".into()], Status::Done));
}

#[tokio::test]
async fn what_is_missing_is_said_before_anything_starts() {
    let fake = Fake::headless("claude", "", "exit 0");
    let all = Adapters::new(&[]);
    for name in ["goose", "droid"] {
        let job = Job { adapter: all.get(name).unwrap(), transport: None, ..fake.job("x") };
        let job = Job { env: vec![("PATH".into(), "/nowhere".into())], ..job };
        let Err(StartError::Missing { program, hint }) = start(job, &Host::default()) else {
            panic!("{name}")
        };
        assert_eq!(program, name);
        assert!(!hint.is_empty());
    }
    let job = Job { cwd: "/no/such/folder".into(), ..fake.job("x") };
    assert!(matches!(start(job, &Host::default()), Err(StartError::Folder { .. })));
    let job = Job { transport: Some(Transport::Pty), ..fake.job("x") };
    assert!(matches!(start(job, &Host::default()), Err(StartError::NoTransport { .. })));
}

#[tokio::test]
async fn what_it_leaves_behind_may_finish_its_writing() {
    let script = format!("cat >/dev/null; {DONE}\n{{ sleep 0.1; echo saved >saved; }} >/dev/null 2>&1 &");
    let fake = Fake::headless("claude", "", &script);
    let mut job = fake.job("do it");
    job.limits.grace = Duration::from_secs(20);
    let ending = fake.ending(job).await;
    assert_eq!(ending.status, Status::Done, "{ending:?}");
    assert_eq!(std::fs::read_to_string(fake.tmp.path().join("saved")).unwrap(), "saved\n");
}

/// A program that reads its rules from a file only gets that file while it runs, and only where it must ask.
#[tokio::test]
async fn x18_the_file_that_makes_it_ask_stands_while_it_runs() {
    let more = "last = [\"-x\"]\ncareful = [\"{file}\"]\n";
    let script = "cat \"$1\" >told 2>/dev/null; printf '%s' \"$1\" >path; echo said";
    let mut fake = Fake::headless("text", more, script);
    let mut adapter = (*fake.adapter).clone();
    adapter.careful_file = Some("ask = 1\n".into());
    fake.adapter = std::sync::Arc::new(adapter);
    let read = |name: &str| std::fs::read_to_string(fake.tmp.path().join(name)).unwrap_or_default();
    let job = Job { auto_approve: false, ..fake.job("x") };
    assert_eq!(fake.ending(job).await.status, Status::Done);
    assert_eq!(read("told"), "ask = 1\n");
    let end = std::time::Instant::now() + TIMEOUT;
    while std::path::Path::new(&read("path")).exists() {
        assert!(std::time::Instant::now() < end, "the file stays");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fake.ending(fake.job("x")).await.status, Status::Done);
    assert_eq!(read("path"), "-x", "where everything is allowed there is none");
}

/// Codex reports the running total of its thread, also when the next process continues it.
#[tokio::test]
async fn the_tokens_of_a_session_are_not_counted_again_by_the_next_turn() {
    let turn = |input: u64, output: u64| {
        format!(
            r#"echo '{{"type":"thread.started","thread_id":"t1"}}'
echo '{{"type":"turn.completed","usage":{{"input_tokens":{input},"cached_input_tokens":2,"output_tokens":{output}}}}}'"#
        )
    };
    let counted = Usage { input: 8, cache_read: 2, output: 5, ..Usage::default() };
    for (counted, told, added) in [
        (Usage::default(), (10, 5), (10, 5)),
        (counted, (25, 9), (15, 4)),
        (counted, (10, 5), (0, 0)),
        // It has begun to count again.
        (counted, (6, 1), (6, 1)),
    ] {
        let fake = Fake::headless("codex", "", &turn(told.0, told.1));
        let job = Job { resume: Resume { usage: counted, ..Resume::session("t1") }, ..fake.job("and then?") };
        let (_control, said) = start(job, &Host::default()).unwrap();
        let (said, ending) = all(said).await;
        assert_eq!(ending.status, Status::Done, "{ending:?}");
        let mut sum = Usage::default();
        said.iter().for_each(|s| {
            if let AgentEvent::Usage { usage, .. } = s {
                sum.add(usage)
            }
        });
        assert_eq!((sum.context(), sum.output), added, "{told:?} after {counted:?}");
    }
    // Turns of one run.
    let count = r#"n=$(cat n 2>/dev/null || echo 0); n=$((n + 1)); echo $n >n
echo '{"type":"thread.started","thread_id":"t1"}'
echo "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":${n}0,\"output_tokens\":$n}}""#;
    let fake = Fake::headless("codex", "resume = [\"resume\", \"{session}\"]\n", count);
    let (control, mut said) = start(Job { stay: true, ..fake.job("one") }, &Host::default()).unwrap();
    let (mut sum, mut turns) = (Usage::default(), 0);
    let talk = async {
        while let Some(s) = said.recv().await {
            match s {
                AgentEvent::Usage { usage, .. } => sum.add(&usage),
                AgentEvent::TurnDone { .. } if turns < 2 => {
                    turns += 1;
                    control.say("again");
                }
                AgentEvent::TurnDone { .. } => control.stop(false),
                _ => {}
            }
        }
    };
    timeout(Duration::from_secs(60), talk).await.unwrap();
    assert_eq!((sum.input, sum.output), (30, 3));
}
