//! A launch, changed so that it runs confined.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tiller_tool::shell::{CommandWatch, Confiner, FileGuard, ForkLimit, Launch, Sandbox};

use crate::bubblewrap;
use crate::compared::Protected;
use crate::confinement::Confinement;
use crate::git::Repositories;
use crate::hidden::{hidden_in, unseen_in};
use crate::launcher::{MARK, Spec, Step};
use crate::network::{self, Servers, SharedNetwork};
use crate::policy::{Network, Policy, Profile};
use crate::proxy::Proxy;
use crate::quarantine::Guard;
use crate::seatbelt;
#[cfg(target_os = "linux")]
use crate::supervisor;
use crate::writes::ProtectedWrites;

mod tmp;

use tmp::SharedTmp;

/// Says why a command does not start.
const UNSUPERVISED: &str = "the sandbox cannot be set up: its supervisor found no folder for its socket that the command may \
                            not write, so protected files would not be judged; leave one of /tmp, /var/tmp and /run out of \
                            the writable folders";

/// A way to confine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Landlock and seccomp.
    Landlock,
    /// Namespaces and read-only mounts, with Landlock and seccomp inside.
    Bubblewrap,
    /// A profile for `sandbox-exec`, on macOS.
    Seatbelt,
}

impl Method {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Landlock => "Landlock and seccomp",
            Self::Bubblewrap => "bubblewrap, Landlock and seccomp",
            Self::Seatbelt => "Seatbelt",
        }
    }

    /// All that this system has, the weaker one first.
    pub fn present(found: &Confinement) -> Vec<Self> {
        let landlock = (found.landlock > 0 && found.seccomp).then_some(Self::Landlock);
        let bubblewrap = (found.bubblewrap.is_some() && found.seccomp).then_some(Self::Bubblewrap);
        let seatbelt = found.seatbelt.then_some(Self::Seatbelt);
        landlock.into_iter().chain(bubblewrap).chain(seatbelt).collect()
    }

    /// Returns without an error if commands in the workspace can be limited to their own servers and to listed domains.
    ///
    /// # Errors
    /// Names the missing means, for people: then they have no network at all.
    pub fn limits_network(self, found: &Confinement) -> Result<(), &'static str> {
        match self {
            Self::Bubblewrap => Ok(()),
            Self::Landlock if found.notification => Ok(()),
            Self::Landlock => Err("bubblewrap, or a kernel with seccomp user notification"),
            Self::Seatbelt => Err("Linux"),
        }
    }

    /// The one for commands of this profile. Reading needs no mounts: Landlock alone is complete from version 6 on, and
    /// it starts faster. `None`: this system cannot confine.
    pub fn choose(found: &Confinement, profile: Profile) -> Option<Self> {
        let all = Self::present(found);
        if profile == Profile::Floor {
            // Landlock cannot deny beneath an allowed folder.
            return all.into_iter().find(|method| *method != Self::Landlock);
        }
        if profile == Profile::Read && found.landlock >= 6 && all.contains(&Self::Landlock) {
            return Some(Self::Landlock);
        }
        all.last().copied()
    }
}

/// How this program starts itself as a launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    pub program: PathBuf,
    /// Arguments before those of the launcher.
    pub before: Vec<String>,
}

impl Launcher {
    /// The running program, whose `main` calls [`crate::launcher::run`] first.
    ///
    /// # Errors
    /// When the system does not tell its path.
    pub fn own() -> std::io::Result<Self> {
        // The link itself, where there is one: it stays right when the file is replaced by an update.
        let program = std::env::current_exe()?;
        Ok(Self { program, before: Vec::new() })
    }

    pub(crate) fn args(&self, spec: &Spec) -> Vec<String> {
        let mut args = self.before.clone();
        args.push(MARK.to_owned());
        args.push(spec.encode());
        args
    }
}

/// Confines what is launched through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confined {
    pub policy: Policy,
    pub method: Method,
    pub launcher: Launcher,
}

