//! `edit_file`: exact replacement in one file.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::mask::has_mask;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use crate::files::change::diff;
use crate::files::change::ledger;
use crate::files::change::replace::{Ask, replace};
use crate::files::change::{Edit, Who, apply, counts, current, notes, report};
use crate::files::masks::MaskedText;
use crate::files::path::{Place, declare, tell, to_write};
use crate::guard::blocking;
use crate::{Preview, Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct EditFile;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(alias = "file_path")]
    path: String,
    #[serde(alias = "old_string", alias = "old_text")]
    old: String,
    #[serde(alias = "new_string", alias = "new_text")]
    new: String,
    #[serde(default)]
    replace_all: bool,
}

const INFO: ToolInfo = ToolInfo {
    name: "edit_file",
    set: ToolSet::Edit,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Write,
    rule: RuleArgument::EditPath,
    aliases: &["edit", "multiedit", "notebookedit", "str_replace"],
    verb: ToolVerb::Edit,
    target: super::path_of,
};

#[async_trait]
impl Tool for EditFile {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        super::spec::<Args>(self.name(), include_str!("edit.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let place = existing(&schema::read::<Args>(args)?.path, cx)?;
        declare(cx, &[&place]);
        Ok(vec![place.writes()])
    }

    async fn ready(&self, args: &Value, cx: &ToolCx, show: bool) -> Result<(), ToolError> {
        let args: Args = schema::read(args)?;
        let cx = cx.clone();
        blocking("edit", move || {
            ledger::known_first(&cx, &[existing(&args.path, &cx)?], show)?;
            if show { plan(&args, &cx, true).map(drop) } else { Ok(()) }
        })
        .await
    }

    async fn preview(&self, args: &Value, cx: &ToolCx) -> Preview {
        let Ok(args) = schema::read::<Args>(args) else { return Preview::default() };
        let cx = cx.clone();
        let planned = blocking("edit", move || plan(&args, &cx, false)).await.ok();
        Preview::of(planned.and_then(|(edit, ..)| edit.diff).map(diff::ShownDiff::preview))
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let cx = cx.clone();
        blocking("edit", move || {
            let (edit, lines, notes) = plan(&args, &cx, true)?;
            let name = edit.place.name.clone();
            let files = apply(vec![edit], &cx, Who::Agent)?;
            let at = match lines.as_slice() {
                [line] => format!("at line {line}"),
                many => format!("at {} places, first line {}", many.len(), many.first().unwrap_or(&1)),
            };
            let counts = files.first().map(counts).unwrap_or_default();
            Ok(report(format!("edited {name}: {counts} {at}.{notes}"), files))
        })
        .await
    }
}

/// A file that must be there already.
fn existing(raw: &str, cx: &ToolCx) -> Result<Place, ToolError> {
    let place = to_write(raw, cx)?;
    if place.exists {
        Ok(place)
    } else {
        tell(format!("{raw} does not exist; use write_file to create files{}", place.hidden_note()))
    }
}

fn plan(args: &Args, cx: &ToolCx, check: bool) -> Result<(Edit, Vec<usize>, String), ToolError> {
    let place = existing(&args.path, cx)?;
    let current = current(&place, cx)?;
    if check {
        ledger::check(cx, &place.path, &place.name, &current.bytes)?;
    }
    let text = current.text(&place.name)?;
    let ask = Ask { old: &args.old, new: &args.new, all: args.replace_all };
    let masked = masks_of(&place.name, &[ask.old, ask.new], &text.text, cx);
    let done =
        replace(&place.name, &masked, ask).map_err(|e| ToolError::Tell(format!("{}: {e}", place.name)))?;
    let notes = notes(&current);
    Ok((Edit::replace(place, current, &done.text)?, done.lines, notes))
}

/// The file as it was read, when what was written has masks in it.
pub(super) fn masks_of<'t>(name: &str, written: &[&str], text: &'t str, cx: &ToolCx) -> MaskedText<'t> {
    if written.iter().any(|w| has_mask(w)) {
        MaskedText::of_file(name, text, &cx.workspace.secrets)
    } else {
        MaskedText::plain(text)
    }
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
