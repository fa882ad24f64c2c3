//! `tiller mcp serve`, driven by Tiller's own client, line by line, and by the official inspector.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use tiller_testkit::ScriptServer;
use tiller_tool::shell::find_program;

use crate::common::{KEY, Place, says};

/// A place with one session, in which the user says and the model answers.
fn place() -> Place {
    let server = ScriptServer::start([says("The roof is mended.")]);
    let place = Place::anthropic(&server);
    place.ok(&["exec", &format!("mend the roof, the key is {KEY}")]);
    place
}

/// The command line that serves this place.
fn line(place: &Place) -> String {
    format!("env TILLER_HOME='{}' '{}' mcp serve", place.home.display(), env!("CARGO_BIN_EXE_tiller"))
}

#[test]
fn tillers_own_client_reads_the_sessions_that_tiller_serves() {
    let place = place();
    let line = line(&place);
    let tested = place.ok(&["mcp", "test", "--unconfined", "--command", &line]);
    assert!(tested.contains("6 tools") && tested.contains("read_session"), "{tested}");
    let call = |tool: &str, arguments: Value| -> Value {
        let said =
            place.ok(&["mcp", "call", "--unconfined", "--command", &line, tool, &arguments.to_string()]);
        serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"))
    };
    let id = call("list_sessions", json!({}))["sessions"][0]["session"].clone();
    let read = call("read_session", json!({"session": id}));
    let roles: Vec<&str> =
        read["messages"].as_array().unwrap().iter().filter_map(|m| m["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant"], "{read}");
    assert!(read.to_string().contains("mend the roof") && !read.to_string().contains(KEY), "{read}");
    let found = call("search_sessions", json!({"query": "mended"}));
    assert_eq!(
        (&found["hits"][0]["session"], &found["hits"][0]["role"]),
        (&id, &json!("assistant")),
        "{found}"
    );
    let agents = call("list_agents", json!({"session": id}));
    assert_eq!(agents["agents"][0]["agent"], json!("main"), "{agents}");
    assert_eq!(call("read_todo", json!({"session": id}))["todo"], json!([]));
    let out = place.run(&[
        "mcp",
        "call",
        "--unconfined",
        "--command",
        &line,
        "read_session",
        r#"{"session": "ffff"}"#,
    ]);
    assert!(out.code == Some(1) && out.stdout.contains("there is no session 'ffff'"), "{out:?}");
}

/// Runs it with this input.
fn answers(place: &Place, input: &[u8]) -> (Vec<Value>, std::process::Output) {
    let mut child = place
        .tiller(&["mcp", "serve"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // It may end before it has read all.
    let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let out = child.wait_with_output().unwrap();
    writing.join().unwrap();
    let lines = std::str::from_utf8(&out.stdout).unwrap().lines();
    (lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect(), out)
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;
const LIST: &str =
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"list_sessions\"}}\n";

#[test]
fn standard_output_carries_the_protocol_alone_whatever_comes_in() {
    let place = place();
    let junk =
        [HELLO.as_bytes(), b"hello\n", b"\xff\xfe\n", &[b'['; 2 << 20], b"\n", LIST.as_bytes()].concat();
    let (answers, out) = self::answers(&place, &junk);
    assert!(out.status.success(), "{out:?}");
    let codes: Vec<i64> = answers.iter().filter_map(|a| a["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [-32700, -32700, -32600], "{answers:?}");
    let list = answers.iter().find(|a| a["id"] == json!(2)).unwrap_or_else(|| panic!("{answers:?}"));
    assert!(list["result"]["content"][0]["text"].as_str().unwrap().contains("mend the roof"), "{list}");
    // Nothing at all, and no client of this protocol.
    assert_eq!(self::answers(&place, b"").1.status.code(), Some(0));
    let (answers, out) = self::answers(&place, b"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n");
    assert!(answers.is_empty() && out.status.code() == Some(2), "{out:?}");
}

#[test]
fn a_store_that_cannot_be_read_is_an_error_of_the_call() {
    let place = Place::new();
    let data = place.home.join("data");
    std::fs::create_dir_all(&data).unwrap();
    let out = place.run(&["doctor", "--json"]);
    assert!(out.code.is_some(), "{out:?}");
    let database =
        std::fs::read_dir(&data).unwrap().flatten().find(|f| f.path().extension().is_some_and(|x| x == "db"));
    let database = database.map_or_else(|| data.join("tiller.db"), |f| f.path());
    for name in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{name}", database.display()));
    }
    let _ = std::fs::remove_file(&database);
    // A folder where the database should be.
    std::fs::create_dir(&database).unwrap();
    let (answers, out) = answers(&place, format!("{HELLO}{LIST}").as_bytes());
    let list = answers.iter().find(|a| a["id"] == json!(2)).unwrap_or_else(|| panic!("{answers:?}"));
    assert_eq!(list["result"]["isError"], json!(true), "{list}");
    let why = list["result"]["content"][0]["text"].as_str().unwrap();
    assert!(!why.is_empty() && out.status.success(), "{why} {out:?}");
}

/// A client of another vendor. `.ci/clis` installs it.
#[test]
fn the_official_inspector_lists_and_calls_the_tools() {
    let Ok(folders) = std::env::var("TILLER_TEST_CLIS") else {
        return println!("skipped: TILLER_TEST_CLIS is not set");
    };
    let mut place = place();
    let path = std::env::var("PATH").unwrap_or_default();
    place.set("PATH", &format!("{folders}:{path}"));
    let Some(inspector) = find_program("mcp-inspector", &place.env) else {
        return println!("skipped: there is no mcp-inspector");
    };
    let run = |args: &[&str]| -> Value {
        let home = format!("TILLER_HOME={}", place.home.display());
        let server = ["--cli", "-e", &home, env!("CARGO_BIN_EXE_tiller"), "mcp", "serve"];
        let out = place.program(&inspector, &[&server[..], args].concat()).output().unwrap();
        serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{out:?}"))
    };
    let list = run(&["--method", "tools/list"]);
    assert_eq!(list["tools"].as_array().map(Vec::len), Some(6), "{list}");
    let found =
        run(&["--method", "tools/call", "--tool-name", "search_sessions", "--tool-arg", "query=mended"]);
    assert!(found["content"][0]["text"].as_str().unwrap().contains("The roof is mended"), "{found}");
}
