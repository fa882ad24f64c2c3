use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tiller_tool::shell::{Confiner, FileGuard, ForkLimit, Sandbox};

use super::tree::{Tree, is_repository_name};
use crate::confine::{FileGuards, Method, SessionSandbox};
use crate::network::Servers;
use crate::policy::{Network, Policy, Profile};
use crate::testing::{Place, methods};

/// Commands that make or change a repository so that git runs `$E` in it, each line one command of an agent. `f FOLDER`: the
/// folder's repository gets a monitor of files.
const HOSTILE: &[(&str, &[&str])] = &[
    ("init", &["git init -q n; f n; echo a > n/a; git -C n add a; git -C n commit -qm a; git add n"]),
    ("init, no commit", &["git init -q n; f n"]),
    ("init in a deep folder", &["mkdir -p a/b/c/d; git init -q a/b/c/d; f a/b/c/d"]),
    (
        "another name for the branch, by hand",
        &["mkdir -p n/.git/objects n/.git/refs; echo 'ref: refs/heads/x' > n/.git/HEAD; f n"],
    ),
    ("clone", &["git clone -q . n; f n"]),
    ("clone, changed later", &["git clone -q . n", "f n"]),
    ("known", &["f known"]),
    ("known, in place", &["printf '[core]\\n\\tfsmonitor = %s\\n' \"$E\" >> known/.git/config"]),
    (
        "bare in a folder",
        &["git init -q --bare n; g n config core.bare false; g n config core.worktree ..; f n"],
    ),
    (
        "bare by hand",
        &[
            "mkdir -p n/objects n/refs; echo 'ref: refs/heads/x' > n/HEAD; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = ..\\n\\tfsmonitor = %s\\n' \"$E\" > n/config",
        ],
    ),
    (
        "bare in steps",
        &[
            "mkdir -p n/objects; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = ..\\n\\tfsmonitor = %s\\n' \"$E\" > n/config",
            "echo 'ref: refs/heads/x' > n/HEAD",
            "mkdir n/refs",
        ],
    ),
    (
        "a folder that gets the name",
        &[
            "git init -q m; f m; mv m/.git/HEAD m/.git/H; mv m/.git n0; true",
            "mkdir -p n; mv n0 n/.git",
            "mv n/.git/H n/.git/HEAD; f n",
        ],
    ),
    ("folder elsewhere", &["git init -q --separate-git-dir store n; f n"]),
    (
        "pointer made later",
        &[
            "git init -q m; mv m/.git store",
            "mkdir n; echo 'gitdir: ../store' > n/.git",
            "printf '[core]\\n\\tfsmonitor = %s\\n' \"$E\" >> store/config",
        ],
    ),
    ("module", &["mkdir -p .git/modules; git init -q --separate-git-dir .git/modules/n n; f n"]),
    (
        "module of a module",
        &["mkdir -p .git/modules/a/modules; git init -q --separate-git-dir .git/modules/a/modules/n n; f n"],
    ),
    ("folder for temporary files", &["git init -q --separate-git-dir \"$TMPDIR/store\" n; f n"]),
    ("link to a folder", &["git init -q m; f m; mkdir n; mv m/.git store; ln -s ../store n/.git"]),
    (
        "link to a folder outside",
        &["git init -q \"$TMPDIR/m\"; f \"$TMPDIR/m\"; mkdir n; ln -s \"$TMPDIR/m/.git\" n/.git"],
    ),
    (
        "pointer through a link that is turned",
        &[
            "git init -q m; mkdir one; mv m/.git one/store; ln -s one way; mkdir n; echo 'gitdir: ../way/store' > n/.git",
            "git init -q \"$TMPDIR/m\"; f \"$TMPDIR/m\"; mv \"$TMPDIR/m/.git\" \"$TMPDIR/store\"; rm way; ln -s \"$TMPDIR\" way",
        ],
    ),
    (
        "pointer to a folder that becomes a link",
        &[
            "git init -q m; mkdir one; mv m/.git one/store; mkdir n; echo 'gitdir: ../one/store' > n/.git",
            "git init -q \"$TMPDIR/m\"; f \"$TMPDIR/m\"; mv \"$TMPDIR/m/.git\" \"$TMPDIR/store\"; rm -rf one; ln -s \"$TMPDIR\" one",
        ],
    ),
    (
        "work tree with settings of its own",
        &[
            "git worktree add -q n; git -C n config --worktree core.fsmonitor \"$E\" || printf '[core]\\n\\tfsmonitor = %s\\n' \"$E\" > .git/worktrees/n/config.worktree",
        ],
    ),
    (
        "common folder elsewhere",
        &[
            "git init -q n; f n; mkdir c; mv n/.git/objects n/.git/refs n/.git/config c/; echo ../../c > n/.git/commondir",
        ],
    ),
    (
        "common folder outside",
        &[
            "git init -q n; f n; mkdir \"$TMPDIR/c\"; mv n/.git/objects n/.git/refs n/.git/config \"$TMPDIR/c/\"; echo \"$TMPDIR/c\" > n/.git/commondir",
        ],
    ),
    (
        "include",
        &[
            "git init -q n; printf '[core]\\n\\tfsmonitor = %s\\n' \"$E\" > conf; git -C n config include.path ../../conf",
        ],
    ),
    (
        "conditional include",
        &[
            "git init -q n; printf '[core]\\n\\tfsmonitor = %s\\n' \"$E\" > conf; git -C n config 'includeIf.gitdir:**.path' ../../conf",
        ],
    ),
    (
        "configuration that is a link",
        &["git init -q n; f n; mv n/.git/config conf; ln -s ../../conf n/.git/config"],
    ),
    (
        "hook",
        &[
            "git init -q n; cp \"$E\" n/.git/hooks/post-index-change; echo a > n/a; git add n 2>/dev/null; true",
        ],
    ),
    ("hook of a known one", &["cp \"$E\" known/.git/hooks/pre-commit"]),
    (
        "hook that becomes executable",
        &["git init -q n; cat \"$E\" > n/.git/hooks/pre-commit", "chmod +x n/.git/hooks/pre-commit"],
    ),
    ("hook that is a link", &["git init -q n; ln -s \"$E\" n/.git/hooks/pre-commit"]),
    (
        "hooks that are a link",
        &["git init -q n; mkdir h; cp \"$E\" h/pre-commit; rm -r n/.git/hooks; ln -s ../../h n/.git/hooks"],
    ),
    (
        "folder of hooks",
        &["git init -q n; mkdir h; cp \"$E\" h/pre-commit; git -C n config core.hooksPath ../h"],
    ),
    (
        "hook of a module",
        &[
            "mkdir -p .git/modules; git init -q --separate-git-dir .git/modules/n n; cp \"$E\" .git/modules/n/hooks/pre-commit",
        ],
    ),
    ("alias", &["git init -q n; git -C n config alias.sts \"!$E\""]),
    ("external diff", &["git clone -q . n; git -C n config diff.external \"$E\"; echo b >> n/file"]),
    (
        "command of a diff driver",
        &[
            "git clone -q . n; git -C n config diff.x.command \"$E\"; echo '* diff=x' > n/.gitattributes; echo b >> n/file",
        ],
    ),
    (
        "text conversion",
        &[
            "git clone -q . n; git -C n config diff.x.textconv \"$E\"; echo '* diff=x' > n/.git/info/attributes",
        ],
    ),
    (
        "attributes elsewhere",
        &[
            "git clone -q . n; git -C n config diff.x.textconv \"$E\"; git -C n config core.attributesFile ../attrs; echo '* diff=x' > attrs",
        ],
    ),
    (
        "clean filter",
        &[
            "git clone -q . n; git -C n config filter.x.clean \"$E\"; echo '* filter=x' > n/.gitattributes; echo b >> n/file",
        ],
    ),
    (
        "filter process",
        &[
            "git clone -q . n; git -C n config filter.x.process \"$E\"; echo '* filter=x' > n/.git/info/attributes; echo b >> n/file",
        ],
    ),
    (
        "smudge filter",
        &[
            "git clone -q . n; git -C n config filter.x.smudge \"$E\"; echo '* filter=x' > n/.git/info/attributes; rm n/file",
        ],
    ),
    ("editor", &["git clone -q . n; git -C n config core.editor \"$E\""]),
    ("upload-pack", &["git clone -q . n; git -C n config remote.origin.uploadpack \"$E\""]),
    (
        "remote for a program",
        &[
            "git clone -q . n; git -C n config remote.origin.url \"ext::$E\"; git -C n config protocol.ext.allow always",
        ],
    ),
    (
        "ssh",
        &[
            "git clone -q . n; git -C n config core.sshCommand \"$E\"; git -C n config remote.origin.url ssh://127.0.0.1/x",
        ],
    ),
    ("passwords", &["git clone -q . n; git -C n config credential.helper \"!$E\""]),
    (
        "locked folders",
        &[
            "git init -q n; f n; cp \"$E\" n/.git/hooks/pre-commit; chmod 555 n/.git n/.git/hooks; chmod 311 n",
        ],
    ),
    (
        "not readable twice",
        &["mkdir -p a/n; git init -q a/n; f a/n; git init -q n; f n; chmod 111 a n; chmod 311 n/.git"],
    ),
    (
        "one inside of another",
        &[
            "git init -q n; git init -q n/.git/n; f n/.git/n; mkdir -p .git/objects/n; git init -q .git/objects/n; f .git/objects/n",
        ],
    ),
];

