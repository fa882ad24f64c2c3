//! X6: the corpus of ways around the rules, and what must hold of every mutation of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use tiller_protocol::{Access, Profile, Touch};

use crate::decide::{Human, Policy, Request, Verdict, decide};
use crate::paths::{Roots, normal};
use crate::rules::{Effect, Rule, RuleSet, Source};

const CORPUS: &str = include_str!("corpus.tsv");
/// The figure of row X6 is 400. What was found since stays.
const MIN_ROWS: usize = 2_200;

/// Links of the made-up workspace.
fn resolve(path: &Path) -> PathBuf {
    let path = normal(path);
    let links = [
        ("/work/app/link-out", "/tmp/outside"),
        ("/work/app/link-dir", "/tmp/dir"),
        ("/work/app/link-secret", "/work/app/secrets/key"),
        ("/work/app/link-git", "/work/app/.git"),
    ];
    for (from, to) in links {
        if let Ok(rest) = path.strip_prefix(from) {
            return if rest.as_os_str().is_empty() { to.into() } else { Path::new(to).join(rest) };
        }
    }
    path
}

fn roots() -> Roots {
    Roots::with_resolve(
        "/work/app",
        Some("/home/u".into()),
        vec!["/home/u/.config/tiller".into(), "/home/u/.local/share/tiller".into()],
        Arc::new(resolve),
    )
}

fn rules(name: &str) -> Vec<Rule> {
    let rule =
        |effect, text: &str| Rule::parse(effect, Source::User, text, &crate::testing::tools()).unwrap();
    match name {
        "none" => vec![],
        "allow" => ["git status*", "git push*", "cargo test*", "echo *", "make*", "cat *", "find *"]
            .iter()
            .map(|p| rule(Effect::Allow, &format!("terminal({p})")))
            .collect(),
        "deny" => ["rm *", "*launch-codes*", "git push*", "curl*"]
            .iter()
            .map(|p| rule(Effect::Deny, &format!("terminal({p})")))
            .chain([rule(Effect::Deny, "read_file(secrets/)"), rule(Effect::Deny, "write_file(vault/**)")])
            .collect(),
        "wide" => {
            ["git *", "head src/*"].iter().map(|p| rule(Effect::Allow, &format!("terminal({p})"))).collect()
        }
        other => panic!("no rules are called {other}"),
    }
}

fn policy(rules: Vec<Rule>) -> Policy {
    let mut policy =
        Policy::new(roots(), crate::testing::tools()).within(Arc::new(crate::surroundings::testing::Calm));
    policy.rules.add(rules, true);
    policy
}

fn policies() -> std::collections::HashMap<&'static str, Policy> {
    ["none", "allow", "deny", "wide"].into_iter().map(|n| (n, policy(rules(n)))).collect()
}

struct Row {
    line: usize,
    rules: String,
    profile: Profile,
    tool: String,
    subject: String,
    expected: u8,
}

/// `⏎`, `⇥` and `⟦hex⟧` in subjects.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('⟦') {
        out.push_str(&rest[..at]);
        let end = rest.find('⟧').unwrap();
        let code = u32::from_str_radix(&rest[at + '⟦'.len_utf8()..end], 16).unwrap();
        out.push(char::from_u32(code).unwrap());
        rest = &rest[end + '⟧'.len_utf8()..];
    }
    out.push_str(rest);
    out.replace('⏎', "\n").replace('⇥', "\t")
}

fn rows() -> Vec<Row> {
    CORPUS
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.starts_with('#') && !l.is_empty())
        .map(|(i, l)| {
            let cells: Vec<&str> = l.split('\t').collect();
            assert_eq!(cells.len(), 6, "line {}: {l}", i + 1);
            Row {
                line: i + 1,
                rules: cells[0].into(),
                profile: cells[1].parse().unwrap(),
                tool: cells[2].into(),
                subject: unescape(cells[3]),
                expected: match cells[4] {
                    "allow" => 0,
                    "ask" => 1,
                    "deny" => 2,
                    other => panic!("line {}: {other}", i + 1),
                },
            }
        })
        .collect()
}

