//! What this system can enforce.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// Time limit for a trial of bubblewrap. It takes some milliseconds, on a busy machine much longer.
const TRIAL: Duration = Duration::from_secs(15);

/// What this system can enforce.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Version of the Landlock interface; 0: not available.
    pub landlock: u32,
    /// System call filters.
    pub seccomp: bool,
    /// System calls can wait for a supervisor.
    pub notification: bool,
    /// `bwrap`, if it can create namespaces here.
    pub bubblewrap: Option<PathBuf>,
    /// Why bubblewrap is not used, in the words of `bwrap` where it said something.
    pub no_bubblewrap: Option<String>,
    /// Seatbelt, on macOS.
    pub seatbelt: bool,
}

impl Confinement {
    /// What was found by the first call, which takes about 20 ms: call it away from the screen's thread.
    pub fn find() -> &'static Self {
        static FOUND: OnceLock<Confinement> = OnceLock::new();
        FOUND.get_or_init(Self::look)
    }

    /// Whether commands can be confined at all.
    pub fn available(&self) -> bool {
        (self.landlock > 0 && self.seccomp) || self.seatbelt
    }

    /// One line for people.
    pub fn words(&self) -> String {
        if self.seatbelt {
            return "Seatbelt".into();
        }
        if !cfg!(target_os = "linux") {
            return "there is no sandbox on this system".into();
        }
        let landlock = match self.landlock {
            0 => "no Landlock".to_owned(),
            n => format!("Landlock {n}"),
        };
        let seccomp = if self.seccomp { "seccomp" } else { "no seccomp" };
        let bubblewrap = if self.bubblewrap.is_some() { "bubblewrap" } else { "no bubblewrap" };
        format!("{landlock}, {seccomp}, {bubblewrap}")
    }

    /// What is missing, a line each, for people.
    pub fn lacks(&self) -> Vec<String> {
        if self.seatbelt {
            return vec!["the profiles for Seatbelt were not tried on a Mac yet".into()];
        }
        if !cfg!(target_os = "linux") {
            return vec!["this system has no sandbox that Tiller knows".into()];
        }
        let landlock = (self.landlock == 0).then(|| "the kernel has no Landlock".to_owned());
        let seccomp = (!self.seccomp).then(|| "the kernel has no system call filters (seccomp)".to_owned());
        let reason = || self.no_bubblewrap.clone().unwrap_or_else(|| "bubblewrap does not work".into());
        let bubblewrap = self.bubblewrap.is_none().then(reason);
        landlock.into_iter().chain(seccomp).chain(bubblewrap).collect()
    }

    #[cfg(target_os = "linux")]
    fn look() -> Self {
        let actions = std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
        let can = |what: &str| actions.split_whitespace().any(|action| action == what);
        let (seccomp, notification) = (can("errno"), can("user_notif") && has_killable_waiting());
        let (bubblewrap, no_bubblewrap) = match try_bubblewrap() {
            Ok(path) => (Some(path), None),
            Err(why) => (None, Some(why)),
        };
        Self {
            landlock: crate::linux::landlock::version(),
            seccomp,
            notification,
            bubblewrap,
            no_bubblewrap,
            seatbelt: false,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn look() -> Self {
        let seatbelt = cfg!(target_os = "macos") && Path::new(crate::seatbelt::PROGRAM).is_file();
        Self { seatbelt, ..Self::default() }
    }
}

/// Whether a call that waits for a supervisor can be ended only by a fatal signal (Linux 5.19): supervisors need that.
#[cfg(target_os = "linux")]
fn has_killable_waiting() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(5), Some(19))
}

/// The usual folders of system programs: `bwrap` from a folder that a project can write would be no protection.
const FOLDERS: &[&str] = &["/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"];

/// For tests of builds for tests: `none`, or the path of a `bwrap`, in place of the one of the system.
const TEST_BUBBLEWRAP: &str = "TILLER_TEST_BUBBLEWRAP";

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "bubblewrap exists on Linux only"))]
fn try_bubblewrap() -> Result<PathBuf, String> {
    let given = std::env::var_os(TEST_BUBBLEWRAP).filter(|_| cfg!(debug_assertions)).map(PathBuf::from);
    let found = || FOLDERS.iter().map(|folder| Path::new(folder).join("bwrap")).find(|path| path.is_file());
    let program = match given {
        Some(path) => Some(path).filter(|path| path.is_file()),
        None => found(),
    };
    let program = program.ok_or("bubblewrap is not installed")?;
    let program_true = ["/bin/true", "/usr/bin/true", "/run/current-system/sw/bin/true"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .ok_or("`true` was not found")?;
    let mut child = Command::new(&program)
        .args(["--unshare-all", "--new-session", "--cap-drop", "ALL", "--ro-bind", "/", "/"])
        .args(["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"])
        .args(["--ro-bind", "/proc/sys", "/proc/sys", "--", program_true])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("bwrap could not be started: {e}"))?;
    match crate::wait::child(&mut child, TRIAL) {
        Ok(Some(status)) if status.success() => Ok(program),
        Ok(Some(_)) => {
            let mut said = String::new();
            if let Some(mut stderr) = child.stderr.take() {
                let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
            }
            Err(said.lines().next().unwrap_or("bwrap failed without a message").to_owned())
        }
        Ok(None) => {
            let _ = child.kill();
            let _ = child.wait();
            Err("bwrap did not end within 15 s".into())
        }
        Err(e) => Err(format!("bwrap: {e}")),
    }
}
