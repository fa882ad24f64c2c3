//! The sandbox on the screen.

use serde_json::json;
use tiller_testkit::{Script, ScriptServer, Wire};

use crate::common::{Place, let_escape_pass};
use crate::scenario::Model;
use crate::screen::{press_until, quit, say, type_in, words};

/// The self-test runs beside the first frames; the dialog shows each capability of this machine, whichever it has.
#[test]
fn the_dialog_shows_what_the_self_test_found() {
    for (columns, rows) in [(118, 40), (80, 24)] {
        let place = Place::anthropic(&ScriptServer::start([]));
        let told = place.run(&["sandbox", "test", "--json"]).stdout;
        let mut term = place.term(&[], columns, rows);
        term.wait_text("Type what you want done");
        say(&mut term, "/sandbox");
        let want: &[&str] =
            if told.is_empty() { &["cannot confine"] } else { &["seccomp", "Run without asking"] };
        term.wait("the result", |s| {
            s.contains("In force")
                && s.contains("sandbox = \"auto\"")
                && want.iter().all(|words| s.contains(words))
        });
        if !told.is_empty() {
            // The rest of a long list, by its filter.
            term.keys("tcp");
            term.wait_text("TCP connections");
        }
        press_until(&mut term, "\x1b", |s| !s.contains("In force"));
        let_escape_pass();
        assert_eq!(quit(&mut term), 0);
    }
}

#[test]
fn the_header_says_that_the_sandbox_is_off() {
    let place = Place::anthropic(&ScriptServer::start([]));
    place.config("sandbox = \"off\"\nprofile = \"full\"\n");
    let mut term = place.term(&[], 118, 25);
    term.wait("the header", |s| {
        s.lines().next().is_some_and(|l| l.contains("AUTO") && l.contains("sandbox off"))
    });
    assert_eq!(quit(&mut term), 0);
}

/// Domains cannot be reached where neither namespaces nor supervisors limit the network: the dialog says so.
#[test]
fn the_dialog_shows_the_listed_domains() {
    let place = Place::anthropic(&ScriptServer::start([]));
    place.config("sandbox_network = [\"walnut.example\"]\n");
    let found = tiller_sandbox::Confinement::find();
    let method = tiller_sandbox::Method::choose(found, tiller_sandbox::Profile::Workspace);
    let limited = method.is_some_and(|method| method.limits_network(found).is_ok());
    let mut term = place.term(&[], 118, 40);
    term.wait_text("Type what you want done");
    say(&mut term, "/sandbox");
    let want = if limited { "walnut.example" } else { "listed domains" };
    term.wait("the network", |s| s.contains("Network") && s.contains(want));
    press_until(&mut term, "\x1b", |s| !s.contains("In force"));
    let_escape_pass();
    assert_eq!(quit(&mut term), 0);
}

/// A path that the person names below /tmp is that of the session: what its commands wrote there is completed, attached and
/// shown by its folder; the machine's file of a name is never taken for it without a word.
#[test]
fn a_path_below_tmp_that_the_person_names_is_the_file_that_the_session_sees() {
    let found = tiller_sandbox::Confinement::find();
    if !tiller_sandbox::Method::present(found).contains(&tiller_sandbox::Method::Bubblewrap) {
        eprintln!("skipped: no bubblewrap");
        return;
    }
    let machine = tempfile::Builder::new().prefix("named-").suffix(".txt").tempfile_in("/tmp").unwrap();
    std::fs::write(machine.path(), "of the machine\n").unwrap();
    let both = machine.path().display().to_string();
    let stem = both.trim_end_matches(".txt");
    let only = format!("{stem}-only.txt");
    let other = tempfile::Builder::new().prefix("alone-").suffix(".txt").tempfile_in("/tmp").unwrap();
    std::fs::write(other.path(), "machine alone\n").unwrap();
    let alone = other.path().display().to_string();

    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    let writes = format!("echo session-$((40+2)) | tee {both} > {only}");
    model.push(Script::new().call("c1", "terminal", json!({"command": writes})));
    model.push(Script::new().text("It is written."));
    let mut term = place.term(&["--profile", "full"], 118, 40);
    term.wait_text("Type what you want done");
    say(&mut term, "write it");
    term.wait_text("It is written.");
    // The state has the folder once the self-test has ended.
    say(&mut term, "/sandbox");
    term.wait_text("Own /tmp");
    press_until(&mut term, "\x1b", |s| !s.contains("Own /tmp"));
    let_escape_pass();

    // Completion.
    type_in(&mut term, &format!("@{stem}-on"));
    term.wait("the session's file", |s| s.contains("11 B") && s.contains("tokens"));
    term.keys("\t");
    model.push(Script::new().text("One is read."));
    term.keys("and so on\r");
    term.wait_text("One is read.");
    let sent = model.last();
    assert!(sent.contains(&format!("<file path=\\\"{only}\\\">\\nsession-42\\n</file>")), "{sent}");

    // Both: said, then the session's.
    say(&mut term, &format!("compare @{both} now"));
    term.wait("which one is meant", |s| words(s).contains("the machine's /tmp has another of that name"));
    model.push(Script::new().text("Two is read."));
    term.keys("\r");
    term.wait_text("Two is read.");
    let sent = model.last();
    assert!(sent.contains(&format!("<file path=\\\"{both}\\\">\\nsession-42\\n</file>")), "{sent}");
    assert!(!sent.contains("of the machine"), "{sent}");

    // The machine's alone: not attached, and said.
    say(&mut term, &format!("look at @{alone} now"));
    term.wait("why not", |s| words(s).contains("this session has a /tmp of its own, without such a file"));
    term.keys("\x15");
    term.wait_gone("this session has a /tmp");

    // A `!` line runs outside the sandbox.
    say(&mut term, &format!("!cat {only}"));
    term.wait("where it is", |s| s.contains("here is the machine's; the agent's file"));
    assert_eq!(quit(&mut term), 0);
}
