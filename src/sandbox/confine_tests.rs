//! Real commands in the sandbox, in each way that this machine has.

use tiller_protocol::secret_paths;

use super::*;
use crate::testing::{Place, methods};

/// Each script must fail in this profile, and each of the others must work.
fn check(profile: Profile, works: &[&str], fails: &[&str]) {
    for method in methods() {
        let place = Place::new();
        let confined = place.confined(profile, method);
        for script in works {
            let out = place.run(&confined, script);
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(out.status.success(), "{method:?}: {script}: {said}");
        }
        for script in fails {
            let out = place.run(&confined, script);
            assert!(!out.status.success(), "{method:?} let through: {script}");
        }
        let outside: Vec<_> = std::fs::read_dir(place.top.join("outside")).unwrap().collect();
        assert_eq!(outside.len(), 1, "{method:?}: {outside:?}");
        assert_eq!(std::fs::read_to_string(place.top.join("outside/old")).unwrap(), "old");
    }
}

#[test]
fn a_reading_command_reads_and_writes_only_its_scratch_folder() {
    check(
        Profile::Read,
        &[
            "cat .git/config && ls /usr >/dev/null && cat /etc/passwd >/dev/null",
            "echo x > $TMPDIR/x && cat $TMPDIR/x >&2 2>/dev/null",
            "echo x | cat > /dev/null",
            "(sleep 0 & wait)",
        ],
        &[
            "cat ../outside/old",
            "ls ../outside",
            "ln -s ../outside/old $TMPDIR/link && cat $TMPDIR/link",
            "echo x > here",
            "echo x > ../outside/new",
            "echo x >> ../outside/old",
            "rm ../outside/old",
            "mv ../outside/old ../outside/moved",
            "chmod 777 ../outside/old",
            "touch ../outside/old",
            "ln -s /etc/passwd link",
            "cat ../home/.ssh/key",
            "cat /etc/shadow",
        ],
    );
}

/// Paths, and whether a command sees them in the profiles `read` and `workspace`.
const SEEN: &[(&str, bool, bool)] = &[
    ("work/file", true, true),
    ("scratch/file", true, true),
    ("/etc/passwd", true, true),
    ("home/.gitconfig", true, true),
    ("home/included", true, true),
    ("home/.config/git/ignore", true, true),
    ("home/.config/git/credentials", false, false),
    ("home/.cargo/registry/file", true, true),
    ("home/.cargo/credentials.toml", false, false),
    ("moved/rustup/file", true, true),
    ("home/.ssh/key", false, false),
    ("home/.local/share/other/file", false, true),
    ("home/notes", false, true),
    ("home/src/other/file", false, true),
    ("outside/old", false, true),
    ("dependency/file", true, true),
    ("home/.local/share/tiller/tiller.db", false, false),
    ("home/.config/tiller/config.toml", false, true),
    ("work/places/data/tiller.db", false, false),
    ("work/places/config/config.toml", false, true),
];

/// With what [`SEEN`] names, and Tiller's folders in the home folder and in the workspace.
fn seen_in(place: &Place, profile: Profile, method: Method) -> Confined {
    let at = |name: &str| place.top.join(name);
    for (name, ..) in SEEN {
        std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        if !at(name).exists() {
            std::fs::write(at(name), "text").unwrap();
        }
    }
    std::fs::write(at("home/.gitconfig"), "[include]\n\tpath = included\n").unwrap();
    std::fs::write(at("dependency/Cargo.toml"), "").unwrap();
    std::fs::write(at("work/Cargo.toml"), "[dependencies]\nx = { path = '../dependency' }\n").unwrap();
    let mut confined = place.confined(profile, method);
    let rustup = at("moved/rustup").display().to_string();
    let policy = confined.policy.with_tools(&|name| (name == "RUSTUP_HOME").then(|| rustup.clone()));
    confined.policy = policy.with_project();
    let own = ["home/.local/share/tiller", "work/places/data", "home/.config/tiller", "work/places/config"];
    let private = if profile == Profile::Read { &own[..] } else { &own[..2] };
    confined.policy.reads.private = private.iter().map(|name| at(name)).collect();
    confined
}

