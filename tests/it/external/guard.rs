//! Tools that change the state of an MCP server for all agents: the main agent's alone.

use serde_json::{Value, json};
use tiller_testkit::{MCP_SERVER, ScriptServer};
use tiller_tool::shell::find_program;

use crate::common::{Place, calls, says};

const REFUSED: &str = "so that only the main agent may call it";
const SCRIPT: &str = "from tiller_tools import mcp\nprint(mcp['good'].echo(text='from a script'))\n";

/// The last results in a request.
fn last(body: &Value) -> String {
    body["messages"].as_array().and_then(|all| all.last()).map(Value::to_string).unwrap_or_default()
}

fn results(body: &Value) -> usize {
    body["messages"].to_string().matches("\"tool_result\"").count()
}

#[test]
fn a_subagent_cannot_change_what_other_agents_see_on_a_server_and_the_main_agent_can() {
    let call = |id: &str, text: &str| {
        calls(id, "mcp_call", json!({"server": "good", "tool": "echo", "arguments": {"text": text}}))
    };
    let server = ScriptServer::with(move |request, _| {
        let body = request.json();
        if body["tools"].as_array().is_none_or(Vec::is_empty) {
            return says("Title");
        }
        let below = body["messages"][0].to_string().contains("switch it");
        match (below, results(&body)) {
            // From the second session on the tool is in the list by its own name.
            (true, 0) if body["tools"].to_string().contains("mcp__good__echo") => {
                calls("s1", "mcp__good__echo", json!({"text": "of a subagent"}))
            }
            (true, 0) => call("s1", "of a subagent"),
            (true, 1) => calls("s2", "execute_code", json!({"code": SCRIPT})),
            (false, 0) => calls("d1", "delegate_task", json!({"tasks": [{"goal": "switch it"}]})),
            (false, 1) => call("m1", "of the main agent"),
            _ => says("Done."),
        }
    });
    let place = Place::anthropic(&server);
    let Some(python) = find_program("python3", &place.env) else {
        return println!("skipped: there is no python3");
    };
    place.file("server.py", MCP_SERVER);
    let script = place.work.join("server.py");
    place.config(&format!(
        "sandbox = \"off\"\n[mcp.good]\ncommand = \"{}\"\nargs = [\"{}\", \"good\"]\nshared_state = [\"ec*\"]\n",
        python.display(),
        script.display()
    ));
    for (session, way) in [(1, "mcp_call"), (2, "mcp__good__echo")] {
        server.forget();
        let out = place.run(&["exec", "--profile", "full", "go"]);
        assert_eq!(out.code, Some(0), "{out:?}");
        let bodies = server.bodies();
        let of = |below: bool, n: usize| {
            let fits = |body: &&Value| {
                let goal = body["messages"][0].to_string().contains("switch it");
                let tools = body["tools"].as_array().is_some_and(|all| !all.is_empty());
                goal == below && results(body) == n && tools
            };
            bodies.iter().find(fits).unwrap_or_else(|| panic!("{below} {n}: {bodies:#?}")).clone()
        };
        let direct = of(true, 1);
        assert!(last(&direct).contains(REFUSED), "session {session}: {}", last(&direct));
        let called = format!("\"name\":\"{way}\"");
        assert!(direct["messages"].to_string().contains(&called), "{way}: {}", direct["messages"]);
        let scripted = last(&of(true, 2));
        assert!(scripted.contains(REFUSED) && !scripted.contains("output:\\nfrom a script"), "{scripted}");
        let main = last(&of(false, 2));
        assert!(main.contains("of the main agent") && !main.contains(REFUSED), "{main}");
    }
}
