//! The folder with the sockets of running workbenches. Another user must not be able to replace it: it is opened
//! without following links and must be private to this user, and so must each socket and the answering process.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, fchmod, fstat, mkdirat, open, openat, statat, unlinkat,
};
use rustix::process::getuid;
use tiller_protocol::{Notice, NoticeKind};

/// The folder, verified and held open: all operations use this descriptor.
pub(crate) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

/// A project's part of the names in the folder.
pub(crate) fn key(project: &Path) -> String {
    let hash = blake3::hash(project.as_os_str().as_encoded_bytes()).to_hex();
    hash[..16].to_owned()
}

/// The process id in a name.
pub(super) fn process(name: &str) -> Option<u32> {
    name.strip_suffix(".sock")?.rsplit_once('-')?.1.parse().ok()
}

/// Whether that process exists, or another one with this id.
fn lives(name: &str) -> bool {
    let pid = process(name).and_then(|pid| rustix::process::Pid::from_raw(i32::try_from(pid).ok()?));
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

impl Folder {
    /// Opens or creates the folder.
    ///
    /// # Errors
    /// When it is a link, belongs to another user, or cannot be created.
    pub(crate) fn open(state: &Path) -> Result<Self, Notice> {
        use std::os::unix::fs::DirBuilderExt;
        let path = state.join("hosts");
        let wrong = |why: String, hint: &str| {
            let text = format!("Detached workbenches cannot be reached: {} {why}.", path.display());
            Notice::new(NoticeKind::User, text).hint(hint)
        };
        let failed =
            |e: io::Error| wrong(format!("cannot be used: {e}"), "Make sure that the folder belongs to you.");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(failed)?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = open(state, flags, Mode::empty()).map_err(|e| failed(e.into()))?;
        match mkdirat(&above, "hosts", Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(e) => return Err(failed(e.into())),
        }
        let remove = "Another user may have created it: inspect it, then remove it.";
        let fd = match openat(&above, "hosts", flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
                return Err(wrong("is a link or not a folder, so it is not trusted".into(), remove));
            }
            Err(e) => return Err(failed(e.into())),
        };
        let stat = fstat(&fd).map_err(|e| failed(e.into()))?;
        if stat.st_uid != getuid().as_raw() {
            return Err(wrong(
                format!("belongs to another user ({}), so it is not trusted", stat.st_uid),
                remove,
            ));
        }
        if stat.st_mode & 0o077 != 0 {
            fchmod(&fd, Mode::RWXU).map_err(|e| failed(e.into()))?;
        }
        Ok(Self { fd, path })
    }

    /// The path of a name in the folder. Through the descriptor: certain to be this folder, and short enough for a
    /// socket.
    fn way(&self, name: &str) -> PathBuf {
        if cfg!(target_os = "linux") {
            PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd())).join(name)
        } else {
            self.path.join(name)
        }
    }

    /// Names of the sockets in it, of this project or of all.
    pub(super) fn sockets(&self, project: Option<&Path>) -> Vec<String> {
        self.names(project, ".sock")
    }

    /// Names with this suffix, oldest process first.
    pub(super) fn names(&self, project: Option<&Path>, ending: &str) -> Vec<String> {
        let start = project.map(key).unwrap_or_default();
        let entries = std::fs::read_dir(self.way("")).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|e| e.file_name().into_string().ok())
            .filter(|n| n.starts_with(&start) && n.ends_with(ending))
            .collect();
        names.sort();
        names
    }

    /// Listens under this name.
    pub(super) fn listen(&self, name: &str) -> io::Result<UnixListener> {
        // A file of this name is from a dead process, since names contain the process id.
        let _ = unlinkat(&self.fd, name, AtFlags::empty());
        let listener = UnixListener::bind(self.way(name))?;
        // The mode of a new socket depends on the umask. Until this line the folder's 0700 protects it.
        chmodat(&self.fd, name, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
        Ok(listener)
    }

    /// Connects to a socket. A socket without a listener is removed.
    ///
    /// # Errors
    /// `PermissionDenied`: it belongs to another user.
    pub(super) fn connect(&self, name: &str) -> io::Result<UnixStream> {
        let stat = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let socket = FileType::from_raw_mode(stat.st_mode) == FileType::Socket;
        if !socket || stat.st_uid != getuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let stream = UnixStream::connect(self.way(name)).inspect_err(|e| {
            // A socket that is just being created refuses, too.
            if e.kind() == io::ErrorKind::ConnectionRefused && !lives(name) {
                self.remove(name);
            }
        })?;
        if ours(&stream) { Ok(stream) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }

    /// Removes a name.
    pub(super) fn remove(&self, name: &str) {
        let _ = unlinkat(&self.fd, name, AtFlags::empty());
    }

    /// Writes a small file that only the person can read.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)?;
        io::Write::write_all(&mut std::fs::File::from(fd), bytes)
    }

    /// Reads a small file.
    pub(super) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let fd = openat(&self.fd, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(std::fs::File::from(fd), 1 << 16), &mut bytes)?;
        Ok(bytes)
    }
}

/// Whether the process at the other end belongs to this user.
#[cfg(target_os = "linux")]
pub(super) fn ours(stream: &UnixStream) -> bool {
    rustix::net::sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid == getuid())
}

/// Elsewhere the folder alone protects the socket: it is private to this user.
#[cfg(not(target_os = "linux"))]
pub(super) fn ours(_stream: &UnixStream) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn x13_a_link_in_its_place_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let state = dir.path().join("state");
        std::fs::create_dir(&state).unwrap();
        symlink(&elsewhere, state.join("hosts")).unwrap();
        let wrong = Folder::open(&state).err().unwrap();
        assert!(wrong.message.contains("is a link"), "{wrong:?}");
        std::fs::remove_file(state.join("hosts")).unwrap();
        std::fs::write(state.join("hosts"), "x").unwrap();
        assert!(Folder::open(&state).is_err(), "a file");
    }

    #[test]
    fn x13_a_loose_folder_is_closed_and_what_is_no_socket_is_not_spoken_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts");
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("a.sock"), "x").unwrap();
        assert_eq!(folder.connect("a.sock").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        // A link to a socket of this user is refused as well.
        let real = folder.listen("b.sock").unwrap();
        // The umask of these tests permits others to read and enter (022 in most places).
        assert_eq!(std::fs::metadata(path.join("b.sock")).unwrap().permissions().mode() & 0o777, 0o600);
        symlink(path.join("b.sock"), path.join("c.sock")).unwrap();
        assert_eq!(folder.connect("c.sock").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(folder.connect("b.sock").is_ok());
        // Without a listener the socket is removed. A child that another test forks has the listener until it executes.
        drop(real);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(90);
        while folder.connect("b.sock").is_ok() {
            assert!(std::time::Instant::now() < end, "it still listens");
            std::thread::yield_now();
        }
        assert!(!path.join("b.sock").exists());
    }

    #[test]
    fn a_path_of_any_length_does() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("a-long-name-of-a-folder".repeat(8));
        let folder = Folder::open(&state).unwrap();
        if cfg!(target_os = "linux") {
            let _listener = folder.listen("a.sock").unwrap();
            assert_eq!(folder.sockets(None), ["a.sock"]);
            assert!(folder.connect("a.sock").is_ok());
        }
    }
}