/// Nothing unasked reads more than the workspace, the system and tool chains; nothing reads Tiller's database.
#[test]
fn a_command_sees_what_its_profile_shows() {
    for folder in ["/var/tmp", "/tmp"] {
        for method in methods() {
            for profile in [Profile::Read, Profile::Workspace] {
                let place = Place::below(folder);
                let confined = seen_in(&place, profile, method);
                for (name, read, workspace) in SEEN {
                    let seen = if profile == Profile::Read { *read } else { *workspace };
                    // A private folder does not have what lies beside the workspace in the one of the system.
                    let absent =
                        folder == "/tmp" && method == Method::Bubblewrap && profile == Profile::Workspace;
                    if absent && !name.starts_with("work") && !name.starts_with("scratch") {
                        continue;
                    }
                    let script = format!("cat '{}'", place.top.join(name).display());
                    for out in [
                        place.run(&confined, &script),
                        place.run_watched(&confined, &script, &CommandWatch::default()),
                    ] {
                        assert_eq!(
                            out.status.success(),
                            seen,
                            "{folder} {method:?} {profile:?} {name}: {out:?}"
                        );
                    }
                }
            }
        }
    }
}

/// Files that builds and programs read at home, beside the secrets of its folders.
const READ_AT_HOME: &[&str] = &[
    ".m2/repository/a.jar",
    ".m2/toolchains.xml",
    ".gradle/caches/a.bin",
    ".gradle/wrapper/dists/a.zip",
    ".cargo/registry/a.crate",
    ".cargo/config.toml",
    ".cargo/bin/tool",
    ".npm/_cacache/a",
    ".local/share/pnpm/store/a",
    ".local/share/uv/python/a",
    ".local/share/gem/ruby/a.rb",
    ".local/share/jupyter/kernels/a.json",
    ".composer/vendor/a.php",
    ".pub-cache/hosted/a.dart",
    ".nuget/packages/a",
    ".ivy2/cache/a.jar",
    ".cabal/packages/a",
    ".stack/programs/a",
    ".conan2/p/a",
    ".cache/pip/a",
    ".cache/uv/a",
    ".cache/huggingface/hub/a.bin",
    ".config/git/config",
    ".config/git/ignore",
    ".config/pnpm/config.yaml",
    ".config/helm/x.yaml",
    ".docker/cli-plugins/a",
    ".docker/contexts/meta/a.json",
    ".android/avd/a.ini",
    ".android/debug.keystore",
    ".terraform.d/plugins/a",
    ".claude/CLAUDE.md",
    ".claude/skills/a/SKILL.md",
    ".config/Code/User/settings.json",
    ".config/nvim/init.lua",
    ".config/fish/config.fish",
    ".jupyter/custom.css",
    "Library/Caches/a",
    "snap/go/a",
];

/// The list of secret places, as files and as folders, in each way to confine; caches beside them are read.
#[test]
fn no_command_reads_a_secret_place_and_builds_read_their_caches() {
    for method in methods() {
        for below in ["", "/inside"] {
            let place = Place::new();
            let home = place.top.join("home");
            std::fs::remove_dir_all(&home).unwrap();
            let secrets = secret_paths::at_home().map(|name| format!("{name}{below}"));
            let secrets: Vec<String> = secrets.collect();
            let all = secrets.iter().map(String::as_str).chain(READ_AT_HOME.iter().copied());
            for name in all.clone() {
                std::fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
                std::fs::write(home.join(name), "password = x\n").unwrap();
            }
            let list: String = all.map(|name| format!("{}\n", home.join(name).display())).collect();
            std::fs::write(place.top.join("work/list"), list).unwrap();
            // An empty file in its place is no secret.
            let script = r#"while IFS= read -r name; do read -r text < "$name" && [ "$text" ] && echo "$name"; done < list; true"#;
            let out = place.run(&place.confined(Profile::Workspace, method), script);
            let out = String::from_utf8(out.stdout).unwrap();
            let read: Vec<_> =
                out.lines().filter_map(|line| Path::new(line).strip_prefix(&home).ok()).collect();
            let wanted: Vec<_> = READ_AT_HOME.iter().map(Path::new).collect();
            assert_eq!(read, wanted, "{method:?} {below}");
        }
    }
}

/// Settings of a build without a secret are read.
#[test]
fn builds_read_their_settings() {
    for method in methods() {
        let place = Place::new();
        let files = secret_paths::settings_at_home().map(|name| place.top.join("home").join(name));
        let mut script = "true".to_owned();
        for file in files {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "plain = 1").unwrap();
            script.push_str(&format!(" && cat '{}'", file.display()));
        }
        let out = place.run(&place.confined(Profile::Workspace, method), &script);
        assert!(out.status.success(), "{method:?} {out:?}");
    }
}

