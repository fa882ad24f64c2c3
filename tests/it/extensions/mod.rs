//! What extends the program beside its settings.

mod hooks;
mod packs;
mod plugins;
mod skill_offer;
mod skill_remotes;
mod skill_trial;
mod skills;
