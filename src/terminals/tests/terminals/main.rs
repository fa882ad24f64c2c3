//! Terminals elsewhere, with real shells at the other side: a `kubectl` that runs its command on this machine, a real `sshd`
//! on loopback, and real containers of Podman. What a machine lacks is skipped with the reason.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail loudly, and say what they skip"
)]

mod containers;
mod faults;
mod files;
mod machines;
mod shells;
mod special;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tiller_config::schema::{Terminal as Setting, TerminalKind};
use tiller_terminals::Session;
use tiller_testkit::{git, program};
use tiller_tool::Workspace;
use tiller_tool::shell::{Elsewhere, Process, Terminal, Terminals};
use tiller_tool::testing::Bench;

/// A bench whose commands run elsewhere.
struct There {
    bench: Bench,
    place: Arc<dyn Elsewhere>,
    /// The home folder of the other side, where that is this machine.
    home: PathBuf,
}

impl There {
    /// At the terminal `build` with these settings.
    fn with(bench: Bench, setting: Setting, vars: Vec<(String, String)>, keep: u32) -> Self {
        let home = bench.scratch.path().join("there");
        std::fs::create_dir_all(&home).unwrap();
        let settings = BTreeMap::from([("build".to_owned(), setting)]);
        let session = Session::new(settings, vars, bench.scratch.path().join("state")).keep(keep);
        let place = session.find("build", &bench.root).unwrap().unwrap();
        let mut there = Self { bench, place, home };
        there.change(|workspace| workspace);
        there
    }

    /// A pod that is this machine, with another home folder.
    fn pod(keep: u32) -> Self {
        Self::pod_with(keep, |_| ())
    }

    /// The same, with other settings.
    fn pod_with(keep: u32, change: impl FnOnce(&mut Setting)) -> Self {
        let bench = Bench::new();
        let scratch = bench.scratch.path().to_owned();
        let script = format!(
            "#!/bin/sh\necho \"$@\" >>'{0}/calls'\necho $$ >>'{0}/relays'\n[ ! -e '{0}/down' ] || {{ echo 'no route' >&2; exit 1; }}\n\
             while [ \"$1\" != -- ]; do shift; done\nshift\nHOME='{0}/there' exec env -u SECRET_TOKEN {RUN}={1} \"$@\"\n",
            scratch.display(),
            std::process::id(),
        );
        program(&scratch.join("bin/kubectl"), &script);
        let folder = Some(scratch.join("there/work").display().to_string());
        let mut setting = Setting {
            kind: TerminalKind::Kubernetes,
            pod: Some("builder-0".into()),
            folder,
            ..Setting::default()
        };
        change(&mut setting);
        let path = format!("{}:/usr/bin:/bin", scratch.join("bin").display());
        let vars = vec![("PATH".to_owned(), path), ("SECRET_TOKEN".to_owned(), "hunter2hunter2".to_owned())];
        Self::with(bench, setting, vars, keep)
    }

    /// Changes the workspace of the calls.
    fn change(&mut self, change: impl FnOnce(Workspace) -> Workspace) {
        let workspace = Workspace::new(&self.bench.root).unwrap().at(Some(Arc::clone(&self.place)));
        self.bench.cx.workspace = Arc::new(change(workspace));
    }

    async fn run(&self, command: &str) -> String {
        self.terminal(json!({"command": command})).await
    }

    async fn terminal(&self, args: Value) -> String {
        self.bench.say(&Terminal, args).await
    }

    async fn process(&self, args: Value) -> String {
        self.bench.say(&Process, args).await
    }

    /// Kills the programs that connect, as a network that goes away does.
    fn cut(&self) -> usize {
        let relays = std::fs::read_to_string(self.bench.scratch.path().join("relays")).unwrap_or_default();
        let kill = |pid: &&str| {
            Command::new("kill").args(["-9", "--", &format!("-{pid}")]).output().unwrap().status.success()
        };
        relays.lines().filter(kill).count()
    }

    /// How many programs have connected until now.
    fn relays(&self) -> usize {
        let relays = std::fs::read_to_string(self.bench.scratch.path().join("relays"));
        relays.unwrap_or_default().lines().count()
    }

    /// The shells that the other side keeps.
    fn kept(&self) -> Vec<PathBuf> {
        let all = std::fs::read_dir(self.home.join(".cache/tiller")).into_iter().flatten().flatten();
        all.map(|e| e.path()).filter(|p| p.join("in").exists()).collect()
    }

    async fn end(self) {
        assert_eq!(self.bench.cx.state.shells.shutdown().await, 0);
    }
}

/// Waits for a condition.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

/// A variable of everything at the other side; its value is the number of this process, so that a run of these tests beside
/// this one, or what is left of an earlier one, is not taken for its own.
const RUN: &str = "TILLER_TEST_RUN";

/// The processes of these tests whose command lines hold this.
fn processes(part: &str) -> Vec<String> {
    let own = format!("{RUN}={}", std::process::id());
    let read = |e: &std::fs::DirEntry, name: &str| std::fs::read(e.path().join(name)).unwrap_or_default();
    let of_this_run = |e: &std::fs::DirEntry| {
        String::from_utf8_lossy(&read(e, "cmdline")).replace('\0', " ").contains(part)
            && read(e, "environ").split(|b| *b == 0).any(|variable| variable == own.as_bytes())
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten().filter(of_this_run);
    all.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}

/// Whether one of them lives.
fn lives(part: &str) -> bool {
    !processes(part).is_empty()
}
