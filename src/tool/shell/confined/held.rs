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
    /// Returns its difference (unified), with this name. `None`: it cannot be shown as text.
    fn difference(&self, name: &str) -> Option<String> {
        let kind = match (&self.was, &self.now) {
            (HeldState::Missing, _) => ChangeKind::Added,
            (_, HeldState::Missing) => ChangeKind::Deleted,
            _ => ChangeKind::Modified,
        };
        Some(diff::file(name, kind, &self.was.text()?, &self.now.text()?).preview())
    }

    /// Returns true if a question can show it whole.
    fn is_shown(&self) -> bool {
        self.was.size().max(self.now.size()) <= BYTES && self.was.text().and(self.now.text()).is_some()
    }
}

/// A held file as the question shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldWrite {
    pub path: PathBuf,
    pub instructs: bool,
    /// Unified.
    pub diff: String,
    /// It becomes a program.
    pub runs: bool,
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
    /// There is no one who could answer.
    pub unanswered: bool,
}

/// Asks about what is held back, once for all of it, and makes what the person keeps. The others become lines about what was
/// restored.
pub(crate) async fn settle(compared: &mut Compared, cx: &ToolCx) {
    let mut left = ALL;
    let mut asked = Vec::new();
    for file in std::mem::take(&mut compared.held) {
        let size = file.was.size() + file.now.size();
        if asked.len() < ASKED && size <= left && file.is_shown() {
            left -= size;
            asked.push(file);
        } else {
            compared.restored.push(file.words);
        }
    }
    if asked.is_empty() {
        return;
    }
    let root = &cx.workspace.root;
    let writes = asked.iter().filter_map(|file| {
        let name = file.path.strip_prefix(root).unwrap_or(&file.path).display().to_string();
        let (diff, runs) = (file.difference(&name)?, file.now.runs() && !file.was.runs());
        Some(HeldWrite { path: file.path.clone(), instructs: file.instructs, diff, runs })
    });
    let answer = tokio::select! {
        answer = cx.ports.confirm_held(&cx.agent, writes.collect()) => answer,
        () = cx.cancel.cancelled() => HeldAnswer::default(),
    };
    if answer.unanswered {
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
