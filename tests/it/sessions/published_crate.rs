//! A published crate of other authors: downloaded by cargo, put into a repository, and edited.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::{Place, run};
use crate::scenario::{self, CHECK, Model};
use crate::screen::{answer, asked, idle, say};

/// A small crate without dependencies.
const CRATE: &str = "fnv";

/// A test with a wrong expectation, and the correct line.
const TEST: &str = "extern crate fnv;\n\nuse std::hash::Hasher;\n\n#[test]\nfn nothing_gives_the_offset() {\n    \
                    let hash = fnv::FnvHasher::default().finish();\n    assert_eq!(hash, 0);\n}\n";
const WRONG: &str = "assert_eq!(hash, 0);";
const RIGHT: &str = "assert_eq!(hash, 0xcbf2_9ce4_8422_2325);";

/// Downloads the crate's sources into the workspace, with the person's own cargo, registry and cache.
fn bring(place: &Place) {
    let project = place.user.join("bring");
    std::fs::create_dir_all(project.join("src")).unwrap();
    std::fs::write(project.join("src/lib.rs"), "").unwrap();
    let manifest = format!(
        "[package]\nname = \"bring\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[dependencies]\n{CRATE} = \"1\"\n"
    );
    std::fs::write(project.join("Cargo.toml"), manifest).unwrap();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| env!("CARGO").into());
    let mut vendor = Command::new(cargo);
    vendor.args(["vendor", "--quiet"]).current_dir(&project);
    let out = run(vendor, b"");
    assert_eq!(out.code, Some(0), "cargo brings the crate: {out:?}");
    copy(&project.join("vendor").join(CRATE), &place.work);
}

/// Copies a folder without the files that cargo added.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(".cargo") {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(name));
        } else {
            std::fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

#[test]
#[ignore = "brings a crate from the registry; .ci/run first asks whether it can be reached"]
fn a_session_in_a_published_crate() {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    if !scenario::with_cargo(&mut place) {
        return;
    }
    bring(&place);
    let locked = run(place.program("cargo", &["generate-lockfile", "--offline"]), b"");
    assert_eq!(locked.code, Some(0), "{locked:?}");
    place.git(&["init", "-q", "-b", "main"]);
    place.git(&["add", "-A", "-f"]);
    place.git(&["commit", "-qm", "As published"]);

    let check = |why: &str| json!({"command": CHECK, "why": why});
    model.push(
        Script::new()
            .text("I look.")
            .call("c1", "search", json!({"pattern": "impl Default for Fnv", "path": "."}))
            .call("c2", "read_file", json!({"path": "Cargo.toml"})),
    );
    model.push(Script::new().call("c3", "write_file", json!({"path": "tests/empty.rs", "content": TEST})));
    model.push(Script::new().call("c4", "terminal", check("see it fail")));
    let edit = json!({"path": "tests/empty.rs", "old": WRONG, "new": RIGHT});
    model.push(Script::new().text("It begins with the offset.").call("c5", "edit_file", edit));
    model.push(Script::new().call("c6", "terminal", check("see it pass")));
    model.push(Script::new().text("An empty input gives the offset."));

    let mut term = place.term(&[], 118, 34);
    term.wait_text("Type what you want done");
    say(&mut term, "what is the hash of nothing? add a test");
    answer(&mut term, "nothing_gives_the_offset", "y");
    answer(&mut term, "see it fail", "y");
    let screen = asked(&mut term, "0xcbf2_9ce4_8422_2325");
    assert!(screen.contains(WRONG), "{screen}");
    answer(&mut term, "0xcbf2_9ce4_8422_2325", "y");
    answer(&mut term, "see it pass", "y");
    term.wait_text("An empty input gives the offset.");
    idle(&term);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);

    let asked = model.asked();
    let result = |n: usize| asked[n]["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(result(1).contains("impl Default for FnvHasher"), "{}", result(1));
    assert!(result(1).contains("name = \\\"fnv\\\""), "{}", result(1));
    assert!(result(3).contains("nothing_gives_the_offset ... FAILED"), "{}", result(3));
    assert!(result(5).contains("nothing_gives_the_offset ... ok"), "{}", result(5));
    assert!(!result(5).contains("FAILED"), "its own tests pass as well: {}", result(5));
    model.assert_only_grows();
    assert_eq!(place.read("tests/empty.rs"), TEST.replace(WRONG, RIGHT));
    let status = run(place.program("git", &["status", "--porcelain"]), b"");
    assert_eq!(status.stdout, "?? tests/\n", "nothing else was touched");
}
