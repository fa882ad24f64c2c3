//! The run of a call's command: how it is confined, and what the sandbox refused to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::code::ScriptApproval;
use crate::files::Drafts;
use crate::shell::BlockedLog;

/// How the command of a call is confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandProfile {
    /// The user's own line: not confined.
    Person,
    /// Outside the sandbox, by the user's answer or rule: only protected names cannot be written.
    Outside,
    /// It was approved, or a rule or the mode allows it: it writes in the workspace.
    #[default]
    Workspace,
    /// It runs without a question because it only reads.
    Read,
}

/// The run of a call's command. Shared by the tool and its caller.
#[derive(Debug, Default)]
pub struct CommandRun {
    pub profile: CommandProfile,
    /// Set over the environment of the command alone: with them a command that only reads runs no other program.
    pub variables: Vec<(String, String)>,
    /// The approval of the calls that its script makes.
    pub script: Arc<ScriptApproval>,
    /// What its script's calls that wait would write: laid over the files that it reads.
    pub drafts: Option<Arc<Drafts>>,
    /// What the sandbox refused to commands of the call that failed.
    pub refused: BlockedLog,
    /// What else the audit says of the call.
    notes: Arc<Mutex<Vec<String>>>,
    /// What it seems to have refused besides, from the output alone.
    likely: OnceLock<String>,
    blocked: AtomicBool,
    unanswered: AtomicBool,
}

impl CommandRun {
    /// In this profile.
    pub fn new(profile: CommandProfile) -> Self {
        Self { profile, ..Self::default() }
    }

    /// Without a question, with these variables.
    pub fn reading(variables: Vec<(String, String)>) -> Self {
        Self { profile: CommandProfile::Read, variables, ..Self::default() }
    }

    /// The run of a call that a script makes: it reads these drafts over the files.
    pub fn over(drafts: Option<Arc<Drafts>>) -> Self {
        Self { drafts, ..Self::default() }
    }

    /// Another run of the same call, in this profile.
    #[must_use]
    pub fn again(&self, profile: CommandProfile) -> Self {
        Self {
            profile,
            script: Arc::clone(&self.script),
            drafts: self.drafts.clone(),
            refused: self.refused.clone(),
            notes: Arc::clone(&self.notes),
            ..Self::default()
        }
    }

    /// Adds words to the audit of the call.
    pub(crate) fn note(&self, words: String) {
        tiller_protocol::lock(&self.notes).push(words);
    }

    /// What the audit says of the call beside what decided about it.
    pub fn notes(&self) -> Vec<String> {
        tiller_protocol::lock(&self.notes).clone()
    }

    /// Notes what the sandbox seems to have refused, where its supervisor does not see it.
    pub(crate) fn seems_refused(&self, what: String) {
        // The first one counts.
        let _ = self.likely.set(what);
    }

    /// What the sandbox seems to have refused, as far as the output of the command shows it: a capability, or the reading
    /// of a path.
    pub fn likely(&self) -> Option<&str> {
        self.likely.get().map(String::as_str)
    }

    /// Notes that a question about what it did had no answer.
    pub(crate) fn leave_unanswered(&self) {
        self.unanswered.store(true, Ordering::Release);
    }

    /// Returns true if a question about what it did had no answer.
    pub fn is_unanswered(&self) -> bool {
        self.unanswered.load(Ordering::Acquire)
    }

    /// Notes that it failed because of the sandbox.
    pub fn block(&self) {
        self.blocked.store(true, Ordering::Release);
    }

    /// Whether it failed because of the sandbox.
    pub fn blocked(&self) -> bool {
        self.blocked.load(Ordering::Acquire)
    }
}
