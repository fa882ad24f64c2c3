//! Skills: folders with a `SKILL.md` that say how a kind of task is done, and the packs that bring them.
//!
//! ```text
//! ---
//! name: rust-style                # as the folder is called
//! description: How Rust is written here. Use it before you write Rust.
//! license: MIT
//! compatibility: Needs cargo
//! allowed-tools: read_file search           # only these while its task lasts; it grants nothing
//! metadata:
//!   params: crate, edition=2024             # {{crate}}, {{edition}} in the body
//!   requires: writing-tests                 # loaded with it
//! ---
//! Prefer small modules. ...
//! ```
//!
//! Built in < plugins and packs < the person's `skills/` < the project's `.claude/skills/`, `.agents/skills/` and
//! `.tiller/skills/` (as they were trusted, byte for byte). A later one takes the place of an earlier one of its name.
//! Reading is lenient: what is over a limit is loaded with a warning, unknown keys are ignored, and a skill that
//! cannot be used is left out and reported. Nothing of a skill runs when it is loaded.
//!
//! | file | holds |
//! | --- | --- |
//! | `skill` | one skill |
//! | `read` | a `SKILL.md` to a skill, leniently |
//! | `strict` | a folder against the public format, for authors |
//! | `relations` | requirements and parameters of a folder's skill, for authors |
//! | `load` | the layers |
//! | `withheld` | what is not used until the user agrees to it |
//! | `library` | the skills of a process, as they are now |
//! | `files` | the other files of a skill, bounded |
//! | `graph` | which skills need which others |
//! | `packs` | packs: what a user installs from a folder, an archive, a repository or a registry |
//! | `extras` | own commands and output styles |
//! | `fill` | parameters and arguments |
//! | `allowed` | `allowed-tools` as patterns that narrow |
//! | `index` | the list for a system prompt |
//! | `tools` | the tools for models |
//! | `change` | changes of skills, and their versions |
//!
//! It may use `protocol`, `fs`, `config`, `store`, `text` and `tool`. What is not here: which of them a model sees (`engine`), and
//! whether a person agrees to a change (`permit`).

mod allowed;
pub mod change;
mod extras;
mod files;
mod fill;
mod graph;
mod index;
mod library;
mod load;
pub mod packs;
mod read;
mod relations;
mod skill;
mod strict;
mod tools;
mod withheld;

pub use allowed::patterns;
pub use extras::{CommandPiece, OwnCommand, Style};
pub use files::{SkillFile, SkillFiles};
pub use fill::{fill, missing};
pub use index::{BYTES as INDEX_BYTES, index};
pub use library::{Library, Reload};
pub use load::{BuiltInFile, BuiltInFolder, Flaw, PackSource, Skills, Sources, built_in_folders};
pub use relations::{Relations, relations};
pub use skill::{Param, Skill, is_name};
pub use strict::{validate, validate_bytes};
pub use tools::{shown, tools};
pub use withheld::{Withheld, WithheldFiles, WithheldItem, WithheldKind};
