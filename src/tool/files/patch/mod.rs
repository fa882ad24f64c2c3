//! `patch`: several files in one go, all or nothing.

pub(super) mod hunks;
pub(super) mod parse;
pub mod patched;

use std::collections::HashSet;
use tiller_protocol::ToolVerb;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{Access, ChangeKind, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use self::parse::{Hunk, Section, parse};
use crate::files::change::commit::Change;
use crate::files::change::diff;
use crate::files::change::ledger;
use crate::files::change::{Current, Edit, Who, apply, counts, current, encode, report};
use crate::files::masks::{MaskedText, restore};
use crate::files::path::{Place, declare, tell, to_write};
use crate::guard::blocking;
use crate::{Preview, Tool, ToolCx, ToolError, ToolOutput, schema};

/// Files of one patch.
const FILES: usize = 500;

/// The tool.
pub struct Patch;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(alias = "input")]
    patch: String,
}

const INFO: ToolInfo = ToolInfo {
    name: "patch",
    set: ToolSet::Edit,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Write,
    rule: RuleArgument::EditPath,
    aliases: &["apply_patch"],
    verb: ToolVerb::Patch,
    target,
};

/// What its row shows.
fn target(args: &Value) -> String {
    let text = args.get("patch").and_then(Value::as_str).unwrap_or_default();
    let paths = text.lines().filter_map(|l| {
        ["*** Add File:", "*** Delete File:", "*** Update File:"].iter().find_map(|h| l.strip_prefix(h))
    });
    let paths: Vec<&str> = paths.map(str::trim).collect();
    match paths.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, rest @ ..] => format!("{one} and {} more", rest.len()),
    }
}

