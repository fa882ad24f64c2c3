//! How much memory processes hold together.
//!
//! The resident memory of a process is not all: memory files (memfd_create(2)) and files in `/dev/shm` take memory that no
//! process maps, segments of System V outlive their processes, and a sandbox has file systems in memory of its own. Each is
//! counted once, however many processes hold it. Pages of files on disks are not counted: the system takes them back.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::shell::processes::proc_fs::{self, Family, Stat};

/// Where programs put files in memory.
const SHARED: &str = "/dev/shm";
/// Bytes of a block of stat(2).
const BLOCK: u64 = 512;
/// `f_type` of file systems in memory (statfs(2)): tmpfs, hugetlbfs.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x9584_58f6];
/// Stands for the device of segments of System V, whose inode is their number (proc(5), `/proc/sysvipc/shm`).
const SYSTEM_V: u64 = u64::MAX;
/// Stands for the inode of a whole file system.
const WHOLE: u64 = u64::MAX;
/// Entries of `/dev/shm` that are looked at.
const ENTRIES: usize = 10_000;

/// A file in memory: device and inode.
pub(super) type Key = (u64, u64);

/// The other families that work.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// When those began that began later.
    pub later: Vec<SystemTime>,
    /// Files in `/dev/shm` that they were seen to write.
    pub files: HashSet<Key>,
}

/// The memory that a family holds.
#[derive(Debug, Default)]
pub(super) struct HeldMemory {
    /// Bytes of all.
    pub all: u64,
    /// Each process with the bytes that it has or shares; the largest last.
    pub each: Vec<(u64, Stat)>,
    /// Bytes that no living process of it holds open.
    pub loose: u64,
}

/// The memory of a family, as far as earlier looks have shown it.
#[derive(Debug)]
pub(super) struct Memory {
    family: Family,
    /// When the family started.
    since: SystemTime,
    /// Files in `/dev/shm` that the family had open for writing, or that are new and held by none of the others.
    files: BTreeMap<Key, LooseFile>,
    /// New files there that others hold.
    theirs: HashSet<Key>,
    /// Numbers of its processes: segments tell who made them.
    numbers: HashSet<i32>,
}

/// A file in `/dev/shm` that is counted for a family.
#[derive(Debug)]
struct LooseFile {
    path: PathBuf,
    /// It is new, and the family was seen to write it. Any other one may be the user's.
    own: bool,
}

impl Memory {
    /// Of a family that has just started.
    pub(super) fn new(family: Family) -> Self {
        let started = family.roots.iter().map(|(_, start)| *start).min();
        let since = SystemTime::now() - started.map_or(Duration::ZERO, proc_fs::age);
        Self { family, since, files: BTreeMap::new(), theirs: HashSet::new(), numbers: HashSet::new() }
    }

    /// Counts what these processes, which are a whole family, hold. A file that is new in `/dev/shm` and that no process has open
    /// is counted for it if no later family had begun when it was made, and no other one was seen to write it. Reads much of
    /// `/proc`.
    pub(super) fn held(&mut self, living: &[Stat], others: &Others) -> HeldMemory {
        self.numbers.extend(living.iter().map(|s| s.pid));
        let mut objects: HashMap<Key, u64> = HashMap::new();
        let mut whole = HashSet::new();
        let spaces = file_systems(living);
        for (device, bytes) in spaces {
            whole.insert(device);
            objects.insert((device, WHOLE), bytes);
        }
        let mut holders = HashSet::new();
        let mut held = HeldMemory::default();
        for s in living {
            let own = Resident::of(s.pid);
            let mut mine: HashMap<Key, u64> = HashMap::new();
            for file in open_files(s.pid) {
                if file.place.starts_with(SHARED) {
                    let own = file.born.is_some_and(|born| born >= self.since);
                    self.files.insert(file.key, LooseFile { path: file.place, own });
                }
                mine.insert(file.key, file.bytes);
            }
            if own.shared > 0 {
                mine.extend(mapped_files(s.pid, &mine));
            }
            mine.retain(|(device, _), _| !whole.contains(device));
            let bytes = own.private + mine.values().sum::<u64>();
            held.all += own.private;
            held.each.push((bytes, *s));
            holders.extend(mine.keys().copied());
            objects.extend(mine);
        }
        self.files.retain(|key, file| file.own || !others.files.contains(key));
        self.find_new(&holders, others);
        for (key, file) in &self.files {
            if !objects.contains_key(key)
                && let Some(bytes) = still(&file.path, *key)
            {
                objects.insert(*key, bytes);
            }
        }
        for (number, maker, bytes) in segments() {
            if self.numbers.contains(&maker) {
                objects.entry((SYSTEM_V, number)).or_insert(bytes);
            }
        }
        held.all += objects.values().sum::<u64>();
        held.loose = objects.iter().filter(|(key, _)| !holders.contains(*key)).map(|(_, bytes)| bytes).sum();
        held.each.sort_by_key(|(bytes, _)| *bytes);
        held
    }

