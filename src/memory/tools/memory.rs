//! `memory`: reads and changes memory files.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::memory::MemoryPage;
use tiller_protocol::tool::Display;
use tiller_protocol::{
    Access, MemoryEntry, MemoryFile, MemoryQuery, MemoryRights, MemoryScope, MemoryState, MemoryTarget,
    Provenance, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, ToolVerb, Touch,
};
use tiller_text::clean::visible;
use tiller_tool::cx::{AskedWrite, MemoryOrigin};
use tiller_tool::{Tool, ToolCx, ToolError, ToolOutput, schema};

use crate::files::{Edit, Memory, MemoryError, Planned, Route};

/// Most entries of a search.
const FOUND: usize = 20;

/// The tool.
pub(super) struct MemoryTool(pub(super) Arc<Memory>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Read,
    #[serde(alias = "add")]
    Append,
    Replace,
    #[serde(alias = "delete")]
    Remove,
    Search,
}

// Without comments: each variant with one would be a schema of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum File {
    Memory,
    User,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scope {
    User,
    Project,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    action: Action,
    #[serde(default)]
    file: Option<File>,
    #[serde(default)]
    scope: Option<Scope>,
    /// Entry, or words to search
    #[serde(default, alias = "query", alias = "content")]
    text: String,
    #[serde(default, alias = "old_text")]
    old: String,
}

const INFO: ToolInfo = ToolInfo {
    name: "memory",
    set: ToolSet::Memory,
    grant: ToolGrant::Main,
    starts_agents: false,
    touch: Touch::Plan,
    rule: RuleArgument::Text,
    aliases: &["remember", "memorize", "save_memory"],
    verb: ToolVerb::Memory,
    target,
};

/// What its row shows.
fn target(args: &Value) -> String {
    let text = |key: &str| args.get(key).and_then(Value::as_str).unwrap_or_default();
    let what = match text("action") {
        "remove" | "delete" => text("old"),
        _ => text("text"),
    };
    let line: String = what.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(120).collect();
    format!("{} {line}", text("action")).trim().to_owned()
}

impl Args {
    /// Entries are written to the user's MEMORY.md, unless the call says otherwise.
    fn target(&self) -> MemoryTarget {
        MemoryTarget { file: self.file().unwrap_or_default(), scope: self.scope().unwrap_or_default() }
    }

    fn file(&self) -> Option<MemoryFile> {
        self.file.map(|file| match file {
            File::Memory => MemoryFile::Memory,
            File::User => MemoryFile::User,
        })
    }

    fn scope(&self) -> Option<MemoryScope> {
        self.scope.map(|scope| match scope {
            Scope::User => MemoryScope::User,
            Scope::Project => MemoryScope::Project,
        })
    }

    fn is_of(&self, target: MemoryTarget) -> bool {
        self.file().is_none_or(|file| file == target.file)
            && self.scope().is_none_or(|scope| scope == target.scope)
    }

    /// The change that it asks for; `None`: it only reads.
    fn edit(&self) -> Option<Edit> {
        let (old, text) = (self.old.clone(), self.text.clone());
        match self.action {
            Action::Append => Some(Edit::Append(text)),
            Action::Replace => Some(Edit::Replace { old, text }),
            // Models often give the entry as its text.
            Action::Remove => Some(Edit::Remove { old: if old.is_empty() { text } else { old } }),
            Action::Read | Action::Search => None,
        }
    }
}

#[async_trait]
impl Tool for MemoryTool {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: INFO.name.into(),
            description: include_str!("memory.md").trim().into(),
            schema: schema::of::<Args>(),
        }
    }

    fn access(&self, args: &Value, _cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let given: Args = schema::read(args)?;
        if given.edit().is_none() {
            return Ok(vec![Access::Free]);
        }
        let path = self.0.path(given.target()).map(|path| path.display().to_string());
        Ok(vec![Access::Store {
            what: format!("changes {}: {}", given.target().label(), target(args)),
            path,
        }])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let said = match args.edit() {
            None => self.show(args, cx).await?,
            Some(edit) => return self.change(args.target(), edit, cx).await,
        };
        let (text, count) = said;
        let text = tiller_tool::output::bound(text, cx);
        let measure = if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") };
        Ok(ToolOutput::text(text).show(Display::Measure { text: measure }))
    }
}

impl MemoryTool {
    /// The entries that the call asks for, and their number.
    async fn show(&self, args: Args, cx: &ToolCx) -> Result<(String, usize), ToolError> {
        let origin = cx.ports.memory_origin(&cx.agent, "").await.map_err(ToolError::Tell)?;
        if origin.rights == MemoryRights::Off {
            return Err(ToolError::Tell(NO_RIGHTS.into()));
        }
        let memory = Arc::clone(&self.0);
        blocking(move || match args.action {
            Action::Search => found(&memory, &args),
            _ => listed(&memory, &args),
        })
        .await
    }

