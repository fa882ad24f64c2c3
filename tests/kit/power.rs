//! Simulates losses of power: from the writes and flushes of a process (as a tracer recorded them) it derives the
//! states that a disk may legally have at any moment. Flushed data is there; of unflushed data any part may be.
//!
//! The rules: a write is safe once its file was flushed after it, a name (created, moved, removed) once its folder was.
//! Unflushed writes to a file may be lost individually, in any combination, and cut at a sector; unflushed changes of
//! names in a folder are kept in their order, up to some point. Folders are assumed to exist.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Bytes that a disk writes atomically.
const SECTOR: usize = 512;

/// Arguments for `strace` that make it write what [`Recording::read`] needs to `log`.
pub fn tracer(log: &Path) -> Vec<String> {
    let calls = "openat,write,pwrite64,ftruncate,fsync,fdatasync,syncfs,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat";
    let words = ["strace", "-f", "-y", "-qq", "-xx", "-s", "16777216", "-e"];
    let mut words: Vec<String> = words.map(Into::into).to_vec();
    words.extend([
        format!("trace={calls}"),
        "-e".into(),
        "signal=none".into(),
        "-o".into(),
        log.display().to_string(),
    ]);
    words
}

/// One action of the process.
#[derive(Debug)]
enum Act {
    Create(PathBuf),
    Write {
        path: PathBuf,
        at: usize,
        data: Vec<u8>,
    },
    Truncate(PathBuf, usize),
    Sync(PathBuf),
    SyncAll,
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
    Folder(PathBuf),
    /// Printed on standard output.
    Said(String),
}

/// Everything that a process did below one folder, in order.
#[derive(Debug)]
pub struct Recording {
    root: PathBuf,
    acts: Vec<Act>,
}

/// One state of the disk.
#[derive(Clone)]
pub struct State {
    files: BTreeMap<PathBuf, Vec<u8>>,
    folders: Vec<PathBuf>,
    /// Output of the process before the loss of power.
    pub said: Vec<String>,
    /// How many of the recording's actions were done.
    pub after: usize,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let files = self.files.iter().map(|(path, bytes)| (path, bytes.len()));
        f.debug_map().entries(files).finish()
    }
}

impl State {
    /// Writes the files of this state below `to`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, to: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(to)?;
        for folder in &self.folders {
            std::fs::create_dir_all(to.join(folder))?;
        }
        for (path, bytes) in &self.files {
            let path = to.join(path);
            if let Some(dir) = path.parent() {
                std::fs::create_dir_all(dir)?;
            }
            std::fs::write(path, bytes)?;
        }
        Ok(())
    }
}

impl Recording {
    /// Parses the tracer's log; `root` is the relevant folder, by its real path.
    pub fn read(log: &str, root: &Path) -> Self {
        let mut halves: HashMap<&str, String> = HashMap::new();
        let mut reader =
            Reader { root: root.to_owned(), acts: Vec::new(), places: HashMap::new(), known: HashMap::new() };
        for line in log.lines() {
            let Some((thread, rest)) = line.split_once(' ') else { continue };
            let rest = rest.trim_start();
            if let Some(half) =
                rest.strip_suffix(" <unfinished ...>").or_else(|| rest.strip_suffix("<unfinished ...>"))
            {
                // Output counts from the beginning of its write, since a reader may have received it.
                if half.starts_with("write(1<") {
                    reader.call(&format!("{half}) = 0"));
                } else {
                    halves.insert(thread, half.trim_end().to_owned());
                }
            } else if let Some((_, end)) = rest.strip_prefix("<... ").and_then(|r| r.split_once("resumed>")) {
                if let Some(half) = halves.remove(thread) {
                    reader.call(&format!("{half}{end}"));
                }
            } else {
                reader.call(rest);
            }
        }
        Self { root: reader.root, acts: reader.acts }
    }

    /// Number of actions.
    pub fn len(&self) -> usize {
        self.acts.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.acts.is_empty()
    }

    /// Passes `count` states, spread over the whole time, to `look`: of each four, one loses all unflushed data, one
    /// nothing, and two some of it.
    pub fn states(&self, count: usize, seed: u64, mut look: impl FnMut(usize, &State)) {
        let mut dice = Dice(seed | 1);
        let mut disk = Disk::default();
        let mut done = 0;
        for n in 0..count {
            let cut = (n + 1) * self.acts.len() / count;
            for act in &self.acts[done..cut] {
                disk.take(act);
            }
            done = cut;
            let odds = match n % 4 {
                0 => 0,
                1 => 100,
                2 => 50,
                _ => 90,
            };
            look(n, &disk.crash(&self.root, odds, &mut dice, cut));
        }
    }
}

struct Reader {
    root: PathBuf,
    acts: Vec<Act>,
    /// Offset of the next `write` to a descriptor.
    places: HashMap<String, usize>,
    /// Files that were created.
    known: HashMap<PathBuf, ()>,
}

