//! Every tool: one line each. The order does not matter.

use tiller_protocol::{ToolCatalog, ToolSpec};

use crate::{Tool, checkpoint, crew, files, plan, session_search, shell, web};

/// The tools of a process. The composition root makes it once and hands it down; a test can add a tool of its own.
#[derive(Clone, Default)]
pub struct Registry(Vec<&'static dyn Tool>);

impl Registry {
    /// The tools that come with the program.
    pub fn built_in() -> Self {
        Self(vec![
            &files::ReadFile,
            &files::WriteFile,
            &files::EditFile,
            &files::Patch,
            &files::ListDir,
            &files::Search,
            &plan::TodoWrite,
            &plan::TodoRead,
            &plan::Clarify,
            &plan::WritePlan,
            &checkpoint::Checkpoint,
            &checkpoint::Restore,
            &session_search::SessionSearch,
            &web::WebFetch,
            &shell::Process,
            &shell::Terminal,
            &crew::DelegateTask,
            &crew::DelegateAsync,
            &crew::Orchestrate,
            &crew::SpawnAgent,
            &crew::ListAgents,
            &crew::AgentResult,
            &crew::SendToAgent,
            &crew::WaitAgents,
            &crew::CancelAgent,
            &crew::GetProcessInfo,
            &crew::Blackboard,
        ])
    }

    /// Adds a tool. Its name must be new.
    pub fn push(&mut self, tool: &'static dyn Tool) {
        self.0.push(tool);
    }

    /// All of them, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &'static dyn Tool> + use<'_> {
        self.0.iter().copied()
    }

    /// The tool of this name.
    pub fn find(&self, name: &str) -> Option<&'static dyn Tool> {
        self.iter().find(|t| t.name() == name)
    }

    /// The specs of all tools, sorted by name.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let mut specs: Vec<ToolSpec> = self.iter().map(Tool::spec).collect();
        specs.sort_by(|a, b| a.name.cmp(&b.name));
        specs
    }

    /// The fixed facts about the tools, for rooms that may not know the tools.
    pub fn catalog(&self) -> ToolCatalog {
        self.iter().map(Tool::info).collect()
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
