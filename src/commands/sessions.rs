//! `tiller sessions`: lists, shows, archives and removes sessions without a screen.

use std::io::IsTerminal as _;
use std::time::Duration;

use serde_json::json;
use tiller_protocol::op::OpChange;
use tiller_protocol::{CommandId, EntryBody, Notice, NoticeKind, Op, OpId, SessionId};
use tiller_snapshot::JoinReport;
use tiller_store::{Filter, Store};
use tiller_tui::zone::written;

use crate::app::Setup;
use crate::commands::args::Sessions;
use crate::commands::{Exit, json_line, say};

/// Runs one subcommand.
pub(super) fn run(setup: &Setup, what: Sessions, json: bool) -> Result<Exit, Notice> {
    // The result as one JSON line, or as a sentence.
    let told = |row: serde_json::Value, words: String| say(&if json { json_line(&row) } else { words });
    let store = crate::commands::opened(setup)?;
    let project = setup.project_name();
    match what {
        Sessions::List { all, archived, exec } => {
            let filter = Filter { project: (!all).then_some(project), archived, exec, ..Filter::default() };
            let rows = store.sessions().list(&filter).map_err(|e| e.notice())?;
            if json {
                return say(&rows.iter().map(json_line).collect::<String>());
            }
            if rows.is_empty() {
                let place = if all { "anywhere" } else { "for this folder (try --all)" };
                let more = match (archived, exec) {
                    (true, true) => "",
                    (true, false) => " --exec also lists those of `tiller exec`.",
                    (false, true) => " --archived also lists archived ones.",
                    (false, false) => " --archived also lists archived ones, --exec those of `tiller exec`.",
                };
                return say(&format!("No sessions {place}.{more}\n"));
            }
            // Scripts that cut columns rely on their number.
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
                if s.exec {
                    marks.push_str("  exec");
                }
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
        Sessions::Search(search) => crate::commands::search::run(setup, &store, &search, json),
        Sessions::Compare(what) => crate::commands::compare::run(setup, &store, &what, json),
        Sessions::Export(what) => crate::commands::transcript::export::run(setup, &store, &what, json),
        Sessions::Import(what) => crate::commands::transcript::import::run(setup, &store, &what, json),
        Sessions::Rename { id, title } => {
            if title.trim().is_empty() {
                return Err(Notice::new(NoticeKind::User, "A title needs at least one letter.")
                    .hint("`tiller sessions rename ID \"what it was about\"`"));
            }
            let id = setup.find_session(&store, &id)?;
            let before = store.sessions().get(id).map_err(|e| e.notice())?.summary.title;
            let op = op(setup, id, "rename", OpChange::Title { before, after: title.clone() });
            store.sessions().set_title(id, &title, true, Some(op)).wait().map_err(|e| e.notice())?;
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
                if undo { "unarchive" } else { "archive" },
                OpChange::Archived { before: undo, after: !undo },
            );
            store.sessions().set_archived(id, !undo, Some(op)).wait().map_err(|e| e.notice())?;
            let how = if undo { "unarchived" } else { "archived; --undo unarchives it" };
            told(json!({"session": id, "archived": !undo}), format!("Session {id} is {how}.\n"))
        }
        Sessions::Gc => {
            let swept = store.trash().sweep().wait().map_err(|e| e.notice())?;
            if swept.sessions > 0 {
                store.search().forget_index();
            }
            let n = swept.sessions;
            let mut words = format!("Removed {n} session(s) that were deleted more than 30 days ago.\n");
            let (joined, failed) = join_snapshots(setup);
            let freed = joined.bytes_before.saturating_sub(joined.bytes_after);
            if joined.packs_after < joined.packs_before {
                words.push_str(&format!(
                    "Merged {} packs of snapshots into {}; freed {} KiB.\n",
                    joined.packs_before,
                    joined.packs_after,
                    freed / 1024
                ));
            }
            for why in &failed {
                words.push_str(&format!("Not merged: {}\n", one_line(why)));
            }
            let row = json!({
                "sessions": n, "packs_before": joined.packs_before, "packs_after": joined.packs_after,
                "bytes_freed": freed, "failed": failed,
            });
            told(row, words)
        }
    }
}

/// Joins the packs of all snapshot stores. Packs that could not be joined are reported, and remain unchanged.
fn join_snapshots(setup: &Setup) -> (JoinReport, Vec<String>) {
    /// Time limit for an open workbench that joins its own packs.
    const WAIT: Duration = Duration::from_secs(10);
    let (mut sum, mut failed) = (JoinReport::default(), Vec::new());
    let stores = std::fs::read_dir(setup.places.data.join("snapshots")).into_iter().flatten().flatten();
    for store in stores {
        match tiller_snapshot::join_store(&store.path(), WAIT) {
            Ok(None) => {}
            Ok(Some(one)) => {
                sum.packs_before += one.packs_before;
                sum.packs_after += one.packs_after;
                sum.bytes_before += one.bytes_before;
                sum.bytes_after += one.bytes_after;
            }
            Err(e) => failed.push(e.to_string()),
        }
    }
    (sum, failed)
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
    let row = store.sessions().get(id).map_err(|e| e.notice())?;
    let mut pages = vec![store.paths().tail(id, &row.head, PAGE).map_err(|e| e.notice())?];
    while let Some(first) = pages.last().filter(|p| p.earlier > 0).and_then(|p| p.entries.first()) {
        let page = store.paths().page_before(first.id, PAGE).map_err(|e| e.notice())?;
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
        text.push_str(&tiller_text::clean::plain_lines(&entry.body.search_text()));
        text.push_str("\n\n");
    }
    say(&text)
}

/// The first line, without terminal control characters.
pub(super) fn one_line(text: &str) -> String {
    tiller_text::clean::plain(text.lines().next().unwrap_or("")).into_owned()
}
