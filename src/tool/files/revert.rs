//! Takes back a part of a change for the person (diff review). Never forced: a hunk that no longer fits is
//! an error and nothing is changed.

use tiller_protocol::ChangeKind;
use tiller_protocol::tool::FileDiff;

use super::apply::{Edit, Who, apply, current};
use super::path::{declare, tell, to_write};
use crate::guard::blocking;
use crate::{ToolCx, ToolError};

/// Applies the reverse of `hunk` (a unified difference of one file, with its header) to `path`. The file keeps
/// its encoding and mode. For the agent it is a change by someone else.
///
/// # Errors
/// [`ToolError::Tell`] with the reason why it does not fit.
pub async fn revert(path: &str, hunk: &str, cx: &ToolCx) -> Result<FileDiff, ToolError> {
    let (path, hunk, cx) = (path.to_owned(), hunk.to_owned(), cx.clone());
    blocking("revert", move || {
        let edit = plan(&path, &hunk, &cx)?;
        let mut files = apply(vec![edit], &cx, Who::Person)?;
        files.pop().map_or_else(|| tell("nothing was changed"), Ok)
    })
    .await
}

fn plan(path: &str, hunk: &str, cx: &ToolCx) -> Result<Edit, ToolError> {
    let place = to_write(path, cx)?;
    declare(cx, &[&place]);
    let patch = diffy::Patch::from_str(hunk)
        .map_err(|e| ToolError::Tell(format!("{path}: not a valid diff: {e}")))?;
    let none = |name: Option<&str>| name == Some("/dev/null");
    let (was_added, was_deleted) = (none(patch.original()), none(patch.modified()));
    let back = patch.reverse();
    let conflict = |_| ToolError::Tell(format!("{path} has changed since then; nothing was reverted"));
    if !place.exists {
        if !was_deleted {
            return tell(format!("{path} no longer exists"));
        }
        return Ok(Edit::create(place, &diffy::apply("", &back).map_err(conflict)?));
    }
    if was_deleted {
        return tell(format!("{path} exists again; nothing was reverted"));
    }
    let now = current(&place, cx)?;
    let after = diffy::apply(&now.text(&place.name)?.text, &back).map_err(conflict)?;
    if was_added && after.is_empty() {
        return Ok(Edit::remove(place, &now));
    }
    let mut edit = Edit::replace(place, now, &after)?;
    if let Some(shown) = &mut edit.diff {
        shown.file.kind = ChangeKind::Modified;
    }
    Ok(edit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tiller_protocol::tool::Display;

    use super::*;
    use crate::Tool;
    use crate::files::{EditFile, Patch, ReadFile, WriteFile};
    use crate::testing::Bench;

    async fn diff_of(b: &Bench, tool: &dyn Tool, args: serde_json::Value) -> String {
        let Some(Display::Diff { files }) = b.call(tool, args).await.unwrap().display else {
            panic!("no diff")
        };
        files[0].diff.clone()
    }

    #[tokio::test]
    async fn an_edit_is_taken_back_and_the_agent_learns_of_it() {
        let b = Bench::new();
        let path = b.file("a", b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n");
        b.say(&ReadFile, json!({"path": "a"})).await;
        let diff = diff_of(&b, &EditFile, json!({"path": "a", "old": "two", "new": "2"})).await;
        let told = b.ports.wrote.lock().unwrap().len();
        let file = revert("a", &diff, &b.cx).await.unwrap();
        assert_eq!((file.added, file.removed), (1, 1));
        assert_eq!(std::fs::read(&path).unwrap(), b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n");
        assert_eq!(b.ports.wrote.lock().unwrap().len(), told, "not the agent's write");
        let said = b.say(&EditFile, json!({"path": "a", "old": "2", "new": "zwei"})).await;
        assert!(said.contains("changed by someone else") && said.contains("+two"), "{said}");
        // A second time it does not fit, and nothing happens.
        assert!(revert("a", &diff, &b.cx).await.unwrap_err().to_string().contains("has changed since then"));
    }

    #[tokio::test]
    async fn new_and_deleted_files_are_taken_back_too() {
        let b = Bench::new();
        let diff = diff_of(&b, &WriteFile, json!({"path": "n", "content": "new\n"})).await;
        std::fs::write(b.root.join("n"), "new\nand theirs\n").unwrap();
        let kept = revert("n", &diff, &b.cx).await;
        assert!(kept.is_err() || b.root.join("n").exists(), "their line is not lost");
        std::fs::write(b.root.join("n"), "new\n").unwrap();
        revert("n", &diff, &b.cx).await.unwrap();
        assert!(!b.root.join("n").exists());
        b.file("d", "gone\n");
        b.say(&ReadFile, json!({"path": "d"})).await;
        let patch = "*** Begin Patch\n*** Delete File: d\n*** End Patch";
        let diff = diff_of(&b, &Patch, json!({ "patch": patch })).await;
        revert("d", &diff, &b.cx).await.unwrap();
        assert_eq!(std::fs::read_to_string(b.root.join("d")).unwrap(), "gone\n");
    }

    #[tokio::test]
    async fn protected_and_foreign_paths_are_refused() {
        let b = Bench::new().protect(|p| p.ends_with(".git/config").then(|| "git's own".into()));
        b.file(".git/config", "evil\n");
        let hunk = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-good\n+evil\n";
        for path in [".git/config", "../x", "none"] {
            assert!(revert(path, hunk, &b.cx).await.is_err(), "{path}");
        }
        assert!(revert("none", "garbage", &b.cx).await.is_err());
    }
}
