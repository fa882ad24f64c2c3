//! The content that commits of a repository have under a path, as of the start of the session.
//!
//! The tips of all branches are noted before the first command. What they lead to is read when a protected name was written,
//! and each object is compared with its number: a command can write into the folder of objects, replace one, and say in files
//! beside them that a commit has other parents or another tree.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use sha1::{Digest, Sha1};

use crate::quarantine::State;

/// Repositories whose tips are noted.
const REPOSITORIES: usize = 16;
/// Tips of one repository.
const TIPS: usize = 5_000;
/// Commits that are read for one answer: those of the tips, then their parents.
const COMMITS: usize = 20_000;
/// The largest object that is read, in bytes.
const LARGEST: usize = 16 << 20;
/// The longest line of git that is read, and the longest file that leads to a repository, in bytes.
const LINE: u64 = 4096;
/// After this time for all repositories together git is ended, and what was not found counts as unknown.
const LIMIT: Duration = Duration::from_secs(10);

/// The repositories of a workspace, and the commits that they had at the start.
#[derive(Debug, Default)]
pub(crate) struct Tips {
    workspace: PathBuf,
    /// Folders of all repositories, with the commits of those that are asked.
    of: Vec<(PathBuf, Vec<String>)>,
}

/// A file or link that is looked for, by the numbers that git would give its content, and its path in its repository.
#[derive(Debug)]
struct Wanted {
    /// The folder around its repository.
    top: PathBuf,
    /// The folder that its repository is in.
    repository: Option<PathBuf>,
    parts: Vec<Vec<u8>>,
    ids: Vec<String>,
    kind: Kind,
}

/// The kind of an entry of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Program,
    Link,
}

impl Tips {
    /// Notes them. `repositories`: their folders.
    pub(crate) fn record<'a>(workspace: &Path, repositories: impl Iterator<Item = &'a Path>) -> Self {
        Self::record_within(LIMIT, workspace, repositories)
    }

    pub(super) fn record_within<'a>(
        limit: Duration,
        workspace: &Path,
        repositories: impl Iterator<Item = &'a Path>,
    ) -> Self {
        let until = Instant::now() + limit;
        let mut folders: Vec<&Path> = repositories.collect();
        // The outer ones first.
        folders.sort_by_key(|folder| folder.components().count());
        let of = folders.into_iter().enumerate().map(|(at, git)| {
            let tips = (at < REPOSITORIES).then(|| tips(workspace, git, until)).flatten();
            (git.to_owned(), tips.unwrap_or_default())
        });
        Self { workspace: workspace.to_owned(), of: of.collect() }
    }

    /// Returns which of these paths had this state in a commit from before the session.
    pub(crate) fn know(&self, paths: &[(&Path, &State)]) -> Vec<bool> {
        let until = Instant::now() + LIMIT;
        let wanted: Vec<Option<Wanted>> =
            paths.iter().map(|(path, state)| Wanted::new(path, state)).collect();
        let mut known = vec![false; paths.len()];
        for (git, tips) in self.of.iter().filter(|(_, tips)| !tips.is_empty()) {
            let asked = |wanted: &Wanted| self.answers(git, wanted);
            let open = |at: &usize| !known[*at] && wanted[*at].as_ref().is_some_and(asked);
            let missing: Vec<usize> = (0..paths.len()).filter(open).collect();
            let some: Vec<&Wanted> = missing.iter().filter_map(|at| wanted[*at].as_ref()).collect();
            if some.is_empty() {
                continue;
            }
            let found =
                Objects::open(&self.workspace, git, until).map(|mut objects| look(&mut objects, tips, &some));
            for (at, found) in missing.into_iter().zip(found.unwrap_or_default()) {
                known[at] = found;
            }
        }
        known
    }

    /// Returns true if this repository says what may be there: the path's own. A repository that was made in the session, as by
    /// a clone, has no commits from before, so those around and beside it are asked.
    fn answers(&self, git: &Path, wanted: &Wanted) -> bool {
        let own = wanted.repository.as_deref();
        match self.of.iter().any(|(known, _)| own == Some(known)) {
            true => own == Some(git),
            false => own.is_some() && !git.starts_with(&wanted.top),
        }
    }
}

/// Returns the folder with the objects of the repository whose work tree this is.
fn repository(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    let folder = match git.is_file() {
        true => top.join(text(&git)?.strip_prefix("gitdir:")?.trim()),
        false => git,
    };
    let folder = folder.canonicalize().ok()?;
    match text(&folder.join("commondir")) {
        Some(shared) => folder.join(shared.trim()).canonicalize().ok(),
        None => Some(folder),
    }
}

