//! JSON schemas of arguments, derived from input types, in the small common part of what the vendors
//! accept: no `$ref`, no `null` unions, no titles or formats.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::ToolError;

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

/// Reads arguments. `null` counts as absent, since some models fill in every key.
///
/// # Errors
/// [`ToolError::Tell`] with what is wrong and what the tool takes.
pub fn read<T: DeserializeOwned + JsonSchema>(args: &Value) -> Result<T, ToolError> {
    let mut args = args.clone();
    if let Value::Object(map) = &mut args {
        map.retain(|_, v| !v.is_null());
    }
    serde_json::from_value(args).map_err(|e| {
        let schema = of::<T>();
        let names =
            schema["properties"].as_object().map(|p| p.keys().cloned().collect::<Vec<_>>().join(", "));
        ToolError::Tell(format!("wrong arguments: {e}. The tool takes: {}", names.unwrap_or_default()))
    })
}
