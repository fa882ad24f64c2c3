//! Tools that read and change files, one file each.
//!
//! | folder | its job |
//! | --- | --- |
//! | `path` | paths of calls: resolving, comparing with what was declared, opening beneath a descriptor |
//! | `content` | what a file holds: encodings, pages, images, notebooks |
//! | `change` | changes: finding the place, writing, publishing, taking back; what an agent knows of files |
//! | `masks` | secrets that agents see as masks, and their way back into files |
//! | `patch` | the format of patches |
//! | `drafts` | what calls would write that wait for an approval |
//!
//! All paths are resolved in `path` and opened in `path::beneath`; all changes go through `change::commit`.

pub(crate) mod change;
mod content;
pub(crate) mod draft;
pub(crate) mod drafts;
mod edit;
mod hits;
mod list;
pub(crate) mod masks;
mod patch;
pub(crate) mod path;
mod read;
mod search;
#[cfg(feature = "testing")]
pub mod testing;
mod write;

pub use change::ledger::note;
pub use change::publish::{Publishes, TakeBackReport};
pub use change::revert::{Masks, revert};
pub use content::encoding::{ReadableText, comparable, decoded, readable};
pub(crate) use content::encoding::{legacy_of, lossy};
pub(crate) use content::image::parts as image_parts;
pub use content::image::{attachable as attachable_image, info as image_info};
pub use drafts::Drafts;
pub use edit::EditFile;
pub use list::ListDir;
pub use masks::masked_part;
pub use patch::{Patch, patched};
pub use read::ReadFile;
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
