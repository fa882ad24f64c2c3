//! Which programs of a session are confined, by the settings `sandbox`, `sandbox_caches`, `sandbox_network` and `agents.sandbox`.
//!
//! Every place of the program that starts a process, and how it is confined (`cargo xtask tidy` refuses others):
//!
//! | place | what it starts | confined |
//! | --- | --- | --- |
//! | `tool/shell/processes/launch.rs`, `tool/shell/jobs/background.rs` | commands of agents | [`confiners`] |
//! | the same, through `tool/code/child.rs` | scripts of agents | [`confiners`] |
//! | the same, through `tool/media/program.rs` | renderers of diagrams and documents | [`confiners`], as what only reads |
//! | the same | lines that the person types after `!`, commands of `/compare` | no: the person's own |
//! | `terminals/` | the person's own `ssh`, `docker`, `podman` and `kubectl`, which run commands elsewhere | no |
//! | `tool/shell/hosted.rs` | agent programs of other vendors | `definitions/program_sandbox.rs`, by setting |
//! | `hooks/run.rs` (by `tool/shell/hosted.rs`) | hooks | [`program_confiner`] |
//! | `tool/browser/chromium/launch.rs` | a browser for agents, which confines its pages itself; requests of pages are looked at | no |
//! | `tool/shell/hosted.rs`, for `mcp/connect/stdio.rs` | MCP servers over stdio | [`servers`] |
//! | language servers, formatters (none yet) | programs that settings name | [`program`] |
//! | `watch/git/command.rs` | Tiller's own git, with everything disabled that would run programs | no |
//! | `tool/shell/processes/guardian.rs` | the guard that ends commands after a crash of Tiller: a fixed script | no |
//! | `tool/shell/local/mod.rs` | `mkfifo`, where there is no such system call | no |
//! | `sandbox/` | the launcher and the probes of the sandbox itself | they confine themselves |
//! | `sandbox/writes/history.rs` | git, which reads objects of the workspace's repositories, with everything disabled that would run programs | no |
//! | `commands/extensions/skills/trial/bench.rs` | Tiller itself for each run of a trial, and `tiller sandbox run` for its check | no: Tiller confines its commands |
//! | `commands/batch/launch/` | Tiller itself for each case of a batch, and the person's own `ssh`, `sbatch` and `kubectl` | no: Tiller confines its commands |
//! | `external/check.rs`, `app/agents.rs` | `--version` of programs of other vendors, in `/` | no |
//! | `app/screen/editor.rs`, `app/screen/statusline.rs`, `detach/client.rs`, `tui/terminal/clipboard.rs`, `tui/dialog/reader/picture.rs` | the person's editor, status line and suspended programs, tmux, the system's program for pictures | no: the person's own |
//! | `provider/registry/key.rs` | the command of a setting of the person's that prints a key | no: it reads secrets |

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::{PackageCache, Sandbox};
use tiller_engine::{SandboxFindings, SandboxTest};
use tiller_mcp::{Confined, ServerRights, ServerSettings};
use tiller_protocol::{
    CapabilityState, Notice, NoticeKind, SandboxCapability, SandboxNetwork, SandboxScope, SandboxState,
    TerminalPlace,
};
use tiller_sandbox::{
    Capability, Confinement, Domains, FileGuards, HardLinks, Held, Method, Network, Policy, Profile, Proxy,
    SessionSandbox, proxy,
};
use tiller_tool::shell::{Confiner, Confiners, Launch, SessionTmp, ShownInTmp, TmpFolder};

use crate::app::Setup;
use crate::app::extensions::hook_files;

/// For the commands of agents. What they hold takes some 20 ms at its first call.
pub(crate) fn confiners(setup: &Setup) -> Confiners {
    let setting = setup.config.config.sandbox;
    if setting == Sandbox::Off {
        let floor = policy(setup, Profile::Floor, Network::All);
        let guards: Arc<dyn Confiner> = Arc::new(FileGuards::new(floor, quarantine(setup)));
        return Confiners { read: None, workspace: Some(Arc::clone(&guards)), outside: Some(guards) };
    }
    let read = session(setup, Profile::Read, Network::Off);
    let outside = session(setup, Profile::Floor, Network::All);
    let workspace = match setting {
        Sandbox::Auto => workspace(setup),
        // As the person would run it, but for the protected names.
        _ => Arc::clone(&outside),
    };
    Confiners { read: Some(read), workspace: Some(workspace), outside: Some(outside) }
}

/// Whether what runs unasked is confined on this system.
pub(crate) fn confines_reading(setup: &Setup) -> fn() -> bool {
    if setup.config.config.sandbox == Sandbox::Off {
        return || false;
    }
    || Method::choose(Confinement::find(), Profile::Read).is_some()
}

