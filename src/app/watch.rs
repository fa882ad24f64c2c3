//! The watcher for the engine. It starts when the engine can receive its reports.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tiller_engine::{StaleFile, StaleFiles, WatchReport, WatchSink};
use tiller_protocol::lock;
use tiller_protocol::{AgentId, Clock, Who};
use tiller_tool::cx::SeenFile;
use tiller_tool::shell::Witness;
use tiller_watch::workspace::{Config, Report, Watcher};

/// See [`tiller_engine::Watcher`].
pub(super) struct Watch {
    root: PathBuf,
    config: Mutex<Option<Config>>,
    running: Mutex<Option<Arc<Watcher>>>,
    for_hooks: bool,
}

/// How long is waited for the first walk, and for the last changes.
const SETTLED: Duration = Duration::from_secs(10);

impl Watch {
    /// Watches `root`, with the person's settings; `own`: Tiller's own folders, never watched.
    pub(super) fn new(
        root: &Path,
        settings: &tiller_config::schema::Watch,
        own: Vec<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        // Temporary files of a restore, in the folder itself.
        let staged = format!("/{}*", tiller_snapshot::STAGING_PREFIX);
        let ignore = settings.ignore.iter().cloned().chain([staged]).collect();
        let config = Config {
            debounce: Duration::from_millis(settings.debounce),
            ignore,
            poll: settings.poll,
            own,
            ..Config::new(clock)
        };
        Self {
            root: root.to_path_buf(),
            config: Mutex::new(Some(config)),
            running: Mutex::new(None),
            for_hooks: false,
        }
    }

    /// For hooks alone.
    pub(super) fn for_hooks(mut self, alone: bool) -> Self {
        self.for_hooks = alone;
        self
    }

    fn with<R>(&self, f: impl FnOnce(&Watcher) -> R) -> Option<R> {
        // Without the lock, since some answers read files.
        let watcher = lock(&self.running).clone();
        watcher.as_deref().map(f)
    }
}

impl tiller_engine::Watcher for Watch {
    fn start(&self, sink: WatchSink) {
        let Some(config) = lock(&self.config).take() else { return };
        let hear = Arc::new(move |report| {
            let seen = match report {
                Report::Changes(changes) => WatchReport { changes, ..WatchReport::default() },
                Report::Git(git) => WatchReport { git: Some(git), ..WatchReport::default() },
                Report::Notice(notice) => WatchReport { notice: Some(notice), ..WatchReport::default() },
                Report::Ready { .. } => return,
            };
            // False: the engine has ended, and the watcher ends with it.
            let _ = sink(seen);
        });
        *lock(&self.running) = Some(Arc::new(Watcher::start(&self.root, config, hear)));
    }

    fn is_for_hooks(&self) -> bool {
        self.for_hooks
    }

    fn settle(&self) {
        self.with(|w| w.settle(SETTLED));
    }

    fn writing(&self, agent: &AgentId, paths: &[PathBuf]) {
        self.with(|w| w.expect(paths, &Who::Agent { agent: agent.clone() }));
    }

    fn wrote(&self, agent: &AgentId, paths: &[PathBuf]) {
        self.with(|w| w.wrote(paths, &Who::Agent { agent: agent.clone() }));
    }

    fn command(&self, agent: &AgentId, what: &str, witness: Option<&Witness>, running: bool) {
        self.with(|w| w.shell_running(agent, what, witness, running));
    }

    fn has_changes(&self, agent: &AgentId) -> bool {
        self.with(|w| w.stirred(agent)).unwrap_or(false)
    }

    fn stale(&self, agent: &AgentId, seen: &HashMap<PathBuf, SeenFile>) -> StaleFiles {
        let Some(found) = self.with(|w| w.changes_outside(agent, seen)) else { return StaleFiles::default() };
        let file = |f: tiller_watch::workspace::OutsideChange| StaleFile {
            path: tiller_protocol::names::written(f.path.strip_prefix(&self.root).unwrap_or(&f.path)),
            deleted: f.deleted,
            lines: f.lines,
            during: f.during.map(|c| c.to_string()),
        };
        StaleFiles { files: found.files.into_iter().map(file).collect(), more: found.more }
    }

    fn known(&self, path: &Path, text: &Arc<str>) {
        self.with(|w| w.known(path, text));
    }

    fn pause(&self, paused: bool) {
        self.with(|w| w.pause(paused));
    }

    fn mute(&self, path: &str) {
        self.with(|w| w.mute(path));
    }

    fn diff(&self, path: &str) -> Result<String, String> {
        self.with(|w| w.diff(path))
            .flatten()
            .ok_or_else(|| format!("there is no earlier state of {path} to compare with"))
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
