//! Landlock: which folders may be read and written, TCP, signals and abstract sockets.
//!
//! Rules only allow, and a rule for a folder holds for everything below it. So what is not seen gets none, and what is
//! hidden in an open folder is left out: the folders on the way to it get rules for each of their other entries. What is protected inside a writable folder cannot be
//! expressed (see [`crate::quarantine`]).

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, RestrictSelf, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags};

use crate::SandboxError;
use crate::policy::{Network, Policy, Profile};

/// The newest version whose rights were tested here. Older kernels hold what they know; the self-test says the rest.
const TESTED: ABI = ABI::V7;

/// Devices that programs need, and that keep nothing.
pub(crate) const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Version of the kernel's interface; 0: none.
pub(crate) fn version() -> u32 {
    // Without a flag this changes nothing; it only asks the kernel.
    match RestrictSelf::default().no_new_privs(false).apply() {
        Ok(status) => match status.landlock {
            LandlockStatus::Available { effective_abi, kernel_abi } => {
                kernel_abi.map_or(effective_abi as u32, i32::unsigned_abs)
            }
            _ => 0,
        },
        Err(_) => 0,
    }
}

/// Restricts this thread.
pub(crate) fn restrict(policy: &Policy, namespaces: bool) -> Result<(), SandboxError> {
    let failed = |e: landlock::RulesetError| SandboxError::new("Landlock", e);
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(TESTED)).map_err(failed)?;
    if policy.network != Network::All && !namespaces {
        rules = rules.handle_access(AccessNet::from_all(TESTED)).map_err(failed)?;
    }
    let rules = rules.scope(Scope::from_all(TESTED)).map_err(failed)?.create().map_err(failed)?;
    let sight = policy.sight();
    let mut tree = Tree { rules: Some(rules), hidden: policy.hidden_paths() };
    tree.hidden.extend(sight.closed);
    tree.hidden.push(PathBuf::from("/dev"));
    let read = AccessFs::from_read(TESTED);
    for path in &sight.open {
        tree.read(path)?;
    }
    let devices = read | AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::Truncate;
    tree.allow(Path::new("/dev"), AccessFs::ReadDir.into())?;
    for path in DEVICES {
        tree.allow(Path::new(path), devices)?;
    }
    // Devices of their own kind are never created; everything else is.
    let write = AccessFs::from_all(TESTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    if policy.profile == Profile::Workspace {
        tree.allow(Path::new("/dev/shm"), write)?;
    }
    if namespaces {
        // Private ones.
        tree.allow(Path::new("/dev/pts"), devices)?;
        tree.allow(Path::new("/dev/ptmx"), devices)?;
        tree.allow(Path::new("/tmp"), write)?;
    }
    for path in policy.writable_folders() {
        match namespaces {
            // Mounts hide what is below it.
            true => tree.allow(&path, write)?,
            false => tree.write(&path, write)?,
        }
    }
    let status = tree.rules.take().ok_or_else(|| SandboxError("Landlock: no rules".into()))?;
    let status = status.restrict_self().map_err(failed)?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(SandboxError("Landlock is not enforced by this kernel".into()));
    }
    Ok(())
}

/// Rules under construction.
struct Tree {
    /// `None` only while a rule is added.
    rules: Option<RulesetCreated>,
    hidden: Vec<PathBuf>,
}

impl Tree {
    /// Everything below `path` may be read, except what is hidden.
    fn read(&mut self, path: &Path) -> Result<(), SandboxError> {
        if self.hidden.iter().any(|hidden| hidden == path) {
            return Ok(());
        }
        if !self.hidden.iter().any(|hidden| hidden.starts_with(path)) {
            return self.allow(path, AccessFs::from_read(TESTED));
        }
        // The names below it can be listed, also those of hidden folders: the right is inherited.
        self.allow(path, AccessFs::ReadDir.into())?;
        let Ok(entries) = std::fs::read_dir(path) else { return Ok(()) };
        for entry in entries.flatten().filter(is_no_link) {
            self.read(&entry.path())?;
        }
        Ok(())
    }

    /// Everything below `path` may be changed, except what is hidden. The entries of a folder on the way to that may be
    /// changed, but no new one can be made in it: a right to make one would hold for what is hidden too.
    fn write(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> Result<(), SandboxError> {
        if self.hidden.iter().any(|hidden| hidden == path) {
            return Ok(());
        }
        if !self.hidden.iter().any(|hidden| hidden.starts_with(path)) {
            return self.allow(path, rights);
        }
        self.allow(path, AccessFs::ReadDir.into())?;
        let Ok(entries) = std::fs::read_dir(path) else { return Ok(()) };
        for entry in entries.flatten().filter(is_no_link) {
            self.write(&entry.path(), rights)?;
        }
        Ok(())
    }

    /// Adds a rule. What does not exist is skipped, as are links: they would allow what they lead to.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), SandboxError> {
        let Some((fd, folder)) = open(path) else { return Ok(()) };
        let access = if folder { access } else { access & AccessFs::from_file(TESTED) };
        if access.is_empty() {
            return Ok(());
        }
        let Some(rules) = self.rules.take() else { return Ok(()) };
        let rule = PathBeneath::new(fd, access);
        let rules = rules.add_rule(rule).map_err(|e| SandboxError::new(&path.display().to_string(), e))?;
        self.rules = Some(rules);
        Ok(())
    }
}

/// Links get no rule, as the folder says without another question.
fn is_no_link(entry: &std::fs::DirEntry) -> bool {
    !entry.file_type().is_ok_and(|kind| kind.is_symlink())
}

/// A descriptor of the path itself, and whether it is a folder.
fn open(path: &Path) -> Option<(OwnedFd, bool)> {
    let fd = rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
        .ok()?;
    match FileType::from_raw_mode(rustix::fs::fstat(&fd).ok()?.st_mode) {
        FileType::Symlink => None,
        kind => Some((fd, kind == FileType::Directory)),
    }
}