impl Confined {
    /// With the best method of this system. `None`: it has none, or the policy confines nothing.
    pub fn new(policy: &Policy) -> Option<Self> {
        if policy.profile == Profile::Off {
            return None;
        }
        let method = Method::choose(Confinement::find(), policy.profile)?;
        Some(Self { policy: policy.clone(), method, launcher: Launcher::own().ok()? })
    }

    /// Returns true if files have to be compared after the command, since the kernel cannot protect all of them.
    pub fn needs_quarantine(&self) -> bool {
        let missing = |path: &PathBuf| path.symlink_metadata().is_err();
        let protected = self.policy.protected_paths();
        match self.method {
            Method::Landlock => !protected.is_empty(),
            Method::Bubblewrap => protected.iter().any(missing),
            Method::Seatbelt => false,
        }
    }

    /// The launch of `step` in the sandbox.
    pub(crate) fn step(&self, launch: Launch, step: Step) -> Launch {
        self.for_launch(&launch).change(launch, step, None)
    }

    /// The launch in the sandbox, with a supervisor where the system has them. What the command is refused goes to
    /// `watch`, protected names that it writes to `writes`. Start it once, soon.
    pub fn watched(&self, launch: Launch, watch: &CommandWatch, writes: &Arc<ProtectedWrites>) -> Launch {
        self.watched_among(launch, Step::Exec, (watch, writes), &Servers::default(), None)
    }

    /// The same for `step`. `servers`: those of the session, which the command can reach. `quarantine`: where the supervisor
    /// keeps protected files that a program writes which stays, and what git would run of its repositories.
    pub(crate) fn watched_among(
        &self,
        launch: Launch,
        step: Step,
        watched: (&CommandWatch, &Arc<ProtectedWrites>),
        servers: &Servers,
        quarantine: Option<&Path>,
    ) -> Launch {
        let own = self.judging().for_launch(&launch);
        #[cfg(target_os = "linux")]
        let supervisor = Confinement::find()
            .notification
            .then(|| supervisor::start(&own, watched, servers, quarantine))
            .flatten();
        #[cfg(not(target_os = "linux"))]
        let (supervisor, _) = (None, (watched, servers, quarantine));
        if own.policy.judges_writes && supervisor.is_none() {
            // Nothing would be judged.
            return failing(launch, UNSUPERVISED);
        }
        own.change(launch, step, supervisor)
    }

    /// The launch of a program that stays while the person works, with a supervisor that asks `forks` before it starts a
    /// process. Its supervisor keeps protected names from it, and compares repositories while it runs and after it: what
    /// git would run there goes to `quarantine`.
    pub(crate) fn staying(
        &self,
        launch: Launch,
        forks: &ForkLimit,
        servers: &Servers,
        quarantine: &Path,
    ) -> Launch {
        let mut own = self.clone();
        own.policy.stays = true;
        let watch = CommandWatch::default().limited(forks.clone());
        own.watched_among(launch, Step::Exec, (&watch, &Arc::default()), servers, Some(quarantine))
    }

    /// With protected names that git may write judged after the command, where that is possible.
    pub(crate) fn judging(&self) -> Self {
        let mut policy = self.policy.clone();
        policy.judges_writes = policy.can_judge_writes(Confinement::find());
        Self { policy, ..self.clone() }
    }

    /// With its paths looked up, for this launch.
    pub(crate) fn for_launch(&self, launch: &Launch) -> Self {
        let mut policy = self.policy.resolved();
        if self.method == Method::Bubblewrap && policy.profile == Profile::Workspace {
            policy.needed.extend(bubblewrap::needed(launch));
            policy.needed.sort();
            policy.needed.dedup();
        }
        Self { policy, ..self.clone() }
    }

