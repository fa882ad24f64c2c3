use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::json;
use tiller_protocol::tool::Display;

use super::*;
use crate::files::{ReadFile, WriteFile};
use crate::testing::Bench;

#[tokio::test]
async fn edits_and_reports() {
    let b = Bench::new();
    let path = b.file("src/x.rs", "one\ntwo\nthree\n");
    b.say(&ReadFile, json!({"path": "src/x.rs"})).await;
    let args = json!({"path": "src/x.rs", "old": "two\n", "new": "2\nzwei\n"});
    assert_eq!(
        EditFile.access(&args, &b.cx).unwrap(),
        vec![Access::Write { path: path.display().to_string(), inside: true }]
    );
    let preview = EditFile.preview(&args, &b.cx).await.diff.unwrap();
    let out = b.call(&EditFile, args).await.unwrap();
    assert_eq!(crate::testing::text_of(&out.content), "edited src/x.rs: +2 -1 at line 2.");
    let Some(Display::Diff { files }) = out.display else { panic!("no diff") };
    assert_eq!(
        files[0].diff,
        "--- a/src/x.rs\n+++ b/src/x.rs\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+zwei\n three\n"
    );
    assert_eq!((files[0].added, files[0].removed), (2, 1));
    assert_eq!(preview, files[0].diff);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n2\nzwei\nthree\n");
    let held = |m: &std::sync::Mutex<Vec<std::path::PathBuf>>| tiller_protocol::lock(m).clone();
    assert_eq!(held(&b.ports.writing), vec![path.clone()]);
    assert_eq!(held(&b.ports.wrote), vec![path]);
    // The agent knows its own edit.
    let said = b.say(&EditFile, json!({"path": "src/x.rs", "old": "zwei", "new": "deux"})).await;
    assert!(said.starts_with("edited"), "{said}");
    assert_eq!(std::fs::read_dir(b.root.join("src")).unwrap().count(), 1, "no temporary file is left");
}

