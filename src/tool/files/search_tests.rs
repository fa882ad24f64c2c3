use std::os::unix::fs::symlink;

use serde_json::json;

use super::*;
use crate::testing::Bench;

fn bench() -> Bench {
    let b = Bench::new();
    b.file("src/a.rs", "fn one() {}\nlet x = 1;\nfn two() {}\n");
    b.file("src/deep/b.rs", "fn three() {}\n");
    b.file("notes.md", "one FN here\n");
    b.file("target/gen.rs", "fn generated() {}\n");
    b.file(".gitignore", "target\n");
    b.file(".git/config", "fn in git\n");
    b
}

#[tokio::test]
async fn finds_content_with_numbers_and_context() {
    let b = bench();
    let said = b.say(&Search, json!({"pattern": r"fn \w+\("})).await;
    assert_eq!(said, "src/a.rs\n1:fn one() {}\n3:fn two() {}\n\nsrc/deep/b.rs\n1:fn three() {}\n");
    let said = b.say(&Search, json!({"pattern": "x = 1", "context": 1})).await;
    assert_eq!(said, "src/a.rs\n1-fn one() {}\n2:let x = 1;\n3-fn two() {}\n");
    let said = b.say(&Search, json!({"pattern": "fn", "ignore_case": true, "glob": "*.md"})).await;
    assert_eq!(said, "notes.md\n1:one FN here\n");
    let said = b.say(&Search, json!({"pattern": "three", "path": "src/deep/b.rs"})).await;
    assert_eq!(said, "src/deep/b.rs\n1:fn three() {}\n");
    assert_eq!(b.say(&Search, json!({"pattern": "nowhere"})).await, "nothing found\n");
    assert!(b.say(&Search, json!({"pattern": "fn (", })).await.contains("invalid pattern"));
    assert!(b.say(&Search, json!({})).await.contains("give a pattern"));
}

#[tokio::test]
async fn lists_files_and_honours_gitignore() {
    let b = bench();
    assert_eq!(b.say(&Search, json!({"glob": "*.rs"})).await, "src/a.rs\nsrc/deep/b.rs");
    assert_eq!(b.say(&Search, json!({"glob": "src/*.rs"})).await, "src/a.rs");
    assert_eq!(b.say(&Search, json!({"glob": "deep/*.rs", "path": "src"})).await, "src/deep/b.rs");
    let all = b.say(&Search, json!({"glob": "**/*.rs", "all": true})).await;
    assert!(all.contains("target/gen.rs"), "{all}");
    assert_eq!(b.say(&Search, json!({"glob": "*.none"})).await, "no file name matches");
}

#[tokio::test]
async fn stays_within_bounds() {
    let b = Bench::new();
    b.file("many", "hit\n".repeat(5000));
    b.file("wide", format!("hit {}\n", "x".repeat(100_000)));
    b.file("bin", b"hit\0hit\nhit\n");
    let said = b.say(&Search, json!({"pattern": "hit"})).await;
    assert!(said.len() < 10_000 && said.contains("at most 100 hits of a file"), "{}", said.len());
    assert!(said.contains(" [...]\n"));
}

#[tokio::test]
async fn w13_a_line_of_100_mb_is_passed_over() {
    let b = Bench::new();
    let file = std::fs::File::create(b.root.join("line")).unwrap();
    // Not zeros, which would be binary: the start is text, the rest is never reached.
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![b'x'; LINE_BYTES * 5], 0).unwrap();
    b.file("other", "needle\n");
    let said = b.say(&Search, json!({"pattern": "needle"})).await;
    assert_eq!(said, "other\n1:needle\n[not searched completely: line]\n");
}

