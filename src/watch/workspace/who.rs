//! The author of a change. The system does not report it; it is inferred from the evidence around its time: an edit
//! tool announced the path and the file is as the tool left it; a command of an agent was running; git held the lock of
//! its index. Otherwise it is the person.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tiller_protocol::{AgentId, Who};

use super::tree::Meta;

/// How long announced writes are remembered.
const EXPECTED: Duration = Duration::from_secs(60);
/// Maximum number of remembered writes.
const MAX: usize = 20_000;
/// After the end of a command, events of its last changes may still arrive for this long.
const TAIL: Duration = Duration::from_millis(300);

/// One announced write.
#[derive(Debug)]
struct Expected {
    who: Who,
    at: Instant,
    /// The state in which the tool left the file, once it has written. `Some(None)`: deleted.
    left: Option<Option<Meta>>,
}

/// A command of an agent's, and its text.
pub(crate) type Command = (AgentId, Arc<str>);

/// What was running when an event arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub git: bool,
    /// A command of an agent ran, or had just ended.
    pub shell: Option<Command>,
}

/// Whether a command visibly runs git or a program that uses git. A script that runs git without naming it is not
/// recognised: the change is then attributed to git itself, which is true in any case.
pub(crate) fn runs_git(command: &str) -> bool {
    let word = |w: &str| matches!(w, "git" | "gh" | "hub" | "jj" | "tig" | "lazygit" | "stg" | "gitk");
    command.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).any(word)
}

/// The evidence for authors.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    expected: HashMap<PathBuf, Expected>,
    /// Running commands, the last one at the end.
    running: Vec<Command>,
    /// Ended commands, until their tail is over.
    ended: Vec<(Command, Instant)>,
    /// Whether git holds its lock.
    pub(crate) git_locked: bool,
    git_tail: Option<Instant>,
}

impl Evidence {
    /// A tool is about to write these files.
    pub(crate) fn expect(&mut self, paths: &[PathBuf], who: &Who, now: Instant) {
        if self.expected.len() + paths.len() > MAX {
            self.expected.retain(|_, e| now.duration_since(e.at) < EXPECTED / 10);
        }
        self.expected.retain(|_, e| now.duration_since(e.at) < EXPECTED);
        for path in paths.iter().take(MAX) {
            self.expected.insert(path.clone(), Expected { who: who.clone(), at: now, left: None });
        }
    }

    /// The tool has written; `metas` is the state of the files now.
    pub(crate) fn wrote(&mut self, metas: Vec<(PathBuf, Option<Meta>)>, who: &Who, now: Instant) {
        for (path, meta) in metas {
            self.expected.insert(path, Expected { who: who.clone(), at: now, left: Some(meta) });
        }
    }

    /// Whether a write of this file was announced lately.
    pub(crate) fn announced(&self, path: &Path) -> bool {
        self.expected.contains_key(path)
    }

    /// A command of an agent begins or ends.
    pub(crate) fn shell(&mut self, agent: &AgentId, what: &Arc<str>, running: bool, now: Instant) {
        let command = (agent.clone(), Arc::clone(what));
        if running {
            self.running.push(command);
        } else if let Some(at) = self.running.iter().position(|c| *c == command) {
            self.running.remove(at);
            self.ended.push((command, now));
        }
    }

    /// Git took its lock, or gave it back.
    pub(crate) fn git(&mut self, locked: bool, now: Instant) {
        self.git_locked = locked;
        self.git_tail = Some(now);
    }

    /// What is running now.
    pub(crate) fn trace(&mut self, now: Instant) -> Trace {
        self.ended.retain(|(_, at)| now.duration_since(*at) < TAIL);
        let shell = self.running.last().or(self.ended.last().map(|(command, _)| command)).cloned();
        let tail = self.git_tail.is_some_and(|at| now.duration_since(at) < TAIL / 6);
        Trace { git: self.git_locked || tail, shell }
    }

    /// The author of the file's present content.
    pub(crate) fn judge(&self, path: &Path, now: Option<Meta>, trace: &Trace) -> Who {
        if let Some(e) = self.expected.get(path)
            && e.left.is_none_or(|left| left == now)
        {
            return e.who.clone();
        }
        match trace {
            // Git run by an agent counts as the agent's command; git beside another command counts as another program.
            Trace { shell: Some((_, what)), git: true } if !runs_git(what) => Who::Git,
            Trace { shell: Some((agent, _)), .. } => Who::Shell { agent: agent.clone() },
            Trace { git: true, .. } => Who::Git,
            _ => Who::You,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(n: u64) -> Option<Meta> {
        Some(Meta { size: n, modified: 1, inode: 1 })
    }

    #[test]
    fn an_announced_write_is_the_agents_until_someone_else_changes_the_file() {
        let (now, path) = (Instant::now(), PathBuf::from("/w/a"));
        let who = Who::Agent { agent: AgentId::main() };
        let mut e = Evidence::default();
        let none = Trace::default();
        assert_eq!(e.judge(&path, meta(1), &none), Who::You);
        e.expect(std::slice::from_ref(&path), &who, now);
        assert_eq!(e.judge(&path, meta(1), &none), who);
        e.wrote(vec![(path.clone(), meta(2))], &who, now);
        assert_eq!(e.judge(&path, meta(2), &none), who);
        assert_eq!(e.judge(&path, meta(3), &none), Who::You);
        assert_eq!(e.judge(&path, None, &none), Who::You);
        e.expect(&[], &who, now + EXPECTED);
        assert_eq!(e.judge(&path, meta(2), &none), Who::You);
    }

    #[test]
    fn commands_cover_their_time_and_a_short_tail() {
        let now = Instant::now();
        let (agent, make, fmt) = (AgentId::main(), Arc::from("make"), Arc::from("cargo fmt"));
        let mut e = Evidence::default();
        assert_eq!(e.trace(now), Trace::default());
        e.shell(&agent, &make, true, now);
        e.shell(&agent, &fmt, true, now);
        assert_eq!(e.trace(now).shell, Some((agent.clone(), Arc::clone(&fmt))));
        e.shell(&agent, &fmt, false, now);
        let later = now + Duration::from_secs(100);
        assert_eq!(e.trace(later).shell, Some((agent.clone(), Arc::clone(&make))));
        e.shell(&agent, &make, false, later);
        assert_eq!(e.trace(later + TAIL / 2).shell, Some((agent.clone(), Arc::clone(&make))));
        assert_eq!(e.trace(later + TAIL).shell, None);
        // An end without a beginning is ignored.
        e.shell(&agent, &make, false, later);
    }

    #[test]
    fn git_is_git_only_when_no_agent_runs_it() {
        let now = Instant::now();
        let mut e = Evidence::default();
        e.git(true, now);
        let trace = e.trace(now + Duration::from_secs(9));
        assert_eq!(e.judge(Path::new("/a"), meta(1), &trace), Who::Git);
        // The person commits while an agent builds.
        let make = Arc::from("make");
        e.shell(&AgentId::main(), &make, true, now);
        let trace = e.trace(now);
        assert_eq!(e.judge(Path::new("/a"), meta(1), &trace), Who::Git);
        e.shell(&AgentId::main(), &make, false, now);
        let later = now + TAIL;
        let pull = Arc::from("cd x && /usr/bin/git pull");
        e.shell(&AgentId::main(), &pull, true, later);
        let trace = e.trace(later);
        assert_eq!(e.judge(Path::new("/a"), meta(1), &trace), Who::Shell { agent: AgentId::main() });
        e.shell(&AgentId::main(), &pull, false, later);
        e.git(false, now);
        assert!(!e.trace(now + TAIL).git);
    }
}
