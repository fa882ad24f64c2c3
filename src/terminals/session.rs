//! The terminals of the settings, for one run of Tiller.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tiller_config::schema::{Terminal, TerminalKind};
use tiller_protocol::{TerminalPlace, lock};
use tiller_tool::shell::{Elsewhere, Terminals};

use crate::kinds::{self, Setting, Vars};
use crate::place::{Place, terminal_place};

/// Seconds for which a shell there waits for its connection to come back.
const KEEP: u32 = 300;
/// This machine, when the settings give the name to no other.
const LOCAL: &str = "local";

/// Finds terminals, and keeps those that are in use.
pub struct Session {
    settings: BTreeMap<String, Terminal>,
    vars: Vars,
    /// Where the states of files are kept between runs.
    state: PathBuf,
    keep: u32,
    /// By name and folder.
    open: Mutex<HashMap<(String, PathBuf), Arc<Place>>>,
}

impl Session {
    /// `vars`: the environment of the person's programs, for instance where the agent of ssh is. `state`: a folder for
    /// what is known of files there.
    pub fn new(settings: BTreeMap<String, Terminal>, vars: Vec<(String, String)>, state: PathBuf) -> Self {
        Self { settings, vars, state, keep: KEEP, open: Mutex::default() }
    }

    /// How long a shell there waits for its connection to come back, in seconds.
    #[must_use]
    pub fn keep(mut self, seconds: u32) -> Self {
        self.keep = seconds;
        self
    }

    /// The terminals that are not this machine, by name.
    pub fn places(settings: &BTreeMap<String, Terminal>) -> Vec<TerminalPlace> {
        let elsewhere = settings.iter().filter(|(_, terminal)| terminal.kind != TerminalKind::Local);
        elsewhere.map(|(name, terminal)| terminal_place(name, terminal.kind)).collect()
    }

    /// Removes containers whose Tiller was killed. Blocks while docker and podman answer; without a terminal of these
    /// kinds nothing is started.
    pub fn sweep(&self) -> usize {
        let has = |kind: TerminalKind| self.settings.values().any(|t| t.kind == kind && t.image.is_some());
        let programs = [(TerminalKind::Docker, "docker"), (TerminalKind::Podman, "podman")];
        let used = programs.into_iter().filter(|(kind, _)| has(*kind));
        let launches = used.filter_map(|(_, program)| kinds::program(program, &self.vars));
        launches.map(|launch| crate::owner::sweep(&launch)).sum()
    }
}

impl Terminals for Session {
    fn find(&self, name: &str, root: &Path) -> Result<Option<Arc<dyn Elsewhere>>, String> {
        let Some(terminal) = self.settings.get(name) else {
            if name == LOCAL {
                return Ok(None);
            }
            return Err(tiller_config::schema::unknown_terminal(name, self.names()));
        };
        let key = (name.to_owned(), root.to_owned());
        let mut open = lock(&self.open);
        if let Some(place) = open.get(&key) {
            return Ok(Some(Arc::clone(place) as Arc<dyn Elsewhere>));
        }
        let setting = Setting { name, terminal, root, vars: &self.vars };
        let kind =
            kinds::make(&setting).map_err(|why| format!("the terminal {name} cannot be used: {why}"))?;
        let Some(kind) = kind else { return Ok(None) };
        let place = Arc::new(Place::new(&setting, kind, self.keep, &self.state));
        open.insert(key, Arc::clone(&place));
        Ok(Some(place))
    }

    fn names(&self) -> Vec<String> {
        self.settings.keys().cloned().collect()
    }
}