/// The launch of a program that settings name and that works beside the conversation: a hook, a language server, a
/// formatter. It writes in `folder` and `scratch` only, and has no network. Unchanged where the sandbox
/// is off, or this system has none.
#[cfg_attr(not(test), expect(dead_code, reason = "the rooms that start such programs are not built yet"))]
pub(crate) fn program(setup: &Setup, launch: Launch, folder: &Path, scratch: &Path) -> Launch {
    match setup.config.config.sandbox {
        Sandbox::Auto => workspace(setup).confine(launch, folder, scratch),
        Sandbox::Read | Sandbox::Off => launch,
    }
}

/// What confines programs that settings name, as [`program`]: what confines the commands of the session. `None`: nothing
/// does.
pub(crate) fn program_confiner(setup: &Setup, confiners: &Confiners) -> Option<Arc<dyn Confiner>> {
    confiners.workspace.clone().filter(|_| setup.config.config.sandbox == Sandbox::Auto)
}

/// What confines the program of an MCP server: as commands of agents, with the domains and folders of its own settings.
pub(crate) fn servers(setup: &Setup) -> tiller_mcp::Confine {
    let settings = &setup.config.config;
    let (setting, own, quarantine) = (settings.sandbox, settings.sandbox_network.clone(), quarantine(setup));
    let tmp = setup.services.tmp.clone();
    let caches = setup.places.program_caches();
    let mut base = policy(setup, Profile::Workspace, Network::Loopback);
    base.writable = self::caches(setup);
    Arc::new(move |server: &ServerSettings, rights: ServerRights| {
        if setting != Sandbox::Auto {
            return None;
        }
        let domains = if server.network.is_empty() { &own } else { &server.network };
        let mut policy = base.clone();
        policy.network = network_of(domains);
        policy.only_reads_workspace = rights == ServerRights::Read;
        policy.writable.extend(server.writable.iter().cloned());
        // By the hash of its settings, so that no other server of this name finds what this one left.
        let hash = server.hash.get(..8).unwrap_or_default();
        let cache = caches.join(format!("{}-{hash}", server.name));
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&cache);
        match made {
            Ok(()) => policy.writable.push(cache.clone()),
            Err(error) => tracing::warn!(%error, "no folder for what an MCP server fetches"),
        }
        let offline = domains.is_empty();
        Some(Confined {
            confiner: session_of(policy, domains, quarantine.clone(), (tmp.clone(), true)),
            cache,
            offline,
        })
    })
}

/// What every agent program of another vendor gets, if the person wants them confined: nothing of their own yet.
pub(crate) fn vendors(setup: &Setup) -> Option<Policy> {
    setup.config.config.agents.sandbox.then(|| {
        let mut policy = policy(setup, Profile::Workspace, Network::All);
        policy.counts_losses = true;
        policy.asks = true;
        policy
    })
}

/// Where protected files that a program changed are kept.
pub(crate) fn quarantine(setup: &Setup) -> PathBuf {
    setup.places.state.join("quarantine")
}

/// Names in this folder that are secret or protected files elsewhere, for the person.
fn link_notices(found: &HardLinks) -> Vec<Notice> {
    let notice = |(path, target): (PathBuf, PathBuf)| {
        let text = format!("{} is the same file as {}, by a hard link.", path.display(), target.display());
        Notice::new(NoticeKind::Info, text)
            .hint("A command in the workspace can change it under this name. Replace the link by a copy.")
    };
    found.secret.iter().chain(&found.protected).cloned().map(notice).collect()
}

/// What agents' commands run in, once they are approved or allowed.
fn workspace(setup: &Setup) -> Arc<dyn Confiner> {
    let mut policy = policy(setup, Profile::Workspace, network(setup));
    policy.writable = caches(setup);
    if !setup.config.config.sandbox_caches.contains(&PackageCache::Go) {
        // Go builds nothing without a cache that it can write. This one is used in the sandbox only.
        let cache = own_cache(setup).join("go-build");
        let has_go = tiller_tool::shell::find_program("go", &setup.children().now()).is_some();
        let made = || std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&cache).is_ok();
        if has_go && made() {
            policy.variables.push(("GOCACHE".into(), cache.display().to_string()));
            policy.writable.push(cache);
        }
    }
    sandbox(setup, policy)
}