#[async_trait]
impl Tool for Patch {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        super::spec::<Args>(self.name(), include_str!("patch.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args: Args = schema::read(args)?;
        let places = places(&sections(&args)?, cx)?;
        declare(cx, &places.iter().collect::<Vec<_>>());
        Ok(places.iter().map(Place::writes).collect())
    }

    async fn ready(&self, args: &Value, cx: &ToolCx, show: bool) -> Result<(), ToolError> {
        let args: Args = schema::read(args)?;
        let cx = cx.clone();
        blocking("patch", move || {
            ledger::known_first(&cx, &places(&sections(&args)?, &cx)?, show)?;
            if show { plan(&args, &cx, true).map(drop) } else { Ok(()) }
        })
        .await
    }

    async fn preview(&self, args: &Value, cx: &ToolCx) -> Preview {
        let Ok(args) = schema::read::<Args>(args) else { return Preview::default() };
        let cx = cx.clone();
        let planned = blocking("patch", move || plan(&args, &cx, false)).await.ok();
        Preview::of(
            planned.map(|edits| {
                edits.into_iter().filter_map(|e| e.diff).map(diff::ShownDiff::preview).collect()
            }),
        )
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let cx = cx.clone();
        blocking("patch", move || {
            let files = apply(plan(&args, &cx, true)?, &cx, Who::Agent)?;
            let mut said =
                format!("patched {} {}:", files.len(), if files.len() == 1 { "file" } else { "files" });
            for file in &files {
                let mark = match file.kind {
                    ChangeKind::Added => 'A',
                    ChangeKind::Deleted => 'D',
                    ChangeKind::Renamed => 'R',
                    _ => 'M',
                };
                said.push_str(&format!("\n{mark} {} {}", file.path, counts(file)));
            }
            Ok(report(said, files))
        })
        .await
    }
}

fn sections(args: &Args) -> Result<Vec<Section>, ToolError> {
    let sections = parse(&args.patch).or_else(|e| tell(format!("invalid patch: {e}")))?;
    if sections.len() > FILES {
        return tell(format!("the patch has more than {FILES} files"));
    }
    Ok(sections)
}

/// Every path that the patch touches; each only once.
fn places(sections: &[Section], cx: &ToolCx) -> Result<Vec<Place>, ToolError> {
    let mut places = Vec::new();
    for section in sections {
        places.push(to_write(section.path(), cx)?);
        if let Section::Update { to: Some(to), .. } = section {
            places.push(to_write(to, cx)?);
        }
    }
    let mut seen = HashSet::new();
    match places.iter().find(|p| !seen.insert(p.named.clone())) {
        Some(twice) => tell(format!("{} appears twice; put all its hunks into one section", twice.name)),
        None => Ok(places),
    }
}

/// The changes that a call would make, without a comparison with what was read before.
pub(super) fn planned(args: &Value, cx: &ToolCx) -> Result<Vec<Edit>, ToolError> {
    plan(&schema::read(args)?, cx, false)
}

/// Works everything out; changes nothing.
fn plan(args: &Args, cx: &ToolCx, check: bool) -> Result<Vec<Edit>, ToolError> {
    let sections = sections(args)?;
    places(&sections, cx)?;
    let mut edits = Vec::new();
    for section in sections {
        match section {
            Section::Add { path, content } => {
                let place = absent(&path, cx)?;
                // What is new has no values that masks could stand for.
                restore(&content, &[]).map_err(|u| u.error(&place.name, false))?;
                edits.push(Edit::create(place, &content));
            }
            Section::Delete { path } => {
                let (place, current) = known(&path, cx, check)?;
                own_name(&place, "deleted")?;
                edits.push(Edit::remove(place, &current));
            }
            Section::Update { path, to, hunks } => {
                let (place, current) = known(&path, cx, check)?;
                let fail = |e: String| ToolError::Tell(format!("{}: {e}", place.name));
                let after = match hunks.as_slice() {
                    [] => None,
                    hunks => {
                        let text = &current.text(&place.name)?.text;
                        let masked = hunks.iter().any(Hunk::has_mask);
                        let file = if masked {
                            MaskedText::of_file(&place.name, text, &cx.workspace.secrets)
                        } else {
                            MaskedText::plain(text)
                        };
                        Some(hunks::apply(&place.name, &file, hunks).map_err(fail)?)
                    }
                };
                match to {
                    None => edits.push(Edit::replace(place, current, &after.unwrap_or_default())?),
                    Some(to) => edits.extend(moved(place, absent(&to, cx)?, current, after)?),
                }
            }
        }
    }
    Ok(edits)
}

fn absent(path: &str, cx: &ToolCx) -> Result<Place, ToolError> {
    let place = to_write(path, cx)?;
    if place.exists { tell(format!("{path} exists already; nothing was changed")) } else { Ok(place) }
}

fn known(path: &str, cx: &ToolCx, check: bool) -> Result<(Place, Current), ToolError> {
    let place = to_write(path, cx)?;
    if !place.exists {
        return tell(format!("{path} does not exist; nothing was changed{}", place.hidden_note()));
    }
    let current = current(&place, cx)?;
    if check {
        ledger::check(cx, &place.path, &place.name, &current.bytes)?;
    }
    Ok((place, current))
}

/// Names that are links are left alone where the name itself is to go.
fn own_name(place: &Place, what: &str) -> Result<(), ToolError> {
    if place.leaf_link {
        return tell(format!("the path is a link to {}; it cannot be {what} here", place.name));
    }
    Ok(())
}

/// A new file with the old one's mode, and the old one's end.
fn moved(from: Place, to: Place, current: Current, after: Option<String>) -> Result<[Edit; 2], ToolError> {
    own_name(&from, "moved")?;
    let before = current.text.as_ref().map(|t| t.text.clone()).unwrap_or_default();
    let bytes = match &after {
        Some(after) => encode(current.text(&from.name)?, after, &to.name)?,
        None => current.bytes.clone(),
    };
    let mut shown = diff::file(&to.name, ChangeKind::Renamed, &before, after.as_ref().unwrap_or(&before));
    shown.file.diff =
        shown.file.diff.replacen(&format!("--- a/{}\n", to.name), &format!("--- a/{}\n", from.name), 1);
    let like = Some(current.old.clone());
    let create = Edit { place: to, change: Change::Create { bytes, like }, diff: Some(shown) };
    let remove = Edit { place: from, change: Change::Remove { old: current.old }, diff: None };
    Ok([create, remove])
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
