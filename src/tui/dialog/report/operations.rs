//! Rows of `/ops`: what was done, how it is taken back, and whether it is the next that would be.

use tiller_protocol::op::OpChange;
use tiller_protocol::restore::StepFile;
use tiller_protocol::{Op, OpId};

use crate::dialog::picker::Item;
use crate::panel::times::clock;
use crate::theme::Role;
use crate::widget::table::Cell;

/// Operations, newest first. `undo` and `redo`: those that would be next.
pub(super) fn rows(ops: &[Op], undo: Option<OpId>, redo: Option<OpId>) -> Vec<Item> {
    ops.iter().map(|op| row(op, ops, undo, redo)).collect()
}

fn row(op: &Op, ops: &[Op], undo: Option<OpId>, redo: Option<OpId>) -> Item {
    let (detail, changed, inverse) = describe_change(&op.change);
    let own = op.root() == op.id;
    // An even number of rows: it is undone.
    let undone = own && ops.iter().filter(|o| o.root() == op.id).count() % 2 == 0;
    let next = if undo == Some(op.id) {
        "/undo reverts this one next."
    } else if redo == Some(op.id) {
        "Undone; /redo applies this one next."
    } else if undone {
        "Undone."
    } else {
        ""
    };
    let back = if own { format!("After undo: {inverse}") } else { String::new() };
    let parts = [changed.as_str(), next, back.as_str()];
    let more: Vec<&str> = parts.into_iter().filter(|p| !p.is_empty()).collect();
    let state = match next {
        "" => "",
        _ if undo == Some(op.id) => "next undo",
        _ if redo == Some(op.id) => "next redo",
        _ => "undone",
    };
    Item {
        more: more.join("\n\n"),
        ..Item::new(op.id.to_string(), &op.title)
            .detail(detail)
            .cell(Cell::new(state, Role::Text))
            .detail(clock(op.time))
    }
}

/// Kind of an operation, what it changed, and its inverse.
fn describe_change(change: &OpChange) -> (String, String, String) {
    let branch = |head: &Option<String>| match head {
        Some(head) => format!("on {head} again."),
        None => "on a branch of its own.".to_owned(),
    };
    match change {
        OpChange::Head { name, from, .. } => (
            "conversation".into(),
            format!("The conversation continues on {name}. The previous path is in the session tree."),
            format!("the conversation continues {}", branch(from)),
        ),
        OpChange::Compaction { .. } => (
            "summary".into(),
            "The earlier messages stay in the session tree.".into(),
            format!("the conversation continues before the summary, {}", branch(&None)),
        ),
        OpChange::Title { before, after } => {
            ("title".into(), arrow(before, after), format!("the title is {} again.", quoted(before)))
        }
        OpChange::Archived { before, after } => (away(*after), String::new(), put(*before, "the session")),
        OpChange::Label { name, before, after } => (
            "branch".into(),
            arrow(before, after),
            format!("the branch {name} is called {} again.", quoted(before)),
        ),
        OpChange::BranchArchived { name, before, after } => {
            (away(*after), format!("The branch {name}."), put(*before, &format!("the branch {name}")))
        }
        OpChange::Tag { name, before, after } => (
            "tag".into(),
            if after.is_some() { String::new() } else { "The tag was removed.".into() },
            match before {
                Some(_) => format!("{} is back in its old place.", quoted(name)),
                None => format!("{} is removed.", quoted(name)),
            },
        ),
        OpChange::Files { files, .. } => {
            let name = |f: &StepFile| if f.partly { format!("{} (partly)", f.path) } else { f.path.clone() };
            let names: Vec<String> = files.iter().map(name).collect();
            let n = if names.len() == 1 { "1 file".into() } else { format!("{} files", names.len()) };
            (n, names.join("\n"), "these files are as they were before.".into())
        }
    }
}

fn arrow(before: &str, after: &str) -> String {
    format!("{}\n-> {}", quoted(before), quoted(after))
}

fn quoted(name: &str) -> String {
    if name.is_empty() { "nothing".into() } else { format!("\"{name}\"") }
}

fn away(archived: bool) -> String {
    (if archived { "archived" } else { "back" }).into()
}

fn put(archived: bool, what: &str) -> String {
    if archived { format!("{what} is archived.") } else { format!("{what} is unarchived.") }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::event::ReplyEvent;
    use tiller_protocol::{ChangeKind, IdSource, SeqIds, SessionId};

    use super::*;
    use crate::testing::{Robot, START};

    #[test]
    fn operations_are_told_with_what_they_changed_and_what_can_be_undone() {
        let ids = SeqIds::default();
        let op = |title: &str, of, change| Op {
            id: OpId(ids.next(START)),
            session: SessionId(ids.next(START)),
            time: START,
            parent: None,
            cause: None,
            title: title.into(),
            of,
            with: None,
            change,
        };
        let files = vec![StepFile {
            path: "src/a\u{1b}[31m.rs".into(),
            kind: ChangeKind::Modified,
            by: None,
            partly: true,
            lines: None,
        }];
        let restored =
            OpChange::Files { before: "s1".into(), after: "s2".into(), files, of: None, turn: None };
        let title = |a: &str, b: &str| OpChange::Title { before: a.into(), after: b.into() };
        let rename = op("rename", None, title("old", "new"));
        let undo = op("undo rename", Some(rename.id), title("new", "old"));
        let restore = op("restore files: start", None, restored);
        let (next, again) = (Some(restore.id), Some(rename.id));
        let ops = vec![undo, rename, restore];
        let mut r = Robot::new(118, 25);
        r.run("type /ops; enter");
        r.reply(ReplyEvent::OpsReply { ops, undo: next, redo: again });
        r.run("down");
        let screen = r.screen();
        assert!(screen.contains("-> \"new\"") && screen.contains("/redo applies this one next"), "{screen}");
        assert!(screen.contains("the title is \"old\" again"), "{screen}");
        r.run("down");
        let screen = r.screen();
        assert!(screen.contains("restore files: start") && screen.contains("1 file"), "{screen}");
        assert!(screen.contains(".rs (partly)"), "{screen}");
        assert!(screen.contains("/undo reverts this one next") && !screen.contains('\u{1b}'), "{screen}");
    }
}
