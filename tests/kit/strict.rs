//! Checks requests against a vendor's published schema: patterns of names and ids, sizes, the order of calls and
//! results, empty content. Written from the vendors' references, not from Tiller's encoders.

use std::collections::HashSet;

use serde_json::Value;

use crate::script::Wire;

/// Maximum bytes of one text (OpenAI).
const TEXT: usize = 10_485_760;

/// Why the vendor of `wire` would answer 400 to this body; `None`: it accepts it.
pub fn refusal(wire: Wire, body: &Value) -> Option<String> {
    let checked = match wire {
        Wire::Anthropic => anthropic(body),
        Wire::OpenaiChat => chat(body),
        Wire::OpenaiResponses => responses(body),
        Wire::Gemini => gemini(body),
    };
    checked.err()
}

type Checked = Result<(), String>;

fn need(ok: bool, why: impl FnOnce() -> String) -> Checked {
    if ok { Ok(()) } else { Err(why()) }
}

fn list<'a>(v: &'a Value, key: &str) -> &'a [Value] {
    v[key].as_array().map_or(&[], Vec::as_slice)
}

fn str_of<'a>(v: &'a Value, key: &str) -> &'a str {
    v[key].as_str().unwrap_or("")
}

fn word(text: &str, longest: usize) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=longest).contains(&text.len()) && text.chars().all(fine)
}

fn object_text(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|v| v.is_object())
}

fn text(at: &str, text: &str) -> Checked {
    need(!text.trim().is_empty(), || format!("{at}: text must contain non-whitespace text"))?;
    need(text.len() <= TEXT, || format!("{at}: string too long"))
}

fn image(at: &str, kind: &str, data: &str) -> Checked {
    let kinds = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    need(kinds.contains(&kind), || format!("{at}: image type {kind:?}"))?;
    need(!data.is_empty() && data.len() <= 5 * 1024 * 1024, || format!("{at}: image of {} bytes", data.len()))
}

fn data_url(at: &str, url: &str) -> Checked {
    let (kind, data) = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"))
        .ok_or_else(|| format!("{at}: not a data URL"))?;
    image(at, kind, data)
}

/// The longer side of a PNG, from its base64 text; 0 for anything else.
fn png_side(data: &str) -> u32 {
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u32> = data
        .chars()
        .take(32)
        .filter_map(|c| letters.find(c))
        .map(|n| u32::try_from(n).unwrap_or(0))
        .collect();
    let bytes: Vec<u32> = bits
        .chunks_exact(4)
        .flat_map(|c| {
            let three = c[0] << 18 | c[1] << 12 | c[2] << 6 | c[3];
            [three >> 16, three >> 8 & 255, three & 255]
        })
        .collect();
    let number = |at: usize| bytes[at..at + 4].iter().fold(0, |n, b| n << 8 | b);
    if bytes.len() == 24 && bytes[1..4] == [80, 78, 71] { number(16).max(number(20)) } else { 0 }
}