    pub(crate) fn change(&self, mut launch: Launch, step: Step, supervisor: Option<PathBuf>) -> Launch {
        let namespaces = self.method == Method::Bubblewrap;
        let command = step == Step::Exec;
        let spec = Spec { policy: self.policy.clone(), namespaces, supervisor: supervisor.clone(), step };
        if self.policy.profile == Profile::Floor {
            return self.floor(launch, &spec);
        }
        if self.method == Method::Seatbelt {
            self.prepare(&mut launch, None);
            return seatbelt::confined(&self.policy, &launch).unwrap_or_else(|| without_sandbox(launch));
        }
        let mut args = self.launcher.args(&spec);
        if command {
            args.push(launch.program.display().to_string());
            args.append(&mut launch.args);
        }
        let port = match namespaces {
            true => self.policy.proxy_socket().map(|_| crate::proxy::PORT),
            false => self.policy.proxy_port.filter(|_| supervisor.is_some()).map(|proxy| proxy.port),
        };
        self.prepare(&mut launch, port);
        match (self.method, &Confinement::find().bubblewrap) {
            (Method::Bubblewrap, Some(program)) => {
                let visible: Vec<&Path> =
                    std::iter::once(self.launcher.program.as_path()).chain(supervisor.as_deref()).collect();
                let mut all = match self.policy.profile {
                    Profile::Read => bubblewrap::reading(&self.policy, &launch.folder, &visible),
                    _ => bubblewrap::arguments(&self.policy, &launch.folder, &visible),
                };
                if let Some(why) = bubblewrap::obstacle(&self.policy, &all) {
                    return failing(launch, &why);
                }
                all.push(self.launcher.program.display().to_string());
                all.append(&mut args);
                Launch { program: program.clone(), args: all, ..launch }
            }
            _ => Launch { program: self.launcher.program.clone(), args, ..launch },
        }
    }
}

impl Confined {
    /// Sets the variables of the policy. `port`: of the proxy.
    fn prepare(&self, launch: &mut Launch, port: Option<u16>) {
        for (name, value) in &self.policy.variables {
            if !launch.env.iter().any(|(n, _)| n == name) {
                launch.env.push((name.clone(), value.clone()));
            }
        }
        if self.policy.profile == Profile::Read && self.method == Method::Bubblewrap {
            // What is seen are mounts: git would not look for a repository around the workspace.
            launch.env.push(("GIT_DISCOVERY_ACROSS_FILESYSTEM".into(), "1".into()));
        }
        launch.env.retain(|(name, _)| name != "TMPDIR");
        launch.env.push(("TMPDIR".into(), self.temporary()));
        if let Some(port) = port {
            crate::proxy::set_variables(&mut launch.env, port);
        }
    }

    /// The launch with protected names read-only, where there is bubblewrap, and its removals supervised.
    fn floor(&self, mut launch: Launch, spec: &Spec) -> Launch {
        if self.method == Method::Seatbelt {
            return seatbelt::confined(&self.policy, &launch).unwrap_or_else(|| without_sandbox(launch));
        }
        let mut words = Vec::new();
        if spec.supervisor.is_some() {
            words.push(self.launcher.program.display().to_string());
            words.append(&mut self.launcher.args(spec));
        }
        let bubblewrap = Confinement::find().bubblewrap.as_ref().filter(|_| spec.namespaces);
        if bubblewrap.is_none() && words.is_empty() {
            return launch;
        }
        words.push(launch.program.display().to_string());
        words.append(&mut launch.args);
        match bubblewrap {
            Some(program) => {
                let mut args = bubblewrap::floor(&self.policy, &launch.folder);
                args.append(&mut words);
                Launch { program: program.clone(), args, ..launch }
            }
            None => Launch { program: words.remove(0).into(), args: words, ..launch },
        }
    }
}

impl Sandbox for Confined {
    fn wrap(&self, launch: Launch) -> Launch {
        self.step(launch, Step::Exec)
    }
}

