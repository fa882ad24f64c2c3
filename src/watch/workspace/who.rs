//! The author of a change. The system does not report it; it is inferred from the evidence around its time: an edit
//! tool announced the path and the file is as the tool left it; a command of an agent was running, and its witness saw that it
//! changed the file, or none saw what it changes; git held the lock of its index. Otherwise it is the person.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tiller_protocol::{AgentId, Who};
use tiller_tool::shell::{FileMark, Whose, Witness};

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

/// A command of an agent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub agent: AgentId,
    pub what: Arc<str>,
    /// The changes of the command, where its supervisors see it.
    pub witness: Option<Witness>,
}

/// What was running when an event arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub git: bool,
    /// Commands of agents that ran, or had just ended; the last one first.
    pub shell: Vec<Command>,
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
    pub(crate) fn shell(&mut self, command: Command, running: bool, now: Instant) {
        self.ended.retain(|(_, at)| now.duration_since(*at) < TAIL);
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
        let ended = self.ended.iter().rev().map(|(command, _)| command);
        let shell = self.running.iter().rev().chain(ended).cloned().collect();
        let tail = self.git_tail.is_some_and(|at| now.duration_since(at) < TAIL / 6);
        Trace { git: self.git_locked || tail, shell }
    }

    /// The author of the file's present content, and the command that made it.
    pub(crate) fn judge(&self, path: &Path, now: Option<Meta>, trace: &Trace) -> (Who, Option<Arc<str>>) {
        if let Some(e) = self.expected.get(path)
            && e.left.is_none_or(|left| left == now)
        {
            return (e.who.clone(), None);
        }
        let by = |command: &Command| {
            (Who::Shell { agent: command.agent.clone() }, Some(Arc::clone(&command.what)))
        };
        match trace.author(path) {
            Author::Command(command) => by(command),
            // Git run by an agent counts as the agent's command; git beside another command counts as another program.
            Author::Perhaps(command) if !trace.git || runs_git(&command.what) => by(command),
            Author::Perhaps(_) | Author::Others if trace.git => (Who::Git, None),
            Author::Perhaps(_) | Author::Others => (Who::You, None),
        }
    }
}

/// The author of a change beside commands of agents.
#[derive(Debug, PartialEq, Eq)]
enum Author<'a> {
    /// This command changed the file, perhaps others too.
    Command(&'a Command),
    /// The changes of this command are not recorded.
    Perhaps(&'a Command),
    /// None of them did.
    Others,
}

impl Trace {
    fn author(&self, path: &Path) -> Author<'_> {
        let mark = if self.shell.is_empty() { None } else { FileMark::of(path) };
        let mut author = Author::Others;
        for command in &self.shell {
            let witness = command.witness.as_ref().filter(|witness| witness.is_complete());
            match (witness.map(|witness| witness.whose(path, mark)), &author) {
                (Some(Whose::Others), _) => {}
                (Some(_), _) => return Author::Command(command),
                (None, Author::Others) => author = Author::Perhaps(command),
                (None, _) => {}
            }
        }
        author
    }
}

#[cfg(test)]
mod tests {
    use tiller_tool::shell::Left;

    use super::*;

    fn command(what: &str) -> Command {
        Command { agent: AgentId::main(), what: what.into(), witness: None }
    }

    fn meta(n: u64) -> Option<Meta> {
        Some(Meta { size: n, modified: 1, inode: 1 })
    }

    #[test]
    fn an_announced_write_is_the_agents_until_someone_else_changes_the_file() {
        let (now, path) = (Instant::now(), PathBuf::from("/w/a"));
        let who = Who::Agent { agent: AgentId::main() };
        let mut e = Evidence::default();
        let none = Trace::default();
        assert_eq!(e.judge(&path, meta(1), &none).0, Who::You);
        e.expect(std::slice::from_ref(&path), &who, now);
        assert_eq!(e.judge(&path, meta(1), &none).0, who);
        e.wrote(vec![(path.clone(), meta(2))], &who, now);
        assert_eq!(e.judge(&path, meta(2), &none).0, who);
        assert_eq!(e.judge(&path, meta(3), &none).0, Who::You);
        assert_eq!(e.judge(&path, None, &none).0, Who::You);
        e.expect(&[], &who, now + EXPECTED);
        assert_eq!(e.judge(&path, meta(2), &none).0, Who::You);
    }

