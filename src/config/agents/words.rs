//! Names that a definition may use.

use tiller_protocol::nearest::nearest;
use tiller_protocol::{ToolCatalog, ToolSet};

/// Every tool.
pub(super) const ALL: &str = "all";

/// The names that may stand in a list of tools: sets, the tools of each set, and [`ALL`].
fn tool_words(tools: &ToolCatalog) -> Vec<&'static str> {
    let sets = ToolSet::ALL.into_iter().map(ToolSet::word);
    let each = ToolSet::ALL.into_iter().flat_map(|set| tools.of_set(set));
    sets.chain(each).chain([ALL]).collect()
}

/// The names of the sets, for people.
pub(super) fn set_words() -> String {
    ToolSet::ALL.map(ToolSet::word).join(", ")
}

/// What is wrong with a name in a list of tools, as a part of a sentence; `None`: it is a tool or a set.
pub fn no_such_tool(name: &str, tools: &ToolCatalog) -> Option<String> {
    let all = tool_words(tools);
    if all.contains(&name) {
        return None;
    }
    Some(match nearest(name, all) {
        Some(near) => format!("there is no tool or set `{name}`; did you mean `{near}`?"),
        None => format!("there is no tool or set `{name}`; sets: {}", set_words()),
    })
}

/// Layers of the system prompt that a definition may leave out. `soul` is SOUL.md, a part of the layer `prompt`.
pub(super) const LAYERS: &[&str] =
    &["project", "skills", "soul", "user", "learnings", "memory", "session", "runtime"];

/// Names of other rooms that a definition may use, given by the caller.
#[derive(Clone, Copy)]
pub struct DefinitionContext<'a> {
    /// The tools of this program.
    pub tools: &'a ToolCatalog,
    /// Programs of other vendors that can be driven.
    pub clis: &'a [&'a str],
    /// Checks a rule, `tool(argument)`. The error is a sentence.
    pub rule: &'a dyn Fn(&str) -> Result<(), String>,
}

impl DefinitionContext<'_> {
    /// The programs that adapters are for.
    pub const CLIS: &'static [&'static str] =
        &["claude", "codex", "gemini", "aider", "goose", "opencode", "droid"];

    /// The tool or set that was probably meant by `name` in a list of tools.
    pub(super) fn nearest_tool(&self, name: &str) -> Option<&'static str> {
        nearest(name, tool_words(self.tools))
    }
}