/// The `/tmp` of the session, for tools that read and write files. `None`: commands see that of the machine.
pub(crate) fn tmp(setup: &Setup) -> Option<SessionTmp> {
    if setup.config.config.sandbox != Sandbox::Auto {
        return None;
    }
    let mut policy = policy(setup, Profile::Workspace, Network::Off);
    policy.writable = caches(setup);
    let folder = setup.services.tmp.clone();
    let seen = SessionSandbox::seeing(policy, folder.clone());
    let shown: ShownInTmp = Arc::new(move |workspace, env| seen.shown_in_tmp(workspace, env));
    Some(SessionTmp { folder, shown })
}

/// The caches of package managers that the setting `sandbox_caches` lets be written.
pub(crate) fn caches(setup: &Setup) -> Vec<PathBuf> {
    let home = home(setup);
    let all = setup.config.config.sandbox_caches.iter();
    all.flat_map(|cache| home.iter().flat_map(|home| below(home, folders(*cache)))).collect()
}

/// Caches that only commands in the sandbox use, for each project its own: what one project writes is not run for another.
fn own_cache(setup: &Setup) -> PathBuf {
    let project = blake3::hash(setup.project.as_os_str().as_encoded_bytes()).to_hex();
    setup.places.cache.join("sandbox").join(&project[..16])
}

fn session(setup: &Setup, profile: Profile, network: Network) -> Arc<dyn Confiner> {
    sandbox(setup, policy(setup, profile, network))
}

fn sandbox(setup: &Setup, policy: Policy) -> Arc<dyn Confiner> {
    session_of(
        policy,
        &setup.config.config.sandbox_network,
        quarantine(setup),
        (setup.services.tmp.clone(), false),
    )
}

/// `names`: the settings alone wrote the arguments of what it starts. `domains`: those that can be reached, where the policy limits the network to domains.
fn session_of(
    policy: Policy,
    domains: &[String],
    quarantine: PathBuf,
    (tmp, names): (TmpFolder, bool),
) -> Arc<dyn Confiner> {
    let limited = policy.network == Network::Domains;
    let session = SessionSandbox::new(policy, quarantine).with_tmp(tmp);
    let session = if names { session.naming() } else { session };
    if !limited {
        return Arc::new(session);
    }
    match Proxy::start(Domains::new(domains), Box::new(proxy::System)) {
        Ok(proxy) => Arc::new(session.through(proxy)),
        Err(error) => {
            tracing::warn!(%error, "the proxy for domains could not be started: commands reach none");
            Arc::new(session)
        }
    }
}

fn policy(setup: &Setup, profile: Profile, network: Network) -> Policy {
    // The scratch folder differs from shell to shell.
    let mut policy = Policy::new(profile, &setup.project, &setup.project, home(setup).as_deref())
        .with_tools(&|name| (setup.env)(name));
    policy.network = network;
    policy.hidden.push(setup.key_file());
    let places = &setup.places;
    policy.protected.extend(hook_files::of(setup));
    policy.own = [&places.config, &places.data, &places.state, &places.cache].map(PathBuf::clone).into();
    // Sessions, states of files, memory. What runs unasked does not see the settings and outputs either.
    policy.reads.private = match profile {
        Profile::Read => policy.own.clone(),
        _ => vec![places.data.clone()],
    };
    policy
}

fn home(setup: &Setup) -> Option<PathBuf> {
    (setup.env)("HOME").map(PathBuf::from)
}

fn below(home: &Path, names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| home.join(name)).collect()
}

/// The folders of a package manager's cache below the home folder, without those from which programs are run by name.
fn folders(cache: PackageCache) -> &'static [&'static str] {
    match cache {
        PackageCache::Cargo => {
            &[".cargo/registry", ".cargo/git", ".cargo/.package-cache", ".cargo/.global-cache"]
        }
        PackageCache::Go => &["go/pkg/mod", ".cache/go-build"],
        PackageCache::Gradle => &[".gradle/caches", ".gradle/wrapper/dists"],
        PackageCache::Maven => &[".m2/repository"],
        PackageCache::Npm => &[".npm/_cacache", ".npm/_logs"],
        PackageCache::Pip => &[".cache/pip"],
        PackageCache::Pnpm => &[".local/share/pnpm/store", ".cache/pnpm"],
        PackageCache::Uv => &[".cache/uv"],
        PackageCache::Yarn => &[".cache/yarn", ".yarn/berry/cache"],
    }
}

/// What the setting `sandbox_network` lets commands in the workspace reach.
fn network(setup: &Setup) -> Network {
    network_of(&setup.config.config.sandbox_network)
}

/// What a list of domains comes to.
fn network_of(domains: &[String]) -> Network {
    match domains {
        [] => Network::Loopback,
        list if list.iter().any(|domain| domain == EVERYTHING) => Network::All,
        _ => Network::Domains,
    }
}

