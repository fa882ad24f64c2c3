//! `tiller sessions search`: search in the text of sessions.

use serde_json::json;
use tiller_protocol::search::parse_time;
use tiller_protocol::{
    DocumentHit, Notice, NoticeKind, SearchHit, SearchMeaning, SearchOrder, SearchPage, SearchQuery,
    SearchRole, Time,
};
use tiller_store::Store;
use tiller_store::search::Lookup;

use crate::app::Setup;
use crate::commands::args::Search;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say, say_beside};

/// Prints one page of hits.
pub(super) fn run(setup: &Setup, store: &Store, search: &Search, json: bool) -> Result<Exit, Notice> {
    let query = query(setup, store, search)?;
    // After an import many entries are new: what is found so far is shown at once.
    let lookup = if search.complete { Lookup::most(u64::MAX) } else { Lookup::prompt() };
    let (finder, fault) = crate::app::tools::search::for_command(setup, store);
    if let Some(fault) = fault {
        say_beside(&fault.message);
    }
    let page = finder.search_blocking(&query, &lookup).map_err(|e| e.notice())?;
    let page = if json { page.as_asked() } else { page };
    if let (Some(folder), true) = (&search.project, page.hits.is_empty())
        && query.project.is_some()
        && !folder.exists()
    {
        let why = format!("There is no folder {}, and no session of it has these words.", folder.display());
        return Err(Notice::new(NoticeKind::User, why));
    }
    for line in beside(&page, &query, json) {
        say_beside(&line);
    }
    let more = format!("More results: --offset {}", query.offset as usize + page.hits.len());
    if json {
        if page.more {
            say_beside(&more);
        }
        let hits = page.hits.iter().map(row);
        return say(&hits
            .chain(page.documents.iter().map(document_row))
            .map(|r| json_line(&r))
            .collect::<String>());
    }
    let mut text = String::new();
    for h in &page.hits {
        let when = tiller_tui::zone::written(h.time)[..16].to_owned();
        let place = if search.all { format!("  {}", one_line(&h.project)) } else { String::new() };
        text.push_str(&format!(
            "{}  {when}  {:9}  {}{place}\n",
            h.session,
            h.role.name(),
            one_line(&h.title)
        ));
        let around = if h.mark.0 < h.mark.1 { "" } else { NO_MATCH };
        text.push_str(&format!("    {}\n    entry {}{around}\n", marked(&h.preview, h.mark), h.entry));
    }
    for d in &page.documents {
        let entry = d.entry.map_or_else(String::new, |entry| format!(", entry {entry}"));
        let from = d.session.map_or_else(String::new, |session| format!("  from session {session}{entry}"));
        text.push_str(&format!(
            "{:9}  {}{from}\n    {}\n",
            d.kind.name(),
            one_line(&d.title),
            marked(&d.preview, d.mark)
        ));
    }
    if text.is_empty() {
        text = format!("Nothing found{}.\n", wider(search));
    } else if page.more {
        text.push_str(&format!("{more}\n"));
    }
    say(&text)
}

/// What is said of a hit without a match of its own.
const NO_MATCH: &str = ", found by the entries before or after it, another spelling, or meaning";

/// What may have kept hits away, where nothing was found.
fn wider(search: &Search) -> &'static str {
    let filtered = !search.role.is_empty()
        || search.agent.is_some()
        || search.branch.is_some()
        || search.since.is_some()
        || search.until.is_some();
    match (filtered, search.all) {
        (true, _) => " with these filters",
        (false, true) => "",
        (false, false) => " (--all searches the sessions in all folders)",
    }
}

/// What is said beside the hits. `json`: a program reads them, to which only faults are said.
fn beside(page: &SearchPage, query: &SearchQuery, json: bool) -> Vec<String> {
    let behind = match page.behind {
        0 => None,
        1 => Some("1 entry is not indexed yet (--complete waits for it).".to_owned()),
        n => Some(format!("{n} entries are not indexed yet (--complete waits for them).")),
    };
    let suggestion = page.suggestion.as_ref().map(|text| format!("Did you mean: {}", one_line(text.trim())));
    let meaning = match &page.meaning {
        SearchMeaning::Failed { why } => Some(format!("Searched by keywords only: {}.", one_line(why))),
        // The order by time has no use for meaning.
        SearchMeaning::Keywords => {
            (query.order == SearchOrder::Best && !json).then(|| "Searched by keywords only.".to_owned())
        }
        SearchMeaning::Used => None,
    };
    let instead = page.instead.as_ref().map(|text| {
        let (asked, found) = (one_line(query.text.trim()), one_line(text.trim()));
        format!("Nothing for \"{asked}\"; hits for \"{found}\":")
    });
    behind.into_iter().chain(meaning).chain(instead).chain(suggestion).collect()
}

/// A preview in one line, with its match in brackets.
fn marked(preview: &str, (a, b): (usize, usize)) -> String {
    let (before, hit, after) = (one_line(&preview[..a]), one_line(&preview[a..b]), one_line(&preview[b..]));
    let hit = if a < b { format!("[{hit}]") } else { hit };
    format!("{before}{hit}{after}")
}

/// Memory, a learning or a skill: the rows of sessions have no kind.
fn document_row(d: &DocumentHit) -> serde_json::Value {
    json!({
        "kind": d.kind, "key": d.key, "title": d.title, "session": d.session, "entry": d.entry,
        "preview": d.preview, "mark": d.mark,
    })
}

fn row(h: &SearchHit) -> serde_json::Value {
    json!({
        "session": h.session, "title": h.title, "project": h.project, "entry": h.entry, "role": h.role,
        "agent": h.agent, "time": h.time, "preview": h.preview, "mark": h.mark,
    })
}

fn query(setup: &Setup, store: &Store, s: &Search) -> Result<SearchQuery, Notice> {
    let roles = s.role.iter().map(|name| {
        SearchRole::parse(name).ok_or_else(|| {
            let names = SearchRole::ALL.map(SearchRole::name).join(", ");
            Notice::new(NoticeKind::User, format!("There is no role '{name}'.")).hint(format!("Use {names}."))
        })
    });
    let time = |flag: &str, text: &Option<String>| -> Result<Option<Time>, Notice> {
        let Some(text) = text else { return Ok(None) };
        parse_time(text, setup.clock.now(), &jiff::tz::TimeZone::system()).map(Some).ok_or_else(|| {
            Notice::new(NoticeKind::User, format!("{flag} {text} is not a time."))
                .hint("Write a date (2026-11-20), an RFC 3339 time, or an age: 30m, 12h, 3d, 2w.")
        })
    };
    let project = match (&s.project, s.all) {
        (_, true) => None,
        (None, false) => Some(setup.project_name()),
        // A deleted folder may still have sessions.
        (Some(p), false) => {
            Some(tiller_protocol::names::written(&p.canonicalize().unwrap_or_else(|_| p.clone())))
        }
    };
    let session = s.session.as_deref().map(|id| setup.find_session(store, id)).transpose()?;
    Ok(SearchQuery {
        text: s.query.join(" "),
        // A named session may belong to any folder.
        project: if session.is_some() { None } else { project },
        session,
        roles: roles.collect::<Result<_, _>>()?,
        agent: s.agent.clone(),
        branch: s.branch.clone(),
        since: time("--since", &s.since)?,
        until: time("--until", &s.until)?,
        order: if s.newest { SearchOrder::Newest } else { SearchOrder::Best },
        limit: s.limit,
        offset: s.offset,
    })
}
