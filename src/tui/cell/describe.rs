//! Verb and target of a call that was read back from the store.

use serde_json::Value;
use tiller_protocol::mcp::named_target;
use tiller_protocol::{ToolInfo, ToolVerb};

/// Returns what a call's row says, as its tool says it while it runs. `tool`: `None` for a tool of another program, of which
/// name and arguments are all that is known. Not cleaned for a terminal.
pub fn describe(name: &str, arguments: &Value, tool: Option<&ToolInfo>) -> (String, String) {
    let first = || {
        let mut values = arguments.as_object().into_iter().flat_map(|o| o.values());
        values.find_map(Value::as_str).unwrap_or_default().to_owned()
    };
    if let Some(target) = named_target(name) {
        return (ToolVerb::Tool.to_string(), target);
    }
    match tool {
        Some(tool) => {
            let target = (tool.target)(arguments);
            (tool.verb.to_string(), if target.is_empty() { first() } else { target })
        }
        // Another vendor's program gives its call a title, which says all.
        None if name.contains(char::is_whitespace) => (name.to_owned(), String::new()),
        None => (name.to_owned(), Some(first()).filter(|t| t != name).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::tools;

    #[test]
    fn a_call_is_described_by_its_tool_or_by_its_name() {
        for (name, arguments, want) in [
            ("read_file", json!({"path": "a.rs"}), ("read", "a.rs")),
            ("read_file", json!({"file": "b.rs"}), ("read", "b.rs")),
            ("list_agents", json!({}), ("agents", "")),
            ("a1: list .", json!({"path": "."}), ("a1: list .", "")),
            ("ls", json!({"command": "ls"}), ("ls", "")),
            ("Bash", json!({"command": "ls"}), ("Bash", "ls")),
            ("mcp__notes__add", json!({"text": "x"}), ("tool", "notes add")),
        ] {
            let said = describe(name, &arguments, tools().get(name));
            assert_eq!(said, (want.0.to_owned(), want.1.to_owned()), "{name}");
        }
    }
}
