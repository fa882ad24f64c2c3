use super::*;
use crate::decide::{Human, Policy, Request, decide};
use crate::paths::Roots;
use std::fs;
use tiller_protocol::{Access, Profile, Touch};
use tiller_shell::analyse;

/// A real workspace in a real home, with links.
struct World {
    _dir: tempfile::TempDir,
    home: PathBuf,
    workspace: PathBuf,
    own: PathBuf,
    policy: Policy,
}

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap().join("home");
    let workspace = home.join("code/app");
    let own = home.join(".config/tiller");
    fs::create_dir_all(&workspace).unwrap();
    fs::create_dir_all(&own).unwrap();
    let mut policy =
        Policy::new(Roots::new(&workspace, Some(home.clone()), vec![own.clone()]), crate::testing::tools());
    // The most permissive there is: profile full, and a rule that allows everything.
    for source in [crate::rules::Source::User, crate::rules::Source::Session] {
        policy.rules.push(
            crate::rules::Rule::parse(crate::rules::Effect::Allow, source, "*", &crate::testing::tools())
                .unwrap(),
        );
    }
    World { _dir: dir, home, workspace, own, policy }
}

fn names() -> impl Iterator<Item = String> {
    FOLDERS
        .iter()
        .flat_map(|f| [format!("{f}/deep/er/x"), format!("{f}/x"), (*f).to_owned()])
        .chain(FILES.iter().map(|f| (*f).to_owned()))
}

fn denied(policy: &Policy, tool: &str, access: Access) -> bool {
    let access = [access];
    let request = Request {
        profile: Profile::Full,
        human: Human::Present,
        agent: "main",
        tool,
        touch: Touch::Write,
        access: &access,
        raw: "",
    };
    decide(policy, &request).strictness() == 2
}

const TOOLS: [&str; 4] = ["write_file", "edit_file", "patch", "anything_else"];

#[test]
fn x3_no_file_tool_writes_a_protected_name_absent_or_present() {
    let w = world();
    let mut count = 0;
    for present in [false, true] {
        for name in names() {
            for root in [&w.workspace, &w.workspace.join("sub/deep"), &w.home] {
                let path = root.join(&name);
                if present {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    if !path.exists() {
                        fs::write(&path, "x").unwrap();
                    }
                }
                for tool in TOOLS {
                    for text in [
                        path.display().to_string(),
                        path.display().to_string().to_uppercase().replacen(
                            &w.home.display().to_string().to_uppercase(),
                            &w.home.display().to_string(),
                            1,
                        ),
                    ] {
                        count += 1;
                        let access = Access::Write { path: text.clone(), inside: true };
                        assert!(denied(&w.policy, tool, access), "{tool} {text} present={present}");
                    }
                }
            }
        }
    }
    assert!(count > 2_000, "{count}");
}

#[test]
fn x3_no_plain_shell_command_writes_a_protected_name() {
    let w = world();
    for name in names() {
        for command in [
            format!("echo x > {name}"),
            format!("echo x >> ./{name}"),
            format!("sub/../{name} && tee {name}"),
            format!("cp evil {name}"),
            format!("mv evil '{name}'"),
            format!("ln -s evil \"{name}\""),
            format!("sed -i s/a/b/ {name}"),
            format!("rm -rf {name}"),
            format!("touch ~/{name}"),
            format!("install evil \"$HOME/{name}\""),
            format!("sudo tee {name}"),
            format!("env A=1 bash -c 'dd if=x of={name}'"),
            format!("find . -exec cp x {name} \\;"),
            format!("(cd sub; : > ../{name})"),
        ] {
            let access = Access::Run {
                command: command.clone(),
                folder: w.workspace.display().to_string(),
                background: false,
            };
            assert!(denied(&w.policy, "terminal", access), "{command}");
        }
    }
}

#[test]
fn x3_links_and_dots_lead_nowhere_else() {
    let w = world();
    fs::create_dir_all(w.workspace.join(".git/hooks")).unwrap();
    fs::create_dir(w.workspace.join("sub")).unwrap();
    for (from, to) in
        [("hooks-link", ".git/hooks"), ("own-link", "../../.config/tiller"), ("rc-link", "../../.bashrc")]
    {
        std::os::unix::fs::symlink(to, w.workspace.join(from)).unwrap();
    }
    // A link to a link to a name that does not exist yet.
    std::os::unix::fs::symlink("rc-link", w.workspace.join("two")).unwrap();
    for path in [
        "hooks-link/pre-commit",
        "own-link/permissions.yaml",
        "rc-link",
        "two",
        "sub/../.git/config",
        "./.git/./config",
        ".git/config/",
    ] {
        let access = Access::Write { path: w.workspace.join(path).display().to_string(), inside: true };
        assert!(denied(&w.policy, "write_file", access), "{path}");
        let access = Access::Run {
            command: format!("echo x > {path}"),
            folder: w.workspace.display().to_string(),
            background: false,
        };
        assert!(denied(&w.policy, "terminal", access), "echo {path}");
    }
}

