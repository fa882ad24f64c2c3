//! Scenes of menus, pickers and help.

use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    CapabilityState, Profile, SandboxCapability, SandboxNetwork, SandboxScope, SandboxState, TerminalLimits,
    TerminalPlace,
};

use super::scene::Scene;
use super::stage::Stage;
use super::story;

pub(super) const PALETTE: Scene = Scene::new("palette", "Palette", |s| over(s, "palette.open"));
pub(super) const WHICH_KEY: Scene = Scene::new("which_key", "Keys after the leader key", which_key);
pub(super) const HELP: Scene = Scene::new("help", "Help", |s| over(s, "help.open"));
pub(super) const HELP_SEARCH: Scene = Scene::new("help_search", "Help, searched", help_search);
pub(super) const CONTEXT: Scene = Scene::new("context", "Context report", |s| over(s, "context.open"));
pub(super) const COST: Scene = Scene::new("cost", "Cost report", |s| over(s, "cost.open"));
pub(super) const HOOKS: Scene = Scene::new("hooks", "Hooks and their last runs", |s| over(s, "hooks.open"));
pub(super) const MEMORY: Scene =
    Scene::new("memory", "What is kept across sessions", |s| over(s, "memory.open"));
pub(super) const NOTE: Scene = Scene::new("note", "Text for memory in the composer", note);
pub(super) const SKILLS: Scene = Scene::new("skills", "Skills", |s| over(s, "skills.open"));
pub(super) const SANDBOX: Scene = Scene::new("sandbox", "Sandbox", sandbox);
pub(super) const SANDBOX_MISSING: Scene =
    Scene::new("sandbox_missing", "A machine without a sandbox", sandbox_missing);
pub(super) const KEYS: Scene = Scene::new("keys", "Actions to rebind", |s| over(s, "keys.open"));
pub(super) const NOTHING: Scene = Scene::new("nothing_found", "A list without a match", nothing_found);
pub(super) const MODELS: Scene = Scene::new("models", "Model picker", |s| over(s, "model.open"));
pub(super) const THEMES: Scene =
    Scene::new("themes", "Theme picker", |s| over(s, "theme.open")).naming_theme();
pub(super) const PROFILES: Scene = Scene::new("profiles", "Permission profiles", |s| over(s, "profile.open"));
pub(super) const SETTINGS: Scene =
    Scene::new("settings", "Settings", |s| over(s, "settings.open")).naming_theme();
pub(super) const MENTIONS: Scene = Scene::new("mentions", "A mention in the composer", mentions);
pub(super) const COMMANDS: Scene = Scene::new("commands", "Slash commands in the composer", commands);

fn over(s: &mut Stage, action: &'static str) {
    story::finished(s);
    s.act(action);
}

/// The terminals of the settings.
pub(super) fn terminals() -> Vec<TerminalPlace> {
    let place =
        |name: &str, kind: &str, limits| TerminalPlace { name: name.into(), kind: kind.into(), limits };
    vec![place("box", "podman", TerminalLimits::Container), place("build", "ssh", TerminalLimits::Account)]
}

/// A machine with one gap, and one probe that cannot run there.
fn sandbox(s: &mut Stage) {
    story::finished(s);
    tested(s, &["protected names"]);
    s.act("sandbox.open");
}

/// The self-test of the sandbox has ended. `open`: what it does not stop.
pub(super) fn tested(s: &mut Stage, open: &[&str]) {
    let held = |short: &str| match short {
        short if open.contains(&short) => {
            CapabilityState::Open { why: "a git hook was written; it is restored afterwards".into() }
        }
        "keyring" => CapabilityState::Unknown { why: "this probe needs perl or python3".into() },
        _ => CapabilityState::Stopped,
    };
    let capabilities = PROBES.iter().map(|(name, short)| SandboxCapability {
        name: (*name).into(),
        short: (*short).into(),
        held: held(short),
    });
    s.state(StateEvent::SandboxTested {
        sandbox: Box::new(SandboxState {
            tmp: None,
            scope: SandboxScope::Auto,
            origin: "built in".into(),
            method: Some("Landlock and seccomp".into()),
            lacks: vec!["bubblewrap is not installed".into()],
            network: SandboxNetwork::Nothing,
            capabilities: capabilities.collect(),
            elsewhere: terminals(),
            main: None,
        }),
    });
}

fn sandbox_missing(s: &mut Stage) {
    story::finished(s);
    s.state(StateEvent::ProfileChanged { profile: Profile::Full });
    s.state(StateEvent::SandboxTested {
        sandbox: Box::new(SandboxState {
            origin: "built in".into(),
            lacks: vec!["the kernel has no Landlock".into(), "bubblewrap is not installed".into()],
            ..SandboxState::default()
        }),
    });
    s.act("sandbox.open");
}

/// The acts that the self-test tries, in full and in brief.
const PROBES: &[(&str, &str)] = &[
    ("write outside the workspace", "outside writes"),
    ("write protected names", "protected names"),
    ("TCP connections", "TCP"),
    ("UDP packets", "UDP"),
    ("DNS queries", "DNS"),
    ("sockets in the file system", "sockets"),
    ("abstract sockets", "abstract sockets"),
    ("signals to other processes", "signals"),
    ("memory and environment of others", "/proc"),
    ("new namespaces", "namespaces"),
    ("kernel keyring", "keyring"),
];

fn help_search(s: &mut Stage) {
    over(s, "help.open");
    s.write("search");
    s.wait(300);
}

fn nothing_found(s: &mut Stage) {
    over(s, "palette.open");
    s.write("zebra crossing");
    s.wait(300);
}

fn which_key(s: &mut Stage) {
    story::finished(s);
    s.press("ctrl-x");
    s.wait(400);
}

fn note(s: &mut Stage) {
    story::finished(s);
    s.write("# Reviews are short: two sentences and the risky lines");
    s.wait(300);
}

fn mentions(s: &mut Stage) {
    story::finished(s);
    s.write("Why does @cli");
    s.wait(300);
}

fn commands(s: &mut Stage) {
    story::finished(s);
    s.write("/co");
    s.wait(300);
}
