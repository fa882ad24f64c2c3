//! The folder that an agent works in: which of its files may be read and written, what is masked in them, and what confines the
//! commands that run there.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tiller_protocol::mask::Secret;

use super::command_run::CommandProfile;
use crate::shell::{Confiner, Confiners, Elsewhere, SeenTmp, SessionTmp};

/// Says why a path (absolute, links resolved) may not be written in any profile; `None` when it may.
pub type Protected = Arc<dyn Fn(&Path) -> Option<String> + Send + Sync>;

/// Finds the secrets of a text: what a model reads as masks. In order, without overlap.
pub type Secrets = Arc<dyn Fn(&str) -> Vec<Secret> + Send + Sync>;

/// Says which rule forbids to read a path (absolute), in words; `None` when none does.
pub type Unreadable = Arc<dyn Fn(&Path) -> Option<String> + Send + Sync>;

/// Says which rule forbids to reach an address, in words; `None` when none does.
pub type Unreachable = Arc<dyn Fn(&reqwest::Url) -> Option<String> + Send + Sync>;

/// The folder that an agent works in, and the files that the agent has read there.
pub struct Workspace {
    /// Absolute, links resolved.
    pub root: PathBuf,
    /// Open descriptor of `root`: every file of the workspace is opened beneath it.
    pub(crate) dir: OwnedFd,
    /// The names that no tool may write.
    pub(crate) protected: Protected,
    /// What of its files is masked before a model reads it.
    pub(crate) secrets: Secrets,
    /// Says which paths may not be read.
    unreadable: Unreadable,
    /// Says which addresses may not be reached.
    unreachable: Unreachable,
    /// Says which paths, links resolved, hold keys or personal data.
    secret: Unreadable,
    /// What confines its commands, by their profile.
    pub(crate) confiners: Confiners,
    /// Where commands run instead of on this machine.
    pub(crate) terminal: Option<Arc<dyn Elsewhere>>,
    /// The `/tmp` of the session; `None`: that of the machine.
    tmp: Option<SessionTmp>,
    /// What `Tool::access` declared, by call: the run may touch nothing else.
    pub(crate) declared: crate::files::path::declared::DeclaredPaths,
    /// The journal of change sets while they are published; `None`: there is no journal.
    pub(crate) publishes: Option<crate::files::Publishes>,
    /// Hash of each file (absolute path) as the agent last read or wrote it.
    pub seen: Mutex<HashMap<PathBuf, SeenFile>>,
    /// The legacy encodings in which the agent has read files, by path. An edit can leave too little text to find them again.
    pub(crate) encodings: Mutex<HashMap<PathBuf, &'static encoding_rs::Encoding>>,
}

/// A file as the agent knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenFile {
    /// BLAKE3 of the whole content.
    pub hash: [u8; 32],
    /// The content, when small enough to show a difference later (at most 256 KiB).
    pub text: Option<Arc<str>>,
}

impl Workspace {
    /// `root` must exist.
    ///
    /// # Errors
    /// When it cannot be resolved.
    pub fn new(root: &Path) -> std::io::Result<Self> {
        let root = root.canonicalize()?;
        let dir = std::fs::File::open(&root)?;
        if !dir.metadata()?.is_dir() {
            return Err(std::io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            root,
            dir: dir.into(),
            protected: Arc::new(|_| None),
            secrets: Arc::new(|_| Vec::new()),
            unreadable: Arc::new(|_| None),
            unreachable: Arc::new(|_| None),
            secret: Arc::new(|_| None),
            confiners: Confiners::default(),
            terminal: None,
            tmp: None,
            declared: crate::files::path::declared::DeclaredPaths::default(),
            publishes: None,
            seen: Mutex::new(HashMap::new()),
            encodings: Mutex::new(HashMap::new()),
        })
    }

    /// Why nothing may be done in it; `None`: its path still leads to the folder that was opened. A folder that was moved would be
    /// split: file tools and commands go by different names for it.
    pub(crate) fn moved(&self) -> Option<String> {
        let opened = rustix::fs::fstat(&self.dir).ok();
        let there = rustix::fs::stat(&self.root).ok();
        let id = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        if opened.map(id) == there.map(id) && opened.is_some() {
            return None;
        }
        Some(format!(
            "nothing was done: the workspace {} was moved, removed or replaced while the session works in it. Move it back, or \
             start Tiller in its new place; `tiller -c` continues a session there",
            self.root.display()
        ))
    }