    /// True if a file of this time can be the family's and that of no later one.
    fn made(&self, born: SystemTime, later: &[SystemTime]) -> bool {
        born >= self.since && later.iter().all(|began| born < *began)
    }

    /// Takes in files that are new in `/dev/shm`, belong to this user and are held by no process of others: the family has
    /// written and closed them, as far as can be seen.
    fn find_new(&mut self, holders: &HashSet<Key>, families: &Others) {
        let me = rustix::process::geteuid().as_raw();
        let mut new: Vec<(Key, PathBuf)> = shared_files()
            .into_iter()
            .filter(|file| file.owner == me && file.born.is_some_and(|born| self.made(born, &families.later)))
            .filter(|file| !families.files.contains(&file.key))
            .filter(|file| !self.files.contains_key(&file.key) && !self.theirs.contains(&file.key))
            .map(|file| (file.key, file.path))
            .collect();
        if new.is_empty() {
            return;
        }
        let mut others = HashSet::new();
        let all = proc_fs::all();
        // It may have more by now than when it was looked at.
        self.numbers.extend(self.family.members_among(all.clone()).iter().map(|s| s.pid));
        for s in all.iter().filter(|s| !self.numbers.contains(&s.pid)) {
            let maps = std::fs::read_to_string(format!("/proc/{}/maps", s.pid)).unwrap_or_default();
            others.extend(maps.lines().filter_map(MappedFile::parse).map(|map| map.key));
            others.extend(open_files(s.pid).into_iter().map(|file| file.key));
        }
        new.retain(|(key, _)| {
            let ours = holders.contains(key) || !others.contains(key);
            // Looked for once.
            ours || !self.theirs.insert(*key)
        });
        self.files.extend(new.into_iter().map(|(key, path)| (key, LooseFile { path, own: false })));
    }

    /// Files in `/dev/shm` that it was seen to write and that were made since it began.
    pub(super) fn own_files(&self) -> HashSet<Key> {
        self.files.iter().filter(|(_, file)| file.own).map(|(key, _)| *key).collect()
    }

    /// Files in `/dev/shm` that are left: those that are certainly the family's, or those that may be the user's.
    pub(super) fn loose_files(&self, own: bool) -> Vec<String> {
        let there =
            self.files.iter().filter(|(key, file)| file.own == own && still(&file.path, **key).is_some());
        there.map(|(_, file)| file.path.display().to_string()).collect()
    }

    /// Removes those that are certainly the family's: they would keep their memory.
    pub(super) fn remove_loose(&mut self) {
        for (key, file) in std::mem::take(&mut self.files) {
            if file.own && still(&file.path, key).is_some() {
                let _ = std::fs::remove_file(file.path);
            }
        }
    }
}

/// The memory of a process that no file has.
#[derive(Default)]
struct Resident {
    /// Bytes that are no file's, in memory and swapped out.
    private: u64,
    /// Resident bytes of files in memory.
    shared: u64,
}

impl Resident {
    fn of(pid: i32) -> Self {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let mut found = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let bytes =
                || value.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) << 10;
            match name {
                "RssAnon" | "VmSwap" => found.private += bytes(),
                "RssShmem" => found.shared = bytes(),
                _ => {}
            }
        }
        found
    }
}

/// A file in memory that a process has open for writing.
struct OpenFile {
    key: Key,
    bytes: u64,
    /// `None`: the kernel does not tell.
    born: Option<SystemTime>,
    place: PathBuf,
}

fn open_files(pid: i32) -> Vec<OpenFile> {
    const WRITE: u32 = 0o200;
    let Ok(fds) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    fds.flatten()
        .filter_map(|fd| {
            // The mode of the link is that of the descriptor.
            let writes = fd.metadata().is_ok_and(|m| m.permissions().mode() & WRITE != 0);
            let path = fd.path();
            let target = std::fs::read_link(&path).ok().filter(|target| writes && target.is_absolute())?;
            let file = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
            in_memory(&path).then(|| OpenFile {
                key: (file.dev(), file.ino()),
                bytes: file.blocks() * BLOCK,
                born: file.created().ok(),
                place: target,
            })
        })
        .collect()
}

#[cfg(target_os = "linux")]
fn in_memory(path: &Path) -> bool {
    rustix::fs::statfs(path)
        .is_ok_and(|s| IN_MEMORY.iter().any(|kind| s.f_type == *kind as rustix::fs::FsWord))
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_path: &Path) -> bool {
    let _ = IN_MEMORY;
    false
}

/// Files in memory that a process maps, without those that it has `open`, by their whole size; where only an administrator may
/// see that, by what is resident.
fn mapped_files(pid: i32, open: &HashMap<Key, u64>) -> HashMap<Key, u64> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut found: HashMap<Key, u64> = HashMap::new();
    let mut resident = None;
    for line in maps.lines() {
        let Some(map) = MappedFile::parse(line) else { continue };
        if open.contains_key(&map.key) {
            continue;
        }
        let file = std::fs::metadata(format!("/proc/{pid}/map_files/{}", map.range));
        match file {
            Ok(file) => _ = found.insert(map.key, file.blocks() * BLOCK),
            Err(_) => {
                let all = resident.get_or_insert_with(|| resident_maps(pid));
                *found.entry(map.key).or_default() += all.get(map.range).copied().unwrap_or(0);
            }
        }
    }
    found
}