#[tokio::test]
async fn w20_every_text_is_searched_and_shown_where_it_matches() {
    let b = Bench::new();
    b.file("zeros", b"one\0two\nthree needle\0four\n");
    b.file("latin", b"caf\xe9 \x93needle\x94\n");
    b.file("returns", b"first\rthe needle\rlast");
    b.file("binary", [&b"\x7fELF\0needle\n"[..], &[1; 100]].concat());
    b.file("long", format!("{}needle{}\n", "x".repeat(50_000), "y".repeat(50_000)));
    let said = b.say(&Search, json!({"pattern": "needle"})).await;
    for line in ["latin\n1:café “needle”\n", "returns\n2:the needle\n", "zeros\n2:three needle␀four\n"]
    {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!said.contains("binary") && said.len() < 1_000, "{said}");
    let wanted = format!("long\n1:[...] {}needle{} [...]\n", "x".repeat(100), "y".repeat(294));
    assert!(said.contains(&wanted), "{said}");
    assert!(b.say(&Search, json!({"pattern": "café “"})).await.contains("latin\n1:"));
    let said = b.say(&Search, json!({"pattern": "needle", "path": "binary"})).await;
    assert_eq!(said, "nothing found\n[not searched completely: binary]\n");
    // A value of which the name is cut away is still known as one.
    let b = Bench::new().mask(std::sync::Arc::new(|text: &str| {
        let at = text.find("key=").map(|at| at + 4);
        let end = |at: usize| text[at..].find(';').map_or(text.len(), |n| at + n);
        let secret = |at| tiller_protocol::mask::Secret { range: at..end(at), name: "key" };
        at.map(secret).into_iter().collect()
    }));
    b.file("f", format!("{}key={};needle\n", "x".repeat(600), "1".repeat(1_000)));
    let said = b.say(&Search, json!({"pattern": "needle|1111$"})).await;
    assert!(said.contains("[redacted key];needle") && !said.contains("11"), "{said}");
}

#[tokio::test]
async fn w11_links_are_not_followed() {
    let b = bench();
    std::fs::write(b.scratch.path().join("canary.rs"), "fn canary() {}\n").unwrap();
    symlink("../canary.rs", b.root.join("leaf.rs")).unwrap();
    symlink("..", b.root.join("up")).unwrap();
    assert_eq!(b.say(&Search, json!({"pattern": "canary"})).await, "nothing found\n");
    assert_eq!(b.say(&Search, json!({"glob": "*canary*"})).await, "no file name matches");
}

#[tokio::test]
async fn can_be_stopped() {
    let b = bench();
    b.cx.cancel.cancel();
    let err = b.call(&Search, json!({"pattern": "fn"})).await.unwrap_err();
    assert!(matches!(err, ToolError::Interrupted(_)));
}

#[tokio::test]
async fn what_may_not_be_read_is_passed_over_and_said() {
    let mut b = bench();
    b.file("src/.env", "fn secret() {}\n");
    let forbidden: crate::Unreadable =
        std::sync::Arc::new(|p: &Path| p.ends_with(".env").then(|| "yours: deny read_file(.env)".into()));
    b.cx.workspace = std::sync::Arc::new(crate::Workspace::new(&b.root).unwrap().forbid(forbidden));
    for args in [json!({"pattern": "secret"}), json!({"pattern": "secret", "all": true, "path": "src"})] {
        let said = b.say(&Search, args).await;
        assert!(!said.contains("fn secret") && said.contains("1 file was skipped"), "{said}");
    }
    let said = b.say(&Search, json!({"glob": "**/.env", "all": true})).await;
    assert!(said.contains("no file name matches") && said.contains("skipped"), "{said}");
    // An agent beside it has the same rules.
    assert!(b.cx.workspace.beside().unwrap().unreadable(Path::new("/x/.env")).is_some());
}

#[tokio::test]
async fn secret_paths_are_passed_over_unless_the_call_names_them() {
    let mut b = bench();
    b.file(".ssh/key", "the secret\n");
    b.file("notes", "no secret\n");
    std::os::unix::fs::symlink(".ssh", b.root.join("link")).unwrap();
    std::os::unix::fs::symlink(".ssh/key", b.root.join("plain.txt")).unwrap();
    let hidden = b.root.canonicalize().unwrap().join(".ssh");
    let secret: crate::Unreadable =
        std::sync::Arc::new(move |p: &Path| p.starts_with(&hidden).then(|| "built in".into()));
    b.cx.workspace = std::sync::Arc::new(crate::Workspace::new(&b.root).unwrap().hide(secret));
    let said = b.say(&Search, json!({"pattern": "secret", "all": true})).await;
    assert!(said.contains("no secret") && !said.contains("the secret"), "{said}");
    assert!(said.contains("1 file was skipped"), "{said}");
    // It was asked about: its path is what the call was judged for.
    let said = b.say(&Search, json!({"pattern": "secret", "path": ".ssh"})).await;
    assert!(said.contains("the secret"), "{said}");
    // Readers that are not asked about follow links to it.
    for path in [".ssh/key", "link/key", "plain.txt"] {
        let path = b.root.join(path);
        assert!(b.cx.workspace.unreadable(&path).is_some(), "{}", path.display());
        assert!(b.cx.workspace.forbidden()(&path).is_some(), "{}", path.display());
        assert!(b.cx.workspace.beside().unwrap().unreadable(&path).is_some(), "{}", path.display());
    }
    assert!(b.cx.workspace.unreadable(&b.root.join("notes")).is_none());
}
