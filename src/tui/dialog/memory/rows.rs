//! The rows of the memory browser.

use std::collections::HashMap;

use tiller_protocol::RuleReceipts;
use tiller_protocol::memory::{ChangeDetails, MemoryPage};
use tiller_protocol::notice::counted;
use tiller_protocol::{MemoryEntry, MemoryState, MemoryTarget, Provenance, Taint, Time};

use crate::cell::thousands;
use crate::dialog::picker::Item;
use crate::theme::Role;
use crate::widget::table::{Cell, Column};

pub(super) const COLUMNS: &[Column] = &[
    Column::text("Entry").grows(),
    Column::text("From").rank(1),
    Column::right("Rule").rank(3),
    Column::right("Kept").rank(2),
];

/// Rows of the preview.
pub(super) const PREVIEW: u16 = 5;

/// Those that wait come first, then those of each file, its archive behind it, those that were set aside, and what vanished.
pub(super) fn sorted(mut page: MemoryPage) -> MemoryPage {
    let state = |e: &MemoryEntry| match e.state {
        MemoryState::Pending => 0,
        MemoryState::Kept => 1,
        MemoryState::Archived => 2,
        MemoryState::Aside => 3,
        MemoryState::Removed if !e.details.became.is_empty() => 4,
        MemoryState::Removed => 5,
    };
    let place = |e: &MemoryEntry| MemoryTarget::ALL.iter().position(|t| *t == e.target);
    page.entries.sort_by_key(|e| match state(e) {
        n @ (0 | 3..) => (n, None, 0),
        n => (1, place(e), n),
    });
    page
}

/// The ids of entries, in their order. They say what an entry is, whatever stands before it in the list: one that waits or
/// that is missing with another text is another one. One in a file keeps its id when it is accepted or archived.
pub(super) fn ids(entries: &[MemoryEntry]) -> Vec<String> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let unique = |entry: &MemoryEntry| {
        let id = id(entry);
        let time = times.entry(id.clone()).or_default();
        *time += 1;
        if *time == 1 { id } else { format!("{id}\n{time}") }
    };
    entries.iter().map(unique).collect()
}

fn id(entry: &MemoryEntry) -> String {
    match entry.state {
        MemoryState::Kept | MemoryState::Archived => id_of_text(entry.target, &entry.text),
        state => {
            let change = entry.change.unwrap_or_default();
            format!("{} {state:?} {change} {}\n{}", entry.target.label(), entry.text, entry.replaces)
        }
    }
}

/// The id of the first entry with this text in a file. The mark of its origin, which accepting it takes away, is no part of it.
pub(super) fn id_of_text(target: MemoryTarget, text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = lines.join("\n");
    let marks = [Taint::Web.mark(), Taint::ToolOutput.mark()];
    let bare = marks.iter().fold(text.as_str(), |text, mark| text.strip_suffix(*mark).unwrap_or(text));
    format!("{} {bare}", target.label())
}

pub(super) fn item(entry: &MemoryEntry, id: &str) -> Item {
    let line = entry.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let pending = entry.state == MemoryState::Pending;
    let group = match entry.state {
        MemoryState::Pending => "Waiting for you".to_owned(),
        MemoryState::Kept => entry.target.label().to_owned(),
        MemoryState::Archived => format!("{}, archive", entry.target.label()),
        MemoryState::Aside => "Of another branch".to_owned(),
        MemoryState::Removed if !entry.details.became.is_empty() => "Changed outside Tiller".to_owned(),
        MemoryState::Removed => "Removed outside Tiller".to_owned(),
    };
    let text = if line.is_empty() { "(removes an entry)".to_owned() } else { line };
    let counts = &entry.counts;
    let rule = if counts.is_none() {
        Cell::dim("")
    } else {
        let role = if counts.violated > 0 { Role::Error } else { Role::Dim };
        Cell::new(format!("{}/{}/{}", counts.shown, counts.followed, counts.violated), role)
    };
    let more = format!("{} {}", entry.target.label(), entry.date);
    Item { more, decides: pending, ..Item::new(id, text) }
        .group(group)
        .cell(source(entry, pending))
        .cell(rule)
        .detail(entry.date.clone())
}

/// True when an entry is in its file, and text of others had a part in it: accepting it makes it the user's.
pub(super) fn is_of_others(entry: &MemoryEntry) -> bool {
    entry.state == MemoryState::Kept && entry.from.as_ref().is_some_and(|from| from.taint.is_untrusted())
}

/// Where an entry comes from, in a word.
fn source(entry: &MemoryEntry, pending: bool) -> Cell {
    match &entry.from {
        Some(from) if entry.state == MemoryState::Removed => {
            Cell::new(if from.entry.is_some() { "call" } else { "turn" }, Role::Waiting)
        }
        None if entry.state == MemoryState::Removed => Cell::dim("outside"),
        Some(_) if pending => Cell::new(entry.writer(), Role::Waiting),
        _ => Cell::dim(entry.writer()),
    }
}

/// All of an entry, for the preview.
pub(super) fn about(entry: &MemoryEntry, page: &MemoryPage) -> String {
    let mut lines = vec![entry.text.clone()];
    if !entry.replaces.is_empty() && entry.replaces != entry.text {
        lines.push(format!("Replaces: {}", entry.replaces));
    }
    lines.push(match entry.removed_at {
        Some(time) => missing(entry, time),
        None => written(entry),
    });
    if !entry.details.became.is_empty() {
        lines.push(format!("Changed into: {}", entry.details.became));
    }
    if !entry.fault.is_empty() {
        lines.push(entry.fault.clone());
    } else if is_of_others(entry) && entry.has_matcher() {
        lines.push("It is no rule until you accept it".into());
    }
    if !entry.counts.is_none() {
        let RuleReceipts { shown, followed, violated } = entry.counts;
        let shown = counted(u64::from(shown), "time");
        lines.push(format!("Shown {shown} with a call, followed {followed}, violated {violated}"));
    }
    if let Some(file) = page.files.iter().find(|f| f.target == entry.target) {
        let (bytes, budget) = (thousands(file.bytes), thousands(file.budget));
        lines.push(match file.fault.is_empty() {
            true => format!("{}: {bytes} of {budget} bytes used", file.path),
            false => file.fault.clone(),
        });
    }
    lines.join("\n")
}

