//! Finding and starting actions: palette, help, the list of keys after a prefix.

pub mod help;
pub mod palette;
pub(crate) mod which_key;
