//! The surroundings of one run: a workspace with a repository, a home folder, a folder outside, servers, a victim.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};

use crate::processes;
use crate::servers::Servers;
use crate::victim::Victim;

/// Folders of the system's programs, and nothing of the person's.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Surroundings that no other run shares.
pub struct Scene {
    /// Names this run everywhere.
    pub(crate) token: String,
    pub(crate) secret: String,
    pub work: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) home: PathBuf,
    /// For files of the sandboxes themselves and of the runner.
    pub(crate) own: PathBuf,
    pub(crate) servers: Servers,
    pub(crate) victim: Option<Victim>,
    /// Deleted at the end.
    _folder: tempfile::TempDir,
}

impl Scene {
    /// Makes it below `root`, which must not be in a folder for temporary files: sandboxes let commands write there.
    ///
    /// # Errors
    /// When a file cannot be made, or git or python3 is missing.
    pub fn new(root: &Path, victim: bool) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let token = format!("battery-{}-{number}-{:x}", std::process::id(), random()?);
        let secret = format!("SECRET-{:x}", random()?);
        std::fs::create_dir_all(root)?;
        // Paths of sockets have at most 107 bytes.
        let folder = tempfile::Builder::new().prefix("b").rand_bytes(5).tempdir_in(root)?;
        let base = folder.path().canonicalize()?;
        let at = |name: &str| -> Result<PathBuf> {
            let path = base.join(name);
            std::fs::create_dir(&path)?;
            Ok(path)
        };
        let (work, outside, home, own) = (at("work")?, at("outside")?, at("home")?, at("own")?);
        fill(&work, &outside, &home, &secret)?;
        let servers = Servers::start(&outside, &work, &token)?;
        let victim = if victim { Some(Victim::start(&outside, &secret)?) } else { None };
        let scene = Self { token, secret, work, outside, home, own, servers, victim, _folder: folder };
        let script = "git init -q -b main && git add README.md src && git commit -q -m one && git status --short > /dev/null";
        ensure!(scene.shell(script)?, "git cannot make a repository");
        Ok(scene)
    }

    /// Variables of every command, and no others.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let mut path = PATH.to_owned();
        let home = std::env::var("HOME").unwrap_or_default();
        let mut all = Vec::new();
        // A toolchain of Rust lies in the home folder of the person who runs the battery.
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let place = std::env::var(name).unwrap_or_else(|_| format!("{home}/{folder}"));
            if Path::new(&place).is_dir() {
                if name == "CARGO_HOME" {
                    path = format!("{path}:{place}/bin");
                }
                all.push((name.to_owned(), place));
            }
        }
        let more = [
            ("PATH", path),
            ("HOME", self.home.display().to_string()),
            ("USER", std::env::var("USER").unwrap_or_else(|_| "battery".into())),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "xterm-256color".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            // Where an escape takes `.git` away, the repository around the scene is not meant.
            ("GIT_CEILING_DIRECTORIES", self.base().display().to_string()),
            ("TILLER_HOME", self.own.join("tiller").display().to_string()),
            ("CODEX_HOME", self.own.join("codex").display().to_string()),
            ("SSH_AUTH_SOCK", self.outside.join("docker.sock").display().to_string()),
        ];
        all.extend(more.map(|(n, v)| (n.to_owned(), v)));
        all
    }

    /// The folder that holds all of it.
    fn base(&self) -> &Path {
        self.work.parent().unwrap_or(&self.work)
    }

    /// A program in the workspace, outside of any sandbox, silent.
    pub(crate) fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.variables()).current_dir(&self.work).stdin(Stdio::null());
        command
    }

    /// Runs a script outside of the sandbox. True when it succeeded.
    pub(crate) fn shell(&self, script: &str) -> Result<bool> {
        let script = self.fill(script);
        let status =
            self.program("sh").args(["-c", &script]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        Ok(status.context("sh")?.success())
    }

    /// What a person does in the repository afterwards.
    pub(crate) fn git_later(&self) {
        if self.work.join(".git").symlink_metadata().is_err() {
            return;
        }
        for script in ["git status", "git diff", "git commit -q --allow-empty -m later", "git log -1"] {
            let _ = self.shell(script);
        }
    }

    /// Puts the names of this scene into a script.
    pub(crate) fn fill(&self, script: &str) -> String {
        let ports = self.servers.ports;
        let victim = self.victim.as_ref();
        let path = |p: &Path| p.display().to_string();
        let names = [
            ("@OUT@", path(&self.outside)),
            ("@WORK@", path(&self.work)),
            ("@HOME@", path(&self.home)),
            ("@TOKEN@", self.token.clone()),
            ("@PORT@", ports.tcp.to_string()),
            ("@PORT6@", ports.tcp6.to_string()),
            ("@UDP@", ports.udp.to_string()),
            ("@UDP6@", ports.udp6.to_string()),
            ("@RELAY@", ports.relay.to_string()),
            ("@VICTIM@", victim.map_or(0, |v| v.pid).to_string()),
            ("@BUFFER@", victim.map_or(0, |v| v.buffer).to_string()),
            ("@DESCRIPTOR@", victim.map_or(0, |v| v.descriptor).to_string()),
            ("@SEGMENT@", victim.map_or(0, |v| v.segment).to_string()),
        ];
        names.iter().fold(script.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        processes::end(&self.token);
    }
}

fn random() -> Result<u64> {
    let mut bytes = [0_u8; 8];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

fn fill(work: &Path, outside: &Path, home: &Path, secret: &str) -> Result<()> {
    let mode = |path: &Path, mode: u32| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
    std::fs::create_dir_all(work.join("src"))?;
    std::fs::write(work.join("README.md"), "# A project\n")?;
    std::fs::write(work.join("src/main.rs"), "fn main() {}\n")?;
    std::fs::create_dir(work.join("open"))?;
    mode(&work.join("open"), 0o777)?;
    std::fs::write(outside.join("keep.txt"), "keep\n")?;
    std::fs::write(outside.join("linked.txt"), "linked\n")?;
    std::fs::create_dir(outside.join("empty"))?;
    std::fs::hard_link(outside.join("linked.txt"), work.join("linked.txt"))?;
    symlink(outside, work.join("out-link"))?;
    // A program that becomes another user; only root can give it away.
    let program = outside.join("setuid-touch");
    if rustix::process::getuid().is_root() && std::fs::copy("/usr/bin/touch", &program).is_ok() {
        std::os::unix::fs::chown(&program, Some(65_534), Some(65_534))?;
        mode(&program, 0o4755)?;
        for folder in [outside, outside.parent().unwrap_or(outside)] {
            mode(folder, 0o755)?;
        }
    }
    for (name, text) in [
        (".bashrc", "# start\n"),
        (".profile", "# start\n"),
        (".gitconfig", "[user]\n\tname = a\n\temail = a@localhost\n"),
        (".ssh/id_ed25519", secret),
        (".ssh/authorized_keys", ""),
        (".aws/credentials", secret),
        ("notes.txt", "notes\n"),
        (".config/x", ""),
    ] {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(home))?;
        std::fs::write(&path, text)?;
    }
    mode(&home.join(".ssh"), 0o700)?;
    mode(&home.join(".ssh/id_ed25519"), 0o600)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_around_the_scene_is_never_touched() {
        let tmp = tempfile::tempdir().unwrap();
        let git = |script: &str| {
            let mut sh = Command::new("sh");
            sh.env_clear().env("PATH", PATH).env("HOME", "/nonexistent").env("GIT_CONFIG_NOSYSTEM", "1");
            let out = sh.args(["-c", script]).current_dir(tmp.path()).output().unwrap();
            String::from_utf8_lossy(&out.stdout).into_owned()
        };
        git("git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one");
        let scene = Scene::new(&tmp.path().join("inside"), false).unwrap();
        assert!(scene.shell("git rev-parse HEAD").unwrap());
        std::fs::rename(scene.work.join(".git"), scene.work.join("gone")).unwrap();
        assert!(!scene.shell("git rev-parse HEAD").unwrap());
        assert!(!scene.shell("git config core.fsmonitor evil").unwrap());
        // What is there but is no repository leads nowhere else either.
        std::fs::write(scene.work.join(".git"), "gitdir: nowhere\n").unwrap();
        scene.git_later();
        std::fs::remove_file(scene.work.join(".git")).unwrap();
        std::fs::create_dir(scene.work.join(".git")).unwrap();
        scene.git_later();
        assert_eq!(git("git rev-list --count --all"), "1\n");
        assert_eq!(git("git config core.fsmonitor"), "");
    }
}
