//! Resources and prompts of MCP servers in messages: headless, and chosen in the screen.

use serde_json::{Value, json};
use tiller_testkit::{ScriptServer, Term};

use super::mcp::{entry, place};
use crate::common::{TIMEOUT, calls, let_deafness_pass, poll, says};
use crate::screen::{press_until, say, type_in, unfold};

/// The content of the last message of a request.
fn content(body: &Value) -> Value {
    body["messages"].as_array().unwrap().last().unwrap()["content"].clone()
}

fn text(body: &Value) -> String {
    let content = content(body);
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let texts = content.as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_message_takes_resources_and_prompts_from_servers() {
    let server = ScriptServer::start((0..3).map(|n| says(&format!("Answer {n}."))));
    let Some(place) = place(&server) else { return };
    place.config(&entry(&place, "notes", "good"));
    let run = |text: &str| place.run(&["exec", text]);
    let out = run("Sum up @notes:note://one, please");
    assert_eq!(out.code, Some(0), "{out:?}");
    let sent = text(&server.bodies()[0]);
    assert!(
        sent.starts_with(
            "Sum up @notes:note://one, please\n\n<mcp_resource server=\"notes\" uri=\"note://one\">"
        ),
        "{sent}"
    );
    assert!(sent.contains("\nthe text of note://one\n</mcp_resource>"), "{sent}");
    let out = run("What is on @notes:note://picture");
    assert_eq!(out.code, Some(0), "{out:?}");
    let sent = content(&server.bodies()[1]);
    assert!(sent.to_string().contains("\"media_type\":\"image/png\""), "{sent}");
    let out = run("/notes:review src/a.rs");
    assert_eq!(out.code, Some(0), "{out:?}");
    let sent = text(&server.bodies()[2]);
    assert!(
        sent.contains("<mcp_prompt server=\"notes\" name=\"review\">\nReview src/a.rs\n</mcp_prompt>"),
        "{sent}"
    );
    // Each failure says why, and nothing is sent.
    for (message, why) in [
        ("/notes:review", "/notes:review was not sent: it needs file: /notes:review FILE"),
        ("/notes:revue x", "did you mean /notes:review?"),
        ("/note:review x", "Did you mean /notes:review?"),
        (
            "see @notes:note://none",
            "@notes:note://none cannot be attached: the MCP server notes: no such note",
        ),
        ("see @notes:note://crash", "@notes:note://crash cannot be attached"),
    ] {
        let out = run(message);
        assert!(out.code != Some(0) && out.stderr.contains(why), "{message}: {out:?}");
    }
    assert_eq!(server.bodies().len(), 3);
}

/// True if a request ends with a message that has these words. A title may be asked for in between.
fn sent(server: &ScriptServer, words: &str) -> bool {
    server.bodies().iter().any(|body| text(body).contains(words))
}

#[test]
fn the_screen_offers_what_servers_have_and_keeps_a_message_that_fails() {
    let server = ScriptServer::start((0..6).map(|_| says("Done.")));
    let Some(place) = place(&server) else { return };
    place.config(&entry(&place, "notes", "good"));
    // They are known from now on, without a start.
    let tested = place.ok(&["mcp", "test", "notes"]);
    assert!(
        tested.contains("Resources: 1\n  @notes:note://one  one\nPrompts: 1\n  /notes:review FILE"),
        "{tested}"
    );
    let mut term: Term = place.term(&[], 118, 25);
    term.wait_text("ASK");
    term.keys("Sum up @note");
    term.wait_text("notes:note://one");
    term.keys("\t");
    term.wait("the address", |screen| screen.contains("Sum up @notes:note://one"));
    term.keys("\r");
    term.wait("the end of the turn", |screen| screen.contains("Done.") && screen.contains("○ main"));
    assert!(sent(&server, "the text of note://one"));
    term.keys("/notes:r");
    term.wait_text("/notes:review FILE");
    term.keys("\t");
    term.wait("the command", |screen| screen.contains("/notes:review") && !screen.contains("FILE"));
    // The argument is missing: the message stays, with the reason.
    term.keys("\r");
    term.wait("the reason", |screen| screen.contains("it needs file"));
    term.keys(" src/b.rs");
    term.wait_text("/notes:review src/b.rs");
    term.keys("\r");
    let arrived = || sent(&server, "Review src/b.rs").then_some(());
    poll(TIMEOUT, arrived).expect("the prompt is sent");
}

/// A form of thirty values is listed whole on a small screen, and answered in the parts that the server needs.
#[test]
fn a_form_of_thirty_values_is_read_and_answered_at_80x24() {
    let call =
        calls("c1", "mcp_call", json!({"server": "forms", "tool": "echo", "arguments": {"text": "x"}}));
    let server = ScriptServer::start([call, says("All given.")]);
    let Some(place) = place(&server) else { return };
    place.config(&entry(&place, "forms", "asks-much"));
    let mut term: Term = place.term(&["--profile", "full"], 80, 24);
    term.wait_text("Type what you want done");
    say(&mut term, "fill it in");
    term.wait("the form", |screen| screen.contains("It asks for 30 values"));
    let first = term.screen();
    assert!(first.contains("1. Value number 1") && !first.contains("30. Value number 30"), "{first}");
    unfold(&mut term);
    let last = |screen: &str| (1..=30).rev().find(|n| screen.contains(&format!("{n}. Value number {n}")));
    while let Some(n @ ..30) = last(&term.screen()) {
        press_until(&mut term, "\x1b[6~", |screen| last(screen) > Some(n));
    }
    press_until(&mut term, "\x1b[H", |screen| screen.contains("It asks for 30 values"));
    press_until(&mut term, "\x1b[F", |screen| last(screen) == Some(30));
    term.wait("the last value and the choices", |screen| {
        ["30. Value number 30", "Answer all 30", "Answer the 2 that it needs", "Decline"]
            .iter()
            .all(|words| screen.contains(words))
    });
    term.keys("2");
    for (n, label, answer) in [(1, "Value number 1", "Ada"), (2, "Value number 30", "Bo")] {
        let place = format!("Value {n} of 2: {label}");
        term.wait(&place, |screen| screen.contains(&place));
        unfold(&mut term);
        let_deafness_pass();
        type_in(&mut term, answer);
        term.keys("\r");
    }
    term.wait_text("All given.");
    let told =
        server.bodies().iter().map(|body| body["messages"].to_string()).find(|all| all.contains("Ada"));
    let told = told.expect("the answer of the form");
    assert!(told.contains("accept") && told.contains("v30") && !told.contains("v02"), "{told}");
    drop(term);
}
