//! Tools that are used seldom. The list of tools is sent with every session, so that each of them has one line in the
//! description of `use_tool` instead of a schema, and is called through it. Only the list differs: the call that runs, and
//! that the conversation keeps, is the tool's own, for permission rules, hooks and the screen alike.

use serde_json::{Value, json};
use tiller_protocol::{ToolCall, ToolSpec, USE_TOOL};

use crate::Tool;

/// With fewer of them their own schemas cost less than `use_tool`.
const FEWEST: usize = 4;

/// The specs that a model with these tools gets, sorted by name. `spec`: the spec of one tool.
pub fn specs(
    tools: &[&'static dyn Tool],
    mut spec: impl FnMut(&'static dyn Tool) -> ToolSpec,
) -> Vec<ToolSpec> {
    let deferred = tools.iter().filter(|tool| tool.seldom()).count() >= FEWEST;
    let (seldom, often): (Vec<&&dyn Tool>, Vec<&&dyn Tool>) =
        tools.iter().partition(|tool| deferred && tool.seldom());
    let mut specs: Vec<ToolSpec> = often.into_iter().map(|tool| spec(*tool)).collect();
    if deferred {
        let mut lines: Vec<String> = seldom.into_iter().map(|tool| line(&spec(*tool))).collect();
        lines.sort();
        specs.push(use_tool(&lines));
    }
    specs.sort_by(|a, b| a.name.cmp(&b.name));
    specs
}

fn use_tool(lines: &[String]) -> ToolSpec {
    ToolSpec {
        name: USE_TOOL.into(),
        description: format!("Calls one of these tools (?: optional):\n{}", lines.join("\n")),
        schema: json!({
            "type": "object",
            "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
            "required": ["name"],
        }),
    }
}

/// `NAME(argument, other?: integer): description`, from the tool's schema.
fn line(spec: &ToolSpec) -> String {
    let required: Vec<&str> =
        spec.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut arguments: Vec<(bool, String)> = spec.schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let optional = !required.contains(&name.as_str());
            (optional, format!("{name}{}{}", if optional { "?" } else { "" }, kind(schema)))
        })
        .collect();
    arguments.sort_by_key(|(optional, _)| *optional);
    let arguments: Vec<String> = arguments.into_iter().map(|(_, text)| text).collect();
    format!("{}({}): {}", spec.name, arguments.join(", "), spec.description.replace('\n', " "))
}

/// The type of an argument that is no plain string, and what its field says of it.
fn kind(schema: &Value) -> String {
    let kind = match (schema["enum"].as_array(), schema["type"].as_str()) {
        (Some(values), _) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
        (None, Some("array")) => match schema["items"]["type"].as_str() {
            Some(item) => format!("[{item}]"),
            None => "array".into(),
        },
        (None, Some("string") | None) => String::new(),
        (None, Some(kind)) => kind.into(),
    };
    let kind = if kind.is_empty() { kind } else { format!(": {kind}") };
    match schema["description"].as_str() {
        Some(words) => format!("{kind} ({words})"),
        None => kind,
    }
}

/// Replaces a call of `use_tool` by the call that it asks for. A call that names no tool stays what it is.
pub fn resolve(call: &mut ToolCall) {
    if !call.is_use_tool() || call.malformed.is_some() {
        return;
    }
    let Some(name) = call.arguments["name"].as_str().map(str::trim).filter(|name| !name.is_empty()) else {
        return;
    };
    let name = name.to_owned();
    let arguments = match call.arguments.get_mut("arguments").map(Value::take) {
        None | Some(Value::Null) => json!({}),
        Some(arguments @ Value::Object(_)) => arguments,
        // As small models write it.
        Some(Value::String(text)) => match serde_json::from_str(&text) {
            Ok(arguments @ Value::Object(_)) => arguments,
            _ => {
                call.malformed = Some(text);
                json!({})
            }
        },
        Some(other) => {
            call.malformed = Some(other.to_string());
            json!({})
        }
    };
    (call.name, call.arguments) = (name, arguments);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;

    fn call(arguments: Value) -> ToolCall {
        let mut call = ToolCall {
            id: "c1".into(),
            name: USE_TOOL.into(),
            arguments,
            malformed: None,
            vendor: Some(json!("signature")),
        };
        resolve(&mut call);
        call
    }

    #[test]
    fn a_call_becomes_that_of_the_tool() {
        let done = call(json!({"name": " agent_result ", "arguments": {"agent": "a1"}}));
        assert_eq!((done.name.as_str(), &done.arguments), ("agent_result", &json!({"agent": "a1"})));
        assert_eq!((done.id.as_str(), done.vendor), ("c1", Some(json!("signature"))));
        assert_eq!(call(json!({"name": "list_agents"})).arguments, json!({}));
        assert_eq!(call(json!({"name": "a", "arguments": "{\"b\": 1}"})).arguments, json!({"b": 1}));
        for (wrong, raw) in [(json!("{b"), "{b"), (json!([1]), "[1]"), (json!("[1]"), "[1]")] {
            let done = call(json!({"name": "a", "arguments": wrong}));
            assert_eq!((done.name.as_str(), done.malformed.as_deref()), ("a", Some(raw)));
        }
        for wrong in [json!({}), json!({"name": 7}), json!({"name": " ", "arguments": {}})] {
            assert_eq!(call(wrong).name, USE_TOOL);
        }
    }

    #[test]
    fn a_line_names_every_argument() {
        let tools: Vec<&'static dyn Tool> = Registry::built_in().iter().collect();
        let specs = specs(&tools, Tool::spec);
        assert!(specs.is_sorted_by(|a, b| a.name < b.name));
        let list = &specs.iter().find(|spec| spec.name == USE_TOOL).unwrap().description;
        let find = |name: &str| list.lines().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(
            find("wait_agents"),
            "wait_agents(agents: [string], any?: boolean (Return when the first ends), seconds?: integer): Wait for agents to end."
        );
        for tool in tools {
            let own = specs.iter().any(|spec| spec.name == tool.name());
            assert_ne!(own, tool.seldom(), "{}", tool.name());
            assert!(specs.iter().any(|spec| spec.lists(tool.name())), "{}", tool.name());
            if tool.seldom() {
                let spec = tool.spec();
                let arguments = spec.schema["properties"].as_object().unwrap();
                assert!(arguments.keys().all(|name| find(tool.name()).contains(name.as_str())));
            }
        }
        assert!(!specs.iter().any(|spec| spec.lists("wait")));
    }

    #[test]
    fn an_agent_with_few_of_them_has_them_as_they_are() {
        let all = Registry::built_in();
        let tools: Vec<&'static dyn Tool> =
            ["read_file", "todo_read"].iter().map(|name| all.find(name).unwrap()).collect();
        let specs = specs(&tools, Tool::spec);
        assert_eq!(
            specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(),
            ["read_file", "todo_read"]
        );
    }
}
