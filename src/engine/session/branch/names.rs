//! The user's names for branches and entries, and archived branches.

use crate::session::change;
use tiller_protocol::event::StateEvent;
use tiller_protocol::op::OpChange;
use tiller_protocol::{
    BranchName, BranchView, CommandId, EntryBody, EntryId, EventBody, Notice, NoticeKind, Origin, SessionId,
    TagView,
};
use tiller_store::{Result, Store, Ticket};
use tiller_text::clean::is_invisible;
use unicode_width::UnicodeWidthChar;

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::saves::{After, Then};

/// Longest name, in terminal cells.
const CELLS: usize = 60;
/// Entries of a branch that are searched for a message of the user's, and characters of it that are shown.
const BACK: u32 = 50;
const WORDS: usize = 80;

/// One line without control characters and invisible marks.
fn plain(text: &str) -> String {
    let seen = |c: &char| !c.is_control() && !is_invisible(*c) && !matches!(c, '\u{200c}' | '\u{200d}');
    let spaced: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(seen).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A checked name as it is stored.
fn name(text: &str) -> std::result::Result<String, Notice> {
    let name = plain(text);
    let cells: usize = name.chars().map(|c| c.width().unwrap_or(0)).sum();
    if name.is_empty() {
        return Err(Notice::new(NoticeKind::User, "a name needs at least one letter"));
    }
    if cells > CELLS {
        let notice = Notice::new(NoticeKind::User, format!("this name is {cells} columns wide"));
        return Err(notice.hint(format!("a name can have at most {CELLS}")));
    }
    Ok(name)
}

/// The branches and tags of a session. `ours`: the branch that is open here, with a lease or not.
pub(crate) fn rows(
    store: &Store,
    session: SessionId,
    ours: &str,
    lease: bool,
) -> Result<(Vec<BranchView>, Vec<TagView>)> {
    let mut branches = Vec::new();
    for row in store.branches().list(session)? {
        let open = row.name == ours;
        branches.push(BranchView {
            words: row.entry.map_or(Ok(String::new()), |tip| words(store, tip))?,
            open_in: row.open_in.filter(|_| !(open && lease)).map(|pid| pid.to_string()),
            name: BranchName { head: row.name, label: row.label },
            entry: row.entry,
            time: row.time,
            archived: row.archived,
            open,
        });
    }
    let tags = store.tags().list(session)?;
    Ok((branches, tags.into_iter().map(|t| TagView { name: t.name, entry: t.entry }).collect()))
}

/// The user's last message at or before an entry.
fn words(store: &Store, tip: EntryId) -> Result<String> {
    let tail = store.paths().tail_at(tip, BACK)?;
    let said = tail.entries.iter().rev().find_map(|e| match &e.body {
        EntryBody::User { message, origin: Origin::Prompt | Origin::Task, .. } => Some(plain(&message.text)),
        _ => None,
    });
    let mut said = said.unwrap_or_default();
    if let Some((end, _)) = said.char_indices().nth(WORDS) {
        said.truncate(end);
        said.push_str("...");
    }
    Ok(said)
}

fn may_name(core: &Core, session: SessionId) -> std::result::Result<(), Notice> {
    change::cannot_change(core, session).map_or(Ok(()), Err)
}

fn named(
    core: &mut Core,
    ticket: Ticket<()>,
    client: ClientId,
    cause: CommandId,
    session: SessionId,
    event: StateEvent,
) {
    if session != core.session.id {
        // Events are of the open session; the client that asked gets the reply.
        let then = Then::BranchNamed { client, cause, label: None, said: Some("done".into()) };
        return core.saves.push(ticket, After { events: Vec::new(), then });
    }
    let label = if let StateEvent::BranchNamed { branch } = &event { Some(branch.clone()) } else { None };
    let events = vec![(core.scope_of(Some(cause)), EventBody::State(event))];
    core.saves.push(ticket, After { events, then: Then::BranchNamed { client, cause, label, said: None } });
}

/// The new name is on disk.
pub(crate) fn named_now(core: &mut Core, branch: Option<BranchName>) {
    if let Some(branch) = branch.filter(|b| b.head == core.session.head.name) {
        core.session.head.label = branch.label;
    }
}

pub(crate) fn label_branch(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    session: Option<SessionId>,
    head: String,
    label: &str,
) {
    let session = session.unwrap_or(core.session.id);
    let label = match may_name(core, session).and_then(|()| name(&core.redact(label))) {
        Ok(label) => label,
        Err(why) => return core.refuse(client, cause, why),
    };
    // The store fills in the old name.
    let change = OpChange::Label { name: head.clone(), before: String::new(), after: label.clone() };
    let op = change::op(core, session, cause, &format!("name branch: {label}"), change);
    let ticket = core.services.store.branches().set_label(session, &head, &label, Some(op));
    let branch = BranchName { head, label };
    named(core, ticket, client, cause, session, StateEvent::BranchNamed { branch });
}

pub(crate) fn archive_branch(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    session: Option<SessionId>,
    head: String,
    archived: bool,
) {
    let session = session.unwrap_or(core.session.id);
    let open = (archived && session == core.session.id && head == core.session.head.name).then(|| {
        Notice::new(NoticeKind::User, "the open branch cannot be archived").hint("open another branch first")
    });
    if let Some(why) = open.or_else(|| may_name(core, session).err()) {
        return core.refuse(client, cause, why);
    }
    let change = OpChange::BranchArchived { name: head.clone(), before: !archived, after: archived };
    let title = if archived { "archive branch" } else { "unarchive branch" };
    let op = change::op(core, session, cause, &format!("{title}: {head}"), change);
    let ticket = core.services.store.branches().set_archived(session, &head, archived, Some(op));
    named(core, ticket, client, cause, session, StateEvent::BranchArchived { head, archived });
}

pub(crate) fn tag(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    session: Option<SessionId>,
    text: &str,
    entry: Option<EntryId>,
) {
    let session = session.unwrap_or(core.session.id);
    let name = match may_name(core, session).and_then(|()| name(&core.redact(text))) {
        Ok(name) => name,
        Err(why) => return core.refuse(client, cause, why),
    };
    let change = OpChange::Tag { name: name.clone(), before: None, after: entry };
    let title = if entry.is_some() { "tag" } else { "remove tag" };
    let op = change::op(core, session, cause, &format!("{title}: {name}"), change);
    let store = &core.services.store;
    let ticket = match entry {
        Some(entry) => store.tags().add(session, &name, entry, Some(op)),
        None => store.tags().set(session, &name, None, Some(op)),
    };
    named(core, ticket, client, cause, session, StateEvent::TagChanged { name, entry });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_short_plain_line() {
        assert_eq!(name("  plan\n b\u{202e}\u{200b}\u{1b} ").unwrap(), "plan b");
        assert_eq!(name("pl\u{3164}an\u{200d} \u{e0100}\u{180e}b").unwrap(), "plan b");
        assert!(name(" \u{200b}\n").unwrap_err().message.contains("letter"));
        assert!(name(&"x".repeat(CELLS)).is_ok());
        assert!(name(&"\u{6f22}".repeat(CELLS)).unwrap_err().message.contains("120 columns"));
    }
}
