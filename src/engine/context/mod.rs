//! What the model sees: the frozen prefix, the path as a request, and how both are kept small.

pub mod compact;
pub mod layers;
pub mod mentions;
pub mod project;
pub mod request;
pub mod tokens;