/// The entry of `sandbox_network` for the whole network.
pub(crate) const EVERYTHING: &str = "*";

/// Finds out what confines commands here. `present`: a person can look at the result of the self-test; otherwise only
/// a machine without any sandbox is reported.
pub(crate) fn test(setup: &Setup, present: bool) -> SandboxTest {
    let settings = SandboxSettings::of(setup);
    let cache = setup.places.cache.clone();
    let policy = policy(setup, Profile::Workspace, Network::Off);
    let tmp = setup.services.tmp.clone();
    Arc::new(move || {
        let found = Confinement::find();
        let links = match settings.scope {
            SandboxScope::Off => Arc::default(),
            _ => policy.hard_links(),
        };
        let notices = link_notices(&links);
        if !present {
            let state = Some(settings.state(found, Vec::new)).filter(SandboxState::is_missing);
            return SandboxFindings { state, notices };
        }
        let mut state = settings.state(found, || tiller_sandbox::self_test_cached(&cache));
        // Seatbelt has no session's folder.
        let shares = Method::present(found).iter().any(|method| *method != Method::Seatbelt);
        if shares && state.method.is_some() && settings.scope == SandboxScope::Auto {
            state.tmp = tmp.path().map(|path| path.display().to_string());
        }
        if links.cut {
            state.lacks.push(
                "a secret or protected file has a hard link, which may lie in this folder: it has too many files to look"
                    .into(),
            );
        }
        SandboxFindings { state: Some(state), notices }
    })
}

/// What the settings say of the sandbox.
pub(crate) struct SandboxSettings {
    scope: SandboxScope,
    /// Where the value comes from, for people.
    origin: String,
    network: Vec<String>,
    /// The terminals that are not this machine, and the name of the main agent's.
    elsewhere: Vec<TerminalPlace>,
    main: Option<String>,
}

impl SandboxSettings {
    pub(crate) fn of(setup: &Setup) -> Self {
        let config = &setup.config.config;
        Self {
            scope: match config.sandbox {
                Sandbox::Auto => SandboxScope::Auto,
                Sandbox::Read => SandboxScope::Read,
                Sandbox::Off => SandboxScope::Off,
            },
            origin: setup.config.origin.get("sandbox").map_or("built in".into(), ToString::to_string),
            network: config.sandbox_network.clone(),
            elsewhere: tiller_terminals::Session::places(&config.terminals),
            main: setup.common.terminal.clone().filter(|name| config.terminals.contains_key(name)),
        }
    }

    /// What they come to on a machine that can do what `found` says. `probes`: the self-test, which is not run where
    /// nothing is confined.
    pub(crate) fn state(
        &self,
        found: &Confinement,
        probes: impl FnOnce() -> Vec<(Capability, Held)>,
    ) -> SandboxState {
        let method = Method::choose(found, Profile::Workspace);
        let confines = method.is_some() && self.scope != SandboxScope::Off;
        let capability = |(capability, held): (Capability, Held)| SandboxCapability {
            name: capability.name().into(),
            short: capability.short().into(),
            held: match held {
                Held::Yes => CapabilityState::Stopped,
                Held::No(why) => CapabilityState::Open { why },
                Held::Unknown(why) => CapabilityState::Unknown { why },
            },
        };
        SandboxState {
            scope: self.scope.clone(),
            origin: self.origin.clone(),
            method: method.map(|method| method.name().into()),
            lacks: found.lacks(),
            network: self.network(found, method),
            capabilities: if confines { probes().into_iter().map(capability).collect() } else { Vec::new() },
            elsewhere: self.elsewhere.clone(),
            main: self.main.clone(),
            tmp: None,
        }
    }

