//! Every tool: one line each. The order does not matter.

use tiller_protocol::{ToolCatalog, ToolInfo, ToolSpec};

use crate::{Tool, checkpoint, code, crew, files, plan, session_search, shell, web};

/// The tools of a process. The composition root makes it once and hands it down; a test can add a tool of its own.
#[derive(Clone, Default)]
pub struct Registry {
    tools: Vec<&'static dyn Tool>,
    /// Tools that exist, but not in this process.
    absent: Vec<ToolInfo>,
}

impl Registry {
    /// The tools that come with the program.
    pub fn built_in() -> Self {
        let tools: Vec<&'static dyn Tool> = vec![
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
            &web::WebExtract,
            &web::WebSearch,
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
            &code::ExecuteCode,
        ];
        Self { tools, absent: Vec::new() }
    }

    /// Adds a tool. Its name must be new.
    pub fn push(&mut self, tool: &'static dyn Tool) {
        self.tools.push(tool);
    }

    /// Notes a tool that agents do not have in this process, so that rules and agent definitions may name it.
    pub fn note_absent(&mut self, tool: ToolInfo) {
        self.absent.push(tool);
    }

    /// The same without a tool, which rules and agent definitions may still name.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        let gone = self.find(name).map(Tool::info);
        self.tools.retain(|tool| tool.name() != name);
        self.absent.extend(gone);
        self
    }

    /// All of them, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &'static dyn Tool> + use<'_> {
        self.tools.iter().copied()
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
        self.iter().map(Tool::info).chain(self.absent.iter().cloned()).collect()
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
