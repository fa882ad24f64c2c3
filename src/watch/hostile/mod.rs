//! X15: in a hostile repository no program runs without approval. Every repository meets every command of the table;
//! allowed commands run as the terminal tool runs them, with the real programs, and no canary may appear.

mod repositories;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tiller_permit::{Human, Policy, Request, Roots, Verdict, decide_in};
use tiller_protocol::{Access, Part, Profile, Touch};
use tiller_tool::testing::Bench;
use tiller_tool::{ChildEnv, Tool};

use repositories::{HOSTILE, Hostile};

const ROWS: &str = include_str!("../../permit/read_only/rows.txt");
const EVERYDAY: &str = include_str!("../../permit/read_only/everyday.txt");

/// Must not appear in any output.
const SECRET: &str = "canary-5b1f";

fn commands(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'))
}

struct World {
    bench: Bench,
    _plain: Option<tempfile::TempDir>,
    canaries: PathBuf,
    policy: Policy,
}

impl World {
    fn new(hostile: &Hostile) -> Self {
        let mut bench = Bench::new();
        let top = bench.scratch.path().canonicalize().unwrap();
        let (work, canaries, out) = (bench.root.clone(), top.join("canaries"), top.join("out"));
        for folder in [&canaries, &out, &top.join("home")] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(out.join("secret"), format!("{SECRET}\n")).unwrap();
        // A shell gets its path as it is: it must be one word.
        let blank = top.to_string_lossy().contains(char::is_whitespace);
        let plain = blank.then(|| tempfile::tempdir_in("/var/tmp").unwrap());
        let evil = plain.as_ref().map_or(top.as_path(), tempfile::TempDir::path).join("evil");
        let body = format!(
            "#!/bin/sh\n: >'{0}'/ran-$$\n/bin/cat \"$@\" 2>/dev/null </dev/null\n",
            canaries.display()
        );
        std::fs::write(&evil, body).unwrap();
        // Names of programs of the table; a folder may hold files of these names.
        let all: Vec<&str> = commands(ROWS)
            .filter_map(|c| c.split_whitespace().next())
            .filter(|n| n.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
            .collect();
        let base = "chmod +x \"$EVIL\"; git init -q -b main .; git config user.name t; git config user.email t@t; \
                    mkdir src sub; echo a >f.txt; echo a >src/a.rs; echo a >sub/a.rs; echo '{\"a\":1}' >data.json; echo a >x.rs; \
                    git add .; git commit -qm one; echo b >>f.txt; ";
        let made = std::process::Command::new("sh")
            .args(["-ec", &format!("{base}{}", hostile.setup)])
            .current_dir(&work)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("HOME", top.join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs([("C", &canaries), ("EVIL", &evil), ("OUT", &out), ("WORK", &work)])
            .env("ALL", all.join(" "))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}: {}", hostile.name, String::from_utf8_lossy(&made.stderr));
        let mut path = std::env::var("PATH").unwrap();
        if hostile.shown_by == "ls" || !hostile.path.is_empty() {
            let first =
                hostile.path.replace("$WORK", work.to_str().unwrap()).replace("$OUT", out.to_str().unwrap());
            path = format!("{first}:{path}");
        }
        let mut env = vec![
            ("PATH".to_owned(), path),
            ("HOME".to_owned(), top.join("home").display().to_string()),
            ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
        ];
        // Launchers of the machine find their own folders by these, or by the home folder.
        let home = std::env::var("HOME").unwrap_or_default();
        for (name, below) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
            let value = std::env::var(name).unwrap_or_else(|_| format!("{home}/{below}"));
            env.push((name.to_owned(), value));
        }
        bench.cx.child_env = Arc::new(env.clone());
        let around = Arc::new(crate::GitSurroundings::new(ChildEnv::new(env)));
        let roots = Roots::new(&work, Some(top.join("home")), vec![]);
        Self {
            bench,
            _plain: plain,
            canaries,
            policy: Policy::new(roots, tiller_tool::Registry::built_in().catalog()).within(around),
        }
    }

    /// Whether something was run or shown that must not be.
    fn fired(&self, said: &str) -> bool {
        let files = std::fs::read_dir(&self.canaries).unwrap().next().is_some();
        files || said.contains(SECRET) || found(&self.bench.root, "CANARY")
    }

    fn clear(&self) {
        for entry in std::fs::read_dir(&self.canaries).unwrap().flatten() {
            std::fs::remove_file(entry.path()).unwrap();
        }
        let _ = std::fs::remove_file(self.bench.root.join("CANARY"));
    }

