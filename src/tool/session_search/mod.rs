//! `session_search`: what was said and done in earlier sessions.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::search::parse_time;
use tiller_protocol::tool::Display;
use tiller_protocol::{
    Access, RuleArgument, SearchMeaning, SearchOrder, SearchPage, SearchQuery, SearchRole, Time, ToolGrant,
    ToolInfo, ToolSet, ToolSpec, Touch,
};

use crate::{Tool, ToolCx, ToolError, ToolOutput};

/// Hits in a page, unless the call says otherwise; and at most.
const LIMIT: u32 = 10;
const MOST: u32 = 50;

/// The tool.
pub struct SessionSearch;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    query: String,
    /// Newest first
    #[serde(default)]
    newest: bool,
    /// user, assistant, tool, summary, note
    #[serde(default)]
    role_filter: Vec<String>,
    // Rarely needed; every byte of the schema is sent with every session.
    #[serde(default)]
    #[schemars(skip)]
    limit: Option<u32>,
    // Told with a result that goes on.
    #[serde(default)]
    #[schemars(skip)]
    offset: u32,
    /// 2026-11-20 or 3d
    #[serde(default)]
    since: Option<String>,
    #[serde(default)]
    #[schemars(skip)]
    until: Option<String>,
    /// Folder, or "all"
    #[serde(default)]
    project: Option<String>,
}

impl Args {
    fn parse(args: &Value) -> Result<Self, ToolError> {
        crate::schema::read(args)
    }

    /// The folder whose sessions are meant; `None`: all.
    fn place(&self, cx: &ToolCx) -> Option<String> {
        match self.project.as_deref().map(str::trim) {
            None | Some("" | "." | "this") => Some(cx.workspace.root.display().to_string()),
            Some("all") => None,
            Some(other) => Some(other.trim_end_matches('/').to_owned()),
        }
    }

    fn query(&self, cx: &ToolCx) -> Result<SearchQuery, ToolError> {
        let roles = self.role_filter.iter().map(|r| {
            let names = SearchRole::ALL.map(SearchRole::name).join(", ");
            SearchRole::parse(r)
                .ok_or_else(|| ToolError::Tell(format!("role_filter: unknown role '{r}'; use {names}")))
        });
        let time = |field: &str, text: &Option<String>| -> Result<Option<Time>, ToolError> {
            let Some(text) = text.as_deref().filter(|t| !t.trim().is_empty()) else { return Ok(None) };
            parse_time(text, cx.clock.now(), &jiff::tz::TimeZone::system()).map(Some).ok_or_else(|| {
                ToolError::Tell(format!(
                    "{field}: '{text}' is not a time; write 2026-11-20, an RFC 3339 time, or 3d"
                ))
            })
        };
        if self.query.trim().is_empty() {
            return Err(ToolError::Tell("query is empty: give at least one word".into()));
        }
        Ok(SearchQuery {
            text: self.query.clone(),
            project: self.place(cx),
            roles: roles.collect::<Result<_, _>>()?,
            since: time("since", &self.since)?,
            until: time("until", &self.until)?,
            order: if self.newest { SearchOrder::Newest } else { SearchOrder::Best },
            limit: self.limit.unwrap_or(LIMIT).clamp(1, MOST),
            offset: self.offset,
            ..SearchQuery::default()
        })
    }
}

const INFO: ToolInfo = ToolInfo {
    name: "session_search",
    set: ToolSet::Read,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Read,
    rule: RuleArgument::Text,
    aliases: &[],
    verb: ToolVerb::Recall,
    target,
};

/// What its row shows.
fn target(args: &Value) -> String {
    let text = args.get("query").and_then(Value::as_str).unwrap_or_default();
    match args.get("project").and_then(Value::as_str) {
        None | Some("" | "." | "this") => format!("\"{text}\""),
        Some("all") => format!("\"{text}\" in the sessions of every folder"),
        Some(project) => format!("\"{text}\" in the sessions of {project}"),
    }
}

#[async_trait]
impl Tool for SessionSearch {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        crate::files::spec::<Args>(self.name(), include_str!("session_search.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let args = Args::parse(args)?;
        args.query(cx)?;
        let place = args.place(cx).unwrap_or_else(|| "/".into());
        if std::path::Path::new(&place) == cx.workspace.root {
            return Ok(vec![Access::Free]);
        }
        // What was said about another folder is as private as its files.
        Ok(vec![Access::Read { path: place, inside: false }])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args = Args::parse(&args)?;
        let query = args.query(cx)?;
        let (offset, order) = (query.offset, query.order);
        let page = cx.ports.search_sessions(query).await.map_err(ToolError::Tell)?;
        let hits = page.hits.len();
        let measure = if hits == 1 { "1 hit".into() } else { format!("{hits} hits") };
        Ok(ToolOutput::text(written(&page, offset, order)).show(Display::Measure { text: measure }))
    }
}

fn written(page: &SearchPage, offset: u32, order: SearchOrder) -> String {
    let documents: String = page
        .documents
        .iter()
        .map(|d| {
            let entry = d.entry.map_or_else(String::new, |entry| format!(", entry {entry}"));
            let from = d.session.map_or_else(String::new, |s| format!(" (from session {s}{entry})"));
            format!("{} {}{from}\n   {}\n", d.kind.name(), d.title, marked(&d.preview, d.mark))
        })
        .collect();
    let mut text = documents;
    if page.hits.is_empty() && text.is_empty() {
        let hint =
            if offset > 0 { "no more hits" } else { "no hits; try fewer or other words, or project \"all\"" };
        text.push_str(&format!("{hint}\n"));
    }
    for (n, h) in (offset + 1..).zip(&page.hits) {
        let marked = marked(&h.preview, h.mark);
        let when = &h.time.to_rfc3339()[..16];
        let title = h.title.lines().next().unwrap_or_default();
        text.push_str(&format!(
            "{n}. {when} {} in \"{title}\" (session {}, entry {}, {})\n",
            h.role.name(),
            h.session,
            h.entry,
            h.project
        ));
        text.push_str(&format!("   {marked}\n"));
    }
    if page.more {
        text.push_str(&format!("more: offset {}\n", offset + page.hits.len() as u32));
    }
    text.push_str(&suggestion(page));
    text.push_str(&keywords_only(page, order));
    if page.behind > 0 {
        text.push_str(&format!("{} entries are not indexed yet\n", page.behind));
    }
    text
}

fn marked(preview: &str, (a, b): (usize, usize)) -> String {
    match a < b {
        true => format!("{}**{}**{}", &preview[..a], &preview[a..b], &preview[b..]),
        false => preview.to_owned(),
    }
}

/// What is said of a search by keywords alone. The order by time has no use for meaning.
fn keywords_only(page: &SearchPage, order: SearchOrder) -> String {
    match &page.meaning {
        SearchMeaning::Failed { why } => format!("keywords only: {why}\n"),
        SearchMeaning::Keywords if order == SearchOrder::Best => "by keywords only\n".to_owned(),
        SearchMeaning::Keywords | SearchMeaning::Used => String::new(),
    }
}

fn suggestion(page: &SearchPage) -> String {
    match (&page.instead, &page.suggestion) {
        (Some(text), _) => format!("nothing for these words: the hits are for \"{}\"\n", text.trim()),
        (None, Some(text)) => format!("did you mean: {}\n", text.trim()),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
#[path = "session_search_tests.rs"]
mod tests;
