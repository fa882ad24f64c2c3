//! `tiller batch`: cases in processes of their own, here, over a real `sshd`, and at clusters of the test. Whatever is killed
//! when: each case runs once and has one result.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use tiller_testkit::ScriptServer;

use crate::common::{Out, Place, TILLER, finish, json_lines, poll, run, says, signal, wait};

/// A case program of the test: it writes its prompt and arguments to `log`, spends something at once or waits for the file `go` where the prompt says so,
/// and answers like `tiller exec --json`.
const CASE: &str = r#"#!/bin/sh
p=$(cat)
echo "$p $*" >>"HERE/log"
case $p in *spend*) echo '{"type":"agent_changed","agent":"main","view":{"id":"a1","cost":300000}}' ;; esac
case $p in wait*) while [ -d "HERE" ] && [ ! -e "HERE/go" ]; do sleep 0.05; done ;; esac
case "$p $*" in poor*--max-cost=0.[0-4]*)
  echo '{"type":"turn_finished","agent":"main","status":"limit","text":"","usage":{},"cost_usd":null,"error":{"kind":"budget","message":"the next request was not sent: its input alone costs about $0.50, and $0.00 of $0.40 in the budget of this session is already spent"}}'
  exit 4 ;;
esac
case "$p $*" in half*--max-cost=1.0*)
  echo '{"type":"turn_finished","agent":"main","status":"limit","text":"half of it","usage":{"input":9},"cost_usd":0.9,"error":{"kind":"budget","message":"the budget of this session is used up: $0.90 of $0.90"}}'
  exit 4 ;;
esac
case $p in fail*) echo "no such model" >&2; exit 2 ;; esac
printf '{"type":"turn_finished","agent":"main","status":"done","text":"%s","usage":{},"cost_usd":0.4}\n' "$(printf %s "$p" | tr -d '"')"
"#;

struct Bench {
    place: Place,
    case: PathBuf,
}

impl Bench {
    fn new(prompts: &[&str]) -> Self {
        let place = Place::new();
        let case = place.user.join("case");
        tiller_testkit::program(&case, &CASE.replace("HERE", &place.user.display().to_string()));
        let line = |p: &&str| json!({"id": p.replace(' ', "-"), "prompt": p}).to_string();
        place.file("cases.jsonl", &prompts.iter().map(line).collect::<Vec<_>>().join("\n"));
        Self { place, case }
    }

    fn command(&self, more: &[&str]) -> Command {
        let case = self.case.display().to_string();
        let mut args = vec!["batch", "cases.jsonl", "--program", &case];
        args.extend(more);
        self.place.tiller(&args)
    }

    fn batch(&self, more: &[&str]) -> Out {
        run(self.command(more), b"")
    }

