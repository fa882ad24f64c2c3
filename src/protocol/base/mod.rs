//! What all of the vocabulary rests on: identifiers, time, money, notices, names.

pub mod clock;
pub mod ids;
mod lock;
pub mod mask;
pub mod names;
pub mod nearest;
pub mod notice;
pub mod protected_names;
pub mod secret_paths;
pub mod usage;
pub(crate) mod word;

pub use lock::lock;
