//! Converts JSON schemas to the subset that Gemini's tool declarations support.

use serde_json::{Map, Value, json};

/// Maximum depth of nesting; recursive schemas end there.
const DEPTH: usize = 16;
/// Supported fields; the vendor rejects all others.
const KNOWN: &[&str] = &[
    "description",
    "enum",
    "format",
    "items",
    "maximum",
    "maxItems",
    "maxLength",
    "minimum",
    "minItems",
    "minLength",
    "nullable",
    "pattern",
    "properties",
    "required",
    "type",
    "anyOf",
];

/// The subset; `None` for a schema without properties, which the vendor rejects.
pub(crate) fn subset(schema: &Value) -> Option<Value> {
    let out = walk(schema, schema, 0);
    let empty = out.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
    (!empty).then_some(out)
}

fn walk(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(map) = schema.as_object().filter(|_| depth < DEPTH) else { return json!({"type": "object"}) };
    if let Some(target) = map.get("$ref").and_then(Value::as_str) {
        let found = target.strip_prefix('#').and_then(|path| root.pointer(path));
        let mut out = found.map_or_else(|| json!({"type": "object"}), |found| walk(found, root, depth + 1));
        if let (Some(text), Some(out)) = (map.get("description"), out.as_object_mut()) {
            out.insert("description".into(), text.clone());
        }
        return out;
    }
    let mut out = Map::new();
    for (key, value) in map {
        match key.as_str() {
            "properties" => {
                let properties: Map<String, Value> = value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, s)| (name.clone(), walk(s, root, depth + 1)))
                    .collect();
                out.insert(key.clone(), Value::Object(properties));
            }
            "items" => {
                out.insert(key.clone(), walk(value, root, depth + 1));
            }
            "anyOf" | "oneOf" => choices(value, root, depth, &mut out),
            "const" => {
                out.insert("enum".into(), json!([value]));
            }
            "type" => kinds(value, &mut out),
            // Only these formats are supported, and only for numbers and dates.
            "format"
                if !matches!(value.as_str(), Some("int32" | "int64" | "float" | "double" | "date-time")) => {}
            "enum" => {
                // Values must be strings.
                let texts: Vec<Value> = value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|v| !v.is_null())
                    .map(|v| v.as_str().map_or_else(|| Value::from(v.to_string()), Value::from))
                    .collect();
                out.insert(key.clone(), Value::Array(texts));
            }
            known if KNOWN.contains(&known) => {
                out.insert(key.clone(), value.clone());
            }
            _ => {}
        }
    }
    if out.contains_key("enum") {
        out.insert("type".into(), "string".into());
    } else if !out.contains_key("type") && !out.contains_key("anyOf") {
        out.insert("type".into(), if out.contains_key("properties") { "object" } else { "string" }.into());
    }
    Value::Object(out)
}

/// `["string", "null"]` becomes a nullable string; several types become a choice.
fn kinds(value: &Value, out: &mut Map<String, Value>) {
    let Some(kinds) = value.as_array() else {
        out.insert("type".into(), value.clone());
        return;
    };
    if kinds.iter().any(|k| k == "null") {
        out.insert("nullable".into(), true.into());
    }
    let rest: Vec<&Value> = kinds.iter().filter(|k| *k != "null").collect();
    if let [one] = rest[..] {
        out.insert("type".into(), one.clone());
    } else if !rest.is_empty() {
        out.insert("anyOf".into(), rest.iter().map(|k| json!({"type": k})).collect());
    }
}

fn choices(value: &Value, root: &Value, depth: usize, out: &mut Map<String, Value>) {
    let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let null = |v: &Value| v.get("type").is_some_and(|t| t == "null");
    if all.iter().any(null) {
        out.insert("nullable".into(), true.into());
    }
    let mut rest: Vec<Value> = all.iter().filter(|v| !null(v)).map(|v| walk(v, root, depth + 1)).collect();
    if rest.len() == 1 {
        if let Some(Value::Object(one)) = rest.pop() {
            for (key, value) in one {
                out.entry(key).or_insert(value);
            }
        }
    } else if rest.iter().all(|v| v.get("enum").is_some()) && !rest.is_empty() {
        // A choice of constants becomes an enumeration.
        let values = rest.iter().filter_map(|v| v["enum"].as_array()).flatten().cloned().collect();
        out.insert("enum".into(), Value::Array(values));
    } else if !rest.is_empty() {
        out.insert("anyOf".into(), Value::Array(rest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_fields_remain() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Args", "type": "object",
            "additionalProperties": false, "required": ["path"],
            "properties": {
                "path": {"type": "string", "description": "where", "default": "."},
                "limit": {"type": ["integer", "null"], "format": "uint32", "minimum": 0},
                "mode": {"oneOf": [{"const": "a"}, {"const": "b"}]},
                "item": {"$ref": "#/$defs/Item", "description": "one"},
                "maybe": {"anyOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}]},
                "list": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            },
            "$defs": {"Item": {"type": "object", "properties": {"id": {"type": "string"}}}},
        });
        let item = json!({"type": "object", "properties": {"id": {"type": "string"}}});
        let mut described = item.clone();
        described["description"] = "one".into();
        let mut nullable = item.clone();
        nullable["nullable"] = true.into();
        assert_eq!(
            subset(&schema).unwrap(),
            json!({
                "type": "object", "required": ["path"],
                "properties": {
                    "path": {"type": "string", "description": "where"},
                    "limit": {"type": "integer", "nullable": true, "minimum": 0},
                    "mode": {"type": "string", "enum": ["a", "b"]},
                    "item": described, "maybe": nullable, "list": {"type": "array", "items": item},
                },
            })
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
        assert!(subset(&schema).unwrap().to_string().len() < 4_000);
        assert_eq!(subset(&json!({"type": "object", "properties": {}})), None);
        assert_eq!(subset(&json!(true)), None);
    }
}
