//! How often people are asked about what only looks; and that the commands of the exploit corpus cover the table.

use std::path::Path;
use std::sync::Arc;

use tiller_protocol::{Access, Profile, ShellState, Touch};

use super::table::{PROGRAMS, VERSIONS};
use super::*;
use crate::decide::{Human, Policy, Request, Verdict, decide_in};
use crate::surroundings::testing::Calm;

const EVERYDAY: &str = include_str!("everyday.txt");
const ROWS: &str = include_str!("rows.txt");
const SIBLINGS: &str = include_str!("siblings.txt");
const HELD: &str = include_str!("held.txt");
const LOOKS: &str = include_str!("looks.txt");
const AUTO: &str = include_str!("auto.txt");

fn commands(text: &'static str) -> Vec<&'static str> {
    text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect()
}

fn asks(policy: &Policy, command: &str) -> bool {
    !matches!(judged(policy, command, Some(&ShellState::default())), Verdict::Allow { .. })
}

fn judged(policy: &Policy, command: &str, shell: Option<&ShellState>) -> Verdict {
    judged_in(Profile::Ask, policy, command, shell)
}

fn judged_in(profile: Profile, policy: &Policy, command: &str, shell: Option<&ShellState>) -> Verdict {
    let folder = policy.roots.workspace.display().to_string();
    let access = [Access::Run { command: command.into(), folder, background: false }];
    let request = Request {
        profile,
        human: Human::Present,
        agent: "main",
        tool: "terminal",
        touch: Touch::Execute,
        access: &access,
        raw: "",
    };
    decide_in(policy, &request, shell)
}

/// A workspace with what the commands of the lists name.
fn workspace(tmp: &Path, sandboxed: bool) -> Policy {
    let work = tmp.canonicalize().unwrap().join("work");
    for folder in ["src", "a"] {
        std::fs::create_dir_all(work.join(folder)).unwrap();
    }
    let files = [
        "README.md",
        "data.json",
        "data.zip",
        "data.gz",
        "data.tar.gz",
        "src/main.rs",
        "src/lib.rs",
        "a/b.rs",
        "a/c.rs",
    ];
    for file in files {
        std::fs::write(work.join(file), "x\n").unwrap();
    }
    let roots = Roots::new(&work, Some(tmp.join("home")), vec![]);
    let policy = Policy::new(roots, crate::testing::tools()).within(Arc::new(Calm));
    Policy { sandboxed: if sandboxed { || true } else { || false }, ..policy }
}

/// The share of everyday commands that still ask, in percent, and these commands.
fn share(sandboxed: bool) -> (f64, Vec<&'static str>) {
    let tmp = tempfile::tempdir().unwrap();
    let policy = workspace(tmp.path(), sandboxed);
    let all = commands(EVERYDAY);
    assert!(all.len() >= 300, "{}", all.len());
    let asking: Vec<&str> = all.iter().copied().filter(|c| asks(&policy, c)).collect();
    let share = 100.0 * asking.len() as f64 / all.len() as f64;
    let place = if sandboxed { "in the sandbox" } else { "without a sandbox" };
    println!(
        "{} of {} everyday commands that only look ask {place} ({share:.1} %):\n{}\n",
        asking.len(),
        all.len(),
        asking.join("\n")
    );
    (share, asking)
}

#[test]
fn everyday_commands_that_only_look_seldom_ask() {
    let (bare, asking) = share(false);
    assert!(bare <= 7.0, "{bare}: {asking:?}");
    let (sandboxed, asking) = share(true);
    assert!(sandboxed <= 3.0, "{sandboxed}: {asking:?}");
    assert!(sandboxed < bare, "the sandbox allows more");
}

#[test]
fn siblings_of_harmless_commands_ask_with_and_without_a_sandbox() {
    let tmp = tempfile::tempdir().unwrap();
    for sandboxed in [false, true] {
        let policy = workspace(tmp.path(), sandboxed);
        let all = commands(SIBLINGS);
        assert!(all.len() >= 300, "{}", all.len());
        let unasked: Vec<&str> = all.iter().copied().filter(|c| !asks(&policy, c)).collect();
        assert!(unasked.is_empty(), "sandboxed {sandboxed}: {unasked:#?}");
        for command in commands(HELD) {
            let verdict = judged(&policy, command, Some(&ShellState::default()));
            match verdict {
                Verdict::Ask { .. } => assert!(!sandboxed, "{command}"),
                Verdict::Allow { unasked: Some(run), .. } => {
                    assert!(sandboxed && run.needs_sandbox, "{command}")
                }
                other => panic!("{command}: {other:?}"),
            }
        }
    }
}

/// A line that only looks asks in no mode where the sandbox holds it: where some of it is known only when it runs, it runs in
/// the sandbox for reading, or in AUTO in that of the workspace.
#[test]
fn lines_that_only_look_ask_nothing_in_the_sandbox() {
    let tmp = tempfile::tempdir().unwrap();
    let (policy, off) = (workspace(tmp.path(), true), workspace(tmp.path(), false));
    let confined = ShellState { confined: true, ..ShellState::default() };
    let all = commands(LOOKS);
    assert!(all.len() >= 240, "{}", all.len());
    let mut asking = Vec::new();
    let mut held = 0;
    for command in all {
        for profile in [Profile::Ask, Profile::AutoEdit, Profile::Full] {
            let verdict = judged_in(profile, &policy, command, Some(&confined));
            if !matches!(verdict, Verdict::Allow { .. }) {
                asking.push(format!("{profile:?}: {command}: {verdict:?}"));
            }
            let Verdict::Allow { unasked: Some(run), .. } = verdict else { continue };
            // What needs no sandbox runs without one, and all else asks there.
            let there = judged_in(profile, &off, command, Some(&ShellState::default()));
            assert_eq!(matches!(there, Verdict::Allow { .. }), !run.needs_sandbox, "{command}: {there:?}");
            held += usize::from(run.needs_sandbox);
        }
        for profile in [Profile::ReadOnly, Profile::Plan] {
            let verdict = judged_in(profile, &policy, command, Some(&confined));
            assert!(!matches!(verdict, Verdict::Ask { .. }), "{profile:?}: {command}: {verdict:?}");
        }
    }
    assert!(asking.is_empty(), "{} ask:\n{}", asking.len(), asking.join("\n"));
    assert!(held > 200, "{held}");
}

/// An unclear part is no reason to ask where the kernel confines: it is one where nothing does, in other modes, and where a rule
/// may be about it.
#[test]
fn auto_asks_about_nothing_unclear_that_the_sandbox_holds() {
    let tmp = tempfile::tempdir().unwrap();
    let policy = workspace(tmp.path(), true);
    let confined = ShellState { confined: true, ..ShellState::default() };
    let mut with_rules = Vec::new();
    for text in ["terminal(git push*)", "read_file(*.pem)", "write_file(secret/**)", "terminal"] {
        for effect in [crate::Effect::Deny, crate::Effect::Ask] {
            let mut policy = policy.clone();
            let rule = crate::Rule::parse(effect, crate::Source::User, text, &crate::testing::tools());
            policy.rules.push(rule.unwrap());
            with_rules.push(policy);
        }
    }
    for host in ["*", "example.com"] {
        let mut open = policy.clone();
        open.hosts = vec![host.into()];
        with_rules.push(open);
    }
    for command in commands(AUTO) {
        let asks = |profile, policy: &Policy, shell: &ShellState| {
            !matches!(judged_in(profile, policy, command, Some(shell)), Verdict::Allow { .. })
        };
        let verdict = judged_in(Profile::Full, &policy, command, Some(&confined));
        assert!(matches!(verdict, Verdict::Allow { .. }), "{command}: {verdict:?}");
        assert!(asks(Profile::AutoEdit, &policy, &confined), "{command}: another mode");
        if tiller_shell::analyse(command).unclear.is_some() {
            assert!(asks(Profile::Full, &policy, &ShellState::default()), "{command}: nothing confines");
            assert!(
                with_rules.iter().all(|policy| asks(Profile::Full, policy, &confined)),
                "{command}: a rule"
            );
        }
    }
    for command in ["git push $x", "rm -rf $x .", "curl $u | sh", "echo x > AGENTS.md; echo $f > $f.txt"] {
        let verdict = judged_in(Profile::Full, &policy, command, Some(&confined));
        assert!(matches!(verdict, Verdict::Ask { .. }), "{command}: {verdict:?}");
    }
    let mut open = policy;
    open.hosts = vec!["example.com".into()];
    for command in ["p=publish; npm $p", "x='npm publish'; $x", "eval \"$x\"", "npm publish $(", "case"] {
        let verdict = judged_in(Profile::Full, &open, command, Some(&confined));
        assert!(matches!(verdict, Verdict::Ask { .. }), "{command}: {verdict:?}");
    }
}

/// A rule about a program that only looks holds for words that are known only when it runs.
#[test]
fn rules_about_commands_hold_for_words_that_are_not_known() {
    let tmp = tempfile::tempdir().unwrap();
    let policy = workspace(tmp.path(), true);
    for (text, command, asks) in [
        ("terminal(cat *.env)", "for f in $(ls); do cat \"$f\"; done", true),
        ("terminal(cat *.env)", "x=$(git rev-parse HEAD)", false),
        ("terminal(*.env)", "cat \"$f\"", true),
        ("terminal(git push*)", "cat \"$f\"", false),
        ("terminal(git push*)", "git show \"$f\"", true),
        ("read_file(*.env)", "cat \"$f\"", true),
        ("terminal", "echo \"$f\"", true),
        ("terminal(GIT push*)", "git show \"$f\"", true),
        ("terminal(x=1 make)", "cat \"$f\"", true),
        ("terminal(rm x && make)", "cat \"$f\"", true),
        ("terminal(rm -rf*)", "find . -name \"$f\"", true),
        ("terminal(rm -rf*)", "rg main \"$f\"", true),
        ("terminal(rm -rf*)", "rg main src", false),
    ] {
        for effect in [crate::Effect::Deny, crate::Effect::Ask] {
            let mut policy = policy.clone();
            let rule = crate::Rule::parse(effect, crate::Source::User, text, &crate::testing::tools());
            policy.rules.push(rule.unwrap());
            assert_eq!(self::asks(&policy, command), asks, "{effect:?} {text}: {command}");
        }
    }
}

/// A command that is only harmless in the sandbox says so, and never runs beside what a rule allows, which runs outside.
#[test]
fn what_needs_the_sandbox_is_marked_and_runs_nowhere_else() {
    let tmp = tempfile::tempdir().unwrap();
    let mut policy = workspace(tmp.path(), true);
    let run = |policy: &Policy, command: &str| judged(policy, command, Some(&ShellState::default()));
    let needs = |verdict: Verdict| match verdict {
        Verdict::Allow { unasked: Some(run), .. } => Some(run.needs_sandbox),
        _ => None,
    };
    assert_eq!(needs(run(&policy, "cargo tree")), Some(true));
    assert_eq!(needs(run(&policy, "ls && cargo tree | head")), Some(true));
    assert_eq!(needs(run(&policy, "ls")), Some(false));
    // Another program runs it.
    assert!(matches!(judged(&policy, "cargo tree", None), Verdict::Ask { .. }));
    let rule = crate::Rule::parse(
        crate::Effect::Allow,
        crate::Source::User,
        "terminal(make all)",
        &crate::testing::tools(),
    );
    policy.rules.add([rule.unwrap()], true);
    assert!(matches!(run(&policy, "make all"), Verdict::Allow { .. }));
    assert!(matches!(run(&policy, "make all && ls"), Verdict::Allow { .. }));
    assert!(matches!(run(&policy, "make all && cargo tree"), Verdict::Ask { .. }));
    // It is no reason to take no snapshot where a person allows it outside.
    let folder = policy.roots.workspace.display().to_string();
    let access =
        |command: &str| Access::Run { command: command.into(), folder: folder.clone(), background: false };
    assert!(crate::is_read_only(&policy, &access("ls")));
    assert!(!crate::is_read_only(&policy, &access("cargo tree")));
}

/// What a recipe, a plugin or a wrapper of the compiler reads stands in no word of the command.
#[test]
fn rules_about_reading_hold_for_what_runs_the_projects_programs() {
    let tmp = tempfile::tempdir().unwrap();
    for effect in [crate::Effect::Deny, crate::Effect::Ask] {
        let mut policy = workspace(tmp.path(), true);
        let rule =
            |text: &str| crate::Rule::parse(effect, crate::Source::User, text, &crate::testing::tools());
        let run = |policy: &Policy| {
            ["make -n", "cargo metadata", "npm ls", "ls && make -n all"].map(|command| asks(policy, command))
        };
        policy.rules.push(rule("terminal(curl *)").unwrap());
        assert_eq!(run(&policy), [false; 4], "{effect:?} about other commands");
        policy.rules.push(rule("read_file(*.pem)").unwrap().for_agent("other"));
        assert_eq!(run(&policy), [false; 4], "{effect:?} for another agent");
        policy.rules.push(rule("read_file(*.pem)").unwrap());
        assert_eq!(run(&policy), [true; 4], "{effect:?}");
        assert!(!asks(&policy, "ls -la"), "{effect:?}");
    }
}

/// Rules that deny reading hold for names that a loop or find supplies.
#[test]
fn denied_files_stay_denied_in_loops_and_under_find() {
    let tmp = tempfile::tempdir().unwrap();
    let mut policy = workspace(tmp.path(), false);
    let rule = crate::Rule::parse(
        crate::Effect::Deny,
        crate::Source::User,
        "read_file(src/**)",
        &crate::testing::tools(),
    );
    policy.rules.add([rule.unwrap()], true);
    let rule = crate::Rule::parse(
        crate::Effect::Deny,
        crate::Source::User,
        "terminal(cat README.md)",
        &crate::testing::tools(),
    );
    let mut other = workspace(tmp.path(), false);
    other.rules.add([rule.unwrap()], true);
    assert!(!asks(&other, r#"for f in data.json; do cat "$f"; done"#));
    for command in ["cat README.md", r#"for f in data.json README.md; do cat "$f"; done"#] {
        assert!(asks(&other, command), "{command}");
    }
    for command in [
        "cat src/*.rs",
        r#"for f in src/*.rs; do cat "$f"; done"#,
        r#"for f in src/main.rs; do cat "$f"; done"#,
        r#"for f in */*.rs; do cat "$f"; done"#,
        "find . -type f -exec cat {} +",
        "find src -type f -exec cat {} +",
        "find src -type f | xargs cat",
        "diff <(cat src/main.rs) README.md",
        "base64 src/main.rs",
    ] {
        assert!(asks(&policy, command), "{command}");
    }
}

/// The corpus is driven against hostile repositories elsewhere; here it is shown to leave out no row.
#[test]
fn every_row_of_the_table_is_in_the_corpus() {
    let rows = commands(ROWS);
    let used = |name: &str| {
        rows.iter()
            .any(|row| row.split(['|', '&', ';']).any(|part| part.split_whitespace().next() == Some(name)))
    };
    let special = ["git", "find", "sed", "awk", "jq", "command"];
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .map(|l| l.name)
        .chain(VERSIONS.iter().copied())
        .chain(special)
        .filter(|name| !used(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let subs = git::SUBCOMMANDS.iter().map(|(name, _)| name);
    let subs = subs.filter(|s| !rows.iter().any(|row| row.contains(&format!("git {s}"))));
    assert_eq!(subs.collect::<Vec<_>>(), Vec::<&&str>::new());
    let wrappers = WRAPPERS.iter().filter(|w| !rows.iter().any(|row| row.contains(&format!("{w} "))));
    assert_eq!(wrappers.collect::<Vec<_>>(), Vec::<&&str>::new());
}

/// A loop never allows what the same command would not be allowed with the word in its place.
#[test]
fn a_loop_allows_no_more_than_the_command_with_the_word_written_out() {
    let tmp = tempfile::tempdir().unwrap();
    let policy = workspace(tmp.path(), false);
    let words = [
        "README.md",
        "src",
        "-o",
        "-delete",
        "--output=out",
        "--pre=x",
        "--help",
        "/etc/passwd",
        "/usr/include",
        "../x",
        "..",
        "~",
        "w out",
        "1e id",
        "p",
        "{print > \"out\"}",
        "BEGIN{system(\"id\")}",
        "env",
        ".",
        "$ENV",
        "-n",
        "-i",
        "+%F",
        "01010000",
        "HEAD",
        "a[$(id)]",
        "-exec",
        "@x",
        "out",
        "status",
        "branch",
        "-c",
        "*",
        "",
    ];
    let programs = PROGRAMS
        .iter()
        .map(|p| p.name)
        .chain(["sed", "awk", "jq", "find", "git", "tar", "unzip", "zcat", "printenv"]);
    let mut allowed = 0;
    for program in programs {
        for form in
            ["{p} W", "{p} W README.md", "{p} README.md W", "{p} -n W README.md", "{p} log W", "{p} . W x"]
        {
            let form = form.replace("{p}", program);
            for word in words {
                let quoted = format!("'{word}'");
                let looped = format!("for f in {quoted}; do {}; done", form.replace('W', "\"$f\""));
                if asks(&policy, &looped) {
                    continue;
                }
                let written = form.replace('W', &quoted);
                // A text of its own may be anything to these.
                let prints = matches!(program, "echo" | "printf");
                let alone = judged(&policy, &written, Some(&ShellState::default()));
                let fine = prints || matches!(alone, Verdict::Allow { .. });
                assert!(fine, "{looped} runs unasked; {written}: {alone:?}");
                allowed += 1;
            }
        }
    }
    assert!(allowed > 500, "{allowed}");
}
