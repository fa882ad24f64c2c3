//! Decisions about commands, paths and addresses.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use tiller_permit::{
    Effect, GitConfiguration, Human, Policy, Request, Roots, Rule, ShellState, Source, Surroundings, Verdict,
    always_pattern, decide,
};
use tiller_protocol::{Access, Profile, ToolCatalog, Touch};

use crate::outline::fields;
use crate::{Outline, Target};

pub(super) const TARGET: Target = Target {
    name: "permit",
    words: &[super::words::SHELL, super::shell::WORDS],
    seeds: super::shell::seeds,
    run,
};

/// Nothing is configured, and the programs are the system's.
#[derive(Debug)]
pub(super) struct Calm;

impl Surroundings for Calm {
    fn shell(&self) -> ShellState {
        ShellState { path: "/usr/bin:/bin".into(), redefined: Vec::new(), ..ShellState::default() }
    }

    fn git(&self, _: &Path, _: &Path) -> Result<GitConfiguration, String> {
        Ok(GitConfiguration { quiet: true, ..GitConfiguration::default() })
    }

    fn planted(&self, _: &Path, _: &Path) -> Option<String> {
        None
    }

    fn tracked(&self, _: &Path, _: &Path) -> Result<Vec<PathBuf>, String> {
        Ok(vec!["src/main.rs".into()])
    }
}

/// The tools of the program.
pub(super) fn tools() -> ToolCatalog {
    tiller_tool::Registry::built_in().catalog()
}

/// `..` and `.` taken away, and a link that leads outside.
fn resolve(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => _ = out.pop(),
            std::path::Component::CurDir => {}
            other => out.push(other),
        }
    }
    match out.strip_prefix("/work/app/link") {
        Ok(rest) => Path::new("/outside").join(rest),
        Err(_) => out,
    }
}

fn policy(rules: &[(Effect, &str)]) -> Policy {
    let own = vec!["/home/u/.config/tiller".into()];
    let roots = Roots::with_resolve("/work/app", Some("/home/u".into()), own, Arc::new(resolve));
    let mut policy = Policy::new(roots, tools()).within(Arc::new(Calm));
    policy.sandboxed = || true;
    for (effect, text) in rules {
        if let Ok(rule) = Rule::parse(*effect, Source::User, text, &policy.tools) {
            policy.rules.push(rule);
        }
    }
    policy
}

static NONE: LazyLock<Policy> = LazyLock::new(|| policy(&[]));
static ALLOW: LazyLock<Policy> = LazyLock::new(|| {
    policy(&[
        (Effect::Allow, "terminal(git *)"),
        (Effect::Allow, "terminal(echo *)"),
        (Effect::Allow, "terminal(cat src/*)"),
    ])
});
static DENY: LazyLock<Policy> = LazyLock::new(|| {
    policy(&[
        (Effect::Deny, "terminal(rm *)"),
        (Effect::Deny, "terminal(curl*)"),
        (Effect::Deny, "read_file(secrets/)"),
    ])
});

fn judge(policy: &Policy, profile: Profile, human: Human, command: &str) -> Verdict {
    let access = [Access::Run { command: command.to_owned(), folder: "/work/app".into(), background: false }];
    let request = Request {
        profile,
        human,
        agent: "main",
        tool: "terminal",
        touch: Touch::Execute,
        access: &access,
        raw: command,
    };
    decide(policy, &request)
}

fn run(data: &[u8]) -> u64 {
    let [command, other] = fields(data);
    let mut outline = Outline::default();
    let asks = judge(&NONE, Profile::Ask, Human::Present, &command);
    outline.add(asks.strictness());
    match &asks {
        Verdict::Allow { unasked, .. } => {
            outline.add(unasked.as_ref().map(|r| (r.needs_sandbox, r.variables.len())))
        }
        Verdict::Deny { reason, .. } => outline.message(reason),
        Verdict::Ask { rule, risk, effects, always } => {
            outline.message(rule.text());
            outline.add((*risk as u8, effects.len().min(4), always.is_some()));
        }
    }
    profiles(&command, &asks);
    rules(&command, &asks);
    around(&command, &asks);
    if let Verdict::Ask { always: Some(pattern), .. } = &asks {
        always(&command, pattern);
    }
    if !other.is_empty() {
        outline.add(paths(&other));
    }
    outline.end()
}

