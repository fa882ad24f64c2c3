//! The probes themselves. They run confined; each of them tries what must not work.

use super::Targets;
use crate::policy::Policy;

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_policy: &Policy, _targets: &Targets) {}

/// Field 22 of `/proc/PID/stat`: it tells whether two numbers mean the same process.
pub(crate) fn start_of(process: u32) -> Option<String> {
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    let after = stat.iter().rposition(|byte| *byte == b')')?;
    let text = String::from_utf8_lossy(&stat[after..]).into_owned();
    text.split_whitespace().nth(20).map(str::to_owned)
}

#[cfg(target_os = "linux")]
pub(crate) use linux::run;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{File, OpenOptions};
    use std::io::Write;
    use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use rustix::process::Pid;

    use super::{Policy, Targets, start_of};
    use crate::probe::{Capability, Held};

    /// Runs all, and prints each result as a line.
    pub(crate) fn run(policy: &Policy, targets: &Targets) {
        for capability in Capability::ALL.into_iter().filter(|c| !targets.network_only || c.is_network()) {
            let held = probe(capability, policy, targets);
            let line = serde_json::to_string(&(capability, held)).unwrap_or_default();
            // Nothing else can be done when this fails: the result is then missing, which is reported.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }

    fn probe(capability: Capability, policy: &Policy, targets: &Targets) -> Held {
        match capability {
            Capability::WriteOutside => write_outside(&targets.outside),
            Capability::Protected => protected(&policy.workspace),
            Capability::Tcp => {
                reached(TcpStream::connect_timeout(&local(targets.tcp), Duration::from_secs(1)).is_ok())
            }
            Capability::Udp => send(b"udp", targets.udp),
            Capability::Dns => dns(targets.udp),
            Capability::PathSockets => reached(UnixStream::connect(&targets.socket).is_ok()),
            Capability::AbstractSockets => {
                let address = std::os::unix::net::SocketAddr::from_abstract_name(&targets.name);
                reached(address.and_then(|address| UnixStream::connect_addr(&address)).is_ok())
            }
            Capability::Processes => processes(targets),
            Capability::ProcFiles => proc_files(targets),
            // CLONE_NEWUSER, which needs no privilege.
            Capability::Namespaces => system_call(libc::SYS_unshare, &[0x1000_0000]),
            // KEYCTL_GET_KEYRING_ID of the session's keyring.
            Capability::Keyring => system_call(libc::SYS_keyctl, &[0, -3, 0]),
            // The process outside sees it.
            Capability::Deletions => Held::Unknown(String::new()),
        }
    }

    fn reached(yes: bool) -> Held {
        if yes { Held::No("a connection was made".into()) } else { Held::Yes }
    }

    fn local(port: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    /// The caller sees whether it arrived.
    fn send(word: &[u8], port: u16) -> Held {
        if let Ok(socket) = UdpSocket::bind(local(0)) {
            let _ = socket.send_to(word, local(port));
        }
        Held::Yes
    }

    fn dns(port: u16) -> Held {
        const RESOLVERS: &[&str] = &["/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket"];
        if RESOLVERS.iter().any(|path| UnixStream::connect(path).is_ok()) {
            return Held::No("the system's resolver answers".into());
        }
        send(b"dns", port)
    }

    fn write_outside(folder: &Path) -> Held {
        let old = folder.join("old");
        let truncated = OpenOptions::new().read(true).custom_flags(libc::O_TRUNC).open(&old).is_ok();
        let tries = [
            ("a file was created", File::create(folder.join("new")).is_ok()),
            ("a file was opened for writing", OpenOptions::new().append(true).open(&old).is_ok()),
            ("a file was truncated", truncated && std::fs::metadata(&old).is_ok_and(|m| m.len() == 0)),
            ("a folder was created", std::fs::create_dir(folder.join("folder")).is_ok()),
            ("a file was renamed", std::fs::rename(&old, folder.join("moved")).is_ok()),
            ("a file was removed", std::fs::remove_file(&old).is_ok()),
            (
                "the mode of a file was changed",
                std::fs::set_permissions(&old, PermissionsExt::from_mode(0o666)).is_ok(),
            ),
        ];
        first(&tries)
    }

    fn first(tries: &[(&str, bool)]) -> Held {
        tries.iter().find(|(_, done)| *done).map_or(Held::Yes, |(what, _)| Held::No((*what).to_owned()))
    }

    fn protected(workspace: &Path) -> Held {
        let git = workspace.join(".git");
        let written = File::create(git.join("hooks/pre-commit")).is_ok()
            || OpenOptions::new().append(true).open(git.join("config")).is_ok();
        let moved = std::fs::rename(&git, workspace.join("moved")).is_ok();
        if written || moved {
            return Held::No("a git hook was written; it is restored afterwards".into());
        }
        Held::Yes
    }

    fn visible(targets: &Targets) -> bool {
        start_of(targets.process).is_some_and(|start| start == targets.start)
    }

    fn processes(targets: &Targets) -> Held {
        let pid = i32::try_from(targets.process).ok().and_then(Pid::from_raw);
        let signal = pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok());
        if visible(targets) && signal { Held::No("a signal was permitted".into()) } else { Held::Yes }
    }

    fn proc_files(targets: &Targets) -> Held {
        let file = |name: &str| format!("/proc/{}/{name}", targets.process);
        let tries = [
            ("the environment of another process was read", std::fs::read(file("environ")).is_ok()),
            ("the memory of another process was opened", File::open(file("mem")).is_ok()),
            ("the root of another process was entered", std::fs::read_dir(file("root")).is_ok()),
        ];
        if visible(targets) { first(&tries) } else { Held::Yes }
    }

    /// Tries a call that the standard library does not offer, by an interpreter.
    fn system_call(number: i64, arguments: &[i64]) -> Held {
        // The number stands alone: perl takes a list in its place for the length of the list.
        const PERL: &str = "my ($number, @rest) = map { $_ + 0 } @ARGV; \
                            print syscall($number, @rest) == -1 ? 'refused' : 'done'";
        const PYTHON: &str = "import sys, ctypes; print('refused' if ctypes.CDLL(None).syscall(*[ctypes.c_long(int(a)) \
                              for a in sys.argv[1:]]) == -1 else 'done')";
        for (program, option, script) in [("perl", "-e", PERL), ("python3", "-c", PYTHON)] {
            let mut command = Command::new(program);
            command.args([option, script]).arg(number.to_string());
            command
                .args(arguments.iter().map(ToString::to_string))
                .stdin(Stdio::null())
                .stderr(Stdio::null());
            match command.output().map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()) {
                Ok(said) if said == "refused" => return Held::Yes,
                Ok(said) if said == "done" => return Held::No("the call was permitted".into()),
                _ => {}
            }
        }
        Held::Unknown("this probe needs perl or python3".into())
    }
}
