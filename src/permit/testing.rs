//! Tools to write rules about, for the tests of this room. The program's own tools are in the tool room, above this one.

use tiller_protocol::{RuleArgument, ToolCatalog, ToolGrant, ToolInfo, ToolSet, ToolVerb, Touch};

/// A tool for each kind of argument that a rule can have, named as in the program.
pub(crate) fn tools() -> ToolCatalog {
    use RuleArgument::{Address, Command, EditPath, ReadPath, Text, WritePath};
    let tool = |(name, rule, aliases): (_, _, &'static [&'static str])| ToolInfo {
        name,
        set: if name == "browse" { ToolSet::Browser } else { ToolSet::Read },
        grant: ToolGrant::All,
        starts_agents: false,
        touch: Touch::Read,
        rule,
        aliases,
        verb: ToolVerb::Tool,
        target: |_| String::new(),
    };
    let all: [(&str, RuleArgument, &[&str]); 14] = [
        ("read_file", ReadPath, &["read"]),
        ("search", ReadPath, &["grep"]),
        ("list_dir", ReadPath, &[]),
        ("write_file", WritePath, &[]),
        ("edit_file", EditPath, &["multiedit"]),
        ("patch", EditPath, &["apply_patch"]),
        ("terminal", Command, &["bash", "shell"]),
        ("web_fetch", Address, &["webfetch"]),
        ("web_extract", Address, &[]),
        ("browse", Address, &[]),
        ("web_search", Text, &["websearch"]),
        ("process", Text, &[]),
        ("todo_write", Text, &[]),
        ("execute_code", Text, &[]),
    ];
    all.into_iter().map(tool).collect()
}