    async fn change(&self, target: MemoryTarget, edit: Edit, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let text = match &edit {
            Edit::Append(text) | Edit::Replace { text, .. } => text.as_str(),
            Edit::Remove { .. } => "",
        };
        let MemoryOrigin { provenance, rights, .. } =
            cx.ports.memory_origin(&cx.agent, text).await.map_err(ToolError::Tell)?;
        if rights != MemoryRights::Write {
            return Err(ToolError::Tell(NO_RIGHTS.into()));
        }
        if self.0.route(provenance.taint) == Route::Never {
            return Err(ToolError::Tell(
                "the settings let no agent write memory (memory.approve = \"never\"); the user can write it with # in the composer"
                    .into(),
            ));
        }
        let memory = Arc::clone(&self.0);
        let planned = blocking(move || memory.plan(target, &edit, provenance)).await?;
        // What it replaces or repeats may be less trusted than what the turn has read.
        let mut route = self.0.route_of(&planned);
        if route == Route::Ask {
            let (path, diff) = (target.label().into(), planned.diff.clone());
            let asked = AskedWrite { path, diff, rule: planned.is_about_rule() };
            route = match cx.ports.confirm_memory(&cx.agent, asked).await {
                Some(true) => Route::Write,
                Some(false) => {
                    return Err(ToolError::Declined("the user declined; memory is as it was".into()));
                }
                None => Route::Pend,
            };
        }
        let memory = Arc::clone(&self.0);
        let label = target.label();
        let said = blocking(move || carry(&memory, &planned, route)).await?;
        Ok(ToolOutput::text(format!("{said} {label}")).show(Display::Measure { text: label.into() }))
    }
}

const NO_RIGHTS: &str = "this agent may not do this: its definition does not say `memory: write` (or `read`)";

/// The entries of files in their order with their number, and what else of the files models see.
fn listed(memory: &Memory, args: &Args) -> Result<(String, usize), MemoryError> {
    let page = memory.page(&MemoryQuery::default())?;
    let mut out = faults(&page, args);
    let mut count = 0;
    for file in page.files.iter().filter(|f| args.is_of(f.target)) {
        for state in [MemoryState::Kept, MemoryState::Archived] {
            let entries: Vec<_> = page
                .entries
                .iter()
                .filter(|e| e.target == file.target && e.state == state && !e.hidden)
                .collect();
            if entries.is_empty() {
                continue;
            }
            let archive = if state == MemoryState::Archived { ", archive" } else { "" };
            out.push_str(&format!("{}{archive}:\n", file.target.label()));
            entries.iter().for_each(|e| out.push_str(&format!("- {}\n", line(e))));
            count += entries.len();
        }
    }
    for (_, label, lines) in memory.other_text().into_iter().filter(|(target, ..)| args.is_of(*target)) {
        out.push_str(&format!("{label}:\n"));
        lines.iter().for_each(|line| out.push_str(&format!("{line}\n")));
    }
    let said = if out.is_empty() { "no entries" } else { out.trim_end() };
    Ok((said.to_owned(), count))
}

/// The entries that fit the words, best first, and their number.
fn found(memory: &Memory, args: &Args) -> Result<(String, usize), MemoryError> {
    if args.text.trim().is_empty() {
        return Err(MemoryError::Refused("text is empty: give words to search for".into()));
    }
    let page = memory.page(&MemoryQuery { filter: args.text.clone() })?;
    let mut out = faults(&page, args);
    let kept = |e: &&MemoryEntry| matches!(e.state, MemoryState::Kept | MemoryState::Archived) && !e.hidden;
    let fit: Vec<_> = page.entries.iter().filter(kept).filter(|e| args.is_of(e.target)).collect();
    for e in fit.iter().take(FOUND) {
        let archive = if e.state == MemoryState::Archived { ", archive" } else { "" };
        let from = e.from.as_ref().and_then(Provenance::cited).map_or_else(String::new, |c| format!("; {c}"));
        out.push_str(&format!("- {} ({}{archive}{from})\n", line(e), e.target.label()));
    }
    if let Some(more) = fit.len().checked_sub(FOUND).filter(|more| *more > 0) {
        out.push_str(&format!("{more} more entries are not shown: give other words\n"));
    }
    if fit.is_empty() {
        out.push_str("no entry fits these words\n");
    }
    if let Some(spelling) = &page.suggestion {
        out.push_str(&format!("did you mean: {}\n", spelling.trim()));
    }
    Ok((out.trim_end().to_owned(), fit.len()))
}

/// Files that cannot be read, a line each.
fn faults(page: &MemoryPage, args: &Args) -> String {
    let files = page.files.iter().filter(|f| args.is_of(f.target) && !f.fault.is_empty());
    files.map(|f| format!("{}\n", f.fault)).collect()
}

fn line(e: &MemoryEntry) -> String {
    let date = if e.date.is_empty() { String::new() } else { format!("{}: ", e.date) };
    format!("{date}{}", visible(&e.marked_text()).replace('\n', "\n  "))
}

/// Writes a change, or keeps it for the user. Returns the start of a sentence about the file.
fn carry(memory: &Memory, planned: &Planned, route: Route) -> Result<&'static str, MemoryError> {
    if route == Route::Pend {
        memory.pend(planned)?;
        return Ok("the user decides about it later (/memory); until then it is not in");
    }
    memory.carry_out(planned)?;
    Ok(match (&planned.removed, &planned.added) {
        (Some(_), Some(_)) => "replaced in",
        (Some(_), None) => "removed from",
        _ => "added to",
    })
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MemoryError> + Send + 'static,
) -> Result<T, ToolError> {
    super::off_thread(work).await?.map_err(|e| match e {
        MemoryError::NotFound(_) => ToolError::Tell(format!("{e}; read the file first")),
        e => ToolError::Tell(e.to_string()),
    })
}

#[cfg(test)]
mod tests;
