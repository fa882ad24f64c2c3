//! Folders, services and engines of children.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tiller_protocol::AgentId;
use tiller_tool::Workspace;

use super::CrewHost;
use crate::crew::rights::Grant;
use crate::crew::spawn::{ChildEngine, ChildServices, ChildSpec};
use crate::questions::trust;

/// Makes a folder and gives its path, or says why it cannot.
pub type FolderTask = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// Folders, services and engines of children.
pub trait HostChildren {
    /// Makes a git worktree of the workspace for an agent. The result is the path of its folder.
    ///
    /// # Errors
    /// A sentence, when agents cannot have their own folders here.
    fn make_folder(&self, agent: &AgentId) -> Result<FolderTask, String>;

    /// The services of the last of `chain`: never more than those of the agent above it. `folder`: its folder, if that is not
    /// the workspace; else empty. Its task says at which terminal its commands run; without that it is the main agent's.
    ///
    /// # Errors
    /// A sentence, when the folder cannot be opened or the terminal cannot be used.
    fn child_services(&self, chain: &[Grant<'_>], folder: &str) -> Result<ChildServices, String>;

    /// The folder of the workspace.
    fn workspace(&self) -> PathBuf;

    /// An engine for a child. It does nothing until [`ChildEngine::run`].
    fn new_child(&self, spec: ChildSpec, services: ChildServices) -> ChildEngine;
}

impl HostChildren for CrewHost<'_> {
    fn make_folder(&self, agent: &AgentId) -> Result<FolderTask, String> {
        let Some(make) = self.core.services.crew.folders.clone() else {
            return Err("agents cannot have their own folders here".into());
        };
        let name = format!("{}-{}", &self.core.session.id.0.simple().to_string()[20..], agent.name());
        let place = self.core.services.places.worktrees().join(name);
        let own = Arc::clone(&self.core.services.workspace);
        Ok(Box::pin(async move {
            let work = move || {
                let folder = Workspace::new(&make(&own.root, &place)?).map_err(|e| e.to_string())?;
                Ok(tiller_protocol::names::written(&folder.root))
            };
            let made = tokio::task::spawn_blocking(work).await;
            made.unwrap_or_else(|_| Err("internal error while creating it".into()))
        }))
    }

    fn child_services(&self, chain: &[Grant<'_>], folder: &str) -> Result<ChildServices, String> {
        let folder = match folder {
            "" => None,
            folder => {
                let opened = Workspace::new(&tiller_protocol::names::path(folder));
                let opened = opened.map_err(|e| format!("its folder {folder} cannot be opened: {e}"))?;
                let inside = self.core.services.permit.protection(&opened.root);
                Some(opened.protect(inside).like(&self.core.services.workspace))
            }
        };
        let main = &self.core.services.workspace;
        let named = chain.last().and_then(|member| member.brief.terminal.as_deref());
        let named = named.or_else(|| main.terminal().map(|t| t.name()));
        let root = folder.as_ref().map_or(&main.root, |f| &f.root);
        let terminal = named.map_or(Ok(None), |name| self.terminal(name, root))?;
        let services = self.core.services.child(chain, folder, terminal);
        let mut services = services.map_err(|e| format!("the folder cannot be opened: {e}"))?;
        services.user.trust = trust::check_of_children(self.core);
        Ok(ChildServices(Arc::new(services)))
    }

    fn workspace(&self) -> PathBuf {
        self.core.services.workspace.root.clone()
    }

    fn new_child(&self, spec: ChildSpec, services: ChildServices) -> ChildEngine {
        ChildEngine::new(self.core, spec, services)
    }
}
