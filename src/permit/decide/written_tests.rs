//! Rules match a program as it is written, patterns of paths have one meaning, and what cannot match or is not offered says why.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use super::*;
use crate::rules::{Effect, Rule, Source};
use crate::testing::tools;

/// A project with programs that are links, as virtual environments and package managers make them.
fn project() -> (tempfile::TempDir, Policy) {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path().canonicalize().unwrap().join("app");
    for folder in [".venv/bin", "node_modules/.bin", "node_modules/tsc/bin", "scripts"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    std::fs::write(root.join("node_modules/tsc/bin/tsc"), "").unwrap();
    std::fs::write(tmp.path().join("python3"), "").unwrap();
    std::fs::write(tmp.path().join("secret"), "").unwrap();
    symlink(tmp.path().join("python3"), root.join(".venv/bin/python")).unwrap();
    symlink("../tsc/bin/tsc", root.join("node_modules/.bin/tsc")).unwrap();
    symlink(tmp.path().join("secret"), root.join("leads-out")).unwrap();
    let policy = Policy::new(Roots::new(&root, None, vec![]), tools())
        .within(Arc::new(crate::surroundings::testing::Calm));
    (tmp, policy)
}

/// The verdict about a call by `main`.
fn verdict(policy: &Policy, profile: Profile, (tool, touch): (&str, Touch), access: &[Access]) -> Verdict {
    let human = Human::Present;
    decide(policy, &Request { profile, human, agent: "main", tool, touch, access, raw: "{}" })
}

fn judged(policy: &Policy, command: &str) -> Verdict {
    let folder = policy.roots.workspace.display().to_string();
    let access = [Access::Run { command: command.into(), folder, background: false }];
    verdict(policy, Profile::Ask, ("terminal", Touch::Execute), &access)
}

fn rule(effect: Effect, text: &str) -> Rule {
    Rule::written(effect, Source::User, text, &tools()).unwrap()
}

#[test]
fn a_program_that_is_a_link_is_allowed_by_its_name_and_offered_as_a_rule() {
    let (_tmp, policy) = project();
    for (command, offered) in [
        (".venv/bin/python build.py", "terminal(.venv/bin/python build.py)"),
        (".venv/bin/python -m pytest -q", "terminal(.venv/bin/python -m pytest*)"),
        ("node_modules/.bin/tsc --noEmit", "terminal(node_modules/.bin/tsc*)"),
        ("./node_modules/.bin/tsc -p .", "terminal(./node_modules/.bin/tsc*)"),
    ] {
        let Verdict::Ask { always, effects, .. } = judged(&policy, command) else { panic!("{command}") };
        assert_eq!(always.as_deref(), Some(offered), "{command}: {effects:?}");
        let mut with = policy.clone();
        with.rules.push(rule(Effect::Allow, offered));
        assert_eq!(judged(&with, command).strictness(), 0, "{command}");
        let outside = format!("{command} leads-out");
        let wide = with.rules.rules().iter().any(|r| r.text().ends_with("*)"));
        // Where an argument leads is another thing than where the program leads.
        assert_eq!(judged(&with, &outside).strictness(), u8::from(!wide), "{outside}");
    }
    let mut wide = policy.clone();
    wide.rules.push(rule(Effect::Allow, "terminal(.venv/bin/python *)"));
    assert_eq!(judged(&wide, ".venv/bin/python x.py").strictness(), 0);
    // Steps upwards lead elsewhere than the words say.
    assert_eq!(judged(&wide, ".venv/bin/../../scripts/x y").strictness(), 1);
    let mut up = policy;
    up.rules.push(rule(Effect::Allow, "terminal(scripts/*)"));
    assert_eq!(judged(&up, "scripts/../leads-out").strictness(), 1);
    for odd in ["'./*/pytest' -q", "'my env/bin/pytest' -q"] {
        let Verdict::Ask { always, .. } = judged(&wide, odd) else { panic!("{odd}") };
        assert!(always.is_none_or(|rule| !rule.ends_with("*)")), "{odd}");
    }
    // Where it leads can only narrow.
    wide.rules.push(rule(Effect::Deny, "terminal(*/python3 *)"));
    assert_eq!(judged(&wide, ".venv/bin/python x.py").strictness(), 2);
}

#[test]
fn a_double_star_reaches_below_folders_wherever_it_stands() {
    let (_tmp, policy) = project();
    let write = |policy: &Policy, path: &str| {
        let path = policy.roots.workspace.join(path).display().to_string();
        let access = [Access::Write { path, inside: true }];
        verdict(policy, Profile::Ask, ("write_file", Touch::Write), &access).strictness()
    };
    for (pattern, path, matches) in [
        ("src/**.py", "src/a.py", true),
        ("src/**.py", "src/a/b.py", true),
        ("src/**.py", "src/a/b/c.py", true),
        ("src/**.py", "src/a/b.pyc", false),
        ("src/**.py", "lib/a.py", false),
        ("**.py", "a/b.py", true),
        ("src/**/*.py", "src/a.py", true),
        ("src/*.py", "src/a/b.py", false),
        ("src/**", "src/a/b", true),
        ("src/**.{pem,key}", "src/a/b.pem", true),
        ("src/**[0-9].cfg", "src/a/b1.cfg", true),
    ] {
        for (effect, strictness) in [(Effect::Allow, 0), (Effect::Deny, 2)] {
            let mut with = policy.clone();
            with.rules.push(rule(effect, &format!("write_file({pattern})")));
            let wanted = if matches { strictness } else { 1 };
            // A rule that restricts holds at any depth where it is a bare name.
            if effect == Effect::Deny && !matches && !pattern.contains('/') {
                continue;
            }
            assert_eq!(write(&with, path), wanted, "{effect:?} {pattern} {path}");
        }
    }
}

#[test]
fn a_pattern_that_can_match_nothing_is_an_error_with_its_reason() {
    for (text, why) in [
        ("write_file(src/../etc/x)", "without `..`"),
        ("read_file(src//x)", "empty names"),
        ("read_file(src/./x)", "empty names and `.`"),
        ("write_file(src/[a)", "no pattern of paths"),
        ("write_file(domain:example.org)", "a path has no domain"),
        ("read_file(~root/x)", "only `~/`"),
        ("web_fetch(domain:https://example.org)", "the name of a host alone"),
        ("web_fetch(domain:)", "the name of a host alone"),
        ("write_file(a**/b**/c**/d**/e**/f**/g**)", "too many `**`"),
    ] {
        for effect in [Effect::Allow, Effect::Deny] {
            let fault = Rule::written(effect, Source::User, text, &tools()).unwrap_err();
            assert!(fault.contains("can match nothing") && fault.contains(why), "{text}: {fault}");
        }
        // The tool asks until the rule is corrected.
        let file = crate::rules::rulefile::load(&format!("deny:\n  - '{text}'\n"), Source::User, &tools());
        let file = file.unwrap();
        assert_eq!(file.problems.len(), 1, "{text}");
        assert!(file.rules.iter().any(|r| r.effect == Effect::Ask && r.is_whole()), "{text}");
    }
    for good in [
        "write_file(/)",
        "write_file(.)",
        "write_file(./src/x)",
        "write_file(src/)",
        "read_file(~/.ssh/**)",
        "read_file(*)",
        "read_file(..hidden)",
        "write_file(~notes.md)",
        "browse(domain:[::1])",
        "program:read_file(*..//*)",
        "web_fetch(domain:*.example.org)",
        "web_fetch(https://example.org/*)",
        "terminal(cat ../x//y)",
    ] {
        assert!(Rule::written(Effect::Deny, Source::User, good, &tools()).is_ok(), "{good}");
    }
}

#[test]
fn a_rule_that_is_not_offered_says_why() {
    let (_tmp, policy) = project();
    for (command, why) in [
        ("make > log", "it writes"),
        ("make *.c", "the shell makes some of its words"),
        ("/opt/tool run", "a path that is not below this folder"),
        ("make leads-out", "leads elsewhere"),
        ("make <<< x", "more than plain commands"),
        ("a1; a2; a3; a4; a5; a6", "too long to be read"),
    ] {
        let Verdict::Ask { always: None, effects, .. } = judged(&policy, command) else {
            panic!("{command}")
        };
        let said = effects.iter().find(|e| e.starts_with("no rule for it is offered: "));
        assert!(said.is_some_and(|said| said.contains(why)), "{command}: {effects:?}");
    }
    let Verdict::Ask { always: Some(_), effects, .. } = judged(&policy, "make all") else { panic!() };
    assert!(!effects.iter().any(|e| e.contains("no rule")), "{effects:?}");
}

#[test]
fn what_is_kept_for_later_passes_the_mode_and_the_rules() {
    let (_tmp, policy) = project();
    let path = policy.roots.workspace.join(".tiller/MEMORY.md").display().to_string();
    let judge = |policy: &Policy, profile: Profile, path: Option<&str>| {
        let path = path.map(str::to_owned);
        let access = [Access::Store { what: "changes MEMORY.md".into(), path }];
        verdict(policy, profile, ("todo_write", Touch::Plan), &access).strictness()
    };
    for (profile, wanted) in [
        (Profile::ReadOnly, 2),
        (Profile::Plan, 2),
        (Profile::Ask, 0),
        (Profile::AutoEdit, 0),
        (Profile::Full, 0),
    ] {
        for path in [None, Some(path.as_str())] {
            assert_eq!(judge(&policy, profile, path), wanted, "{profile:?}");
        }
    }
    for (effect, text, with_path, without) in [
        (Effect::Deny, "write_file(.tiller/**)", 2, 0),
        (Effect::Deny, "edit_file(.tiller/MEMORY.md)", 2, 0),
        (Effect::Ask, "write_file(.tiller/**)", 1, 0),
        (Effect::Deny, "todo_write", 2, 2),
        (Effect::Ask, "todo_write", 1, 1),
        (Effect::Deny, "read_file(.tiller/**)", 0, 0),
        // About a tool alone.
        (Effect::Deny, "write_file", 0, 0),
        (Effect::Ask, "edit_file", 0, 0),
    ] {
        let mut with = policy.clone();
        with.rules.push(rule(effect, text));
        for profile in [Profile::Ask, Profile::Full] {
            assert_eq!(judge(&with, profile, Some(&path)), with_path, "{text}");
            assert_eq!(judge(&with, profile, None), without, "{text}");
        }
    }
}

#[test]
fn a_rule_that_allows_a_programs_tool_names_the_program() {
    let (_tmp, policy) = project();
    let judge = |policy: &Policy, tool: &str| verdict(policy, Profile::Ask, (tool, Touch::Execute), &[]);
    let old = Rule::written(Effect::Allow, Source::User, "program:permission", &tools()).unwrap_err();
    assert!(old.contains("name the program too"), "{old}");
    let Verdict::Ask { always, .. } = judge(&policy, "claude:permission") else { panic!() };
    assert_eq!(always, None, "it would open all that the program can do");
    for (effect, text, tool, wanted) in [
        (Effect::Allow, "program:claude:permission", "claude:permission", 0),
        (Effect::Allow, "program:claude:permission", "codex:permission", 1),
        (Effect::Allow, "program:*:Skill", "claude:Skill", 0),
        (Effect::Deny, "program:permission", "claude:permission", 2),
        (Effect::Deny, "program:claude:*", "claude:Skill", 2),
        (Effect::Deny, "program:claude:*", "codex:Skill", 1),
        (Effect::Ask, "program:skill", "claude:Skill", 1),
        // One that restricts a tool of ours holds for a program's tool of that name.
        (Effect::Deny, "web_fetch", "gemini:web_fetch", 2),
        (Effect::Deny, "write_file", "gemini:write_file", 2),
        (Effect::Allow, "web_fetch", "gemini:web_fetch", 1),
    ] {
        let mut with = policy.clone();
        with.rules.push(rule(effect, text));
        assert_eq!(judge(&with, tool).strictness(), wanted, "{effect:?} {text} {tool}");
    }
}
