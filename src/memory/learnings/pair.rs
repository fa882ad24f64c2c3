//! Failed calls that wait for a later call of the same kind that succeeds, in the same turn or the next one.

use std::collections::VecDeque;

use tiller_protocol::{FailureKind, Taint};

use super::kind::{CallKind, failure_kind, why};
use super::words::one_line;

/// Most failures that wait.
const WAITING: usize = 16;
/// Most calls between a failure and its fix that are remembered, and bytes of one.
const BETWEEN: usize = 6;
const CALL: usize = 300;
/// Bytes of an output that are kept.
const OUTPUT: usize = 4_000;

/// A call that has ended.
#[derive(Clone, Debug)]
pub struct CallSeen<'a> {
    pub kind: &'a CallKind,
    pub ok: bool,
    /// What the tool gave back.
    pub output: &'a str,
    pub taint: Taint,
    /// It changed files by a tool for that.
    pub edits: bool,
    /// It only read.
    pub reads: bool,
}

/// A failed call and the one that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub kind: FailureKind,
    /// The call that failed.
    pub failed: String,
    /// The line of its output that says why.
    pub why: String,
    /// The end of its output.
    pub output: String,
    /// The call that succeeded.
    pub worked: String,
    /// Calls between both that did more than read.
    pub between: Vec<String>,
    /// Files were edited between both: the fix is probably in them.
    pub edited: bool,
    pub taint: Taint,
}

#[derive(Debug)]
struct Failed {
    kind: CallKind,
    output: String,
    taint: Taint,
    turn: u64,
    between: Vec<String>,
    edited: bool,
}

/// Failed calls of one agent that wait for their fix.
#[derive(Debug, Default)]
pub struct Pairs {
    failed: VecDeque<Failed>,
    turn: u64,
}

impl Pairs {
    /// A turn begins: failures from before the last one no longer wait.
    pub fn turn_began(&mut self) {
        self.turn += 1;
        let oldest = self.turn.saturating_sub(1);
        self.failed.retain(|f| f.turn >= oldest);
    }

    /// Takes note of a call; the pair that it completes.
    pub fn seen(&mut self, call: &CallSeen<'_>) -> Option<Pair> {
        if !call.ok {
            self.failed.push_back(Failed {
                kind: call.kind.clone(),
                output: tail(call.output, OUTPUT),
                taint: call.taint,
                turn: self.turn,
                between: Vec::new(),
                edited: false,
            });
            while self.failed.len() > WAITING {
                self.failed.pop_front();
            }
            return None;
        }
        let found = self.failed.iter().rposition(|f| shared(&f.kind, call.kind).is_some());
        let Some(at) = found else {
            for waiting in self.failed.iter_mut().filter(|_| !call.reads) {
                waiting.edited |= call.edits;
                if waiting.between.len() < BETWEEN && !call.edits {
                    waiting.between.push(one_line(&call.kind.text, CALL));
                }
            }
            return None;
        };
        let failed = self.failed.remove(at)?;
        let subject = shared(&failed.kind, call.kind)?;
        // Earlier failures of the same kind are settled, too.
        self.failed.retain(|f| shared(&f.kind, call.kind).is_none());
        Some(Pair {
            kind: failure_kind(&failed.kind.tool, &subject, &failed.output),
            failed: failed.kind.text,
            why: why(&failed.output),
            output: failed.output,
            worked: call.kind.text.clone(),
            between: failed.between,
            edited: failed.edited,
            taint: failed.taint.max(call.taint),
        })
    }
}

/// The subject that both calls share, where they are of the same kind.
fn shared(failed: &CallKind, ok: &CallKind) -> Option<String> {
    if failed.tool != ok.tool {
        return None;
    }
    if failed.subjects.is_empty() && ok.subjects.is_empty() {
        return Some(String::new());
    }
    // The last one is what the line is for: `cd x && make && make install`.
    failed.subjects.iter().rev().find(|s| ok.subjects.contains(s)).cloned()
}

fn tail(text: &str, most: usize) -> String {
    let start = text.ceil_char_boundary(text.len().saturating_sub(most));
    text[start..].to_owned()
}

impl Pair {
    /// Whether a model should be asked for the learning: there is a difference to learn from.
    pub fn teaches(&self) -> bool {
        !self.why.is_empty() && (self.failed != self.worked || !self.between.is_empty())
    }

    /// What the difference of both calls says, without a model. `None`: nothing that holds beyond this case.
    pub fn fix_by_rule(&self) -> Option<(String, String)> {
        if self.why.is_empty()
            || self.edited
            || (self.kind.tool.starts_with("edit") || self.kind.tool == "patch")
        {
            return None;
        }
        if self.failed == self.worked {
            // Something between both calls was the fix; many calls say nothing.
            let last: Vec<&str> = self.between.iter().rev().take(2).rev().map(String::as_str).collect();
            if self.between.is_empty() || self.between.len() > 3 {
                return None;
            }
            let first = last.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", then ");
            return Some((format!("first {first}, then `{}`", self.worked), String::new()));
        }
        let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let (old, new) = (words(&self.failed), words(&self.worked));
        let added: Vec<&str> = new.iter().filter(|w| !old.contains(w)).map(String::as_str).collect();
        let removed: Vec<&str> = old.iter().filter(|w| !new.contains(w)).map(String::as_str).collect();
        let mut context = Vec::new();
        if !added.is_empty() {
            context.push(format!("added: {}", added.join(" ")));
        }
        if !removed.is_empty() {
            context.push(format!("left out: {}", removed.join(" ")));
        }
        Some((format!("`{}`", self.worked), one_line(&context.join("; "), CALL)))
    }
}