    fn network(&self, found: &Confinement, method: Option<Method>) -> SandboxNetwork {
        let domains = || self.network.clone();
        if self.network.is_empty() {
            SandboxNetwork::Nothing
        } else if self.network.iter().any(|domain| domain == EVERYTHING) {
            SandboxNetwork::Everything
        } else {
            let limited = method.map_or(Err("a sandbox"), |method| method.limits_network(found));
            match limited {
                Ok(()) => SandboxNetwork::Domains { domains: domains() },
                Err(what) => {
                    let why = format!("sandbox_network lists domains, which needs {what}");
                    SandboxNetwork::DomainsUnavailable { domains: domains(), why }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tiller_config::Flags;

    use super::*;
    use crate::app::options::Common;

    #[test]
    fn a_program_beside_the_conversation_starts_through_the_sandbox() {
        let tmp = tempfile::tempdir().unwrap();
        let folder = tmp.path().canonicalize().unwrap();
        let common = Common { dir: Some(folder.clone()), ..Common::default() };
        // Not the settings of the person who runs the test.
        let home = folder.join("home").display().to_string();
        let env = Arc::new(move |name: &str| (name == "HOME").then(|| home.clone()));
        let mut setup = Setup::read_with(&common, Flags::default(), env).unwrap();
        setup.places.cache = folder.join("cache");
        let launch = Launch {
            program: "/bin/true".into(),
            args: Vec::new(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            folder: folder.clone(),
        };
        let confines = Method::choose(Confinement::find(), Profile::Workspace).is_some();
        for (setting, confined) in [(Sandbox::Auto, confines), (Sandbox::Off, false)] {
            setup.config.config.sandbox = setting;
            let started = program(&setup, launch.clone(), &folder, &folder);
            assert_eq!(started != launch, confined, "{setting:?}: {started:?}");
            let inside = started.args.iter().any(|arg| arg == "/bin/true");
            assert_eq!(inside, confined, "the program is what the launcher becomes: {started:?}");
        }
        assert!(vendors(&setup).is_none(), "only by setting");
        setup.config.config.agents.sandbox = true;
        assert!(vendors(&setup).is_some());
    }

    fn settings(scope: SandboxScope, network: &[&str]) -> SandboxSettings {
        let network = network.iter().map(|d| (*d).to_owned()).collect();
        SandboxSettings { scope, origin: "built in".into(), network, elsewhere: Vec::new(), main: None }
    }

    fn machine(landlock: u32, bubblewrap: bool) -> Confinement {
        Confinement {
            landlock,
            seccomp: true,
            notification: true,
            bubblewrap: bubblewrap.then(|| "/usr/bin/bwrap".into()),
            no_bubblewrap: (!bubblewrap).then(|| "bubblewrap is not installed".into()),
            seatbelt: false,
        }
    }

    fn probes() -> Vec<(Capability, Held)> {
        vec![
            (Capability::WriteOutside, Held::Yes),
            (Capability::Udp, Held::No("a packet arrived".into())),
            (Capability::Keyring, Held::Unknown("no perl".into())),
        ]
    }

    /// X5: a machine that cannot confine at all is reported as such, and no probe claims the contrary.
    #[test]
    fn a_machine_without_any_sandbox_is_reported() {
        let none = settings(SandboxScope::Auto, &[]).state(&machine(0, false), || panic!("nothing to test"));
        assert!(none.is_missing() && none.method.is_none() && none.capabilities.is_empty());
        assert_eq!(none.lacks.len(), 2, "{none:?}");
        let no_filter = Confinement { seccomp: false, ..machine(7, true) };
        assert!(settings(SandboxScope::Auto, &[]).state(&no_filter, Vec::new).is_missing());
        let off = settings(SandboxScope::Off, &[]).state(&machine(7, true), || panic!("nothing to test"));
        assert!(!off.is_missing(), "it was turned off");
    }

    #[test]
    fn what_is_open_and_what_is_unknown_are_told_apart() {
        let state = settings(SandboxScope::Auto, &[]).state(&machine(7, false), probes);
        assert_eq!(state.open().map(|c| c.short.as_str()).collect::<Vec<_>>(), ["UDP"]);
        assert_eq!(state.unknown().map(|c| c.short.as_str()).collect::<Vec<_>>(), ["keyring"]);
        assert_eq!(state.lacks, ["bubblewrap is not installed"]);
    }

    /// Landlock limits ports, not addresses: without bubblewrap a supervisor has to connect in the command's place.
    #[test]
    fn domains_need_a_network_namespace_or_a_supervisor() {
        let list = settings(SandboxScope::Auto, &["crates.io"]);
        let (landlock, bubblewrap) = (Some(Method::Landlock), Some(Method::Bubblewrap));
        let without = Confinement { notification: false, ..machine(7, true) };
        for (found, method, reached) in [
            (machine(7, false), landlock, true),
            (without.clone(), landlock, false),
            (without, bubblewrap, true),
            (machine(7, true), None, false),
        ] {
            let network = list.network(&found, method);
            let domains = matches!(network, SandboxNetwork::Domains { .. });
            assert_eq!(domains, reached, "{method:?}: {network:?}");
            assert!(domains || matches!(network, SandboxNetwork::DomainsUnavailable { .. }));
        }
        let network =
            |list: &[&str]| settings(SandboxScope::Auto, list).network(&machine(7, false), landlock);
        assert_eq!(network(&[]), SandboxNetwork::Nothing, "an empty list allows nothing");
        assert_eq!(network(&["crates.io", "*"]), SandboxNetwork::Everything);
    }
}
