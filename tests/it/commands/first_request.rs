//! What a model gets before the first word: its size, and tools that have only a line in it.

use serde_json::{Value, json};
use tiller_testkit::ScriptServer;

use crate::common::{Place, calls, json_lines, says};

/// With all tools of a machine that has a browser: none is at this address, and none is needed.
const BROWSER: &str = "[browser]\nbackend = \"remote\"\nurl = \"ws://127.0.0.1:9/\"\n";

/// Most bytes of the whole body.
const MOST: usize = 16 << 10;

#[test]
fn the_first_request_stays_small_with_a_browser() {
    let server = ScriptServer::start([says("One."), says("Two.")]);
    let place = Place::anthropic(&server);
    place.config(BROWSER);
    place.ok(&["exec", "hi"]);
    place.ok(&["exec", "hi"]);
    let bodies = server.bodies();
    let size = bodies[0].to_string().len();
    let tools = bodies[0]["tools"].as_array().unwrap();
    let mut sizes: Vec<(usize, &str)> =
        tools.iter().map(|t| (t.to_string().len(), t["name"].as_str().unwrap())).collect();
    sizes.sort_unstable();
    println!("{size} bytes, system {}, tools {sizes:?}", bodies[0]["system"].to_string().len());
    assert!(size <= MOST, "{size} bytes, system {}, tools {sizes:?}", bodies[0]["system"].to_string().len());
    let browser: usize = sizes.iter().filter(|(_, name)| name.starts_with("browser_")).map(|(n, _)| n).sum();
    assert!(browser < 2048, "{browser}");
    // The list is the same in the next session, byte for byte.
    assert_eq!(bodies[0]["tools"].to_string(), bodies[1]["tools"].to_string());
}

/// Rules, hooks, the conversation and the screen know the call by the tool's own name.
#[test]
fn a_tool_without_a_schema_is_called_through_use_tool() {
    let through = |id: &str, arguments: Value| calls(id, "use_tool", arguments);
    let server = ScriptServer::start([
        through("c1", json!({"name": "todo_read"})),
        through("c2", json!({"name": "browser_press", "arguments": {"key": "Enter"}})),
        through("c3", json!({"name": "no_such_tool", "arguments": {}})),
        through("c4", json!({"arguments": {}})),
        says("Done."),
    ]);
    let place = Place::anthropic(&server);
    place.config(&format!(
        "{BROWSER}[[hooks.before-tool-call]]\nname = \"no keys\"\nmatch = \"browser_press\"\n\
         command = \"echo no >&2; exit 2\"\n"
    ));
    let out = place.run(&["exec", "--json", "--profile", "full", "go"]);
    let lines = json_lines(&out.stdout);
    let done = |id: &str| lines.iter().find(|l| l["type"] == "tool_finished" && l["call_id"] == id).unwrap();
    assert_eq!((&done("c1")["name"], &done("c1")["ok"]), (&json!("todo_read"), &json!(true)));
    let last = &server.bodies()[4]["messages"];
    assert_eq!(last[1]["content"][1]["name"], "todo_read", "{last}");
    assert_eq!(last[3]["content"][1]["input"], json!({"key": "Enter"}), "{last}");
    for (at, want) in [
        (4, "Denied by the hook `no keys`"),
        (6, "There is no tool named 'no_such_tool'"),
        (8, "use_tool takes the name of a tool"),
    ] {
        assert!(last[at].to_string().contains(want), "{want}: {last}");
    }
    let description = |name: &str| {
        let body = &server.bodies()[0];
        let tools = body["tools"].as_array().unwrap();
        tools.iter().find(|t| t["name"] == name).map(|t| t["description"].as_str().unwrap().to_owned())
    };
    assert_eq!(description("browser_press"), None);
    let list = description("use_tool").unwrap();
    assert!(list.contains("\nbrowser_press(key (") && list.contains("\ntodo_read(): "), "{list}");
}
