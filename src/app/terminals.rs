//! The terminals of the settings.

use std::sync::Arc;

use tiller_protocol::{Notice, NoticeKind};
use tiller_terminals::Session;
use tiller_tool::shell::{Elsewhere, Terminals};

use crate::app::{Setup, start};

/// Variables for the programs that reach terminals: where they find their own settings and agents. Nothing of them gets to
/// the other side.
const VARS: &[&str] = &["HOME", "PATH", "USER", "LOGNAME", "LANG", "TMPDIR", "SSH_AUTH_SOCK", "KUBECONFIG"];
/// Beginnings of such names.
const PREFIXES: &[&str] = &["LC_", "XDG_", "DOCKER_", "CONTAINER_", "CONTAINERS_"];

/// The terminals. Containers that a killed Tiller has left are removed in the background.
pub(crate) fn session(setup: &Setup) -> Arc<Session> {
    let known = |name: &str| VARS.contains(&name) || PREFIXES.iter().any(|p| name.starts_with(p));
    let vars = start::vars().filter(|(name, _)| known(name)).collect();
    let settings = setup.config.config.terminals.clone();
    let none = settings.is_empty();
    let session = Arc::new(Session::new(settings, vars, setup.places.state.join("terminals")));
    if !none {
        let sweeping = Arc::clone(&session);
        let work = move || match sweeping.sweep() {
            0 => {}
            n => tracing::info!("removed {n} containers of a killed run"),
        };
        // Not joined: it ends when docker and podman have answered.
        if let Err(error) = std::thread::Builder::new().name("containers".into()).spawn(work) {
            tracing::warn!(%error, "containers of killed runs are not removed");
        }
    }
    session
}

/// The main agent's terminal, when the command line names one.
///
/// # Errors
/// When there is no such terminal.
pub(crate) fn of_main(setup: &Setup, session: &Session) -> Result<Option<Arc<dyn Elsewhere>>, Notice> {
    let Some(name) = &setup.common.terminal else { return Ok(None) };
    session.find(name, &setup.project).map_err(|why| {
        Notice::new(NoticeKind::User, why).hint("terminals stand in your config.toml as [terminals.NAME]")
    })
}
