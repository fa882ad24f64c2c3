//! What a file may cost in each request. Entries beyond it move into the archive, oldest first; none is dropped.

use std::sync::atomic::Ordering;

use tiller_protocol::memory::has_matcher;
use tiller_protocol::{MemoryFile, MemoryTarget, Provenance, Taint};

use super::document::{Document, Entry, Part, Shown};
use super::plan::Planned;
use super::power::ByOthers;
use super::{Memory, MemoryError, name};
use crate::rules::matcher::{of_others, parse};

/// Entries that are to be moved into the archive, and what a model made of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condensed {
    pub target: MemoryTarget,
    pub entries: Vec<Entry>,
    /// The least trusted of their origins.
    pub taint: Taint,
}

impl Memory {
    /// Bytes of a file that models may see.
    pub fn budget(&self, file: MemoryFile) -> u64 {
        let settings = self.settings();
        match file {
            MemoryFile::Memory => settings.memory,
            MemoryFile::User => settings.user,
        }
    }

    /// The oldest dated entries of each file that is over its budget; without them the rest fits. Text without a date is the
    /// person's own and stays, and so do rules, which have no power in the archive.
    pub fn over_budget(&self) -> Vec<Condensed> {
        self.look();
        self.note_unconfined_entries(None);
        let mut out = Vec::new();
        for target in self.targets() {
            let Ok(document) = self.read(target) else { continue };
            let entries = self.surplus(target, &document);
            if !entries.is_empty() {
                let taints = self.taints();
                // Origins that cannot be read are not trusted.
                let of = |entry| taints.as_ref().map_or(Taint::Web, |taints| taints.of_entry(entry));
                let taint = entries.iter().map(of).max().unwrap_or(Taint::Agent);
                out.push(Condensed { target, entries, taint });
            }
        }
        out
    }

    /// Moves entries into the archive of their file, and adds what sums them up, which is as trusted as the least trusted of
    /// them. Returns how many moved.
    ///
    /// # Errors
    /// When a summary is refused, or the file cannot be read or written; then nothing moves.
    pub fn condense(
        &self,
        surplus: &Condensed,
        summary: &[String],
        from: &Provenance,
    ) -> Result<usize, MemoryError> {
        let target = surplus.target;
        let from = Provenance { taint: from.taint.max(surplus.taint), ..from.clone() };
        for text in summary {
            self.screened(text, from.taint)?;
        }
        let mark = from.taint.mark();
        let added: Vec<Entry> =
            summary.iter().map(|text| Entry::new(&self.today(), &format!("{text}{mark}"))).collect();
        let edit = |document: &mut Document| {
            // The user may have edited some meanwhile: these stay.
            let moved = surplus.entries.iter().filter(|entry| document.archive(entry, true)).count();
            if moved > 0 {
                for entry in &added {
                    if !document.contains(entry) {
                        document.add(entry, None);
                    }
                }
            }
            Ok(moved)
        };
        self.change(target, edit, |moved| {
            let mut steps = Vec::new();
            for entry in added.iter().filter(|_| *moved > 0) {
                let planned = Planned::new(target, None, Some(entry.clone()), from.clone());
                steps.extend(self.steps(&planned, None));
            }
            Ok(steps)
        })
        .inspect(|moved| {
            self.archived.fetch_add(*moved, Ordering::Relaxed);
        })
    }

    /// How many entries moved into an archive since the last call, because their file was over its budget.
    pub fn newly_archived(&self) -> usize {
        self.archived.swap(0, Ordering::Relaxed)
    }

    /// Bytes of the file at `path` that a request holds. Rules stand with the calls that they concern, so that they cost nothing.
    pub(super) fn cost(&self, path: &str, document: &Document) -> u64 {
        let others = self.by_others();
        let shown = |part: Part<'_>| match part {
            Part::Entry(entry) if self.is_rule(path, entry, &others) => Shown::LeftOut,
            part => others.shown(path, part),
        };
        document.live_text_as(&shown).len() as u64
    }

    /// Whether an entry is a rule, which is in no prompt. One whose matcher cannot be read, or that text of others had a part
    /// in, is an entry like any other.
    fn is_rule(&self, path: &str, entry: &Entry, others: &ByOthers) -> bool {
        self.has_rule(&entry.text) && !of_others(&entry.text) && !others.has(path, entry)
    }

    /// Whether a text has matchers that can all be read.
    pub(super) fn has_rule(&self, text: &str) -> bool {
        let Some(tools) = self.tools.get().filter(|_| has_matcher(text)) else { return false };
        matches!(parse(text, tools), Ok(Some(_)))
    }

    /// Why a text with matchers is no rule, without a full stop; `None`: it is one, or it has no matcher. Without a catalog of
    /// tools nothing is known.
    pub fn rule_fault(&self, text: &str) -> Option<String> {
        parse(text, self.tools.get()?).err()
    }

    /// The dated entries that move into the archive because their file is over its budget, the oldest first.
    fn surplus(&self, target: MemoryTarget, document: &Document) -> Vec<Entry> {
        let Some(path) = self.path(target).map(|path| name(&path)) else { return Vec::new() };
        let (mut left, budget) = (self.cost(&path, document), self.budget(target.file));
        if left <= budget {
            return Vec::new();
        }
        let others = self.by_others();
        let archivable = |e: &&Entry| {
            let sent = others.shown(&path, Part::Entry(e)) != Shown::LeftOut;
            sent && !e.archived && !e.date.is_empty() && !self.is_rule(&path, e, &others)
        };
        let mut dated: Vec<&Entry> = document.entries().filter(archivable).collect();
        dated.sort_by(|a, b| a.date.cmp(&b.date));
        // Some room is left, so that not every new entry moves another one.
        let goal = budget / 5 * 4;
        let mut out = Vec::new();
        for entry in dated {
            if left <= goal {
                break;
            }
            left = left.saturating_sub(entry.line().len() as u64 + 3);
            out.push(entry.clone());
        }
        out
    }
}