/// Checks all images of a request to Anthropic together.
fn album(body: &Value) -> Checked {
    fn images<'a>(v: &'a Value, found: &mut Vec<&'a str>) {
        match v {
            Value::Object(map) if map.get("type").is_some_and(|t| t == "image") => {
                found.push(str_of(&v["source"], "data"));
            }
            Value::Object(map) => map.values().for_each(|v| images(v, found)),
            Value::Array(list) => list.iter().for_each(|v| images(v, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    images(&body["messages"], &mut found);
    need(found.len() <= 100, || format!("too many images: {}", found.len()))?;
    let most = if found.len() > 20 { 2000 } else { 8000 };
    let widest = found.iter().map(|d| png_side(d)).max().unwrap_or(0);
    need(widest <= most, || {
        format!("image.source.base64.data: image dimensions exceed max allowed size: {most} pixels")
    })
}

fn anthropic(body: &Value) -> Checked {
    album(body)?;
    need(!str_of(body, "model").is_empty(), || "model: empty".into())?;
    let max = body["max_tokens"].as_u64().unwrap_or(0);
    need(max >= 1, || "max_tokens: at least 1".into())?;
    if let Some(budget) = body["thinking"]["budget_tokens"].as_u64() {
        need((1024..max).contains(&budget), || format!("thinking.budget_tokens: {budget} of {max}"))?;
    }
    for tool in list(body, "tools") {
        need(word(str_of(tool, "name"), 64), || format!("tools: name {}", tool["name"]))?;
        one_object("tools.input_schema", &tool["input_schema"])?;
    }
    let messages = list(body, "messages");
    need(!messages.is_empty(), || "messages: at least one message is required".into())?;
    need(messages[0]["role"] == "user", || "messages: first message must use the user role".into())?;
    need(messages[messages.len() - 1]["role"] == "user", || {
        "this model does not support assistant message prefill".into()
    })?;
    let mut ids = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut before = "";
    for (n, message) in messages.iter().enumerate() {
        let role = str_of(message, "role");
        let content = list(message, "content");
        let at = |k: usize| format!("messages.{n}.content.{k}");
        need(!content.is_empty(), || format!("messages.{n}: content must be non-empty"))?;
        need(role == "user" || role == "assistant", || format!("messages.{n}: role {role:?}"))?;
        need(before != role, || format!("messages.{n}: roles must alternate"))?;
        before = role;
        let results: Vec<&str> =
            content.iter().filter(|b| b["type"] == "tool_result").map(|b| str_of(b, "tool_use_id")).collect();
        need(results.len() == open.len() && open.iter().all(|id| results.contains(&id.as_str())), || {
            format!(
                "messages.{n}: `tool_use` ids were found without `tool_result` blocks, or the other way: {open:?} {results:?}"
            )
        })?;
        open.clear();
        let mut other = false;
        for (k, block) in content.iter().enumerate() {
            match (role, str_of(block, "type")) {
                (_, "text") => {
                    text(&at(k), str_of(block, "text"))?;
                    other = true;
                }
                ("user", "image") => {
                    image(&at(k), str_of(&block["source"], "media_type"), str_of(&block["source"], "data"))?;
                    other = true;
                }
                ("user", "tool_result") => {
                    need(!other, || format!("{}: tool_result blocks must come first", at(k)))?;
                    for inner in list(block, "content") {
                        match str_of(inner, "type") {
                            "text" => text(&at(k), str_of(inner, "text"))?,
                            "image" => {
                                need(block["is_error"] != true, || format!("{}: image in an error", at(k)))?;
                                let source = &inner["source"];
                                image(&at(k), str_of(source, "media_type"), str_of(source, "data"))?;
                            }
                            kind => return Err(format!("{}: {kind:?} in a result", at(k))),
                        }
                    }
                }
                ("assistant", "tool_use") => {
                    let id = str_of(block, "id");
                    need(word(str_of(block, "name"), 64), || {
                        format!("{}.tool_use.name: String should match pattern: {}", at(k), block["name"])
                    })?;
                    need(word(id, 64), || format!("{}.tool_use.id: {id:?}", at(k)))?;
                    need(ids.insert(id.to_owned()), || format!("{}: `tool_use` ids must be unique", at(k)))?;
                    need(block["input"].is_object(), || format!("{}.tool_use.input: not an object", at(k)))?;
                    open.push(id.to_owned());
                }
                ("assistant", "thinking") => {
                    need(!str_of(block, "signature").is_empty(), || format!("{}: no signature", at(k)))?;
                    need(k + 1 < content.len(), || format!("{}: the final block is a thought", at(k)))?;
                }
                ("assistant", "redacted_thinking") => {
                    need(k + 1 < content.len(), || format!("{}: the final block is a thought", at(k)))?;
                }
                (role, kind) => return Err(format!("{}: {kind:?} from {role}", at(k))),
            }
        }
    }
    Ok(())
}

fn chat(body: &Value) -> Checked {
    for tool in list(body, "tools") {
        let name = str_of(&tool["function"], "name");
        need(word(name, 64), || format!("tools: name {name:?}"))?;
        one_object("tools.parameters", &tool["function"]["parameters"])?;
    }
    let messages = list(body, "messages");
    need(!messages.is_empty(), || "messages: empty array".into())?;
    let mut ids = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut images = (0, 0);
    let mut before = "";
    for (n, message) in messages.iter().enumerate() {
        let role = str_of(message, "role");
        let at = format!("messages[{n}]");
        if role == "tool" {
            let id = str_of(message, "tool_call_id");
            let known = open.iter().position(|o| o == id);
            let Some(known) = known else {
                return Err(format!("{at}: 'tool' must follow a message with 'tool_calls' ({id:?})"));
            };
            open.remove(known);
            need(message["content"].is_string(), || format!("{at}: content"))?;
            before = role;
            continue;
        }
        need(open.is_empty(), || format!("{at}: tool_call_ids without a response: {open:?}"))?;
        match role {
            "system" => need(n == 0, || format!("{at}: system"))?,
            "user" if before == "user" => {
                return Err(format!("{at}: conversation roles must alternate user/assistant/user/..."));
            }
            "user" => match &message["content"] {
                Value::String(s) => text(&at, s)?,
                Value::Array(parts) => {
                    need(!parts.is_empty(), || format!("{at}: empty content"))?;
                    for part in parts {
                        match str_of(part, "type") {
                            "text" => text(&at, str_of(part, "text"))?,
                            "image_url" => {
                                let url = str_of(&part["image_url"], "url");
                                data_url(&at, url)?;
                                images = (images.0 + 1, images.1 + url.len());
                                need(images.0 <= 30 && images.1 <= 11 << 20, || {
                                    format!("{at}: too many images")
                                })?;
                            }
                            kind => return Err(format!("{at}: part {kind:?}")),
                        }
                    }
                }
                _ => return Err(format!("{at}: content")),
            },
            "assistant" => {
                need(before != "assistant", || format!("{at}: two replies in a row"))?;
                let calls = list(message, "tool_calls");
                need(calls.len() <= 128, || format!("{at}.tool_calls: array too long"))?;
                match &message["content"] {
                    Value::String(s) => text(&at, s)?,
                    Value::Null => {
                        need(!calls.is_empty(), || format!("{at}: neither content nor tool_calls"))?
                    }
                    _ => return Err(format!("{at}: content")),
                }
                for call in calls {
                    let id = str_of(call, "id");
                    let function = &call["function"];
                    need((1..=40).contains(&id.len()), || {
                        format!(
                            "{at}.tool_calls.id: string too long. Expected a string with maximum length 40: {id:?}"
                        )
                    })?;
                    need(ids.insert(id.to_owned()), || format!("{at}: id twice: {id:?}"))?;
                    need(word(str_of(function, "name"), 64), || {
                        format!(
                            "{at}.tool_calls.function.name: {} does not match the pattern",
                            function["name"]
                        )
                    })?;
                    need(object_text(str_of(function, "arguments")), || {
                        format!("{at}: arguments {}", function["arguments"])
                    })?;
                    open.push(id.to_owned());
                }
            }
            _ => return Err(format!("{at}: role {role:?}")),
        }
        before = role;
    }
    need(open.is_empty(), || format!("tool_call_ids without a response: {open:?}"))?;
    need(before != "assistant", || "the last message must be of the user or a tool".into())
}

fn responses(body: &Value) -> Checked {
    for tool in list(body, "tools") {
        need(word(str_of(tool, "name"), 64), || format!("tools: name {}", tool["name"]))?;
        one_object("tools.parameters", &tool["parameters"])?;
    }
    let input = list(body, "input");
    need(!input.is_empty(), || "input: empty".into())?;
    let mut ids = HashSet::new();
    let mut open: HashSet<String> = HashSet::new();
    for (n, item) in input.iter().enumerate() {
        let at = format!("input[{n}]");
        match str_of(item, "type") {
            "message" => {
                need(open.is_empty() || item["role"] == "assistant", || {
                    format!("{at}: no tool output found for {open:?}")
                })?;
                need(!list(item, "content").is_empty(), || format!("{at}: empty content"))?;
                let before = n.checked_sub(1).map(|before| &input[before]["role"]);
                need(item["role"] != "user" || before != Some(&item["role"]), || {
                    format!("{at}: roles must alternate")
                })?;
                for part in list(item, "content") {
                    match str_of(part, "type") {
                        "input_text" | "output_text" => text(&at, str_of(part, "text"))?,
                        "input_image" => data_url(&at, str_of(part, "image_url"))?,
                        kind => return Err(format!("{at}: part {kind:?}")),
                    }
                }
            }
            "function_call" => {
                let id = str_of(item, "call_id");
                need((1..=64).contains(&id.len()), || format!("{at}.call_id: {id:?}"))?;
                need(ids.insert(id.to_owned()), || format!("{at}: call_id twice: {id:?}"))?;
                need(word(str_of(item, "name"), 64), || format!("{at}.name: {}", item["name"]))?;
                need(object_text(str_of(item, "arguments")), || format!("{at}: arguments"))?;
                if let Some(own) = item.get("id") {
                    let own = own.as_str().unwrap_or("");
                    need(own.starts_with("fc") && word(own, 64), || format!("{at}.id: {own:?}"))?;
                }
                open.insert(id.to_owned());
            }
            "function_call_output" => {
                let id = str_of(item, "call_id");
                need(open.remove(id), || format!("{at}: no tool call found for {id:?}"))?;
            }
            "reasoning" => {
                let next = input.get(n + 1).map_or("", |i| str_of(i, "type"));
                let role = input.get(n + 1).map_or("", |i| str_of(i, "role"));
                need(next == "function_call" || next == "message" && role == "assistant", || {
                    format!("{at}: reasoning was provided without its required following item")
                })?;
            }
            kind => return Err(format!("{at}: type {kind:?}")),
        }
    }
    need(open.is_empty(), || format!("no tool output found for function calls {open:?}"))?;
    let last = &input[input.len() - 1];
    need(last["role"] != "assistant", || "the last item is the model's own".into())
}

/// Checks a schema of a declaration.
fn declared(at: &str, schema: &Value, depth: usize) -> Checked {
    let fields = [
        "type",
        "format",
        "description",
        "nullable",
        "enum",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "minLength",
        "maxLength",
        "pattern",
        "anyOf",
        "items",
        "minimum",
        "maximum",
    ];
    let map = schema.as_object().ok_or_else(|| format!("{at}: invalid value, a schema is an object"))?;
    need(depth <= 32, || format!("{at}: nested too deep"))?;
    for key in map.keys() {
        need(fields.contains(&key.as_str()), || format!("{at}: unknown name {key:?}: cannot find field"))?;
    }
    if let Some(choices) = map.get("anyOf") {
        need(map.len() == 1, || format!("{at}: when using any_of, it must be the only field set"))?;
        let choices = choices.as_array().filter(|all| all.len() > 1).ok_or_else(|| format!("{at}.anyOf"))?;
        return choices.iter().try_for_each(|choice| declared(&format!("{at}.anyOf"), choice, depth + 1));
    }
    let kind = str_of(schema, "type");
    let kinds = ["string", "number", "integer", "boolean", "array", "object"];
    need(kinds.contains(&kind), || format!("{at}.type: {}", schema["type"]))?;
    for (key, fits) in [
        ("description", schema["description"].is_string()),
        ("pattern", kind == "string" && schema["pattern"].is_string()),
        ("nullable", schema["nullable"].is_boolean()),
        ("minimum", matches!(kind, "number" | "integer") && schema["minimum"].is_number()),
        ("maximum", matches!(kind, "number" | "integer") && schema["maximum"].is_number()),
        ("minItems", kind == "array" && schema["minItems"].is_u64()),
        ("maxItems", kind == "array" && schema["maxItems"].is_u64()),
        ("minLength", kind == "string" && schema["minLength"].is_u64()),
        ("maxLength", kind == "string" && schema["maxLength"].is_u64()),
        ("enum", kind == "string"),
        ("items", kind == "array"),
        ("properties", kind == "object"),
        ("required", kind == "object"),
    ] {
        need(map.get(key).is_none() || fits, || {
            format!("{at}.{key}: not allowed for {kind}: {}", schema[key])
        })?;
    }
    let formats: &[&str] = match kind {
        "string" => &["date-time", "enum"],
        "integer" => &["int32", "int64"],
        "number" => &["float", "double"],
        _ => &[],
    };
    need(map.get("format").is_none_or(|f| formats.iter().any(|own| f == own)), || {
        format!("{at}.format: only {formats:?} are supported for {kind}")
    })?;
    if map.contains_key("enum") {
        let values = list(schema, "enum");
        need(!values.is_empty(), || format!("{at}.enum: cannot be empty"))?;
        need(values.iter().all(|v| v.as_str().is_some_and(|v| !v.is_empty())), || {
            format!("{at}.enum[0]: cannot be empty")
        })?;
    }
    if kind == "array" {
        let items = map.get("items").ok_or_else(|| format!("{at}.items: missing field"))?;
        declared(&format!("{at}.items"), items, depth + 1)?;
    }
    let properties = schema["properties"].as_object();
    need(map.get("properties").is_none() || properties.is_some_and(|p| !p.is_empty()), || {
        format!("{at}.properties: should be non-empty for OBJECT type")
    })?;
    for name in list(schema, "required") {
        let known = name.as_str().is_some_and(|name| properties.is_some_and(|p| p.contains_key(name)));
        need(known, || format!("{at}.required[0]: property {name} is not defined"))?;
    }
    need(map.get("required").is_none_or(Value::is_array), || format!("{at}.required"))?;
    properties
        .into_iter()
        .flatten()
        .try_for_each(|(name, schema)| declared(&format!("{at}.properties[{name}]"), schema, depth + 1))
}

/// Checks that a tool's schema is one object, as the formats of whole JSON schemas demand it.
fn one_object(at: &str, schema: &Value) -> Checked {
    need(schema["type"] == "object", || format!("{at}: schema must be of type object"))?;
    need(schema["properties"].is_object(), || format!("{at}: object schema missing properties"))?;
    let combined = ["anyOf", "oneOf", "allOf", "enum", "not"].iter().find(|key| schema.get(**key).is_some());
    need(combined.is_none(), || format!("{at}: does not support {combined:?} at the top level"))?;
    lists(at, schema)
}

/// Checks that each list says what its items are.
fn lists(at: &str, schema: &Value) -> Checked {
    match schema {
        Value::Object(map) => {
            let kind = &schema["type"];
            let list =
                *kind == "array" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|k| k == "array"));
            need(!list || map.contains_key("items"), || format!("{at}: array schema missing items"))?;
            let data = ["enum", "const", "default", "examples", "example"];
            let mut parts = map.iter().filter(|(key, _)| !data.contains(&key.as_str()));
            parts.try_for_each(|(key, part)| lists(&format!("{at}.{key}"), part))
        }
        Value::Array(parts) => parts.iter().try_for_each(|part| lists(at, part)),
        _ => Ok(()),
    }
}

fn gemini(body: &Value) -> Checked {
    let name = |name: &str| {
        let fine = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.len() <= 64
            && name.chars().all(fine)
    };
    for tools in list(body, "tools") {
        for tool in list(tools, "functionDeclarations") {
            need(name(str_of(tool, "name")), || format!("functionDeclarations: name {}", tool["name"]))?;
            if let Some(parameters) = tool.get("parameters") {
                need(parameters["type"] == "object", || "parameters.type: should be OBJECT".into())?;
                declared(str_of(tool, "name"), parameters, 0)?;
            }
        }
    }
    let contents = list(body, "contents");
    need(!contents.is_empty(), || "contents is not specified".into())?;
    let mut calls: Vec<String> = Vec::new();
    let mut before = "";
    for (n, content) in contents.iter().enumerate() {
        let at = format!("contents[{n}]");
        let role = str_of(content, "role");
        let parts = list(content, "parts");
        need(role == "user" || role == "model", || format!("{at}: role {role:?}"))?;
        need(n > 0 || role == "user", || format!("{at}: must begin with the user"))?;
        need(role != before, || {
            format!("{at}: a function call turn must come after a user turn or a function response turn")
        })?;
        before = role;
        need(!parts.is_empty(), || format!("{at}: must include at least one parts field"))?;
        let mut responses = Vec::new();
        let mut here = Vec::new();
        for part in parts {
            if let Some(t) = part["text"].as_str() {
                let signed = part.get("thoughtSignature").is_some();
                need(signed || !t.is_empty(), || format!("{at}: empty text parameter"))?;
            } else if part["functionCall"].is_object() {
                let call = &part["functionCall"];
                need(role == "model", || format!("{at}: a call of the user"))?;
                need(name(str_of(call, "name")), || format!("{at}: function name {}", call["name"]))?;
                need(call["args"].is_object(), || format!("{at}: args"))?;
                here.push(str_of(call, "name").to_owned());
            } else if part["functionResponse"].is_object() {
                need(role == "user", || format!("{at}: a response of the model"))?;
                need(part["functionResponse"]["response"].is_object(), || format!("{at}: response"))?;
                responses.push(str_of(&part["functionResponse"], "name").to_owned());
            } else if part["inlineData"].is_object() {
                let inline = &part["inlineData"];
                image(&at, str_of(inline, "mimeType"), str_of(inline, "data"))?;
            } else {
                return Err(format!("{at}: a part without data"));
            }
        }
        need(responses == calls, || {
            format!(
                "{at}: the number of function response parts is not that of the function call parts: {calls:?} {responses:?}"
            )
        })?;
        calls = here;
    }
    need(before == "user", || "the last turn must be of the user".into())
}
