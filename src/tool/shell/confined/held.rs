//! Protected files that a command wrote and that are held back: the person decides whether they stay.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_protocol::ChangeKind;

use crate::ToolCx;
use crate::files::change::diff;
use crate::shell::processes::launch::Compared;

/// Files of one command that are asked about. The others stay out.
const ASKED: usize = 100;
/// Bytes of one file that is asked about, and of all of them: more is not read to its end.
const BYTES: usize = 256 << 10;
const ALL: usize = 1 << 20;

/// A state of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldState {
    Missing,
    /// Content and mode.
    File(Arc<[u8]>, u32),
    /// The path that a link leads to.
    Link(PathBuf),
}

/// Puts a held file in its place.
pub trait HeldRelease: Send + Sync + std::fmt::Debug {
    /// Makes what the command left of the file, exactly, unless its place was changed since. Writes files.
    ///
    /// # Errors
    /// When it cannot be made, or something else is there.
    fn release(&self, file: &HeldFile) -> io::Result<()>;
}

/// A protected file that a command wrote. Its former state is in place.
#[derive(Clone, Debug)]
pub struct HeldFile {
    pub path: PathBuf,
    /// The folder below which folders may be made for it.
    pub above: PathBuf,
    pub was: HeldState,
    pub now: HeldState,
    /// Agents read it as instructions.
    pub instructs: bool,
    /// The line about it where it stays out, without a full stop.
    pub words: String,
    pub release: Arc<dyn HeldRelease>,
}

impl HeldState {
    fn size(&self) -> usize {
        match self {
            Self::File(bytes, _) => bytes.len(),
            Self::Missing | Self::Link(_) => 0,
        }
    }

    /// Returns the text of a difference; `None`: it is not text.
    fn text(&self) -> Option<String> {
        match self {
            Self::Missing => Some(String::new()),
            Self::File(bytes, _) => std::str::from_utf8(bytes).ok().map(str::to_owned),
            Self::Link(to) => Some(format!("(a link to {})\n", to.display())),
        }
    }

    fn runs(&self) -> bool {
        matches!(self, Self::File(_, mode) if mode & 0o111 != 0)
    }
}

impl HeldFile {
    /// Returns its whole difference (unified), with this name. `None`: it is too large, or not text.
    fn difference(&self, name: &str) -> Option<String> {
        if self.was.size().max(self.now.size()) > BYTES {
            return None;
        }
        let kind = match (&self.was, &self.now) {
            (HeldState::Missing, _) => ChangeKind::Added,
            (_, HeldState::Missing) => ChangeKind::Deleted,
            _ => ChangeKind::Modified,
        };
        let shown = diff::file(name, kind, &self.was.text()?, &self.now.text()?);
        (shown.cut == 0).then_some(shown.file.diff)
    }

    fn kind(&self) -> HeldKind {
        match &self.now {
            HeldState::Missing => HeldKind::Removed,
            HeldState::Link(_) => HeldKind::Link,
            HeldState::File(..) if self.now.runs() && !self.was.runs() => HeldKind::Program,
            HeldState::File(..) => HeldKind::File,
        }
    }

    /// Returns it as the question shows it, with this name. `None`: it cannot be shown whole.
    fn write(&self, name: &str) -> Option<HeldWrite> {
        let diff = self.difference(name)?;
        Some(HeldWrite { path: self.path.clone(), instructs: self.instructs, diff, kind: self.kind() })
    }
}

/// The kind of change of a held file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldKind {
    /// Its content is new or changed.
    File,
    /// It becomes a program.
    Program,
    Link,
    Removed,
}

impl HeldKind {
    /// Returns the word of the question's arguments.
    pub fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Program => "program",
            Self::Link => "link",
            Self::Removed => "removed",
        }
    }
}

/// A held file as the question shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldWrite {
    pub path: PathBuf,
    pub instructs: bool,
    /// Unified, and whole.
    pub diff: String,
    pub kind: HeldKind,
}

/// Held files of one command.
#[derive(Debug, Default)]
struct Asked {
    /// Those that are asked about, each with what the question shows of it.
    pairs: Vec<(HeldFile, HeldWrite)>,
    /// Those that no question can show whole, and those that are too many.
    left: Vec<HeldFile>,
}

impl Asked {
    /// Makes the differences. Takes a while. `root`: of the workspace.
    fn of(held: Vec<HeldFile>, root: &Path) -> Self {
        let mut asked = Self::default();
        let mut room = ALL;
        for file in held {
            let size = file.was.size() + file.now.size();
            let fits = asked.pairs.len() < ASKED && size <= room;
            match fits.then(|| file.write(&shown(&file.path, root))).flatten() {
                Some(write) => {
                    room -= size;
                    asked.pairs.push((file, write));
                }
                None => asked.left.push(file),
            }
        }
        asked
    }
}

/// The decision about a held file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldDecision {
    /// A rule lets it stay.
    Allowed,
    /// The person keeps it.
    Kept,
    /// The person leaves it out.
    LeftOut,
    /// It stays out: a mode or a rule forbids it, or no person can answer.
    Refused,
}

/// The answer about held files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldAnswer {
    /// One for each file, in their order; a missing one is refused.
    pub decisions: Vec<HeldDecision>,
    /// Words of the person with a no.
    pub comment: Option<String>,
    /// No answer is possible.
    pub unanswered: bool,
}

