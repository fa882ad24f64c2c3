//! What the rooms above this one hand down, for its tests: tools and API formats.

use crate::schema::ProviderKinds;
use tiller_protocol::{RuleArgument, ToolCatalog, ToolGrant, ToolInfo, ToolSet, ToolVerb, Touch};

/// Names of API formats.
pub(crate) fn kinds() -> ProviderKinds {
    ["anthropic", "openai-chat", "openai-responses", "gemini", "demo", "replay"].into_iter().collect()
}

/// A few tools of each set, named as in the program.
pub(crate) fn tools() -> ToolCatalog {
    let of = |(set, names): (ToolSet, &'static [&'static str])| {
        names.iter().map(move |name| ToolInfo {
            name,
            set,
            grant: ToolGrant::All,
            starts_agents: false,
            touch: Touch::Read,
            rule: RuleArgument::Text,
            aliases: &[],
            verb: ToolVerb::Tool,
            target: |_| String::new(),
        })
    };
    let all: [(ToolSet, &[&str]); 6] = [
        (ToolSet::Read, &["read_file", "list_dir", "search", "session_search"]),
        (ToolSet::Edit, &["write_file", "edit_file", "patch"]),
        (ToolSet::Run, &["terminal", "process"]),
        (ToolSet::Web, &["web_fetch", "browser_open"]),
        (ToolSet::Plan, &["todo_write", "clarify"]),
        (ToolSet::Crew, &["delegate_task", "spawn_agent"]),
    ];
    all.into_iter().flat_map(of).collect()
}
