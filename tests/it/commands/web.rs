//! `web_search` and `web_extract` by the whole program: rules, the key, and what the model and the person see of it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::json;
use tiller_testkit::ScriptServer;

use crate::common::{Place, calls, says};

const KEY: &str = "walnut-key-0123456789";
const RESULTS: &str = r#"{"web":{"results":[{"title":"Rust <b>book</b>","url":"https://book.example/","description":"All of it"}]}}"#;

/// A search engine that answers every request, and tells each.
fn engine() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                match stream.read(&mut byte) {
                    Ok(1) => head.push(byte[0]),
                    _ => break,
                }
            }
            let length = RESULTS.len();
            let answer =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{RESULTS}");
            // The client may be gone.
            let _ = stream.write_all(answer.as_bytes());
            if tell.send(String::from_utf8_lossy(&head).into_owned()).is_err() {
                return;
            }
        }
    });
    (address, told)
}

fn place(server: &ScriptServer, engine: &str) -> Place {
    let mut place = Place::anthropic(server);
    place.env.push(("BRAVE_API_KEY".into(), KEY.into()));
    place.config(&format!("[web]\nbrave_url = \"{engine}\"\n"));
    place
}

/// What the model got as results.
fn results(server: &ScriptServer) -> String {
    server.bodies().last().unwrap()["messages"].to_string()
}

#[test]
fn a_search_is_allowed_by_its_query_and_its_key_goes_nowhere_else() {
    let (address, told) = engine();
    let server = ScriptServer::start([
        calls("c1", "web_search", json!({"query": "rust book"})),
        calls("c2", "terminal", json!({"command": "env"})),
        says("Done."),
    ]);
    let place = place(&server, &address);
    let allow = ["exec", "--allow", "web_search(rust*)", "--allow", "terminal(*)", "look"];
    let out = place.run(&allow);
    assert_eq!(out.code, Some(0), "{out:?}");
    let request = told.recv().unwrap().to_lowercase();
    assert!(request.starts_with("get /res/v1/web/search?q=rust+book&"), "{request}");
    assert!(request.contains(&format!("x-subscription-token: {KEY}")), "{request}");
    let seen = results(&server);
    assert!(seen.contains("1. Rust book") && seen.contains("https://book.example/"), "{seen}");
    assert!(seen.contains("untrusted text"), "{seen}");
    let list = place.lines(&["sessions", "list", "--exec", "--json"]);
    let shown = place.ok(&["sessions", "show", list[0]["id"].as_str().unwrap()]);
    assert!(shown.contains("PATH="), "the environment was printed: {shown}");
    for (what, text) in [("model", &seen), ("screen", &shown), ("output", &format!("{out:?}"))] {
        assert!(!text.contains(KEY) && !text.contains("BRAVE_API_KEY="), "{what}: {text}");
    }
}

#[test]
fn without_a_rule_nothing_is_searched_or_fetched() {
    let (address, told) = engine();
    for (tool, args, rule) in [
        ("web_search", json!({"query": "rust book"}), "web_search(python*)"),
        // One page of the list that no rule allows.
        (
            "web_extract",
            json!({"urls": ["https://docs.example/", "https://other.example/"]}),
            "web_fetch(domain:docs.example)",
        ),
    ] {
        let server = ScriptServer::start([calls("c1", tool, args), says("Done.")]);
        let place = place(&server, &address);
        let out = place.run(&["exec", "--allow", rule, "look"]);
        assert_eq!(out.code, Some(3), "{tool}: {out:?}");
        assert!(results(&server).contains("needs an approval"), "{tool}: {}", results(&server));
    }
    assert!(told.try_recv().is_err(), "nothing was asked");
}

/// A rule about an address holds for every tool that fetches it.
#[test]
fn a_rule_about_a_domain_holds_for_each_tool_that_fetches() {
    let (address, told) = engine();
    let url = format!("{address}/page");
    for effect in ["--deny", "--allow"] {
        let server = ScriptServer::start([calls("c1", "web_extract", json!({"urls": [url]})), says("Done.")]);
        let place = place(&server, &address);
        place.config("[limits]\nfetch_private = true\n");
        place.run(&["exec", effect, "web_fetch(domain:127.0.0.1)", "look"]);
        let seen = results(&server);
        assert_eq!(seen.contains("Rust <b>book"), effect == "--allow", "{effect}: {seen}");
        assert_eq!(seen.contains("denied by the rule"), effect == "--deny", "{effect}: {seen}");
    }
    assert!(told.recv().unwrap().starts_with("GET /page "));
    assert!(told.try_recv().is_err(), "the denied one was not fetched");
}
