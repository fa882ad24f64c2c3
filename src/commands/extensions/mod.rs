//! Commands about what extends Tiller: hooks, plugins.

pub(super) mod hooks;
pub(super) mod plugins;
