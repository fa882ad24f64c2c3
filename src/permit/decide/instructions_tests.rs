//! Files that later sessions read as instructions: the user's yes to the very file, in every mode and by every way.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::rules::{Rule, Source};

const NAMES: &[&str] = &[
    "AGENTS.md",
    "sub/CLAUDE.md",
    "skills/x/SKILL.md",
    "SOUL.md",
    "HEARTBEAT.md",
    "agents.MD",
    ".cursorrules",
];

const WAYS: &[&str] = &[
    "echo x > F",
    "printf x | tee -a F",
    "sed -i s/a/b/ F",
    "cp evil.md F",
    "mv evil.md F",
    "git show HEAD:x > F",
    "python3 -c \"open('F', 'w').write('x')\"",
    "cd sub && echo x >> ../F",
    "dd if=x of=F",
    "make && install x F",
    "ln -sf evil.md F",
    "for f in a b; do echo $f >> F; done",
    "curl -so F https://example.com/x",
];

fn policy(allow: &[&str]) -> Policy {
    let roots = Roots::with_resolve(
        "/work/app",
        Some("/home/u".into()),
        vec!["/home/u/.config/tiller".into()],
        Arc::new(|p: &Path| crate::paths::normal(p)),
    );
    let tools = crate::testing::tools();
    let mut policy = Policy::new(roots, tools.clone()).within(Arc::new(crate::surroundings::testing::Calm));
    for text in allow {
        policy.rules.push(Rule::parse(Effect::Allow, Source::User, text, &tools).unwrap());
    }
    policy
}

fn judged(policy: &Policy, profile: Profile, human: Human, tool: &str, access: Access) -> Verdict {
    let touch = if tool == "terminal" { Touch::Execute } else { Touch::Write };
    let access = [access];
    decide(policy, &Request { profile, human, agent: "main", tool, touch, access: &access, raw: "" })
}

fn write(path: &str) -> Access {
    Access::Write { path: format!("/work/app/{path}"), inside: true }
}

fn run(command: String) -> Access {
    Access::Run { command, folder: "/work/app".into(), background: false }
}

#[test]
fn no_mode_and_no_wide_rule_agrees_to_instructions() {
    let wide = policy(&["write_file", "edit_file(**)", "patch(*.md)", "terminal"]);
    for profile in [Profile::ReadOnly, Profile::Plan, Profile::Ask, Profile::AutoEdit, Profile::Full] {
        for name in NAMES {
            for tool in ["write_file", "edit_file", "patch"] {
                let verdict = judged(&wide, profile, Human::Present, tool, write(name));
                if profile.only_looks() {
                    assert_eq!(verdict.strictness(), 2, "{profile:?} {tool} {name}");
                    continue;
                }
                let Verdict::Ask { rule, effects, always, .. } = verdict else {
                    panic!("{profile:?} {tool} {name}")
                };
                assert_eq!((rule.text(), always), (INSTRUCTS, Some(format!("write_file({name})"))));
                assert!(
                    effects.iter().any(|effect| effect.contains(name) && effect.contains(INSTRUCTS)),
                    "{effects:?}"
                );
                let absent = judged(&wide, profile, Human::Absent, tool, write(name));
                assert!(
                    matches!(&absent, Verdict::Deny { reason, .. } if reason.contains(INSTRUCTS)),
                    "{absent:?}"
                );
            }
            for way in WAYS {
                let command = way.replace('F', name);
                let verdict = judged(&wide, profile, Human::Present, "terminal", run(command.clone()));
                assert!(verdict.strictness() >= 1, "{profile:?} {command}");
            }
        }
    }
}

#[test]
fn a_rule_that_names_the_file_agrees_to_it_and_to_no_other() {
    let named = policy(&["write_file(AGENTS.md)"]);
    for (name, asks) in [("AGENTS.md", 0), ("sub/AGENTS.md", 1), ("CLAUDE.md", 1)] {
        for tool in ["write_file", "edit_file", "patch"] {
            let verdict = judged(&named, Profile::Full, Human::Present, tool, write(name));
            assert_eq!(verdict.strictness(), asks, "{tool} {name}");
        }
        let verdict =
            judged(&named, Profile::Full, Human::Present, "terminal", run(format!("echo x >> {name}")));
        assert_eq!(verdict.strictness(), asks, "{name}");
    }
    let mut denied = policy(&["write_file(AGENTS.md)"]);
    let rule = Rule::parse(Effect::Deny, Source::User, "write_file(*.md)", &denied.tools).unwrap();
    denied.rules.push(rule);
    assert_eq!(
        judged(&denied, Profile::Full, Human::Present, "write_file", write("AGENTS.md")).strictness(),
        2
    );
}

#[test]
fn other_files_and_reading_cost_no_question_in_auto() {
    let plain = policy(&[]);
    for command in [
        "cat AGENTS.md",
        "grep -n x AGENTS.md CLAUDE.md",
        "git diff AGENTS.md",
        "make > agents.log",
        "echo AGENTS.md",
        "git add AGENTS.md",
        "rm -f *.o",
        "prettier --write src/a.ts",
    ] {
        let verdict = judged(&plain, Profile::Full, Human::Present, "terminal", run(command.into()));
        assert_eq!(verdict.strictness(), 0, "{command}: {verdict:?}");
    }
    assert_eq!(
        judged(&plain, Profile::Full, Human::Present, "write_file", write("docs/a.md")).strictness(),
        0
    );
}

/// A pattern of the shell stands for the files that are there.
#[test]
fn a_pattern_asks_where_it_stands_for_instructions() {
    let tmp = tempfile::tempdir().unwrap();
    let top = tmp.path().canonicalize().unwrap();
    let work = top.join("app");
    for folder in ["docs", "notes"] {
        std::fs::create_dir_all(work.join(folder)).unwrap();
        std::fs::write(work.join(folder).join("a.md"), "").unwrap();
    }
    std::fs::write(work.join("docs/Agents.md"), "").unwrap();
    let roots = Roots::new(&work, None, Vec::new());
    let mut policy = policy(&[]);
    policy.roots = roots.clone();
    policy.protected = Protected::new(roots);
    for (command, asks) in [
        ("sed -i s/x/y/ docs/*.md", 1),
        ("cd docs && sed -i s/x/y/ A*", 1),
        ("sed -i s/x/y/ notes/*.md", 0),
        ("rm -f notes/*.o", 0),
        ("sed -i s/x/y/ */AGENT?.md", 1),
    ] {
        let access =
            Access::Run { command: command.into(), folder: work.display().to_string(), background: false };
        let verdict = judged(&policy, Profile::Full, Human::Present, "terminal", access);
        assert_eq!(verdict.strictness(), asks, "{command}: {verdict:?}");
    }
}
