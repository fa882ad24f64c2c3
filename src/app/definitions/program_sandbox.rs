//! The sandbox of agent programs of other vendors (`agents.sandbox`): each reads and writes its own settings, keys and
//! sessions, and reaches its own domains.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tiller_external::{Adapter, Adapters};
use tiller_protocol::lock;
use tiller_sandbox::{Confinement, Domains, Method, Network, Policy, Profile, Proxy, SessionSandbox, proxy};
use tiller_tool::shell::{CommandWatch, Confiner, ForkLimit, Launch};

use crate::app::Setup;
use crate::app::sandbox;

/// Confines agent programs by what their adapters say. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ProgramSandbox {
    shared: Arc<Shared>,
    /// For programs in a terminal of their own.
    in_terminal: bool,
}

#[derive(Debug)]
struct Shared {
    /// Of every program: the folder of the agent, nothing of its own.
    policy: Policy,
    adapters: Adapters,
    /// The setting `agents.sandbox_network`.
    domains: Vec<String>,
    quarantine: std::path::PathBuf,
    tmp: tiller_tool::shell::TmpFolder,
    /// By the file name of the program, and whether it has a terminal: made at its first start.
    made: Mutex<BTreeMap<(String, bool), Arc<dyn Confiner>>>,
}

impl ProgramSandbox {
    /// `None`: the person does not want it.
    pub(crate) fn new(setup: &Setup, adapters: Adapters) -> Option<Self> {
        let policy = sandbox::vendors(setup)?;
        let domains = setup.config.config.agents.sandbox_network.clone();
        let quarantine = sandbox::quarantine(setup);
        let tmp = setup.services.tmp.clone();
        let shared = Shared { policy, adapters, domains, quarantine, tmp, made: Mutex::default() };
        Some(Self { shared: Arc::new(shared), in_terminal: false })
    }

    /// The adapters whose program this is; an adapter of the person's can name the program of a built-in one.
    fn adapters(&self, program: &str) -> Vec<&Arc<Adapter>> {
        let is = |command: &str| Path::new(command).file_name().is_some_and(|name| name == program);
        let runs = |adapter: &&Arc<Adapter>| {
            is(&adapter.program.command) || adapter.acp.as_ref().is_some_and(|acp| is(&acp.command))
        };
        self.shared.adapters.iter().filter(runs).collect()
    }

    /// The policy of a program with this environment.
    fn policy(&self, own: &[&Arc<Adapter>], env: &[(String, String)]) -> Policy {
        let mut policy = self.shared.policy.clone();
        let mut settings = Vec::new();
        for adapter in own {
            let paths = adapter.own_paths(env);
            for folder in &paths.folders {
                if let Err(e) = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder) {
                    tracing::warn!(folder = %folder.display(), error = %e, "a program's folder was not made");
                }
            }
            policy.writable.extend(paths.folders.into_iter().chain(paths.files));
            settings.extend(paths.protected);
        }
        let others = self.shared.adapters.iter().filter(|other| !own.iter().any(|o| Arc::ptr_eq(o, other)));
        policy.hidden.extend(others.flat_map(|other| other.own_paths(env).keys));
        let theirs = policy.writable.clone();
        let is_own = |path: &Path| theirs.iter().any(|own| path.starts_with(own));
        policy.protected.retain(|path| !is_own(path));
        policy.hidden.retain(|path| !is_own(path));
        policy.protected.extend(settings);
        policy
    }

    /// The domains that these programs reach; `None`: all.
    fn domains(&self, own: &[&Arc<Adapter>]) -> Option<Vec<String>> {
        let more = &self.shared.domains;
        let unlimited = own.is_empty() || own.iter().any(|adapter| adapter.sandbox.domains.is_empty());
        if unlimited || more.iter().any(|domain| domain == sandbox::EVERYTHING) {
            return None;
        }
        Some(own.iter().flat_map(|adapter| &adapter.sandbox.domains).chain(more).cloned().collect())
    }

    fn make(&self, own: &[&Arc<Adapter>], env: &[(String, String)]) -> Arc<dyn Confiner> {
        let mut policy = self.policy(own, env);
        let quarantine = self.shared.quarantine.clone();
        let found = Confinement::find();
        let method = match self.in_terminal {
            true => Method::present(found).first().copied(),
            false => Method::choose(found, Profile::Workspace),
        };
        let limits = method.is_some_and(|method| method.limits_network(found).is_ok());
        // Where it cannot be limited, it reaches everything: without its model it could do nothing.
        let Some(domains) = self.domains(own).filter(|_| limits) else {
            return self.placed(SessionSandbox::new(policy, quarantine));
        };
        match Proxy::start(Domains::new(&domains), Box::new(proxy::System)) {
            Ok(proxy) => self.placed(SessionSandbox::new(policy, quarantine).through(proxy)),
            Err(error) => {
                tracing::warn!(%error, "the proxy for the domains of a program was not started: it reaches none");
                policy.network = Network::Off;
                self.placed(SessionSandbox::new(policy, quarantine))
            }
        }
    }

    /// The sandbox of a program that is about to start, and its launch with the variables and files that its adapter names.
    fn prepared(&self, mut launch: Launch, scratch: &Path) -> (Arc<dyn Confiner>, Launch) {
        let name = launch.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let own = self.adapters(&name);
        let made = {
            let mut made = lock(&self.shared.made);
            let make = || self.make(&own, &launch.env);
            Arc::clone(made.entry((name, self.in_terminal)).or_insert_with(make))
        };
        if made.confines() {
            for adapter in &own {
                prepare(adapter, &mut launch, scratch);
            }
        }
        (made, launch)
    }

    /// For programs in a terminal, or for the others.
    fn placed(&self, session: SessionSandbox) -> Arc<dyn Confiner> {
        let session = session.with_tmp(self.shared.tmp.clone());
        let in_terminal = session.in_terminal().filter(|_| self.in_terminal);
        in_terminal.unwrap_or_else(|| Arc::new(session))
    }
}

