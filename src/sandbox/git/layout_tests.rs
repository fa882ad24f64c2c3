//! Git in each place that a workspace can have in a repository: it works as in a plain one, and what it obeys stays as it was.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use tiller_tool::shell::CommandWatch;

use super::tests::{each, has_git};
use crate::confine::{Confined, Method, SessionSandbox};
use crate::policy::{Policy, Profile};
use crate::testing::{Place, launcher, methods};

/// Makes a repository `main` with files in three folders.
const MAIN: &str = "git init -q -b main main; mkdir -p main/sub/deep; \
                    for f in a sub/a sub/deep/a; do echo 1 > main/$f; done; git -C main add .; git -C main commit -qm one;";

/// Name, commands of the person that make it, and the workspace.
const LAYOUTS: &[(&str, &str, &str)] = &[
    ("plain", "", "main"),
    ("part", "", "main/sub"),
    ("deep part", "", "main/sub/deep"),
    ("submodule", MODULE, "super/mod"),
    ("part of a submodule", MODULE, "super/mod/sub"),
    ("linked worktree", "git -C main worktree add -q ../linked", "linked"),
    ("part of a linked worktree", "git -C main worktree add -q ../linked", "linked/sub"),
    ("git folder elsewhere", "git clone -q --separate-git-dir store main apart", "apart"),
    ("part, git folder elsewhere", "git clone -q --separate-git-dir store main apart", "apart/sub"),
    (
        "worktree of a bare one",
        "git clone -q --bare main bare.git; git -C bare.git worktree add -q ../from main",
        "from",
    ),
];
const MODULE: &str =
    "git init -q -b main super; git -C super -c protocol.file.allow=always submodule --quiet add ../main mod";

/// Operations, each with its commands.
const OPERATIONS: &[(&str, &str)] = &[
    ("status", "test -z \"$(git status --porcelain)\""),
    ("diff", "echo 2 > a; ! git diff --quiet"),
    ("add", "git add a"),
    ("commit", "git commit -qm two; test \"$(git log -1 --format=%s)\" = two"),
    ("tag", "git tag t; git tag -a -m u u"),
    ("stash", "echo 3 > a; git stash -q; grep -q 2 a; git stash pop -q; grep -q 3 a; git checkout -q -- a"),
    ("checkout -b", "git checkout -q -b topic; echo x > b; git add b; git commit -qm topic"),
    ("switch", "git checkout -q -; echo y > c; git add c; git commit -qm base; test ! -e b"),
    ("rebase", "git checkout -q topic; git rebase -q @{-1}; test -e c"),
    ("merge", "git checkout -q -; git merge -q --no-ff -m merged topic; test -e b"),
    ("log", "test \"$(git log --format=%s -1)\" = merged; git reflog -3"),
    ("reset", "git reset -q --hard HEAD~1; test ! -e b; git branch -q -D topic"),
    ("gc", "git gc -q"),
    ("clean", "test -z \"$(git status --porcelain)\""),
];

/// Tries to change what git obeys, and files beside the workspace.
const HOSTILE: &str = "own=$(git rev-parse --absolute-git-dir); shared=$(cd \"$(git rev-parse --git-common-dir)\" && pwd); \
    for git in \"$own\" \"$shared\"; do \
      mkdir -p \"$git/hooks\"; printf '#!/bin/sh\\ntouch ran\\n' > \"$git/hooks/post-commit\"; \
      chmod +x \"$git/hooks/post-commit\"; git config core.fsmonitor \"$PWD/x\"; \
      for file in config config.worktree; do printf '[core]\\n\\tfsmonitor = x\\n' >> \"$git/$file\"; done; \
      mv \"$git/hooks\" \"$git/old\"; mv \"$git/config\" \"$git/before\"; \
      echo /elsewhere > \"$git/commondir\"; echo /elsewhere > \"$git/gitdir\"; \
      mkdir -p \"$git/objects/info\"; echo /elsewhere > \"$git/objects/info/alternates\"; done; \
    top=$(git rev-parse --show-toplevel); echo 'gitdir: /elsewhere' > \"$top/.git\"; rm -f \"$top/.git\"; \
    for file in ../a ../new ../../a ../main/a; do echo x > \"$file\"; done; exit 0";