/// Returns the text of a small file. A pipe in its place is not waited for.
fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(path).ok()?;
    file.take(LINE).read_to_string(&mut text).ok()?;
    Some(text)
}

impl Wanted {
    /// Makes it. `None`: no commit can have it, or the path is in no repository.
    fn new(path: &Path, state: &State) -> Option<Self> {
        let top = path.ancestors().skip(1).find(|folder| folder.join(".git").symlink_metadata().is_ok())?;
        let parts = path.strip_prefix(top).ok()?.iter().map(|part| part.as_bytes().to_vec()).collect();
        let (ids, kind) = match state {
            State::File(bytes, mode) => {
                let kind = if mode & 0o100 != 0 { Kind::Program } else { Kind::File };
                let mut ids = vec![blob(bytes)];
                // Git may have made the ends of lines those of another system.
                ids.extend(bytes.contains(&b'\r').then(|| blob(&without_returns(bytes))));
                (ids, kind)
            }
            State::Link(target) => (vec![blob(target.as_os_str().as_bytes())], Kind::Link),
            State::Missing | State::Folder(..) | State::Other => return None,
        };
        Some(Self { repository: repository(top), top: top.to_owned(), parts, ids, kind })
    }
}

fn without_returns(bytes: &[u8]) -> Vec<u8> {
    let kept =
        bytes.iter().enumerate().filter(|(at, byte)| **byte != b'\r' || bytes.get(at + 1) != Some(&b'\n'));
    kept.map(|(_, byte)| *byte).collect()
}

/// Returns the number of this content in git.
pub(super) fn blob(bytes: &[u8]) -> String {
    number("blob", bytes)
}

