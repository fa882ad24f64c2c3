//! The program itself. `cargo test` builds it for this file, and `.ci/run` uses it from there.

use std::process::Command;

#[test]
fn without_a_task_it_names_all_tasks() {
    let out = Command::new(env!("CARGO_BIN_EXE_xtask")).output().unwrap();
    let text = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{text}");
    for task in ["tidy", "words", "house", "deny", "gallery", "fuzz", "bench", "flaky", "long", "soak"] {
        assert!(text.lines().any(|line| line.starts_with(&format!("  {task} "))), "{task}: {text}");
    }
}