/// A workspace that is the home folder, or lies in a folder of Tiller, is seen; Tiller's data in it is not.
#[test]
fn a_workspace_is_seen_wherever_it_lies() {
    for method in methods() {
        for profile in [Profile::Read, Profile::Workspace] {
            let place = Place::new();
            let mut confined = seen_in(&place, profile, method);
            let at = |name: &str| place.top.join(name);
            confined.policy.workspace = at("home");
            for (name, seen) in [("home/notes", true), ("home/.local/share/tiller/tiller.db", false)] {
                let out = place.run(&confined, &format!("cat '{}'", at(name).display()));
                assert_eq!(out.status.success(), seen, "{method:?} {profile:?} {name}: {out:?}");
            }
            let mine = at("home/.local/share/tiller/agents/one");
            std::fs::create_dir_all(&mine).unwrap();
            std::fs::write(mine.join("file"), "text").unwrap();
            confined.policy.workspace.clone_from(&mine);
            let mut launch = place.launch("cat file && ! cat ../../tiller.db");
            launch.folder = mine;
            let out = place.start(confined.wrap(launch));
            assert!(out.status.success(), "{method:?} {profile:?}: {out:?}");
        }
    }
}

/// Programs of this machine that look at a project do so unasked.
#[test]
fn everyday_reading_works_in_what_is_seen() {
    let home = PathBuf::from(std::env::var("HOME").unwrap());
    for method in methods() {
        let place = Place::new();
        let set = |work: &str, script: &str, confine: bool| {
            let mut confined = place.confined(Profile::Read, method);
            let work = place.top.join(work);
            confined.policy = Policy::new(Profile::Read, &work, &place.top.join("scratch"), Some(&home))
                .with_tools(&|name| std::env::var(name).ok())
                .with_project();
            let mut launch = place.launch(script);
            launch.folder = work;
            launch.env = std::env::vars()
                .filter(|(name, _)| !name.starts_with("CARGO_") && !name.starts_with("RUSTC"))
                .collect();
            for (name, value) in [
                ("GIT_AUTHOR_NAME", "a"),
                ("GIT_AUTHOR_EMAIL", "a"),
                ("GIT_COMMITTER_NAME", "a"),
                ("GIT_COMMITTER_EMAIL", "a"),
            ] {
                launch.env.push((name.into(), value.into()));
            }
            let out = place.start(if confine { confined.wrap(launch) } else { launch });
            assert!(out.status.success(), "{method:?}: {script}: {out:?}");
            String::from_utf8_lossy(&out.stdout).into_owned()
        };
        for folder in ["main/sub", "a/src", "b/src"] {
            std::fs::create_dir_all(place.top.join(folder)).unwrap();
        }
        let has = |program: &str| {
            let found =
                tiller_tool::shell::find_program(program, &std::env::vars().collect::<Vec<_>>()).is_some();
            if !found {
                println!("skipped: there is no {program}");
            }
            found
        };
        if has("git") {
            set(
                "main",
                "git init -q . && git commit -q --allow-empty -m first && git worktree add -q ../tree",
                false,
            );
            for folder in ["main", "main/sub", "tree"] {
                let said = set(folder, "git log --format=%s && git status --short && git diff", true);
                assert!(said.contains("first"), "{method:?} {folder}: {said}");
            }
        }
        if has("cargo") {
            for (name, more) in [("a", "b = { path = '../b' }"), ("b", "")] {
                let text = format!("[package]\nname = '{name}'\nversion = '0.1.0'\n[dependencies]\n{more}\n");
                std::fs::write(place.top.join(name).join("Cargo.toml"), text).unwrap();
                std::fs::write(place.top.join(name).join("src/lib.rs"), "").unwrap();
            }
            set("a", "cargo generate-lockfile --offline", false);
            let said = set("a", "cargo metadata --offline --format-version 1", true);
            assert!(said.contains("../b") || said.contains("\"b\""), "{method:?}: {said}");
        }
        if has("python3") {
            assert!(set("main", "python3 -c 'import json, ssl; print(1 + 1)'", true).ends_with("2\n"));
        }
        if has("node") {
            assert!(
                set("main", "node -e 'console.log(require(\"os\").EOL.length + 1)'", true).ends_with("2\n")
            );
        }
    }
}