    async fn run(&self, command: &str, variables: Vec<(String, String)>) -> String {
        let mut cx = self.bench.cx.clone();
        cx.run = Arc::new(tiller_tool::CommandRun::reading(variables));
        let out = tiller_tool::shell::Terminal.run(json!({"command": command, "timeout": 20}), &cx).await;
        let out = out
            .unwrap_or_else(|e| panic!("{command} with PATH {:?}: {e:?}", self.bench.cx.child_env.first()));
        out.content
            .iter()
            .filter_map(|p| if let Part::Text { text } = p { Some(text.as_str()) } else { None })
            .collect()
    }

    /// Whether a rule allows the command as written.
    fn ruled(&self, command: &str) -> bool {
        matches!(self.verdict(command), Verdict::Allow { unasked: None, .. })
    }

    /// The variables with which the command runs without approval; `None`: it needs approval.
    fn judge(&self, command: &str) -> Option<Vec<(String, String)>> {
        match self.verdict(command) {
            Verdict::Allow { rule, unasked } => match unasked {
                Some(unasked) => Some(unasked.variables),
                None => panic!("{command}: {rule}"),
            },
            Verdict::Ask { .. } => None,
            Verdict::Deny { reason, .. } => panic!("{command}: {reason}"),
        }
    }

    fn verdict(&self, command: &str) -> Verdict {
        let cx = &self.bench.cx;
        let shell = tiller_tool::shell::Terminal.shell(cx);
        let folder = self.bench.root.display().to_string();
        let access = [Access::Run { command: command.into(), folder, background: false }];
        let request = Request {
            profile: Profile::Ask,
            human: Human::Present,
            agent: "main",
            tool: "terminal",
            touch: Touch::Execute,
            access: &access,
            raw: "",
        };
        decide_in(&self.policy, &request, shell.as_ref())
    }
}

/// A file of this name that was created: in the work tree, at its top or one level below.
fn found(root: &Path, name: &str) -> bool {
    root.join(name).exists() || root.join("src").join(name).exists() || root.join("sub").join(name).exists()
}

fn installed(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|p| std::env::split_paths(&p).any(|f| f.join(program).is_file()))
}

