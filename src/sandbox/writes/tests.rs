//! All names of the list, written in all ways by real commands, and by git.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use tiller_protocol::protected_names::{FILES, FOLDERS, by_consent};
use tiller_tool::shell::CommandWatch;

use super::judge::Judged;
use super::{ProtectedWrites, folder_above};
use crate::confine::{Confined, Method};
use crate::confinement::Confinement;
use crate::git::Repositories;
use crate::policy::Profile;
use crate::testing::{Place, methods};

/// A file for each name that git can track.
pub(crate) fn names() -> Vec<String> {
    let folders = FOLDERS.iter().filter(|name| ![".git", "git~1", ".tiller"].contains(name));
    let files = FILES.iter().copied().chain(by_consent()).map(str::to_owned);
    folders.map(|name| format!("{name}/x")).chain(files).collect()
}

fn supervised() -> Vec<Method> {
    if Confinement::find().notification {
        return methods();
    }
    println!("skipped: this kernel has no user notification");
    Vec::new()
}

/// The commands of one session.
struct Session {
    place: Place,
    confined: Confined,
    writes: Arc<ProtectedWrites>,
}

impl Session {
    fn new(method: Method) -> Self {
        let place = Place::new();
        let confined = place.confined(Profile::Workspace, method);
        Self { place, confined, writes: Arc::default() }
    }

    fn work(&self, name: &str) -> PathBuf {
        self.place.top.join("work").join(name)
    }

    fn judge(&self, repositories: &Repositories) -> Judged {
        self.writes.restore(repositories.tips(), &self.place.top.join("kept"))
    }

    fn run(&self, script: &str) -> (Output, Judged) {
        let repositories = Repositories::record(&self.confined.policy).unwrap();
        let launch = self.place.launch(script);
        let out = self.place.start(self.confined.watched(launch, &CommandWatch::default(), &self.writes));
        (out, self.judge(&repositories))
    }

    fn python(&self, script: &str) -> (Output, Judged) {
        std::fs::write(self.place.top.join("scratch/script.py"), script).unwrap();
        std::fs::write(self.place.top.join("scratch/names"), names().join("\n")).unwrap();
        self.run("exec python3 ../scratch/script.py")
    }
}

/// Everything below a folder but repositories.
fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true if entry.file_name() != ".git" => files(&entry.path(), all),
            true => {}
            false => all.push(entry.path()),
        }
    }
}

/// Writes each name where nothing is, in each way. `move` makes the name by moving a folder above it.
const NEW: &str = r#"
import os, shutil, sys
names = open("../scratch/names").read().split("\n")
open("evil", "w").write("evil")
def fresh(path):
    open(path, "w").write("evil")
    return path
def parent(path, n):
    first, _, rest = path.partition("/")
    top = "parent/%d" % n
    if rest:
        os.makedirs(os.path.dirname(top + "/y/" + rest))
        fresh(top + "/y/" + rest)
        os.rename(top + "/y", top + "/" + first)
    else:
        os.makedirs(top + "/node_modules/y")
        fresh(top + "/node_modules/y/" + path)
        os.rename(top + "/node_modules/y", top + "/y")
ways = {
    "redirect": lambda p: open(p, "w").write("evil"),
    "append": lambda p: open(p, "a").write("evil"),
    "copy": lambda p: shutil.copy("evil", p),
    "move": lambda p: os.rename(fresh("fresh"), p),
    "link": lambda p: os.link("evil", p),
    "symlink": lambda p: os.symlink(os.path.abspath("evil"), p),
    "pipe": lambda p: os.mkfifo(p),
    "exchange": lambda p: (open(p, "w").close(), os.replace(fresh("fresh"), p)),
}
for n, (way, write) in enumerate(ways.items()):
    for m, name in enumerate(names):
        # One place for each way and name: each name is met in all.
        path = [way + "/%s", way + "/sub/deep/%s", way + "/UPPER/%s"][(n + m) % 3]
        path = path % (name.upper() if "UPPER" in path else name)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write(path)
        except OSError as error:
            print(path, error)
for n, name in enumerate(names):
    parent(name, n)
for first in {name.partition("/")[0] for name in names if "/" in name and name[0] == "."}:
    os.makedirs("begun", exist_ok=True)
    os.symlink("../redirect", "begun/" + first)
print("over")
"#;

#[test]
fn no_command_leaves_a_new_protected_name() {
    for method in supervised() {
        let session = Session::new(method);
        let (out, judged) = session.python(NEW);
        assert!(String::from_utf8_lossy(&out.stdout).ends_with("over\n"), "{method:?}: {out:?}");
        let work = session.work("");
        let mut left = Vec::new();
        files(&work, &mut left);
        left.retain(|path| folder_above(&work, path, true).is_some());
        assert!(left.is_empty(), "{method:?}: {left:?}");
        assert!(judged.passed.is_empty() && judged.violations.len() > 8 * names().len(), "{method:?}");
        assert!(judged.violations.iter().all(|v| v.failed.is_none()), "{method:?}");
        assert!(session.work("evil").exists() && session.work("parent/0").exists(), "{method:?}");
    }
}