/// What was not seen is found in the words of a command that failed.
#[test]
fn a_path_that_is_not_seen_is_found_in_an_output() {
    let place = Place::new();
    let (work, scratch) = (place.top.join("work"), place.top.join("scratch"));
    std::fs::write(work.join("file"), "text").unwrap();
    std::os::unix::fs::symlink("../outside/old", work.join("link")).unwrap();
    let policy = Policy::new(Profile::Read, &work, &scratch, Some(&place.top.join("home")));
    let old = place.top.join("outside/old").display().to_string();
    for (output, found) in [
        ("cat: ../outside/old: Permission denied", true),
        ("cat: link: Permission denied", true),
        ("EACCES: permission denied, open '../outside/old'", true),
        ("error: failed to read `../outside/old`\n\nCaused by:\n  Permission denied (os error 13)", true),
        ("cat: ../outside/old: No such file or directory", true),
        ("looking at ../outside/old\ncat: x: No such file or directory", false),
        ("cat: ../outside/new: No such file or directory", false),
        ("./file: Permission denied", false),
    ] {
        let unseen = unseen_in(&policy, output, &work);
        assert_eq!(unseen.as_ref(), Some(&old).filter(|_| found), "{output}");
    }
}

#[test]
fn a_working_command_writes_in_the_workspace_only() {
    check(
        Profile::Workspace,
        &[
            "echo x > here && mkdir d && mv here d/ && ln d/here e && chmod +x e && rm -r d e",
            "echo x > $TMPDIR/x",
        ],
        &[
            "echo x > ../outside/new",
            "ln -s ../outside/old l && echo x > l",
            "mkdir ../outside/d",
            "mv .git/config ../outside/config",
            "cat ../home/.ssh/key",
            "ln ../outside/old hard && echo x > hard",
        ],
    );
}

/// Where the home folder is the workspace, a right to change it must not reach what is hidden in it.
#[test]
fn secrets_of_the_home_folder_are_hidden_where_it_is_the_workspace() {
    for method in methods() {
        let place = Place::new();
        let home = place.top.join("home");
        std::fs::create_dir_all(home.join("code")).unwrap();
        std::fs::create_dir_all(home.join(".config/gh")).unwrap();
        std::fs::write(home.join(".config/gh/hosts.yml"), "secret").unwrap();
        std::fs::write(home.join(".config/other"), "plain").unwrap();
        std::os::unix::fs::symlink("../.ssh", home.join("code/link")).unwrap();
        let mut confined = place.confined(Profile::Workspace, method);
        confined.policy.workspace = home.clone();
        for script in [
            "echo x > ../home/code/new && cat ../home/code/new",
            "cat ../home/.config/other && echo x > ../home/.config/other",
        ] {
            let out = place.run(&confined, script);
            assert!(out.status.success(), "{method:?}: {script}: {out:?}");
        }
        for script in [
            "cat ../home/.ssh/key",
            "cat ../home/code/link/key",
            "cat ../home/.config/gh/hosts.yml",
            "mv ../home/.ssh ../home/code/moved; cat ../home/code/moved/key",
            "mv ../home/.ssh ../home/moved; cat ../home/moved/key",
            "ln ../home/.ssh/key ../home/code/hard; cat ../home/code/hard",
            "mv ../home/.ssh/key ../home/code/key; cat ../home/code/key",
            "mv ../home/.config ../home/code/config; cat ../home/code/config/gh/hosts.yml",
            "mv ../home/.config/gh ../home/code/gh; cat ../home/code/gh/hosts.yml",
            "echo x > ../home/.config/gh/hosts.yml; cp -r ../home/.config/gh ../home/code; grep -r secret ../home",
        ] {
            // A supervisor moves files in the command's place, which Landlock does not limit.
            for out in
                [place.run(&confined, script), place.run_watched(&confined, script, &CommandWatch::default())]
            {
                let said = String::from_utf8_lossy(&out.stdout).into_owned();
                assert!(!said.contains("secret"), "{method:?} showed it: {script}");
            }
        }
        assert_eq!(std::fs::read_to_string(home.join(".ssh/key")).unwrap(), "secret", "{method:?}");
        assert_eq!(
            std::fs::read_to_string(home.join(".config/gh/hosts.yml")).unwrap(),
            "secret",
            "{method:?}"
        );
    }
}