fn judge(policy: &Policy, profile: Profile, human: Human, tool: &str, subject: &str) -> Verdict {
    let path = |s: &str| normal(&Path::new("/work/app").join(s));
    let (touch, access) = match tool {
        "terminal" => (
            Touch::Execute,
            vec![Access::Run { command: subject.into(), folder: "/work/app".into(), background: false }],
        ),
        "read_file" | "search" | "list_dir" => {
            let p = path(subject);
            let inside = policy.roots.inside(&p);
            (Touch::Read, vec![Access::Read { path: p.display().to_string(), inside }])
        }
        "write_file" | "edit_file" | "patch" => {
            let p = path(subject);
            let inside = policy.roots.inside(&p);
            (Touch::Write, vec![Access::Write { path: p.display().to_string(), inside }])
        }
        "web_fetch" => {
            let host = subject.split('/').nth(2).unwrap_or_default();
            (Touch::Network, vec![Access::Net { url: subject.into(), host: host.into(), local: false }])
        }
        // Command, what was typed earlier, and what is typed now, with ⇒ between.
        "process" => {
            let mut pieces: Vec<&str> = subject.split('⇒').collect();
            let text = pieces.pop().unwrap_or_default().to_owned();
            let command = pieces.first().copied().unwrap_or_default().to_owned();
            let before = pieces.get(1..).unwrap_or_default().concat();
            let folder = "/work/app".into();
            (Touch::Execute, vec![Access::Input { process: "p1".into(), command, before, text, folder }])
        }
        "todo_write" => (Touch::Plan, vec![Access::Free]),
        _ => (Touch::Execute, vec![]),
    };
    decide(policy, &Request { profile, human, agent: "main", tool, touch, access: &access, raw: subject })
}