/// `launch` in the sandbox of `policy`. Where this system has none, it is a launch that fails with a message: nothing
/// runs unconfined by accident. Unchanged for [`Profile::Off`].
pub fn confined(launch: Launch, policy: &Policy) -> Launch {
    if policy.profile == Profile::Off {
        return launch;
    }
    match Confined::new(policy) {
        Some(confined) => confined.wrap(launch),
        None => without_sandbox(launch),
    }
}

fn without_sandbox(launch: Launch) -> Launch {
    failing(launch, "this system has no sandbox")
}

/// A launch that fails with this message.
fn failing(launch: Launch, why: &str) -> Launch {
    let script = "echo \"tiller: $1\" >&2; exit 126";
    let args = ["-c", script, "tiller", why].map(str::to_owned).into();
    Launch { program: "/bin/sh".into(), args, ..launch }
}

/// Confines the shells and commands of a session; the folder for temporary files differs from launch to launch.
#[derive(Clone, Debug)]
pub struct SessionSandbox {
    /// Its workspace and scratch folder are replaced.
    policy: Policy,
    /// Where protected files that a command changed are kept.
    quarantine: PathBuf,
    /// Holds the protected names that the commands of one agent have written and that were not judged yet.
    writes: Arc<ProtectedWrites>,
    network: Arc<SharedNetwork>,
    /// For programs in a terminal of their own. Bubblewrap would take that away from them, or be ended by their keys.
    in_terminal: bool,
    /// For the domains of [`Network::Domains`].
    proxy: Option<Arc<Proxy>>,
    /// Holds the paths of the project outside of its folder, for commands that only read: as it was at the start, since an agent may
    /// change the manifests that name it.
    project: Arc<OnceLock<Vec<PathBuf>>>,
    /// The `/tmp` of the session; `None`: each launch has its own.
    tmp: Option<SharedTmp>,
}

impl SessionSandbox {
    /// Looks for the means of this system meanwhile, so that the first command does not wait for that.
    pub fn new(policy: Policy, quarantine: PathBuf) -> Self {
        // Without the thread the first command looks.
        let (own, project) = (policy.clone(), Arc::<OnceLock<Vec<PathBuf>>>::default());
        let found = Arc::clone(&project);
        let look = move || {
            found.get_or_init(|| own.clone().with_project().reads.project);
            Confinement::find();
            own.hard_links();
        };
        let _ = std::thread::Builder::new().name("tiller-sandbox".into()).spawn(look);
        let (network, writes) = Default::default();
        Self { policy, quarantine, writes, network, in_terminal: false, proxy: None, project, tmp: None }
    }

    /// The way to confine here; `None`: there is none.
    fn method(&self) -> Option<Method> {
        let found = Confinement::find();
        match self.in_terminal {
            true if self.policy.profile == Profile::Floor => None,
            true => Method::present(found).first().copied(),
            false => self.showing_tmp(Method::choose(found, self.policy.profile), found),
        }
    }

    /// `None`: this system cannot confine.
    fn confined(&self, workspace: &Path, scratch: &Path) -> Option<Confined> {
        let scratch = scratch.canonicalize().unwrap_or_else(|_| scratch.to_owned());
        let mut policy = self.in_folder(workspace, &scratch);
        let method = self.method()?;
        policy.tmp = self.shared_tmp(policy.profile, method);
        if method == Method::Landlock {
            policy.writable.extend(policy.tmp.clone());
            policy.proxy_port = self.proxy.as_ref().and_then(|proxy| proxy.port());
        }
        Some(Confined { policy, method, launcher: Launcher::own().ok()? })
    }

    /// The launch in the network of the session, where it has one.
    fn enter(&self, confined: &Confined, launch: Launch) -> Launch {
        let bubblewrap = Confinement::find().bubblewrap.as_deref();
        let bubblewrap = bubblewrap.filter(|_| confined.method == Method::Bubblewrap);
        let own = bubblewrap.filter(|_| confined.policy.network == Network::Loopback);
        // Where none can be made, each command has its own.
        let holder = own.and_then(|bubblewrap| self.network.pid(bubblewrap));
        holder.and_then(|holder| network::enter(holder, launch.clone())).unwrap_or(launch)
    }

