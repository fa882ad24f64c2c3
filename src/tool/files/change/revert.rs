//! Takes back a part of a change for the person (diff review). Never forced: a hunk that no longer fits is
//! an error and nothing is changed.

use diffy::{Line, Patch};
use tiller_protocol::ChangeKind;
use tiller_protocol::mask::has_mask;
use tiller_protocol::tool::FileDiff;

use crate::files::change::{Edit, Who, apply, current};
use crate::files::masks::{MaskedText, restore};
use crate::files::path::{declare, tell, to_write};
use crate::guard::blocking;
use crate::{ToolCx, ToolError};

/// What a mask in a difference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masks {
    /// Text of the file: the difference was made from its bytes.
    Text,
    /// A value of the file, which the difference does not hold: it comes from the record.
    Value,
}

/// Applies the reverse of `hunk` (a unified difference of one file, with its header) to `path`. The file keeps
/// its encoding and mode. For the agent it is a change from outside.
///
/// # Errors
/// [`ToolError::Tell`] with the reason why it does not fit, or cannot be taken back because its values are masked.
pub async fn revert(path: &str, hunk: &str, masks: Masks, cx: &ToolCx) -> Result<FileDiff, ToolError> {
    let (path, hunk, cx) = (path.to_owned(), hunk.to_owned(), cx.clone());
    blocking("revert", move || {
        let edit = plan(&path, &hunk, masks, &cx)?;
        let mut files = apply(vec![edit], &cx, Who::Person)?;
        files.pop().map_or_else(|| tell("nothing was changed"), Ok)
    })
    .await
}

fn plan(path: &str, hunk: &str, masks: Masks, cx: &ToolCx) -> Result<Edit, ToolError> {
    let place = to_write(path, cx)?;
    declare(cx, &[&place]);
    let patch =
        Patch::from_str(hunk).map_err(|e| ToolError::Tell(format!("{path}: not a valid diff: {e}")))?;
    let none = |name: Option<&str>| name == Some("/dev/null");
    let (was_added, was_deleted) = (none(patch.original()), none(patch.modified()));
    let back = patch.reverse();
    let masked = masks == Masks::Value && has_mask(hunk);
    if masked && puts_mask(&back) {
        return tell(
            "this hunk removed a secret that is masked in the record, so its value is not known here and nothing was \
             reverted: go back to a checkpoint, or change it in an editor",
        );
    }
    let conflict = |_| {
        let why = if masked { ", or differs from the record, in which its secrets are masked" } else { "" };
        ToolError::Tell(format!("{path} has changed since then{why}; nothing was reverted"))
    };
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
    let text = &now.text(&place.name)?.text;
    let file = if masked {
        MaskedText::of_file(&place.name, text, &cx.workspace.secrets)
    } else {
        MaskedText::plain(text)
    };
    let mut after = diffy::apply(file.shown(), &back).map_err(conflict)?;
    if masked {
        after = restore(&after, &[&file]).map_err(|u| u.error(&place.name, true))?.into_owned();
    }
    if was_added && after.is_empty() {
        return Ok(Edit::remove(place, &now));
    }
    let mut edit = Edit::replace(place, now, &after)?;
    if let Some(shown) = &mut edit.diff {
        shown.file.kind = ChangeKind::Modified;
    }
    Ok(edit)
}

