//! What extends the program beside its settings.

mod hooks;
mod packs;
mod plugins;
mod skills;