/// What everyday commands make, which stays as it is.
const HARMLESS: &[(&str, &str)] = &[
    (
        "init and commit",
        "git init -q n; echo a > n/a; git -C n add a; git -C n commit -qm a; git -C n config user.name x; git add n",
    ),
    (
        "clone",
        "git clone -q . n && git -C n checkout -q -b x && git -C n fetch -q && git -C n pull -q origin main",
    ),
    ("bare clone", "git clone -q --bare . n.git; git -C n.git branch x"),
    ("mirror", "git clone -q --mirror . n.git"),
    (
        "clone that shares objects",
        "git clone -q --shared . n; git -C n status --short; git -C n log -1 --oneline",
    ),
    (
        "folder elsewhere",
        "mkdir -p .git/modules && git init -q --separate-git-dir .git/modules/n n && git -C n status --short",
    ),
    (
        "submodule in a nested one",
        "git init -q n && cd n && git -c protocol.file.allow=always submodule --quiet add \"$W/known\" lib && git commit -qm x && git submodule --quiet update --init && git -C lib status --short",
    ),
    (
        "recursive clone",
        "git init -q n && (cd n && git -c protocol.file.allow=always submodule --quiet add \"$W/known\" lib && git commit -qm x) && git -c protocol.file.allow=always clone -q --recurse-submodules n m && test -f m/lib/k",
    ),
    (
        "work tree",
        "git worktree add -q n && git -C n commit -q --allow-empty -m x && git worktree list | grep -q n",
    ),
    (
        "part of the files",
        "git clone -q . n && git -C n sparse-checkout set --no-cone file && git -C n status --short",
    ),
    (
        "remotes and branches",
        "git clone -q . n && cd n && git remote add other https://example.org/x && git config branch.main.rebase true && git gc -q && git stash -q; true",
    ),
    (
        "known one",
        "cd known && git config user.name x && git remote add o https://example.org && echo b >> k && git commit -qam b --no-verify",
    ),
    ("known one moved", "mv known known2 && git -C known2 config user.name y"),
    ("known one removed", "rm -rf known"),
    (
        "plain folders with such names",
        "mkdir -p hooks config refs/x objects; echo x > hooks/pre-commit; chmod +x hooks/pre-commit; echo '[core]' > HEAD; rm HEAD",
    ),
];

