//! Adapters: the properties of one vendor's program, as data. A new program is a new file.

mod load;
mod schema;

pub use load::{Adapters, Problem, parse};
pub use schema::{
    Acp, Adapter, Auth, Cloud, Dialog, DialogOption, Env, Format, Headless, Kind, Means, MissingFile,
    NamedVariables, Pattern, Program, PromptBy, Pty, Rule, SandboxNeeds,
};
