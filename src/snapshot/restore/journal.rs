//! The journal of a restore: the list of its operations, on disk before the first file changes.

use std::path::{Path, PathBuf};

use crate::error::{Result, at};
use crate::names;
use crate::objects::id::Id;
use crate::objects::object::Entry;
use crate::objects::place;
use crate::steps::Steps;

/// One operation of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub(crate) path: Vec<u8>,
    pub(crate) from: Option<Entry>,
    pub(crate) to: Option<Entry>,
    /// Whether a file with several names may be replaced.
    pub(crate) links: bool,
    /// The state that `to` comes from, where the one to restore does not cover the path.
    pub(crate) source: Option<Id>,
}

/// A restore that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Journal {
    /// Name of the folder in the workspace that holds new contents before, and replaced files after they are swapped.
    pub(crate) staging: String,
    /// The state before it.
    pub(crate) before: Id,
    /// The state to restore.
    pub(crate) to: Id,
    pub(crate) ops: Vec<Op>,
    /// The name of the folder of the store with copies of what stood at files that others may have written.
    pub(crate) apart: Option<String>,
}

/// Progress of a journalled restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Contents are staged; no file was changed.
    Staging,
    /// Files are being changed.
    Going,
}

fn file(dir: &Path, phase: Phase) -> PathBuf {
    dir.join(match phase {
        Phase::Staging => "journal.new",
        Phase::Going => "journal",
    })
}

fn put(entry: Option<Entry>) -> String {
    entry.map_or_else(|| "-".into(), |e| format!("{:o}:{}", e.bits(), e.id))
}

fn get(text: &str) -> Option<Option<Entry>> {
    if text == "-" {
        return Some(None);
    }
    let (bits, id) = text.split_once(':')?;
    Entry::from_bits(u32::from_str_radix(bits, 8).ok()?, id.parse().ok()?).map(Some)
}

fn put_aside(path: &Path, dir: &Path, steps: &Steps) -> Result<()> {
    steps.at("move journal aside").map_err(at(path))?;
    std::fs::rename(path, Journal::damaged(dir)).map_err(at(path))
}

impl Journal {
    fn text(&self) -> String {
        let mut out = format!("tiller-restore 1\n{}\n{}\n{}\n", self.staging, self.before, self.to);
        for op in &self.ops {
            let links = if op.links { "links" } else { "one" };
            let source = op.source.map(|id| format!(" {id}")).unwrap_or_default();
            let path = names::escape(&op.path);
            out.push_str(&format!("{} {} {links} {path}{source}\n", put(op.from), put(op.to)));
        }
        out.push_str("end\n");
        // After the end, where an older program does not read.
        if let Some(apart) = &self.apart {
            out.push_str(&format!("apart {apart}\n"));
        }
        out
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        (lines.next()? == "tiller-restore 1").then_some(())?;
        let staging = lines.next()?.to_owned();
        let safe = staging.as_bytes().starts_with(names::STAGING) && !staging.contains('/');
        safe.then_some(())?;
        let (before, to) = (lines.next()?.parse().ok()?, lines.next()?.parse().ok()?);
        let mut ops = Vec::new();
        while let Some(line) = lines.next() {
            if line == "end" {
                let apart = lines.next().and_then(|line| line.strip_prefix("apart "));
                let apart = apart.filter(|name| !name.contains('/')).map(str::to_owned);
                return Some(Self { staging, before, to, ops, apart });
            }
            let mut words = line.split(' ');
            let (from, to) = (get(words.next()?)?, get(words.next()?)?);
            let links = words.next()? == "links";
            let path = names::unescape(words.next()?)?;
            // The journal of an older program names none.
            let source = words.next().and_then(|id| id.parse().ok());
            ops.push(Op { path, from, to, links, source });
        }
        None
    }

    /// Writes it durably, before anything is staged.
    pub(crate) fn begin(&self, dir: &Path, steps: &Steps) -> Result<()> {
        place::write(&file(dir, Phase::Staging), self.text().as_bytes(), steps)
    }

    /// From now on files change, and an interrupted restore will be finished.
    pub(crate) fn go(dir: &Path, steps: &Steps) -> Result<()> {
        let (old, new) = (file(dir, Phase::Staging), file(dir, Phase::Going));
        steps.at("journal goes").map_err(at(&new))?;
        std::fs::rename(old, &new).map_err(at(&new))?;
        if !steps.durable() {
            return Ok(());
        }
        std::fs::File::open(dir).and_then(|d| d.sync_all()).map_err(at(dir))
    }

    /// Removes the journal at the end of the restore.
    pub(crate) fn end(dir: &Path, phase: Phase, steps: &Steps) -> Result<()> {
        let path = file(dir, phase);
        steps.at("journal ends").map_err(at(&path))?;
        std::fs::remove_file(&path).map_err(at(path))?;
        if !steps.durable() {
            return Ok(());
        }
        // A journal that came back after a loss of power would be carried out once more.
        std::fs::File::open(dir).and_then(|d| d.sync_all()).map_err(at(dir))
    }

    /// Where an unreadable journal is moved; `verify` reports it.
    pub(crate) fn damaged(dir: &Path) -> PathBuf {
        dir.join("journal.damaged")
    }

    /// The interrupted restore, if there is one. An unreadable journal is moved away, so that it does not block
    /// everything else.
    pub(crate) fn find(dir: &Path, steps: &Steps) -> Result<Option<(Self, Phase)>> {
        for phase in [Phase::Going, Phase::Staging] {
            let path = file(dir, phase);
            match std::fs::read_to_string(&path) {
                Ok(text) => match Self::parse(&text) {
                    Some(journal) => return Ok(Some((journal, phase))),
                    None => put_aside(&path, dir, steps)?,
                },
                Err(e) if e.kind() == std::io::ErrorKind::InvalidData => put_aside(&path, dir, steps)?,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(at(path)(e)),
            }
        }
        Ok(None)
    }
}
