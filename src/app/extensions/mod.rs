//! What extends Tiller beside its settings: hooks, plugins, packs of skills.

pub(crate) mod hook_files;
pub(crate) mod hooks;
pub(crate) mod packs;
pub(crate) mod plugins;
