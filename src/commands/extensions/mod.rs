//! Commands about what extends Tiller: hooks.

pub(super) mod hooks;
