use tiller_protocol::{Profile, Touch};

use super::*;
use crate::Human;
use crate::rules::{Effect, Source};

fn folder() -> tempfile::TempDir {
    let tmp = tempfile::tempdir().unwrap();
    for dir in ["docs", "src/gen", "notes"] {
        std::fs::create_dir_all(tmp.path().join(dir)).unwrap();
    }
    for file in ["docs/a.md", "src/gen/x.rs", "notes/b.md"] {
        std::fs::write(tmp.path().join(file), "x\n").unwrap();
    }
    std::os::unix::fs::symlink("docs", tmp.path().join("linked")).unwrap();
    tmp
}

fn reach_of(root: &Path, tool: &str, access: &[Access]) -> CallReach {
    let roots = Roots::new(root.canonicalize().unwrap(), None, vec![]);
    let policy = Policy::new(roots, crate::testing::tools());
    let request = Request {
        profile: Profile::Full,
        human: Human::Present,
        agent: "main",
        tool,
        touch: Touch::Execute,
        access,
        raw: "{}",
    };
    reach(&policy, &request)
}

fn command(root: &Path, command: &str) -> CallReach {
    let folder = root.canonicalize().unwrap().display().to_string();
    reach_of(root, "terminal", &[Access::Run { command: command.into(), folder, background: false }])
}

fn rule(text: &str) -> Rule {
    Rule::written(Effect::Deny, Source::User, text, &crate::testing::tools()).unwrap()
}

#[test]
fn a_rule_about_a_path_is_about_each_command_that_writes_the_path() {
    let tmp = folder();
    for text in [
        "echo x > docs/a.md",
        "echo x >> ./docs/new.md",
        "cat > docs/a.md <<'EOF'\nx\nEOF",
        "{ date; echo x; } > docs/a.md",
        "sed -i s/x/y/ docs/a.md",
        "sed -i s/x/y/ docs/*.md",
        "perl -pi -e s/x/y/ docs/a.md",
        "rm -f docs/a.md",
        "rm -r docs",
        "mv docs/a.md b.md",
        "mv b.md docs",
        "cp b.md docs/",
        "cp b.md docs/a.md",
        "date | tee -a docs/a.md",
        "touch linked/a.md",
        "cd docs && echo x > a.md",
        "git checkout -- docs/a.md",
        "git -C docs checkout -- a.md",
        "git restore docs/a.md",
        "sh -c 'echo x > docs/a.md'",
        "env X=1 r''m docs/a.md",
        "for f in docs/*.md; do sed -i s/x/y/ \"$f\"; done",
        "find docs -name '*.md' -delete",
    ] {
        assert!(command(tmp.path(), text).meets(&rule("write_file(docs/**)")), "{text}");
    }
    for text in [
        "cat docs/a.md",
        "cp docs/a.md b.md",
        "grep x docs/a.md > out",
        "echo x > notes/b.md",
        "echo 'x > docs/a.md'",
        "check docs/a.md",
        "ls docs",
    ] {
        assert!(!command(tmp.path(), text).meets(&rule("write_file(docs/**)")), "{text}");
    }
    assert!(command(tmp.path(), "cat docs/a.md").meets(&rule("read_file(docs/**)")));
    // A rule for a tool as a whole is about calls of that tool.
    assert!(!command(tmp.path(), "echo x > docs/a.md").meets(&rule("write_file")));
}

#[test]
fn a_rule_about_a_command_is_about_it_however_it_is_written() {
    let tmp = folder();
    for text in [
        "git push origin main",
        "g''it push",
        "g\\it push",
        "\"git\" push",
        "command git push",
        "env X=1 git push",
        "X=1 git push",
        "sh -c 'git push'",
        "/usr/bin/git push",
        "git -C docs push",
        "ls && git push",
    ] {
        assert!(command(tmp.path(), text).meets(&rule("terminal(git push*)")), "{text}");
    }
    for text in ["git status", "echo 'git push'", "ls"] {
        assert!(!command(tmp.path(), text).meets(&rule("terminal(git push*)")), "{text}");
    }
}

/// A name that no tool may write makes no rule one about the call.
#[test]
fn a_call_of_another_tool_meets_the_rules_about_what_it_does() {
    let tmp = folder();
    let path = |path: &str| tmp.path().canonicalize().unwrap().join(path).display().to_string();
    let write =
        |name: &str| reach_of(tmp.path(), "edit_file", &[Access::Write { path: path(name), inside: true }]);
    assert!(write("docs/a.md").meets(&rule("edit_file(docs/**)")));
    assert!(!write(".git/config").meets(&rule("edit_file(docs/**)")));
    assert!(!command(tmp.path(), "echo x > .git/config").meets(&rule("edit_file(docs/**)")));
    let (url, host) = ("https://a.org/x".to_owned(), "A.org".to_owned());
    let net = reach_of(tmp.path(), "web_fetch", &[Access::Net { url, host, local: false }]);
    assert!(net.meets(&rule("web_fetch(domain:a.org)")) && !net.meets(&rule("web_fetch(domain:b.org)")));
    let mcp = Access::Mcp { server: "s".into(), tool: "t".into(), arguments: "{}".into() };
    let mcp = reach_of(tmp.path(), "execute_code", &[mcp]);
    assert!(mcp.meets(&rule("mcp:s:*")) && mcp.meets(&rule("execute_code")) && !mcp.meets(&rule("mcp:s:u")));
    assert!(reach_of(tmp.path(), "todo_write", &[]).meets(&rule("todo_write")));
}

#[test]
fn the_paths_of_a_command_are_given_as_spelled_and_as_links_lead() {
    let tmp = folder();
    let found = command(tmp.path(), "echo x > linked/a.md").command_paths();
    let root = tmp.path().canonicalize().unwrap();
    for name in ["linked/a.md", "docs/a.md"] {
        assert!(found.contains(&root.join(name).display().to_string()), "{found:?}");
    }
    assert!(command(tmp.path(), "g''it push").commands().any(|text| text == "git push"));
}
