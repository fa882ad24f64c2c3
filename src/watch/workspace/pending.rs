//! Changes that have not settled yet. Pure: time is a parameter.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::who::Trace;

/// From this many waiting paths on, only their folders are stored, and scanned afterwards.
pub(crate) const STORM: usize = 1000;
/// Maximum number of folders of a storm; beyond it everything is scanned.
const FOLDERS: usize = 20_000;
/// A file that never settles is reported at this interval.
const LONGEST: Duration = Duration::from_secs(3);
/// A storm ends after this time without changes.
const LULL: Duration = Duration::from_millis(700);

/// One waiting path.
#[derive(Clone, Debug)]
struct Mark {
    first: Instant,
    last: Instant,
    trace: Trace,
}

/// A storm in progress.
#[derive(Debug)]
struct Storm {
    last: Instant,
    folders: HashSet<PathBuf>,
    /// Too many folders: everything is scanned.
    all: bool,
    /// The agents and commands that were active, by number of events.
    traces: Vec<(Trace, usize)>,
}

/// Changes that have settled.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SettledChanges {
    pub paths: Vec<(PathBuf, Trace)>,
    pub storm: Option<EndedStorm>,
}

/// A storm that has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EndedStorm {
    /// Folders to scan; `None`: all.
    pub folders: Option<Vec<PathBuf>>,
    pub trace: Trace,
}

/// All unsettled changes.
#[derive(Debug)]
pub(crate) struct Pending {
    quiet: Duration,
    marks: HashMap<PathBuf, Mark>,
    storm: Option<Storm>,
}

impl Pending {
    /// `quiet`: how long a path must stay unchanged.
    pub(crate) fn new(quiet: Duration) -> Self {
        Self { quiet, marks: HashMap::new(), storm: None }
    }

    pub(crate) fn mark(&mut self, path: &Path, trace: &Trace, now: Instant) {
        if let Some(storm) = &mut self.storm {
            storm.add(path, trace, now);
            return;
        }
        match self.marks.get_mut(path) {
            Some(mark) => {
                mark.last = now;
                mark.trace = trace.clone();
            }
            None => {
                self.marks.insert(path.to_owned(), Mark { first: now, last: now, trace: trace.clone() });
            }
        }
        if self.marks.len() > STORM {
            let mut storm = Storm { last: now, folders: HashSet::new(), all: false, traces: Vec::new() };
            for (path, mark) in self.marks.drain() {
                storm.add(&path, &mark.trace, now);
            }
            self.marks.shrink_to_fit();
            self.storm = Some(storm);
        }
    }

    /// A folder was created or removed during a storm.
    pub(crate) fn storm_folder(&mut self, folder: &Path) {
        if let Some(storm) = &mut self.storm {
            storm.folders.insert(folder.to_owned());
        }
    }

    pub(crate) fn in_storm(&self) -> bool {
        self.storm.is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_empty() && self.storm.is_none()
    }

    /// When the next change may settle.
    pub(crate) fn due(&self) -> Option<Instant> {
        let quiet = self.quiet;
        let marks = self.marks.values().map(|m| (m.last + quiet).min(m.first + LONGEST)).min();
        let storm = self.storm.as_ref().map(|s| s.last + LULL.max(quiet));
        marks.into_iter().chain(storm).min()
    }

    /// Takes the settled changes.
    pub(crate) fn take(&mut self, now: Instant) -> SettledChanges {
        let quiet = self.quiet;
        let due = |m: &Mark| (m.last + quiet).min(m.first + LONGEST);
        let mut paths = Vec::new();
        if self.marks.values().any(|m| due(m) <= now) {
            // Changes that are about to settle are taken too: both ends of a move belong together.
            self.marks.retain(|path, m| {
                let rested = due(m) <= now + quiet / 4;
                if rested {
                    paths.push((path.clone(), m.trace.clone()));
                }
                !rested
            });
        }
        paths.sort_by(|a, b| a.0.cmp(&b.0));
        let over = self.storm.as_ref().is_some_and(|s| now >= s.last + LULL.max(quiet));
        let storm = if over { self.storm.take().map(Storm::settle) } else { None };
        SettledChanges { paths, storm }
    }
}

impl Storm {
    fn add(&mut self, path: &Path, trace: &Trace, now: Instant) {
        self.last = now;
        match self.traces.iter_mut().find(|(t, _)| t == trace) {
            Some((_, n)) => *n += 1,
            None => self.traces.push((trace.clone(), 1)),
        }
        if self.all {
            return;
        }
        if let Some(folder) = path.parent()
            && !self.folders.contains(folder)
        {
            self.folders.insert(folder.to_owned());
        }
        if self.folders.len() > FOLDERS {
            self.all = true;
            self.folders = HashSet::new();
        }
    }

