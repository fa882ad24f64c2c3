//! `write_file`: a whole file, new or in place of a file that the agent has read.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::edit::masks_of;
use crate::files::change::diff;
use crate::files::change::ledger;
use crate::files::change::{Edit, Who, adopt_line_ends, apply, counts, current, notes, report};
use crate::files::masks::{pictures, restore};
use crate::files::path::{Place, declare, to_write};
use crate::guard::blocking;
use crate::{Preview, Tool, ToolCx, ToolError, ToolOutput, schema};

/// The tool.
pub struct WriteFile;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(alias = "file_path")]
    path: String,
    #[serde(alias = "contents", alias = "text")]
    content: String,
}

const INFO: ToolInfo = ToolInfo {
    name: "write_file",
    set: ToolSet::Edit,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Write,
    rule: RuleArgument::WritePath,
    aliases: &["write", "create"],
    verb: ToolVerb::Write,
    target: super::path_of,
};

#[async_trait]
impl Tool for WriteFile {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        super::spec::<Args>(self.name(), include_str!("write.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let place = to_write(&schema::read::<Args>(args)?.path, cx)?;
        declare(cx, &[&place]);
        Ok(vec![place.writes()])
    }

    async fn ready(&self, args: &Value, cx: &ToolCx, show: bool) -> Result<(), ToolError> {
        let args: Args = schema::read(args)?;
        let cx = cx.clone();
        blocking("write", move || {
            ledger::known_first(&cx, &[to_write(&args.path, &cx)?], show)?;
            if show { plan(&args, &cx, true).map(drop) } else { Ok(()) }
        })
        .await
    }

    async fn preview(&self, args: &Value, cx: &ToolCx) -> Preview {
        let Ok(args) = schema::read::<Args>(args) else { return Preview::default() };
        let cx = cx.clone();
        let planned = blocking("write", move || plan(&args, &cx, false)).await.ok().flatten();
        Preview::of(planned.and_then(|(edit, ..)| edit.diff).map(diff::ShownDiff::preview))
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let cx = cx.clone();
        blocking("write", move || {
            let Some((edit, notes)) = plan(&args, &cx, true)? else {
                return Ok(ToolOutput::text(format!("{} already has exactly this content", args.path)));
            };
            let name = edit.place.name.clone();
            let verb = if edit.place.exists { "wrote" } else { "created" };
            let files = apply(vec![edit], &cx, Who::Agent)?;
            let counts = files.first().map(counts).unwrap_or_default();
            Ok(report(format!("{verb} {name}: {counts}.{notes}"), files))
        })
        .await
    }
}

/// The change that a call would make, without a comparison with what was read before.
pub(super) fn planned(args: &Value, cx: &ToolCx) -> Result<Option<Edit>, ToolError> {
    Ok(plan(&schema::read(args)?, cx, false)?.map(|(edit, _)| edit))
}

/// `None`: it is so already.
fn plan(args: &Args, cx: &ToolCx, check: bool) -> Result<Option<(Edit, String)>, ToolError> {
    let place = to_write(&args.path, cx)?;
    // What has no text yet has no values that masks could stand for.
    let none = |place: &Place, there| restore(&args.content, &[]).map_err(|u| u.error(&place.name, there));
    if !place.exists {
        none(&place, false)?;
        return Ok(Some((Edit::create(place, &args.content), String::new())));
    }
    let current = current(&place, cx)?;
    if check {
        ledger::check(cx, &place.path, &place.name, &current.bytes)?;
    }
    if current.text.is_err() {
        none(&place, true)?;
        // No encoding or line ends to keep: it becomes what was written.
        return Ok(Some((Edit::replace_binary(place, current, &args.content), String::new())));
    }
    let text = current.text(&place.name)?;
    let after = adopt_line_ends(&args.content, text);
    let file = masks_of(&place.name, &[&after], &text.text, cx);
    let after = pictures::restore(&after, file.shown(), file.shown()).map_err(|u| u.error(&place.name))?;
    let after = restore(&after, &[&file]).map_err(|u| u.error(&place.name, true))?.into_owned();
    if current.text.as_ref().is_ok_and(|t| t.text == after) {
        return Ok(None);
    }
    let notes = notes(&current);
    Ok(Some((Edit::replace(place, current, &after)?, notes)))
}
