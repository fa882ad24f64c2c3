//! Packs: folders, archives and repositories that bring skills.
//!
//! A pack is used in exactly the form that the user agreed to. It lies in a folder of its own; the lock file in the data
//! folder says which folder that is, where it came from (with the commit) and the hash of each file. Replacing the lock
//! file is the one step that installs, updates, removes or restores a pack: a process that dies before it leaves all as
//! it was. Nothing of a pack runs here.
//!
//! | file | contents |
//! | --- | --- |
//! | `source` | what a user may name: a folder, an archive, a git URL, a built-in pack, a name in the registry |
//! | `built_in` | the packs that come with the program |
//! | `registry` | the index of packs at an address of the settings |
//! | `stage` | the files of a source, in the layout of a pack |
//! | `contents` | what a pack brings, for the question: scripts, skills, what is odd about them |
//! | `lock` | the lock file |
//! | `home` | the installed packs: add, remove, restore, verify |
//! | `kept` | the contents of files as they were agreed to |
//! | `changes` | the differences between two versions |
//! | `template` | a new skill |

mod built_in;
mod changes;
mod contents;
mod home;
mod kept;
mod lock;
mod registry;
mod source;
mod stage;
mod template;

pub use built_in::{built_in_packs, write_built_in};
pub use changes::{Change, ChangeKind, changes};
pub use contents::{Contents, PackExtra, PackFile, PackSkill, Remark};
pub use home::{PackState, Packs};
pub use lock::{Origin, Pack, PinnedFile};
pub use registry::{Index, IndexEntry, verify};
pub use source::{Source, is_download};
pub use stage::{LIMITS, Staged, stage};
pub(crate) use template::is_template;
pub use template::{is_unfilled, new_skill};

#[cfg(test)]
mod tests;
