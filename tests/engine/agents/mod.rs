//! Agents that are started by agents or by the user, programs of other vendors, workflows.

pub(crate) mod allowed_tools;
pub(crate) mod budgets;
pub(crate) mod delegation;
pub(crate) mod external;
pub(crate) mod external_full_profile;
pub(crate) mod external_questions;
pub(crate) mod figures;
pub(crate) mod files;
pub(crate) mod goals;
pub(crate) mod late_files;
pub(crate) mod ledger;
pub(crate) mod races;
pub(crate) mod reuse;
pub(crate) mod skill_offer;
pub(crate) mod skills;
pub(crate) mod stored;
pub(crate) mod stress;
pub(crate) mod terminal_pane;
pub(crate) mod terminals;
pub(crate) mod user_commands;
pub(crate) mod workflows;
