//! Lists of messages, against servers of the revision that has them.

use serde_json::{Map, Value, json};
use tiller_config::McpServer;
use tiller_testkit::{Reply, ScriptServer};

use super::super::http;
use super::{ClientJsonRpcMessage, Headers, Lists, StreamableHttpResponseLimits};
use crate::hub::{CallResult, Hub, NoResult};
use crate::testing::hub_with;

async fn call(hub: &Hub) -> Result<CallResult, NoResult> {
    hub.call("remote", "echo", Map::new(), None).await
}

fn remote_settings(server: &ScriptServer) -> McpServer {
    McpServer { url: Some(format!("{}/mcp", server.url())), ..McpServer::default() }
}

/// The ways in which a server of the revision of March 2025 sends a list of messages.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Listed {
    /// In an event of a stream.
    Event,
    /// As a body of JSON.
    Body,
}

/// A server of that revision. `answer` makes the list of a call from its result.
fn of_lists(listed: Listed, answer: fn(Value) -> Value) -> ScriptServer {
    ScriptServer::with(move |request, _| {
        if request.method != "POST" {
            return Reply::status(405);
        }
        let message = request.json();
        let about = json!({"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}});
        let said = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        match message["method"].as_str() {
            Some("initialize") => Reply::status(200).json(&said(about)),
            Some("tools/call") => {
                let content = json!({"content": [{"type": "text", "text": "in a list"}]});
                let list = answer(said(content));
                match listed {
                    Listed::Event => Reply::sse(format!("event: message\ndata: {list}\n\n")),
                    Listed::Body => Reply::status(200).json(&list),
                }
            }
            Some("tools/list") => {
                let tool = json!({"name": "echo", "description": "d", "inputSchema": {"type": "object"}});
                Reply::status(200).json(&said(json!({"tools": [tool]})))
            }
            _ if message.get("id").is_none() => Reply::status(202),
            _ => {
                let error = json!({"code": -32601, "message": "unknown"});
                Reply::status(200).json(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
            }
        }
    })
}

/// A message that is no answer.
fn note() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_messages_is_taken_apart_in_an_event_and_as_a_body() {
    let alone: fn(Value) -> Value = |result| result;
    let one: fn(Value) -> Value = |result| json!([result]);
    let first: fn(Value) -> Value = |result| json!([result, note()]);
    let last: fn(Value) -> Value = |result| json!([note(), result]);
    for listed in [Listed::Event, Listed::Body] {
        for answer in [alone, one, first, last] {
            let server = of_lists(listed, answer);
            let folder = tempfile::tempdir().unwrap();
            let hub = hub_with(folder.path(), remote_settings(&server));
            let result = call(&hub).await.unwrap();
            let text = "in a list".to_owned();
            assert_eq!(result.parts, [tiller_protocol::Part::Text { text }], "{listed:?}");
            hub.end().await;
        }
    }
}

/// A body that is no list of messages, is a very long list, or has too many bytes ends the call with words about it; the next
/// call is made.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_good_list_ends_its_call_at_once() {
    let empty: fn(Value) -> Value = |_| json!([]);
    let others: fn(Value) -> Value = |_| json!([1, "x", {}]);
    let many: fn(Value) -> Value = |result| {
        let notes = (0..1000).map(|_| note());
        Value::Array(notes.chain([result]).collect())
    };
    let long: fn(Value) -> Value = |result| json!([result, "x".repeat(5 << 20)]);
    for answer in [empty, others, many, long] {
        let server = of_lists(Listed::Body, answer);
        let folder = tempfile::tempdir().unwrap();
        let hub = hub_with(folder.path(), remote_settings(&server));
        for _ in 0..2 {
            let begun = std::time::Instant::now();
            assert!(call(&hub).await.is_err());
            assert!(
                begun.elapsed() < std::time::Duration::from_secs(30),
                "it does not wait for the limit of a call"
            );
        }
        hub.end().await;
    }
}

/// A refused token is replaced, and a server that is asked too often names the time of the next request: both are answers of HTTP
/// also where the body is an error of the protocol.
#[tokio::test]
async fn an_error_of_the_protocol_hides_no_refusal() {
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let ping: ClientJsonRpcMessage = serde_json::from_value(ping).unwrap();
    for (status, is_answer) in [(400, true), (401, false), (403, false), (429, false), (500, true)] {
        let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no"}});
        let server = ScriptServer::with(move |_, _| Reply::status(status).json(&error));
        let lists = Lists(http::client(&server.url()).unwrap());
        let limits = StreamableHttpResponseLimits::default();
        let answer = lists.post(&server.url(), &ping, None, (None, Headers::new()), limits).await;
        assert_eq!(answer.is_ok(), is_answer, "{status}");
    }
}