fn number(kind: &str, bytes: &[u8]) -> String {
    let mut hash = Sha1::new();
    hash.update(format!("{kind} {}\0", bytes.len()));
    hash.update(bytes);
    hex(&hash.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads commits from the tips on until each path was found.
fn look(objects: &mut Objects, tips: &[String], wanted: &[&Wanted]) -> Vec<bool> {
    let mut found = vec![false; wanted.len()];
    // Content that git does not have at all, as that of most scripts, needs no look at commits.
    let exists: Vec<bool> =
        wanted.iter().map(|w| w.ids.iter().any(|id| objects.read(id).is_some())).collect();
    let mut waiting = VecDeque::from(tips.to_vec());
    let mut met = HashSet::new();
    let mut passed = HashSet::new();
    while let Some(id) = waiting.pop_front() {
        let open: Vec<usize> = (0..wanted.len()).filter(|at| exists[*at] && !found[*at]).collect();
        if open.is_empty() || met.len() >= COMMITS {
            break;
        }
        if !met.insert(id.clone()) {
            continue;
        }
        let Some((kind, text)) = objects.read(&id) else { continue };
        let text = String::from_utf8_lossy(&text).into_owned();
        let head = |name: &str| -> Vec<String> {
            let lines = text.lines().take_while(|line| !line.is_empty());
            lines.filter_map(|line| Some(line.strip_prefix(name)?.trim().to_owned())).collect()
        };
        match kind.as_str() {
            "tag" => waiting.extend(head("object ")),
            "commit" => {
                waiting.extend(head("parent "));
                let Some(tree) = head("tree ").into_iter().next() else { continue };
                objects.trees.clear();
                for at in open {
                    found[at] = has(objects, &tree, (at, wanted[at]), &mut passed);
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns true if this tree has the entry. `passed`: trees that were looked at for it, at which depth.
fn has(
    objects: &mut Objects,
    tree: &str,
    (index, wanted): (usize, &Wanted),
    passed: &mut HashSet<(String, usize, usize)>,
) -> bool {
    let mut tree = tree.to_owned();
    for (depth, part) in wanted.parts.iter().enumerate() {
        if !passed.insert((tree.clone(), index, depth)) {
            return false;
        }
        let Some((mode, id)) = objects.tree(&tree).and_then(|bytes| entry(&bytes, part)) else {
            return false;
        };
        if depth + 1 == wanted.parts.len() {
            let kind = match mode {
                0o120_000 => Kind::Link,
                mode if mode & 0o170_000 == 0o100_000 && mode & 0o100 != 0 => Kind::Program,
                mode if mode & 0o170_000 == 0o100_000 => Kind::File,
                _ => return false,
            };
            return kind == wanted.kind && wanted.ids.contains(&id);
        }
        tree = id;
    }
    false
}

/// Returns mode and number of this entry of a tree.
fn entry(mut tree: &[u8], name: &[u8]) -> Option<(u32, String)> {
    loop {
        let space = tree.iter().position(|byte| *byte == b' ')?;
        let mode = u32::from_str_radix(std::str::from_utf8(&tree[..space]).ok()?, 8).ok()?;
        let end = space + tree[space..].iter().position(|byte| *byte == 0)?;
        let id = tree.get(end + 1..end + 21)?;
        if &tree[space + 1..end] == name {
            return Some((mode, hex(id)));
        }
        tree = &tree[end + 21..];
    }
}

/// A git that is ended at a time, or when this is dropped.
struct Limited {
    child: Arc<Mutex<Child>>,
    /// Ends the clock.
    _over: mpsc::Sender<()>,
}

impl Limited {
    /// Starts it. A pipe in the place of a file would keep it waiting, so it is ended at `until`.
    fn start(command: &mut Command, until: Instant) -> Option<Self> {
        let child = Arc::new(Mutex::new(command.spawn().ok()?));
        let (over, clock) = mpsc::channel::<()>();
        let slow = Arc::clone(&child);
        let own = Self { child, _over: over };
        let end = move || {
            let left = until.saturating_duration_since(Instant::now());
            if clock.recv_timeout(left) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = slow.lock().unwrap_or_else(PoisonError::into_inner).kill();
            }
        };
        std::thread::Builder::new().name("tiller-git-limit".into()).spawn(end).ok()?;
        Some(own)
    }

    fn pipes(&self) -> (Option<ChildStdin>, Option<BufReader<ChildStdout>>) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        (child.stdin.take(), child.stdout.take().map(BufReader::new))
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Objects of a repository, read by git and compared with their numbers.
struct Objects {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _git: Limited,
    /// Those of the commit that is looked at.
    trees: HashMap<String, Rc<Vec<u8>>>,
}

impl Objects {
    fn open(workspace: &Path, git: &Path, until: Instant) -> Option<Self> {
        let mut command = command(workspace, git)?;
        let git = Limited::start(command.args(["cat-file", "--batch"]).stdin(Stdio::piped()), until)?;
        let (Some(input), Some(output)) = git.pipes() else { return None };
        Some(Self { input, output, _git: git, trees: HashMap::new() })
    }

    /// Returns kind and content. `None`: the repository has no such object, or it is too large.
    fn read(&mut self, id: &str) -> Option<(String, Vec<u8>)> {
        writeln!(self.input, "{id}").ok()?;
        let mut head = String::new();
        (&mut self.output).take(LINE).read_line(&mut head).ok()?;
        let [_, kind, size] = head.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        let size: u64 = size.parse().ok()?;
        // The content and the end of its line are read in any case: the next answer follows them.
        let mut body = (&mut self.output).take(size.saturating_add(1));
        if size > LARGEST as u64 {
            io::copy(&mut body, &mut io::sink()).ok()?;
            return None;
        }
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes).ok()?;
        bytes.pop();
        (number(kind, &bytes) == id).then(|| (kind.to_owned(), bytes))
    }

    fn tree(&mut self, id: &str) -> Option<Rc<Vec<u8>>> {
        if let Some(known) = self.trees.get(id) {
            return Some(Rc::clone(known));
        }
        let (kind, bytes) = self.read(id)?;
        let bytes = Rc::new(bytes);
        self.trees.insert(id.to_owned(), Rc::clone(&bytes));
        (kind == "tree").then_some(bytes)
    }
}

/// Returns the commits that branches, tags and stashes lead to, and those that they led to before.
fn tips(workspace: &Path, git: &Path, until: Instant) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let most = format!("--max-count={TIPS}");
    for args in [&["show-ref", "--head", "--hash"][..], &["rev-list", "--walk-reflogs", "--all", &most]] {
        let mut command = command(workspace, git)?;
        let git = Limited::start(command.args(args).stdin(Stdio::null()), until)?;
        let output = git.pipes().1?.take(TIPS as u64 * LINE);
        all.extend(output.lines().map_while(Result::ok).take(TIPS));
    }
    let mut met = HashSet::new();
    all.retain(|id| met.insert(id.clone()));
    Some(all)
}

/// Returns git for this repository, without anything that would run another program or ask a server.
fn command(workspace: &Path, git: &Path) -> Option<Command> {
    let path = std::env::var_os("PATH")?;
    let outside = |folder: &PathBuf| folder.is_absolute() && !folder.starts_with(workspace);
    let program = std::env::split_paths(&path)
        .filter(outside)
        .map(|folder| folder.join("git"))
        .find(|git| git.canonicalize().is_ok_and(|git| git.is_file() && !git.starts_with(workspace)))?;
    let mut command = Command::new(program);
    command.args(["--no-optional-locks", "--no-pager", "--git-dir"]).arg(git);
    command.env_clear().env("PATH", path).current_dir("/").process_group(0);
    command.envs([
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_ALLOW_PROTOCOL", "none"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("LC_ALL", "C"),
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    Some(command)
}
