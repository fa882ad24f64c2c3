use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use super::*;
use crate::testing::Bench;

#[tokio::test]
async fn lists_with_marks_and_honours_gitignore() {
    let b = Bench::new();
    b.file("src/main.rs", "x");
    b.file("b.txt", "x".repeat(1500));
    b.file("target/junk", "");
    b.file(".gitignore", "target\n*.log\n");
    b.file("a.log", "");
    let run = b.file("run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("b.txt", b.root.join("link")).unwrap();
    let said = b.say(&ListDir, json!({})).await;
    assert_eq!(
        said,
        "./\n  src/\n  .gitignore  13 B\n  b.txt  1.5 KB\n  link -> b.txt\n  run.sh*  10 B\n[2 ignored; all=true shows them]\n"
    );
    let said = b.say(&ListDir, json!({"path": ".", "all": true})).await;
    assert!(said.contains("  target/\n") && said.contains("a.log"), "{said}");
}

#[tokio::test]
async fn hostile_names_are_made_visible_and_long_lists_end() {
    let b = Bench::new();
    b.file("e\x1b[31m\nx", "");
    for n in 0..600 {
        b.file(&format!("d/f{n}"), "");
    }
    assert!(b.say(&ListDir, json!({})).await.contains("e␛[31m␊x"));
    let said = b.say(&ListDir, json!({"path": "d/"})).await;
    assert!(said.contains("[... 100 more"), "{said}");
    assert!(b.say(&ListDir, json!({"path": "none"})).await.contains("does not exist"));
    assert!(b.say(&ListDir, json!({"path": "d/f1"})).await.contains("is a file"));
}

#[tokio::test]
async fn a_file_is_named_as_one() {
    let b = Bench::new();
    b.file("a.txt", "x");
    assert_eq!(b.say(&ListDir, json!({"path": "a.txt"})).await, "error: a.txt is a file; use read_file");
    assert!(b.say(&ListDir, json!({"path": "a.txt/b"})).await.contains("is not a folder"));
}
