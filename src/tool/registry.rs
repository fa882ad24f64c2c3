//! Every tool: one line each. Order here does not matter; the list for the model is sorted by name.

use tiller_protocol::ToolSpec;

use crate::{Tool, checkpoint, crew, files, plan, session_search, web};

/// All built-in tools.
pub static ALL: &[&dyn Tool] = &[
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
    &crate::shell::Process,
    &crate::shell::Terminal,
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
];

/// The specs of the tools that `enabled` lets through (by tool name and set), sorted by name: part of the
/// frozen prefix.
pub fn specs(enabled: impl Fn(&str, &str) -> bool) -> Vec<ToolSpec> {
    let mut specs: Vec<ToolSpec> = ALL
        .iter()
        .map(|t| (t.toolset(), t.spec()))
        .filter(|(set, spec)| enabled(&spec.name, set))
        .map(|(_, spec)| spec)
        .collect();
    specs.sort_by(|a, b| a.name.cmp(&b.name));
    specs
}

/// The tool of this name.
pub fn find(name: &str) -> Option<&'static dyn Tool> {
    ALL.iter().copied().find(|t| t.name() == name)
}

/// What to tell a model that asked for a tool which is not there.
pub fn unknown(name: &str) -> String {
    let names: Vec<&str> = ALL.iter().map(|t| t.name()).collect();
    match tiller_protocol::nearest::nearest(name, names.iter().copied()) {
        Some(near) => {
            format!("unknown tool '{name}'; did you mean '{near}'? Tools: {}", names.join(", "))
        }
        None => format!("unknown tool '{name}'. Tools: {}", names.join(", ")),
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