/// Changes each name that is there in each way.
const OLD: &str = r#"
import os
names = open("../scratch/names").read().split("\n")
def replace(path):
    open(path + ".new", "w").write("evil")
    os.rename(path + ".new", path)
def link(path):
    os.link(path, path + ".linked")
    open(path + ".linked", "w").write("evil")
def folder(path):
    os.rename(os.path.dirname(path), os.path.dirname(path) + ".moved")
    os.mkdir(os.path.dirname(path))
    open(path, "w").write("evil")
ways = {
    "redirect": lambda p: open(p, "w").write("evil"),
    "append": lambda p: open(p, "a").write("evil"),
    "truncate": lambda p: os.truncate(p, 0),
    "replace": replace,
    "remove": os.unlink,
    "away": lambda p: os.rename(p, p + ".away"),
    "link": link,
    "folder": folder,
    "descriptor": lambda p: os.write(os.open("/proc/self/fd/%d" % os.open(p, os.O_RDONLY), os.O_WRONLY), b"evil"),
}
for way, write in ways.items():
    for name in names:
        try:
            write(way + "/" + name)
        except OSError as error:
            print(way, name, error)
print("over")
"#;
const WAYS: [&str; 9] =
    ["redirect", "append", "truncate", "replace", "remove", "away", "link", "folder", "descriptor"];

#[test]
fn no_command_changes_a_protected_name() {
    for method in supervised() {
        let session = Session::new(method);
        for way in WAYS {
            for name in names() {
                let path = session.work(way).join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "mine").unwrap();
            }
        }
        let (out, judged) = session.python(OLD);
        assert!(String::from_utf8_lossy(&out.stdout).ends_with("over\n"), "{method:?}: {out:?}");
        for way in WAYS {
            for name in names() {
                // Of several names in one folder the first has taken it away.
                let text = std::fs::read_to_string(session.work(way).join(&name)).unwrap_or_default();
                let moved = way == "folder" && text.is_empty();
                assert!(text == "mine" || moved, "{method:?}: {way} {name}: {text}");
            }
        }
        assert!(judged.passed.is_empty() && judged.violations.iter().all(|v| v.failed.is_none()));
    }
}

const SETTINGS: &str = "export HOME=$PWD/../home GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a \
                        GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a; ";

/// A repository with these names: `main` and `other` have different contents, `half` lacks one in two.
fn repository(session: &Session, names: &[String]) {
    std::fs::remove_dir_all(session.work(".git")).unwrap();
    let git = |script: &str| {
        let out = session.place.start(session.place.launch(&format!("{SETTINGS} set -e; {script}")));
        assert!(out.status.success(), "{script}: {out:?}");
    };
    let write = |text: &str| {
        for name in names {
            let path = session.work(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("# {text} {name}\n")).unwrap();
        }
    };
    write("one");
    git(
        "git init -q -b main .; printf '/cl\\n/wt\\n' >> .git/info/exclude; git add -f .; git commit -qm one; \
         git checkout -qb other",
    );
    write("two");
    git("git commit -qam two; git checkout -qb half main");
    for name in names.iter().step_by(2) {
        std::fs::remove_file(session.work(name)).unwrap();
    }
    git("git commit -qam half; git checkout -q main; echo x > plain; git add plain; git commit -qm plain");
}

#[test]
fn git_does_its_work_on_protected_names() {
    for method in supervised() {
        let session = Session::new(method);
        repository(&session, &names());
        let status = |folder: &str| {
            let mut git = Command::new("git");
            let git = tiller_testkit::plain_git(
                git.args(["status", "--porcelain"]).current_dir(session.work(folder)),
            );
            String::from_utf8_lossy(&git.output().unwrap().stdout).into_owned()
        };
        for (script, folder) in [
            ("git checkout -q other", ""),
            ("git checkout -q main", ""),
            ("git checkout -q half", ""),
            ("git checkout -q -b merged main && git merge -q -m m other", ""),
            ("git checkout -q -b rebased half && git rebase -q main", ""),
            ("git reset -q --hard other", ""),
            ("git reset -q --hard main", ""),
            ("git cherry-pick other", ""),
            ("git revert --no-edit HEAD", ""),
            ("git bisect start other main~1 && git checkout -q other && git bisect reset", ""),
            ("git diff HEAD other > $TMPDIR/p && git apply --index $TMPDIR/p && git commit -qm applied", ""),
            ("git stash list && git checkout -q main && git worktree add -q wt other", "wt"),
            ("git clone -q . cl && git -C cl checkout -q half && git -C cl checkout -q other", "cl"),
            ("git pull -q --no-rebase --no-edit ./cl half", ""),
        ] {
            let (out, judged) = session.run(&format!("{SETTINGS} {script}"));
            assert!(out.status.success(), "{method:?}: {script}: {out:?}");
            assert!(judged.violations.is_empty(), "{method:?}: {script}: {:?}", judged.violations);
            assert_eq!(status(folder), "", "{method:?}: {script}");
        }
        // Changes of the person's go away and come again.
        let npmrc = session.work(".npmrc");
        session.run(&format!("{SETTINGS} git checkout -q merged"));
        std::fs::write(&npmrc, "mine").unwrap();
        let (out, judged) = session.run(&format!("{SETTINGS} git stash -q"));
        assert!(out.status.success() && judged.violations.is_empty() && status("").is_empty(), "{out:?}");
        let (out, judged) = session.run(&format!("{SETTINGS} git stash pop -q"));
        assert!(out.status.success() && judged.violations.is_empty(), "{out:?} {:?}", judged.violations);
        assert_eq!(std::fs::read_to_string(&npmrc).unwrap(), "mine");
    }
}

