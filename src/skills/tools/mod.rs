//! The tools for skills.
//!
//! | file | tool |
//! | --- | --- |
//! | `view` | `skill_view`: a skill, or one of its files; without a name the list |
//! | `list` | `skills_list`: the list, for agents whose definition names it |
//! | `manage` | `skill_manage`: creates, changes and deletes skills |
//! | `record` | what its approval says of a skill's uses and trials |

mod list;
mod manage;
mod record;
mod view;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tiller_protocol::ToolSpec;
use tiller_tool::{Tool, ToolError};

use crate::change::Editor;
use crate::library::Library;
use crate::load::Skills;

pub use view::shown;

/// The tools over a library. They live as long as the process; the composition root makes them once.
pub fn tools(library: &Library, editor: &Editor) -> [&'static dyn Tool; 3] {
    let view: &'static dyn Tool = Box::leak(Box::new(view::SkillView(library.clone())));
    let list: &'static dyn Tool = Box::leak(Box::new(list::SkillsList(library.clone())));
    let manage: &'static dyn Tool =
        Box::leak(Box::new(manage::SkillManage::new(library.clone(), editor.clone())));
    [view, list, manage]
}

/// The description for the model: `help` is the `.md` beside the tool.
fn spec<T: JsonSchema>(name: &str, help: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: help.trim_end().into(),
        schema: tiller_tool::schema::of::<T>(),
    }
}

fn read<T: DeserializeOwned + JsonSchema>(args: &Value) -> Result<T, ToolError> {
    tiller_tool::schema::read(args)
}

fn name(args: &Value) -> String {
    args.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Every skill with its description and origin.
fn listed(skills: &Skills) -> String {
    let mut text = String::new();
    for skill in skills.iter() {
        text.push_str(&format!("{} ({}): {}\n", skill.name, skill.from.word(), skill.description));
    }
    if text.is_empty() {
        text.push_str("there are no skills\n");
    }
    text
}

#[cfg(test)]
mod tests;
