//! What the screen says of the sandbox.

use tiller_testkit::ScriptServer;

use crate::common::{Place, let_escape_pass};
use crate::screen::{press_until, quit, say};

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