/// The variables and files of a program that is about to start.
fn prepare(adapter: &Adapter, launch: &mut Launch, scratch: &Path) {
    let home = launch.env.iter().find(|(name, _)| name == "HOME").map(|(_, home)| home.clone());
    let paths = adapter.own_paths(&launch.env);
    for (name, value) in &adapter.sandbox.set {
        if launch.env.iter().all(|(n, _)| n != name) {
            let value = value.replace("{scratch}", &scratch.display().to_string());
            let value = match (value.strip_prefix("~/"), &home) {
                (Some(below), Some(home)) => format!("{home}/{below}"),
                _ => value,
            };
            launch.env.push((name.clone(), value));
        }
    }
    let files =
        adapter.sandbox.scratch.iter().map(|(name, text)| (name, std::fs::write(scratch.join(name), text)));
    for (name, written) in files {
        if let Err(e) = written {
            tracing::warn!(name, error = %e, "a file of a confined program was not written");
        }
    }
    for (from, to) in &paths.copies {
        let own = to.parent().is_some_and(|folder| paths.folders.iter().any(|own| own == folder));
        if own && let Err(e) = copy(from, to) {
            tracing::warn!(file = %from.display(), error = %e, "a file of a confined program was not copied");
        }
    }
}

/// Copies a file, unless the copy is newer. The copy lies where confined programs write: a link in its place is replaced.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let Ok(original) = from.metadata() else { return Ok(()) };
    if let Ok(copy) = to.symlink_metadata()
        && copy.is_file()
        && copy.modified()? >= original.modified()?
    {
        return Ok(());
    }
    // For the user alone.
    let mut new = tempfile::NamedTempFile::new_in(to.parent().unwrap_or(to))?;
    std::io::copy(&mut std::fs::File::open(from)?, &mut new)?;
    new.persist(to).map_err(|e| e.error)?;
    Ok(())
}

impl Confiner for ProgramSandbox {
    fn confine(&self, launch: Launch, workspace: &Path, scratch: &Path) -> Launch {
        self.confine_watched(launch, workspace, scratch, &CommandWatch::default())
    }

    fn confine_limited(&self, launch: Launch, workspace: &Path, scratch: &Path, forks: &ForkLimit) -> Launch {
        let (made, launch) = self.prepared(launch, scratch);
        made.confine_limited(launch, workspace, scratch, forks)
    }

    fn confine_watched(
        &self,
        launch: Launch,
        workspace: &Path,
        scratch: &Path,
        watch: &CommandWatch,
    ) -> Launch {
        let (made, launch) = self.prepared(launch, scratch);
        made.confine_watched(launch, workspace, scratch, watch)
    }

    fn confines(&self) -> bool {
        Method::choose(Confinement::find(), Profile::Workspace).is_some()
    }

    fn in_terminal(&self) -> Option<Arc<dyn Confiner>> {
        Some(Arc::new(Self { in_terminal: true, ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_made_again_when_the_original_is_newer_and_never_through_a_link() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
        copy(&at("a"), &at("b")).unwrap();
        assert!(!at("b").exists(), "there is no original");
        std::fs::write(at("a"), "1").unwrap();
        copy(&at("a"), &at("b")).unwrap();
        std::fs::write(at("b"), "its own").unwrap();
        copy(&at("a"), &at("b")).unwrap();
        assert_eq!((read("a"), read("b")), ("1".into(), "its own".into()));
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
        std::fs::write(at("a"), "2").unwrap();
        std::fs::File::options().write(true).open(at("a")).unwrap().set_modified(later).unwrap();
        copy(&at("a"), &at("b")).unwrap();
        assert_eq!(read("b"), "2");
        std::fs::write(at("other"), "other").unwrap();
        std::fs::remove_file(at("b")).unwrap();
        std::os::unix::fs::symlink(at("other"), at("b")).unwrap();
        copy(&at("a"), &at("b")).unwrap();
        assert_eq!((read("b"), read("other")), ("2".into(), "other".into()));
        assert!(at("b").symlink_metadata().unwrap().is_file());
    }
}
