//! The content of what a command runs, so that a yes is for this content.
//!
//! A command line is taken apart; each file that it names, runs or sources is found, through links and folders that it changes to,
//! and so are the files that those run. Where something stays open (`make`, `python3 -m`, words that are computed), all files of the
//! folder that could run stand for it.
//!
//! | file | holds |
//! | --- | --- |
//! | `find` | the files that a command runs |
//! | `words` | variables and patterns of its words, and the paths that these stand for |
//! | `programs` | what is known of programs: which run nothing of the folder, which read scripts |
//! | `code` | what scripts in Python and JavaScript load |
//! | `scope` | the files of a folder that could run |
//! | `hashes` | hashes of files, kept while a file does not change |

mod code;
mod find;
mod hashes;
mod programs;
mod scope;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tiller_protocol::ask::{TrustItem, TrustKind};

use crate::trust::detail::one_line;
use hashes::Stamp;
pub use scope::Runnable;

use find::Found;

/// A file that a command runs or names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// BLAKE3 of its content, hex.
    pub hash: String,
    /// It is run; otherwise it is named only.
    pub runs: bool,
}

/// Files that a command could run without naming them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpinned {
    /// Why no file pins it: a part of a sentence that begins with "it".
    pub why: String,
    /// All that it could be.
    pub could_run: Runnable,
}

/// The content of all that a command runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// For people: the command in one line.
    command: String,
    /// The folder that it starts in, relative to that of the project; empty: this one.
    below: String,
    /// By real paths: relative to the folder, absolute outside of it.
    pub files: BTreeMap<String, Pin>,
    /// `None`: `files` are all that it runs.
    pub open: Option<Unpinned>,
    /// It may build what it runs, and so write these files.
    builds: bool,
}

impl Pins {
    /// Those of a shell's command line that is run in `folder`. Reads files.
    pub fn of(folder: &Path, command: &str) -> Self {
        Pinning::new(folder).command(command)
    }

    /// Those of a program that is started with these words, without a shell. `below`: the folder that it starts in, relative to
    /// `folder`. A program that is not known runs nothing of the folder but what its words name.
    pub fn of_program(folder: &Path, below: &str, words: &[String], env: &[(String, String)]) -> Self {
        Pinning::new(folder).program(below, words, env)
    }

    /// The first of these that is not as it was in `trusted`, for people; `None`: all are. `before`: the pins when `trusted`
    /// was read; what stands in only one of both has changed.
    pub fn changed(&self, before: &Self, trusted: &[TrustItem]) -> Option<String> {
        let is_trusted = |path: &str, hash: &str| {
            trusted
                .iter()
                .any(|item| item.path == path && item.hash == hash && item.kind != TrustKind::Removed)
        };
        let mut files = self.files.iter().filter(|(path, pin)| !is_trusted(path, &pin.hash));
        if let Some((path, _)) = files.next() {
            return Some(path.clone());
        }
        let gone = before.files.keys().find(|path| !self.files.contains_key(*path));
        if let Some(path) = gone.or_else(|| self.files.keys().find(|path| !before.files.contains_key(*path)))
        {
            return Some(path.clone());
        }
        let open = self.open.as_ref()?;
        if is_trusted(&self.name(), &open.could_run.hash()) {
            return None;
        }
        let file = before.open.as_ref().and_then(|before| open.could_run.difference(&before.could_run));
        let file = file.unwrap_or("a file of the folder");
        Some(format!("{file}, which {} could run,", self.name()))
    }

    /// The items of the question to the user.
    pub fn items(&self, kind: &TrustKind) -> Vec<TrustItem> {
        let item = |path: &str, detail: String, hash: String, kind: &TrustKind| TrustItem {
            kind: kind.clone(),
            change: None,
            path: path.to_owned(),
            detail,
            hash,
        };
        let files = self.files.iter().map(|(path, pin)| {
            let how = if pin.runs { "run by" } else { "named by" };
            item(path, one_line(&format!("{how} {}", self.name())), pin.hash.clone(), kind)
        });
        let open = self.open.iter().map(|open| {
            let Unpinned { why, could_run } = open;
            let count = could_run.files.len();
            let when = match could_run.too_much {
                true => format!("more than {count} files could run: asked about in each session"),
                false => format!("asks again when one of {count} files that could run changes"),
            };
            item(&self.name(), format!("{}; {when}", one_line(why)), could_run.hash(), &TrustKind::Unpinned)
        });
        files.chain(open).collect()
    }

    /// The files that are run, as they are now: to see afterwards whether they stayed so. `folder`: that of the command.
    pub fn held(&self, folder: &Path) -> Held {
        let folder = real(folder);
        let files = self.files.iter().filter(|(_, pin)| pin.runs);
        let file = |(path, pin): (&String, &Pin)| HeldFile {
            hash: Some(pin.hash.clone()),
            is_written: self.builds,
            ..HeldFile::new(path.clone(), folder.join(tiller_protocol::names::path(path)))
        };
        Held(files.map(file).collect())
    }

    fn name(&self) -> String {
        match self.below.as_str() {
            "" => format!("`{}`", self.command),
            below => format!("`{}` in {below}", self.command),
        }
    }
}

/// Files that are run, each as it was before. A file that was replaced and put back has another time.
#[derive(Debug, Default)]
pub struct Held(Vec<HeldFile>);