#[test]
fn nothing_of_the_policy_is_left_in_the_command() {
    for method in methods() {
        let place = Place::new();
        let confined = place.confined(Profile::Read, method);
        let out = place
            .run(&confined, "tr '\\0' '\\n' < /proc/self/cmdline; env; cat /proc/$$/cmdline | tr '\\0' ' '");
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{method:?}");
        assert!(!said.contains("\"profile\"") && !said.contains(MARK), "{method:?}: {said}");
    }
}

#[test]
fn bubblewrap_keeps_protected_names_in_place() {
    for method in methods().into_iter().filter(|method| *method == Method::Bubblewrap) {
        let place = Place::new();
        let confined = place.confined(Profile::Workspace, method);
        for script in
            ["echo x > .git/hooks/pre-commit", "echo x >> .git/config", "mv .git moved", "rm .git/config"]
        {
            assert!(!place.run(&confined, script).status.success(), "{script}");
        }
        assert!(
            place.run(&confined, "echo x > .git/HEAD").status.success(),
            "the rest of .git is written by commits"
        );
    }
}

/// Where everything lies below `/tmp`, a private `/tmp` shows the home folder and the programs, read-only.
#[test]
fn a_home_folder_and_programs_below_tmp_are_found_and_kept() {
    for method in methods() {
        let place = Place::below("/tmp");
        let home = place.top.join("home");
        std::fs::write(home.join(".gitconfig"), "settings").unwrap();
        std::fs::create_dir_all(place.top.join("tools/bin")).unwrap();
        std::fs::write(place.top.join("tools/part"), "part").unwrap();
        let tool = r#"echo 'cat "${0%/*}/../part"' >../tools/bin/tool && chmod +x ../tools/bin/tool"#;
        assert!(place.start(place.launch(tool)).status.success());
        let confined = place.confined(Profile::Workspace, method);
        let run = |script: &str| {
            let mut launch = place.launch(script);
            launch.env.push(("HOME".into(), home.display().to_string()));
            launch.env[0].1.push_str(&format!(":{}", place.top.join("tools/bin").display()));
            place.start(confined.watched(launch, &CommandWatch::default(), &Arc::default()))
        };
        let out = run("cat ~/.gitconfig && tool && echo x > here && cat here");
        assert!(String::from_utf8_lossy(&out.stdout).ends_with("\nsettingspartx\n"), "{method:?}: {out:?}");
        for script in [
            "cat ~/.ssh/key",
            "echo x > ~/new",
            "rm ~/.gitconfig",
            "mv ../tools/part .",
            "echo x >> ../tools/part",
        ] {
            assert!(!run(script).status.success(), "{method:?} let through: {script}");
        }
        assert_eq!(std::fs::read_to_string(home.join(".gitconfig")).unwrap(), "settings");
        assert_eq!(std::fs::read_to_string(place.top.join("tools/part")).unwrap(), "part");
        assert!(!home.join("new").exists());
    }
}

#[test]
fn a_system_without_a_sandbox_runs_nothing() {
    let found = Confinement::default();
    assert_eq!(Method::choose(&found, Profile::Read), None);
    assert!(!found.available());
}

/// The self-test holds what the ways of confining promise here.
#[test]
fn the_self_test_names_what_is_held() {
    use crate::probe::{Capability, Held, test};
    for method in methods() {
        let results = test(method, &crate::testing::launcher());
        println!("{method:?}: {results:?}");
        assert_eq!(results.len(), Capability::ALL.len());
        for (capability, held) in results {
            let gap = method == Method::Landlock
                && (matches!(capability, Capability::Protected | Capability::WriteOutside)
                    || Confinement::find().landlock < 6);
            let ok = matches!(held, Held::Yes | Held::Unknown(_)) || gap;
            assert!(ok, "{method:?}: {capability:?}: {held:?}");
        }
    }
}

/// A probe that nothing stops must say so, or the self-test would show nothing.
#[test]
fn the_self_test_fails_without_a_sandbox() {
    use crate::probe::{Capability, Held};
    for method in methods().into_iter().filter(|method| *method == Method::Landlock) {
        let results = crate::probe::test_off(method, &crate::testing::launcher());
        for (capability, held) in results {
            // Some systems refuse these two to all processes; a tool of the system says so.
            let asked: &[&str] = match capability {
                Capability::Namespaces => &["unshare", "-U", "true"],
                Capability::Keyring => &["keyctl", "show", "@s"],
                _ => &["true"],
            };
            let works = std::process::Command::new(asked[0]).args(&asked[1..]).output();
            let works = works.is_ok_and(|out| out.status.success());
            assert!(matches!(held, Held::No(_)) || !works, "{capability:?}: {held:?}");
        }
    }
}

