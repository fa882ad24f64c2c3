//! Answers in a shape that was asked for.

use serde_json::Value;

/// The JSON of an answer: the whole of it, or what stands in its only fence, or from its first brace to its last.
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

/// Words of the schema language that are understood. (A library for all of it weighs 25 crates: too much for this.)
const WORDS: &[&str] = &[
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "description",
    "title",
    "$schema",
    "default",
    "examples",
];

/// Whether `schema` can be used to check anything: it is one, in all its parts.
///
/// # Errors
/// In a sentence for the model.
pub(super) fn checked(schema: &Value) -> Result<(), String> {
    let Some(map) = schema.as_object() else { return Err("the schema is not a JSON object".into()) };
    if map.is_empty() {
        return Err("the schema is empty, so it would check nothing".into());
    }
    part(schema, "the schema")
}

/// Types that a value may have.
const TYPES: &[&str] = &["object", "array", "string", "boolean", "null", "integer", "number"];

/// One schema, which stands at `at`.
fn part(schema: &Value, at: &str) -> Result<(), String> {
    let Some(map) = schema.as_object() else { return Err(format!("{at} is not a JSON object")) };
    if let Some(word) = map.keys().find(|k| !WORDS.contains(&k.as_str())) {
        return Err(format!("{at} uses {word}, which cannot be checked; use only: {}", WORDS.join(", ")));
    }
    for (word, value) in map {
        let fits = match word.as_str() {
            "type" => match value {
                Value::String(one) => TYPES.contains(&one.as_str()),
                Value::Array(any) => {
                    !any.is_empty() && any.iter().all(|t| t.as_str().is_some_and(|t| TYPES.contains(&t)))
                }
                _ => false,
            },
            "enum" => value.as_array().is_some_and(|a| !a.is_empty()),
            "required" => value.as_array().is_some_and(|a| a.iter().all(Value::is_string)),
            "properties" | "items" => value.is_object(),
            "additionalProperties" => value.is_boolean(),
            "minItems" | "maxItems" | "minLength" | "maxLength" => value.is_u64(),
            "minimum" | "maximum" => value.is_number(),
            "description" | "title" | "$schema" => value.is_string(),
            _ => true,
        };
        if !fits {
            let types =
                if word == "type" { format!("; types are {}", TYPES.join(", ")) } else { String::new() };
            return Err(format!("{at} is not a valid schema: {word} cannot be {}{types}", short(value)));
        }
    }
    for (name, inner) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        part(inner, &format!("{at} of {name}"))?;
    }
    map.get("items").map_or(Ok(()), |inner| part(inner, &format!("{at} of the items")))
}

/// A value for a sentence.
fn short(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}

/// The answer as JSON that fits.
///
/// # Errors
/// What does not match the schema, for the agent that gave the answer.
pub(super) fn fits(text: &str, schema: &Value) -> Result<Value, String> {
    let value = json_of(text).map_err(|e| format!("it is not JSON: {e}"))?;
    let mut wrong = Vec::new();
    look(&value, schema, "the answer", &mut wrong);
    if wrong.is_empty() { Ok(value) } else { Err(wrong.join("; ")) }
}

/// Adds what is wrong with `value`, which stands at `at`.
fn look(value: &Value, schema: &Value, at: &str, wrong: &mut Vec<String>) {
    if wrong.len() >= 5 {
        return;
    }
    let mut check = |ok: bool, say: &dyn Fn() -> String| {
        if !ok {
            wrong.push(format!("{at} {}", say()));
        }
    };
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(any) => any.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|t| is(value, t)) {
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
                look(value, inner, &format!("{at}.{name}"), wrong);
            }
        }
    }
    if let (Value::Array(list), Some(inner)) = (value, schema.get("items")) {
        for (i, value) in list.iter().enumerate() {
            look(value, inner, &format!("{at}[{i}]"), wrong);
        }
    }
}

fn is(value: &Value, name: &str) -> bool {
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
/// What is added to a task.
pub(super) fn asked(schema: &Value) -> String {
    format!("\n\nYour last message must be only JSON that matches this JSON schema:\n{schema}")
}

/// What is said once when the answer does not fit.
pub(super) fn again(why: &str) -> String {
    format!("Your last message does not match the schema: {why}. Answer again with JSON only.")
}