    /// The same folder with the same protection, for another agent. That agent has read no file yet.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn beside(&self) -> std::io::Result<Self> {
        let beside = Self::new(&self.root)?.protect(Arc::clone(&self.protected)).like(self);
        let beside = beside.forbid(Arc::clone(&self.unreadable)).hide(Arc::clone(&self.secret));
        Ok(beside.bar(Arc::clone(&self.unreachable)))
    }

    /// Writes every change set down in `publishes` while it is published, so that the next start can take back what a
    /// kill cuts off.
    #[must_use]
    pub fn publishes(mut self, publishes: crate::files::Publishes) -> Self {
        self.publishes = Some(publishes);
        self
    }

    /// Sets the check that every write goes through, whatever the profile.
    #[must_use]
    pub fn protect(mut self, protected: Protected) -> Self {
        self.protected = protected;
        self
    }

    /// Sets what is masked in everything that a model reads. Writing restores it.
    #[must_use]
    pub fn mask(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Confines commands.
    #[must_use]
    pub fn confine(mut self, confiners: Confiners) -> Self {
        self.confiners = confiners;
        self
    }

    /// Sets the `/tmp` that commands see.
    #[must_use]
    pub fn tmp(mut self, tmp: Option<SessionTmp>) -> Self {
        self.tmp = tmp;
        self
    }

    /// What the commands of a call see below `/tmp`. `None`: what is there.
    pub(crate) fn seen_tmp(&self, cx: &crate::ToolCx) -> Option<SeenTmp> {
        let tmp = self.tmp.as_ref().filter(|_| self.terminal.is_none())?;
        let mut seen = tmp.seen(&self.root, &cx.child_env)?;
        // Tiller's own, which only file tools see.
        seen.shown
            .extend([&cx.folders.spill, &cx.folders.plans].into_iter().filter_map(|p| p.canonicalize().ok()));
        Some(seen)
    }

    /// The session's folder for temporary files, without links. `None`: it has none on this machine.
    pub(crate) fn tmp_folder(&self) -> Option<PathBuf> {
        self.tmp.as_ref().filter(|_| self.terminal.is_none())?.folder.path().map(Path::to_owned)
    }

    /// The path by which commands know a file that lies in the session's folder for temporary files.
    pub(crate) fn tmp_name(&self, path: &Path) -> Option<PathBuf> {
        self.tmp.as_ref().filter(|_| self.terminal.is_none())?.named(path)
    }

    /// Where a file lies that a call names by `path` (absolute, links resolved): the session's `/tmp` is a folder of its own.
    pub fn lies(&self, path: &Path, env: &[(String, String)]) -> PathBuf {
        // The workspace is seen as it is.
        let concerns = SeenTmp::concerns(path) && !path.starts_with(&self.root);
        let tmp = self.tmp.as_ref().filter(|_| self.terminal.is_none() && concerns);
        let seen = tmp.and_then(|tmp| tmp.seen(&self.root, env));
        seen.and_then(|seen| seen.lies(path)).unwrap_or_else(|| path.to_owned())
    }

    /// Where a file lies that a person names by `path` (absolute) in the session's own `/tmp`, links resolved. `None`: it is no
    /// path there, there is nothing, or a link leads out of the session's folder.
    pub fn in_session_tmp(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix("/tmp").ok()?;
        let plain = below.components().all(|c| matches!(c, std::path::Component::Normal(_)));
        let folder = self.tmp.as_ref().filter(|_| plain && self.terminal.is_none())?.folder.made()?;
        let lies = Some(self.lies(path, &[])).filter(|lies| lies != path)?;
        lies.canonicalize().ok().filter(|real| real.starts_with(folder))
    }

    /// A rule about a path, by its spelling here or by that of the session's `/tmp`.
    fn by_either(&self, rule: &Unreadable, path: &Path) -> Option<String> {
        rule(path).or_else(|| rule(&self.tmp_name(path)?))
    }

    /// Runs commands at this terminal; `None`: on this machine. Elsewhere this machine's kernel confines nothing.
    #[must_use]
    pub fn at(mut self, terminal: Option<Arc<dyn Elsewhere>>) -> Self {
        self.terminal = terminal;
        self
    }

    /// The terminal at which commands run, when that is not this machine.
    pub fn terminal(&self) -> Option<&Arc<dyn Elsewhere>> {
        self.terminal.as_ref()
    }

    /// Begins the judgement of a call: the paths that `Tool::access` declares next are those that it may touch, whatever
    /// later calls of `access` find in their place.
    pub fn judge(&self, call: &str) {
        self.declared.judge(call);
    }

    /// Forgets what a call was judged for; it is over.
    pub fn forget(&self, call: &str) {
        self.declared.forget(call);
    }

    /// Why a path (absolute) may not be written, in words; `None` when it may.
    pub fn protection(&self, path: &Path) -> Option<String> {
        (self.protected)(path)
    }

    /// Whether commands of this profile are confined on this system, more than those outside. The first call may take
    /// some 20 ms.
    pub fn confines(&self, profile: CommandProfile) -> bool {
        let outside = self.confiners.outside.as_ref().filter(|_| profile != CommandProfile::Outside);
        self.confiner(profile).is_some_and(|confiner| {
            outside.is_none_or(|outside| !Arc::ptr_eq(confiner, outside)) && confiner.confines()
        })
    }

    /// Whether programs of this profile are confined on this machine, wherever commands run.
    pub fn confines_here(&self, profile: CommandProfile) -> bool {
        self.local_confiner(profile).is_some_and(|confiner| confiner.confines())
    }

    /// What confines commands of this profile; `None`: they run as they are, or elsewhere.
    pub(crate) fn confiner(&self, profile: CommandProfile) -> Option<&Arc<dyn Confiner>> {
        if self.terminal.is_some() {
            return None;
        }
        self.local_confiner(profile)
    }

    /// The same for what runs on this machine, wherever commands run.
    pub(super) fn local_confiner(&self, profile: CommandProfile) -> Option<&Arc<dyn Confiner>> {
        match profile {
            CommandProfile::Person => None,
            CommandProfile::Outside => self.confiners.outside.as_ref(),
            CommandProfile::Workspace => self.confiners.workspace.as_ref(),
            CommandProfile::Read => self.confiners.read.as_ref(),
        }
    }

    /// Takes the masking, the journal of change sets, the sandbox and the terminal from another workspace.
    #[must_use]
    pub fn like(mut self, other: &Self) -> Self {
        self.publishes = other.publishes.clone();
        self.confiners = other.confiners.apart();
        self.terminal = other.terminal.clone();
        self.tmp = other.tmp.clone();
        self.mask(Arc::clone(&other.secrets))
    }

    /// Sets the rules that hold for every reader, also for those that look through whole folders.
    #[must_use]
    pub fn forbid(mut self, unreadable: Unreadable) -> Self {
        self.unreadable = unreadable;
        self
    }

    /// Sets the rules about addresses that hold for whatever a page opens.
    #[must_use]
    pub fn bar(mut self, unreachable: Unreachable) -> Self {
        self.unreachable = unreachable;
        self
    }

    /// The rules about addresses, for what opens some that no call names.
    pub(crate) fn unreachable(&self) -> Unreachable {
        Arc::clone(&self.unreachable)
    }

    /// Sets what only a call that names it may read, by paths without links.
    #[must_use]
    pub fn hide(mut self, secret: Unreadable) -> Self {
        self.secret = secret;
        self
    }

    /// As [`Self::unreadable`], to be used on another thread.
    pub fn forbidden(&self) -> Unreadable {
        let (unreadable, secret) = (Arc::clone(&self.unreadable), Arc::clone(&self.secret));
        let tmp = self.tmp.clone().filter(|_| self.terminal.is_none());
        Arc::new(move |path| {
            let named = tmp.as_ref().and_then(|tmp| tmp.named(path));
            let rule = unreadable(path).or_else(|| unreadable(&named?));
            rule.or_else(|| secret_by(&secret, path))
        })
    }

    /// The rule by which `path` (absolute) is not read unless a call names it, in words. Follows links.
    pub fn unreadable(&self, path: &Path) -> Option<String> {
        self.by_either(&self.unreadable, path).or_else(|| secret_by(&self.secret, path))
    }

    /// The path to open for a reader that no call was judged for, such as a mention: `path` (absolute) with its links
    /// resolved, which was judged as it is spelled and as it leads. To be opened by [`tiller_fs::beneath`].
    ///
    /// # Errors
    /// In words: the rule by which it is not read, or why it cannot be found.
    pub fn readable(&self, path: &Path) -> Result<PathBuf, String> {
        let denied = |path: &Path| match self.unreadable(path) {
            Some(rule) => Err(format!("denied by the rule {rule}")),
            None => Ok(()),
        };
        denied(path)?;
        // A file of the machine's own `/tmp` is another one than commands see by this name.
        let real = match self.lies(path, &[]) == path {
            true => path.canonicalize().map_err(|e| e.to_string())?,
            false => self
                .in_session_tmp(path)
                .ok_or("it is not in this session's own /tmp, or is a link that leads out of it")?,
        };
        denied(&real)?;
        Ok(real)
    }

    /// The rule by which a reader of a whole folder skips `path`, in words. `path` is absolute and has no links;
    /// `named`: the call names this folder, and was judged for it.
    pub(crate) fn skipped(&self, path: &Path, named: &Path) -> Option<String> {
        let secret = || (self.secret)(path).filter(|_| (self.secret)(named).is_none());
        self.by_either(&self.unreadable, path).or_else(secret)
    }
}

/// Whether a path is secret as it is spelled or as its links lead.
fn secret_by(secret: &Unreadable, path: &Path) -> Option<String> {
    secret(path).or_else(|| secret(&path.canonicalize().ok()?))
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("root", &self.root).finish_non_exhaustive()
    }
}