/// Where no person answers, a question is a no and nothing else changes; a profile that only looks runs nothing; and
/// what `ask` runs, the wider ones run.
fn profiles(command: &str, asks: &Verdict) {
    let alone = judge(&NONE, Profile::Ask, Human::Absent, command).strictness();
    assert_eq!(alone, if asks.strictness() == 0 { 0 } else { 2 }, "without a person");
    for profile in Profile::ALL {
        let got = judge(&NONE, profile, Human::Present, command).strictness();
        if profile.only_looks() {
            assert_eq!(got, 2, "{profile:?} runs no command");
        } else {
            assert!(got <= asks.strictness() || profile < Profile::Ask, "{profile:?} is stricter than ask");
        }
    }
}

/// A deny rule never makes it laxer, an allow rule never stricter.
fn rules(command: &str, asks: &Verdict) {
    assert!(
        judge(&DENY, Profile::Ask, Human::Present, command).strictness() >= asks.strictness(),
        "a deny rule"
    );
    assert!(
        judge(&ALLOW, Profile::Ask, Human::Present, command).strictness() <= asks.strictness(),
        "an allow rule"
    );
}

/// What is added to a command never runs unasked because of what is there.
fn around(command: &str, asks: &Verdict) {
    let simple = !command.contains(['#', '\\', '\n', '\'', '"', '`', '$', '<', '(', ')', '{', '}', '[', ']'])
        && !command.trim().is_empty();
    if !simple {
        return;
    }
    let now = |text: &str| judge(&NONE, Profile::Ask, Human::Present, text).strictness();
    for text in [
        format!("{command} ; rm x"),
        format!("{command} && rm x"),
        format!("{command} | tee x"),
        format!("{command} > x"),
        format!("true & {command} & rm x"),
        format!("{command} $(rm x)"),
    ] {
        assert_ne!(now(&text), 0, "{text:?} runs unasked");
    }
    // Whether it is one at all, is for the shell to say.
    if asks.strictness() > 0 {
        for text in [format!("true; {command}"), format!("({command}\n)"), format!("eval '{command}'")] {
            assert!(now(&text) > 0, "{text:?} runs unasked, but not {command:?}");
        }
    }
}

/// A pattern that is offered allows this command, and not another one beside it.
fn always(command: &str, pattern: &str) {
    let mut policy = policy(&[]);
    for one in tiller_permit::split_patterns(pattern) {
        let rule = Rule::parse(Effect::Allow, Source::User, one, &policy.tools);
        let rule = rule.unwrap_or_else(|why| format_failure(&format!("{one} is no rule: {why}")));
        policy.rules.push(rule);
    }
    assert_eq!(
        always_pattern(&NONE, command).as_deref(),
        Some(pattern),
        "the same pattern for the same text"
    );
    assert_eq!(
        judge(&policy, Profile::Ask, Human::Present, command).strictness(),
        0,
        "{pattern} does not allow it"
    );
    let more = format!("rm -rf src; {command}");
    assert_ne!(
        judge(&policy, Profile::Ask, Human::Present, &more).strictness(),
        0,
        "{pattern} allows {more:?}"
    );
}

/// Ends the case.
#[expect(clippy::panic, reason = "a target fails by a panic")]
fn format_failure(text: &str) -> ! {
    panic!("{text}")
}

/// The same path, read and written.
fn paths(text: &str) -> u8 {
    let path = Path::new("/work/app").join(text);
    let inside = NONE.roots.inside(&path);
    let of = |profile, write: bool| {
        let path = path.display().to_string();
        let access = if write { Access::Write { path, inside } } else { Access::Read { path, inside } };
        let tool = if write { "write_file" } else { "read_file" };
        let touch = if write { Touch::Write } else { Touch::Read };
        let access = [access];
        let request = Request {
            profile,
            human: Human::Present,
            agent: "main",
            tool,
            touch,
            access: &access,
            raw: text,
        };
        decide(&NONE, &request).strictness()
    };
    assert_ne!(of(Profile::Ask, true), 0, "no write without a question");
    assert!(inside || of(Profile::Ask, false) > 0, "a read outside asks");
    assert!(
        !resolve(&path).starts_with("/home/u/.config/tiller") || of(Profile::Full, true) == 2,
        "our own folder"
    );
    assert!(!inside || resolve(&path).starts_with("/work/app"), "a link that leads outside is outside");
    assert!(inside || of(Profile::Full, true) > 0, "full writes in the workspace alone");
    let secret = resolve(&path).starts_with("/home/u/.ssh");
    assert!(!secret || of(Profile::Full, false) > 0, "a secret path is read by no profile unasked");
    of(Profile::Full, true) * 4 + of(Profile::AutoEdit, true) * 2 + u8::from(inside)
}
