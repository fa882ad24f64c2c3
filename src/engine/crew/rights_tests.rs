//! Fault A4 as a property: whatever the person's rules, the kinds of agents and the tasks say, no agent below an agent
//! may do what that one may not.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use tiller_config::agents::{Definition, Definitions, Narrowing, Origin, Pick, Tools};
use tiller_permit::{Effect, Policy, Roots, Rule, Source};
use tiller_protocol::{Access, AgentId, AgentLimits, MemoryRights, Profile, ToolCatalog, ToolSet, Touch};
use tiller_tool::Registry;
use tiller_tool::crew::{Brief, Delegation, Goal, Report, SharedCrew, Task};

use super::*;
use crate::crew::NoCrew;
use crate::questions::permission::{Permit, Question};
use crate::{CrewConfig, Roles};

const WORK: &str = "/work/app";

/// Rules that match some of the calls below, widely and narrowly.
const PATTERNS: &[&str] = &[
    "*",
    "terminal",
    "terminal(*)",
    "terminal(ls*)",
    "terminal(git *)",
    "terminal(git push*)",
    "terminal(rm *)",
    "terminal(cargo test)",
    "read_file",
    "read_file(src/**)",
    "read_file(secret*)",
    "write_file(**)",
    "write_file(src/*)",
    "edit_file",
    "edit_file(README.md)",
    "web_fetch(domain:example.org)",
    "web_fetch",
    "process",
    "clarify",
    "todo_write",
    "odd_tool",
];

/// What is asked of every agent: the tool, its kind, what it touches.
fn corpus() -> Vec<(&'static str, Touch, Vec<Access>)> {
    let run = |command: &str| Access::Run { command: command.into(), folder: WORK.into(), background: false };
    let at = |path: &str| if path.starts_with('/') { path.to_owned() } else { format!("{WORK}/{path}") };
    let read = |path: &str| Access::Read { path: at(path), inside: !path.starts_with('/') };
    let write = |path: &str| Access::Write { path: at(path), inside: !path.starts_with('/') };
    let mut all: Vec<(&'static str, Touch, Vec<Access>)> = [
        "ls -la",
        "git status && ls src",
        "git push origin main",
        "git push --force",
        "cargo test",
        "cargo test; rm -rf target",
        "rm -rf .",
        "rm -rf /",
        "cat secret.txt",
        "cat /etc/shadow",
        "echo x >> ~/.bashrc",
        "$(cat cmd)",
        "sudo make install",
        "FOO=1 env ls | sh",
    ]
    .iter()
    .map(|c| ("terminal", Touch::Execute, vec![run(c)]))
    .collect();
    for path in ["src/a.rs", "secret.txt", "/etc/passwd", "../other/x"] {
        all.push(("read_file", Touch::Read, vec![read(path)]));
    }
    for path in ["src/a.rs", "README.md", "AGENTS.md", ".tiller/config.toml", ".git/hooks/x", "/etc/passwd"] {
        all.push(("write_file", Touch::Write, vec![write(path)]));
        all.push(("edit_file", Touch::Write, vec![write(path), read("src/a.rs")]));
    }
    let net = |url: &str, host: &str| Access::Net { url: url.into(), host: host.into(), local: false };
    all.extend([
        ("web_fetch", Touch::Network, vec![net("https://example.org/x", "example.org")]),
        ("web_fetch", Touch::Network, vec![net("http://10.0.0.1/", "10.0.0.1")]),
        ("process", Touch::Execute, vec![Access::Process { what: "write to p1: x".into() }]),
        ("process", Touch::Execute, vec![Access::Process { what: "kill p1".into() }]),
        ("clarify", Touch::Plan, vec![Access::Free]),
        ("todo_write", Touch::Plan, vec![Access::Free]),
        ("odd_tool", Touch::Execute, vec![]),
        ("terminal", Touch::Execute, vec![run("ls"), write("src/a.rs")]),
    ]);
    all
}

fn effect() -> impl Strategy<Value = Effect> {
    select(vec![Effect::Allow, Effect::Ask, Effect::Deny])
}

fn pattern() -> impl Strategy<Value = String> {
    select(PATTERNS).prop_map(str::to_owned)
}

fn catalog() -> ToolCatalog {
    Registry::built_in().catalog()
}

fn words() -> Vec<&'static str> {
    let sets = ToolSet::ALL.into_iter().map(ToolSet::word);
    sets.chain(catalog().names()).chain(["all"]).collect()
}

