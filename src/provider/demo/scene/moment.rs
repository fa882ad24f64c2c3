//! Creates a checkpoint, and restores one.

use serde_json::json;

use super::shorten;
use crate::demo::Step;
use crate::demo::turn::Turn;

pub(super) fn named(turn: &Turn<'_>, tool: &'static str, name: &str) -> Step {
    match turn.last(tool) {
        None => Step::call("", tool, json!({"name": name})),
        Some(done) => Step::say(shorten(done.text.lines().next().unwrap_or_default(), 400)),
    }
}
