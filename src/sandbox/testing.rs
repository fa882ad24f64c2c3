//! This test program as the launcher, and a place to run confined commands in.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Output};
use std::sync::Arc;

use tiller_tool::shell::{CommandWatch, Launch, Sandbox};

use crate::confine::{Confined, Launcher, Method};
use crate::confinement::Confinement;
use crate::launcher::{MARK, launch};
use crate::policy::{Policy, Profile};

/// Starts [`launcher_entry`] of this program.
pub(crate) fn launcher() -> Launcher {
    let before = ["--exact", "testing::launcher_entry", "--nocapture", "--test-threads=1", "--"];
    Launcher { program: std::env::current_exe().unwrap(), before: before.map(str::to_owned).into() }
}

/// The launcher, when the arguments say so; otherwise it tests nothing.
#[test]
fn launcher_entry() {
    let mut args = std::env::args_os().skip_while(|arg| arg != MARK);
    if args.next().is_none() {
        return;
    }
    // The name of this test stands on the line.
    println!();
    let code = launch(args);
    std::process::exit(if code == ExitCode::SUCCESS { 0 } else { 126 });
}

/// The ways to confine that are present, or a note that the test is skipped.
pub(crate) fn methods() -> Vec<Method> {
    let found = Confinement::find();
    let all = Method::present(found);
    if !all.contains(&Method::Bubblewrap) {
        println!("skipped: no bubblewrap: {}", found.no_bubblewrap.clone().unwrap_or_default());
    }
    if !all.contains(&Method::Landlock) {
        println!("skipped: {}", found.words());
    }
    all
}

/// A workspace with a repository, a folder outside, a home with a secret.
pub(crate) struct Place {
    _tmp: tempfile::TempDir,
    pub(crate) top: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::below("/var/tmp")
    }

    pub(crate) fn below(folder: &str) -> Self {
        let tmp = tempfile::Builder::new().prefix("tiller-").tempdir_in(folder).unwrap();
        let top = tmp.path().canonicalize().unwrap();
        for folder in ["work/.git/hooks", "scratch", "outside", "home/.ssh"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        for (file, text) in
            [("work/.git/config", "[core]\n"), ("outside/old", "old"), ("home/.ssh/key", "secret")]
        {
            std::fs::write(top.join(file), text).unwrap();
        }
        Self { _tmp: tmp, top }
    }

    pub(crate) fn confined(&self, profile: Profile, method: Method) -> Confined {
        let policy = Policy::new(
            profile,
            &self.top.join("work"),
            &self.top.join("scratch"),
            Some(&self.top.join("home")),
        );
        Confined { policy, method, launcher: launcher() }
    }

    pub(crate) fn launch(&self, script: &str) -> Launch {
        Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
            folder: self.top.join("work"),
        }
    }

    /// Runs `script` in a shell in the workspace.
    pub(crate) fn run(&self, confined: &Confined, script: &str) -> Output {
        self.start(confined.wrap(self.launch(script)))
    }

    /// The same with a supervisor, which tells `watch`.
    pub(crate) fn run_watched(&self, confined: &Confined, script: &str, watch: &CommandWatch) -> Output {
        self.start(confined.watched(self.launch(script), watch, &Arc::default()))
    }

    pub(crate) fn start(&self, launch: Launch) -> Output {
        Command::new(&launch.program)
            .args(&launch.args)
            .env_clear()
            .envs(launch.env)
            .current_dir(&launch.folder)
            .output()
            .unwrap()
    }
}
