//! Answers as JSON that must match a schema of the task.

use serde_json::Value;

/// The JSON of an answer: all of it, or its first fenced block, or the text from its first to its last bracket.
fn json_of(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let first = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error.to_string(),
    };
    let fenced = text.split("```").nth(1).map(|t| t.trim_start_matches("json").trim());
    let braced =
        text.find(['{', '[']).and_then(|a| Some(&text[a..=text.rfind(['}', ']']).filter(|b| *b > a)?]));
    let found = [fenced, braced].into_iter().flatten().find_map(|part| serde_json::from_str(part).ok());
    found.ok_or(first)
}

/// Parses an answer and checks it against the schema.
///
/// # Errors
/// What does not match, at most five points, as a sentence for the agent that gave the answer.
pub(super) fn parse(text: &str, schema: &Value) -> Result<Value, String> {
    let value = json_of(text).map_err(|e| format!("it is not JSON: {e}"))?;
    let mut errors = Vec::new();
    validate(&value, schema, "the answer", &mut errors);
    if errors.is_empty() { Ok(value) } else { Err(errors.join("; ")) }
}

/// Adds to `errors` what of `value` does not match. `at`: the path of `value` in the answer.
fn validate(value: &Value, schema: &Value, at: &str, errors: &mut Vec<String>) {
    if errors.len() >= 5 {
        return;
    }
    let mut check = |ok: bool, say: &dyn Fn() -> String| {
        if !ok {
            errors.push(format!("{at} {}", say()));
        }
    };
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(any) => any.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|t| has_type(value, t)) {
        return check(false, &|| format!("must be {}", types.join(" or ")));
    }
    if let Some(allowed) = schema["enum"].as_array() {
        check(allowed.contains(value), &|| format!("must be one of {}", schema["enum"]));
    }
    if let Some(only) = schema.get("const") {
        check(value == only, &|| format!("must be {only}"));
    }
    let count = match value {
        Value::Array(list) => Some((list.len(), "minItems", "maxItems")),
        Value::String(text) => Some((text.chars().count(), "minLength", "maxLength")),
        _ => None,
    };
    if let Some((n, least, most)) = count {
        let n = n as u64;
        check(schema[least].as_u64().is_none_or(|l| n >= l), &|| {
            format!("is too short ({least} {})", schema[least])
        });
        check(schema[most].as_u64().is_none_or(|m| n <= m), &|| {
            format!("is too long ({most} {})", schema[most])
        });
    }
    if let Some(n) = value.as_f64() {
        check(schema["minimum"].as_f64().is_none_or(|m| n >= m), &|| {
            format!("is below {}", schema["minimum"])
        });
        check(schema["maximum"].as_f64().is_none_or(|m| n <= m), &|| {
            format!("is above {}", schema["maximum"])
        });
    }
    if let Value::Object(map) = value {
        let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in names.filter(|n| !map.contains_key(*n)) {
            check(false, &|| format!("lacks {name}"));
        }
        if schema["additionalProperties"] == Value::Bool(false) {
            for name in map.keys().filter(|n| schema["properties"].get(n.as_str()).is_none()) {
                check(false, &|| format!("has the unexpected property {name}"));
            }
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(value) = map.get(name) {
                validate(value, inner, &format!("{at}.{name}"), errors);
            }
        }
    }
    if let (Value::Array(list), Some(inner)) = (value, schema.get("items")) {
        for (i, value) in list.iter().enumerate() {
            validate(value, inner, &format!("{at}[{i}]"), errors);
        }
    }
}

/// Whether a value is of a type of the schema language.
fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "number" => value.is_number(),
        _ => false,
    }
}

/// The instruction that is added to the context of a task with a schema.
pub(super) fn instruction(schema: &Value) -> String {
    format!("\n\nYour last message must be only JSON that matches this JSON schema:\n{schema}")
}

/// The message to an agent whose answer does not match.
pub(super) fn correction(why: &str) -> String {
    format!("Your last message does not match the schema: {why}. Answer again with JSON only.")
}