/// Where an agent's command runs.
#[derive(Clone, Copy, Debug)]
enum Runs {
    In(Method),
    /// Nothing confines it.
    Off,
    /// As a program that stays.
    Staying(Method),
    /// Nothing is compared either: shows that a row runs code.
    Free,
}

struct World {
    place: Place,
    work: PathBuf,
}

impl World {
    fn new() -> Self {
        let place = Place::new();
        let work = place.top.join("work");
        let evil = place.top.join("evil");
        let body = format!("#!/bin/sh\n: > '{}'\nexit 0\n", place.top.join("canary").display());
        std::fs::write(&evil, body).unwrap();
        std::fs::remove_dir_all(work.join(".git")).unwrap();
        let world = Self { place, work };
        world.plain(
            "chmod +x \"$E\"; git init -q -b main .; echo a > file; git add file; git commit -qm a; \
             git config extensions.worktreeConfig true; \
             git init -q -b main known; cd known; echo a > k; git add k; git commit -qm a; git config alias.own '!true'; \
             printf '#!/bin/sh\\nexit 0\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
        );
        world
    }

    fn env(&self) -> Vec<(String, String)> {
        let at = |name: &str| self.place.top.join(name).display().to_string();
        let mut env = self.place.launch("").env;
        env.extend(
            [
                ("HOME", at("home")),
                ("E", at("evil")),
                ("W", at("work")),
                ("TMPDIR", at("scratch")),
                ("GIT_CONFIG_NOSYSTEM", "1".into()),
                ("GIT_CEILING_DIRECTORIES", at("")),
                ("GIT_TERMINAL_PROMPT", "0".into()),
                ("GIT_ALLOW_PROTOCOL", "file:ext:ssh".into()),
                ("GIT_AUTHOR_NAME", "a".into()),
                ("GIT_AUTHOR_EMAIL", "a@a".into()),
                ("GIT_COMMITTER_NAME", "a".into()),
                ("GIT_COMMITTER_EMAIL", "a@a".into()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        env
    }

    /// Runs a script as the person.
    fn plain(&self, script: &str) -> std::process::Output {
        let mut sh = Command::new("/bin/sh");
        sh.args(["-c", script])
            .env_clear()
            .envs(self.env())
            .current_dir(&self.work)
            .stdin(std::process::Stdio::null());
        sh.output().unwrap()
    }

    /// Runs a command of an agent, and compares after it.
    fn agent(&self, runs: Runs, script: &str) -> (std::process::Output, Vec<String>) {
        let functions = "f() { git -C \"$1\" config core.fsmonitor \"$E\" || git --git-dir=\"$1\" config core.fsmonitor \"$E\" || true; }; \
                         g() { d=$1; shift; git --git-dir=\"$d\" \"$@\"; }; ";
        let mut launch = self.place.launch(&format!("{functions}{script}"));
        launch.env = self.env();
        let kept = self.place.top.join("kept");
        let home = self.place.top.join("home");
        let (profile, method) = match runs {
            Runs::In(method) | Runs::Staying(method) => (Profile::Workspace, method),
            Runs::Off | Runs::Free => (Profile::Floor, Method::Landlock),
        };
        let mut confined = self.place.confined(profile, method);
        confined.policy.network = Network::Loopback;
        match runs {
            Runs::Free => (self.place.start(launch), Vec::new()),
            Runs::Off => {
                let policy =
                    Policy::new(Profile::Floor, &self.work, &self.place.top.join("scratch"), Some(&home));
                let guard = FileGuards::new(policy, kept).guard(&self.work).unwrap();
                (self.place.start(launch), guard.map_or_else(Vec::new, |guard| guard.restore().restored))
            }
            Runs::In(method) => {
                let session = SessionSandbox::new(confined.policy.clone(), kept);
                let guard = session.guarded(&self.work, Some(method)).unwrap();
                // Without a supervisor: a signal during its answer fails a `fork` of scripts of git.
                let out = self.place.start(confined.wrap(launch));
                (
                    out,
                    guard.map_or_else(Vec::new, |guard: std::sync::Arc<dyn FileGuard>| {
                        guard.restore().restored
                    }),
                )
            }
            Runs::Staying(_) => {
                let staying = confined.staying(launch, &ForkLimit::default(), &Servers::default(), &kept);
                (self.place.start(staying), Vec::new())
            }
        }
    }

    /// What a person does afterwards, in every folder with a repository. True if code of the command ran.
    fn ran(&self) -> bool {
        let canary = self.place.top.join("canary");
        let _ = std::fs::remove_file(&canary);
        let commands = "git status; git diff; git log -p; git submodule status; git cat-file --filters HEAD:file; git add -A; git status -s; git sts; \
                        git commit -q --allow-empty -m later; git -c user.name=x commit -q --allow-empty; git checkout -q -b later; \
                        git checkout -q -f; git fetch -q; git remote show origin; \
                        printf 'url=https://example.org\\n\\n' | git credential fill; true";
        let visit = format!(
            "visit() {{ {commands}; }}; visit; chmod -R u+rwX . 2>/dev/null; \
             find . \\( -name .git -o -name HEAD \\) ! -path '*/logs/*' ! -path '*/refs/*' -print | while read -r p; do (cd \"$(dirname \"$p\")\" && visit); done; exit 0"
        );
        // The first look is at the workspace as it is.
        self.plain(&visit);
        canary.exists()
    }
}

fn everywhere() -> Vec<Runs> {
    methods()
        .into_iter()
        .filter(|method| *method != Method::Seatbelt)
        .map(Runs::In)
        .chain([Runs::Off])
        .collect()
}

fn has_git() -> bool {
    let found = Command::new("git").arg("--version").output().is_ok();
    if !found {
        println!("skipped: there is no git");
    }
    found
}

/// A row that runs no code without the comparison shows nothing.
#[test]
fn each_hostile_row_runs_code_where_nothing_is_compared() {
    if !has_git() {
        return;
    }
    let mut harmless = Vec::new();
    for (name, commands) in HOSTILE {
        let world = World::new();
        let out: Vec<_> = commands.iter().map(|command| world.agent(Runs::Free, command).0).collect();
        if !world.ran() {
            harmless.push((name, out));
        }
    }
    assert!(harmless.is_empty(), "{harmless:#?}");
}

#[test]
fn what_a_command_makes_of_a_repository_runs_nothing_afterwards() {
    if !has_git() {
        return;
    }
    for runs in everywhere() {
        for (name, commands) in HOSTILE {
            let world = World::new();
            let done: Vec<_> = commands.iter().map(|command| world.agent(runs, command)).collect();
            let told: Vec<&String> = done.iter().flat_map(|(_, told)| told).collect();
            assert!(!world.ran(), "{runs:?} {name}: {done:?}");
            assert!(!told.is_empty(), "{runs:?} {name} is not told: {done:?}");
            assert!(
                told.iter().all(|line| !line.contains("could not be restored")),
                "{runs:?} {name}: {told:?}"
            );
        }
    }
}

#[test]
fn what_everyday_commands_make_of_a_repository_stays() {
    if !has_git() {
        return;
    }
    let mut changed = Vec::new();
    for runs in everywhere() {
        for (name, command) in HARMLESS {
            let world = World::new();
            let (out, told) = world.agent(runs, command);
            if !out.status.success() || !told.is_empty() {
                changed.push((runs, name, out, told));
            }
            let known =
                ["known", "known2"].map(|name| world.work.join(name)).into_iter().find(|path| path.exists());
            if let Some(known) = known {
                let config = std::fs::read_to_string(known.join(".git/config")).unwrap();
                assert!(config.contains("own = !true"), "{runs:?} {name}: {config}");
                assert!(known.join(".git/hooks/post-commit").exists(), "{runs:?} {name}");
            }
        }
    }
    assert!(changed.is_empty(), "{changed:#?}");
}

/// What a person has set is put back as it was, and what is harmless of a new repository stays.
#[test]
fn only_what_runs_is_taken_out() {
    if !has_git() {
        return;
    }
    let world = World::new();
    let (_, told) = world.agent(
        Runs::Off,
        "f known; git -C known config user.name x; git clone -q . n; f n; git -C n config user.name x",
    );
    assert_eq!(told.len(), 2, "{told:?}");
    let known = std::fs::read_to_string(world.work.join("known/.git/config")).unwrap();
    assert!(
        known.contains("own = !true") && !known.contains("fsmonitor") && !known.contains("name = x"),
        "{known}"
    );
    let config = world.plain("git -C n config --list --local");
    let config = String::from_utf8_lossy(&config.stdout).into_owned();
    assert!(config.contains("user.name=x") && config.contains("branch.main.remote=origin"), "{config}");
    assert!(!config.contains("fsmonitor"), "{config}");
    assert!(
        told.iter().any(|line| line.contains("what would run was taken out (core.fsmonitor was set)")),
        "{told:?}"
    );
    // What the person does between two commands is theirs.
    world.plain("git -C n config alias.mine '!true'; git init -q mine; cp \"$E\" mine/.git/hooks/pre-push");
    let (_, told) =
        world.agent(Runs::Off, "git -C n config user.email x; git -C mine config user.email x; echo x > y");
    assert!(told.is_empty() && world.work.join("mine/.git/hooks/pre-push").exists(), "{told:?}");
}

#[test]
fn objects_of_other_folders_are_not_read() {
    if !has_git() {
        return;
    }
    let world = World::new();
    let (_, told) = world.agent(
        Runs::Off,
        "git init -q n; echo \"$TMPDIR/objects\" > n/.git/objects/info/alternates; git clone -q --shared . m",
    );
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("alternates") && told[0].contains("it leads out of the workspace"), "{told:?}");
    assert!(world.work.join("m/.git/objects/info/alternates").exists());
}

/// Repositories that a server, a hook or a program of another vendor makes are compared while it runs, and after it.
#[test]
fn what_a_program_that_stays_makes_of_a_repository_runs_nothing() {
    if !has_git() || !crate::Confinement::find().notification {
        println!("skipped: there is no supervisor");
        return;
    }
    for method in methods() {
        for name in ["init", "folder for temporary files", "hook", "known", "link to a folder"] {
            let world = World::new();
            let commands = HOSTILE.iter().find(|(row, _)| *row == name).unwrap().1;
            let out = world.agent(Runs::Staying(method), commands[0]).0;
            assert!(wait(|| kept(&world)), "{method:?} {name}: {out:?}");
            assert!(!world.ran(), "{method:?} {name}: {out:?}");
        }
        // What the person does meanwhile is theirs.
        let world = World::new();
        let script = "git init -q n; f n; while ! test -e done; do sleep 0.02; done; f n";
        std::thread::scope(|scope| {
            let server = scope.spawn(|| world.agent(Runs::Staying(method), script).0);
            let begun = wait(|| kept(&world));
            world.plain("git -C known config core.pager x; git init -q mine; git -C mine config core.pager x; touch done");
            assert!(begun, "{method:?}: {:?}", server.join());
        });
        for name in ["known", "mine"] {
            let config = std::fs::read_to_string(world.work.join(name).join(".git/config")).unwrap();
            assert!(config.contains("pager = x"), "{method:?} {name}: {config}");
        }
        // While it runs: it goes on until what it made is away.
        let world = World::new();
        let script = "git init -q n; f n; for i in $(seq 300); do grep -q fsmonitor n/.git/config || exit 7; sleep 0.1; done";
        assert_eq!(world.agent(Runs::Staying(method), script).0.status.code(), Some(7), "{method:?}");
    }
}

fn kept(world: &World) -> bool {
    std::fs::read_dir(world.place.top.join("kept")).is_ok_and(|mut kept| kept.next().is_some())
}

fn wait(condition: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(60);
    while !condition() && Instant::now() < end {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    condition()
}

#[test]
fn names_that_a_file_system_could_take_for_the_same_count() {
    for name in [".git", ".GIT", ".Git", "git~1", ".g\u{200c}it"] {
        assert!(is_repository_name(name.as_ref()), "{name:?}");
    }
    for name in [".gitignore", "git", ".github", "x.git", ".gít"] {
        assert!(!is_repository_name(name.as_ref()), "{name:?}");
    }
}

/// Only folders that were changed are read again, however many there are.
#[test]
fn a_look_reads_what_was_changed() {
    let tmp = tempfile::tempdir().unwrap();
    let top = [tmp.path().canonicalize().unwrap()];
    for n in 0..200 {
        std::fs::create_dir_all(top[0].join(format!("a{}/b{n}", n % 10))).unwrap();
    }
    let mut tree = Tree::default();
    tree.look(&top);
    assert_eq!((tree.read, tree.len()), (211, 211));
    // The clock of the file system has steps: until then nothing is taken for settled.
    let settled = wait_for(&mut tree, &top);
    assert!(settled, "{}", tree.read);
    std::fs::create_dir(top[0].join("a3/b3/.git")).unwrap();
    tree.look(&top);
    assert_eq!(tree.read, 2);
    assert_eq!(tree.repositories().collect::<Vec<_>>(), [top[0].join("a3/b3/.git")]);
}

fn wait_for(tree: &mut Tree, top: &[PathBuf]) -> bool {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        tree.look(top);
        if tree.read == 0 {
            return true;
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
    false
}

/// Prints what a comparison costs in a tree of 100,000 files.
#[test]
#[ignore = "a measurement"]
fn a_large_workspace_is_compared_in_milliseconds() {
    let place = Place::new();
    let work = place.top.join("work");
    for folder in 0..12_000 {
        let path: &Path = &work.join(format!("m{}/p{}/f{folder}", folder % 30, folder % 400));
        std::fs::create_dir_all(path).unwrap();
        for file in 0..8 {
            std::fs::write(path.join(format!("file{file}")), "x").unwrap();
        }
    }
    let policy = Policy::new(Profile::Workspace, &work, &place.top.join("scratch"), None).resolved();
    for _ in 0..4 {
        let start = Instant::now();
        let guard = super::Repositories::record(&policy).unwrap();
        let recorded = start.elapsed();
        let start = Instant::now();
        assert!(guard.restore(&place.top.join("kept")).is_empty());
        println!("recorded in {recorded:?}, compared in {:?}", start.elapsed());
        std::thread::park_timeout(Duration::from_secs(3));
    }
}