/// Runs each of `commands` in each of `repositories`. Returns the numbers of runs, of approvals, and of repositories
/// that were shown to be hostile.
async fn drive(repositories: &[&Hostile], commands: &[&'static str]) -> (usize, usize, usize) {
    let (mut ran, mut asked, mut shown) = (0, 0, 0);
    let (mut wrong, mut tame) = (Vec::new(), Vec::new());
    for hostile in repositories {
        if hostile.shown_by.is_empty() || !installed(hostile.needs) {
            println!("not shown here to be hostile: {}", hostile.name);
        } else {
            // Without protection the repository does what it was made for; otherwise the test would prove nothing.
            let world = World::new(hostile);
            let said = world.run(hostile.shown_by, Vec::new()).await;
            if world.fired(&said) {
                shown += 1;
            } else {
                tame.push(format!("{}: {} shows nothing: {said}", hostile.name, hostile.shown_by));
            }
            let _ = world.bench.cx.state.shells.shutdown().await;
        }
        let world = World::new(hostile);
        for command in commands {
            let Some(variables) = world.judge(command) else {
                asked += 1;
                continue;
            };
            ran += 1;
            let said = world.run(command, variables).await;
            // `cd` has a lasting effect; the next command starts where the first did.
            if command.starts_with("cd ") {
                world.run(&format!("cd '{}'", world.bench.root.display()), Vec::new()).await;
            }
            if world.fired(&said) {
                wrong.push(format!("{}: {command}", hostile.name));
                world.clear();
            }
        }
        let _ = world.bench.cx.state.shells.shutdown().await;
    }
    assert!(tame.is_empty(), "{}", tame.join("\n"));
    assert!(wrong.is_empty(), "{} of {ran} ran something unasked:\n{}", wrong.len(), wrong.join("\n"));
    (ran, asked, shown)
}

#[test]
fn x15_there_are_enough_repositories_and_commands() {
    assert!(HOSTILE.len() >= 30, "{}", HOSTILE.len());
    assert!(commands(ROWS).count() >= 100 && commands(EVERYDAY).count() >= 150);
}

/// In a harmless repository the same commands run without approval: the proof is not that all of them need it.
#[tokio::test]
async fn x15_in_a_calm_repository_the_commands_run_unasked() {
    let calm = Hostile { name: "calm", setup: "", shown_by: "", needs: "", path: "" };
    let mut world = World::new(&calm);
    // Some run unasked only in the sandbox.
    world.policy.sandboxed = || true;
    let asks: Vec<&str> = commands(ROWS).filter(|c| world.judge(c).is_none()).collect();
    assert!(asks.is_empty(), "{asks:?}");
    let said = world.run("git status --short", world.judge("git status --short").unwrap()).await;
    assert!(said.contains("M f.txt"), "{said}");
    // The variables apply to one command only.
    let said = world.run("env | grep -c GIT_CONFIG_COUNT", Vec::new()).await;
    assert!(said.starts_with('0'), "{said}");
}

/// The most frequent commands. The next test runs all of them.
#[tokio::test]
async fn x15_nothing_runs_unasked_in_hostile_repositories() {
    let some = [
        "git status",
        "git diff",
        "git diff --no-ext-diff",
        "git log -p",
        "git -C sub status",
        "git ls-files | xargs cat",
        "find . -type f | xargs sort",
        "sort *",
        "cat src/*.rs",
        "cargo --version",
        "python3 --version",
        "git config --list",
        "git blame f.txt",
        "git for-each-ref",
        "git worktree list",
    ];
    let (ran, asked, shown) = drive(&HOSTILE.iter().collect::<Vec<_>>(), &some).await;
    println!(
        "X15: {} repositories ({shown} shown to be hostile here) x {} commands: {ran} ran unasked, {asked} asked, nothing else ran",
        HOSTILE.len(),
        some.len()
    );
    assert!(ran > HOSTILE.len() * 4, "{ran} ran, {asked} asked");
}

/// A rule of the person's for git covers the person's repository, not a repository that an agent wrote into the folder.
#[tokio::test]
async fn x15_a_rule_for_git_lets_no_repository_run_that_an_agent_wrote() {
    use tiller_permit::{Effect, Rule, Source};
    let hostile = |name| HOSTILE.iter().find(|h| h.name == name).unwrap();
    let include = Hostile {
        name: "an include among the files",
        setup: "git config include.path ../tools.conf; printf '[core]\n\tfsmonitor = \"%s\"\n' \"$EVIL\" >tools.conf",
        shown_by: "git status",
        needs: "git",
        path: "",
    };
    for (hostile, commands) in [
        (
            hostile("repository without a work tree in a folder"),
            &[
                "git -C sub status",
                "cd sub && git status",
                "git --git-dir=sub status",
                "git --git-dir sub diff",
                "(cd sub; git add x)",
                "env -C sub git status",
                "git -C src -C ../sub commit -m x",
            ][..],
        ),
        (
            hostile("repository without a work tree around"),
            &["git status", "git add .", "cd src && git status"][..],
        ),
        (&include, &["git status", "git commit -m x", "git -C src status"][..]),
    ] {
        let mut world = World::new(hostile);
        let said = world.run(hostile.shown_by, Vec::new()).await;
        assert!(world.fired(&said), "{}: {said}", hostile.name);
        for rule in ["terminal(git *)", "terminal(git status*)", "terminal(git status)"] {
            world.policy.rules.push(
                Rule::parse(Effect::Allow, Source::User, rule, &tiller_tool::Registry::built_in().catalog())
                    .unwrap(),
            );
        }
        for command in commands {
            // Read-only commands may run with variables that disable the configured programs, never by the rule.
            assert!(!world.ruled(command), "{}: {command}", hostile.name);
        }
        let _ = world.bench.cx.state.shells.shutdown().await;
    }
    // In the person's own repository the rules apply.
    let calm = Hostile { name: "calm", setup: "", shown_by: "", needs: "", path: "" };
    let mut world = World::new(&calm);
    world.policy.rules.push(
        Rule::parse(
            Effect::Allow,
            Source::User,
            "terminal(git *)",
            &tiller_tool::Registry::built_in().catalog(),
        )
        .unwrap(),
    );
    for command in ["git commit -m x", "git -C src add a.rs", "git --git-dir=.git fetch"] {
        assert!(world.ruled(command), "{command}");
    }
}

#[tokio::test]
#[ignore = "takes minutes: every repository meets every command"]
async fn x15_nothing_runs_unasked_with_every_command_of_the_table() {
    every_command(0).await;
}

/// The other half of the repositories, at the same time.
#[tokio::test]
#[ignore = "takes minutes: every repository meets every command"]
async fn x15_nothing_runs_unasked_with_every_command_of_the_table_either() {
    every_command(1).await;
}

async fn every_command(half: usize) {
    let some: Vec<&Hostile> = HOSTILE.iter().skip(half).step_by(2).collect();
    let all: Vec<&'static str> =
        commands(ROWS).chain(commands(EVERYDAY)).filter(|c| !c.starts_with("tail -f")).collect();
    let (ran, asked, shown) = drive(&some, &all).await;
    println!(
        "X15: {} repositories ({shown} shown to be hostile here) x {} commands: {ran} ran unasked, {asked} asked, nothing else ran",
        some.len(),
        all.len()
    );
    assert!(ran > some.len() * 100, "{ran} ran, {asked} asked");
}