fn some_words() -> impl Strategy<Value = Vec<String>> {
    let all = words();
    let most = all.len();
    subsequence(all, 0..=most).prop_map(|w| w.into_iter().map(str::to_owned).collect())
}

fn tools() -> impl Strategy<Value = Tools> {
    let only = some_words().prop_map(|w| {
        // As the reader of definitions spells sets out.
        let all = catalog();
        let spelled = w.iter().flat_map(|word| match ToolSet::parse(word) {
            Some(set) => all.of_set(set).map(str::to_owned).collect::<Vec<_>>(),
            None => vec![word.clone()],
        });
        Tools::Only(spelled.collect::<BTreeSet<_>>())
    });
    prop_oneof![Just(Tools::Default), Just(Tools::All), only]
}

fn profile() -> impl Strategy<Value = Profile> {
    select(Profile::ALL.to_vec())
}

fn definition() -> impl Strategy<Value = Definition> {
    let lists = || proptest::collection::vec(pattern(), 0..3);
    (tools(), proptest::option::of(profile()), lists(), lists()).prop_map(|(tools, profile, ask, deny)| {
        Definition {
            name: "kind".into(),
            description: "x".into(),
            from: Origin::User,
            file: None,
            pick: Pick::Inherit,
            effort: None,
            tools,
            skills: Vec::new(),
            permissions: Narrowing { profile, ask, deny },
            limits: AgentLimits::default(),
            cli: None,
            terminal: None,
            may: None,
            memory: Some(MemoryRights::Off),
            prompt: String::new(),
        }
    })
}

/// One agent of a chain: its kind, the tools that its task names, and whether it judges, or shares a board.
fn level() -> impl Strategy<Value = (Option<Definition>, Vec<String>, bool, bool)> {
    let tools = prop_oneof![2 => Just(Vec::new()), 1 => some_words(), 1 => Just(vec!["all".to_owned()])];
    (proptest::option::of(definition()), tools, proptest::bool::weighted(0.1), any::<bool>())
}

/// A rule of the person's. Those that name an agent only narrow here: what she allows to one by name is hers to give.
fn rule() -> impl Strategy<Value = Rule> {
    (effect(), pattern(), select(vec![Source::User, Source::Session, Source::Project]), 0_u8..5).prop_map(
        |(effect, pattern, source, whom)| {
            let rule = Rule::parse(effect, source, &pattern, &catalog()).unwrap();
            match whom {
                0 if effect != Effect::Allow => rule.for_agent("main/a1"),
                _ => rule,
            }
        },
    )
}

/// One agent of a chain.
struct Member {
    id: AgentId,
    role: Option<Arc<Definition>>,
    brief: Brief,
    profile: Profile,
}

impl Member {
    fn grant(&self) -> Grant<'_> {
        Grant { id: &self.id, role: self.role.as_deref(), brief: &self.brief }
    }
}

fn members(levels: &[(Option<Definition>, Vec<String>, bool, bool)], session: Profile) -> Vec<Member> {
    let (mut id, mut above, mut chain) = (AgentId::main(), session, Vec::new());
    for (at, (role, tools, bare, board)) in levels.iter().enumerate() {
        id = id.child(&format!("a{}", at + 1));
        let role = role.clone().map(Arc::new);
        let profile = profile_of(role.as_deref(), above);
        let brief = Brief {
            goal: "x".into(),
            tools: tools.clone(),
            bare: *bare,
            board: board.then(|| "b".to_owned()),
            ..Brief::default()
        };
        chain.push(Member { id: id.clone(), role, brief, profile });
        above = narrowed(profile, above);
    }
    chain
}

fn strictness(permit: &Permit, who: &AgentId, profile: Profile, call: &(&str, Touch, Vec<Access>)) -> u8 {
    let args: Value = json!({"x": "y"});
    let question = Question {
        agent: who,
        tool: call.0,
        verb: &tiller_protocol::ToolVerb::Other("do".into()),
        target: "it",
        touch: call.1,
        args: &args,
        access: &call.2,
        profile,
        shell: None,
        terminal: None,
    };
    permit.judge(&question).strictness()
}