/// When an entry was found missing, and what ran meanwhile.
fn missing(entry: &MemoryEntry, time: Time) -> String {
    let time = crate::zone::minutes(time);
    let edited = !entry.details.became.is_empty();
    let done = if edited { "Changed" } else { "Removed" };
    let agent = |from: &Provenance| match from.agent.parent() {
        Some(_) => from.agent.name().to_owned(),
        None => "the agent".to_owned(),
    };
    match &entry.from {
        None if edited => format!("Changed {time}; no agent was at work"),
        None => format!("Missing since {time}; no agent was at work"),
        Some(from) if from.entry.is_some() => format!("{done} while a call of {} ran, {time}", agent(from)),
        Some(from) => format!("{done} while a turn of {} ran, {time}", agent(from)),
    }
}

/// Who wrote an entry, which import brought it, and since when it is the user's.
fn written(entry: &MemoryEntry) -> String {
    let details = &entry.details;
    let by = match &details.accepted {
        _ if !details.imported.is_empty() => format!("Imported from {}", details.imported),
        Some(accepted) => origin(Some(&accepted.from)),
        None => origin(entry.from.as_ref()),
    };
    match &details.accepted {
        Some(accepted) => format!("{by}; you accepted it {}", crate::zone::minutes(accepted.time)),
        None => by,
    }
}

fn origin(from: Option<&Provenance>) -> String {
    let Some(from) = from else { return "Written in an editor".into() };
    let agent = if from.agent.parent().is_some() {
        format!("Written by {}", from.agent.name())
    } else {
        "Written by the agent".into()
    };
    let branch = if from.branch.is_empty() { String::new() } else { format!(" on branch {}", from.branch) };
    match from.taint {
        Taint::Person => "Written by you".into(),
        Taint::Agent => format!("{agent}{branch}"),
        Taint::ToolOutput => format!("{agent}{branch}, after it had read files or output of commands"),
        Taint::Web => format!("{agent}{branch}, after it had read pages or servers of others"),
    }
}

/// For tests and pictures.
pub(crate) fn sample() -> MemoryPage {
    use tiller_protocol::memory::MemoryUse;
    use tiller_protocol::{AgentId, EntryId, MemoryFile, MemoryScope, SessionId};

    let mine = MemoryTarget::default();
    let user = MemoryTarget { file: MemoryFile::User, ..mine };
    let project = MemoryTarget { scope: MemoryScope::Project, ..mine };
    let from = |taint| {
        Some(Provenance {
            session: Some(SessionId(Default::default())),
            entry: Some(EntryId(Default::default())),
            branch: "main".into(),
            agent: AgentId::main(),
            taint,
        })
    };
    let entry = |target, state, date: &str, text: &str, from: Option<Provenance>| MemoryEntry {
        hidden: false,
        target,
        state,
        date: date.into(),
        text: text.into(),
        change: from.as_ref().map(|_| 1),
        from,
        replaces: String::new(),
        counts: RuleReceipts::default(),
        removed_at: None,
        fault: String::new(),
        details: ChangeDetails::default(),
    };
    let mut removed =
        entry(mine, MemoryState::Removed, "2026-11-19", "Never push by hand", from(Taint::ToolOutput));
    removed.removed_at = Some(Time(1_795_000_000_000));
    let mut rule = entry(
        project,
        MemoryState::Kept,
        "2026-11-20",
        "Files in src/gen are generated: run make gen",
        from(Taint::Person),
    );
    rule.counts = RuleReceipts { shown: 9, followed: 8, violated: 1 };
    sorted(MemoryPage {
        entries: vec![
            entry(
                mine,
                MemoryState::Pending,
                "2026-11-26",
                "The rate limit of the API is 100 requests a minute [from web]",
                from(Taint::Web),
            ),
            entry(
                mine,
                MemoryState::Kept,
                "2026-11-25",
                "Reviews are short: two sentences and the risky lines",
                from(Taint::Person),
            ),
            entry(
                mine,
                MemoryState::Kept,
                "2026-11-21",
                "Release notes are written before the tag is made",
                from(Taint::Agent),
            ),
            entry(user, MemoryState::Kept, "", "Robin, Lisbon; works with zsh and neovim", None),
            rule,
            entry(
                project,
                MemoryState::Kept,
                "2026-11-18",
                "Tests run with cargo nextest; the database tests need Docker [from tool output]",
                from(Taint::ToolOutput),
            ),
            entry(
                project,
                MemoryState::Archived,
                "2026-08-02",
                "The old queue was replaced by the outbox table",
                from(Taint::Agent),
            ),
            entry(
                project,
                MemoryState::Aside,
                "2026-11-22",
                "The importer runs twice a day",
                from(Taint::Agent),
            ),
            removed,
        ],
        files: [mine, user, project]
            .into_iter()
            .map(|target| MemoryUse {
                target,
                path: match target.scope {
                    MemoryScope::User => format!("/home/robin/.local/share/tiller/{}", target.label()),
                    MemoryScope::Project => format!("/home/robin/billing/{}", target.label()),
                },
                bytes: 1_240,
                budget: 7_500,
                fault: String::new(),
            })
            .collect(),
        ..MemoryPage::default()
    })
}
