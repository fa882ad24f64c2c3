//! The self-test: each capability of the sandbox is tried in a confined child, against targets that this process
//! offers. A way to confine is reported by what it stopped, not by what the kernel says it has.

mod cache;
pub(crate) mod child;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tiller_tool::shell::{CommandWatch, Launch};

use crate::confine::{Confined, Launcher, Method};
use crate::confinement::Confinement;
use crate::launcher::Step;
use crate::network::Servers;
use crate::policy::{Network, Policy, Profile};

/// Time limit for all probes of one method.
const LIMIT: Duration = Duration::from_secs(15);

/// What a sandbox has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Capability {
    /// Writing outside the workspace.
    WriteOutside,
    /// Writing protected names in the workspace.
    Protected,
    Tcp,
    Udp,
    /// Names of hosts.
    Dns,
    /// Sockets in the file system: containers, keys, the desktop's bus.
    PathSockets,
    AbstractSockets,
    /// Signals to other processes, and reading or changing their memory.
    Processes,
    /// Environment and memory of other processes in `/proc`.
    ProcFiles,
    Namespaces,
    Keyring,
    /// Removing many files without a question.
    Deletions,
}

impl Capability {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 12] = [
        Self::WriteOutside,
        Self::Protected,
        Self::Tcp,
        Self::Udp,
        Self::Dns,
        Self::PathSockets,
        Self::AbstractSockets,
        Self::Processes,
        Self::ProcFiles,
        Self::Namespaces,
        Self::Keyring,
        Self::Deletions,
    ];

    /// Whether it is about connections.
    pub(crate) fn is_network(self) -> bool {
        matches!(self, Self::Tcp | Self::Udp | Self::Dns | Self::PathSockets | Self::AbstractSockets)
    }

    /// What is stopped, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::WriteOutside => "write outside the workspace",
            Self::Protected => "write protected names",
            Self::Tcp => "TCP connections",
            Self::Udp => "UDP packets",
            Self::Dns => "DNS queries",
            Self::PathSockets => "sockets in the file system",
            Self::AbstractSockets => "abstract sockets",
            Self::Processes => "signals to other processes",
            Self::ProcFiles => "memory and environment of others",
            Self::Namespaces => "new namespaces",
            Self::Keyring => "kernel keyring",
            Self::Deletions => "deletion of many files",
        }
    }

    /// The same in one or two words.
    pub fn short(self) -> &'static str {
        match self {
            Self::WriteOutside => "outside writes",
            Self::Protected => "protected names",
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Dns => "DNS",
            Self::PathSockets => "sockets",
            Self::AbstractSockets => "abstract sockets",
            Self::Processes => "signals",
            Self::ProcFiles => "/proc",
            Self::Namespaces => "namespaces",
            Self::Keyring => "keyring",
            Self::Deletions => "deletions",
        }
    }
}

/// Whether a capability is stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Held {
    Yes,
    /// The probe succeeded; what it could do.
    No(String),
    /// The probe could not be run.
    Unknown(String),
}

/// What the probes aim at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Targets {
    /// A folder outside of the workspace with a file `old`.
    pub outside: PathBuf,
    /// A listening socket in the file system.
    pub socket: PathBuf,
    /// The name of an abstract one.
    pub name: String,
    /// Ports on 127.0.0.1.
    pub tcp: u16,
    pub udp: u16,
    /// A process outside, and its start.
    pub process: u32,
    pub start: String,
    /// Only what is about connections.
    pub network_only: bool,
}

/// Each capability, with the method that confines terminal commands here.
pub fn self_test() -> Vec<(Capability, Held)> {
    match (Method::choose(Confinement::find(), Profile::Workspace), Launcher::own()) {
        (Some(method), Ok(launcher)) => test(method, &launcher),
        _ => all(&Held::No(Confinement::find().words())),
    }
}

/// As [`self_test`]; where nothing has changed since the last test of this boot, its results from `folder`.
pub fn self_test_cached(folder: &Path) -> Vec<(Capability, Held)> {
    let found = Confinement::find();
    match (Method::choose(found, Profile::Workspace), Launcher::own()) {
        (Some(method), Ok(launcher)) => {
            let key = cache::Key::now(method, found, &launcher.program);
            cache::remembered(folder, key.as_ref(), || test(method, &launcher))
        }
        _ => all(&Held::No(found.words())),
    }
}

/// Each capability, with this method. Takes some tens of milliseconds.
pub fn test(method: Method, launcher: &Launcher) -> Vec<(Capability, Held)> {
    attempt(method, launcher, Profile::Workspace)
        .unwrap_or_else(|e| all(&Held::Unknown(format!("the probes did not run: {e}"))))
}

/// The probes without any restriction.
#[cfg(test)]
pub(crate) fn test_off(method: Method, launcher: &Launcher) -> Vec<(Capability, Held)> {
    attempt(method, launcher, Profile::Off).unwrap_or_else(|e| all(&Held::Unknown(e.to_string())))
}

fn all(held: &Held) -> Vec<(Capability, Held)> {
    Capability::ALL.iter().map(|capability| (*capability, held.clone())).collect()
}

