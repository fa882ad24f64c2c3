use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tiller_tool::shell::{Confiner, FileGuard, ForkLimit, Sandbox};

use super::rows_tests::{HARMLESS, HOSTILE, NAMED};
use super::tree::{Tree, is_repository_name};
use crate::confine::{FileGuards, Method, SessionSandbox};
use crate::network::Servers;
use crate::policy::{Network, Policy, Profile};
use crate::testing::{Place, methods};

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
        let world = Self::empty();
        world.plain(
            "git init -q -b main .; echo a > file; git add file; git commit -qm a; \
             git config extensions.worktreeConfig true; \
             git init -q -b main known; cd known; echo a > k; git add k; git commit -qm a; git config alias.own '!true'; \
             printf '#!/bin/sh\\nexit 0\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
        );
        world
    }

    /// One with an empty workspace, and a program that leaves a trace.
    fn empty() -> Self {
        let place = Place::new();
        let work = place.top.join("work");
        std::fs::remove_dir_all(work.join(".git")).unwrap();
        let world = Self { place, work };
        // A shell writes it: no other thread of the tests holds it open when it is run.
        world.plain(&format!(
            "printf '%s\\n' '#!/bin/sh' \": > '{}'\" 'exit 0' > \"$E\"; chmod +x \"$E\"",
            world.canary().display()
        ));
        world
    }

    fn canary(&self) -> PathBuf {
        self.place.top.join("canary")
    }

    /// Another one that is as this one was made: copying it costs a third of making one.
    fn copy(&self) -> Self {
        let copy = Self::empty();
        copy.plain(&format!("cp -a '{}/.' .", self.work.display()));
        copy
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
                // Without a supervisor: the comparison alone is tested.
                let out = self.place.start(confined.wrap(launch));
                let restore = |guard: std::sync::Arc<dyn FileGuard>| guard.restore().restored;
                (out, guard.map_or_else(Vec::new, restore))
            }
            Runs::Staying(_) => {
                let staying = confined.staying(launch, &ForkLimit::default(), &Servers::default(), &kept);
                (self.place.start(staying), Vec::new())
            }
        }
    }

    /// What a person does afterwards, in every folder with a repository. True if code of the command ran.
    fn ran(&self) -> bool {
        let canary = self.canary();
        let _ = std::fs::remove_file(&canary);
        // A repository is visited once: in the folder that it belongs to, or in itself where it has none.
        let visit = format!(
            "visit() {{ git status; git diff; git log -p; git cat-file --filters HEAD:file; git add -A; git sts; \
             git commit -q --allow-empty -m later; git -c user.name=x commit -q --allow-empty; git checkout -q -b later; \
             git checkout -q -f; git fetch -q; git remote show origin; \
             printf 'url=https://example.org\\n\\n' | git credential fill; test ! -e '{}' || exit 0; }}; \
             git status; git submodule status; visit; chmod -R u+rwX . 2>/dev/null; \
             find . -name .git -print -o -name HEAD ! -path '*/.git/HEAD' ! -path '*/logs/*' ! -path '*/refs/*' -print | \
             while read -r p; do (cd \"$(dirname \"$p\")\" && visit); done; exit 0",
            canary.display()
        );
        // The first look is at the workspace as it is.
        self.plain(&visit);
        canary.exists()
    }
}

/// Calls `test` with each row, as many at once as there are processors: a row mostly waits for one process after the other.
pub(super) fn each<T: Sync>(rows: &[T], test: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            test(row);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
}

fn everywhere_with<R>(rows: &'static [R]) -> Vec<(Runs, &'static R)> {
    everywhere().into_iter().flat_map(|runs| rows.iter().map(move |row| (runs, row))).collect()
}

fn everywhere() -> Vec<Runs> {
    methods()
        .into_iter()
        .filter(|method| *method != Method::Seatbelt)
        .map(Runs::In)
        .chain([Runs::Off])
        .collect()
}

pub(super) fn has_git() -> bool {
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
    let base = World::new();
    each(HOSTILE, |(name, commands)| {
        let world = base.copy();
        let out: Vec<_> = commands.iter().map(|command| world.agent(Runs::Free, command).0).collect();
        assert!(world.ran(), "{name}: {out:#?}");
    });
}

#[test]
fn what_a_command_makes_of_a_repository_runs_nothing_afterwards() {
    if !has_git() {
        return;
    }
    let base = World::new();
    each(&everywhere_with(HOSTILE), |(runs, (name, commands))| {
        let world = base.copy();
        let done: Vec<_> = commands.iter().map(|command| world.agent(*runs, command)).collect();
        let told: Vec<&String> = done.iter().flat_map(|(_, told)| told).collect();
        assert!(!world.ran(), "{runs:?} {name}: {done:?}");
        assert!(!told.is_empty(), "{runs:?} {name} is not told: {done:?}");
        assert!(told.iter().all(|line| !line.contains("could not be restored")), "{runs:?} {name}: {told:?}");
    });
}

#[test]
fn what_the_settings_of_a_known_repository_name_is_judged() {
    if !has_git() {
        return;
    }
    let base = World::new();
    let rows: Vec<_> =
        everywhere_with(NAMED).into_iter().chain(NAMED.iter().map(|row| (Runs::Free, row))).collect();
    each(&rows, |(runs, (name, setup, command))| {
        let world = base.copy();
        let set_up = world.plain(&format!("set -e; {setup}"));
        assert!(set_up.status.success(), "{name}: {set_up:?}");
        let (out, told) = world.agent(*runs, command);
        let free = matches!(runs, Runs::Free);
        assert_eq!(world.ran(), free, "{runs:?} {name}: {out:?} {told:?}");
        assert_eq!(told.is_empty(), free, "{runs:?} {name}: {out:?} {told:?}");
    });
}

#[test]
fn what_everyday_commands_make_of_a_repository_stays() {
    if !has_git() {
        return;
    }
    let base = World::new();
    each(&everywhere_with(HARMLESS), |(runs, (name, command))| {
        let world = base.copy();
        let (out, told) = world.agent(*runs, command);
        assert!(out.status.success() && told.is_empty(), "{runs:?} {name}: {told:?} {out:?}");
        let known =
            ["known", "known2"].map(|name| world.work.join(name)).into_iter().find(|path| path.exists());
        if let Some(known) = known {
            let config = std::fs::read_to_string(known.join(".git/config")).unwrap();
            assert!(config.contains("own = !true"), "{runs:?} {name}: {config}");
            assert!(known.join(".git/hooks/post-commit").exists(), "{runs:?} {name}");
        }
    });
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
