//! Agent definitions: one Markdown file each, with YAML front matter and the agent's prompt as its body.
//!
//! ```text
//! ---
//! name: reviewer
//! description: Reads a change and says what is wrong with it
//! tier: main                  # or model: provider/model; neither: what the starter has
//! effort: high                # how much its model thinks
//! tools: [read, run]          # names or sets; left out: what its depth gives
//! skills: [rust-style]
//! permissions: { profile: ask, deny: [terminal(git push*)] }      # can only narrow
//! limits: { turns: 30, seconds: 900, tokens: 400000, cost: 0.50 }
//! cli: claude                 # another vendor's program does the work
//! terminal: build             # its commands run there
//! may: [project, memory]      # layers of the system prompt; left out: all
//! memory: read                # or write; left out, or off: it has no memory
//! ---
//! You review changes. ...
//! ```
//!
//! Built-in < the person's `agents/` < the project's `.tiller/agents/` (as it was trusted, byte for byte). A later
//! one takes the place of an earlier one of its name. A file with a mistake is left out as a whole, with every
//! mistake reported; the earlier definition stays in use.
//!
//! | file | holds |
//! | --- | --- |
//! | `form` | the typed definition |
//! | `words` | names that a file may use: tools and their sets, layers, programs |
//! | `front` | a file's text, taken apart; YAML with places |
//! | `check` | values to a definition, every mistake with its place |
//! | `load` | the layers |

mod check;
mod form;
pub mod front;
mod load;
mod words;

pub use form::{Definition, Narrowing, Origin, Pick, Tier, Tools};
pub use load::read as read_file;
pub use load::{Definitions, ProjectFile};
pub use words::{DefinitionContext, no_such_tool};

#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod load_tests;