#[cfg(not(target_os = "linux"))]
fn attempt(_method: Method, _launcher: &Launcher, _profile: Profile) -> io::Result<Vec<(Capability, Held)>> {
    Err(io::Error::other("there is no sandbox on this system"))
}

#[cfg(target_os = "linux")]
fn attempt(method: Method, launcher: &Launcher, profile: Profile) -> io::Result<Vec<(Capability, Held)>> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    // Not in /tmp: bubblewrap hides it, so a probe would show nothing there.
    let place = [Path::new("/var/tmp"), &tempfile::env::temp_dir()]
        .into_iter()
        .find(|path| path.is_dir())
        .map(Path::to_owned);
    // The program may end, or be killed, before the probe does.
    let place = place.unwrap_or_else(tempfile::env::temp_dir);
    let tmp = tiller_tool::shell::own_folder::make_in("probe", &place)?;
    let top = tmp.path().canonicalize()?;
    for folder in ["outside", "scratch", "work/.git/hooks"] {
        std::fs::create_dir_all(top.join(folder))?;
    }
    std::fs::write(top.join("work/.git/config"), "[core]\n")?;
    std::fs::write(top.join("outside/old"), "old")?;
    let socket = top.join("outside/socket");
    let _path_listener = UnixListener::bind(&socket)?;
    let name = top.display().to_string();
    let _abstract_listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    let tcp = std::net::TcpListener::bind("127.0.0.1:0")?;
    let udp = std::net::UdpSocket::bind("127.0.0.1:0")?;
    udp.set_nonblocking(true)?;
    let process = std::process::id();
    let targets = Targets {
        outside: top.join("outside"),
        socket,
        name,
        tcp: tcp.local_addr()?.port(),
        udp: udp.local_addr()?.port(),
        process,
        start: child::start_of(process).unwrap_or_default(),
        network_only: false,
    };
    let policy = Policy::new(profile, &top.join("work"), &top.join("scratch"), None);
    let confined = Confined { policy, method, launcher: launcher.clone() };
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
    let launch = Launch {
        program: PathBuf::new(),
        args: Vec::new(),
        env: vec![("PATH".into(), path)],
        folder: top.join("work"),
    };
    let said = run(&confined.step(launch.clone(), Step::Probe(targets.clone())))?;
    let mut results = read(&said);
    let (deletions, network) = supervised(confined, launch, targets);
    results.insert(Capability::Deletions, deletions);
    results.extend(network.into_iter().filter(|(_, held)| *held != Held::Yes));
    // What was sent counts only if it arrived.
    let mut arrived = Vec::new();
    let mut buffer = [0; 64];
    while let Ok(n) = udp.recv(&mut buffer) {
        arrived.push(buffer[..n].to_vec());
    }
    for (capability, word) in [(Capability::Udp, &b"udp"[..]), (Capability::Dns, &b"dns"[..])] {
        if arrived.iter().any(|packet| packet == word) {
            results.insert(capability, Held::No("a packet arrived".into()));
        }
    }
    let missing = || Held::Unknown("the probe gave no result".into());
    Ok(Capability::ALL.iter().map(|c| (*c, results.remove(c).unwrap_or_else(missing))).collect())
}

/// Whether system calls of a command wait for the supervisor, which counts what is removed; and the probes of connections
/// where it decides about these, as it does for commands that may use loopback.
#[cfg(target_os = "linux")]
fn supervised(
    mut confined: Confined,
    launch: Launch,
    targets: Targets,
) -> (Held, BTreeMap<Capability, Held>) {
    let watch = CommandWatch::default();
    confined.policy.network = Network::Loopback;
    let step = Step::Probe(Targets { network_only: true, ..targets });
    match run(&confined.watched_among(
        launch,
        step,
        (&watch, &std::sync::Arc::default()),
        &Servers::default(),
        None,
    )) {
        Ok(said) if watch.is_supervised() => (Held::Yes, read(&said)),
        Ok(_) => {
            let why = "this kernel cannot report system calls to a supervisor: deletions are not counted";
            (Held::No(why.into()), BTreeMap::new())
        }
        Err(e) => (Held::Unknown(e.to_string()), BTreeMap::new()),
    }
}

/// The results that the child printed, one JSON line each; other lines are ignored.
fn read(said: &str) -> BTreeMap<Capability, Held> {
    said.lines().filter_map(|line| serde_json::from_str::<(Capability, Held)>(line.trim()).ok()).collect()
}

/// Standard output of the launch.
fn run(launch: &Launch) -> io::Result<String> {
    let mut child = Command::new(&launch.program)
        .args(&launch.args)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&launch.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // What it prints fits into the pipes.
    let Some(status) = crate::wait::child(&mut child, LIMIT)? else {
        child.kill()?;
        child.wait()?;
        return Err(io::Error::other("they took too long"));
    };
    let mut said = String::new();
    if let Some(out) = &mut child.stdout {
        out.read_to_string(&mut said)?;
    }
    if !status.success() {
        let mut error = String::new();
        if let Some(stderr) = &mut child.stderr {
            stderr.read_to_string(&mut error)?;
        }
        return Err(io::Error::other(error.lines().next().unwrap_or("they failed").to_owned()));
    }
    Ok(said)
}