    /// The launch outside the sandbox where nothing protects names: only its removals are supervised.
    fn unprotected(&self, launch: Launch, workspace: &Path, watch: &CommandWatch) -> Launch {
        let policy = self.in_folder(workspace, &self.policy.scratch);
        match Launcher::own() {
            Ok(launcher) if cfg!(target_os = "linux") => {
                Confined { policy, method: Method::Landlock, launcher }.watched(launch, watch, &self.writes)
            }
            _ => launch,
        }
    }

    fn in_folder(&self, workspace: &Path, scratch: &Path) -> Policy {
        let (scratch, workspace) = (scratch.to_owned(), workspace.to_owned());
        let mut policy = Policy { scratch, workspace, ..self.policy.clone() }.with_hard_links();
        if policy.profile == Profile::Read {
            let look = || self.policy.clone().with_project().reads.project;
            policy.reads.project.clone_from(self.project.get_or_init(look));
        }
        policy
    }

    /// Commands reach the domains of this proxy too, where this system has network namespaces or supervisors.
    #[must_use]
    pub fn through(mut self, proxy: Proxy) -> Self {
        self.policy.network = Network::Domains;
        self.policy.proxy = Some(proxy.socket());
        self.proxy = Some(Arc::new(proxy));
        self
    }
}

impl Confiner for SessionSandbox {
    /// Unchanged where this system cannot confine: then the rules alone decide, and `tiller doctor` says so.
    fn confine(&self, launch: Launch, workspace: &Path, scratch: &Path) -> Launch {
        match self.confined(workspace, scratch) {
            Some(confined) => {
                self.note_shown(&confined, &launch);
                self.enter(&confined, confined.wrap(launch))
            }
            None => launch,
        }
    }

    fn confine_watched(
        &self,
        launch: Launch,
        workspace: &Path,
        scratch: &Path,
        watch: &CommandWatch,
    ) -> Launch {
        if let Some(confined) = self.confined(workspace, scratch) {
            let servers = &self.network.servers;
            self.note_shown(&confined, &launch);
            return self.enter(
                &confined,
                confined.watched_among(launch, Step::Exec, (watch, &self.writes), servers, None),
            );
        }
        match self.policy.profile {
            Profile::Floor => self.unprotected(launch, workspace, watch),
            _ => launch,
        }
    }

    fn confine_limited(&self, launch: Launch, workspace: &Path, scratch: &Path, forks: &ForkLimit) -> Launch {
        match self.confined(workspace, scratch) {
            Some(confined) => {
                let confined = if self.names() { confined.naming(&launch) } else { confined };
                self.note_shown(&confined, &launch);
                let staying = confined.staying(launch, forks, &self.network.servers, &self.quarantine);
                self.enter(&confined, staying)
            }
            None => launch,
        }
    }

    fn hidden_in(&self, output: &str, workspace: &Path, folder: &Path) -> Option<String> {
        match self.policy.profile {
            Profile::Read => {
                let policy = self.in_folder(workspace, &self.policy.scratch).resolved();
                unseen_in(&policy, output, folder)
            }
            _ => hidden_in(&self.policy.hidden_paths(), output)
                .or_else(|| self.hidden_in_tmp(output, workspace)),
        }
    }

    fn confines(&self) -> bool {
        self.method().is_some()
    }

    fn refused(&self) -> Vec<String> {
        self.proxy.iter().flat_map(|proxy| proxy.refused()).map(|refusal| refusal.words()).collect()
    }

    fn connections(&self) -> u64 {
        self.proxy.as_ref().map_or(0, |proxy| proxy.connections())
    }

    fn reached(&self, since: u64) -> Vec<String> {
        self.proxy.as_ref().map(|proxy| proxy.reached(since)).unwrap_or_default()
    }

