//! What the model sees: the frozen prefix, the path as a request, and how both are kept small.

pub(crate) mod clean;
pub(crate) mod compaction;
pub(crate) mod effort;
pub(crate) mod handle;
pub(crate) mod msg;
pub mod news;
pub(crate) mod part;
pub(crate) mod prefix;
pub(crate) mod side_call;
pub mod todo;
pub(crate) mod windows;

pub mod mentions;
pub mod request;
pub mod tokens;