#[derive(Debug)]
struct HeldFile {
    name: String,
    stamp: Option<Stamp>,
    path: PathBuf,
    /// BLAKE3 of the content that was judged, where that was hashed.
    hash: Option<String>,
    /// The command may build it.
    is_written: bool,
}

impl HeldFile {
    fn new(name: String, path: PathBuf) -> Self {
        Self { name, stamp: Stamp::at(&path), path, hash: None, is_written: false }
    }
}

/// Largest file of which a copy is made.
const COPIED: u64 = 16 << 20;

impl Held {
    /// Writes the content that was judged into `place`, an empty folder of this program alone. Pairs of a copy and the path of its
    /// file. Left out are binaries, files that the command may build, those of which only the place was judged, those larger than
    /// 16 MB, and those of which no copy can be made: [`Self::changed`] finds changes of them.
    ///
    /// # Errors
    /// Names the first file that has other content by now.
    pub fn copies(&self, place: &Path) -> Result<Vec<(PathBuf, PathBuf)>, String> {
        let mut all = Vec::new();
        for (at, file) in self.0.iter().enumerate() {
            let Some(hash) = &file.hash else { continue };
            let Ok(meta) = file.path.symlink_metadata() else { continue };
            let Ok(bytes) = tiller_fs::beneath::read(&file.path, COPIED + 1) else { continue };
            if bytes.len() as u64 > COPIED {
                continue;
            }
            if blake3::hash(&bytes).to_hex().as_str() != hash {
                return Err(file.name.clone());
            }
            if file.is_written || bytes.iter().take(1024).any(|byte| *byte == 0) {
                continue;
            }
            let copy = place.join(at.to_string());
            let made = std::fs::write(&copy, &bytes)
                .and_then(|()| std::fs::set_permissions(&copy, meta.permissions()));
            if made.is_ok() {
                all.push((copy, file.path.clone()));
            }
        }
        Ok(all)
    }

    /// The files that a command runs in `folder`. Hashes nothing.
    pub fn of_command(folder: &Path, command: &str) -> Self {
        let folder = real(folder);
        let files = runs(&folder, command).into_iter();
        Self(
            files
                .map(|path| HeldFile::new(tiller_protocol::names::written(&path), folder.join(path)))
                .collect(),
        )
    }

    /// The first that did not stay as it was.
    pub fn changed(&self) -> Option<&str> {
        self.0.iter().find(|file| Stamp::at(&file.path) != file.stamp).map(|file| file.name.as_str())
    }
}

/// The files in `folder` that a command runs, relative to it. Reads scripts; hashes nothing.
pub fn runs(folder: &Path, command: &str) -> Vec<PathBuf> {
    let folder = real(folder);
    let found = find::command(&folder, command);
    let inside = found.files.iter().filter(|(_, runs)| **runs);
    inside.filter_map(|(path, _)| path.strip_prefix(&folder).ok().map(Path::to_owned)).collect()
}

/// Makes the pins of several commands of a folder: files that could run are looked for once.
pub struct Pinning {
    folder: PathBuf,
    /// By the folders that were looked through, and whether what programs are built from counts.
    known: BTreeMap<(Vec<PathBuf>, bool), Runnable>,
}

impl Pinning {
    /// For commands of this folder. Reads its path only.
    pub fn new(folder: &Path) -> Self {
        Self { folder: real(folder), known: BTreeMap::new() }
    }

    /// As [`Pins::of`].
    pub fn command(&mut self, command: &str) -> Pins {
        let found = find::command(&self.folder, command);
        self.pins(&found, command, "")
    }

    /// As [`Pins::of_program`].
    pub fn program(&mut self, below: &str, words: &[String], env: &[(String, String)]) -> Pins {
        let line = words.iter().map(|word| tiller_shell::quote(word)).collect::<Vec<_>>().join(" ");
        let found = find::program(&self.folder, below, &line, env);
        self.pins(&found, &words.join(" "), below)
    }

    fn pins(&mut self, found: &Found, command: &str, below: &str) -> Pins {
        let folder = self.folder.as_path();
        let name = |path: &Path| tiller_protocol::names::written(path.strip_prefix(folder).unwrap_or(path));
        let pin = |(path, runs): (&PathBuf, &bool)| (name(path), Pin { hash: hashes::of(path), runs: *runs });
        let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
        // A place in another one is looked through with it.
        let is_outer =
            |place: &&PathBuf| !found.places.iter().any(|other| *place != other && place.starts_with(other));
        let places: Vec<PathBuf> = found.places.iter().filter(is_outer).cloned().collect();
        let open = found.why.clone().map(|why| {
            let mut look = |builds: bool| {
                let look = |(places, builds): &(Vec<PathBuf>, bool)| Runnable::below(folder, places, *builds);
                self.known.entry((places.clone(), builds)).or_insert_with_key(look).clone()
            };
            let mut could_run = look(found.builds);
            if found.compiles && !found.builds && could_run.builds_for_compiler(folder) {
                could_run = look(true);
            }
            Unpinned { why, could_run }
        });
        let files = found.files.iter().map(pin).collect();
        Pins { command, below: below.to_owned(), files, open, builds: found.builds }
    }
}

fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

#[cfg(test)]
#[path = "pin_tests.rs"]
mod tests;
