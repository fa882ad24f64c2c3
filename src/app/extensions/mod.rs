//! What extends Tiller beside its settings: hooks.

pub(crate) mod hooks;