/// The session's confiners, as the shells use them.
#[test]
fn the_floor_holds_for_a_command_outside_the_sandbox() {
    let place = Place::new();
    let home = place.top.join("home");
    std::fs::write(home.join(".bashrc"), "mine\n").unwrap();
    std::fs::create_dir(place.top.join("state")).unwrap();
    std::fs::write(place.top.join("state/rules"), "mine\n").unwrap();
    let work = place.top.join("work");
    let mut policy = Policy::new(Profile::Floor, &work, &place.top.join("scratch"), Some(&home));
    policy.own.push(place.top.join("state"));
    let sandbox = SessionSandbox::new(policy, place.top.join("kept"));
    let script = "echo x > made; echo x > ../outside/new; cat ../home/.ssh/key; echo evil >> ../home/.bashrc; \
                  echo evil > .envrc; echo evil > .git/hooks/pre-commit; mv .git moved; echo evil > ../state/rules; true";
    let guard = sandbox.guard(&work).unwrap();
    let launch = sandbox.confine(place.launch(script), &work, &place.top.join("scratch"));
    let out = std::process::Command::new(&launch.program)
        .args(&launch.args)
        .env_clear()
        .envs(launch.env)
        .current_dir(&launch.folder)
        .output()
        .unwrap();
    let restored: Vec<String> = guard.into_iter().flat_map(|guard| guard.restore().lines()).collect();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(said, "secret", "it reads everything: {out:?}");
    assert!(work.join("made").exists() && place.top.join("outside/new").exists(), "{out:?}");
    assert_eq!(std::fs::read_to_string(home.join(".bashrc")).unwrap(), "mine\n", "{out:?} {restored:?}");
    assert!(!work.join(".envrc").exists(), "{restored:?}");
    assert_eq!(std::fs::read_dir(work.join(".git/hooks")).unwrap().count(), 0, "{restored:?}");
    assert_eq!(std::fs::read_to_string(work.join(".git/config")).unwrap(), "[core]\n", "{restored:?}");
    assert!(restored.iter().any(|line| line.contains(".envrc")), "{restored:?}");
    let rules = std::fs::read_to_string(place.top.join("state/rules")).unwrap();
    match sandbox.confines() {
        true => assert_eq!(rules, "mine\n"),
        false => println!("skipped: folders of Tiller need bubblewrap"),
    }
}

/// Outside the sandbox git writes its configuration. What sets a program does not stay.
#[test]
fn outside_the_sandbox_git_adds_remotes_but_no_programs() {
    if std::process::Command::new("git").arg("--version").output().is_err() {
        println!("skipped: there is no git");
        return;
    }
    for method in methods() {
        let place = Place::new();
        let (work, home) = (place.top.join("work"), place.top.join("home"));
        std::fs::remove_dir_all(work.join(".git")).unwrap();
        let make = "export HOME=../home GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a \
                    GIT_COMMITTER_EMAIL=a; ";
        let made = place.start(place.launch(&format!(
            "{make} git init -q -b main . && git commit -q --allow-empty -m a && git init -q --bare ../outside/bare"
        )));
        assert!(made.status.success(), "{made:?}");
        let mut confined = place.confined(Profile::Floor, method);
        confined.policy.network = Network::All;
        let session = SessionSandbox::new(confined.policy.clone(), place.top.join("kept"));
        let config = || std::fs::read_to_string(work.join(".git/config")).unwrap();
        let run = |script: &str| {
            let guard = session.guard(&work).unwrap().unwrap();
            let out = place.run_watched(&confined, &format!("{make} {script}"), &CommandWatch::default());
            (out, guard.restore().restored)
        };
        let (out, restored) = run("git remote add origin ../outside/bare && git push -q -u origin main && \
                                   git config user.name x && git config --global user.email y && git pull -q");
        assert!(out.status.success() && restored.is_empty(), "{method:?}: {out:?} {restored:?}");
        let before = config();
        assert!(
            before.contains("[remote \"origin\"]") && before.contains("merge = refs/heads/main"),
            "{before}"
        );
        assert!(
            std::fs::read_to_string(home.join(".gitconfig")).unwrap().contains("email = y"),
            "{method:?}"
        );
        for (script, word) in [
            ("git config core.fsmonitor x", "(core.fsmonitor was set)"),
            ("git config user.name y; git config --add alias.a '!x'", "(alias.a was set)"),
            ("printf '[core]\\n\\tpager = x\\n' >> .git/config", "(core.pager was set)"),
            ("rm .git/config", "is protected"),
            ("mv .git/config .git/x; ln -s x .git/config", "is protected"),
            ("git config --global core.hooksPath x", "(core.hookspath was set)"),
        ] {
            let (out, restored) = run(script);
            assert!(
                restored.len() == 1 && restored[0].contains(word),
                "{method:?} {script}: {out:?} {restored:?}"
            );
            assert_eq!(config(), before, "{method:?} {script}");
        }
        let (_, restored) = run("mv .git moved");
        assert!(work.join(".git/config").is_file() && config() == before, "{method:?}: {restored:?}");
        assert!(
            !std::fs::read_to_string(home.join(".gitconfig")).unwrap().contains("hooksPath"),
            "{method:?}"
        );
    }
}

