//! The network of a session: a server that one of its commands starts on loopback answers the others, and reaches nothing
//! else.
//!
//! With bubblewrap, which by itself gives each command a network namespace of its own, all commands enter one namespace. A
//! process that does nothing holds it. A launch enters it first, by `nsenter`, which then starts bubblewrap.
//!
//! Without it the supervisors of all commands share a list of the servers that these have started.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiller_fs::links::FileId;
use tiller_tool::shell::Launch;

/// Servers that are remembered; the oldest ones are forgotten.
const SERVERS: usize = 1024;

/// The namespace, made when it is first needed, or the list of servers.
#[derive(Debug, Default)]
pub(crate) struct SharedNetwork {
    holder: Mutex<Option<Holder>>,
    pub(crate) servers: Servers,
}

/// The sockets of a session's commands that listen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Servers(Arc<Mutex<Listening>>);

impl Servers {
    /// The list. Nothing is added to it while the guard is held.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Listening> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sockets that listen, or have done so.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// Inodes of those on loopback.
    sockets: VecDeque<u64>,
    /// The files of those in the file system.
    files: VecDeque<FileId>,
}

impl Listening {
    pub(crate) fn add(&mut self, inode: u64) {
        remember(&mut self.sockets, inode);
    }

    pub(crate) fn contains(&self, inode: u64) -> bool {
        self.sockets.contains(&inode)
    }

    pub(crate) fn add_file(&mut self, file: FileId) {
        remember(&mut self.files, file);
    }

    pub(crate) fn has_file(&self, file: FileId) -> bool {
        self.files.contains(&file)
    }
}

fn remember<T: PartialEq>(all: &mut VecDeque<T>, one: T) {
    if all.contains(&one) {
        return;
    }
    if all.len() >= SERVERS {
        all.pop_front();
    }
    all.push_back(one);
}

/// The process that holds it. It ends when its standard input closes, so also when this process dies.
#[derive(Debug)]
struct Holder {
    child: Child,
    pid: u32,
}

impl SharedNetwork {
    /// Number of a process in it; `None`: it cannot be made here. Takes some 10 ms at the first call.
    pub(crate) fn pid(&self, bubblewrap: &Path) -> Option<u32> {
        let mut holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        let alive = holder.as_mut().is_some_and(|holder| matches!(holder.child.try_wait(), Ok(None)));
        if !alive {
            *holder = Holder::start(bubblewrap);
        }
        holder.as_ref().map(|holder| holder.pid)
    }
}

impl Holder {
    fn start(bubblewrap: &Path) -> Option<Self> {
        let cat = ["/bin/cat", "/usr/bin/cat", "/run/current-system/sw/bin/cat"].map(PathBuf::from);
        let cat = cat.into_iter().find(|path| path.exists())?;
        let child = Command::new(bubblewrap)
            .args(["--unshare-user", "--unshare-net", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--"])
            .arg(cat)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut holder = Self { child, pid: 0 };
        // What it repeats shows that its namespaces are ready.
        holder.child.stdin.as_mut()?.write_all(b".").ok()?;
        holder.child.stdout.as_mut()?.read_exact(&mut [0]).ok()?;
        let bwrap = holder.child.id();
        let children = std::fs::read_to_string(format!("/proc/{bwrap}/task/{bwrap}/children")).ok()?;
        holder.pid = children.split_ascii_whitespace().next()?.parse().ok()?;
        Some(holder)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The usual folders of system programs.
const NSENTER: &[&str] = &["/usr/bin/nsenter", "/bin/nsenter", "/run/current-system/sw/bin/nsenter"];

/// The launch of a bubblewrap that shares its network, in the network of the process `holder`; `None`: the system has no
/// program for that.
pub(crate) fn enter(holder: u32, mut launch: Launch) -> Option<Launch> {
    let nsenter = NSENTER.iter().map(PathBuf::from).find(|path| path.is_file())?;
    let at = launch.args.iter().position(|arg| arg == "--unshare-all")? + 1;
    launch.args.insert(at, "--share-net".into());
    // The namespace of users gives the right to enter that of the network; nothing else is shared.
    let mut args: Vec<String> =
        ["--user", "--net", "--preserve-credentials", "--target"].map(str::to_owned).into();
    args.extend([holder.to_string(), "--".into(), launch.program.display().to_string()]);
    args.append(&mut launch.args);
    Some(Launch { program: nsenter, args, ..launch })
}