/// One line of `/proc/PID/maps` about a file in memory.
struct MappedFile<'a> {
    range: &'a str,
    key: Key,
}

impl<'a> MappedFile<'a> {
    /// `FROM-TO PERMISSIONS OFFSET MAJOR:MINOR INODE NAME` (proc(5)), numbers hexadecimal except the inode.
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (range, device, inode) = (words.next()?, words.nth(2)?, words.next()?);
        let name = words.next()?;
        let inode = inode.parse().ok().filter(|inode| *inode != 0)?;
        if name.starts_with("/SYSV") {
            return Some(Self { range, key: (SYSTEM_V, inode) });
        }
        let known = ["/memfd:", "/dev/zero", "/anon_hugepage", "/dev/shm/", "/[aio]"];
        if !known.iter().any(|known| name.starts_with(known)) {
            return None;
        }
        Some(Self { range, key: (device_of(device)?, inode) })
    }
}

/// `MAJOR:MINOR`, hexadecimal, as stat(2) has it.
fn device_of(text: &str) -> Option<u64> {
    let (major, minor) = text.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    Some(rustix::fs::makedev(number(major)?, number(minor)?))
}

/// Bytes of each mapping that are in memory, shared among those that map them.
fn resident_maps(pid: i32) -> HashMap<String, u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap_or_default();
    let mut all = HashMap::new();
    let mut range = "";
    for line in text.lines() {
        let Some((first, rest)) = line.split_once(' ') else { continue };
        match first {
            "Pss:" => {
                let kib = rest.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
                all.insert(range.to_owned(), kib << 10);
            }
            _ if !first.ends_with(':') => range = first,
            _ => {}
        }
    }
    all
}

/// File systems in memory that only these processes see: devices, and bytes in use.
fn file_systems(living: &[Stat]) -> HashMap<u64, u64> {
    let space = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let own = space("self");
    let known: HashSet<u64> = mounts("self").into_iter().map(|(device, _)| device).collect();
    let mut seen = HashSet::new();
    let mut found = HashMap::new();
    for s in living {
        let theirs = space(&s.pid.to_string()).filter(|theirs| Some(theirs) != own.as_ref());
        if !theirs.is_some_and(|theirs| seen.insert(theirs)) {
            continue;
        }
        for (device, place) in mounts(&s.pid.to_string()) {
            let place = format!("/proc/{}/root{}", s.pid, place.display());
            // Another mount may cover it.
            if !known.contains(&device)
                && std::fs::metadata(&place).is_ok_and(|there| there.dev() == device)
                && let Ok(used) = rustix::fs::statvfs(place.as_str())
            {
                found.insert(device, used.f_blocks.saturating_sub(used.f_bfree) * used.f_frsize);
            }
        }
    }
    found
}

/// The mounts of file systems in memory that a process sees: `ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS [FIELD...] - TYPE ...`
/// (proc(5), mountinfo), numbers decimal.
fn mounts(pid: &str) -> Vec<(u64, PathBuf)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    let mount = |line: &str| {
        let (fields, rest) = line.split_once(" - ")?;
        if !rest.starts_with("tmpfs ") {
            return None;
        }
        let mut fields = fields.split(' ').skip(2);
        let (major, minor) = fields.next()?.split_once(':')?;
        let device = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
        Some((device, PathBuf::from(fields.nth(1)?)))
    };
    text.lines().filter_map(mount).collect()
}

/// A regular file below `/dev/shm`.
struct SharedFile {
    key: Key,
    owner: u32,
    /// `None`: the kernel does not tell.
    born: Option<SystemTime>,
    path: PathBuf,
}

fn shared_files() -> Vec<SharedFile> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    let (mut folders, mut found, mut count) = (vec![PathBuf::from(SHARED)], Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries.flatten().take(ENTRIES - count) {
            count += 1;
            // Of a link itself.
            let Ok(file) = entry.metadata() else { continue };
            if file.is_dir() {
                folders.push(entry.path());
            } else if file.is_file() {
                let (key, owner) = ((file.dev(), file.ino()), file.uid());
                found.push(SharedFile { key, owner, born: file.created().ok(), path: entry.path() });
            }
        }
    }
    found
}

/// Bytes of the file, if it is still this one.
fn still(path: &Path, key: Key) -> Option<u64> {
    let file = std::fs::symlink_metadata(path).ok()?;
    ((file.dev(), file.ino()) == key).then(|| file.blocks() * BLOCK)
}

/// Segments of System V: number, number of the process that made it, bytes in memory and swapped out.
fn segments() -> Vec<(u64, i32, u64)> {
    let text = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    // key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap
    let segment = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        Some((number(1)?, fields.get(4)?.parse().ok()?, number(14)? + number(15)?))
    };
    text.lines().skip(1).filter_map(segment).collect()
}
