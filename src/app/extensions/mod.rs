//! What extends Tiller beside its settings: hooks, plugins.

pub(crate) mod hooks;
pub(crate) mod plugins;