/// Asks about what is held back, once for all of it, and makes what the person keeps. The others become lines about what was
/// restored.
pub(crate) async fn settle(compared: &mut Compared, cx: &ToolCx) {
    let held = std::mem::take(&mut compared.held);
    if held.is_empty() {
        return;
    }
    let words: Vec<String> = held.iter().map(|file| file.words.clone()).collect();
    let root = &cx.workspace.root;
    let at = root.clone();
    let Ok(Asked { pairs, left }) = tokio::task::spawn_blocking(move || Asked::of(held, &at)).await else {
        compared.restored.extend(words);
        return;
    };
    compared.restored.extend(left.iter().map(|file| file.words.clone()));
    if pairs.is_empty() {
        return;
    }
    let (asked, writes): (Vec<HeldFile>, Vec<HeldWrite>) = pairs.into_iter().unzip();
    let answer = tokio::select! {
        answer = cx.ports.confirm_held(&cx.agent, writes, left.len()) => answer,
        () = cx.cancel.cancelled() => HeldAnswer::default(),
    };
    // What a mode or a rule forbids had no answer either.
    if answer.unanswered || answer.decisions.contains(&HeldDecision::Refused) {
        cx.run.leave_unanswered();
    }
    let mut kept = Vec::new();
    for (at, file) in asked.into_iter().enumerate() {
        match answer.decisions.get(at).copied().unwrap_or(HeldDecision::Refused) {
            HeldDecision::Refused => compared.restored.push(file.words),
            HeldDecision::LeftOut => compared.restored.push(format!("{}; the user left it out", file.words)),
            decision => match release(file.clone()).await {
                Ok(()) => {
                    compared.remade.push(file.path.clone());
                    kept.extend((decision == HeldDecision::Kept).then_some(file.path));
                }
                Err(why) => compared.restored.push(format!("{}; it could not be kept: {why}", file.words)),
            },
        }
    }
    if let Some(comment) = answer.comment {
        compared.told.push(format!("the user said: {comment}"));
    }
    cx.witness.remade(&compared.remade);
    if !kept.is_empty() {
        let names: Vec<String> = kept.iter().map(|path| shown(path, root)).collect();
        compared.told.push(format!("the user kept what the command wrote in {}", names.join(", ")));
        cx.run.note(format!("protected files kept: {}", names.join(", ")));
    }
}

fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// Puts it in its place, on a thread for work that blocks.
async fn release(file: HeldFile) -> io::Result<()> {
    let made = tokio::task::spawn_blocking(move || file.release.release(&file)).await;
    made.unwrap_or_else(|e| Err(io::Error::other(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nothing;

    impl HeldRelease for Nothing {
        fn release(&self, _file: &HeldFile) -> io::Result<()> {
            Ok(())
        }
    }

    fn text(text: &str) -> HeldState {
        HeldState::File(text.as_bytes().into(), 0o644)
    }

    fn held(name: &str, was: HeldState, now: HeldState) -> HeldFile {
        HeldFile {
            path: Path::new("/work").join(name),
            above: "/work".into(),
            was,
            now,
            instructs: true,
            words: format!("{name} is protected"),
            release: Arc::new(Nothing),
        }
    }

    /// A decision is about the file of its place in the list, and a yes about what was shown.
    #[test]
    fn what_no_question_shows_whole_is_left_out_and_moves_no_decision() {
        let lines = |word: &str| (0..25_000).map(|n| format!("{word} {n}\n")).collect::<String>();
        let (old, new) = (lines("a"), lines("b"));
        assert!(old.len() < BYTES && old.len() + new.len() > BYTES, "each fits, their difference does not");
        let files = vec![
            held("one", HeldState::Missing, text("one\n")),
            held("large", text(&old), text(&new)),
            held("two", text("one\n"), HeldState::Missing),
            held("bytes", HeldState::Missing, HeldState::File([0xff, 0xfe][..].into(), 0o644)),
            held("three", HeldState::Missing, HeldState::File(b"#!/bin/sh\n"[..].into(), 0o755)),
            held("four", HeldState::Missing, HeldState::Link("one".into())),
        ];
        let asked = Asked::of(files, Path::new("/work"));
        let pairs: Vec<_> = asked.pairs.iter().map(|(file, write)| (&file.path, write)).collect();
        for (path, write) in &pairs {
            assert_eq!(**path, write.path);
        }
        let kinds: Vec<_> = pairs.iter().map(|(_, write)| write.kind).collect();
        assert_eq!(kinds, [HeldKind::File, HeldKind::Removed, HeldKind::Program, HeldKind::Link]);
        let left: Vec<_> = asked.left.iter().map(|file| file.words.as_str()).collect();
        assert_eq!(left, ["large is protected", "bytes is protected"]);
    }

    #[test]
    fn a_path_that_is_held_again_is_held_once_with_its_last_state() {
        let mut all = Compared::default();
        for n in 0..3 {
            let held =
                vec![held("a", HeldState::Missing, text(&n.to_string())), held("b", text("x"), text("y"))];
            all.extend(Compared { held, restored: vec!["c".into()], ..Compared::default() });
        }
        let states: Vec<_> = all.held.iter().map(|file| file.now.clone()).collect();
        assert_eq!(states, [text("2"), text("y")]);
        assert_eq!(all.restored, ["c"]);
        for n in 0..1000 {
            let held = vec![held(&format!("a{n}"), HeldState::Missing, text("x"))];
            all.extend(Compared { held, restored: vec![format!("d{n}")], ..Compared::default() });
        }
        assert_eq!((all.held.len(), all.restored.len()), (200, 200));
    }
}
