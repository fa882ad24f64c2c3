//! `tiller sessions compare`: two branches of a session side by side, without a screen.

use tiller_engine::compare::look;
use tiller_protocol::compare::{ComparedSide, Comparison, Pair, Side};
use tiller_protocol::{EntryId, Notice, NoticeKind, SessionId};
use tiller_snapshot::Shadow;
use tiller_store::Store;

use crate::app::{Setup, files};
use crate::commands::args::Compare;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say};

/// Compares, and prints the result.
pub(super) fn run(setup: &Setup, store: &Store, what: &Compare, json: bool) -> Result<Exit, Notice> {
    let session = setup.find_session(store, what.session.as_deref().unwrap_or("last"))?;
    let (left, right) = (side(store, session, &what.left)?, side(store, session, &what.right)?);
    let ends = look::ends(store, session, &Pair { left, right })?;
    let base = look::base_state(store, &ends).map_err(|e| e.notice())?;
    let mut compared = look::words(store, &ends)?;
    let here = store.sessions().get(session).map_err(|e| e.notice())?.summary.project == setup.project_name();
    match files::place(setup).filter(|_| here) {
        Some(place) => {
            let clock = std::sync::Arc::clone(&setup.clock);
            let shadow = Shadow::open(&place.workspace, &place.store, place.limits, clock);
            let shadow = shadow.map_err(|e| e.notice())?;
            look::files(&shadow, &mut compared, &ends, base).map_err(|e| e.notice())?;
        }
        None if here => compared.notes.push("no snapshots are kept for this folder".into()),
        None => {
            compared.notes.push("the session belongs to another folder: its files are not compared".into())
        }
    }
    say(&if json { json_line(&compared) } else { text(&compared) })
}

/// A branch by its name or head, a tag, or an entry by its id.
fn side(store: &Store, session: SessionId, name: &str) -> Result<Side, Notice> {
    let branches = store.branches().list(session).map_err(|e| e.notice())?;
    if let Some(b) = branches.iter().find(|b| b.label == name || b.name == name) {
        return Ok(Side::Branch(b.name.clone()));
    }
    let tags = store.tags().list(session).map_err(|e| e.notice())?;
    let tag = tags.into_iter().find(|t| t.name == name).map(|t| t.entry);
    if let Some(entry) = tag.or_else(|| name.parse::<EntryId>().ok()) {
        return Ok(Side::Entry(entry));
    }
    let known: Vec<&str> = branches
        .iter()
        .map(|b| if b.label.is_empty() { b.name.as_str() } else { b.label.as_str() })
        .collect();
    Err(Notice::new(NoticeKind::User, format!("There is no branch, tag or entry '{}'.", one_line(name)))
        .hint(format!("Branches of this session: {}.", one_line(&known.join(", ")))))
}

fn text(c: &Comparison) -> String {
    let mut out = String::new();
    if !c.base_line.is_empty() {
        out.push_str(&format!("Common ancestor: {}\n", one_line(&c.base_line)));
    }
    for (sign, s) in [('<', &c.left), ('>', &c.right)] {
        out.push_str(&head(sign, s));
        for said in &s.said {
            out.push_str(&format!(
                "{sign}   {}: {}\n",
                one_line(&said.who.to_string()),
                one_line(&said.text)
            ));
        }
    }
    for f in &c.files {
        out.push_str(&format!("{:?} {}  +{} -{}\n", f.kind, one_line(&f.path), f.added, f.removed));
        out.push_str(&tiller_text::clean::plain_lines(&f.diff));
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    if c.more > 0 {
        out.push_str(&format!("{} more files differ.\n", c.more));
    }
    if c.files.is_empty() {
        out.push_str("No file differs.\n");
    }
    c.notes.iter().for_each(|n| out.push_str(&format!("Note: {}\n", one_line(n))));
    out
}

fn head(sign: char, s: &ComparedSide) -> String {
    let cost = s.cost.map_or("unknown".into(), |c| format!("${:.4}", c.usd()));
    let (name, entries) = (one_line(&s.name), s.entries);
    let (input, output, files) = (s.usage.context(), s.usage.output, s.files.len());
    let agents = if s.agents > 0 { format!(" and {} agent(s)", s.agents) } else { String::new() };
    format!(
        "{sign} {name}: {entries} entries{agents}, {input} tokens in, {output} out, cost {cost}, {files} files\n"
    )
}
