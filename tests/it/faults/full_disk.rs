//! S4 and S5 with the real program: disks that are full, and a state folder that cannot be written.
//!
//! Each runs in a mount namespace of its own. Where these are not permitted the tests print that they were skipped.

use std::path::Path;

use serde_json::json;
use tiller_testkit::{ScriptServer, Term, Wire};

use crate::common::{Out, Place, TILLER, calls, let_paste_pass, run, says, wait};
use crate::screen::{quit, say};

/// The arguments of `unshare` that run `script` in its own mount namespace.
fn apart(script: &str) -> [&str; 4] {
    ["-Urm", "sh", "-c", script]
}

fn mounts(place: &Place) -> bool {
    let may = run(place.program("unshare", &apart("mount -t tmpfs tmpfs /tmp")), b"");
    if may.code != Some(0) {
        eprintln!("skipped: no mount name spaces here: {}", may.stderr);
    }
    may.code == Some(0)
}

fn script(place: &Place, script: &str) -> Out {
    run(place.program("unshare", &apart(script)), b"")
}

fn screen(place: &Place, script: &str) -> Term {
    Term::spawn(Path::new("/usr/bin/unshare"), &apart(script), &place.env, &place.work, 100, 30)
}

/// Answers the question about continuing without saving, which ignores keys at first.
fn answer(term: &mut Term, key: &str) {
    crate::screen::press_until(term, key, |s| !s.contains("Continue without saving?"));
    // Keys that were typed after the question are in the composer.
    term.keys("\x15");
}

/// The workspace is full: existing files stay complete, no temporary file is left, the model gets the reason.
#[test]
fn s4_a_full_workspace_truncates_no_file() {
    let long = "x".repeat(600_000);
    let server = ScriptServer::start([
        calls("c1", "read_file", json!({"path": "a.txt"})),
        calls("c2", "write_file", json!({"path": "a.txt", "content": long})),
        calls("c3", "edit_file", json!({"path": "a.txt", "old": "keep", "new": long})),
        calls("c4", "write_file", json!({"path": "new.txt", "content": long})),
        calls("c5", "edit_file", json!({"path": "a.txt", "old": "keep", "new": "kept"})),
        says("It did not fit."),
    ]);
    let place = Place::anthropic(&server);
    if !mounts(&place) {
        return;
    }
    let work = place.work.display();
    let out = script(
        &place,
        &format!(
            "mount -t tmpfs -o size=1m,mode=700 tmpfs '{work}' && cd '{work}' && printf 'keep me\\n' > a.txt \
             && head -c 800000 /dev/zero > ballast && '{TILLER}' exec --profile full 'write'; echo CODE $?; cat a.txt; ls -A"
        ),
    );
    assert_eq!(out.stdout, "It did not fit.\nCODE 0\nkept me\na.txt\nballast\n", "{out:?}");
    for (n, said) in [(2, "c2"), (3, "c3"), (4, "c4")] {
        let body = server.bodies()[n].to_string();
        let result = body.rsplit(&format!("\"tool_use_id\":\"{said}\"")).next().unwrap();
        assert!(body.contains(said) && body.contains("No space left"), "{said}: {result}");
    }
}

/// The state folder fills up during work: the banner is shown, nothing is lost, and work continues when there is space.
#[test]
fn s4_a_full_state_folder_pauses_and_goes_on() {
    // The second is the session's title.
    let server = ScriptServer::start([says("All well."), says("A title"), says("There is room again.")]);
    let place = Place::anthropic(&server);
    if !mounts(&place) {
        return;
    }
    let (home, out) = (place.home.display(), place.user.display());
    let full = format!(
        "(while [ ! -e '{out}/go' ]; do sleep 0.05; done; head -c 20m /dev/zero > '{home}/ballast'; touch '{out}/full'; \
         while [ ! -e '{out}/free' ]; do sleep 0.05; done; rm '{home}/ballast'; touch '{out}/freed') 2>/dev/null &"
    );
    let mut term = screen(
        &place,
        &format!(
            "mount -t tmpfs -o size=16m,mode=700 tmpfs '{home}' && {{ {full} '{TILLER}'; echo CODE $?; \
             '{TILLER}' sessions show last > '{out}/shown'; }}"
        ),
    );
    term.wait_text("Type what you want done");
    say(&mut term, "first");
    term.wait_text("All well.");
    wait("the title", || server.count() == 2);
    std::fs::write(place.user.join("go"), "").unwrap();
    wait("a full disk", || place.user.join("full").exists());
    // More than the space that the files already have.
    let words = "many words ".repeat(80_000);
    term.keys(&format!("\x1b[200~{words}\x1b[201~"));
    term.wait_text("[paste 1");
    let_paste_pass(&mut term);
    term.keys("\r");
    let seen = term.wait_text("Not saving");
    assert!(!seen.contains("There is room again"), "{seen}");
    assert_eq!(server.count(), 2, "nothing goes out that is not on disk");
    std::fs::write(place.user.join("free"), "").unwrap();
    wait("room", || place.user.join("freed").exists());
    term.wait_text("There is room again.");
    term.wait_gone("Not saving");
    quit(&mut term);
    let shown = std::fs::read_to_string(place.user.join("shown")).unwrap();
    assert!(shown.contains("first") && shown.contains("[paste 1") && shown.contains("room again"), "{shown}");
}