    fn in_terminal(&self) -> Option<Arc<dyn Confiner>> {
        Some(Arc::new(Self { in_terminal: true, ..self.clone() }))
    }

    fn apart(&self) -> Option<Arc<dyn Confiner>> {
        Some(Arc::new(Self { writes: Arc::default(), ..self.clone() }))
    }

    fn with_copies(&self, copies: &[(PathBuf, PathBuf)]) -> Option<Arc<dyn Confiner>> {
        let mounts = self.method() == Some(Method::Bubblewrap) && self.policy.profile == Profile::Workspace;
        let policy = || Policy { copies: copies.to_vec(), ..self.policy.clone() };
        mounts.then(|| Arc::new(Self { policy: policy(), ..self.clone() }) as Arc<dyn Confiner>)
    }

    fn guard(&self, workspace: &Path) -> std::io::Result<Option<Arc<dyn FileGuard>>> {
        self.guarded(workspace, self.method())
    }
}

impl SessionSandbox {
    /// The protected files that are compared after a command that is confined by `method`.
    pub(crate) fn guarded(
        &self,
        workspace: &Path,
        method: Option<Method>,
    ) -> std::io::Result<Option<Arc<dyn FileGuard>>> {
        if self.policy.profile == Profile::Read {
            // It writes nothing that is protected.
            return Ok(None);
        }
        let mut policy = self.in_folder(workspace, &self.policy.scratch);
        policy.judges_writes = method.is_some() && policy.can_judge_writes(Confinement::find());
        let policy = policy.resolved();
        let mut paths = policy.protected_paths();
        let (settings, judged) = (policy.git_configurations(&paths), policy.judged_paths());
        if method == Some(Method::Bubblewrap) {
            // What exists is mounted read-only, outside the sandbox except for what git writes.
            let compared = |path: &PathBuf| settings.contains(path) || judged.contains(path);
            let mounted = |path: &PathBuf| policy.profile != Profile::Floor || !compared(path);
            paths.retain(|path| path.symlink_metadata().is_err() || !mounted(path));
        }
        let repositories = Repositories::record(&policy);
        // They are judged with all other names of the workspace.
        paths.retain(|path| !judged.contains(path));
        if paths.is_empty() && repositories.is_none() {
            return Ok(None);
        }
        let guard = match policy.profile {
            // A folder of the person's tools that is too large must not keep every command from running.
            Profile::Floor => Guard::record_small(&paths),
            _ => Guard::record(&paths)?,
        };
        let guard = guard.judging(settings);
        let (writes, quarantine) = (Arc::clone(&self.writes), self.quarantine.clone());
        Ok(Some(Arc::new(Protected { guard, repositories, writes, quarantine })))
    }
}

/// A sandbox that is switched off: commands run as they are, and protected files are put back after each.
#[derive(Clone, Debug)]
pub struct FileGuards(SessionSandbox);

impl FileGuards {
    /// `quarantine`: the folder where changed files are kept.
    pub fn new(policy: Policy, quarantine: PathBuf) -> Self {
        // Nothing here confines, so the means of the system are not looked for.
        let (writes, network, project) = Default::default();
        let (in_terminal, proxy) = (false, None);
        Self(SessionSandbox { policy, quarantine, writes, network, in_terminal, proxy, project, tmp: None })
    }
}

impl Confiner for FileGuards {
    fn confine(&self, launch: Launch, _workspace: &Path, _scratch: &Path) -> Launch {
        launch
    }

    fn confines(&self) -> bool {
        false
    }

    fn apart(&self) -> Option<Arc<dyn Confiner>> {
        Some(Arc::new(Self(SessionSandbox { writes: Arc::default(), ..self.0.clone() })))
    }

    fn guard(&self, workspace: &Path) -> std::io::Result<Option<Arc<dyn FileGuard>>> {
        self.0.guarded(workspace, None)
    }
}

#[cfg(test)]
#[path = "confine_tests.rs"]
mod tests;
