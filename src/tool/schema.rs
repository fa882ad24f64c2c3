//! JSON schemas of arguments, derived from input types, in the small common part of what the vendors
//! accept: no `$ref`, no `null` unions, no titles or formats.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::ToolError;

/// The text of an argument; empty when there is none.
pub(crate) fn text(args: &Value, key: &str) -> String {
    args.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The schema of `T`, an object.
pub fn of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema, false);
    if let Value::Object(map) = &mut schema {
        // Some servers refuse an object without it.
        map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// `names`: the keys of this object are names of properties, not words of the schema language.
fn tidy(value: &mut Value, names: bool) {
    let Value::Object(map) = value else {
        if let Value::Array(list) = value {
            list.iter_mut().for_each(|v| tidy(v, false));
        }
        return;
    };
    if !names {
        for noise in ["$schema", "title", "format", "default", "minimum", "maximum", "additionalProperties"] {
            map.remove(noise);
        }
        if map.contains_key("properties") {
            // What the code says of a type is not for models; fields have words of their own.
            map.remove("description");
        }
        drop_null(map);
    }
    for (key, inner) in map.iter_mut() {
        tidy(inner, !names && key == "properties");
    }
}

/// Optional values are simply not required: `["string", "null"]` becomes `"string"`.
fn drop_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|t| t != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            map.insert("type".into(), one);
        }
    }
    if let Some(Value::Array(list)) = map.get_mut("enum") {
        list.retain(|v| !v.is_null());
    }
    let Some(Value::Array(mut any)) = map.remove("anyOf") else { return };
    any.retain(|s| s.get("type").is_none_or(|t| t != "null"));
    if let [Value::Object(one)] = any.as_slice() {
        map.extend(one.clone());
    } else {
        map.insert("anyOf".into(), Value::Array(any));
    }
}

/// Reads arguments. `null` counts as absent, since some models fill in every key; a value that came as a string
/// (`"3"`, `"true"`, `"[...]"`), as small models write them, counts as what the schema asks for.
///
/// # Errors
/// [`ToolError::Tell`] with what is wrong and what the tool takes.
pub fn read<T: DeserializeOwned + JsonSchema>(args: &Value) -> Result<T, ToolError> {
    let mut args = args.clone();
    if let Value::Object(map) = &mut args {
        map.retain(|_, v| !v.is_null());
    }
    // By reference: it is read a second time only if this fails.
    T::deserialize(&args).or_else(|mut e| {
        let schema = of::<T>();
        // Only when it could not be read as it is: what is right stays untouched.
        if unquote(&mut args, &schema) {
            match serde_json::from_value(args) {
                Ok(read) => return Ok(read),
                Err(other) => e = other,
            }
        }
        let names =
            schema["properties"].as_object().map(|p| p.keys().cloned().collect::<Vec<_>>().join(", "));
        Err(ToolError::Tell(format!("invalid arguments: {e}. The tool takes: {}", names.unwrap_or_default())))
    })
}

/// Puts what a string holds in its place where the schema wants something else. `true`: something was changed.
fn unquote(value: &mut Value, schema: &Value) -> bool {
    let mut changed = false;
    if let Value::String(text) = value
        && let Some(kind) = schema["type"].as_str()
        && let Ok(inner) = serde_json::from_str::<Value>(text.trim())
        && match kind {
            "integer" => inner.is_i64() || inner.is_u64(),
            "number" => inner.is_number(),
            "boolean" => inner.is_boolean(),
            "array" => inner.is_array(),
            "object" => inner.is_object(),
            _ => false,
        }
    {
        *value = inner;
        changed = true;
    }
    match value {
        Value::Object(map) => {
            for (key, inner) in map.iter_mut() {
                changed |= unquote(inner, &schema["properties"][key]);
            }
        }
        Value::Array(list) => {
            for inner in list.iter_mut() {
                changed |= unquote(inner, &schema["items"]);
            }
        }
        _ => {}
    }
    changed
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct Item {
        id: String,
        done: bool,
    }

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Args {
        text: String,
        #[serde(default)]
        line: Option<u64>,
        #[serde(default)]
        wait: Option<f64>,
        #[serde(default)]
        items: Vec<Item>,
    }

    #[test]
    fn what_came_as_a_string_counts_as_what_was_asked_for() {
        let args = json!({"text": "7", "line": "3", "wait": " 1.5", "items": "[{\"id\": \"1\", \"done\": \"true\"}]"});
        let read: Args = read(&args).unwrap();
        assert_eq!(read.text, "7", "a string that was asked for stays one");
        assert_eq!((read.line, read.wait), (Some(3), Some(1.5)));
        assert_eq!(read.items, [Item { id: "1".into(), done: true }]);
    }

    #[test]
    fn what_no_string_can_mean_is_refused() {
        for (args, word) in [
            (json!({"text": "a", "line": "three"}), "invalid type: string \"three\""),
            (json!({"text": "a", "line": "3.5"}), "string \"3.5\""),
            (json!({"text": 7}), "invalid type: integer"),
            (json!({"text": "a", "items": "no list"}), "string \"no list\""),
            (json!({"text": "a", "line": "3", "limit": 1}), "unknown field `limit`"),
        ] {
            let Err(ToolError::Tell(said)) = read::<Args>(&args) else { panic!("{args}") };
            assert!(said.contains(word) && said.contains("The tool takes: "), "{said}");
        }
    }
}
