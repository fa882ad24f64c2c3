//! What becomes of a call that waits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, openat};
use rustix::io::Errno;
use tiller_seccomp::{Answer, Call, Listener};
use tiller_tool::shell::{BlockedAction, BlockedKind, CommandWatch};

use crate::confine::Method;
use crate::git::Touched;
use crate::linux::forks;
use crate::network::Servers;
use crate::policy::{Policy, Profile};
use crate::supervisor::caller::Caller;
use crate::supervisor::calls::{self, FileCall, OpenFlags, PathArgument};
use crate::supervisor::changes::Closings;
use crate::supervisor::links::LinksOut;
use crate::supervisor::losses::Losses;
use crate::supervisor::network::{self, Sockets};
use crate::supervisor::refusal;
use crate::supervisor::scope::Scope;
use crate::supervisor::walk::{Entry, Walk, path_of};
use crate::writes::ProtectedWrites;

/// Decides about the calls of one command and its descendants.
pub(crate) struct Judge {
    pub(super) scope: Scope,
    pub(super) watch: CommandWatch,
    pub(super) losses: Mutex<Losses>,
    pub(super) links: LinksOut,
    pub(super) closings: Mutex<Closings>,
    /// `None`: the command is compared after it.
    pub(super) touched: Option<Arc<Touched>>,
    /// Protected names that it has written.
    pub(super) writes: Arc<ProtectedWrites>,
    /// `None`: the command may listen and connect as it likes, or has no sockets at all.
    sockets: Option<Sockets>,
}

/// What is to be told of a call, if it still waits.
pub(super) struct Note {
    pub(super) kind: BlockedKind,
    pub(super) target: String,
    pub(super) minor: bool,
}

impl Note {
    pub(super) fn path(kind: BlockedKind, path: &Path) -> Self {
        Self { kind, target: path.display().to_string(), minor: false }
    }

    /// Of a file that is also elsewhere. Says what can be done.
    pub(super) fn linked(kind: BlockedKind, path: &Path) -> Self {
        let target = format!("{}, a hard link to a file outside: replace it by a copy first", path.display());
        Self { kind, target, minor: false }
    }
}

impl Judge {
    pub(crate) fn new(
        policy: &Policy,
        method: Method,
        (watch, writes): (&CommandWatch, &Arc<ProtectedWrites>),
        servers: &Servers,
    ) -> Self {
        let scope = Scope::new(policy, method);
        let sockets = Sockets::new(policy, scope.namespaces, servers);
        let (losses, links) = (Mutex::new(Losses::new(policy)), LinksOut::new(policy));
        let touched = policy.stays.then(Arc::default);
        let (watch, writes, closings) = (watch.clone(), Arc::clone(writes), Mutex::default());
        Self { scope, watch, losses, links, closings, touched, writes, sockets }
    }

    /// The answer to a call; `None`: a thread gives it later. What it was refused is in the log before the caller can go
    /// on.
    pub(crate) fn decide(&self, call: &Call, listener: &Arc<Listener>) -> Option<Answer> {
        let inside = self.scope.profile != Profile::Floor;
        if let Some(answer) = forks::decide(call, &self.watch.forks, inside) {
            return Some(answer);
        }
        // Before another opening is counted.
        self.read_closings();
        let caller = Caller::new(call.thread);
        if call.number == libc::SYS_rt_sigaction {
            forks::restart(call, &caller, listener);
            return Some(Answer::Continue);
        }
        let sockets = self.sockets.as_ref().filter(|_| network::CALLS.contains(&call.number));
        if let Some(sockets) = sockets {
            let outcome = sockets.perform(call, &caller, listener, &self.scope);
            self.note(outcome.note, call, &caller, listener);
            return outcome.answer;
        }
        if let Some(file) = calls::find(call.number).filter(|file| self.makes(file)) {
            let outcome = self.create(call, file, &caller, listener);
            self.note(outcome.note, call, &caller, listener);
            return outcome.answer;
        }
        let (answer, note) = match calls::find(call.number) {
            Some(file) if self.performs(file) => self.perform(call, file, &caller, listener),
            Some(file) => self.file(call, file, &caller),
            None if call.number == libc::SYS_connect => (Answer::Continue, self.connection(call, &caller)),
            None => self.attributes(call, &caller, listener).unwrap_or_else(|| {
                let meaning = refusal::explain(call.number, &call.args);
                let note = Note { kind: meaning.kind, target: meaning.words, minor: meaning.minor };
                (Answer::Fail(libc::EPERM), Some(note))
            }),
        };
        self.note(note, call, &caller, listener);
        Some(answer)
    }

    fn note(&self, note: Option<Note>, call: &Call, caller: &Caller, listener: &Listener) {
        let Some(Note { kind, target, minor }) = note else { return };
        let program = caller.program();
        if listener.waits(call.id) {
            self.watch.blocked.push(BlockedAction { kind, target, program, minor });
        }
    }

    /// Whether this process does it in the caller's place.
    fn performs(&self, file: &FileCall) -> bool {
        matches!(self.scope.profile, Profile::Workspace | Profile::Floor)
            && matches!(file.kind, BlockedKind::Remove | BlockedKind::Rename)
    }

    /// Notes a path that a program which stays makes or writes.
    pub(super) fn touch(&self, path: &Path, folder: bool) {
        if let Some(touched) = &self.touched {
            touched.add(path, folder);
        }
    }

