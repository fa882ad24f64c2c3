//! `allowed-tools` as patterns of permission rules. Other programs read the field as tools that run without a question; here
//! it only narrows: while the task of the skill or the command lasts, other tools are refused.

use tiller_tool::aliases;

use crate::load::Skills;

/// The patterns that these entries stand for. An entry for a tool that does not exist here stays, and matches nothing.
pub fn patterns(entries: &[String]) -> Vec<String> {
    entries.iter().flat_map(|entry| of(entry)).collect()
}

fn of(entry: &str) -> Vec<String> {
    // `mcp__SERVER__TOOL`, or all tools of a server.
    if let Some(rest) = entry.strip_prefix("mcp__") {
        let (server, tool) = rest.split_once("__").unwrap_or((rest, "*"));
        return vec![format!("mcp:{server}:{tool}")];
    }
    let (tool, argument) = match entry.split_once('(') {
        Some((tool, rest)) => (tool, rest.strip_suffix(')')),
        None => (entry, None),
    };
    let argument = argument.filter(|argument| !matches!(*argument, "*" | ""));
    let ours = aliases::ours(tool).map_or_else(|| vec![tool], <[_]>::to_vec);
    let one = |tool: &str| match argument {
        // `git log:*` means the command and whatever follows it.
        Some(argument) => match argument.strip_suffix(":*") {
            Some(command) => format!("{tool}({command}*)"),
            None => format!("{tool}({argument})"),
        },
        None => tool.to_owned(),
    };
    ours.into_iter().map(one).collect()
}

impl Skills {
    /// The entries of `allowed-tools` that hold while the task of this skill lasts: its own, and those of the skills that it
    /// requires. Empty where it has none itself: it does not narrow anything.
    pub fn allowed_tools(&self, name: &str) -> Vec<String> {
        let own = self.get(name).map(|skill| &skill.allowed_tools).filter(|own| !own.is_empty());
        if own.is_none() {
            return Vec::new();
        }
        let all = self.with_required(name).unwrap_or_default();
        all.iter().flat_map(|skill| skill.allowed_tools.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_other_programs_are_read_as_ours() {
        for (entry, expected) in [
            ("read_file", vec!["read_file"]),
            ("Read", vec!["read_file"]),
            ("Edit", vec!["edit_file", "patch"]),
            ("Edit(src/**)", vec!["edit_file(src/**)", "patch(src/**)"]),
            ("Bash(git add:*)", vec!["terminal(git add*)"]),
            ("Bash(*)", vec!["terminal"]),
            ("Bash", vec!["terminal"]),
            ("terminal(git log *)", vec!["terminal(git log *)"]),
            ("mcp__github__get_issue", vec!["mcp:github:get_issue"]),
            ("mcp__github", vec!["mcp:github:*"]),
            ("Unknown(x", vec!["Unknown"]),
        ] {
            assert_eq!(patterns(&[entry.to_owned()]), expected, "{entry}");
        }
    }
}
