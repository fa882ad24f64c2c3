//! Tools that read and change files. All of them resolve their paths in [`path`] and open them beneath
//! a descriptor in [`beneath`]; all changes go through [`commit`].

mod apply;
pub(crate) mod beneath;
mod commit;
mod diff;
mod edit;
mod encoding;
mod hits;
mod image;
pub use image::info as image_info;
pub(crate) mod judged;
mod large;
mod ledger;
mod list;
mod masked;
mod nearest;
mod notebook;
mod page;
mod patch;
pub(crate) mod path;
mod publish;
mod read;
mod replace;
mod revert;
mod search;
mod unmask;
mod write;

pub use edit::EditFile;
pub use ledger::note;
pub use list::ListDir;
pub use masked::masked_part;
pub use patch::Patch;
pub use publish::{Publishes, TakenBack};
pub use read::ReadFile;
pub use revert::{Masks, revert};
pub use search::Search;
pub use write::WriteFile;

use schemars::JsonSchema;
use serde_json::Value;
use tiller_protocol::ToolSpec;

/// The description for the model: `help` is the `.md` beside the tool.
pub(crate) fn spec<T: JsonSchema>(name: &str, help: &str) -> ToolSpec {
    ToolSpec { name: name.into(), description: help.trim_end().into(), schema: crate::schema::of::<T>() }
}

/// The path that a call names, for its row on screen.
pub(crate) fn path_of(args: &Value) -> String {
    let path = args.get("path").or_else(|| args.get("file_path"));
    path.and_then(Value::as_str).unwrap_or_default().to_owned()
}
