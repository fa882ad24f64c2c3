//! X6 against the real thing: what bash would run must never be missed.
//!
//! Random lines are judged, and then run by bash in an empty folder where the only programs are a
//! canary called `rm` and some wrappers. When the canary ran, the line must not have been allowed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tiller_protocol::{Access, Profile, Touch};

use crate::decide::{Human, Policy, Request, decide};
use crate::paths::Roots;
use crate::rules::{Effect, Rule, Source};

/// Lines in a quick run.
const LINES: usize = 3_000;
/// Longest time of one line.
const LIMIT: Duration = Duration::from_secs(5);

const PIECES: &[&str] = &[
    "rm x",
    "rm x",
    "rm",
    "\\rm x",
    "r''m x",
    "'rm' x",
    "r\"\"m x",
    "$'r\\x6d' x",
    "r\\\nm x",
    "echo a",
    "echo",
    "true",
    "false",
    ":",
    " ",
    " ",
    "\n",
    ";",
    "; ",
    "&&",
    "||",
    "|",
    "|&",
    "!",
    "(",
    ")",
    "{ ",
    "; }",
    "$(",
    "`",
    "\"",
    "'",
    "\"$(",
    ")\"",
    "\\",
    "#",
    " # ",
    "$((",
    "))",
    "((",
    "[[ ",
    " ]]",
    "-n ",
    " == ",
    "if ",
    "then ",
    "; then ",
    "else ",
    "fi",
    "; fi",
    "for i in a b",
    "; do ",
    "; done",
    "case a in ",
    "a) ",
    ";; ",
    "esac",
    "*) ",
    "<<E\n",
    "\nE\n",
    "<<'E'\n",
    "<<-E\n",
    "<<< ",
    "<(",
    ">(",
    "> f",
    ">> f ",
    "2>&1 ",
    "&> f",
    ">| f",
    "3<> f",
    "A=",
    "A=1 ",
    "${A:-",
    "${A:+",
    "${A//a/",
    "}",
    "A[",
    "]=1",
    "env ",
    "env A=1 ",
    "env -i ",
    "command ",
    "exec ",
    "eval ",
    "builtin ",
    "nice ",
    "nice -n 1 ",
    "timeout 3 ",
    "xargs ",
    "sh -c ",
    "bash -c ",
    "sh -c 'rm x'",
    "eval 'rm x'",
    "time ",
    "coproc ",
    "f() { ",
    "function g { ",
    "trap 'rm x' EXIT",
    "$A",
    "\"$A\"",
    "{rm,x}",
    "{a,b}",
    "é",
    "~",
    "=",
    "==",
    "\t",
    "&",
    "$",
    "${",
    "@",
    "$[",
    "]",
    "[",
    "extglob",
    "@(",
    "?(",
    "a)",
    "alias q=rm\nq x",
    "select i in a",
    "until ",
    "$\"",
    "-",
    "--",
    "\r",
    "find . -exec ",
    " \\; ",
    "declare ",
    "local ",
    "export A=",
    "( (",
    ") )",
    "-- ",
    "- ",
    "jobs -x ",
    "echo 'rm x'",
    "/dev/stdin ",
    "source ",
    "A='a[$(rm x)]'",
    "$((A))",
    "declare -A A=([",
    "]=1)",
    "mapfile -C ",
];

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

fn program(name: &str) -> Option<PathBuf> {
    ["/bin", "/usr/bin"].iter().map(|d| Path::new(d).join(name)).find(|p| p.exists())
}

#[test]
fn x6_what_bash_runs_is_never_missed() {
    let Some(bash) = program("bash") else { return println!("skipped: there is no bash") };
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    fs::create_dir(&work).unwrap();
    let mut policy = Policy::new(Roots::new(&work, None, vec![]), crate::testing::tools())
        .within(std::sync::Arc::new(crate::surroundings::testing::Calm));
    policy
        .rules
        .push(Rule::parse(Effect::Deny, Source::User, "terminal(rm *)", &crate::testing::tools()).unwrap());
    policy
        .rules
        .push(Rule::parse(Effect::Deny, Source::User, "terminal(rm)", &crate::testing::tools()).unwrap());
    let mut rng = Rng(SEED);
    let (mut ran, mut asked) = (0, 0);
    let mut missed: Vec<String> = Vec::new();
    for n in 0..LINES {
        let count = 1 + rng.below(9);
        let line: String = (0..count).map(|_| PIECES[rng.below(PIECES.len())]).collect();
        // Without the word the canary cannot run.
        if !line.contains('m') {
            continue;
        }
        let folder = work.display().to_string();
        let access = [Access::Run { command: line.clone(), folder, background: false }];
        let request = Request {
            profile: Profile::Full,
            human: Human::Present,
            agent: "main",
            tool: "terminal",
            touch: Touch::Execute,
            access: &access,
            raw: &line,
        };
        let verdict = decide(&policy, &request);
        if verdict.strictness() == 2 {
            continue;
        }
        // A folder of its own for each line: what an earlier one left in the background is not this one's.
        let bin = dir.path().join(format!("bin{n}"));
        let canary = dir.path().join(format!("canary{n}"));
        programs(&bash, &bin, &canary);
        run(&bash, &bin, &work, &line);
        fs::remove_dir_all(&bin).unwrap();
        if canary.exists() {
            ran += 1;
            asked += usize::from(verdict.strictness() == 1);
            if verdict.strictness() == 0 {
                missed.push(line);
            }
        }
    }
    assert!(ran > 0, "the canary never ran: the test tests nothing");
    assert_eq!(ran, asked + missed.len());
    assert!(missed.is_empty(), "bash ran the canary in lines that were allowed: {missed:#?}");
}

/// Lays out what a line may run.
fn programs(bash: &Path, bin: &Path, canary: &Path) {
    fs::create_dir(bin).unwrap();
    for name in ["env", "nice", "timeout", "xargs", "cat", "find"] {
        if let Some(p) = program(name) {
            symlink(p, bin.join(name)).unwrap();
        }
    }
    symlink(bash, bin.join("sh")).unwrap();
    symlink(bash, bin.join("bash")).unwrap();
    fs::write(bin.join("rm"), format!("#!{}\n: > '{}'\n", bash.display(), canary.display())).unwrap();
    fs::set_permissions(bin.join("rm"), fs::Permissions::from_mode(0o755)).unwrap();
}

const SEED: u64 = 0x1234_5678_9ABC;

fn run(bash: &Path, bin: &Path, work: &Path, line: &str) {
    let mut child = Command::new(bash)
        .args(["--norc", "--noprofile", "-c", line])
        .env_clear()
        .env("PATH", bin)
        .current_dir(work)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        }
        std::thread::yield_now();
    }
}