/// Whether applying it writes a line with a mask.
fn puts_mask(patch: &Patch<'_, str>) -> bool {
    let mut lines = patch.hunks().iter().flat_map(|h| h.lines());
    lines.any(|l| matches!(l, Line::Insert(text) if has_mask(text)))
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
        let file = revert("a", &diff, Masks::Text, &b.cx).await.unwrap();
        assert_eq!((file.added, file.removed), (1, 1));
        assert_eq!(std::fs::read(&path).unwrap(), b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n");
        assert_eq!(b.ports.wrote.lock().unwrap().len(), told, "not the agent's write");
        let said = b.say(&EditFile, json!({"path": "a", "old": "2", "new": "zwei"})).await;
        assert!(said.contains("changed by someone else") && said.contains("+two"), "{said}");
        // A second time it does not fit, and nothing happens.
        assert!(
            revert("a", &diff, Masks::Text, &b.cx)
                .await
                .unwrap_err()
                .to_string()
                .contains("has changed since then")
        );
    }

    #[tokio::test]
    async fn w20_a_file_in_any_encoding_is_taken_back_byte_for_byte() {
        for (name, bytes) in [
            ("latin", &b"\x93one\x94\ntwo \xe9\0\nthree\x81\n"[..]),
            ("returns", b"one \xe9\rtwo\rthree\r"),
            ("mixed", b"one\xff\xc3\xa9\r\ntwo\n\x1b[mthree\r\n"),
        ] {
            let b = Bench::new();
            let path = b.file(name, bytes);
            b.say(&ReadFile, json!({"path": name})).await;
            let diff = diff_of(&b, &EditFile, json!({"path": name, "old": "two", "new": "2\nzwei"})).await;
            assert_ne!(std::fs::read(&path).unwrap(), bytes);
            revert(name, &diff, Masks::Text, &b.cx).await.unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name}");
            // A deletion has no hunk from which the text would come back in another encoding.
            b.say(&ReadFile, json!({"path": name})).await;
            let patch = format!("*** Begin Patch\n*** Delete File: {name}\n*** End Patch");
            assert_eq!(diff_of(&b, &Patch, json!({ "patch": patch })).await, "");
            assert!(!path.exists());
        }
    }

    #[tokio::test]
    async fn new_and_deleted_files_are_taken_back_too() {
        let b = Bench::new();
        let diff = diff_of(&b, &WriteFile, json!({"path": "n", "content": "new\n"})).await;
        std::fs::write(b.root.join("n"), "new\nand theirs\n").unwrap();
        let kept = revert("n", &diff, Masks::Text, &b.cx).await;
        assert!(kept.is_err() || b.root.join("n").exists(), "their line is not lost");
        std::fs::write(b.root.join("n"), "new\n").unwrap();
        revert("n", &diff, Masks::Text, &b.cx).await.unwrap();
        assert!(!b.root.join("n").exists());
        b.file("d", "gone\n");
        b.say(&ReadFile, json!({"path": "d"})).await;
        let patch = "*** Begin Patch\n*** Delete File: d\n*** End Patch";
        let diff = diff_of(&b, &Patch, json!({ "patch": patch })).await;
        revert("d", &diff, Masks::Text, &b.cx).await.unwrap();
        assert_eq!(std::fs::read_to_string(b.root.join("d")).unwrap(), "gone\n");
    }

    #[tokio::test]
    async fn protected_and_foreign_paths_are_refused() {
        let b = Bench::new().protect(|p| p.ends_with(".git/config").then(|| "git's own".into()));
        b.file(".git/config", "evil\n");
        let hunk = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-good\n+evil\n";
        for path in [".git/config", "../x", "none"] {
            assert!(revert(path, hunk, Masks::Text, &b.cx).await.is_err(), "{path}");
        }
        assert!(revert("none", "garbage", Masks::Text, &b.cx).await.is_err());
    }

    /// What stands after `key=` is secret.
    fn keys() -> crate::Secrets {
        std::sync::Arc::new(|text: &str| {
            let found = text.match_indices("key=").map(|(at, key)| {
                let end = text[at..].find('\n').map_or(text.len(), |n| at + n);
                tiller_protocol::mask::Secret { range: at + key.len()..end, name: "secret" }
            });
            found.filter(|s| !s.range.is_empty()).collect()
        })
    }

    /// The difference as the record has it.
    fn recorded(diff: &str) -> String {
        let mut text = diff.to_owned();
        for secret in keys()(diff).into_iter().rev() {
            text.replace_range(secret.range, "[redacted secret]");
        }
        text
    }

    #[tokio::test]
    async fn a_mask_of_the_record_is_never_written() {
        let b = Bench::new().mask(keys());
        // The value went: with the line, and with the file.
        let path = b.file("a", "one\nkey=hunter2\nthree\n");
        b.say(&ReadFile, json!({"path": "a"})).await;
        let edit = json!({"path": "a", "old": "key=[redacted secret]", "new": "none"});
        let diff = recorded(&diff_of(&b, &EditFile, edit).await);
        assert!(diff.contains("-key=[redacted secret]"), "{diff}");
        let why = revert("a", &diff, Masks::Value, &b.cx).await.unwrap_err().to_string();
        assert!(why.contains("masked in the record"), "{why}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\nnone\nthree\n");
        b.file("d", "key=hunter2\n");
        b.say(&ReadFile, json!({"path": "d"})).await;
        let patch = "*** Begin Patch\n*** Delete File: d\n*** End Patch";
        let diff = recorded(&diff_of(&b, &Patch, json!({ "patch": patch })).await);
        let why = revert("d", &diff, Masks::Value, &b.cx).await.unwrap_err().to_string();
        assert!(why.contains("masked in the record") && !b.root.join("d").exists(), "{why}");
        // Another line with the same name has a value of its own.
        let path = b.file("t", "[dev]\nkey=1\n[prod]\nhost\nkey=2\n");
        let hunk = "--- a/t\n+++ b/t\n@@ -3,4 +3,3 @@\n [prod]\n-key=[redacted secret]\n host\n";
        assert!(revert("t", hunk, Masks::Value, &b.cx).await.is_err());
        assert!(!std::fs::read_to_string(path).unwrap().contains("redacted"));
    }

    #[tokio::test]
    async fn values_beside_a_change_of_the_record_stay() {
        let b = Bench::new().mask(keys());
        let path = b.file("a", "key=1\ntwo\nkey=2\n");
        b.say(&ReadFile, json!({"path": "a"})).await;
        let diff = recorded(&diff_of(&b, &EditFile, json!({"path": "a", "old": "two", "new": "2"})).await);
        assert!(diff.contains(" key=[redacted secret]"), "{diff}");
        revert("a", &diff, Masks::Value, &b.cx).await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "key=1\ntwo\nkey=2\n");
        // A line with a value that the agent added goes.
        let hunk =
            "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n key=[redacted secret]\n two\n+key=[redacted secret]\n";
        revert("a", hunk, Masks::Value, &b.cx).await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "key=1\ntwo\n");
    }

    #[tokio::test]
    async fn text_that_looks_like_a_mask_is_text_in_an_exact_difference() {
        let b = Bench::new().mask(keys());
        let path = b.file("a", "new\n");
        let hunk = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-say [redacted secret]\n+new\n";
        revert("a", hunk, Masks::Text, &b.cx).await.unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "say [redacted secret]\n");
    }
}