    #[test]
    fn commands_cover_their_time_and_a_short_tail() {
        let now = Instant::now();
        let (make, fmt) = (command("make"), command("cargo fmt"));
        let mut e = Evidence::default();
        assert_eq!(e.trace(now), Trace::default());
        e.shell(make.clone(), true, now);
        e.shell(fmt.clone(), true, now);
        assert_eq!(e.trace(now).shell, [fmt.clone(), make.clone()]);
        e.shell(fmt, false, now);
        let later = now + Duration::from_secs(100);
        assert_eq!(e.trace(later).shell, std::slice::from_ref(&make));
        e.shell(make.clone(), false, later);
        assert_eq!(e.trace(later + TAIL / 2).shell, std::slice::from_ref(&make));
        assert_eq!(e.trace(later + TAIL).shell, []);
        // Of many commands without a change between them only the last ones are held.
        for n in 0..100 {
            e.shell(make.clone(), true, later + TAIL * n);
            e.shell(make.clone(), false, later + TAIL * n);
        }
        assert_eq!(e.ended.len(), 1);
        assert_eq!(e.trace(later + TAIL * 100).shell, []);
        // An end without a beginning is ignored.
        e.shell(make, false, later);
    }

    /// Of two commands that run at once and the person, the one that wrote is named; where there is no record, the command whose
    /// changes are unknown.
    #[test]
    fn w19_the_witness_tells_whose_a_change_is() {
        let now = Instant::now();
        let [first, second] = [("first", "a"), ("second", "b")].map(|(what, name)| {
            let witness = Witness::default();
            witness.begin(std::time::SystemTime::now());
            let watch = tiller_tool::shell::CommandWatch::default();
            watch.attend(&witness);
            watch.sees_changes();
            watch.changed(Path::new(name), Left::Nothing, None);
            Command { witness: Some(witness), ..command(what) }
        });
        let unknown = command("unknown");
        let rows: &[(&[&Command], &str, Option<&str>)] = &[
            (&[&first, &second], "a", Some("first")),
            (&[&first, &second], "b", Some("second")),
            (&[&first, &second], "c", None),
            (&[&first, &unknown], "a", Some("first")),
            (&[&first, &unknown], "c", Some("unknown")),
            (&[], "a", None),
        ];
        for (running, path, wanted) in rows {
            let mut e = Evidence::default();
            running.iter().for_each(|command| e.shell((*command).clone(), true, now));
            let trace = e.trace(now);
            let (who, during) = e.judge(Path::new(path), None, &trace);
            assert_eq!(during.as_deref(), *wanted, "{path} {running:?}");
            assert_eq!(who == Who::You, wanted.is_none(), "{path} {running:?}");
        }
    }

    #[test]
    fn git_is_git_only_when_no_agent_runs_it() {
        let now = Instant::now();
        let mut e = Evidence::default();
        e.git(true, now);
        let trace = e.trace(now + Duration::from_secs(9));
        assert_eq!(e.judge(Path::new("/a"), meta(1), &trace).0, Who::Git);
        // The person commits while an agent builds.
        e.shell(command("make"), true, now);
        let trace = e.trace(now);
        assert_eq!(e.judge(Path::new("/a"), meta(1), &trace).0, Who::Git);
        e.shell(command("make"), false, now);
        let later = now + TAIL;
        let pull = command("cd x && /usr/bin/git pull");
        e.shell(pull.clone(), true, later);
        let trace = e.trace(later);
        assert_eq!(e.judge(Path::new("/a"), meta(1), &trace).0, Who::Shell { agent: AgentId::main() });
        e.shell(pull, false, later);
        e.git(false, now);
        assert!(!e.trace(now + TAIL).git);
    }
}
