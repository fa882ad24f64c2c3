//! `tiller sessions`: what the workbench can do with sessions, without a screen.

use std::io::IsTerminal as _;

use serde_json::json;
use tiller_protocol::op::OpChange;
use tiller_protocol::{CommandId, EntryBody, Notice, NoticeKind, Op, OpId, SessionId};
use tiller_store::{Filter, Store};
use tiller_tui::zone::written;

use super::{Exit, json_line, say};
use crate::cli::Sessions;
use crate::wire::Setup;

/// Runs one subcommand.
pub(super) fn run(setup: &Setup, what: Sessions, json: bool) -> Result<Exit, Notice> {
    // A result as one JSON line, else as a sentence.
    let told = |row: serde_json::Value, words: String| say(&if json { json_line(&row) } else { words });
    let store = setup.open_store()?;
    let project = setup.project_name();
    match what {
        Sessions::List { all, archived } => {
            let filter = Filter { project: (!all).then_some(project), archived, ..Filter::default() };
            let rows = store.sessions(&filter).map_err(|e| e.notice())?;
            if json {
                return say(&rows.iter().map(json_line).collect::<String>());
            }
            if rows.is_empty() {
                let place = if all { "anywhere" } else { "for this folder (try --all)" };
                let more = if archived { "" } else { " --archived also lists those that were put away." };
                return say(&format!("There is no session yet {place}.{more}\n"));
            }
            // Scripts that cut lines find no more of them than before.
            let head = std::io::stdout().is_terminal();
            let mut text = String::new();
            if head {
                text.push_str(&format!(
                    "{:36}  {:16}  {:>5}  {:>8}  title\n",
                    "id", "last used", "items", "cost"
                ));
            }
            for s in rows {
                let cost = s.cost.map_or("-".into(), |c| c.to_string());
                let mut marks = String::new();
                if s.archived {
                    marks.push_str("  archived");
                }
                if let Some(pid) = &s.open_in {
                    marks.push_str(&format!("  open in process {pid}"));
                }
                if let Some(what) = &s.interrupted {
                    marks.push_str(&format!("  interrupted: {}", one_line(what)));
                }
                let place = if all { format!("  {}", s.project) } else { String::new() };
                text.push_str(&format!(
                    "{}  {}  {:>5}  {:>8}  {}{place}{marks}\n",
                    s.id,
                    &written(s.used)[..16],
                    s.entries,
                    cost,
                    one_line(if s.title.is_empty() { &s.preview } else { &s.title }),
                ));
            }
            say(&text)
        }
        Sessions::Show { id } => show(&store, setup.find_session(&store, &id)?, json),
        Sessions::Search(search) => super::search::run(setup, &store, &search, json),
        Sessions::Compare(what) => super::compare::run(setup, &store, &what, json),
        Sessions::Export(what) => super::export::run(setup, &store, &what, json),
        Sessions::Import(what) => super::import::run(setup, &store, &what, json),
        Sessions::Rename { id, title } => {
            if title.trim().is_empty() {
                return Err(Notice::new(NoticeKind::User, "A title needs a word.")
                    .hint("`tiller sessions rename ID \"what it was about\"`"));
            }
            let id = setup.find_session(&store, &id)?;
            let before = store.session(id).map_err(|e| e.notice())?.summary.title;
            let op = op(setup, id, "rename", OpChange::Title { before, after: title.clone() });
            store.set_title(id, &title, true, Some(op)).wait().map_err(|e| e.notice())?;
            told(
                json!({"session": id, "title": title}),
                format!("Session {id} is now called \"{}\".\n", one_line(&title)),
            )
        }
        Sessions::Archive { id, undo } => {
            let id = setup.find_session(&store, &id)?;
            let op = op(
                setup,
                id,
                if undo { "bring back" } else { "archive" },
                OpChange::Archived { before: undo, after: !undo },
            );
            store.set_archived(id, !undo, Some(op)).wait().map_err(|e| e.notice())?;
            let how = if undo { "back in the list" } else { "archived; --undo brings it back" };
            told(json!({"session": id, "archived": !undo}), format!("Session {id} is {how}.\n"))
        }
        Sessions::Gc => {
            let swept = store.sweep().wait().map_err(|e| e.notice())?;
            if swept.sessions > 0 {
                store.forget_index();
            }
            let n = swept.sessions;
            let words = format!("Removed {n} session(s) that were thrown away more than 30 days ago.\n");
            told(json!({"sessions": n}), words)
        }
    }
}

fn op(setup: &Setup, session: SessionId, title: &str, change: OpChange) -> Op {
    let now = setup.clock.now();
    Op {
        id: OpId::fresh(setup.ids.as_ref(), now),
        session,
        time: now,
        parent: None,
        cause: None::<CommandId>,
        title: title.into(),
        of: None,
        with: None,
        change,
    }
}

fn show(store: &Store, id: SessionId, json: bool) -> Result<Exit, Notice> {
    /// Entries read at a time.
    const PAGE: u32 = 500;
    let row = store.session(id).map_err(|e| e.notice())?;
    let mut pages = vec![store.path_tail(id, &row.head, PAGE).map_err(|e| e.notice())?];
    while let Some(first) = pages.last().filter(|p| p.earlier > 0).and_then(|p| p.entries.first()) {
        let page = store.path_page(first.id, PAGE).map_err(|e| e.notice())?;
        pages.push(page);
    }
    let mut text = String::new();
    if !json {
        let s = &row.summary;
        text.push_str(&format!(
            "{}\n{}  {}  {} entries  {}\n\n",
            one_line(&s.title),
            s.id,
            s.project,
            s.entries,
            s.model
        ));
    }
    for entry in pages.iter().rev().flat_map(|p| &p.entries) {
        if json {
            text.push_str(&json_line(entry));
            continue;
        }
        if matches!(entry.body, EntryBody::Prefix { .. }) {
            continue;
        }
        text.push_str(&format!("-- {} {}\n", entry.body.kind(), &written(entry.time)));
        text.push_str(&tiller_tui::text::clean::plain_lines(&entry.body.search_text()));
        text.push_str("\n\n");
    }
    say(&text)
}

/// First line, without anything that a terminal would act on.
pub(super) fn one_line(text: &str) -> String {
    tiller_tui::text::clean::plain(text.lines().next().unwrap_or("")).into_owned()
}