/// Git changes tracked files with protected names to what older commits have; other content does not stay.
#[test]
fn outside_the_sandbox_git_checks_out_protected_names() {
    for method in methods().into_iter().map(Some).chain([None]) {
        let place = Place::new();
        let work = place.top.join("work");
        std::fs::remove_dir_all(work.join(".git")).unwrap();
        let make = "export HOME=../home GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a \
                    GIT_COMMITTER_EMAIL=a; ";
        let all = "{ mkdir -p .claude .husky && for f in .mcp.json .claude/settings.json .husky/x; do echo $n > $f; done; \
                   git add -f . && git commit -qm $n; }";
        let made = format!(
            "{make} git init -q -b main . && n=1 && {all} && git checkout -qb other && n=2 && {all} && \
             git checkout -qb less && git rm -qr .husky && git commit -qm less && git checkout -q main"
        );
        let made = place.start(place.launch(&made));
        assert!(made.status.success(), "{made:?}");
        let confined = place.confined(Profile::Floor, method.unwrap_or(Method::Landlock));
        let session = SessionSandbox::new(confined.policy.clone(), place.top.join("kept"));
        let run = |script: &str| {
            let guard = session.guarded(&work, method).unwrap().unwrap();
            let script = format!("{make} {script}");
            let out = match method {
                Some(_) => place.run_watched(&confined, &script, &CommandWatch::default()),
                None => place.start(place.launch(&script)),
            };
            (out, guard.restore())
        };
        for branch in ["other", "main", "less", "other"] {
            let (out, compared) = run(&format!("git checkout -q {branch} && git status --porcelain >&2"));
            let clean = out.status.success() && !String::from_utf8_lossy(&out.stderr).contains('M');
            let kept = compared.restored.is_empty() && compared.held.is_empty();
            assert!(clean && kept, "{method:?} {branch}: {out:?} {compared:?}");
            assert_eq!(compared.told.len(), 1, "{method:?} {branch}: {compared:?}");
        }
        for name in [".mcp.json", ".claude/settings.json", ".husky/x"] {
            let (out, compared) = run(&format!("echo evil > {name}; git commit -qam evil"));
            assert_eq!(compared.held.len(), 1, "{method:?} {name}: {out:?} {compared:?}");
            assert_eq!(std::fs::read_to_string(work.join(name)).unwrap(), "2\n", "{method:?} {name}");
        }
    }
}

