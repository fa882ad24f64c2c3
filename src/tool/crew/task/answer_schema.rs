//! The check of JSON schemas that tasks demand of their answers.

use serde_json::Value;

/// Keywords of JSON Schema that are supported. (A library for all of them has 25 dependencies.)
const KEYWORDS: &[&str] = &[
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

/// Checks that `schema` is a schema in all its parts and uses only supported keywords.
///
/// # Errors
/// A sentence for the model that wrote it.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    let Some(map) = schema.as_object() else { return Err("the schema is not a JSON object".into()) };
    if map.is_empty() {
        return Err("the schema is empty, so it would check nothing".into());
    }
    check_part(schema, "the schema")
}

/// Values of `type`.
const TYPES: &[&str] = &["object", "array", "string", "boolean", "null", "integer", "number"];

/// Checks one schema. `at`: where it is, as the beginning of a sentence.
fn check_part(schema: &Value, at: &str) -> Result<(), String> {
    let Some(map) = schema.as_object() else { return Err(format!("{at} is not a JSON object")) };
    if let Some(word) = map.keys().find(|k| !KEYWORDS.contains(&k.as_str())) {
        return Err(format!("{at} uses {word}, which cannot be checked; use only: {}", KEYWORDS.join(", ")));
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
        check_part(inner, &format!("{at} of {name}"))?;
    }
    map.get("items").map_or(Ok(()), |inner| check_part(inner, &format!("{at} of the items")))
}

/// The first 60 characters of a value.
fn short(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}
