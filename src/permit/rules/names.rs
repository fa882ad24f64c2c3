//! The tools that a rule may name.

use tiller_protocol::ToolCatalog;

/// In front of the name of a tool that belongs to a program of another vendor.
pub(crate) const FOREIGN: &str = "program:";

/// In front of the server and the tool of a call to an MCP server: `mcp:SERVER:TOOL`.
pub(crate) const MCP: &str = "mcp:";

/// Checks that a rule may name this tool (`*` and `?` as in rules).
///
/// # Errors
/// In words, with the nearest right name.
pub fn check(tool: &str, tools: &ToolCatalog) -> Result<(), String> {
    if let Some(foreign) = tool.strip_prefix(FOREIGN) {
        return if foreign.is_empty() { Err("'program:' needs the name of a tool".into()) } else { Ok(()) };
    }
    if let Some(call) = tool.strip_prefix(MCP) {
        let whole = call.split_once(':').is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty());
        // Servers come and go; a rule about one that is not there yet does no harm.
        return if whole {
            Ok(())
        } else {
            Err("write it as mcp:SERVER:TOOL, for example 'mcp:github:*'".into())
        };
    }
    if tools.contains(tool) {
        return Ok(());
    }
    let all = || tools.names().collect::<Vec<_>>().join(", ");
    if tool.contains(['*', '?', '<']) {
        let pattern = crate::rules::pattern::Pattern::new(tool)?;
        return if tools.names().any(|t| pattern.matches(t)) {
            Ok(())
        } else {
            Err(format!("'{tool}' matches no tool; tools: {}", all()))
        };
    }
    Err(match nearest(tool, tools) {
        Some(near) => format!("there is no tool '{tool}'; did you mean '{near}'?"),
        None => format!(
            "there is no tool '{tool}'; tools: {} (for a tool of an external program write \
            'program:PROGRAM:{tool}')",
            all()
        ),
    })
}

/// The right name for a wrong one: an alias of the tool, or a name that is spelled nearly so.
pub(crate) fn nearest(wrong: &str, tools: &ToolCatalog) -> Option<&'static str> {
    let wrong = wrong.to_lowercase().replace('-', "_");
    let plain = wrong.replace('_', "");
    let named = |alias: &&str| *alias == wrong || *alias == plain;
    if let Some(tool) = tools.iter().find(|t| t.aliases.iter().any(named)) {
        return Some(tool.name);
    }
    tiller_protocol::nearest::nearest(&wrong, tools.names())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tools;

    #[test]
    fn a_wrong_name_is_an_error_with_the_right_one() {
        for (wrong, right) in [
            ("read", "read_file"),
            ("Read", "read_file"),
            ("readfile", "read_file"),
            ("read-file", "read_file"),
            ("raed_file", "read_file"),
            ("Bash", "terminal"),
            ("shell", "terminal"),
            ("terminl", "terminal"),
            ("WebFetch", "web_fetch"),
            ("MultiEdit", "edit_file"),
            ("Grep", "search"),
            ("serach", "search"),
            ("apply_patch", "patch"),
        ] {
            assert_eq!(
                check(wrong, &tools()).unwrap_err(),
                format!("there is no tool '{wrong}'; did you mean '{right}'?")
            );
        }
        for right in tools().names().chain([
            "*",
            "web_*",
            "*_file",
            "program:create_thread",
            "mcp:github:*",
            "mcp:a:b",
        ]) {
            assert_eq!(check(right, &tools()), Ok(()), "{right}");
        }
        for none in ["create_thread", "x*", "program:", "mcp_server", "mcp:", "mcp:github", "mcp::x"] {
            assert!(check(none, &tools()).is_err(), "{none}");
        }
        assert!(check("create_thread", &tools()).unwrap_err().contains("'program:PROGRAM:create_thread'"));
    }
}
