//! `tiller keys`, `tiller themes`, `tiller config`: what is in force, as text or JSON.

use std::path::Path;

use serde_json::json;
use tiller_protocol::{Notice, NoticeKind};

use super::{Exit, json_line, say};
use crate::wire::Setup;

/// Every key, by section.
pub(super) fn keys(setup: &Setup, json: bool) -> Result<Exit, Notice> {
    let map = tiller_tui::ui::load_keys(&setup.config.config.ui, Some(&setup.places.config))?;
    let mut text = String::new();
    let mut section = "";
    let table = map.table();
    for row in &table {
        if json {
            text.push_str(&json_line(
                &json!({"scope": row.scope, "keys": row.keys, "action": row.action.0, "help": row.help}),
            ));
            continue;
        }
        if row.scope != section {
            section = row.scope;
            text.push_str(&format!("\n[{section}]\n"));
        }
        text.push_str(&format!("  {:20} {:26} {}\n", row.keys, row.action.0, row.help));
    }
    say(text.trim_start_matches('\n'))
}

/// Names of themes, or a base16 scheme as a theme.
pub(super) fn themes(setup: &Setup, import: Option<&Path>, json: bool) -> Result<Exit, Notice> {
    if let Some(path) = import {
        let text = std::fs::read_to_string(path).map_err(|e| {
            Notice::new(NoticeKind::Config, format!("{} could not be read: {e}.", path.display()))
                .hint("Name a base16 scheme: a YAML file with base00 to base0F.")
        })?;
        let theme = tiller_tui::theme::base16::import(&text).ok_or_else(|| {
            Notice::new(NoticeKind::Config, format!("{} is no base16 scheme.", path.display()))
                .hint("It needs base00 to base0F, each a colour such as 1d2021.")
        })?;
        return say(&theme);
    }
    let depth = tiller_tui::theme::Depth::of_env(&*setup.env);
    let folder = Some(setup.places.config.join("themes"));
    let (themes, wrong) = tiller_tui::theme::Themes::new(&setup.config.config.ui, depth, folder);
    if let Some(why) = wrong {
        return Err(Notice::new(NoticeKind::Config, format!("theme: {why}")));
    }
    let names = themes.names();
    if json {
        return say(&json_line(&names));
    }
    say(&names.iter().map(|n| format!("{n}\n")).collect::<String>())
}

/// Settings with or without their origin, or the schema.
pub(super) fn config(setup: &Setup, schema: bool, origin: bool) -> Result<Exit, Notice> {
    if schema {
        let text = serde_json::to_string_pretty(&tiller_config::json_schema()).map_err(|e| {
            Notice::new(NoticeKind::Internal, format!("The schema could not be printed: {e}."))
        })?;
        return say(&format!("{text}\n"));
    }
    let mut text = String::new();
    for (key, value, from) in setup.config.lines() {
        if origin {
            text.push_str(&format!("{key} = {value}    # {from}\n"));
        } else {
            text.push_str(&format!("{key} = {value}\n"));
        }
    }
    say(&text)?;
    setup.check_config().map(|()| Exit::Done)
}
