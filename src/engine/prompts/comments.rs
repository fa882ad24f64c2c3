//! A line comment that ends in `tiller!`, in a file that the user changed, starts a turn where `watch.comments` allows
//! it. Each comment does so once for as long as it stays in the file.

use crate::prompts::queue;
use std::path::Path;
use std::sync::Arc;

use tiller_protocol::{ChangeKind, CommandId, FileChange, Message, Notice, NoticeKind, SendMode, Who};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::services::Human;
use crate::prompts::msg::{Comment, FileComments, PromptMsg};

/// The mark at the end of such a comment.
const MARK: &str = "tiller!";
/// Starts of line comments.
const STARTS: [&str; 5] = ["//", "#", "--", ";", "%"];
/// Largest file that is searched, in bytes, and most files of one report.
const BYTES: u64 = 512 << 10;
const FILES: usize = 50;
/// The client of such a message: none, so replies are dropped.
const NOBODY: ClientId = ClientId(u64::MAX);

/// The comments of a text that end in the mark, without the mark.
fn comments(text: &str) -> Vec<Comment> {
    let of = |line: &str| -> Option<String> {
        let rest = line.trim_end().strip_suffix(MARK)?;
        // The first comment mark of the line; without one it is no comment.
        let at = STARTS.iter().filter_map(|s| rest.find(s).map(|at| (at, s.len()))).min()?;
        let words = rest[at.0 + at.1..].trim_start_matches(['/', '#', '-', ';', '%', '!']).trim();
        (!words.is_empty()).then(|| words.to_owned())
    };
    text.lines().enumerate().filter_map(|(n, line)| Some((n + 1, of(line)?))).collect()
}

pub(crate) fn look(root: &Path, path: String) -> Option<FileComments> {
    let bytes = tiller_fs::beneath::read_below(root, Path::new(&path), BYTES + 1).ok()?;
    let text = String::from_utf8(bytes).ok().filter(|text| text.len() as u64 <= BYTES)?;
    Some(FileComments { path, comments: comments(&text) })
}

/// Searches files that the user changed.
pub(crate) fn look_for_comments(core: &mut Core, changes: &[FileChange]) {
    if !core.services.config().watch.comments
        || core.session.read_only
        || core.services.user.human == Human::Absent
    {
        return;
    }
    let theirs = |c: &&FileChange| {
        c.who == Who::You && matches!(c.kind, ChangeKind::Added | ChangeKind::Modified | ChangeKind::Renamed)
    };
    let paths: Vec<String> = changes.iter().filter(theirs).take(FILES).map(|c| c.path.clone()).collect();
    if paths.is_empty() {
        return;
    }
    let (workspace, tx) = (Arc::clone(&core.services.workspace), core.tx.clone());
    core.spawn(async move {
        let look = move || {
            let root = &workspace.root;
            let free = |p: &String| workspace.unreadable(&root.join(p)).is_none();
            paths.into_iter().filter(free).filter_map(|p| look(root, p)).collect::<Vec<_>>()
        };
        let found = tokio::task::spawn_blocking(look).await.unwrap_or_default();
        // The engine may have ended.
        let _ = tx.send(Msg::Prompt(PromptMsg::Comments(found))).await;
    });
}

/// Sends the comments as the user's message: at once, or after the turn that runs.
pub(crate) fn comments_found(core: &mut Core, all: Vec<FileComments>) {
    for found in all {
        let new = core.prompts.asked.news(&found);
        if new.is_empty() {
            continue;
        }
        let mut text = format!("I wrote in @{}, in comments that end in `{MARK}`:\n", found.path);
        for (line, words) in &new {
            text.push_str(&format!("- line {line}: {words}\n"));
        }
        text.push_str("Do what they say, and remove these comments when done.");
        let said = format!("a comment in {} started a turn", found.path);
        core.notice(Notice::new(NoticeKind::Info, said));
        queue::submit(core, NOBODY, CommandId(0), Message::text(text), SendMode::Queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompts::msg::SeenComments;

    #[test]
    fn only_line_comments_that_end_in_the_mark_count_and_each_once() {
        let text = "fn a() {} // mend this, tiller!\n# and that tiller!\nlet s = \"tiller!\";\n// tiller! is the mark\n//tiller!\n  -- sort them, tiller!  \n";
        let found = comments(text);
        assert_eq!(found, [(1, "mend this,".to_owned()), (2, "and that".into()), (6, "sort them,".into())]);
        let mut asked = SeenComments::default();
        let now = |comments| FileComments { path: "a".into(), comments };
        assert_eq!(asked.news(&now(found.clone())).len(), 3);
        assert!(asked.news(&now(found.clone())).is_empty(), "it stands there still");
        let moved: Vec<Comment> = found[..1].iter().map(|(n, t)| (n + 7, t.clone())).collect();
        assert!(asked.news(&now(moved)).is_empty(), "on another line it is the same");
        assert!(asked.news(&now(Vec::new())).is_empty());
        assert_eq!(asked.news(&now(found)).len(), 3, "taken out and written again it asks again");
    }
}
