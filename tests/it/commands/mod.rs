//! Subcommands without a screen: output, exit codes, help.

pub(crate) mod advice;
pub(crate) mod batch;
pub(crate) mod cli;
pub(crate) mod environments;
pub(crate) mod exec;
pub(crate) mod first_request;
pub(crate) mod help;
pub(crate) mod import_export;
pub(crate) mod local_time;
pub(crate) mod loss_notices;
pub(crate) mod sandbox;
pub(crate) mod web;
pub(crate) mod workflow;