impl Reader {
    fn call(&mut self, line: &str) {
        let Some((name, rest)) = line.split_once('(') else { return };
        // The tracer pads short lines.
        let Some((args, result)) = rest.rsplit_once(" = ") else { return };
        let Some(args) = args.trim_end().strip_suffix(')') else { return };
        if result.starts_with('-') {
            return;
        }
        let args: Vec<&str> = args.split(", ").collect();
        let of = |n: usize| args.get(n).copied().unwrap_or_default();
        let number = |n: usize| of(n).parse::<usize>().unwrap_or_default();
        match name {
            "openat" => {
                let Some((fd, path)) = descriptor(result) else { return };
                self.places.insert(fd, 0);
                if !path.starts_with(&self.root) {
                    return;
                }
                if of(2).contains("O_CREAT") && self.known.insert(path.clone(), ()).is_none() {
                    self.acts.push(Act::Create(path.clone()));
                }
                if of(2).contains("O_TRUNC") {
                    self.acts.push(Act::Truncate(path, 0));
                }
            }
            "write" | "pwrite64" => {
                let Some((fd, path)) = descriptor(of(0)) else { return };
                let data = bytes(of(1));
                if name == "write" && fd == "1" {
                    return self.acts.push(Act::Said(String::from_utf8_lossy(&data).into_owned()));
                }
                if !path.starts_with(&self.root) {
                    return;
                }
                let at = if name == "write" {
                    let place = self.places.entry(fd).or_default();
                    *place += data.len();
                    *place - data.len()
                } else {
                    number(3)
                };
                self.acts.push(Act::Write { path, at, data });
            }
            "ftruncate" => self.on(of(0), |path| Act::Truncate(path, number(1))),
            "fsync" | "fdatasync" => self.on(of(0), Act::Sync),
            "syncfs" => self.acts.push(Act::SyncAll),
            "rename" => self.rename(of(0), of(1)),
            "renameat" | "renameat2" => self.rename(of(1), of(3)),
            "mkdir" => self.folder(of(0)),
            "mkdirat" => self.folder(of(1)),
            "unlink" => self.unlink(of(0)),
            "unlinkat" => self.unlink(of(1)),
            _ => {}
        }
    }

    fn on(&mut self, fd: &str, act: impl FnOnce(PathBuf) -> Act) {
        if let Some((_, path)) = descriptor(fd)
            && path.starts_with(&self.root)
        {
            self.acts.push(act(path));
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        let (from, to) = (path(&bytes(from)), path(&bytes(to)));
        if to.starts_with(&self.root) {
            self.known.remove(&from);
            self.known.insert(to.clone(), ());
            self.acts.push(Act::Rename(from, to));
        }
    }

    fn folder(&mut self, name: &str) {
        let path = path(&bytes(name));
        if path.starts_with(&self.root) {
            self.acts.push(Act::Folder(path));
        }
    }

    fn unlink(&mut self, name: &str) {
        let path = path(&bytes(name));
        if path.starts_with(&self.root) {
            self.known.remove(&path);
            self.acts.push(Act::Unlink(path));
        }
    }
}

/// Parses `5<\x2f...>`: number and path.
fn descriptor(text: &str) -> Option<(String, PathBuf)> {
    let (fd, rest) = text.split_once('<')?;
    let end = rest.rfind('>')?;
    Some((fd.to_owned(), path(&bytes(&rest[..end]))))
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Decodes `"\x61..."`; text without escapes is returned unchanged.
fn bytes(text: &str) -> Vec<u8> {
    let text = text.trim_matches('"');
    if !text.starts_with("\\x") {
        return text.as_bytes().to_vec();
    }
    text.split("\\x").skip(1).filter_map(|h| u8::from_str_radix(h.get(..2)?, 16).ok()).collect()
}

/// A file: safe content, and later writes.
#[derive(Clone, Default)]
struct Inode {
    safe: Vec<u8>,
    since: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>, upto: usize) {
        match self {
            Self::Write(at, data) => {
                let data = &data[..upto.min(data.len())];
                if to.len() < at + data.len() {
                    to.resize(at + data.len(), 0);
                }
                to[*at..at + data.len()].copy_from_slice(data);
            }
            Self::Truncate(len) => to.resize(*len, 0),
        }
    }
}

/// A change of names in a folder.
#[derive(Clone)]
enum Name {
    Add(PathBuf, usize),
    Remove(PathBuf),
    Move(PathBuf, PathBuf, usize),
}

impl Name {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Add(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            Self::Remove(path) => {
                names.remove(path);
            }
            Self::Move(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }
}

#[derive(Default)]
struct Disk {
    inodes: Vec<Inode>,
    /// Names as the process sees them.
    names: BTreeMap<PathBuf, usize>,
    safe: BTreeMap<PathBuf, usize>,
    /// For each folder, changes since it was flushed.
    since: BTreeMap<PathBuf, Vec<Name>>,
    folders: Vec<PathBuf>,
    said: Vec<String>,
}

impl Disk {
    fn inode(&mut self, path: &Path) -> usize {
        if let Some(at) = self.names.get(path) {
            return *at;
        }
        self.inodes.push(Inode::default());
        let at = self.inodes.len() - 1;
        self.names.insert(path.to_owned(), at);
        self.name(path, Name::Add(path.to_owned(), at));
        at
    }