    fn settle(self) -> EndedStorm {
        let mut traces: Vec<Trace> = {
            let mut counted = self.traces;
            // The one with the most events first.
            counted.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
            counted.into_iter().map(|(trace, _)| trace).collect()
        };
        let others = if traces.is_empty() { Vec::new() } else { traces.split_off(1) };
        let mut trace = traces.pop().unwrap_or_default();
        // A command with a record of its files is named for these however few they are.
        for command in others.into_iter().flat_map(|other| other.shell) {
            let knows = command.witness.as_ref().is_some_and(|witness| witness.is_complete());
            if knows && !trace.shell.contains(&command) {
                trace.shell.push(command);
            }
        }
        let mut folders: Vec<PathBuf> = self.folders.into_iter().collect();
        folders.sort();
        EndedStorm { folders: (!self.all).then_some(folders), trace }
    }
}

#[cfg(test)]
mod tests {
    use super::super::who::Command;
    use super::*;

    const QUIET: Duration = Duration::from_millis(200);

    #[test]
    fn a_path_is_told_once_it_rests_and_again_if_it_never_does() {
        let (start, trace) = (Instant::now(), Trace::default());
        let mut p = Pending::new(QUIET);
        assert_eq!(p.due(), None);
        p.mark(Path::new("/a"), &trace, start);
        p.mark(Path::new("/a"), &trace, start + QUIET / 2);
        assert_eq!(p.take(start + QUIET), SettledChanges::default());
        assert_eq!(p.due(), Some(start + QUIET * 3 / 2));
        assert_eq!(p.take(start + QUIET * 3 / 2).paths, [(PathBuf::from("/a"), trace.clone())]);
        assert!(p.is_empty());
        let mut told = 0;
        for n in 0..100 {
            let now = start + QUIET / 2 * n;
            p.mark(Path::new("/b"), &trace, now);
            told += p.take(now).paths.len();
        }
        assert_eq!(told, 3, "10 s of changes");
    }

    #[test]
    fn many_paths_become_a_storm_that_remembers_folders() {
        let (start, trace) = (Instant::now(), Trace { git: true, shell: Vec::new() });
        let mut p = Pending::new(QUIET);
        for n in 0..STORM * 50 {
            p.mark(&PathBuf::from(format!("/d{}/f{n}", n % 7)), &trace, start + QUIET / 10);
            assert!(p.marks.len() <= STORM + 1);
        }
        let now = start + QUIET / 10 + LULL;
        assert_eq!(p.take(now - QUIET / 10), SettledChanges::default());
        let rested = p.take(now);
        let storm = rested.storm.unwrap();
        assert_eq!(storm.folders.unwrap().len(), 7);
        assert_eq!(storm.trace, trace);
        assert!(p.is_empty() && p.due().is_none());
    }

    /// Most events are of the person; a command that wrote some of the files is a candidate for these.
    #[test]
    fn a_storm_keeps_each_command_whose_witness_knows_its_files() {
        let start = Instant::now();
        let witness = tiller_tool::shell::Witness::default();
        witness.begin(std::time::SystemTime::now());
        let watch = tiller_tool::shell::CommandWatch::default();
        watch.attend(&witness);
        watch.sees_changes();
        let [seen, unseen] = [Some(witness), None].map(|witness| Command {
            agent: tiller_protocol::AgentId::main(),
            what: "make".into(),
            witness,
        });
        let mut p = Pending::new(QUIET);
        for n in 0..=STORM {
            let shell = match n {
                0 => vec![seen.clone()],
                1 => vec![unseen.clone()],
                _ => Vec::new(),
            };
            p.mark(&PathBuf::from(format!("/d/f{n}")), &Trace { git: false, shell }, start);
        }
        assert_eq!(p.take(start + LULL * 2).storm.unwrap().trace.shell, [seen]);
    }

    #[test]
    fn a_storm_over_too_many_folders_asks_for_everything() {
        let (start, trace) = (Instant::now(), Trace::default());
        let mut p = Pending::new(QUIET);
        for n in 0..FOLDERS * 2 {
            p.mark(&PathBuf::from(format!("/d{n}/f")), &trace, start);
        }
        assert_eq!(p.take(start + LULL * 2).storm.unwrap().folders, None);
    }
}