#[test]
fn x6_every_row_of_the_corpus() {
    let rows = rows();
    assert!(rows.len() >= MIN_ROWS, "{} rows", rows.len());
    let policies = policies();
    let mut wrong = Vec::new();
    for row in &rows {
        let policy = &policies[row.rules.as_str()];
        let got = judge(policy, row.profile, Human::Present, &row.tool, &row.subject);
        if got.strictness() != row.expected {
            wrong.push(format!("line {}: {:?} -> {got:?}", row.line, row.subject));
        }
        // Where no user can answer, a question counts as a no, and nothing else changes.
        let alone = judge(policy, row.profile, Human::Absent, &row.tool, &row.subject).strictness();
        let want = if got.strictness() == 0 { 0 } else { 2 };
        if alone != want {
            wrong.push(format!("line {}: {:?} alone -> {alone}", row.line, row.subject));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// Words that change a command when placed before or around it, but never make it less strict.
fn mutations(command: &str) -> Vec<String> {
    let mut out = vec![
        format!("  {command}  "),
        format!("{command} ; true"),
        format!("true && {command}"),
        format!("true\n{command}"),
        format!("( {command}\n)"),
        format!("{{ {command}\n}}"),
        format!("if true; then {command}\nfi"),
        format!("for i in 1; do {command}\ndone"),
        format!("! {command}"),
        format!("{command} | cat"),
        format!("{command} # and no more"),
        format!("sh -c '{}'", command.replace('\'', r"'\''")),
        format!("eval '{}'", command.replace('\'', r"'\''")),
        format!("echo \"$({command}\n)\""),
    ];
    // Through the input of something.
    let quoted = command.replace('\'', r"'\''");
    out.extend([
        format!("(sh) <<< '{quoted}'"),
        format!("{{ bash; }} <<'IN'\n{command}\nIN"),
        format!("f() {{ sh; }}; f <<'IN'\n{command}\nIN"),
        format!("bash -s a <<< '{quoted}'"),
        format!("timeout 9 sh -s a <<< '{quoted}'"),
        format!("sh -c sh <<< '{quoted}'"),
        format!("exec <<< '{quoted}'; sh"),
        format!("echo \"$(sh)\" | cat $(sh -c '{quoted}')"),
    ]);
    let simple = command.split_whitespace().next().is_some_and(|w| w.chars().all(|c| c.is_ascii_lowercase()))
        && !command.contains([';', '|', '&', '(', ')', '{', '}', '\n', '`', '<', '>', '#', '='])
        && !command.split_whitespace().next().is_some_and(|w| {
            matches!(
                w,
                "if" | "for" | "while" | "case" | "time" | "coproc" | "function" | "cd" | "alias" | "trap"
            )
        });
    if simple {
        let (first, rest) = command.split_once([' ', '\t']).unwrap_or((command, ""));
        let (head, tail) = first.split_at(1);
        out.extend([
            format!("env {command}"),
            format!("command {command}"),
            format!("nice -n 1 {command}"),
            format!("timeout 9 {command}"),
            format!("nohup {command}"),
            format!("sudo {command}"),
            format!("env -i NO_COLOR=1 {command}"),
            format!("\\{command}"),
            format!("{head}''{tail} {rest}"),
            format!("'{first}' {rest}"),
            format!("{head}\\\n{tail} {rest}"),
            format!("{first}\t{rest}"),
            format!("NO_COLOR=1 {command}"),
            format!("2>&1 {command}"),
        ]);
    }
    out
}

#[test]
fn x6_a_mutation_is_never_laxer() {
    let mut wrong = Vec::new();
    let mut count = 0;
    let policies = policies();
    for row in rows().iter().filter(|r| r.tool == "terminal") {
        // A row about what cannot be parsed may become parseable; a text that a comment swallows too.
        if row.subject.contains('#') || row.subject.contains("<<") {
            continue;
        }
        let policy = &policies[row.rules.as_str()];
        let base = judge(policy, row.profile, Human::Present, &row.tool, &row.subject).strictness();
        for mutated in mutations(&row.subject) {
            count += 1;
            let got = judge(policy, row.profile, Human::Present, &row.tool, &mutated);
            if got.strictness() < base {
                wrong.push(format!("line {}: {mutated:?} -> {got:?}", row.line));
            }
        }
    }
    assert!(count > 5_000, "{count}");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn x6_a_denied_command_is_found_at_every_place_of_a_chain() {
    let policy = policy(rules("deny"));
    for (parts, step) in [(1, 1), (2, 1), (10, 1), (49, 7), (50, 7), (51, 7), (200, 67), (5_000, 2_499)] {
        for place in (0..parts).step_by(step) {
            for separator in ["; ", " && ", " | ", "\n"] {
                let chain: Vec<&str> = (0..parts).map(|i| if i == place { "rm x" } else { "ls" }).collect();
                let verdict =
                    judge(&policy, Profile::Full, Human::Present, "terminal", &chain.join(separator));
                assert_eq!(verdict.strictness(), 2, "{parts} parts, at {place}, by {separator:?}");
            }
        }
        let harmless = vec!["ls"; parts].join("; ");
        let want = u8::from(parts > tiller_shell::MAX_PARTS);
        assert_eq!(
            judge(&policy, Profile::Full, Human::Present, "terminal", &harmless).strictness(),
            want,
            "{parts}"
        );
    }
}

#[test]
fn x6_a_long_command_asks() {
    let policy = policy(vec![]);
    let long = format!("echo {}", "x".repeat(tiller_shell::MAX_CHARS));
    assert_eq!(judge(&policy, Profile::Full, Human::Present, "terminal", &long).strictness(), 1);
    assert_eq!(judge(&policy, Profile::Full, Human::Absent, "terminal", &long).strictness(), 2);
    let huge = format!("echo {}; rm x", "x".repeat(600_000));
    let denies = self::policy(rules("deny"));
    assert_eq!(judge(&denies, Profile::Full, Human::Present, "terminal", &huge).strictness(), 2);
}

fn any_rule() -> impl Strategy<Value = (Effect, Source, String)> {
    let patterns = [
        "terminal(git *)",
        "terminal(git push*)",
        "terminal(git push origin main)",
        "terminal(*)",
        "terminal(rm *)",
        "terminal(ls*)",
        "terminal(make)",
        "write_file(src/**)",
        "write_file(*)",
        "read_file(*)",
        "read_file(/etc/**)",
        "edit_file(src/main.rs)",
        "*",
        "web_*",
        "web_fetch(domain:*.rs)",
        "terminal(cat *)",
        "terminal(echo *)",
        "terminal(rm -rf .)",
    ];
    (
        prop_oneof![Just(Effect::Allow), Just(Effect::Ask), Just(Effect::Deny)],
        prop_oneof![Just(Source::User), Just(Source::Project), Just(Source::Session), Just(Source::Agent)],
        proptest::sample::select(patterns.to_vec()).prop_map(str::to_owned),
    )
}

fn any_call() -> impl Strategy<Value = (Profile, &'static str, &'static str)> {
    (
        proptest::sample::select(Profile::ALL.to_vec()),
        proptest::sample::select(vec![
            ("terminal", "git push origin main"),
            ("terminal", "ls"),
            ("terminal", "rm x"),
            ("terminal", "git status; make"),
            ("terminal", "rm -rf ."),
            ("terminal", "cat /etc/passwd"),
            ("terminal", "echo x > src/a"),
            ("write_file", "src/main.rs"),
            ("edit_file", "src/main.rs"),
            ("read_file", "/etc/hosts"),
            ("read_file", "src/main.rs"),
            ("web_fetch", "https://docs.rs/x"),
            ("terminal", "$X"),
            ("write_file", ".git/config"),
            ("todo_write", "{}"),
            ("mcp:x:y", "{}"),
        ]),
    )
        .prop_map(|(profile, (tool, subject))| (profile, tool, subject))
}

fn build(rules: &[(Effect, Source, String)]) -> Policy {
    policy(rules.iter().map(|(e, s, t)| Rule::parse(*e, *s, t, &crate::testing::tools()).unwrap()).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_rules_never_matters(
        rules in proptest::collection::vec(any_rule(), 0..8),
        call in any_call(),
        turn in 0_usize..8,
    ) {
        let (profile, tool, subject) = call;
        let one = judge(&build(&rules), profile, Human::Present, tool, subject);
        let mut turned = rules;
        if !turned.is_empty() {
            let by = turn % turned.len();
            turned.rotate_left(by);
        }
        turned.reverse();
        prop_assert_eq!(one, judge(&build(&turned), profile, Human::Present, tool, subject));
    }

    #[test]
    fn a_rule_that_does_not_allow_never_makes_it_laxer(
        rules in proptest::collection::vec(any_rule(), 0..8),
        more in any_rule(),
        call in any_call(),
    ) {
        let (profile, tool, subject) = call;
        prop_assume!(more.0 != Effect::Allow);
        let before = judge(&build(&rules), profile, Human::Present, tool, subject).strictness();
        let mut longer = rules;
        longer.push(more);
        prop_assert!(judge(&build(&longer), profile, Human::Present, tool, subject).strictness() >= before);
    }

    #[test]
    fn a_project_that_is_not_trusted_only_narrows(
        rules in proptest::collection::vec(any_rule(), 0..6),
        project in proptest::collection::vec(any_rule(), 0..6),
        call in any_call(),
    ) {
        let (profile, tool, subject) = call;
        let own: Vec<_> = rules.into_iter().filter(|r| r.1 == Source::User).collect();
        let before = judge(&build(&own), profile, Human::Present, tool, subject).strictness();
        let mut policy = build(&own);
        policy.rules.add(project.iter().map(|(e, _, t)| Rule::parse(*e, Source::Project, t, &crate::testing::tools()).unwrap()), false);
        prop_assert!(judge(&policy, profile, Human::Present, tool, subject).strictness() >= before);
    }

    #[test]
    fn any_text_is_judged_without_a_panic(text in "[ -~\\n]{0,120}") {
        let policy = policy(rules("allow"));
        judge(&policy, Profile::Full, Human::Present, "terminal", &text);
        judge(&policy, Profile::Ask, Human::Absent, "terminal", &text);
    }

    #[test]
    fn shell_soup_is_judged_without_a_panic(words in proptest::collection::vec(
        proptest::sample::select(vec!["rm", "x", "$(", ")", "`", "\"", "'", "{", "}", ";", "&&", "|", "<<E", "\nE\n", "((", "))", "[[", "]]", "if", "then",
            "fi", "for", "do", "done", "case", "esac", "in", "$X", "${X:-", "}", "\\", " ", "\n", ">", "<", "&", "2>&1", "#", "$'", "~", "*", "=", "(", "é", "!"]), 0..30)) {
        let policy = policy(rules("deny"));
        judge(&policy, Profile::Full, Human::Present, "terminal", &words.concat());
        judge(&policy, Profile::Full, Human::Present, "terminal", &words.join(" "));
    }
}

#[test]
fn a_trusted_project_does_not_loosen_a_deny_or_an_ask() {
    for effect in [Effect::Deny, Effect::Ask] {
        let mut set = RuleSet::default();
        set.push(Rule::parse(effect, Source::User, "terminal(make*)", &crate::testing::tools()).unwrap());
        set.add(
            [Rule::parse(Effect::Allow, Source::Project, "terminal(make all)", &crate::testing::tools())
                .unwrap()],
            true,
        );
        let policy = Policy {
            rules: set,
            ..Policy::new(roots(), crate::testing::tools())
                .within(Arc::new(crate::surroundings::testing::Calm))
        };
        let got = judge(&policy, Profile::Ask, Human::Present, "terminal", "make all");
        assert_eq!(got.strictness(), if effect == Effect::Deny { 2 } else { 1 });
    }
}

#[test]
fn an_answer_for_the_session_holds_and_a_deny_beats_it() {
    let mut policy = policy(vec![
        Rule::parse(Effect::Ask, Source::User, "terminal(make*)", &crate::testing::tools()).unwrap(),
    ]);
    policy.rules.push(
        Rule::parse(Effect::Allow, Source::Session, "terminal(make all)", &crate::testing::tools()).unwrap(),
    );
    assert_eq!(judge(&policy, Profile::Ask, Human::Present, "terminal", "make all").strictness(), 0);
    assert_eq!(judge(&policy, Profile::Ask, Human::Present, "terminal", "make clean").strictness(), 1);
    policy.rules.push(
        Rule::parse(Effect::Deny, Source::User, "terminal(make all)", &crate::testing::tools()).unwrap(),
    );
    assert_eq!(judge(&policy, Profile::Ask, Human::Present, "terminal", "make all").strictness(), 2);
}

/// A4 in small: what an agent's own rules say can only narrow, and only for it and those below it.
#[test]
fn rules_of_an_agent_are_for_it_and_below() {
    let mut policy = policy(vec![]);
    policy.rules.add(
        [Rule::parse(Effect::Deny, Source::Agent, "terminal", &crate::testing::tools())
            .unwrap()
            .for_agent("main/a1")],
        true,
    );
    let of = |agent: &str| {
        let access = [Access::Run { command: "ls".into(), folder: "/work/app".into(), background: false }];
        let request = Request {
            profile: Profile::Ask,
            human: Human::Present,
            agent,
            tool: "terminal",
            touch: Touch::Execute,
            access: &access,
            raw: "",
        };
        decide(&policy, &request).strictness()
    };
    assert_eq!((of("main"), of("main/a1"), of("main/a1/b"), of("main/a10")), (0, 2, 2, 0));
}