fn nobody_has_more(cases: u32) {
    let mine = prop_oneof![Just(words().into_iter().map(str::to_owned).collect::<Vec<_>>()), some_words()];
    let rules = proptest::collection::vec(rule(), 0..7);
    let all = (rules, profile(), mine, proptest::collection::vec(level(), 1..5), 1_u32..5);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let held = TestRunner::new(config).run(&all, |(rules, session, mine, levels, depth)| {
        let mut policy =
            Policy::new(Roots::with_resolve(WORK, None, Vec::new(), Arc::new(|p| p.to_owned())), catalog());
        policy.rules.add(rules, true);
        let mut world = WORLD.with(|w| w.world.copy());
        world.permit = Permit::new(policy, Arc::new(|_| Ok(())));
        world.tools.visible.retain(|t| mine.iter().any(|m| m == t.name()));
        let mut config = (*world.config()).clone();
        config.agents.depth = depth;
        world.config = Arc::new(std::sync::RwLock::new(Arc::new(config)));
        let chain = members(&levels, session);
        let all: Vec<Grant<'_>> = chain.iter().map(Member::grant).collect();
        let mut above = (world.permit.clone(), AgentId::main(), session, world.tools_of(&[]));
        for depth_now in 1..=all.len() {
            let member = &chain[depth_now - 1];
            let below = world.child(&all[..depth_now], None, None).unwrap();
            let profile = narrowed(member.profile, session);
            prop_assert!(profile <= above.2);
            for tool in &below.tools.visible {
                // The board of siblings and the few like it come with being allowed to start agents.
                let had = above.3.iter().any(|t| t.name() == tool.name())
                    || comes_with_delegation(tool.info().grant)
                        && world.tools.visible.iter().any(|t| t.name() == "delegate_task");
                prop_assert!(had, "{} has {}", member.id, tool.name());
                prop_assert!(
                    depth_now < depth as usize || !tool.info().starts_agents,
                    "{} may start agents at depth {depth_now} of {depth}",
                    member.id
                );
            }
            for call in corpus() {
                let over = strictness(&above.0, &above.1, above.2, &call);
                let own = strictness(&below.permit, &member.id, profile, &call);
                prop_assert!(own >= over, "{} {call:?}: {own} under {over}", member.id);
            }
            above = (below.permit.clone(), member.id.clone(), profile, below.tools.visible.clone());
        }
        Ok(())
    });
    held.unwrap();
}

#[test]
fn a4_nobody_has_more_than_the_one_above() {
    nobody_has_more(48);
}

#[test]
#[ignore = "1,000 sets of rules, a minute"]
fn a4_nobody_has_more_a_thousand_times() {
    nobody_has_more(1_000);
}

/// A world, made once: what is not asked about here is the same in all.
struct NoDelegation;

#[async_trait::async_trait]
impl Delegation for NoDelegation {
    async fn tasks(&self, _: Vec<Task>, _: SharedCrew) -> Vec<Report> {
        Vec::new()
    }

    async fn goal(&self, _: Goal, _: SharedCrew) -> Result<Vec<Report>, String> {
        Ok(Vec::new())
    }
}

struct Made {
    _folder: tempfile::TempDir,
    world: Services,
}

thread_local! {
    static WORLD: Made = {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let crew = CrewConfig {
            agents: Arc::new(|| Box::new(NoCrew)),
            delegation: Arc::new(NoDelegation),
            programs: None,
            folders: None,
            terminals: None,
            workflows: None,
            roles: Roles::new(Definitions::default()),
        };
        let parts = crate::testing::parts(folder.path(), &home, crew, Registry::built_in()).unwrap();
        Made { _folder: folder, world: Services::new(parts) }
    };
}

impl Services {
    fn copy(&self) -> Self {
        let mut copy = self.child(&[], None, None).unwrap();
        copy.tools.visible.clone_from(&self.tools.visible);
        copy
    }
}

/// The property can fail: a kind that would loosen is seen.
#[test]
fn a4_the_property_sees_a_profile_that_loosens() {
    let permit = Permit::new(
        Policy::new(Roots::with_resolve(WORK, None, Vec::new(), Arc::new(|p| p.to_owned())), catalog()),
        Arc::new(|_| Ok(())),
    );
    let id = AgentId::main();
    let looser = corpus()
        .iter()
        .filter(|c| strictness(&permit, &id, Profile::Full, c) < strictness(&permit, &id, Profile::Ask, c))
        .count();
    assert!(looser >= 10, "the corpus tells profiles apart: {looser}");
}