    /// Whether this process opens or makes the name in the caller's place: what is judged is what is changed.
    fn makes(&self, file: &FileCall) -> bool {
        self.scope.profile == Profile::Workspace && !self.performs(file)
    }

    /// A call that changes files by their names. The kernel decides about it; the note says what it will decide.
    fn file(&self, call: &Call, file: &FileCall, caller: &Caller) -> (Answer, Option<Note>) {
        let names = [Some(file.at), file.to];
        let mut found: Option<Note> = None;
        for at in names.into_iter().flatten() {
            let outside = match self.outside(call, file, at, caller) {
                Ok(outside) => outside,
                // The kernel finds the same, and says it.
                Err(_) => continue,
            };
            found = found.or(outside);
        }
        (Answer::Continue, found)
    }

    /// The refusal that the policy implies for this name. `None`: it may be changed, or the call fails for other reasons.
    fn outside(
        &self,
        call: &Call,
        file: &FileCall,
        at: PathArgument,
        caller: &Caller,
    ) -> Result<Option<Note>, Errno> {
        let path = caller.text(call.args[at.path])?;
        // Files of the kernel: what of them may be written is no question of folders.
        if path.starts_with(b"/dev/") {
            return Ok(None);
        }
        let base = caller.start(at, &call.args, &path)?;
        let flags = self.open_flags(call, file, caller)?;
        let mut walk = Walk::new(caller);
        let follows = match file.open {
            OpenFlags::None => call.number == libc::SYS_truncate,
            _ => flags & (libc::O_NOFOLLOW as u64) == 0,
        };
        let entry = if follows { walk.last(base, &path)? } else { walk.entry(base, &path)? };
        let full = entry.path()?;
        if full.starts_with("/proc") {
            return Ok(None);
        }
        let allowed = match file.kind {
            BlockedKind::Remove | BlockedKind::Rename => self.scope.may_go(&full),
            _ => self.scope.contains(&full),
        };
        let opens = file.open != OpenFlags::None || file.kind == BlockedKind::Write;
        let only_reads =
            flags & (libc::O_ACCMODE | libc::O_TRUNC) as u64 == 0 && file.open != OpenFlags::None;
        if allowed {
            return Ok(None);
        }
        let exists = exists(&entry);
        let creates = flags & (libc::O_CREAT as u64) != 0;
        let would_work = match (opens, exists) {
            (true, true) if only_reads => false,
            (true, true) => may_write(&full),
            (true, false) => creates && folder_allows(&entry),
            // The name must be free for a new one, and there for the others.
            (false, exists) => (exists != (file.kind == BlockedKind::Create)) && folder_allows(&entry),
        };
        // A new name of a file that is renamed need not be there.
        let new_name = file.to == Some(at) && folder_allows(&entry);
        if !(would_work || new_name) {
            return Ok(None);
        }
        let kind = if opens && !exists { BlockedKind::Create } else { file.kind };
        Ok(Some(Note::path(kind, &full)))
    }

    fn open_flags(&self, call: &Call, file: &FileCall, caller: &Caller) -> Result<u64, Errno> {
        Ok(match file.open {
            OpenFlags::None => 0,
            OpenFlags::Fixed(flags) => flags,
            OpenFlags::Argument(index) => call.args[index],
            OpenFlags::Structure(index) => u64::from_ne_bytes(caller.bytes(call.args[index])?),
        })
    }

    /// A connection that leads nowhere, since the command has a network of its own.
    fn connection(&self, call: &Call, caller: &Caller) -> Option<Note> {
        unreachable(address(call, caller)?)
    }
}

/// The note about a connection to this address by a command with a network of its own; `None`: it needs none.
pub(super) fn unreachable(address: SocketAddr) -> Option<Note> {
    let resolver = address.port() == 53;
    let ip = address.ip().to_canonical();
    if !resolver && (ip.is_loopback() || ip.is_unspecified()) {
        return None;
    }
    let target =
        if resolver { "a name server".into() } else { SocketAddr::new(ip, address.port()).to_string() };
    Some(Note { kind: BlockedKind::Connect, target, minor: false })
}

/// The address of an internet socket.
fn address(call: &Call, caller: &Caller) -> Option<SocketAddr> {
    let length = call.args[2] & 0xffff_ffff;
    let head: [u8; 8] = (length >= 16).then(|| caller.bytes(call.args[1]).ok()).flatten()?;
    let port = u16::from_be_bytes([head[2], head[3]]);
    let ip = match u16::from_ne_bytes([head[0], head[1]]) {
        2 => IpAddr::V4(Ipv4Addr::new(head[4], head[5], head[6], head[7])),
        10 if length >= 24 => {
            let bytes: [u8; 24] = caller.bytes(call.args[1]).ok()?;
            let ip: [u8; 16] = bytes[8..24].try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(ip)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

fn exists(entry: &Entry) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(&entry.folder, entry.name(), flags, Mode::empty()).is_ok()
}

/// Whether this process could change names in the folder: otherwise the call fails without a sandbox, too.
pub(super) fn folder_allows(entry: &Entry) -> bool {
    path_of(&entry.folder).is_ok_and(|path| may_write(&path))
}

pub(super) fn may_write(path: &Path) -> bool {
    accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}
