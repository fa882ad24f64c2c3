//! What the model sees: the frozen prefix, the path as a request, and how both are kept small.

pub(crate) mod clean;
pub(crate) mod compaction;
pub(crate) mod effort;
pub(crate) mod learned_windows;
pub(crate) mod msg;
pub mod news;
pub(crate) mod shorten;
pub(crate) mod side_call;
pub(crate) mod specs;
pub mod todo;
pub(crate) mod windows;

pub mod compact;
pub mod layers;
pub mod mentions;
pub mod project;
pub mod request;
pub mod tokens;
