//! Protected files that a command has written already and that are held back until it is decided whether they stay.

use std::path::{Path, PathBuf};

use tiller_protocol::Profile;

use super::{COMMIT_RUNS, INSTRUCTS, reason, rule_of};
use crate::decide::path::{pattern, short};
use crate::decide::{Policy, always, unwritable};
use crate::rules::PathUse;

/// The decision of mode and rules about a held file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldVerdict {
    /// It stays as the command left it.
    Keep,
    /// It stays out.
    LeaveOut,
    Ask,
}

/// A held file. `instructs`: agents read it as instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPath {
    pub path: PathBuf,
    pub instructs: bool,
}

/// Judges a held file: a rule that names it lets a file of instructions stay, nothing but a person lets a protected one.
pub fn held(policy: &Policy, agent: &str, profile: Profile, file: &HeldPath) -> HeldVerdict {
    let allowed = || rule_of(policy, agent, PathUse::Write.tool(), &file.path).is_some();
    if profile.only_looks() || unwritable(policy, agent, &file.path).is_some() {
        HeldVerdict::LeaveOut
    } else if file.instructs && allowed() {
        HeldVerdict::Keep
    } else {
        HeldVerdict::Ask
    }
}

/// The reason for a question about any other file that is held back.
const OBEYED: &str = "other programs run or obey it later";

/// Returns what keeping these files comes to, in words, and the rule that lets those of instructions stay; `None`: no rule does.
pub fn held_effects(policy: &Policy, files: &[HeldPath]) -> (Vec<String>, Option<String>) {
    let why = |file: &HeldPath| match file.instructs {
        true => reason(&file.path),
        false => OBEYED,
    };
    let mut effects = Vec::new();
    for reason in [INSTRUCTS, COMMIT_RUNS, OBEYED] {
        let some = files.iter().filter(|file| why(file) == reason);
        let names = some.map(|file| shown(policy, &file.path)).collect::<Vec<_>>().join(", ");
        if !names.is_empty() {
            effects.push(format!("changes {names}: {reason}"));
        }
    }
    let rules = files.iter().filter(|file| file.instructs);
    let rules: Option<Vec<String>> =
        rules.map(|file| pattern(PathUse::Write.tool(), short(policy, &file.path))).collect();
    let rules = rules.filter(|rules| !rules.is_empty()).map(|rules| always::joined(&rules));
    (effects, rules)
}

fn shown(policy: &Policy, path: &Path) -> String {
    short(policy, path).display().to_string()
}
