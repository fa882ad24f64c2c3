//! One terminal elsewhere, for the agents of one folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tiller_config::schema::TerminalKind;
use tiller_protocol::{TerminalLimits, TerminalPlace};
use tiller_tool::Workspace;
use tiller_tool::shell::{Elsewhere, Launch, ProcessThere, Shell, ShellError, Start};

use crate::files::Files;
use crate::kinds::{Failure, Kind, Setting};
use crate::link::{BOOT, CONNECT, Frame, Link};
use crate::shell::RemoteShell;
use crate::{failed, process, quote};

const LOOP: &str = include_str!("there/loop.sh");
const WATCH: &str = include_str!("there/watch.sh");

/// How to get there, and which folder there is which here.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) kind: Arc<dyn Kind>,
    /// Seconds for which a shell there waits for its connection to come back.
    pub(crate) keep: u32,
    /// The agents' folder here.
    pub(crate) root: PathBuf,
}

/// What a shell there begins with.
#[derive(Clone, Debug)]
pub(crate) struct ShellStart {
    /// Random; names the shell there, over connections.
    pub(crate) key: String,
    pub(crate) folder: String,
    pub(crate) exports: Vec<u8>,
}

/// A new name for a shell there.
pub(crate) fn key() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

impl Way {
    /// A path here in the words of the other side.
    pub(crate) fn there(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(below) if below.as_os_str().is_empty() => self.kind.folder().to_owned(),
            Ok(below) => format!("{}/{}", self.kind.folder(), below.display()),
            Err(_) => path.display().to_string(),
        }
    }

    /// A path there in the words of this side. `folder`: what the agents' folder is really called there.
    pub(crate) fn here(&self, path: &str, folder: &str) -> PathBuf {
        match Path::new(path).strip_prefix(folder) {
            Ok(below) => self.root.join(below),
            Err(_) => PathBuf::from(path),
        }
    }

    pub(crate) fn start(&self, start: &Start) -> ShellStart {
        ShellStart { key: key(), folder: self.there(&start.folder), exports: start.exports.clone() }
    }

    /// A connection, before its first request.
    pub(crate) async fn link(&self) -> Result<(Link, bool), Failure> {
        let gone = self.kind.prepare().await?;
        let launch = self.kind.connect(BOOT, false);
        let link = Link::start(&launch).map_err(|e| {
            Failure::Refused(format!("{} could not be started: {e}", launch.program.display()))
        })?;
        Ok((link, gone))
    }

    /// The answer to the first request of a connection.
    pub(crate) async fn answer(&self, link: &mut Link) -> Result<Frame, Failure> {
        match tokio::time::timeout(CONNECT, link.next()).await {
            Ok(Some(Frame::No(why))) => Err(Failure::Refused(why)),
            Ok(Some(frame)) => Ok(frame),
            Ok(None) => Err(self.kind.explain(&link.errors().await)),
            Err(_) => Err(Failure::Broken(format!("no answer within {} s", CONNECT.as_secs()))),
        }
    }

    /// Opens a shell, or finds the shell that was opened with the same key (true).
    pub(crate) async fn open(&self, start: &ShellStart) -> Result<(Link, bool), Failure> {
        let (mut link, _) = self.link().await?;
        let bodies = [start.folder.as_bytes(), &start.exports, LOOP.as_bytes(), WATCH.as_bytes()];
        let lengths = bodies.map(|b| b.len().to_string()).join(" ");
        link.ask(&format!("open {} {} {lengths}", start.key, self.keep), &bodies).await;
        match self.answer(&mut link).await? {
            Frame::Ready { again } => Ok((link, again)),
            _ => Err(Failure::Broken("the other side answers with what was not asked".into())),
        }
    }

    pub(crate) fn failed(&self, failure: &Failure) -> ShellError {
        failed(&self.title, failure.words())
    }
}

/// What a terminal of this kind is for people.
pub(crate) fn terminal_place(name: &str, kind: TerminalKind) -> TerminalPlace {
    let (kind, limits) = match kind {
        TerminalKind::Local => ("local", TerminalLimits::Account),
        TerminalKind::Docker => ("docker", TerminalLimits::Container),
        TerminalKind::Podman => ("podman", TerminalLimits::Container),
        TerminalKind::Ssh => ("ssh", TerminalLimits::Account),
        TerminalKind::Kubernetes => ("kubernetes", TerminalLimits::Account),
    };
    TerminalPlace { name: name.to_owned(), kind: kind.to_owned(), limits }
}

/// A terminal elsewhere.
#[derive(Debug)]
pub(crate) struct Place {
    place: TerminalPlace,
    way: Arc<Way>,
    files: Files,
}

impl Place {
    pub(crate) fn new(setting: &Setting<'_>, kind: Arc<dyn Kind>, keep: u32, state: &Path) -> Self {
        let place = terminal_place(setting.name, setting.terminal.kind);
        let way = Arc::new(Way {
            name: setting.name.to_owned(),
            title: place.title(),
            kind,
            keep,
            root: setting.root.to_owned(),
        });
        let files = Files::new(Arc::clone(&way), setting.terminal, state);
        Self { place, way, files }
    }
}

#[async_trait]
impl Elsewhere for Place {
    fn name(&self) -> &str {
        &self.way.name
    }

    fn place(&self) -> &TerminalPlace {
        &self.place
    }

    fn describe(&self) -> String {
        let (title, folder) = (&self.way.title, self.way.kind.folder());
        let files = self.files.describe();
        format!("Your commands run on the terminal {title}, where your folder is {folder}. {files}")
    }

    async fn open(&self, start: Start) -> Result<Box<dyn Shell>, ShellError> {
        let shell = RemoteShell::open(Arc::clone(&self.way), self.way.start(&start)).await?;
        Ok(Box::new(shell))
    }

    async fn start(&self, start: Start, command: &str) -> Result<ProcessThere, ShellError> {
        process::start(Arc::clone(&self.way), self.way.start(&start), command).await
    }

    async fn on_terminal(&self, start: Start, command: &str) -> Result<Launch, ShellError> {
        self.way.kind.prepare().await.map_err(|e| self.way.failed(&e))?;
        let there = self.way.start(&start);
        let folder = match there.folder.strip_prefix("~/") {
            Some(below) => format!("~/{}", quote(below)),
            None => quote(&there.folder),
        };
        let exports = String::from_utf8_lossy(&there.exports);
        // TERM is that of the pseudo-terminal.
        let inner = format!(
            "cd {folder} || cd; t=$TERM; eval {} >/dev/null 2>&1; export TERM=\"$t\"; unset t; eval {}",
            quote(&exports),
            quote(command)
        );
        // The exports are those of the same shell.
        let script = format!("s=$(command -v bash || command -v sh); exec \"$s\" -c {}", quote(&inner));
        let mut launch = self.way.kind.connect(&script, true);
        launch.env.retain(|(name, _)| name != "TERM");
        launch.env.push(("TERM".into(), "xterm-256color".into()));
        Ok(launch)
    }

    async fn send(&self, workspace: &Workspace) -> Result<Option<String>, ShellError> {
        self.files.send(workspace).await
    }

    async fn fetch(&self, workspace: &Workspace) -> Result<Option<String>, ShellError> {
        self.files.fetch(workspace).await
    }

    async fn close(&self) {
        self.files.close().await;
        self.way.kind.close().await;
    }
}
