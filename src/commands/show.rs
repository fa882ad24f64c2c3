//! `tiller keys`, `tiller themes`, `tiller config`: the settings in force, as text or JSON.

use std::path::Path;

use serde_json::json;
use tiller_protocol::{Notice, NoticeKind};

use crate::app::Setup;
use crate::commands::{Exit, json_line, say};

/// The origin of a setting: file and line, or the layer.
fn place(setup: &Setup, key: &str) -> Option<String> {
    let (file, line) = setup.config.origin.get(key)?.file.as_ref()?;
    Some(format!("{}:{line}", file.display()))
}

/// The keys in force. An error names its file and line.
pub(super) fn key_table(setup: &Setup) -> Result<tiller_tui::keymap::Keymap, Notice> {
    let plugins = crate::app::extensions::plugins::folders(setup);
    tiller_tui::app::ui::load_keys(&setup.config.config.ui, Some(&setup.places.config), &plugins).map_err(
        |mut n| {
            // The keymap does not know the origin of the setting.
            if let Some(at) = place(setup, "ui.keymap") {
                n.message = n.message.replacen("ui.keymap:", &format!("{at}:"), 1);
            }
            n
        },
    )
}

/// The themes, with the errors in the person's themes and in the chosen ones.
pub(super) fn all_themes(setup: &Setup) -> (tiller_tui::theme::Themes, Vec<String>) {
    let ui = &setup.config.config.ui;
    let depth = tiller_tui::theme::Depth::of_env(&*setup.env);
    let folder = setup.places.config.join("themes");
    let plugins = crate::app::extensions::plugins::folders(setup);
    let (mut themes, _) = tiller_tui::theme::Themes::with_plugins(ui, depth, Some(folder), &plugins);
    let mut bad = Vec::new();
    for name in themes.names() {
        bad.extend(themes.show(Some(&name), false).err());
    }
    for (key, name) in
        [("theme", &ui.theme), ("theme_dark", &ui.theme_dark), ("theme_light", &ui.theme_light)]
    {
        // Existing themes were checked above.
        if name == "auto" || themes.names().contains(name) {
            continue;
        }
        let at = place(setup, &format!("ui.{key}"))
            .map_or_else(|| format!("ui.{key}"), |at| format!("{at}: ui.{key}"));
        bad.extend(themes.show(Some(name), false).err().map(|why| format!("{at}: {why}")));
    }
    // Ends the preview.
    let _ = themes.show(None, false);
    bad.dedup();
    (themes, bad)
}

/// Every key, by section, in the format of a key file.
pub(super) fn keys(setup: &Setup, json: bool) -> Result<Exit, Notice> {
    let map = key_table(setup)?;
    let mut text = String::new();
    let mut section = "";
    let table = map.table();
    for row in &table {
        let keys = tiller_tui::keymap::written(&row.keys);
        if json {
            text.push_str(&json_line(
                &json!({"scope": row.scope, "keys": keys, "action": row.action.0, "help": row.help}),
            ));
            continue;
        }
        if row.scope != section {
            section = row.scope;
            text.push_str(&format!("\n[{section}]\n"));
        }
        text.push_str(&format!("  {:20} {:26} {}\n", keys, row.action.0, row.help));
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
            Notice::new(NoticeKind::Config, format!("{} is not a base16 scheme.", path.display()))
                .hint("It needs base00 to base0F, each a colour such as 1d2021.")
        })?;
        return say(&theme);
    }
    let (themes, bad) = all_themes(setup);
    let names = themes.names();
    let text = if json { json_line(&names) } else { names.iter().map(|n| format!("{n}\n")).collect() };
    let said = say(&text)?;
    // The list is complete nevertheless; problems are reported in addition.
    let mut bad = bad.into_iter();
    let Some(first) = bad.next() else { return Ok(said) };
    let notice = Notice::new(NoticeKind::Config, format!("theme: {first}"));
    Err(bad.fold(notice, Notice::hint).hint("Correct it, or choose another theme (ui.theme in config.toml)."))
}

/// Settings with or without their origin, or the schema.
pub(super) fn config(setup: &Setup, schema: bool, origin: bool) -> Result<Exit, Notice> {
    if schema {
        let text = serde_json::to_string_pretty(&tiller_config::json_schema(&setup.formats.kinds()))
            .map_err(|e| {
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
