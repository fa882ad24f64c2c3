//! MCP servers that the client brings for a session, of each kind.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use tiller_testkit::{MCP_SERVER, Reply, ScriptServer};
use tiller_tool::shell::find_program;

use super::client::Client;
use crate::common::{Place, TIMEOUT, calls, poll, says};

/// A value of a header, and one of a variable.
const HEADER: &str = "Bearer tok-4f6a81c2d9e0b7a3";
const VARIABLE: &str = "var-93ab5c7d1e2f4068";

/// Streamable HTTP at /mcp, and the older SSE at /sse: one tool that repeats its text and the header of its request.
const WEB: &str = r#"
import json, queue, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

streams = {}

def answer(message, header):
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        return {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}
    if method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        return {"tools": [{"name": "echo", "description": "Says it again", "inputSchema": schema}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["arguments"].get("text", "") + " with " + str(header)}]}
    return None

class Web(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        pass
    def do_GET(self):
        if self.path != "/sse":
            self.send_response(405); self.send_header("Content-Length", "0"); self.end_headers(); return
        mine = queue.Queue(); key = str(len(streams)); streams[key] = mine
        self.send_response(200); self.send_header("Content-Type", "text/event-stream"); self.send_header("Connection", "close"); self.end_headers()
        self.wfile.write(f"event: endpoint\ndata: /messages?of={key}\n\n".encode()); self.wfile.flush()
        while True:
            data = mine.get()
            self.wfile.write(f"event: message\ndata: {data}\n\n".encode()); self.wfile.flush()
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        result = answer(message, self.headers.get("Authorization"))
        reply = {"jsonrpc": "2.0", "id": message.get("id")}
        reply.update({"result": result} if result is not None else {"error": {"code": -32601, "message": "unknown"}})
        body = json.dumps(reply)
        if self.path.startswith("/messages") and "id" in message:
            streams[self.path.split("=")[1]].put(body)
        if self.path.startswith("/messages") or "id" not in message:
            self.send_response(202); self.send_header("Content-Length", "0"); self.end_headers(); return
        self.send_response(200); self.send_header("Content-Type", "application/json"); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body.encode())

server = ThreadingHTTPServer(("127.0.0.1", 0), Web)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

/// Ends with the test.
struct Web {
    child: Child,
    port: u16,
}

impl Web {
    fn start(place: &Place, python: &std::path::Path) -> Self {
        place.file("web.py", WEB);
        let mut command = place.program(python, &["web.py"]);
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap_or_else(|_| panic!("{line}")) }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn call(id: &str, server: &str) -> Reply {
    calls(
        id,
        "mcp_call",
        json!({"server": server, "tool": "echo", "arguments": {"text": format!("to {server}")}}),
    )
}

/// Whether a program of this script runs.
fn runs(script: &str) -> bool {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|p| std::fs::read_to_string(p.path().join("cmdline")).ok())
        .any(|line| line.contains(script))
}

#[test]
fn the_servers_of_a_client_work_in_its_session_and_end_with_it() {
    let replies = [
        call("c1", "stdio-one"),
        call("c2", "web"),
        call("c3", "old"),
        says("All three."),
        call("c4", "stdio-one"),
        says("No."),
    ];
    let server = ScriptServer::start(replies);
    let mut place = Place::anthropic(&server);
    place.set("TILLER_LOG", "trace");
    let Some(python) = find_program("python3", &place.env) else {
        return println!("skipped: there is no python3");
    };
    place.file("server.py", MCP_SERVER);
    let script = place.work.join("server.py").display().to_string();
    let web = Web::start(&place, &python);
    let mut client = Client::start(&place, &["--profile", "full"]);
    let hello = client.ask("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
    assert_eq!(hello["agentCapabilities"]["mcpCapabilities"], json!({"http": true, "sse": true}));
    let header = json!([{"name": "Authorization", "value": HEADER}]);
    let servers = json!([
        {"name": "stdio one", "command": python, "args": [script, "env"], "env": [{"name": "MY_TOKEN", "value": VARIABLE}]},
        {"type": "http", "name": "web", "url": format!("http://127.0.0.1:{}/mcp", web.port), "headers": header},
        {"type": "sse", "name": "old", "url": format!("http://127.0.0.1:{}/sse", web.port), "headers": header},
    ]);
    let made = client.ask("session/new", json!({"cwd": place.work, "mcpServers": servers}));
    let session = made["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(client.turn(&session, "call them"), "end_turn");
    assert!(client.text(&session, "agent_message_chunk").ends_with("All three."));
    let last = server.bodies().pop().unwrap()["messages"].to_string();
    // The program has its variable, and the requests their header: their values are masked.
    assert!(
        last.contains("MY_TOKEN") && last.contains("to web with ") && last.contains("to old with "),
        "{last}"
    );
    assert!(!last.contains("to web with None") && !last.contains("to old with None"), "{last}");
    assert!(runs(&script), "it runs as long as the session");
    assert_eq!(client.ask("session/close", json!({"sessionId": session})), json!({}));
    assert!(poll(TIMEOUT, || (!runs(&script)).then_some(())).is_some(), "it ends with the session");
    // The next session of the same process has none of them.
    let other = client.session(&place);
    assert_eq!(client.turn(&other, "and now?"), "end_turn");
    let last = server.bodies().pop().unwrap();
    assert!(!last["tools"].to_string().contains("mcp_call"), "{}", last["tools"]);
    assert!(!last["messages"].to_string().contains("MY_TOKEN"), "{}", last["messages"]);
    let (seen, bodies) = (format!("{:?}", client.seen), server.bodies());
    assert!(client.close().success());
    let token = HEADER.rsplit(' ').next().unwrap();
    for secret in [token, VARIABLE] {
        assert!(!seen.contains(secret), "an update of the session");
        assert!(!bodies.iter().any(|body| body.to_string().contains(secret)), "a request to the model");
        let found = files_with(&place.home, secret.as_bytes());
        assert!(found.is_empty(), "{secret}: {found:?}");
    }
}

/// The files below a folder that hold these bytes.
fn files_with(folder: &std::path::Path, bytes: &[u8]) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files_with(&path, bytes));
        } else if kind.is_file() && std::fs::read(&path).is_ok_and(|all| tiller_testkit::holds(&all, bytes)) {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_server_that_cannot_be_read_is_refused_and_one_of_the_settings_comes_first() {
    let server = ScriptServer::start([call("c1", "mine"), says("Done.")]);
    let place = Place::anthropic(&server);
    place.config("[mcp.mine]\ncommand = \"/nowhere/mine\"\n");
    let mut client = Client::ready(&place, &["--profile", "full"]);
    let wrong = json!([{"name": "x", "type": "http", "url": "file:///etc/passwd"}]);
    let answer = client.call("session/new", json!({"cwd": place.work, "mcpServers": wrong}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("mcpServers[0]"), "{answer}");
    let servers = json!([{"name": "mine", "command": "/nowhere/theirs", "args": [], "env": []}]);
    let made: Value = client.ask("session/new", json!({"cwd": place.work, "mcpServers": servers}));
    assert!(
        made["_meta"]["tiller"]["notes"].to_string().contains("mine of the client is left out"),
        "{made}"
    );
    let session = made["sessionId"].as_str().unwrap().to_owned();
    client.turn(&session, "hello");
    let said = server.bodies()[1]["messages"].to_string();
    assert!(said.contains("/nowhere/mine") || said.contains("could not be started"), "{said}");
    assert!(!said.contains("/nowhere/theirs"), "{said}");
}
