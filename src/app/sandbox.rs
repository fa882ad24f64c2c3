//! Which commands of a session are confined, by the setting `sandbox`.

use std::path::PathBuf;
use std::sync::Arc;

use tiller_config::Sandbox;
use tiller_sandbox::{Confinement, Method, Network, Policy, Profile, SessionSandbox};
use tiller_tool::shell::Confiner;

use crate::app::Setup;

/// For commands that run without asking because they only read.
pub(crate) fn reader(setup: &Setup) -> Option<Arc<dyn Confiner>> {
    (setup.config.config.sandbox != Sandbox::Off).then(|| session(setup, Profile::Read, Network::Off))
}

/// Whether [`reader`] confines on this system. What it returns takes some 20 ms at its first call.
pub(crate) fn confines_reading(setup: &Setup) -> fn() -> bool {
    if setup.config.config.sandbox == Sandbox::Off {
        return || false;
    }
    || Method::choose(Confinement::find(), Profile::Read).is_some()
}

/// For all other terminal commands.
pub(crate) fn worker(setup: &Setup) -> Option<Arc<dyn Confiner>> {
    let all = setup.config.config.sandbox == Sandbox::Workspace;
    all.then(|| session(setup, Profile::Workspace, Network::Loopback))
}

fn session(setup: &Setup, profile: Profile, network: Network) -> Arc<dyn Confiner> {
    let home = (setup.env)("HOME").map(PathBuf::from);
    // The scratch folder differs from shell to shell.
    let mut policy = Policy::new(profile, &setup.project, &setup.project, home.as_deref());
    policy.network = network;
    policy.hidden.push(setup.key_file());
    for own in [&setup.places.config, &setup.places.data, &setup.places.state, &setup.places.cache] {
        policy.protected.push(own.clone());
    }
    Arc::new(SessionSandbox::new(policy))
}