#[test]
fn our_own_folders_and_what_holds_them() {
    let w = world();
    let p = &w.policy.protected;
    for path in
        [w.own.clone(), w.own.join("permissions.yaml"), w.home.join(".config"), w.home.clone(), "/".into()]
    {
        assert!(p.check_write(&path).is_some(), "{}", path.display());
    }
    assert!(p.as_fn()(&w.own.join("x")).is_some());
    for path in [
        "src/main.rs",
        ".gitignore",
        ".gitattributes",
        ".github/workflows/ci.yml",
        ".tillerrc",
        "gitconfig",
        "AGENTS.md",
        ".vscode/x.md",
        "a.git/x",
        ".cargo/audit.toml",
    ] {
        assert_eq!(p.check_write(&w.workspace.join(path)), None, "{path}");
    }
    assert_eq!(p.check_write(&w.workspace), None);
}

#[test]
fn a_workspace_that_the_person_chose_may_lie_in_a_protected_folder() {
    let w = world();
    let chosen = w.home.join(".config/nvim");
    fs::create_dir_all(&chosen).unwrap();
    let p = Protected::new(Roots::new(&chosen, Some(w.home.clone()), vec![w.own.clone()]));
    assert_eq!(p.check_write(&chosen.join("init.lua")), None);
    assert!(p.check_write(&chosen.join(".git/config")).is_some());
    // `tiller demo` creates its sample in one of Tiller's own folders.
    let sample = w.own.join("demo/sample");
    fs::create_dir_all(&sample).unwrap();
    let p = Protected::new(Roots::new(&sample, Some(w.home.clone()), vec![w.own.clone()]));
    assert_eq!(p.check_write(&sample.join("src/main.rs")), None);
    assert!(p.check_write(&w.own.join("permissions.yaml")).is_some());
    assert!(p.check_write(&sample.join(".tiller/config.toml")).is_some());
}

#[test]
fn names_are_folded() {
    for (a, b) in [
        (".GIT", ".git"),
        (".g\u{200d}it", ".git"),
        ("\u{ff0e}git", ".git"),
        (".\u{17f}sh", ".ssh"),
        (".G\u{0130}T", ".git"),
        ("ÄB", "äb"),
    ] {
        assert_eq!(fold(a), b);
    }
}

#[test]
fn reading_is_no_writing() {
    let w = world();
    for command in [
        "cat .git/config",
        "ls -la .git/hooks",
        "grep x ~/.bashrc",
        "git add .envrc",
        "diff .npmrc x",
        "cp .npmrc copy.txt",
        "bash .husky/pre-commit",
    ] {
        assert_eq!(
            w.policy.protected.check_command(&w.policy.roots, &analyse(command), &w.workspace),
            None,
            "{command}"
        );
    }
}

/// A file that a hook runs is written by no tool and no plain command; what lies beside it is free.
#[test]
fn files_that_hooks_run_are_protected() {
    let mut w = world();
    fs::create_dir(w.workspace.join("tools")).unwrap();
    fs::write(w.workspace.join("tools/guard.sh"), "exit 2\n").unwrap();
    std::os::unix::fs::symlink("tools/guard.sh", w.workspace.join("link")).unwrap();
    w.policy.roots.hook_files.push(w.workspace.join("tools/guard.sh"));
    w.policy.protected = Protected::new(w.policy.roots.clone());
    let write =
        |path: &str| Access::Write { path: w.workspace.join(path).display().to_string(), inside: true };
    let run = |command: &str| Access::Run {
        command: command.into(),
        folder: w.workspace.display().to_string(),
        background: false,
    };
    for path in ["tools/guard.sh", "tools/../tools/GUARD.sh", "link"] {
        assert!(denied(&w.policy, "write_file", write(path)), "{path}");
    }
    for command in ["echo x > tools/guard.sh", "cd tools && cp ../evil guard.sh", "rm tools/guard.sh"] {
        assert!(denied(&w.policy, "terminal", run(command)), "{command}");
    }
    assert!(!denied(&w.policy, "write_file", write("tools/other.sh")));
    assert!(!denied(&w.policy, "terminal", run("sh tools/guard.sh")));
}
