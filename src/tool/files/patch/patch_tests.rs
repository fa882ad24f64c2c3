use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use tiller_protocol::tool::Display;

use super::*;
use crate::files::ReadFile;
use crate::testing::Bench;

/// All files under `dir`, by relative path; none when there is no such folder.
fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                let rel = entry.path().strip_prefix(dir).unwrap().to_owned();
                files.insert(rel, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    files
}

/// Each folder of `fixtures/` is a case: `before/`, `patch.txt`, and `after/` or `error.txt`.
#[tokio::test]
async fn scenarios() {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("files/fixtures");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(base).unwrap().map(|e| e.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 20);
    for case in cases {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let b = Bench::new();
        let before = tree(&case.join("before"));
        for (path, content) in &before {
            b.file(path.to_str().unwrap(), content);
            b.say(&ReadFile, json!({ "path": path })).await;
        }
        let args = json!({"patch": std::fs::read_to_string(case.join("patch.txt")).unwrap()});
        // As the engine does: declare, show, run.
        let _ = Patch.access(&args, &b.cx);
        let preview = Patch.preview(&args, &b.cx).await.diff;
        assert_eq!(tree(&b.root), before, "{name}: a preview changes nothing");
        let result = b.call(&Patch, args).await;
        match std::fs::read_to_string(case.join("error.txt")) {
            Ok(want) => {
                let said = result.unwrap_err().to_string();
                assert!(said.contains(want.trim()), "{name}: {said}");
                assert_eq!(tree(&b.root), before, "{name}: all or nothing");
            }
            Err(_) => {
                let out = result.unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(tree(&b.root), tree(&case.join("after")), "{name}");
                let Some(Display::Diff { files }) = out.display else { panic!("{name}: no diff") };
                let diffs: String = files.into_iter().map(|f| f.diff).collect();
                assert_eq!(Some(diffs), preview, "{name}: shown is what was done");
            }
        }
    }
}

#[tokio::test]
async fn a_stale_file_stops_the_whole_patch() {
    let b = Bench::new();
    let a = b.file("a", "one\n");
    let c = b.file("c", "one\n");
    b.say(&ReadFile, json!({"path": "a"})).await;
    let text = "*** Begin Patch\n*** Update File: a\n-one\n+1\n*** Update File: c\n-one\n+1\n*** End Patch";
    let said = b.say(&Patch, json!({ "patch": text })).await;
    assert!(said.contains("c exists, and you have not read it"), "{said}");
    assert_eq!(
        (std::fs::read(&a).unwrap(), std::fs::read(&c).unwrap()),
        (b"one\n".to_vec(), b"one\n".to_vec())
    );
    let said = b.say(&Patch, json!({ "patch": text })).await;
    assert_eq!(said, "patched 2 files:\nM a +1 -1\nM c +1 -1");
    // The agent knows the result.
    let text = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
    assert_eq!(b.say(&Patch, json!({ "patch": text })).await, "patched 1 file:\nD a +0 -1");
}

#[tokio::test]
async fn declares_every_path_and_no_protected_one() {
    let b = Bench::new().protect(|p| p.ends_with(".mcp.json").then(|| "starts programs".into()));
    b.file("a", "one\n");
    let text = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** Add File: c/d\n+x\n*** End Patch";
    let access = Patch.access(&json!({ "patch": text }), &b.cx).unwrap();
    assert_eq!(access.len(), 3);
    assert!(access.iter().all(|a| matches!(a, Access::Write { inside: true, .. })));
    for section in
        ["Add File: .mcp.json\n+x", "Update File: a\n*** Move to: .mcp.json", "Delete File: .mcp.json"]
    {
        let text = format!("*** Begin Patch\n*** {section}\n*** End Patch");
        let said = b.say(&Patch, json!({ "patch": text })).await;
        assert!(said.contains("is protected: starts programs"), "{said}");
    }
    assert!(!b.root.join(".mcp.json").exists());
    assert_eq!(Patch.target(&json!({ "patch": text })), "a and 1 more");
}

#[tokio::test]
async fn folders_that_were_made_for_a_failed_patch_go_again() {
    let b = Bench::new();
    b.file("blocked", "a file where a folder is wanted\n");
    let text = "*** Begin Patch\n*** Add File: new/deep/x\n+x\n*** Add File: blocked/y\n+y\n*** End Patch";
    assert!(b.say(&Patch, json!({ "patch": text })).await.starts_with("error"));
    assert!(!b.root.join("new").exists());
}