    fn start(&self, more: &[&str]) -> Child {
        let mut command = self.command(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn go(&self) {
        std::fs::write(self.place.user.join("go"), "").unwrap();
    }

    /// What the case program was started with, sorted.
    fn log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.place.user.join("log")).unwrap_or_default();
        let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// The prompts that it was started with.
    fn ran(&self) -> Vec<String> {
        let first = |line: &String| line.split(" exec ").next().unwrap_or_default().to_owned();
        self.log().iter().map(first).collect()
    }

    fn results(&self) -> Vec<Value> {
        let path = self.place.work.join("cases.results.jsonl");
        let mut all = json_lines(&std::fs::read_to_string(path).unwrap_or_default());
        all.sort_by_key(|result| result["id"].to_string());
        all
    }

    fn add_path(&mut self) -> PathBuf {
        let bin = self.place.user.join("bin");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        self.place.set("PATH", &path);
        bin
    }
}

/// Each case is Tiller itself, with its own session, answer and cost.
#[test]
fn each_case_is_a_turn_of_its_own_and_has_a_result() {
    let server = ScriptServer::start([says("One."), says("Two."), says("Three.")]);
    let place = Place::anthropic(&server);
    let long = "x".repeat(300_000);
    place.file("sub/a.txt", "a\n");
    let cases = [
        json!({"id": "first", "prompt": "say it"}),
        json!({"id": "long", "prompt": long, "dir": "sub"}),
        json!({"prompt": "-not an option"}),
    ];
    place.file("all.jsonl", &cases.map(|c| c.to_string() + "\n").concat());
    let out = place.run(&["batch", "all.jsonl", "--jobs", "1", "--out", "out.jsonl"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stdout.starts_with("3 cases: 3 done, 0 failed, 0 left"), "{out:?}");
    assert!(out.stderr.contains("[3/3] 3 done"), "{out:?}");
    let results = json_lines(&place.read("out.jsonl"));
    let of =
        |name: &str| results.iter().map(|r| r[name].as_str().unwrap_or("?").to_owned()).collect::<Vec<_>>();
    assert_eq!(
        (of("id"), of("text")),
        (
            vec!["first".into(), "long".into(), "3".into()],
            vec!["One.".into(), "Two.".into(), "Three.".into()]
        )
    );
    for result in &results {
        assert!(result["exit"] == 0 && result["cost_usd"].as_f64().unwrap() > 0.0, "{result}");
        assert!(result["session"].is_string() && result["launcher"] == "local", "{result}");
    }
    let bodies = server.bodies();
    assert!(bodies.len() == 3 && bodies[1]["messages"].to_string().contains(&long), "{}", bodies.len());
    let again = place.run(&["batch", "all.jsonl", "--out", "out.jsonl"]);
    assert!(again.code == Some(0) && server.bodies().len() == 3, "{again:?}");
    assert!(again.stderr.contains("3 of 3 cases have a result already"), "{again:?}");
}

/// A file of cases may come from others: what widens their rights needs the person's word.
#[test]
fn cases_that_widen_their_rights_are_refused_without_trust() {
    let bench = Bench::new(&["a"]);
    let case = json!({"id": "wide", "prompt": "a", "profile": "full", "allow": ["terminal(*)"], "dir": "/"});
    bench.place.file("cases.jsonl", &(case.to_string() + "\n"));
    let out = bench.batch(&[]);
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(out.stderr.contains("wide (profile, allow, dir)") && out.stderr.contains("--trust"), "{out:?}");
    assert_eq!(bench.batch(&["--trust"]).code, Some(0));
}

#[test]
fn wrong_cases_are_said_before_anything_runs() {
    let bench = Bench::new(&["a"]);
    bench.place.file("cases.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": \"\"}\n{\"id\": \"b\"}\n");
    let out = bench.batch(&[]);
    assert!(out.code == Some(2) && out.stderr.contains("Line 2: the prompt is empty"), "{out:?}");
    assert!(out.stderr.contains("Line 3: missing field `prompt`"), "{out:?}");
    bench.place.file("cases.jsonl", "{\"prompt\": \"a\", \"dir\": \"none\"}\n");
    let out = bench.batch(&[]);
    assert!(out.code == Some(2) && out.stderr.contains("/none of the case 1 does not exist"), "{out:?}");
    for (launcher, what) in [("ssh", "needs --host HOST"), ("kubernetes", "needs --image IMAGE")] {
        let out = bench.batch(&["--launcher", launcher]);
        assert!(out.code == Some(2) && out.stderr.contains(what), "{out:?}");
    }
    bench.place.file("cases.jsonl", "{\"prompt\": \"a\"}\n");
    assert_eq!(bench.batch(&[]).code, Some(0));
    bench.place.file("cases.jsonl", "{\"prompt\": \"b\"}\n");
    let out = bench.batch(&[]);
    assert!(out.code == Some(2) && out.stderr.contains("case 1 has changed"), "{out:?}");
    assert_eq!(bench.ran(), ["a"]);
}

/// A failed case has a result with the reason; only `--retry` runs it again.
#[test]
fn a_failed_case_is_not_repeated_unless_the_person_says_so() {
    let bench = Bench::new(&["a", "fail b"]);
    let out = bench.batch(&[]);
    assert_eq!(out.code, Some(1), "{out:?}");
    let results = bench.results();
    assert!(results[1]["status"] == "failed" && results[1]["exit"] == 2, "{results:?}");
    assert_eq!(results[1]["error"], "no such model");
    assert_eq!(bench.batch(&[]).code, Some(1));
    assert_eq!(bench.ran(), ["a", "fail b"]);
    let out = bench.batch(&["--retry"]);
    assert!(out.code == Some(1) && out.stdout.contains("2 cases: 1 done, 1 failed, 0 left"), "{out:?}");
    assert_eq!(bench.ran(), ["a", "fail b", "fail b"]);
    assert_eq!(bench.results().last().unwrap()["attempt"], 2);
}

/// Kill -9 of the batch while two cases run: they go on, are found again, and nothing runs twice.
#[test]
fn a_killed_batch_goes_on_without_losing_or_repeating_a_case() {
    let bench = Bench::new(&["a", "wait b", "wait c", "d", "e"]);
    let mut child = bench.start(&["--jobs", "2"]);
    wait("both cases to run", || bench.ran().len() == 3 && bench.results().len() == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(bench.results().len(), 1);
    let child = bench.start(&["--jobs", "3"]);
    wait("the other cases to end", || bench.results().len() == 3);
    assert_eq!(bench.ran(), ["a", "d", "e", "wait b", "wait c"], "those that run are not started again");
    let second = bench.batch(&[]);
    assert!(second.code == Some(2) && second.stderr.contains("cases.results.jsonl runs"), "{second:?}");
    bench.go();
    let out = finish(child);
    assert!(out.code == Some(0) && out.stdout.contains("5 cases: 5 done"), "{out:?}");
    assert_eq!(bench.results().len(), 5);
    assert_eq!(bench.ran().len(), 5);
}

/// Killed at many moments, among them those between an end and its result.
#[test]
fn a_batch_that_is_killed_again_and_again_comes_to_its_end() {
    let prompts: Vec<String> = (0..12).map(|n| format!("p{n:02}")).collect();
    let bench = Bench::new(&prompts.iter().map(String::as_str).collect::<Vec<_>>());
    let mut ended = false;
    for n in 0..60_u64 {
        let mut child = bench.start(&["--jobs", "3"]);
        let limit = std::time::Duration::from_millis(20 + n * 7);
        ended = poll(limit, || child.try_wait().unwrap()).is_some_and(|status| status.success());
        let _ = child.kill();
        child.wait().unwrap();
        if ended {
            break;
        }
    }
    assert!(ended || bench.batch(&["--jobs", "3"]).code == Some(0));
    let ids: Vec<String> = bench.results().iter().map(|r| r["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, prompts);
    assert_eq!(bench.ran(), prompts);
}

#[test]
fn an_interrupted_case_is_run_again_and_the_others_are_not() {
    let bench = Bench::new(&["a", "wait b", "c"]);
    let child = bench.start(&["--jobs", "1"]);
    wait("the case to run", || bench.ran().len() == 2);
    signal(child.id(), Signal::INT);
    let out = finish(child);
    assert!(out.code == Some(130) && out.stdout.contains("3 cases: 1 done, 0 failed, 2 left"), "{out:?}");
    assert!(out.stderr.contains("continued when you run this batch again"), "{out:?}");
    bench.go();
    assert_eq!(bench.batch(&[]).code, Some(0));
    assert_eq!(bench.ran(), ["a", "c", "wait b", "wait b"]);
    assert_eq!(bench.results().len(), 3);
}

/// What an attempt cost that was interrupted counts: in the budget, in the last line, and in the result.
#[test]
fn the_cost_of_an_interrupted_attempt_counts() {
    let bench = Bench::new(&["wait spend b"]);
    let child = bench.start(&["--max-cost", "2"]);
    let events = bench.place.work.join("cases.results.jsonl.d/wait-spend-b/events");
    wait("the case to cost something", || {
        std::fs::read_to_string(&events).is_ok_and(|text| text.ends_with("}}\n"))
    });
    signal(child.id(), Signal::INT);
    let out = finish(child);
    assert!(out.code == Some(130) && out.stdout.contains("0 done, 0 failed, 1 left; $0.30"), "{out:?}");
    bench.go();
    let out = bench.batch(&["--max-cost", "2"]);
    assert!(out.code == Some(0) && out.stdout.contains("1 done, 0 failed, 0 left; $0.70"), "{out:?}");
    assert!(bench.log()[0].contains("--max-cost=1.700000 -"), "{:?}", bench.log());
    assert_eq!(bench.results()[0]["cost_usd"], 0.7);
    let out = bench.batch(&["--max-cost", "2"]);
    assert!(out.stdout.contains("; $0.70"), "it is not counted twice: {out:?}");
}

/// Each case has a part of the money as its own limit; what is left over is for the next ones.
#[test]
fn all_cases_together_keep_to_the_budget() {
    let bench = Bench::new(&["a", "b", "c", "d"]);
    let out = bench.batch(&["--jobs", "1", "--max-cost", "1.00"]);
    assert_eq!(out.code, Some(4), "{out:?}");
    assert!(out.stdout.contains("4 cases: 3 done, 0 failed, 1 left; $1.20"), "{out:?}");
    let limits: Vec<String> =
        bench.log().iter().map(|l| l.split("--max-cost=").nth(1).unwrap().to_owned()).collect();
    assert_eq!(limits, ["1.000000 -", "0.600000 -", "0.200000 -"]);
    let out = bench.batch(&["--max-cost", "5"]);
    assert!(out.code == Some(0) && out.stdout.contains("4 done"), "{out:?}");
    assert!(bench.log()[3].contains("--max-cost=3.800000 -"), "{:?}", bench.log());
}

/// A share that is too small for one request is not handed out again: the case gets a larger one, or is not run.
#[test]
fn cases_for_which_the_money_does_not_suffice_are_not_run() {
    let bench = Bench::new(&["poor a", "poor b", "poor c"]);
    let out = bench.batch(&["--jobs", "3", "--max-cost", "1.00"]);
    assert_eq!(out.code, Some(4), "{out:?}");
    assert!(out.stdout.contains("3 cases: 2 done, 0 failed, 1 left; $0.80"), "{out:?}");
    assert!(
        out.stderr.contains("does not suffice for 1 of the cases") && out.stderr.contains("not run: "),
        "{out:?}"
    );
    assert!(bench.results().len() == 2 && bench.results().iter().all(|r| r["status"] == "done"), "{out:?}");
    let tries = bench.log().len();
    let out = bench.batch(&["--jobs", "3", "--max-cost", "1.00"]);
    assert!(out.code == Some(4) && out.stdout.contains("2 done, 0 failed, 1 left; $0.80"), "{out:?}");
    assert!(bench.log().len() <= tries + 1, "{:?}", bench.log());
    let out = bench.batch(&["--jobs", "3", "--max-cost", "5"]);
    assert!(
        out.code == Some(0) && out.stdout.contains("3 cases: 3 done, 0 failed, 0 left; $1.20"),
        "{out:?}"
    );
}

/// A case that used up its share in the middle has no result either, and what it cost counts.
#[test]
fn a_case_that_the_money_of_the_batch_cut_off_goes_on_later() {
    let bench = Bench::new(&["half a"]);
    let out = bench.batch(&["--max-cost", "1.00"]);
    assert!(out.code == Some(4) && out.stdout.contains("0 done, 0 failed, 1 left; $0.90"), "{out:?}");
    assert!(bench.results().is_empty(), "{out:?}");
    let out = bench.batch(&["--max-cost", "5"]);
    assert!(out.code == Some(0) && out.stdout.contains("1 done, 0 failed, 0 left; $1.30"), "{out:?}");
    assert!(bench.log().iter().any(|line| line.contains("--max-cost=4.100000")), "{:?}", bench.log());
    // The limit of the case itself is a result.
    let bench = Bench::new(&[]);
    let case = json!({"id": "own", "prompt": "half", "max_cost": 1.0});
    bench.place.file("cases.jsonl", &(case.to_string() + "\n"));
    let out = bench.batch(&["--max-cost", "5"]);
    assert!(out.code == Some(1) && out.stdout.contains("0 done, 1 failed, 0 left; $0.90"), "{out:?}");
}

/// One case that needs more than there is does not hold up the others, and one that was cut off goes on with the rest.
#[test]
fn a_costly_case_does_not_hold_up_the_others() {
    let bench = Bench::new(&["poor a", "b", "c"]);
    let out = bench.batch(&["--jobs", "1", "--max-cost", "0.49"]);
    assert_eq!(out.code, Some(4), "{out:?}");
    assert!(out.stdout.contains("3 cases: 2 done, 0 failed, 1 left"), "{out:?}");
    assert_eq!(bench.ran(), ["b", "c", "poor a"]);
    let bench = Bench::new(&["half a", "b"]);
    let out = bench.batch(&["--jobs", "2", "--max-cost", "2.00"]);
    assert_eq!(out.code, Some(4), "{out:?}");
    assert!(out.stdout.contains("1 done, 0 failed, 1 left"), "{out:?}");
    assert!(out.stderr.contains("half-a cut off, without a result: "), "{out:?}");
    let bench = Bench::new(&["half a", "b", "c", "d"]);
    let out = bench.batch(&["--jobs", "4", "--max-cost", "4.00"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stdout.contains("4 done, 0 failed, 0 left; $2.50"), "{out:?}");
}

/// A program for `sbatch` and `squeue`: jobs are processes of this machine. With a file `kill`, submitting kills the batch
/// before it learns the number of the job.
fn slurm(bench: &mut Bench) {
    let bin = bench.add_path();
    let user = bench.place.user.display().to_string();
    let sbatch = r#"#!/bin/sh
for a; do case $a in --job-name=*) name=${a#*=} ;; esac; last=$a; done
mkdir -p "HERE/jobs" && id=$(($(ls "HERE/jobs" | wc -l) + 100))
setsid sh "$last" </dev/null >/dev/null 2>&1 &
echo "$name $!" >"HERE/jobs/$id"
[ ! -e "HERE/kill" ] || { rm "HERE/kill"; kill -9 $PPID; sleep 1; }
echo "$id"
"#;
    let squeue = r#"#!/bin/sh
for a; do case $a in --name=*) want=${a#*=} ;; esac; done
for f in "HERE/jobs"/*; do
  read -r name pid <"$f"
  [ "$name" = "$want" ] || continue
  if kill -0 "$pid" 2>/dev/null; then echo "${f##*/}"; fi
done
"#;
    tiller_testkit::program(&bin.join("sbatch"), &sbatch.replace("HERE", &user));
    tiller_testkit::program(&bin.join("squeue"), &squeue.replace("HERE", &user));
}

#[test]
fn slurm_runs_each_case_once_even_when_the_batch_dies_while_it_submits() {
    let mut bench = Bench::new(&["a", "wait b", "fail c"]);
    slurm(&mut bench);
    std::fs::write(bench.place.user.join("kill"), "").unwrap();
    let out = bench.batch(&["--launcher", "slurm", "--jobs", "1"]);
    assert_eq!(out.code, None, "{out:?}");
    wait("the job that was submitted", || bench.ran() == ["a"]);
    let child = bench.start(&["--launcher", "slurm", "--jobs", "3"]);
    wait("the result of the first job", || bench.results().iter().any(|r| r["id"] == "a"));
    wait("the other jobs", || bench.ran().len() == 3);
    signal(child.id(), Signal::INT);
    assert_eq!(finish(child).code, Some(130));
    bench.go();
    let out = bench.batch(&["--launcher", "slurm"]);
    assert!(out.code == Some(1) && out.stdout.contains("3 cases: 2 done, 1 failed, 0 left"), "{out:?}");
    assert_eq!(bench.ran(), ["a", "fail c", "wait b"], "the one that was left in the queue went on");
    let results = bench.results();
    assert!(results[1]["error"] == "no such model" && results[1]["exit"] == 2, "{results:?}");
}

/// A job whose share did not suffice is submitted anew, with all of its state set aside: also after a kill at any moment.
#[test]
fn a_job_for_which_the_money_did_not_suffice_is_submitted_again() {
    let mut bench = Bench::new(&["poor a", "b"]);
    slurm(&mut bench);
    let out = bench.batch(&["--launcher", "slurm", "--jobs", "2", "--max-cost", "0.95"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stdout.contains("2 cases: 2 done, 0 failed, 0 left; $0.80"), "{out:?}");
    assert_eq!(bench.ran(), ["b", "poor a", "poor a"]);
    // As a kill leaves it: an attempt that was cut off, whose exit code is gone.
    let mut bench = Bench::new(&["half a"]);
    slurm(&mut bench);
    let out = bench.batch(&["--launcher", "slurm", "--max-cost", "1.00"]);
    assert_eq!(out.code, Some(4), "{out:?}");
    let folder = bench.place.work.join("cases.results.jsonl.d/half-a");
    std::fs::rename(folder.join("events.1"), folder.join("events")).unwrap();
    let out = bench.batch(&["--launcher", "slurm", "--max-cost", "5"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stdout.contains("1 done, 0 failed, 0 left; $1.30"), "{out:?}");
}

/// A job that the queue no longer knows, and that left nothing.
#[test]
fn a_job_that_the_cluster_lost_is_said_to_be_lost() {
    let mut bench = Bench::new(&["a"]);
    slurm(&mut bench);
    tiller_testkit::program(&bench.place.user.join("bin/sbatch"), "#!/bin/sh\necho 7\n");
    std::fs::create_dir(bench.place.user.join("jobs")).unwrap();
    let out = bench.batch(&["--launcher", "slurm"]);
    assert_eq!(out.code, Some(1), "{out:?}");
    let results = bench.results();
    assert!(
        results[0]["status"] == "lost" && results[0]["error"] == "the job 7 ended without a result",
        "{results:?}"
    );
    tiller_testkit::program(
        &bench.place.user.join("bin/sbatch"),
        "#!/bin/sh\necho 'no partition' >&2; exit 1\n",
    );
    let out = bench.batch(&["--launcher", "slurm", "--retry"]);
    assert!(out.code == Some(2) && out.stderr.contains("sbatch failed: no partition"), "{out:?}");
}

/// A `kubectl` whose jobs are processes of this machine; it replaces `$$` as a cluster does.
const KUBECTL: &str = r#"#!/usr/bin/env python3
import json, os, subprocess, sys
here = "HERE/cluster"
os.makedirs(here, exist_ok=True)
args = [a for a in sys.argv[1:] if not a.startswith("--")]
flags = sys.argv[1:]
open("HERE/kubectl", "a").write(" ".join(flags[:2]) + "\n")
if "--namespace=lab" not in flags:
    sys.exit("error: no namespace")
at = lambda job, kind: os.path.join(here, job.replace("job/", "") + kind)
if args[0] == "apply":
    job = json.load(sys.stdin)
    spec = job["spec"]["template"]["spec"]["containers"][0]
    name = job["metadata"]["name"]
    plain = lambda text: text.replace("$$", "$")
    env = {**os.environ, **{e["name"]: plain(e["value"]) for e in spec["env"]}}
    env["FROM"] = ",".join(s["secretRef"]["name"] for s in spec["envFrom"])
    command = [plain(word) for word in spec["command"]]
    out = open(at(name, ".log"), "w")
    line = ["sh", "-c", '"$@"; echo >"$0"', at(name, ".end")] + command
    subprocess.Popen(line, env=env, cwd=spec["workingDir"], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
elif args[0] == "get":
    known = os.path.exists(at(args[1], ".log"))
    if "--output=name" in flags:
        print(args[1] if known else "")
    elif not known:
        sys.exit('Error from server (NotFound): jobs.batch "x" not found')
    else:
        ended = os.path.exists(at(args[1], ".end"))
        print(json.dumps({"status": {"succeeded": 1} if ended else {"active": 1}}))
elif args[0] == "logs":
    sys.stdout.write(open(at(args[1], ".log")).read())
elif args[0] == "delete":
    for kind in (".log", ".end"):
        os.remove(at(args[1], kind))
"#;

#[test]
fn kubernetes_runs_a_job_for_each_case_and_removes_it_once_its_result_is_stored() {
    let mut bench = Bench::new(&["a $HOME $(X) $$ 'q' \"d\"", "wait b", "fail c"]);
    let lines = bench.place.read("cases.jsonl");
    // Their first names are not those of files.
    let ids = ["a", "b", "c"].iter().zip(lines.lines()).map(|(id, line)| {
        let mut case: Value = serde_json::from_str(line).unwrap();
        case["id"] = json!(id);
        case.to_string()
    });
    let ids: Vec<String> = ids.collect();
    bench.place.file("cases.jsonl", &ids.join("\n"));
    let bin = bench.add_path();
    if tiller_tool::shell::find_program("python3", &bench.place.env).is_none() {
        return println!("skipped: there is no python3");
    }
    tiller_testkit::program(
        &bin.join("kubectl"),
        &KUBECTL.replace("HERE", &bench.place.user.display().to_string()),
    );
    let work = bench.place.work.display().to_string();
    let all = [
        "--launcher",
        "kubernetes",
        "--image",
        "tiller",
        "--option=--namespace=lab",
        "--secret",
        "keys",
        "-C",
        &work,
    ];
    let child = bench.start(&[&all[..], &["--jobs", "2"]].concat());
    wait("the second job", || bench.ran().len() == 2);
    wait("the first result", || bench.results().len() == 1);
    signal(child.id(), Signal::KILL);
    assert_eq!(finish(child).code, None);
    bench.go();
    let out = bench.batch(&all);
    assert!(out.code == Some(1) && out.stdout.contains("3 cases: 2 done, 1 failed, 0 left"), "{out:?}");
    let results = bench.results();
    assert_eq!(results[2]["exit"], 2, "{results:?}");
    assert_eq!(bench.ran(), ["a $HOME $(X) $$ 'q' \"d\"", "fail c", "wait b"]);
    // The job of the first case may have been left when the batch was killed after its result.
    let left = std::fs::read_dir(bench.place.user.join("cluster")).unwrap().count();
    assert!(left <= 2, "{left}");
}

/// A real `sshd` on loopback, with keys, a port and a home folder of its own. Ends when it is dropped.
struct Machine {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Machine {
    fn start(place: &Place) -> Option<Self> {
        if !Path::new("/usr/sbin/sshd").exists() {
            eprintln!("skipped: no sshd here (Debian: openssh-server)");
            return None;
        }
        let folder = place.user.join("machine");
        std::fs::create_dir(&folder).unwrap();
        for key in ["host", "id"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(folder.join(key))
                .status()
                .unwrap();
            assert!(made.success());
        }
        std::fs::copy(folder.join("id.pub"), folder.join("authorized")).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let _ = std::fs::create_dir("/run/sshd");
        let vars = place.env.iter().filter(|(name, _)| name != "PATH");
        let vars: Vec<String> = vars.map(|(name, value)| format!("\"{name}={value}\"")).collect();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey \"{0}/host\"\nAuthorizedKeysFile \"{0}/authorized\"\nPidFile none\n\
             UsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nSetEnv {1}\n",
            folder.display(),
            vars.join(" ")
        );
        std::fs::write(folder.join("config"), config).unwrap();
        let host = std::fs::read_to_string(folder.join("host.pub")).unwrap();
        std::fs::write(folder.join("known"), format!("[127.0.0.1]:{port} {host}")).unwrap();
        let mut server = Command::new("/usr/sbin/sshd");
        server.args(["-D", "-e", "-f"]).arg(folder.join("config")).stdin(Stdio::null()).stdout(Stdio::null());
        let child = server.stderr(std::fs::File::create(folder.join("log")).unwrap()).spawn().unwrap();
        wait("sshd to listen", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Self { child, port, folder })
    }

    fn options(&self) -> Vec<String> {
        let f = self.folder.display();
        [
            format!("Port={}", self.port),
            format!("IdentityFile=\"{f}/id\""),
            "IdentitiesOnly=yes".to_owned(),
            format!("UserKnownHostsFile=\"{f}/known\""),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
        ]
        .into_iter()
        .flat_map(|option| ["--option".to_owned(), option])
        .collect()
    }
}

#[test]
fn cases_run_on_another_machine_over_ssh() {
    let server = ScriptServer::start([says("From there."), says("It's there too.")]);
    let place = Place::anthropic(&server);
    let Some(machine) = Machine::start(&place) else { return };
    let cases = [json!({"id": "a", "prompt": "it's \"quoted\" $HOME"}), json!({"id": "b", "prompt": "-b"})];
    place.file("cases.jsonl", &cases.map(|c| c.to_string() + "\n").concat());
    let folder = place.user.join("work dir");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.display().to_string();
    let mut args = vec![
        "batch",
        "cases.jsonl",
        "--launcher",
        "ssh",
        "--host",
        "127.0.0.1",
        "--program",
        TILLER,
        "-C",
        &folder,
    ];
    args.extend(["--jobs", "1"]);
    let options = machine.options();
    args.extend(options.iter().map(String::as_str));
    let out = place.run(&args);
    assert_eq!(out.code, Some(0), "{out:?} {}", std::fs::read_to_string(machine.folder.join("log")).unwrap());
    let results = json_lines(&place.read("cases.results.jsonl"));
    assert_eq!(
        results.iter().map(|r| r["text"].as_str().unwrap()).collect::<Vec<_>>(),
        ["From there.", "It's there too."]
    );
    let asked = server.bodies()[0]["messages"].to_string();
    assert!(asked.contains(r#"it's \"quoted\" $HOME"#), "{asked}");
    assert!(server.bodies()[0].to_string().contains("work dir"), "it works in its folder there");
}

/// The connection breaks, the host key is another one, the host is not there: said as the result or the reason, once.
#[test]
fn what_fails_on_the_way_to_another_machine_is_said() {
    let mut bench = Bench::new(&["wait a"]);
    let Some(machine) = Machine::start(&bench.place) else { return };
    let options = machine.options();
    let mut args = vec!["--launcher", "ssh", "--host", "127.0.0.1"];
    args.extend(options.iter().map(String::as_str));
    let child = bench.start(&args);
    wait("the case to run there", || bench.ran().len() == 1);
    assert!(tiller_testkit::cut_connections(machine.child.id()));
    let out = finish(child);
    assert_eq!(out.code, Some(1), "{out:?}");
    let results = bench.results();
    assert_eq!(results[0]["status"], "lost", "{results:?}");
    std::fs::write(machine.folder.join("known"), "").unwrap();
    let out = bench.batch(&[&args[..], &["--retry"]].concat());
    assert_eq!(out.code, Some(1), "{out:?}");
    let error = bench.results()[1]["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("Host key verification failed"), "{error}");
    assert_eq!(bench.ran().len(), 1, "nothing was started there");
    bench.go();
    bench.place.set("DONE", "1");
}
