//! The contents that a compaction carries along in place of entries: messages that stay word for word, and kept results
//! that are too long.

use std::path::Path;
use std::sync::Arc;

use tiller_protocol::{Carried, CarriedContent, Entry, EntryBody, EntryId, Origin, Part};
use tiller_tool::output::shortened;

use crate::context::compaction::compact;
use crate::context::tokens;

/// Tokens that are left of a content, however little room there is.
const LEAST: u64 = 25;
/// Tokens of the note in place of what was left out: shorter contents stay whole.
const NOTE: u64 = 80;

/// A kept result or message that is to be shortened.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LongContent {
    pub entry: EntryId,
    /// Names the file of the whole.
    pub name: String,
    pub text: String,
    /// Bytes that are left of it.
    pub bytes: usize,
}

/// True for entries that a compaction may shorten. `words`: messages, too.
pub(super) fn may_shorten(entry: &Entry, words: bool) -> bool {
    match &entry.body {
        EntryBody::ToolResult { .. } => true,
        EntryBody::User { .. } => words,
        _ => false,
    }
}

/// The messages of the summarised entries that stay word for word, as far as all together have `room` tokens: the first of the
/// session, and those of the person in the turn that still runs.
pub(super) fn messages(goes: &[Arc<Entry>], stays: &[Arc<Entry>], room: u64) -> Carried {
    let earlier = goes.iter().rev().find_map(|e| match &e.body {
        EntryBody::Compaction { carried, .. } => Some(carried),
        _ => None,
    });
    let first = match earlier {
        // One that carried none is of an earlier version, or imported.
        Some(earlier) => earlier.first.clone(),
        None => goes.iter().find(|e| e.body.begins_turn()).and_then(|e| carried(e)),
    };
    let mut out = Carried { first, ..Carried::default() };
    if !stays.iter().any(|e| e.body.begins_turn()) {
        let begin = goes.iter().rposition(|e| e.body.begins_turn());
        let of_person = |e: &&Arc<Entry>| {
            e.body.begins_turn() || matches!(e.body, EntryBody::User { origin: Origin::Steer, .. })
        };
        let now = goes[begin.unwrap_or(0)..].iter().filter(of_person).filter_map(|e| carried(e));
        // Those of before belong to this turn, when it has begun no other.
        let before = earlier.filter(|_| begin.is_none()).map(|c| c.messages.clone()).unwrap_or_default();
        let first = out.first.as_ref().map(|first| first.entry);
        out.messages = before.into_iter().chain(now).filter(|m| Some(m.entry) != first).collect();
    }
    let share = share(out.words().map(|m| tokens::of_parts(&m.content)).collect(), room).max(LEAST);
    out.all_mut().for_each(|message| cut_to(message, share));
    out
}

fn carried(entry: &Entry) -> Option<CarriedContent> {
    let EntryBody::User { content, .. } = &entry.body else { return None };
    Some(CarriedContent { entry: entry.id, content: content.clone() })
}

fn cut_to(message: &mut CarriedContent, most: u64) {
    if tokens::of_parts(&message.content) > most {
        let text = compact::cut(&words(&message.content), tokens::bytes(most));
        message.content = vec![Part::Text { text }];
    }
}

/// The text of parts, with a note for each picture.
fn words(content: &[Part]) -> String {
    let parts: Vec<&str> = content
        .iter()
        .map(|p| match p {
            Part::Text { text } => text.as_str(),
            Part::Image { .. } => "[image left out to save room: look at it again]",
        })
        .collect();
    parts.join("\n")
}

/// The kept contents that an earlier compaction of the path shortened.
pub(super) fn shortened_before(path: &[Arc<Entry>], stays: &[Arc<Entry>]) -> Vec<CarriedContent> {
    let last = path.iter().rev().find_map(|e| match &e.body {
        EntryBody::Compaction { carried, .. } => Some(carried.shortened.as_slice()),
        _ => None,
    });
    let stays = |c: &&CarriedContent| stays.iter().any(|e| e.id == c.entry);
    last.unwrap_or_default().iter().filter(stays).cloned().collect()
}

/// The kept contents that are longer than their share of `room` tokens, and the tokens that their shortening frees.
/// `messages`: of messages, too.
pub(super) fn long_contents(stays: &[Arc<Entry>], room: u64, messages: bool) -> (Vec<LongContent>, u64) {
    let can = || stays.iter().filter(|e| may_shorten(e, messages));
    let share = share(can().map(|e| tokens::of_entry(e)).collect(), room).max(LEAST);
    let mut freed = 0_u64;
    let long = can().filter_map(|entry| {
        let (name, content) = match &entry.body {
            EntryBody::ToolResult { call_id, content, .. } => (call_id.clone(), content),
            EntryBody::User { content, .. } => (entry.id.to_string(), content),
            _ => return None,
        };
        let size = tokens::of_parts(content);
        if size <= share.saturating_add(NOTE) {
            return None;
        }
        freed = freed.saturating_add(size - share);
        Some(LongContent { entry: entry.id, name, text: words(content), bytes: tokens::bytes(share) })
    });
    (long.collect(), freed)
}

