//! What a sandbox has refused to the programs of a command, as its supervisor saw it.

use std::sync::{Arc, Mutex};

use tiller_protocol::lock;

/// Refusals that are kept of one command. Programs that try again and again say nothing new.
const MOST: usize = 20;

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockedKind {
    /// Opening a file for writing.
    Write,
    /// A new file, folder or link.
    Create,
    Remove,
    Rename,
    /// Mode, owner, times or attributes of a file.
    Attributes,
    /// A connection to an address.
    Connect,
    /// A socket of a kind that is not allowed.
    Socket,
    /// Another system call.
    Call,
}

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedAction {
    pub kind: BlockedKind,
    /// A path, an address, or what a system call is for. As the program gave it: hostile until it is drawn.
    pub target: String,
    /// Name of the program; may be empty.
    pub program: String,
    /// Programs do this as a matter of course and continue without it: it explains no failure.
    pub minor: bool,
}

impl BlockedAction {
    /// For people and models: `writing /etc/hosts (touch)`.
    pub fn words(&self) -> String {
        let target = &self.target;
        let what = match self.kind {
            BlockedKind::Write => format!("writing {target}"),
            BlockedKind::Create => format!("creating {target}"),
            BlockedKind::Remove => format!("removing {target}"),
            BlockedKind::Rename => format!("renaming {target}"),
            BlockedKind::Attributes => format!("changing attributes of {target}"),
            BlockedKind::Connect => format!("connecting to {target}"),
            BlockedKind::Socket | BlockedKind::Call => target.clone(),
        };
        let words = if self.program.is_empty() { what } else { format!("{what} ({})", self.program) };
        crate::text::clean(words.as_bytes()).replace('\n', " ")
    }
}

/// What was refused, one after the other, for people and models; empty for nothing.
pub fn blocked_words(actions: &[BlockedAction]) -> String {
    const SHOWN: usize = 5;
    let mut words: Vec<String> = actions.iter().take(SHOWN).map(BlockedAction::words).collect();
    if actions.len() > SHOWN {
        words.push(format!("{} more", actions.len() - SHOWN));
    }
    words.join("; ")
}

/// The refusals of one command. Clones share them. The supervisor of the command adds, the call that runs it takes.
#[derive(Clone, Debug, Default)]
pub struct BlockedLog(Arc<Mutex<Vec<BlockedAction>>>);

impl BlockedLog {
    /// Adds a refusal, unless it is there already or there are too many.
    pub fn push(&self, action: BlockedAction) {
        let mut all = lock(&self.0);
        if all.len() < MOST && !all.contains(&action) {
            all.push(action);
        }
    }

    /// Adds several.
    pub fn extend(&self, actions: impl IntoIterator<Item = BlockedAction>) {
        actions.into_iter().for_each(|action| self.push(action));
    }

    /// Those that can explain a failure.
    pub fn serious(&self) -> Vec<BlockedAction> {
        self.all().into_iter().filter(|action| !action.minor).collect()
    }

    /// All, in the order in which they came.
    pub fn all(&self) -> Vec<BlockedAction> {
        lock(&self.0).clone()
    }

    /// All, in the order in which they came; afterwards there are none.
    pub fn take(&self) -> Vec<BlockedAction> {
        std::mem::take(&mut *lock(&self.0))
    }
}

/// What a sandbox refused to one command.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    /// Its system calls were supervised: what is not in the list was not refused, reads of hidden files excepted.
    pub known: bool,
    pub blocked: Vec<BlockedAction>,
}

impl Refusals {
    /// Those that can explain a failure.
    pub fn serious(&self) -> Vec<BlockedAction> {
        self.blocked.iter().filter(|action| !action.minor).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(kind: BlockedKind, target: &str) -> BlockedAction {
        BlockedAction { kind, target: target.into(), program: "touch".into(), minor: false }
    }

    #[test]
    fn refusals_are_told_once_each_and_in_one_line() {
        let log = BlockedLog::default();
        for n in 0..100 {
            log.push(action(BlockedKind::Write, &format!("/etc/{}", n / 2)));
        }
        let all = log.take();
        assert_eq!(all.len(), MOST);
        assert_eq!(all[1].target, "/etc/1");
        assert!(log.take().is_empty());
        let words = blocked_words(&all[..6]);
        assert!(words.starts_with("writing /etc/0 (touch); writing /etc/1 (touch); "), "{words}");
        assert!(words.ends_with("; 1 more"), "{words}");
        let odd = action(BlockedKind::Create, "/x\n\u{1b}[31my");
        assert!(!odd.words().contains(['\n', '\u{1b}']), "{}", odd.words());
    }

    #[test]
    fn what_programs_do_without_explains_nothing() {
        let log = BlockedLog::default();
        log.push(BlockedAction { minor: true, ..action(BlockedKind::Socket, "a socket") });
        let refusals = Refusals { known: true, blocked: log.take() };
        assert_eq!(refusals.blocked.len(), 1);
        assert!(refusals.serious().is_empty());
    }
}
