//! Finds the tool that a model means by a misspelt name.

/// Prefixes and suffixes that frameworks and chat templates add to a tool's name.
const AROUND: &[&str] = &[
    "functions",
    "function",
    "tools",
    "tool",
    "defaultapi",
    "api",
    "call",
    "to",
    "assistant",
    "commentary",
    "analysis",
    "final",
    "channel",
    "constrain",
    "recipient",
    "json",
];
/// Names longer than this are not considered.
const LONGEST: usize = 128;

/// The one tool that `name` can mean: `functions.read_file`, `Read-File` and `read_file:0` mean `read_file`. `None`
/// when none is meant, or more than one.
pub(super) fn meant<'t>(name: &str, tools: impl Iterator<Item = &'t str>) -> Option<&'t str> {
    if name.len() > LONGEST {
        return None;
    }
    let whole = key(name);
    let apart = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | ' '));
    let mut cores = name
        .split(apart)
        .map(key)
        .filter(|k| !k.is_empty() && !AROUND.contains(&k.as_str()) && !k.chars().all(|c| c.is_ascii_digit()));
    let core = cores.next().filter(|_| cores.next().is_none());
    let mut found = tools.filter(|tool| {
        let tool = key(tool);
        !tool.is_empty() && (tool == whole || core.as_ref() == Some(&tool))
    });
    let first = found.next();
    if found.next().is_some() { None } else { first }
}

/// A name without case and punctuation.
fn key(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_reach_the_right_tool_and_only_it() {
        let tools = ["read_file", "write_file", "terminal", "search", "process"];
        let table = [
            ("functions.read_file", Some("read_file")),
            ("functions.read_file:0", Some("read_file")),
            ("default_api:terminal", Some("terminal")),
            ("read_file<|channel|>commentary", Some("read_file")),
            ("Read File", Some("read_file")),
            ("readFile", Some("read_file")),
            (" terminal\n", Some("terminal")),
            ("`search`", Some("search")),
            ("", None),
            ("functions", None),
            ("read_file.write_file", None),
            ("server.read_file", None),
            ("read", None),
            ("rm", None),
            ("readfile2", None),
        ];
        for (name, want) in table {
            assert_eq!(meant(name, tools.into_iter()), want, "{name:?}");
        }
        assert_eq!(meant("readFile", ["read_file", "readfile"].into_iter()), None, "two could be meant");
        assert_eq!(meant(&"read_file ".repeat(1000), tools.into_iter()), None);
    }
}
