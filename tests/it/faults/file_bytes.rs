//! The person's files: kills, unusual names and limits must not damage them.

use std::process::Stdio;

use serde_json::json;
use tiller_testkit::ScriptServer;

use crate::common::{Place, calls, says, shell, wait};

fn temporaries(place: &Place) -> usize {
    let names = std::fs::read_dir(place.work.join("d")).unwrap();
    names.filter(|n| n.as_ref().unwrap().file_name().to_string_lossy().starts_with(".tiller-")).count()
}

#[test]
fn w15_what_a_command_changed_before_a_kill_is_the_agents_work() {
    let command = "mkdir d; echo one > d/made.txt; echo more >> old.txt; touch ready; sleep 1000";
    let server = ScriptServer::start([shell("c1", command), says("Done.")]);
    let place = Place::anthropic(&server);
    place.file("old.txt", "old\n");
    let mut child = place.tiller(&["exec", "--profile", "full", "make it"]);
    let mut child = child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait("the command to have changed the files", || place.work.join("ready").exists());
    // W19: the person's, while the command runs.
    place.file("old.txt", "old\nmore\nmine\n");
    child.kill().unwrap();
    child.wait().unwrap();
    let list = place.run(&["checkpoint", "list", "--json"]);
    assert!(list.stderr.contains("are attributed to the agent: 3 files"), "{list:?}");
    let first = serde_json::from_str::<serde_json::Value>(list.stdout.lines().next().unwrap()).unwrap();
    let first = first["entry"].as_str().unwrap().to_owned();
    // None of it counts as a change of others.
    let preview = place.lines(&["checkpoint", "diff", &first, "--json"]);
    let files = preview[0]["files"].as_array().unwrap();
    assert_eq!(files.len(), 3, "{preview:?}");
    assert!(files.iter().all(|f| f.get("conflict").is_none()), "{preview:?}");
    let notes = preview[0]["notes"].to_string();
    assert!(notes.contains("Perhaps changed by you while a command ran: d/made.txt"), "{notes}");
    let done = place.run(&["checkpoint", "restore", &first]);
    assert_eq!(place.read("old.txt"), "old\n");
    for gone in ["d", "ready", "old.txt.kept-1"] {
        assert!(!place.work.join(gone).exists(), "{gone}");
    }
    // No witness is left that saw who wrote what.
    let said = format!("{}{}", done.stdout, done.stderr);
    let (_, folder) = said.split_once("is kept for 30 days in ").unwrap_or_else(|| panic!("{done:?}"));
    let folder = folder.lines().next().unwrap().split(';').next().unwrap().trim_end_matches('.');
    let folder = std::path::Path::new(folder);
    for (kept, text) in [("old.txt", "old\nmore\nmine\n"), ("d/made.txt", "one\n")] {
        assert_eq!(std::fs::read_to_string(folder.join(kept)).unwrap(), text, "{kept}");
    }
    // It is reported once.
    assert_eq!(place.run(&["checkpoint", "list"]).stderr, "");
}

#[test]
fn w15_a_patch_of_400_files_that_is_killed_is_there_as_a_whole_or_not_at_all() {
    let mut patch = String::from("*** Begin Patch\n");
    for n in 0..400 {
        patch.push_str(&format!("*** Add File: d/n{n:03}.txt\n+new {n}\n"));
    }
    patch.push_str("*** End Patch");
    let published = |place: &Place| {
        let names = std::fs::read_dir(place.work.join("d")).unwrap();
        names.filter(|n| n.as_ref().unwrap().file_name().to_string_lossy().starts_with('n')).count()
    };
    // By the number of temporary files at the kill, and of published files.
    for (temps, files) in [(1, 0), (200, 0), (0, 1), (0, 200)] {
        let server = ScriptServer::start([calls("c1", "patch", json!({ "patch": patch })), says("Done.")]);
        let place = Place::anthropic(&server);
        place.file("d/mine.txt", "mine\n");
        let mut child = place.tiller(&["exec", "--profile", "full", "patch it"]);
        let mut child =
            child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The temporary files may be published before this test looks again.
        wait("the patch", || {
            let there = published(&place);
            if files > 0 { there >= files } else { there > 0 || temporaries(&place) >= temps }
        });
        child.kill().unwrap();
        child.wait().unwrap();
        let list = place.lines(&["checkpoint", "list", "--json"]);
        assert_eq!(temporaries(&place), 0, "{temps} {files}");
        let there = published(&place);
        assert!(there == 0 || there == 400, "{there} files");
        assert_eq!(place.read("d/mine.txt"), "mine\n");
        let left = place.home.join("data/publishing");
        assert_eq!(std::fs::read_dir(left).unwrap().count(), 0);
        // Complete or not, it is the agent's change.
        let first = list[0]["entry"].as_str().unwrap().to_owned();
        let preview = place.lines(&["checkpoint", "diff", &first, "--json"]);
        let all = preview[0]["files"].as_array().unwrap();
        assert!(all.iter().all(|f| f.get("conflict").is_none()), "{preview:?}");
        assert_eq!(all.len() + usize::try_from(preview[0]["more"].as_u64().unwrap()).unwrap(), there);
    }
}

/// Number of files below a folder with this prefix; files that vanish meanwhile are ignored.
fn begin(folder: &std::path::Path, prefix: &str) -> usize {
    let items = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let count = |item: std::fs::DirEntry| match item.file_type() {
        Ok(kind) if kind.is_dir() => begin(&item.path(), prefix),
        _ => usize::from(item.file_name().to_string_lossy().starts_with(prefix)),
    };
    items.map(count).sum()
}

