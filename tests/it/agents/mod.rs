//! Agents and workflows: their panel, conversations, limits, trust and restart.

pub(crate) mod command_limits;
pub(crate) mod folder_trust;
pub(crate) mod history;
pub(crate) mod killed;
pub(crate) mod next_and_peek;
pub(crate) mod panel_actions;
pub(crate) mod panel_keys;
pub(crate) mod reuse;
pub(crate) mod secrets;
pub(crate) mod spawn;
pub(crate) mod stop_and_focus;
pub(crate) mod terminal_pane;
pub(crate) mod workflows;