/// Content of a commit that the session made does not pass, whatever a command makes of the history.
#[test]
fn commits_of_the_session_make_no_content_pass() {
    for method in supervised() {
        for script in [
            "echo evil > .npmrc; git commit -qam evil; git checkout -q other; git checkout -q main",
            "echo evil > .npmrc; git commit -qam evil; git replace main~1 main; git replace other main",
            "echo evil > .npmrc; GIT_COMMITTER_DATE=2001-01-01T00:00:00 git commit -qam evil --date 2001-01-01",
            "echo evil > .npmrc; git commit -qam evil; old=$(git rev-parse main~1^{tree}); new=$(git rev-parse main^{tree}); \
             at() { echo .git/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); }; \
             chmod u+w $(at $old); cat $(at $new) > $(at $old)",
        ] {
            let session = Session::new(method);
            repository(&session, &[".npmrc".to_owned(), ".idea/x".to_owned()]);
            let (out, judged) = session.run(&format!("{SETTINGS} {script}"));
            let text = std::fs::read_to_string(session.work(".npmrc")).unwrap();
            assert_eq!(text, "# one .npmrc\n", "{method:?}: {script}: {out:?}");
            assert!(judged.violations.iter().any(|v| v.path.ends_with(".npmrc")), "{method:?}: {script}");
        }
    }
}

/// A process that holds a file open writes it after it was judged.
#[test]
fn what_is_written_later_does_not_count() {
    for method in supervised() {
        let session = Session::new(method);
        std::fs::write(session.work(".npmrc"), "mine").unwrap();
        let repositories = Repositories::record(&session.confined.policy).unwrap();
        let script =
            "exec 3>>.npmrc; : > open; until [ -e go ]; do sleep 0.02; done; echo evil >&3; : > over";
        let launch =
            session.confined.watched(session.place.launch(script), &CommandWatch::default(), &session.writes);
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).env_clear().envs(launch.env).current_dir(&launch.folder);
        let mut child = command.spawn().unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let wait = |name: &str| {
            while !session.work(name).exists() {
                assert!(std::time::Instant::now() < until, "{method:?}: no {name}");
                std::thread::park_timeout(std::time::Duration::from_millis(5));
            }
        };
        wait("open");
        assert!(session.judge(&repositories).violations.is_empty(), "{method:?}");
        std::fs::write(session.work("go"), "").unwrap();
        wait("over");
        child.wait().unwrap();
        assert_eq!(std::fs::read_to_string(session.work(".npmrc")).unwrap(), "mine", "{method:?}");
    }
}

#[test]
fn packages_bring_such_names_and_folders_go_whole() {
    for method in supervised() {
        let session = Session::new(method);
        std::fs::create_dir_all(session.work("old/.vscode")).unwrap();
        std::fs::write(session.work("old/.vscode/tasks.json"), "mine").unwrap();
        std::fs::write(session.work("old/.npmrc"), "mine").unwrap();
        let (out, judged) = session.run(
            "set -e; mkdir -p node_modules/.p-x/.vscode; echo x > node_modules/.p-x/.vscode/tasks.json; \
             mv node_modules/.p-x node_modules/p; mkdir -p target/package/.cargo; echo x > target/package/.cargo/config.toml; \
             mv old new; mkdir twice; mv new twice/new",
        );
        assert!(out.status.success() && judged.violations.is_empty(), "{method:?}: {out:?} {judged:?}");
        for name in
            ["node_modules/p/.vscode/tasks.json", "target/package/.cargo/config.toml", "twice/new/.npmrc"]
        {
            assert!(session.work(name).exists(), "{method:?}: {name}");
        }
        let (out, judged) = session.run("rm -r twice");
        assert!(out.status.success() && judged.violations.is_empty(), "{method:?}: {out:?} {judged:?}");
        assert!(!session.work("twice").exists(), "{method:?}");
    }
}

#[path = "held_tests.rs"]
mod held;
#[path = "later_tests.rs"]
mod later;