#[test]
fn w15_a_patch_in_a_worktree_that_is_killed_leaves_no_part_and_no_temporary_file() {
    let mut patch = String::from("*** Begin Patch\n");
    for n in 0..400 {
        patch.push_str(&format!("*** Add File: d/new{n:03}.txt\n+new {n}\n"));
    }
    patch.push_str("*** End Patch");
    let server = ScriptServer::with(move |request, _| {
        let body = request.json();
        let (task, done) = (body["messages"][0]["content"].to_string(), body["messages"].to_string());
        match done.contains("tool_result") {
            false if task.contains("own job") => calls("c1", "patch", json!({ "patch": patch })),
            false => calls("d1", "delegate_task", json!({"tasks": [{"goal": "own job", "isolated": true}]})),
            true => says("Done."),
        }
    });
    let place = Place::anthropic(&server);
    place.file("mine.txt", "mine\n");
    place.git(&["init", "-q"]);
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "first"]);
    let worktrees = place.home.join("worktrees");
    let mut child = place.tiller(&["exec", "--profile", "full", "go"]);
    let mut child = child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait("a part of the patch", || begin(&worktrees, "new") > 0 || begin(&worktrees, ".tiller-") > 200);
    child.kill().unwrap();
    child.wait().unwrap();
    place.ok(&["checkpoint", "list"]);
    let there = begin(&worktrees, "new");
    assert!(there == 0 || there == 400, "{there} files");
    assert_eq!(begin(&worktrees, ".tiller-"), 0);
}

#[test]
fn w16_force_brings_back_more_files_than_a_list_shows_and_no_list_is_cut() {
    let many = "mkdir d; cd d; seq 350 | split -l 1 -a 4 - n";
    let server = ScriptServer::start([shell("c1", many), says("Done.")]);
    let place = Place::anthropic(&server);
    for n in 0..350 {
        place.file(&format!("mine/f{n}"), "first\n");
    }
    place.ok(&["exec", "--profile", "full", "many files"]);
    place.ok(&["checkpoint", "create", "here"]);
    for n in 0..350 {
        place.file(&format!("mine/f{n}"), "changed\n");
    }
    let preview = place.lines(&["checkpoint", "diff", "here", "--json"]);
    assert_eq!((preview[0]["files"].as_array().unwrap().len(), preview[0]["more"].as_u64()), (350, Some(0)));
    let done = place.lines(&["checkpoint", "restore", "here", "--force", "--json"]);
    assert_eq!(done[0]["files"].as_array().unwrap().len(), 350);
    assert!((0..350).all(|n| place.read(&format!("mine/f{n}")) == "first\n"));
    let undone = place.lines(&["checkpoint", "undo", "--json"]);
    assert_eq!(undone[0]["files"].as_array().unwrap().len(), 350);
    assert!((0..350).all(|n| place.read(&format!("mine/f{n}")) == "changed\n"));
}

#[test]
fn w16_names_that_are_not_utf_8_are_restored_and_undone_one_by_one() {
    use std::os::unix::ffi::OsStrExt;
    let name = |bytes: &'static [u8]| std::ffi::OsStr::from_bytes(bytes);
    let (e9, ff) = (name(b"caf\xe9.txt"), name(b"caf\xff.txt"));
    let command = "for f in caf*; do echo new > \"$f\"; done";
    let server = ScriptServer::start([shell("c1", command), says("Done.")]);
    let place = Place::anthropic(&server);
    let put = |file: &std::ffi::OsStr, text: &str| std::fs::write(place.work.join(file), text).unwrap();
    let get = |file: &std::ffi::OsStr| std::fs::read_to_string(place.work.join(file)).unwrap();
    put(e9, "old e9\n");
    put(ff, "old ff\n");
    place.ok(&["exec", "--profile", "full", "change them"]);
    let list = place.lines(&["checkpoint", "list", "--json"]);
    let first = list[0]["entry"].as_str().unwrap().to_owned();
    let preview = place.lines(&["checkpoint", "diff", &first, "--json"]);
    let names: Vec<_> = preview[0]["files"].as_array().unwrap().iter().map(|f| f["path"].clone()).collect();
    assert_eq!(names, ["caf\u{fffd}E9.txt", "caf\u{fffd}FF.txt"], "told apart");
    // By its own bytes, and as the list shows it.
    let mut by_bytes = place.tiller(&["checkpoint", "restore", &first, "--path"]);
    assert!(by_bytes.arg(ff).output().unwrap().status.success());
    assert_eq!((get(e9).as_str(), get(ff).as_str()), ("new\n", "old ff\n"));
    place.ok(&["checkpoint", "undo"]);
    assert_eq!((get(e9).as_str(), get(ff).as_str()), ("new\n", "new\n"));
    place.ok(&["checkpoint", "restore", &first, "--path", "caf\u{fffd}E9.txt"]);
    assert_eq!((get(e9).as_str(), get(ff).as_str()), ("old e9\n", "new\n"));
    place.ok(&["checkpoint", "undo"]);
    place.ok(&["checkpoint", "restore", &first]);
    assert_eq!((get(e9).as_str(), get(ff).as_str()), ("old e9\n", "old ff\n"));
    // Twice: the second time there is nothing to undo, and it is not stuck.
    place.ok(&["checkpoint", "undo"]);
    assert_eq!((get(e9).as_str(), get(ff).as_str()), ("new\n", "new\n"));
    let none = place.run(&["checkpoint", "undo"]);
    assert!(none.stderr.contains("There is no restore to undo"), "{none:?}");
}