/// A start on a full disk reports the problem and what to do, headless and with a screen, with an existing session and
/// without.
#[test]
fn s4_a_start_on_a_full_disk_says_so() {
    let server = ScriptServer::start([says("a"), says("Unsaved, but here.")]);
    let place = Place::anthropic(&server);
    if !mounts(&place) {
        return;
    }
    let home = place.home.display();
    for (before, args, says) in
        [("true".to_owned(), "", "without saving?"), (format!("'{TILLER}' exec hi"), "-c", "Not saving")]
    {
        let full = format!(
            "mount -t tmpfs -o size=2m,mode=700 tmpfs '{home}' && {before} >/dev/null && \
             {{ head -c 9m /dev/zero > '{home}/ballast' 2>/dev/null; '{TILLER}' "
        );
        let out = script(&place, &format!("{full} exec hi; }}"));
        assert_eq!((out.code, out.stdout.as_str()), (Some(5), ""), "{args}: {out:?}");
        assert!(
            out.stderr.contains("No space left") && out.stderr.contains("Free some space"),
            "{args}: {out:?}"
        );
        assert!(!out.stderr.contains("no session"), "{args}: {out:?}");
        let term = screen(&place, &format!("{full} {args}; echo CODE $?; }}"));
        term.wait("why, and what to do", |s| s.to_lowercase().contains("no space left") && s.contains(says));
    }
}

/// The disk fills up in the middle of a turn: the message names the full disk, not its consequences.
#[test]
fn s4_a_disk_that_fills_in_a_turn_is_named() {
    let long = "words ".repeat(800_000);
    let server = ScriptServer::start([calls("c1", "read_file", json!({"path": "a.txt"})), says(&long)]);
    let place = Place::anthropic(&server);
    if !mounts(&place) {
        return;
    }
    let (home, out) = (place.home.display(), place.user.display());
    place.file("a.txt", "x");
    let full = format!(
        "mount -t tmpfs -o size=3m,mode=700 tmpfs '{home}' && '{TILLER}' exec hi > '{out}/said'; echo CODE $?; \
         '{TILLER}' sessions show last"
    );
    let out = script(&place, &full);
    assert!(out.stdout.starts_with("CODE 5\n"), "{} ... {}", out.stdout, out.stderr);
    assert!(out.stderr.contains("No space left") && !out.stderr.contains("no entry"), "{}", out.stderr);
}

/// The state folder is read-only: `exec` ends with one clear line, the workbench asks and continues without saving.
#[test]
fn s5_a_state_folder_that_cannot_be_written() {
    let server = ScriptServer::start([says("Unsaved, but here.")]);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &server);
    if !mounts(&place) {
        return;
    }
    let home = place.home.display();
    let fixed = format!("mount --bind '{home}' '{home}' && mount -o remount,bind,ro '{home}' && '{TILLER}'");
    let out = script(&place, &format!("{fixed} exec hi"));
    assert_eq!((out.code, out.stdout.as_str()), (Some(5), ""), "{out:?}");
    assert!(out.stderr.contains("cannot be written") && out.stderr.contains("TILLER_HOME"), "{out:?}");
    assert_eq!(server.count(), 0);

    let mut term = screen(&place, &format!("{fixed}; echo CODE $?"));
    term.wait_text("Continue without saving?");
    answer(&mut term, "y");
    say(&mut term, "are you there");
    // It is said all the time.
    term.wait("the reply under the banner", |s| s.contains("Unsaved, but here.") && s.contains("Not saving"));
    quit(&mut term);

    let mut term = screen(&place, &format!("{fixed}; echo CODE $?"));
    term.wait_text("Continue without saving?");
    answer(&mut term, "n");
    let said = term.wait_text("CODE 5");
    assert!(said.contains("cannot be written") && said.contains("TILLER_HOME"), "{said}");
}
