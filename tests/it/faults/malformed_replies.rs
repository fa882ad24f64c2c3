//! Replies of model servers that no reference documents: unusual names, answers that are not streams, cut blocks,
//! refusals. The turn ends at once with the reason, and the session continues.

use serde_json::{Value, json};
use tiller_testkit::{Reply, Script, ScriptServer, Stop, Wire, strict};

use crate::common::{Place, json_lines};

/// A server with these replies that answers 400 to a request which violates the vendor's schema.
fn vendor(wire: Wire, replies: Vec<Script>) -> ScriptServer {
    let mut replies = replies.into_iter();
    ScriptServer::with(move |request, _| match strict::refusal(wire, &request.json()) {
        Some(why) => {
            Reply::status(400).json(&json!({"error": {"type": "invalid_request_error", "message": why}}))
        }
        None => Reply::script(wire, &replies.next().unwrap_or_else(|| Script::new().text("script is over"))),
    })
}

fn at(wire: Wire, server: &ScriptServer) -> Place {
    let mut place = Place::new();
    place.wire(wire, server);
    place
}

#[test]
fn p13_a_name_that_is_nearly_a_tool_reaches_it_and_the_session_goes_on() {
    for wire in Wire::ALL {
        let odd = Script::new()
            .call("call 1", "functions.read_file", json!({"path": "a.txt"}))
            .call("call 1", &"x".repeat(300), json!({}))
            .call_raw("", "", "[1]");
        let server =
            vendor(wire, vec![odd, Script::new().text("It says: apples."), Script::new().text("Again.")]);
        let place = at(wire, &server);
        place.file("a.txt", "apples and pears\n");
        let out = place.run(&["exec", "--json", "read it"]);
        assert_eq!(out.code, Some(0), "{wire:?} {}", out.stderr);
        let lines = json_lines(&out.stdout);
        let done: Vec<(&Value, &Value)> =
            lines.iter().filter(|l| l["type"] == "tool_finished").map(|l| (&l["name"], &l["ok"])).collect();
        assert_eq!(done.first(), Some(&(&json!("read_file"), &json!(true))), "{wire:?} {done:?}");
        assert!(server.bodies()[1].to_string().contains("apples and pears"), "{wire:?}");
        // The model's text is stored unchanged.
        let said = lines.iter().find(|l| l["type"] == "assistant_message").unwrap();
        assert!(said["node"].to_string().contains("functions.read_file"), "{wire:?} {said}");
        let out = place.run(&["exec", "--continue", "and now?"]);
        assert_eq!((out.code, out.stdout.as_str()), (Some(0), "Again.\n"), "{wire:?} {}", out.stderr);
    }
}

#[test]
fn p10_a_refusal_is_told_and_exits_1() {
    for wire in Wire::ALL {
        let server = vendor(wire, vec![Script::new().text("I").stop(Stop::Refusal)]);
        let out = at(wire, &server).run(&["exec", "go"]);
        assert_eq!(out.code, Some(1), "{wire:?} {} {}", out.stdout, out.stderr);
        assert!(out.stderr.contains("The model declined to answer"), "{wire:?} {}", out.stderr);
        assert_eq!(server.count(), 1, "{wire:?}");
    }
}

#[test]
fn p14_the_output_limit_in_an_open_block_is_one_request() {
    let events = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "half a sen"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    let body: String = events.iter().map(|e| tiller_testkit::sse("", e)).collect();
    let rest = Reply::script(Wire::Anthropic, &Script::new().text("tence"));
    let server = ScriptServer::start([Reply::sse(body), rest]);
    let out = Place::anthropic(&server).run(&["exec", "go"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "half a sentence\n"), "{}", out.stderr);
    assert_eq!((server.count(), server.overrun()), (2, 0));
}

/// A reply that the output limit cut off is continued by every format; one that is cut again and again ends with exit code 1.
#[test]
fn p14_a_reply_at_the_output_limit_is_continued_or_has_failed() {
    for wire in Wire::ALL {
        let cut = |text: &str| Script::new().text(text).stop(Stop::MaxTokens);
        let server = vendor(wire, vec![cut("One, "), cut("two, "), Script::new().text("three.")]);
        let out = at(wire, &server).run(&["exec", "count"]);
        assert_eq!(
            (out.code, out.stdout.as_str()),
            (Some(0), "One, two, three.\n"),
            "{wire:?} {}",
            out.stderr
        );
        assert!(server.bodies()[1].to_string().contains("was cut off"), "{wire:?}");
        let server = vendor(wire, (0..4).map(|_| cut("more ")).collect());
        let out = at(wire, &server).run(&["exec", "count"]);
        assert_eq!((out.code, server.count()), (Some(1), 4), "{wire:?} {} {}", out.stdout, out.stderr);
        assert!(out.stderr.contains("output limit"), "{wire:?} {}", out.stderr);
        assert_eq!(out.stdout, "more more more more\n", "{wire:?}: what came is kept");
        // A call that was cut is not run, however its format ends it.
        let half = Script::new()
            .call_raw("c1", "write_file", "{\"path\": \"made\", \"content\": \"ha")
            .stop(Stop::MaxTokens);
        let server = vendor(wire, vec![half, Script::new().text("Not done.")]);
        let place = at(wire, &server);
        let out = place.run(&["exec", "--profile", "auto-edit", "write it"]);
        assert_eq!(out.code, Some(0), "{wire:?} {}", out.stderr);
        assert!(!place.work.join("made").exists(), "{wire:?}");
    }
}

#[test]
fn p14_a_page_or_a_document_instead_of_a_stream_is_one_request() {
    for wire in Wire::ALL {
        let page = "<html><head><title>Sign in</title></head></html>";
        let server =
            ScriptServer::start([Reply::status(200).header("content-type", "text/html").bytes(page)]);
        let out = at(wire, &server).run(&["exec", "go"]);
        assert_eq!(out.code, Some(1), "{wire:?} {}", out.stderr);
        assert!(out.stderr.contains("web page (\"Sign in\")"), "{wire:?} {}", out.stderr);
        assert_eq!((server.count(), server.overrun()), (1, 0), "{wire:?}");
    }
    let whole = json!({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Whole."}],
        "stop_reason": "end_turn", "usage": {"input_tokens": 5, "output_tokens": 1}});
    let server = ScriptServer::start([Reply::status(200).json(&whole)]);
    let out = Place::anthropic(&server).run(&["exec", "go"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "Whole.\n"), "{}", out.stderr);
    assert_eq!(server.overrun(), 0);
}

#[test]
fn thoughts_in_tags_are_not_the_answer() {
    let script = Script::new().text("<think>\nhm, what\n</think>\n\nFour.").pieces_of(5);
    let server = vendor(Wire::OpenaiChat, vec![script]);
    let out = at(Wire::OpenaiChat, &server).run(&["exec", "2+2?"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "Four.\n"), "{}", out.stderr);
}