struct World {
    place: Place,
    folder: PathBuf,
    work: PathBuf,
}

impl World {
    fn new(below: &str, made: &str, work: &str) -> Self {
        let place = Place::below(below);
        let folder = place.top.join("with spaces");
        std::fs::create_dir_all(&folder).unwrap();
        let world = Self { work: folder.join(work), folder, place };
        let out = world.plain(&format!("set -e; {MAIN} {made}"));
        assert!(out.status.success(), "{made}: {}", String::from_utf8_lossy(&out.stderr));
        world
    }

    fn env(&self) -> Vec<(String, String)> {
        let mut env = self.place.launch("").env;
        let at = |name: &str| self.place.top.join(name).display().to_string();
        env.extend(
            [
                ("HOME", at("home")),
                ("TMPDIR", at("scratch")),
                ("GIT_CONFIG_NOSYSTEM", "1".into()),
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
    fn plain(&self, script: &str) -> Output {
        let mut sh = Command::new("/bin/sh");
        sh.args(["-c", script]).env_clear().envs(self.env()).current_dir(&self.folder).stdin(Stdio::null());
        sh.output().unwrap()
    }

    fn confined(&self, profile: Profile, method: Method) -> Confined {
        let at = |name: &str| self.place.top.join(name);
        let policy = Policy::new(profile, &self.work, &at("scratch"), Some(&at("home"))).with_project();
        Confined { policy, method, launcher: launcher() }
    }

    /// Runs a command of an agent, as a session does.
    fn agent(&self, profile: Profile, method: Method, script: &str) -> Output {
        self.agent_in(self.confined(profile, method), script)
    }

    /// The same, in a session that began before.
    fn agent_in(&self, confined: Confined, script: &str) -> Output {
        let method = confined.method;
        let mut launch = self.place.launch(script);
        (launch.env, launch.folder) = (self.env(), self.work.clone());
        let session = SessionSandbox::new(confined.policy.clone(), self.place.top.join("kept"));
        let guard = session.guarded(&self.work, Some(method)).unwrap();
        let out = self.place.start(confined.watched(launch, &CommandWatch::default(), &Arc::default()));
        if let Some(guard) = guard {
            guard.restore();
        }
        out
    }

    /// All files but those that git writes in any layout, with their contents.
    fn obeyed(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = Vec::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap().flatten() {
                let path = entry.path();
                let own = path.strip_prefix(&self.work);
                let is_own = own.is_ok_and(|own| own.iter().all(|name| name != ".git"));
                if path.is_dir() {
                    folders.push(path);
                } else if !is_own && !is_written(&path) {
                    all.push((path.clone(), std::fs::read(&path).unwrap()));
                }
            }
        }
        all.sort();
        all
    }
}

/// True for a file that git itself writes in a git folder.
fn is_written(path: &Path) -> bool {
    let in_git = |folder: &Path| folder.join("HEAD").is_file();
    let Some(git) = path.ancestors().skip(1).find(|folder| in_git(folder)) else { return false };
    let name = path.strip_prefix(git).unwrap().iter().next().unwrap().to_str().unwrap();
    let obeyed = path.ends_with("objects/info/alternates")
        || name == "gitdir" && git.parent().unwrap().ends_with("worktrees");
    !obeyed && !matches!(name, "hooks" | "config" | "config.worktree" | "commondir")
}

fn everywhere() -> Vec<(Method, &'static str, &'static (&'static str, &'static str, &'static str))> {
    let methods = methods().into_iter().filter(|method| *method != Method::Seatbelt);
    let places = methods.flat_map(|method| ["/var/tmp", "/tmp"].map(|below| (method, below)));
    places.flat_map(|(method, below)| LAYOUTS.iter().map(move |row| (method, below, row))).collect()
}

#[test]
fn git_works_in_each_layout_as_in_a_plain_one() {
    if !has_git() {
        return;
    }
    each(&everywhere(), |(method, below, (name, made, work))| {
        let world = World::new(below, made, work);
        let before = world.obeyed();
        let script: String = OPERATIONS
            .iter()
            .map(|(name, script)| format!("(set -e; {script}) > /dev/null || echo 'failed: {name}'\n"))
            .collect();
        let out = world.agent(Profile::Workspace, *method, &format!("{script}exit 0"));
        let (said, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        let failed: Vec<&str> = said.lines().filter(|line| line.starts_with("failed")).collect();
        assert!(
            out.status.success() && failed.is_empty(),
            "{name}, {method:?}, {below}: {failed:?}\n{errors}"
        );
        assert_eq!(world.obeyed(), before, "{name}, {method:?}, {below}");
        // It is there for the person, too.
        let log = world.plain(&format!("git -C '{}' log -1 --format=%s", world.work.display()));
        assert_eq!(String::from_utf8_lossy(&log.stdout), "base\n", "{name}, {method:?}, {below}");
    });
}

#[test]
fn what_git_obeys_stays_as_it_was_in_each_layout() {
    if !has_git() {
        return;
    }
    each(&everywhere(), |(method, below, (name, made, work))| {
        let world = World::new(below, made, work);
        let before = world.obeyed();
        world.agent(Profile::Workspace, *method, HOSTILE);
        let now = world.obeyed();
        let differs = now
            .iter()
            .filter(|file| !before.contains(file))
            .chain(before.iter().filter(|file| !now.iter().any(|(path, _)| path == &file.0)));
        let differs: Vec<_> = differs.map(|(path, text)| (path, String::from_utf8_lossy(text))).collect();
        assert!(differs.is_empty(), "{name}, {method:?}, {below}: {differs:?}");
    });
}

#[test]
fn a_reading_command_sees_the_repository_in_each_layout() {
    if !has_git() {
        return;
    }
    each(&everywhere(), |(method, below, (name, made, work))| {
        let world = World::new(below, made, work);
        let script = "test -z \"$(git status --porcelain)\" && git diff --quiet && git log -1 --format=%s && \
                      ! git commit -q --allow-empty -m no 2>/dev/null";
        let out = world.agent(Profile::Read, *method, script);
        let said = String::from_utf8_lossy(&out.stdout);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(
            out.status.success() && said.trim().ends_with("\none"),
            "{name}, {method:?}, {below}: {said}{errors}"
        );
    });
}

/// A git folder that lies in the workspace, where a command can move it: a link in its place opens nothing to the next command.
#[test]
fn a_git_folder_in_the_workspace_that_is_swapped_opens_no_other_folder() {
    if !has_git() {
        return;
    }
    let methods = methods().into_iter().filter(|method| *method != Method::Seatbelt);
    let rows: Vec<_> = methods.flat_map(|method| ["../out", "../main/.git"].map(|to| (method, to))).collect();
    each(&rows, |(method, to)| {
        let world = World::new(
            "/var/tmp",
            "mkdir out apart; git init -q --separate-git-dir apart/store apart",
            "apart",
        );
        let began = || world.confined(Profile::Workspace, *method);
        let session = began();
        world.agent_in(session.clone(), &format!("mv store s; ln -s {to} store"));
        let link = world.work.join("store");
        if !link.is_symlink() {
            // The sandbox kept it in its place: the person has done it.
            std::fs::rename(&link, world.work.join("s")).unwrap();
            std::os::unix::fs::symlink(to, &link).unwrap();
        }
        for confined in [session, began()] {
            world.agent_in(confined, "echo x > store/new");
            assert!(!world.work.join(to).join("new").exists(), "{method:?}, {to}");
        }
    });
}