    fn name(&mut self, path: &Path, change: Name) {
        self.since.entry(path.parent().unwrap_or(path).to_owned()).or_default().push(change);
    }

    fn take(&mut self, act: &Act) {
        match act {
            Act::Create(path) => {
                self.inode(path);
            }
            Act::Write { path, at, data } => {
                let inode = self.inode(path);
                self.inodes[inode].since.push(Change::Write(*at, data.clone()));
            }
            Act::Truncate(path, len) => {
                let inode = self.inode(path);
                self.inodes[inode].since.push(Change::Truncate(*len));
            }
            Act::Sync(path) => match self.names.get(path) {
                Some(at) => self.inodes[*at].settle(),
                None => self.settle_folder(&path.clone()),
            },
            Act::SyncAll => {
                self.inodes.iter_mut().for_each(Inode::settle);
                self.safe.clone_from(&self.names);
                self.since.clear();
            }
            Act::Rename(from, to) => {
                let inode = self.inode(from);
                self.names.remove(from);
                self.names.insert(to.clone(), inode);
                self.name(to, Name::Move(from.clone(), to.clone(), inode));
            }
            Act::Unlink(path) => {
                self.names.remove(path);
                self.name(path, Name::Remove(path.clone()));
            }
            Act::Folder(path) => self.folders.push(path.clone()),
            Act::Said(text) => self.said.push(text.clone()),
        }
    }

    fn settle_folder(&mut self, dir: &Path) {
        for change in self.since.remove(dir).unwrap_or_default() {
            change.apply(&mut self.safe);
        }
    }

    /// The state after a loss of power now; each unflushed change is kept with a probability of `odds` percent.
    fn crash(&self, root: &Path, odds: usize, dice: &mut Dice, after: usize) -> State {
        let mut names = self.safe.clone();
        for changes in self.since.values() {
            let kept = match odds {
                0 => 0,
                100 => changes.len(),
                _ => dice.roll(changes.len() + 1),
            };
            for change in &changes[..kept] {
                change.apply(&mut names);
            }
        }
        let mut files = BTreeMap::new();
        for (path, at) in names {
            let inode = &self.inodes[at];
            let mut bytes = inode.safe.clone();
            for change in &inode.since {
                if dice.roll(100) < odds {
                    // Occasionally a write is cut.
                    let whole = odds == 100 || dice.roll(8) > 0;
                    let upto = if whole { usize::MAX } else { dice.roll(9) * SECTOR };
                    change.apply(&mut bytes, upto);
                }
            }
            if let Ok(path) = path.strip_prefix(root) {
                files.insert(path.to_owned(), bytes);
            }
        }
        let folders =
            self.folders.iter().filter_map(|f| Some(f.strip_prefix(root).ok()?.to_owned())).collect();
        State { files, folders, said: self.said.clone(), after }
    }
}

impl Inode {
    fn settle(&mut self) {
        for change in self.since.drain(..) {
            change.apply(&mut self.safe, usize::MAX);
        }
    }
}

/// A small seeded generator, the same on each machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below.max(1) as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        text.bytes().map(|b| format!("\\x{b:02x}")).collect()
    }

    /// Flushed data is in every state; unflushed data is in some.
    #[test]
    fn flushed_is_kept_and_the_rest_may_go() {
        let (f, g) = (hex("/r/f"), hex("/r/g"));
        let log = format!(
            "7 openat(AT_FDCWD<{0}>, \"{f}\", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 3<{f}>\n\
             7 pwrite64(3<{f}>, \"{1}\", 3, 0) = 3\n\
             7 fsync(3<{f}> <unfinished ...>\n\
             8 write(1<{2}>, \"{3}\", 4) = 4\n\
             7 <... fsync resumed>)              = 0\n\
             7 fsync(4<{0}>) = 0\n\
             7 pwrite64(3<{f}>, \"{4}\", 3, 3) = 3\n\
             7 rename(\"{f}\", \"{g}\") = 0\n\
             7 unlink(\"{g}\") = -1 ENOENT\n",
            hex("/r"),
            hex("abc"),
            hex("pipe:[1]"),
            hex("ack1"),
            hex("def"),
        );
        let recording = Recording::read(&log, Path::new("/r"));
        assert_eq!(recording.len(), 7, "{recording:?}");
        let mut seen = std::collections::BTreeSet::new();
        for seed in 1..40 {
            recording.states(recording.len(), seed, |_, state| {
                let texts: Vec<String> = state
                    .files
                    .iter()
                    .map(|(p, b)| {
                        format!("{}={}", p.display(), String::from_utf8_lossy(b).replace('\0', "0"))
                    })
                    .collect();
                if state.after >= 5 {
                    assert_eq!(state.said, ["ack1"]);
                    assert!(texts.len() == 1 && texts[0][2..].starts_with("abc"), "{texts:?}");
                }
                seen.insert(texts.join(","));
            });
        }
        for state in ["", "f=", "f=abc", "f=abcdef", "g=abcdef", "g=abc"] {
            assert!(seen.contains(state), "{state} is not among {seen:?}");
        }
    }
}
