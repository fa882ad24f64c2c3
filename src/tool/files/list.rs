//! `list_dir`: one folder.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::Path;
use tiller_protocol::ToolVerb;

use async_trait::async_trait;
use ignore::WalkBuilder;
use rustix::fs::{AtFlags, FileType};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::tool::Display;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use crate::files::path::beneath;
use crate::files::path::{Place, declare, resolve, show};
use crate::guard::blocking;
use crate::output::human;
use crate::text::visible;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Rows that are shown, and names that are looked at.
const ROWS: usize = 500;
const NAMES: usize = 100_000;

/// The tool.
pub struct ListDir;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    path: Option<String>,
    /// Include ignored files
    #[serde(default)]
    all: bool,
}

impl Args {
    fn path(&self) -> &str {
        self.path.as_deref().filter(|p| !p.is_empty()).unwrap_or(".")
    }
}

const INFO: ToolInfo = ToolInfo {
    name: "list_dir",
    set: ToolSet::Read,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Read,
    rule: RuleArgument::ReadPath,
    aliases: &["ls", "list"],
    verb: ToolVerb::List,
    target,
};

/// What its row shows.
fn target(args: &Value) -> String {
    let path = super::path_of(args);
    if path.is_empty() { ".".into() } else { path }
}

#[async_trait]
impl Tool for ListDir {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        super::spec::<Args>(self.name(), include_str!("list.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let place = resolve(schema::read::<Args>(args)?.path(), cx)?;
        declare(cx, &[&place]);
        Ok(vec![place.reads()])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let cx = cx.clone();
        blocking("list", move || {
            let place = resolve(args.path(), &cx)?;
            list(&place, args.all, &cx)
        })
        .await
    }
}

fn list(place: &Place, all: bool, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
    let dir = beneath::open_dir(place, cx).map_err(|e| {
        // The same words stand for a file in the middle of a path; here it is its end.
        let file = std::fs::metadata(&place.path).is_ok_and(|m| m.is_file());
        match (file, &place.hidden) {
            (true, _) => ToolError::Tell(format!("{} is a file; use read_file", place.name)),
            (_, Some(_)) => ToolError::Tell(format!("{} does not exist{}", place.name, place.hidden_note())),
            _ => e,
        }
    })?;
    let names = beneath::names(&dir, NAMES)?;
    let shown = (!all).then(|| not_ignored(&place.path));
    let mut hidden = 0usize;
    let mut rows = Vec::with_capacity(names.len());
    for name in names {
        if shown.as_ref().is_some_and(|s| !s.contains(&name)) {
            hidden += 1;
        } else if let Some(row) = row(&dir, &name) {
            rows.push(row);
        }
    }
    rows.sort();
    let total = rows.len();
    let mut text = format!("{}/\n", place.name.trim_end_matches('/'));
    for (_, _, row) in rows.into_iter().take(ROWS) {
        text.push_str(&row);
        text.push('\n');
    }
    if total > ROWS {
        text.push_str(&format!("[... {} more; search with a glob finds files by name]\n", total - ROWS));
    }
    if hidden > 0 {
        text.push_str(&format!("[{hidden} ignored; all=true shows them]\n"));
    }
    if total == 0 && hidden == 0 {
        text.push_str("[empty]\n");
    }
    let words = if total == 1 { "1 entry".into() } else { format!("{total} entries") };
    Ok(ToolOutput::text(text).show(Display::Measure { text: words }))
}

/// Names in the folder that no ignore rule hides. Only a filter: what is shown comes from the descriptor.
fn not_ignored(path: &Path) -> HashSet<OsString> {
    let mut walk = WalkBuilder::new(path);
    walk.max_depth(Some(1)).hidden(false).require_git(false).follow_links(false);
    // `.git` is not ignored by any rule. It is listed, because its presence is informative.
    walk.build().flatten().filter(|e| e.depth() == 1).map(|e| e.file_name().to_owned()).collect()
}

/// Folders first; then by name. `None`: it is gone already.
fn row(dir: &OwnedFd, name: &OsStr) -> Option<(bool, String, String)> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let shown = visible(&show(Path::new(name))).replace('\n', "\u{240a}");
    let kind = FileType::from_raw_mode(stat.st_mode);
    let row = match kind {
        FileType::Directory => format!("  {shown}/"),
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(dir, name, Vec::new()).ok();
            let target = target.map(|t| visible(&t.to_string_lossy()).replace('\n', "\u{240a}"));
            format!("  {shown} -> {}", target.unwrap_or_default())
        }
        FileType::RegularFile => {
            let mark = if stat.st_mode & 0o111 == 0 { "" } else { "*" };
            format!("  {shown}{mark}  {}", human(u64::try_from(stat.st_size).unwrap_or(0)))
        }
        FileType::Fifo => format!("  {shown}  (named pipe)"),
        FileType::Socket => format!("  {shown}  (socket)"),
        _ => format!("  {shown}  (device)"),
    };
    Some((kind != FileType::Directory, shown, row))
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