/// No supervisor sees what a command writes where the sandbox is off, and of one outside it.
#[test]
fn outside_the_sandbox_no_protected_name_is_changed_or_left() {
    for method in methods().into_iter().map(Some).chain([None]) {
        let place = Place::new();
        let work = place.top.join("work");
        let names = crate::writes::tests::names();
        for name in &names {
            for folder in ["changed", "removed"] {
                let path = work.join(folder).join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "mine").unwrap();
            }
        }
        let script = "import os\nfor n, name in enumerate(open('../scratch/names').read().split('\\n')):\n\
                      \x20   os.makedirs(os.path.dirname('new/deep/' + name), exist_ok=True)\n\
                      \x20   open('new/deep/' + name, 'w').write('evil')\n    open('changed/' + name, 'w').write('evil')\n\
                      \x20   if n < 30: os.remove('removed/' + name)\nprint('over')\n";
        std::fs::write(place.top.join("scratch/script.py"), script).unwrap();
        std::fs::write(place.top.join("scratch/names"), names.join("\n")).unwrap();
        let confined = place.confined(Profile::Floor, method.unwrap_or(Method::Landlock));
        let session = SessionSandbox::new(confined.policy.clone(), place.top.join("kept"));
        let began = std::time::Instant::now();
        let guard = session.guarded(&work, method).unwrap().unwrap();
        println!("{method:?}: recorded in {:?}", began.elapsed());
        let out = match method {
            Some(_) => place.run_watched(&confined, "python3 ../scratch/script.py", &CommandWatch::default()),
            None => place.start(place.launch("python3 ../scratch/script.py")),
        };
        assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "over", "{method:?}: {out:?}");
        let compared = guard.restore();
        for name in &names {
            let text =
                |folder: &str| std::fs::read_to_string(work.join(folder).join(name)).unwrap_or_default();
            let texts = [text("changed"), text("removed"), text("new/deep")];
            assert_eq!(texts, ["mine", "mine", ""], "{method:?}: {name}");
        }
        assert!(compared.held.len() > 100, "{method:?}: {compared:?}");
        let again = session.guarded(&work, method).unwrap().unwrap();
        assert_eq!(again.restore().lines().count(), 0, "{method:?}: nothing was changed since");
    }
}

/// The names that one agent's command has written are judged after that command, not after one of another agent.
#[test]
fn agents_do_not_judge_each_other() {
    for method in methods() {
        if !Confinement::find().notification {
            return println!("skipped: this kernel has no user notification");
        }
        let place = Place::new();
        let work = place.top.join("work");
        let confined = place.confined(Profile::Workspace, method);
        let session = SessionSandbox::new(confined.policy.clone(), place.top.join("kept"));
        let other = session.apart().unwrap();
        let guards =
            [session.guarded(&work, Some(method)), other.guard(&work)].map(|guard| guard.unwrap().unwrap());
        let launch = place.launch("echo evil > .npmrc; echo evil > AGENTS.md");
        place.start(confined.watched(launch, &CommandWatch::default(), &session.writes));
        assert!(guards[0].has_news() && !guards[1].has_news(), "{method:?}");
        let compared = guards[1].restore();
        assert!(compared.held.is_empty() && work.join(".npmrc").exists(), "{method:?}: {compared:?}");
        let compared = guards[0].restore();
        assert_eq!(compared.held.len(), 2, "{method:?}: {compared:?}");
        assert!(!work.join(".npmrc").exists() && !work.join("AGENTS.md").exists(), "{method:?}");
    }
}

#[test]
fn protected_files_of_a_session_are_put_back_in_the_profile_workspace() {
    let place = Place::new();
    let work = place.top.join("work");
    let policy = Policy::new(Profile::Workspace, &work, &place.top.join("scratch"), None);
    let sandbox = SessionSandbox::new(policy, place.top.join("kept"));
    if !sandbox.confines() {
        println!("skipped: {}", Confinement::find().words());
        return;
    }
    let guard = sandbox.guard(&work).unwrap().unwrap();
    std::fs::create_dir(work.join(".tiller")).unwrap();
    std::fs::write(work.join(".tiller/hooks.toml"), "evil").unwrap();
    let restored = guard.restore().restored;
    assert_eq!(restored.len(), 1, "{restored:?}");
    assert!(!work.join(".tiller").exists());
    assert_eq!(guard.restore().lines().count(), 0);
}

#[test]
fn a_hidden_path_is_found_in_an_output_by_its_whole_name() {
    let hidden = [PathBuf::from("/home/p/.ssh"), PathBuf::from("/home/p/.netrc")];
    for (output, expected) in [
        ("cat: /home/p/.ssh/id: Permission denied", Some("/home/p/.ssh/id")),
        ("ls: cannot open directory '/home/p/.ssh': Permission denied", Some("/home/p/.ssh")),
        ("open(\"/home/p/.netrc\"): EACCES", Some("/home/p/.netrc")),
        ("cat: /home/p/.sshd/id: Permission denied", None),
        ("./run.sh: Permission denied", None),
    ] {
        assert_eq!(hidden_in(&hidden, output).as_deref(), expected, "{output}");
    }
}