#[tokio::test]
async fn a_stale_file_is_refused_and_shown_then_a_second_try_goes_through() {
    let b = Bench::new();
    let path = b.file("a.txt", "one\ntwo\n");
    let args = json!({"path": "a.txt", "old": "two", "new": "2"});
    let said = b.say(&EditFile, args.clone()).await;
    assert!(said.contains("you have not read it") && said.contains("one\ntwo"), "{said}");
    std::fs::write(&path, "one\ntwo\nand theirs\n").unwrap();
    let said = b.say(&EditFile, args.clone()).await;
    assert!(said.contains("changed by someone else") && said.contains("+and theirs"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nand theirs\n");
    assert!(b.say(&EditFile, args).await.starts_with("edited"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n2\nand theirs\n");
    std::fs::write(&path, "x").unwrap();
    let said = b.say(&WriteFile, json!({"path": "a.txt", "content": "all mine"})).await;
    assert!(said.contains("changed by someone else"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "x");
}

#[tokio::test]
async fn w13_encoding_line_ends_and_mode_stay() {
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("a\r\nkäse\r\nz".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let utf16_after: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain("a\r\nx\r\ny\r\nz".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let rows: Vec<(&str, Vec<u8>, Vec<u8>)> = vec![
        ("crlf", b"a\r\nk\xc3\xa4se\r\nz\r\n".to_vec(), b"a\r\nx\r\ny\r\nz\r\n".to_vec()),
        ("bom", b"\xef\xbb\xbfa\nk\xc3\xa4se\nz".to_vec(), b"\xef\xbb\xbfa\nx\ny\nz".to_vec()),
        ("utf16", utf16, utf16_after),
        ("latin1", b"\xfc\nk\xe4se\nz\n".to_vec(), b"\xfc\nx\ny\nz\n".to_vec()),
        ("broken", b"\xff\xc3\xa4\nk\xc3\xa4se\n\xfe".to_vec(), b"\xff\xc3\xa4\nx\ny\n\xfe".to_vec()),
        ("mixed", b"a\nk\xc3\xa4se\r\nb\n\rc".to_vec(), b"a\nx\r\ny\r\nb\n\rc".to_vec()),
    ];
    for (name, before, after) in rows {
        let b = Bench::new();
        let path = b.file(name, &before);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4751)).unwrap();
        b.say(&ReadFile, json!({"path": name})).await;
        let said = b.say(&EditFile, json!({"path": name, "old": "käse\n", "new": "x\ny\n"})).await;
        assert!(said.starts_with("edited"), "{name}: {said}");
        assert_eq!(std::fs::read(&path).unwrap(), after, "{name}");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o4751);
    }
}

#[tokio::test]
async fn write_file_keeps_what_the_file_was_like() {
    let b = Bench::new();
    let path = b.file("a", b"\xef\xbb\xbfa\r\nb\r\n");
    b.say(&ReadFile, json!({"path": "a"})).await;
    let said = b.say(&WriteFile, json!({"path": "a", "content": "a\nc\n"})).await;
    assert_eq!(said, "wrote a: +1 -1.");
    assert_eq!(std::fs::read(&path).unwrap(), b"\xef\xbb\xbfa\r\nc\r\n");
    assert!(
        b.say(&WriteFile, json!({"path": "a", "content": "a\nc\n"})).await.contains("already has exactly")
    );
    let said = b.say(&WriteFile, json!({"path": "new/deep/n.txt", "content": "n\n"})).await;
    assert_eq!(said, "created new/deep/n.txt: +1 -0.");
    assert_eq!(std::fs::read_to_string(b.root.join("new/deep/n.txt")).unwrap(), "n\n");
    b.file("l", b"\xe4\n");
    b.say(&ReadFile, json!({"path": "l"})).await;
    let said = b.say(&EditFile, json!({"path": "l", "old": "ä", "new": "ä, 漢"})).await;
    assert!(said.contains("windows-1252, which cannot encode '漢' (U+6F22); nothing was changed"), "{said}");
    assert_eq!(std::fs::read(b.root.join("l")).unwrap(), b"\xe4\n");
    assert!(b.say(&EditFile, json!({"path": "l", "old": "ä", "new": "5 €"})).await.starts_with("edited"));
    assert_eq!(std::fs::read(b.root.join("l")).unwrap(), b"5 \x80\n");
}

#[tokio::test]
async fn links_inside_are_followed_and_hard_links_noted() {
    let b = Bench::new();
    let real = b.file("real.txt", "a\n");
    symlink("real.txt", b.root.join("link.txt")).unwrap();
    std::fs::hard_link(&real, b.root.join("hard.txt")).unwrap();
    b.say(&ReadFile, json!({"path": "link.txt"})).await;
    let said = b.say(&EditFile, json!({"path": "link.txt", "old": "a", "new": "b"})).await;
    assert!(said.contains("edited real.txt") && said.contains("2 hard links"), "{said}");
    assert!(b.root.join("link.txt").is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "b\n");
    assert_eq!(std::fs::read_to_string(b.root.join("hard.txt")).unwrap(), "a\n");
}

#[tokio::test]
async fn protected_names_are_refused_present_and_absent() {
    let b =
        Bench::new().protect(|p| p.components().any(|c| c.as_os_str() == ".git").then(|| "git's own".into()));
    b.file(".git/config", "x");
    symlink(".git", b.root.join("alias")).unwrap();
    for path in [".git/config", ".git/hooks/pre-commit", "./a/../.git/config", "alias/config", "alias/new"] {
        b.file("a/keep", "");
        for (tool, args) in [
            (&WriteFile as &dyn Tool, json!({"path": path, "content": "evil"})),
            (&EditFile, json!({"path": path, "old": "x", "new": "evil"})),
        ] {
            let said = b.say(tool, args.clone()).await;
            assert!(said.contains("is protected: git's own"), "{path}: {said}");
            // Also when the judging is skipped.
            assert!(tool.run(args, &b.cx).await.is_err());
        }
    }
    assert_eq!(std::fs::read_to_string(b.root.join(".git/config")).unwrap(), "x");
    assert_eq!(std::fs::read_dir(b.root.join(".git")).unwrap().count(), 1);
}

#[tokio::test]
async fn an_interrupted_edit_changes_nothing() {
    let b = Bench::new();
    let path = b.file("a", "a");
    b.say(&ReadFile, json!({"path": "a"})).await;
    b.cx.cancel.cancel();
    let err = b.call(&EditFile, json!({"path": "a", "old": "a", "new": "b"})).await.unwrap_err();
    assert!(matches!(err, ToolError::Interrupted(_)));
    assert_eq!(std::fs::read_to_string(path).unwrap(), "a");
}

#[tokio::test]
async fn wrong_arguments_are_explained() {
    let b = Bench::new();
    let said = b.say(&EditFile, json!({"path": "a", "oldtext": "a"})).await;
    assert!(
        said.contains("unknown field `oldtext`") && said.contains("path, old, new, replace_all"),
        "{said}"
    );
    assert!(
        b.say(&EditFile, json!({"path": "gone", "old": "a", "new": "b"})).await.contains("does not exist")
    );
}

#[tokio::test]
async fn a_binary_file_is_never_shown_as_text_and_is_replaced_at_the_second_try() {
    let b = Bench::new();
    // Latin-1 could decode it: each byte is a character there.
    let path = b.file("x.dat", (0..=255u8).collect::<Vec<_>>());
    let args = json!({"path": "x.dat", "content": "text now\n"});
    let said = b.say(&WriteFile, args.clone()).await;
    assert!(said.contains("is not text; nothing was changed") && said.len() < 200, "{said}");
    assert_eq!(std::fs::read(&path).unwrap().len(), 256);
    let edit = json!({"path": "x.dat", "old": "A", "new": "B"});
    assert!(b.say(&EditFile, edit).await.contains("cannot be edited by lines"));
    assert!(b.say(&WriteFile, args).await.starts_with("wrote x.dat"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "text now\n");
}

/// An edit may leave too little text to find the encoding again: it stays the one in which the agent reads the file.
#[tokio::test]
async fn w20_a_file_stays_in_its_encoding_over_several_edits() {
    let b = Bench::new();
    let russian = encoding_rs::WINDOWS_1251.encode("name: Привет, мир и все люди\n").0;
    let path = b.file("f", &russian);
    assert!(b.say(&ReadFile, json!({"path": "f"})).await.contains("[windows-1251]"));
    for (old, new) in [("Привет, мир и все люди", "x"), ("x", "щ"), ("щ", "я and ы")] {
        let said = b.say(&EditFile, json!({"path": "f", "old": old, "new": new})).await;
        assert!(said.starts_with("edited"), "{said}");
        let bytes = encoding_rs::WINDOWS_1251.encode(&format!("name: {new}\n")).0.into_owned();
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{new}");
    }
    // Someone else converts it.
    std::fs::write(&path, "name: я\n").unwrap();
    assert_eq!(b.say(&ReadFile, json!({"path": "f"})).await, "1\tname: я\n");
}