/// The most tokens that each of these may have, so that all together have `room`; those that need less leave it to the
/// others.
fn share(mut sizes: Vec<u64>, room: u64) -> u64 {
    sizes.sort_unstable();
    let mut left = room;
    for (at, size) in sizes.iter().enumerate() {
        let each = left / (sizes.len() - at) as u64;
        if *size > each {
            return each;
        }
        left -= size;
    }
    u64::MAX
}

/// Shortens contents; the whole of each is kept in `folder`. Blocks.
pub(super) fn shorten(long: &[LongContent], folder: &Path) -> Vec<CarriedContent> {
    let short = |long: &LongContent| CarriedContent {
        entry: long.entry,
        content: vec![Part::Text { text: shortened(&long.text, long.bytes, folder, &long.name) }],
    };
    long.iter().map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::request::tests::Path as Conversation;

    #[test]
    fn what_needs_less_than_its_share_leaves_it_to_the_others() {
        for (sizes, room, each) in [
            (vec![10, 10, 10], 30, u64::MAX),
            (vec![10, 20, 30], 30, 10),
            (vec![1, 1, 100], 30, 28),
            (vec![50, 5, 100], 45, 20),
            (vec![], 0, u64::MAX),
            (vec![5], 0, 0),
        ] {
            assert_eq!(share(sizes.clone(), room), each, "{sizes:?} {room}");
        }
    }

    #[test]
    fn the_task_and_the_words_of_the_running_turn_stay() {
        let mut p = Conversation::new();
        let (task, _) = (p.user("the task"), p.reply("done", &[]));
        let (_, _) = (p.user("a second one"), p.reply("done", &[]));
        let running = p.user(&"a long one ".repeat(100));
        p.reply("", &["c1"]);
        p.result("c1", "r");
        let entries = p.entries[1..].to_vec();
        let ids = |c: &Carried| c.words().map(|m| m.entry).collect::<Vec<_>>();
        let all = messages(&entries, &[], 1_000);
        assert_eq!(ids(&all), [task, running]);
        // It is kept anyway.
        assert_eq!(ids(&messages(&entries[..4], &entries[4..], 1_000)), [task]);
        let short = messages(&entries, &[], 40);
        let size = |c: &Carried| tokens::of_parts(&c.messages[0].content);
        assert!(size(&all) > 400 && size(&short) < 70, "{}", size(&short));
        // A second compaction in the same turn has both again.
        p.compact_with(None, all);
        p.reply("", &["c2"]);
        p.result("c2", "r");
        let rest = &p.entries[p.entries.len() - 3..];
        assert_eq!(ids(&messages(rest, &[], 1_000)), [task, running]);
        let next = p.user("the next turn");
        let rest = &p.entries[p.entries.len() - 4..];
        assert_eq!(ids(&messages(rest, &[], 1_000)), [task, next]);
        // An imported compaction carries nothing: the first message is not known.
        p.compact(None);
        let later = p.user("a later turn");
        let rest = &p.entries[p.entries.len() - 2..];
        assert_eq!(messages(rest, &[], 1_000).first, None);
        assert_eq!(ids(&messages(rest, &[], 1_000)), [later]);
    }

    #[test]
    fn kept_contents_share_the_room() {
        let mut p = Conversation::new();
        p.user("q");
        p.reply("", &["a", "b", "c"]);
        for (id, size) in [("a", 10), ("b", 5_000), ("c", 50_000)] {
            p.result(id, &"x".repeat(size));
        }
        assert!(long_contents(&p.entries, 100_000, true).0.is_empty());
        let names = |long: &[LongContent]| -> Vec<(String, usize)> {
            long.iter().map(|l| (l.name.clone(), l.bytes)).collect()
        };
        let (long, freed) = long_contents(&p.entries, 4_004, false);
        assert_eq!((names(&long), freed), (vec![("c".into(), 5_000)], 18_000));
        let (long, _) = long_contents(&p.entries, 0, false);
        assert_eq!(names(&long), [("b".into(), 62), ("c".into(), 62)]);
        // Where nothing else helps, messages are shortened as well.
        let message = p.user(&"w".repeat(5_000));
        assert_eq!(long_contents(&p.entries, 0, false).0.len(), 2);
        let (long, _) = long_contents(&p.entries, 0, true);
        assert_eq!((long.len(), long[2].entry), (3, message));
    }
}
