//! `tiller sandbox`: runs one command confined, and tests what the sandbox of this machine stops.

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;
use tiller_protocol::{Notice, NoticeKind};
use tiller_sandbox::confine::Launcher;
use tiller_sandbox::{
    Capability, Confined, Confinement, Domains, Held, Method, Network, Policy, Profile, Proxy, probe, proxy,
    supervise,
};
use tiller_text::clean;
use tiller_tool::shell::{Launch, blocked_words};

use crate::commands::args::{Sandbox, SandboxMethod, SandboxProfile, SandboxRun};
use crate::commands::{Exit, json_line, say};

pub(super) fn run(what: &Sandbox) -> Result<Exit, Notice> {
    match what {
        Sandbox::Run(run) => confined(run),
        Sandbox::Test { json } => test(*json),
    }
}

/// Runs the command with the environment and the streams of this process.
fn confined(run: &SandboxRun) -> Result<Exit, Notice> {
    let refused = |why: String| Notice::new(NoticeKind::Denied, why);
    let io =
        |what: &'static str| move |e: std::io::Error| Notice::new(NoticeKind::User, format!("{what}: {e}"));
    let folder = std::env::current_dir().map_err(io("the current folder is not accessible"))?;
    let profile = match run.profile {
        SandboxProfile::Read => Profile::Read,
        SandboxProfile::Workspace => Profile::Workspace,
    };
    let found = Confinement::find();
    let method = match run.method {
        None => Method::choose(found, profile),
        Some(SandboxMethod::Landlock) => Some(Method::Landlock),
        Some(SandboxMethod::Bubblewrap) => Some(Method::Bubblewrap),
    };
    let present = Method::present(found);
    let Some(method) = method.filter(|method| present.contains(method)) else {
        let why = found.no_bubblewrap.as_deref().filter(|_| run.method == Some(SandboxMethod::Bubblewrap));
        let why = why.map_or_else(|| found.words(), str::to_owned);
        return Err(refused(format!("the command was not started, because it cannot be confined: {why}")));
    };
    let scratch = tiller_tool::shell::own_folder::make("sandbox")
        .map_err(io("a folder for temporary files could not be created"))?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut policy =
        Policy::new(profile, &folder, scratch.path(), home.as_deref()).with_tools(&variable).with_project();
    if let Some(places) = tiller_config::Places::from_env(&variable) {
        policy.reads.private = match profile {
            Profile::Read => vec![places.config, places.data, places.state, places.cache],
            _ => vec![places.data],
        };
    }
    policy.writable = run.write.iter().map(|path| folder.join(path)).collect();
    policy.network = match (run.network, profile) {
        (true, _) => Network::All,
        (false, Profile::Workspace) => Network::Loopback,
        (false, _) => Network::Off,
    };
    let domains = Domains::new(&run.domain);
    if !run.domain.is_empty() {
        if domains.is_empty() {
            return Err(refused("--domain needs names such as crates.io or *.crates.io".into()));
        }
        method.limits_network(found).map_err(|why| refused(format!("--domain needs {why}")))?;
        if profile == Profile::Read && method == Method::Landlock {
            return Err(refused("--domain needs the profile workspace, or bubblewrap".into()));
        }
    }
    // Lives until the command has ended.
    let proxy = match domains.is_empty() {
        true => None,
        false => Some(
            Proxy::start(domains, Box::new(proxy::System)).map_err(io("the proxy could not be started"))?,
        ),
    };
    if let Some(proxy) = &proxy {
        policy.network = Network::Domains;
        policy.proxy = Some(proxy.socket());
        policy.proxy_port = (method == Method::Landlock).then(|| proxy.port()).flatten();
    }
    let Some((program, args)) = run.command.split_first() else {
        return Err(refused("there is no command".into()));
    };
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let launch = Launch { program: program.into(), args: args.to_vec(), env, folder };
    let launcher = Launcher::own().map_err(io("the path of this program is unknown"))?;
    let confined = Confined { policy: policy.with_hard_links(), method, launcher };
    let ended = supervise::run(&confined, launch, &tempfile::env::temp_dir())
        .map_err(io("the command could not be started in the sandbox"))?;
    let mut err = std::io::stderr().lock();
    for told in ended.restored.iter().chain(&ended.told) {
        // Standard error may be closed.
        let _ = writeln!(err, "tiller: {}", clean::plain(told));
    }
    let serious: Vec<_> = ended.blocked.into_iter().filter(|action| !action.minor).collect();
    if ended.code != 0 && !serious.is_empty() {
        let _ = writeln!(err, "tiller: the sandbox blocked: {}", clean::plain(&blocked_words(&serious)));
    }
    for refusal in proxy.iter().flat_map(Proxy::refused) {
        let _ = writeln!(err, "tiller: refused a connection to {}", clean::plain(&refusal.words()));
    }
    if ended.left > 0 {
        let _ = writeln!(err, "tiller: {} of its processes could not be ended", ended.left);
    }
    // A changed hook is not a success.
    let changed = !ended.restored.is_empty() && ended.code == 0;
    Ok(if changed { Exit::Refused } else { Exit::Code(u8::try_from(ended.code).unwrap_or(1)) })
}

/// One line of `--json`.
#[derive(Serialize)]
struct Row<'a> {
    method: &'static str,
    capability: Capability,
    #[serde(flatten)]
    held: Shown<'a>,
}

#[derive(Serialize)]
struct Shown<'a> {
    held: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

fn shown(held: &Held) -> Shown<'_> {
    match held {
        Held::Yes => Shown { held: "yes", why: None },
        Held::No(why) => Shown { held: "no", why: Some(why) },
        Held::Unknown(why) => Shown { held: "unknown", why: Some(why) },
    }
}

/// All probes in each way that this machine has.
fn test(json: bool) -> Result<Exit, Notice> {
    let found = Confinement::find();
    let launcher = Launcher::own().map_err(|e| {
        Notice::new(NoticeKind::Internal, format!("the path of this program is unknown: {e}"))
    })?;
    let mut text = String::new();
    if !json {
        text.push_str(&format!("{}\n", found.words()));
        if let Some(why) = &found.no_bubblewrap {
            text.push_str(&format!("bubblewrap is not used: {}\n", clean::plain(why)));
        }
    }
    for method in Method::present(found) {
        if !json {
            text.push_str(&format!("\n{}\n", method.name()));
        }
        for (capability, held) in probe::test(method, &launcher) {
            let held = shown(&held);
            if json {
                text.push_str(&json_line(&Row { method: method.name(), capability, held }));
                continue;
            }
            let mark = match held.held {
                "yes" => "stopped",
                "no" => "OPEN",
                _ => "unknown",
            };
            let why = held.why.map(|why| format!("  {}", clean::plain(why))).unwrap_or_default();
            text.push_str(format!("  {mark:8} {:34}{why}", capability.name()).trim_end());
            text.push('\n');
        }
    }
    say(&text)?;
    Ok(if found.available() { Exit::Done } else { Exit::Refused })
}

/// What is not held by the sandbox of terminal commands on this machine, with the reason, for `tiller doctor`.
pub(super) fn gaps() -> Vec<String> {
    let line = |(capability, held): (Capability, Held)| match held {
        Held::Yes => None,
        Held::No(why) => Some(format!("open: {}: {why}", capability.name())),
        Held::Unknown(why) => Some(format!("unknown: {}: {why}", capability.name())),
    };
    tiller_sandbox::self_test().into_iter().filter_map(line).collect()
}
