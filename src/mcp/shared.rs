//! Tools that change the state of a server for all of its users: which project is open, what is indexed. A subagent that
//! calls one would change what the other agents see.

use tiller_tool::ToolCx;

use crate::settings::ServerSettings;

/// Names of such tools of known servers, written with `_`.
const NAMES: [&str; 34] = [
    "activate_project",
    "open_project",
    "close_project",
    "switch_project",
    "select_project",
    "change_project",
    "set_project",
    "set_active_project",
    "set_current_project",
    "set_project_root",
    "set_root",
    "remove_project",
    "delete_project",
    "switch_workspace",
    "set_workspace",
    "open_workspace",
    "switch_repository",
    "set_repository",
    "switch_modes",
    "onboarding",
    "restart_language_server",
    "index",
    "index_project",
    "index_repository",
    "index_codebase",
    "reindex",
    "reindex_project",
    "reindex_repository",
    "reindex_codebase",
    "rebuild_index",
    "refresh_index",
    "clear_index",
    "delete_index",
    "reset_index",
];

/// Whether a tool of a server changes what other agents see.
pub(crate) fn changes_shared_state(settings: &ServerSettings, tool: &str) -> bool {
    let name = plain(tool);
    let listed = |pattern: &String| match pattern.strip_suffix('*') {
        Some(begin) => tool.starts_with(begin),
        None => tool == pattern,
    };
    // Servers that pass on the tools of others put a name before them.
    let known = |known: &&'static str| {
        *known == name
            || known.replace('_', "") == name
            || (known.contains('_') && name.strip_suffix(*known).is_some_and(|before| before.ends_with('_')))
    };
    NAMES.iter().any(known) || settings.shared_state.iter().any(listed)
}

/// Whether this call is one that only the main agent may make. `cx`: `None` outside of a session.
pub(crate) fn refused(settings: &ServerSettings, tool: &str, cx: Option<&ToolCx>) -> bool {
    cx.is_some_and(|cx| !cx.agent.is_main()) && changes_shared_state(settings, tool)
}

/// The name in lower case with `_` between its words: `reIndex-Project` is `re_index_project`, which is `reindex_project`.
fn plain(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut before = '_';
    for c in name.chars() {
        let word_ends = !c.is_ascii_alphanumeric();
        let begins = c.is_ascii_uppercase() && before.is_ascii_lowercase();
        if (word_ends || begins) && !out.ends_with('_') {
            out.push('_');
        }
        if !word_ends {
            out.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    out.trim_matches('_').replace("re_index", "reindex")
}

#[cfg(test)]
mod tests {
    use tiller_config::McpServer;

    use super::*;
    use crate::settings::Origin;

    #[test]
    fn switches_and_indexing_are_known_however_they_are_written() {
        let server = McpServer {
            command: Some("x".into()),
            shared_state: vec!["purge".into(), "admin_*".into()],
            ..McpServer::default()
        };
        let settings = ServerSettings::new("s", Origin::User, &server, &|_| None).unwrap();
        for (tool, shared) in [
            ("activate_project", true),
            ("activateProject", true),
            ("Activate-Project", true),
            ("re_index", true),
            ("reIndexRepository", true),
            ("serena_activate_project", true),
            ("gateway/switch_project", true),
            ("index_codebase", true),
            ("purge", true),
            ("admin_reset", true),
            ("purge_none", false),
            ("find_symbol", false),
            ("list_projects", false),
            ("search_index", false),
            ("", false),
        ] {
            assert_eq!(changes_shared_state(&settings, tool), shared, "{tool}");
        }
    }
}
