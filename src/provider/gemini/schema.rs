//! Converts JSON schemas of tools: to the subset that Gemini's declarations support, and to one object at the top, which every
//! vendor demands. A schema that cannot be converted becomes a wider one: one odd tool must not stop all requests.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value, json};

/// Maximum depth of nesting; recursive schemas end there.
const DEPTH: usize = 16;
/// Maximum schemas within one. References in references would otherwise double with each level.
const NODES: usize = 2_000;
/// Fields that are copied where their value has the right kind; the vendor rejects unknown ones.
const TEXTS: &[&str] = &["description", "pattern"];
const NUMBERS: &[&str] = &["minimum", "maximum"];
const COUNTS: &[&str] = &["minItems", "maxItems", "minLength", "maxLength"];
const KINDS: &[&str] = &["string", "number", "integer", "boolean", "array", "object"];
/// Fields that combine schemas.
const COMBINED: &[&str] = &["anyOf", "oneOf", "allOf"];

/// The subset; `None` for a schema without properties, which the vendor rejects.
pub(crate) fn subset(schema: &Value) -> Option<Value> {
    let schema = object(schema);
    let mut walk = Walk { root: &schema, left: NODES };
    let out = walk.schema(&schema, 0);
    out.get("properties").is_some().then_some(out)
}

/// The schema as one object with properties, without a choice at its top, and with the items of each list. Borrowed where it
/// is one already.
pub(crate) fn object(schema: &Value) -> Cow<'_, Value> {
    let fits = schema.get("type").is_some_and(|kind| kind == "object")
        && schema.get("properties").is_some_and(Value::is_object)
        && !COMBINED.iter().chain(&["$ref", "enum", "not", "const"]).any(|key| schema.get(*key).is_some());
    let mut out = if fits { Cow::Borrowed(schema) } else { Cow::Owned(one_object(schema)) };
    if lacks_items(&out) {
        add_items(out.to_mut());
    }
    out
}

fn one_object(schema: &Value) -> Value {
    let mut out = schema.as_object().cloned().unwrap_or_default();
    let (mut gathered, mut left) = (Gathered::of(schema), NODES);
    gathered.add(schema, true, 0, &mut left);
    for key in COMBINED.iter().chain(&["$ref", "enum", "not", "const", "required"]) {
        out.shift_remove(*key);
    }
    out.insert("type".into(), "object".into());
    out.insert("properties".into(), Value::Object(gathered.properties));
    if !gathered.required.is_empty() {
        out.insert("required".into(), Value::Array(gathered.required));
    }
    Value::Object(out)
}

/// Fields whose values are data and not schemas.
const DATA: &[&str] = &["enum", "const", "default", "examples", "example"];

/// Fields whose values are schemas by names.
const NAMED: &[&str] = &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// A list without a schema of its items, which OpenAI refuses.
fn is_bare_list(map: &Map<String, Value>) -> bool {
    let list = match map.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    };
    list && !map.contains_key("items")
}

/// True where a list somewhere in the schema has no items. The parser has limited the depth.
fn lacks_items(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            let lacks = |(key, part): (&String, &Value)| match part {
                Value::Object(named) if NAMED.contains(&key.as_str()) => named.values().any(lacks_items),
                part => !DATA.contains(&key.as_str()) && lacks_items(part),
            };
            is_bare_list(map) || map.iter().any(lacks)
        }
        Value::Array(parts) => parts.iter().any(lacks_items),
        _ => false,
    }
}

fn add_items(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for (key, part) in map.iter_mut() {
                match part {
                    Value::Object(named) if NAMED.contains(&key.as_str()) => {
                        named.values_mut().for_each(add_items);
                    }
                    _ if DATA.contains(&key.as_str()) => {}
                    part => add_items(part),
                }
            }
            if is_bare_list(map) {
                map.insert("items".into(), json!({}));
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(add_items),
        _ => {}
    }
}

/// The properties of a schema and of all that it combines.
struct Gathered<'a> {
    root: &'a Value,
    /// References that were followed already, each with `all`.
    seen: HashSet<(&'a str, bool)>,
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl<'a> Gathered<'a> {
    fn of(root: &'a Value) -> Self {
        Self { root, seen: HashSet::new(), properties: Map::new(), required: Vec::new() }
    }

    /// Adds those of a schema. `all`: they hold for every input, so that they may be required. `left`: schemas that may still be
    /// visited.
    fn add(&mut self, schema: &'a Value, all: bool, depth: usize, left: &mut usize) {
        if depth >= DEPTH || *left == 0 || self.properties.len() >= NODES {
            return;
        }
        *left -= 1;
        let target = schema.get("$ref").and_then(Value::as_str);
        if let Some(target) = target.filter(|target| self.seen.insert((*target, all)))
            && let Some(found) = referred(target, self.root)
        {
            self.add(found, all, depth + 1, left);
        }
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.properties.entry(name.clone()).or_insert_with(|| property.clone());
        }
        let own = schema.get("required").and_then(Value::as_array).filter(|_| all);
        for name in own.into_iter().flatten().filter(|name| name.is_string()).take(NODES) {
            if self.required.len() < NODES && !self.required.contains(name) {
                self.required.push(name.clone());
            }
        }
        for key in COMBINED {
            for part in schema.get(*key).and_then(Value::as_array).into_iter().flatten() {
                self.add(part, all && *key == "allOf", depth + 1, left);
            }
        }
    }
}

/// The schema that a reference within the whole one names.
fn referred<'a>(target: &str, root: &'a Value) -> Option<&'a Value> {
    root.pointer(target.strip_prefix('#')?)
}

/// Any value, as far as the subset can say it.
fn anything() -> Value {
    json!({"type": "string"})
}

struct Walk<'a> {
    root: &'a Value,
    /// Schemas that may still be made.
    left: usize,
}

impl Walk<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(map) = schema.as_object() else {
            return if schema.is_boolean() { anything() } else { json!({"type": "object"}) };
        };
        if depth >= DEPTH || self.left == 0 {
            return json!({"type": "object"});
        }
        self.left -= 1;
        if let Some(target) = map.get("$ref") {
            let root = self.root;
            let found = target.as_str().and_then(|target| referred(target, root));
            let mut out =
                found.map_or_else(|| json!({"type": "object"}), |found| self.schema(found, depth + 1));
            if let Some(text) = map.get("description").filter(|text| text.is_string()) {
                describe(&mut out, text);
            }
            return out;
        }
        let merged;
        let map = match map.get("allOf").and_then(Value::as_array) {
            Some(parts) => {
                merged = merge(map, parts, self.root, &mut self.left);
                &merged
            }
            None => map,
        };
        let choices = ["anyOf", "oneOf"].iter().find_map(|key| map.get(*key)?.as_array());
        if let Some(choices) = choices.filter(|choices| !choices.is_empty()) {
            return self.choice(map, choices, depth);
        }
        let (kinds, null) = kinds(map);
        let mut parts: Vec<Value> = kinds.iter().map(|kind| self.of_kind(map, kind, depth)).collect();
        let mut out = if parts.len() == 1 { parts.remove(0) } else { json!({"anyOf": parts}) };
        if null || map.get("nullable").is_some_and(|v| *v == true) {
            nullable(&mut out);
        }
        out
    }

    /// A schema of one type.
    fn of_kind(&mut self, map: &Map<String, Value>, kind: &str, depth: usize) -> Value {
        let mut out = Map::new();
        out.insert("type".into(), kind.into());
        let mut copy = |keys: &[&str], fits: fn(&Value) -> bool| {
            for key in keys {
                if let Some(value) = map.get(*key).filter(|value| fits(value)) {
                    out.insert((*key).into(), value.clone());
                }
            }
        };
        copy(&TEXTS[..1], Value::is_string);
        match kind {
            "string" => {
                copy(&TEXTS[1..], Value::is_string);
                copy(&COUNTS[2..], Value::is_u64);
                copy(&["format"], |format| format == "date-time");
            }
            "array" => copy(&COUNTS[..2], Value::is_u64),
            "integer" => {
                copy(NUMBERS, Value::is_number);
                copy(&["format"], |format| format == "int32" || format == "int64");
            }
            "number" => {
                copy(NUMBERS, Value::is_number);
                copy(&["format"], |format| format == "float" || format == "double");
            }
            _ => {}
        }
        match kind {
            "array" => {
                let items = match map.get("items").or_else(|| map.get("prefixItems")) {
                    Some(Value::Array(each)) if each.len() > 1 => {
                        self.choice(&Map::new(), &each.clone(), depth + 1)
                    }
                    Some(Value::Array(each)) => {
                        each.first().map_or_else(anything, |s| self.schema(s, depth + 1))
                    }
                    Some(items) => self.schema(items, depth + 1),
                    None => anything(),
                };
                out.insert("items".into(), items);
            }
            "object" => {
                let own = map.get("properties").and_then(Value::as_object);
                let properties: Map<String, Value> = own
                    .into_iter()
                    .flatten()
                    .filter(|(name, _)| !name.is_empty())
                    .map(|(name, schema)| (name.clone(), self.schema(schema, depth + 1)))
                    .collect();
                let mut required: Vec<Value> = Vec::new();
                for name in map.get("required").and_then(Value::as_array).into_iter().flatten() {
                    if name.as_str().is_some_and(|n| properties.contains_key(n)) && !required.contains(name) {
                        required.push(name.clone());
                    }
                }
                if !properties.is_empty() {
                    out.insert("properties".into(), Value::Object(properties));
                }
                if !required.is_empty() {
                    out.insert("required".into(), Value::Array(required));
                }
            }
            _ => {}
        }
        let mut out = Value::Object(out);
        let constant = map.get("const").map(std::slice::from_ref);
        if let Some(values) = map.get("enum").and_then(Value::as_array).map(Vec::as_slice).or(constant) {
            enumerate(&mut out, kind, values);
        }
        out
    }

    /// One of several schemas. The vendor accepts no other field beside them.
    fn choice(&mut self, map: &Map<String, Value>, choices: &[Value], depth: usize) -> Value {
        let is_null = |v: &Value| {
            v.get("type").is_some_and(|t| t == "null") || v.get("const").is_some_and(Value::is_null)
        };
        let null = choices.iter().any(is_null) || map.get("nullable").is_some_and(|v| *v == true);
        let mut parts: Vec<Value> = Vec::new();
        for choice in choices.iter().filter(|choice| !is_null(choice)) {
            // The fields beside the choice hold for each.
            let whole = beside(map, choice);
            match self.schema(&whole, depth + 1) {
                Value::Object(mut of) if of.contains_key("anyOf") => {
                    if let Some(Value::Array(inner)) = of.remove("anyOf") {
                        parts.extend(inner);
                    }
                }
                part => parts.push(part),
            }
        }
        let text = |v: &Value| v.get("type").is_some_and(|t| t == "string") && v.get("enum").is_some();
        let mut out = match parts.len() {
            0 => anything(),
            1 => parts.remove(0),
            // A choice of constants becomes an enumeration.
            _ if parts.iter().all(text) => {
                let mut values: Vec<Value> = Vec::new();
                for value in parts.iter().filter_map(|v| v["enum"].as_array()).flatten() {
                    if !values.contains(value) {
                        values.push(value.clone());
                    }
                }
                json!({"type": "string", "enum": values})
            }
            _ => {
                let mut each: Vec<Value> = Vec::new();
                for part in parts {
                    if !each.contains(&part) {
                        each.push(part);
                    }
                }
                if each.len() == 1 { each.remove(0) } else { json!({"anyOf": each}) }
            }
        };
        if null {
            nullable(&mut out);
        }
        if let Some(text) = map.get("description").filter(|text| text.is_string()) {
            describe(&mut out, text);
        }
        out
    }
}

/// The types of a schema, and whether it may be null.
fn kinds(map: &Map<String, Value>) -> (Vec<&str>, bool) {
    let stated: Vec<String> = match map.get("type") {
        Some(Value::String(kind)) => vec![kind.to_lowercase()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(str::to_lowercase).collect(),
        _ => Vec::new(),
    };
    let null = stated.iter().any(|kind| kind == "null");
    let mut out: Vec<&str> = Vec::new();
    for kind in KINDS.iter().copied().filter(|kind| stated.iter().any(|own| own == kind)) {
        out.push(kind);
    }
    if out.is_empty() {
        let values =
            map.get("enum").and_then(Value::as_array).and_then(|all| all.iter().find(|v| !v.is_null()));
        out.push(match values.or_else(|| map.get("const")) {
            _ if map.contains_key("properties") || map.contains_key("additionalProperties") => "object",
            _ if map.contains_key("items") || map.contains_key("prefixItems") => "array",
            Some(Value::Bool(_)) => "boolean",
            Some(Value::Number(n)) if n.is_f64() => "number",
            Some(Value::Number(_)) => "integer",
            _ => "string",
        });
    }
    (out, null)
}

/// Limits a schema to values. The vendor has only texts there; others are named in the description.
fn enumerate(out: &mut Value, kind: &str, values: &[Value]) {
    let mut texts: Vec<Value> = Vec::new();
    for value in values.iter().filter(|v| !v.is_null()) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if !text.is_empty() && !texts.iter().any(|known| *known == text) {
            texts.push(text.into());
        }
    }
    let Some(out) = out.as_object_mut().filter(|_| !texts.is_empty()) else { return };
    if kind == "string" {
        out.insert("enum".into(), Value::Array(texts));
        return;
    }
    let all: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
    let before =
        out.get("description").and_then(Value::as_str).map(|text| format!("{text} ")).unwrap_or_default();
    out.insert("description".into(), format!("{before}One of: {}.", all.join(", ")).into());
}

/// Permits null, in each of several schemas.
fn nullable(out: &mut Value) {
    match out.get_mut("anyOf").and_then(Value::as_array_mut) {
        Some(parts) => parts.iter_mut().for_each(nullable),
        None => out["nullable"] = true.into(),
    }
}

/// Describes a schema. A choice has no description of its own: its first schema gets it.
fn describe(out: &mut Value, text: &Value) {
    match out.get_mut("anyOf").and_then(Value::as_array_mut).and_then(|parts| parts.first_mut()) {
        Some(first) if first.get("description").is_some() => {}
        Some(first) => first["description"] = text.clone(),
        None => out["description"] = text.clone(),
    }
}

/// A choice with what stands beside it; its own fields count more.
fn beside(map: &Map<String, Value>, choice: &Value) -> Value {
    let Some(own) = choice.as_object().filter(|own| !own.contains_key("$ref")) else { return choice.clone() };
    let mut out = own.clone();
    for (key, value) in map {
        if !COMBINED.contains(&key.as_str()) && key != "description" && key != "$defs" && key != "definitions"
        {
            out.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    Value::Object(out)
}

/// One schema that stands for all that must hold together. The first word on a field counts.
fn merge(map: &Map<String, Value>, parts: &[Value], root: &Value, left: &mut usize) -> Map<String, Value> {
    let mut out = map.clone();
    out.shift_remove("allOf");
    let whole = Value::Object(map.clone());
    let mut gathered = Gathered::of(root);
    gathered.add(&whole, true, 0, left);
    for part in parts {
        let target = part.get("$ref").and_then(Value::as_str);
        let part = target.and_then(|target| referred(target, root)).unwrap_or(part);
        for (key, value) in part.as_object().into_iter().flatten() {
            if key != "allOf" && key != "$ref" {
                out.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    if !gathered.properties.is_empty() {
        out.insert("properties".into(), Value::Object(gathered.properties));
        out.insert("required".into(), Value::Array(gathered.required));
    }
    out
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
        // Two references in each would be 65,536 schemas.
        let twice = json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}});
        assert!(subset(&twice).unwrap().to_string().len() < 400_000);
    }

    #[test]
    fn p17_odd_schemas_keep_what_they_mean() {
        let of = |schema: Value| {
            let whole = json!({"type": "object", "properties": {"x": schema}});
            subset(&whole).unwrap()["properties"]["x"].clone()
        };
        let text = json!({"type": "string"});
        for (schema, want) in [
            (json!({"type": "array"}), json!({"type": "array", "items": text})),
            (json!({"type": "array", "items": {}}), json!({"type": "array", "items": text})),
            (json!({"type": "array", "items": []}), json!({"type": "array", "items": text})),
            (json!({"items": {"type": "integer"}}), json!({"type": "array", "items": {"type": "integer"}})),
            (json!({"type": "string", "enum": []}), text.clone()),
            (json!({"enum": ["", "a", "a", null]}), json!({"type": "string", "enum": ["a"]})),
            (
                json!({"type": "integer", "enum": [1, 2]}),
                json!({"type": "integer", "description": "One of: 1, 2."}),
            ),
            (json!({"const": true}), json!({"type": "boolean", "description": "One of: true."})),
            (json!({"type": "null"}), json!({"type": "string", "nullable": true})),
            (json!({"type": "any"}), text.clone()),
            (json!({"type": 7, "description": 7, "minLength": -1}), text.clone()),
            (json!(true), text.clone()),
            (json!({}), text.clone()),
            (json!({"type": "object", "required": ["a"]}), json!({"type": "object"})),
            (json!({"additionalProperties": {"type": "string"}}), json!({"type": "object"})),
            (
                json!({"type": ["string", "integer"], "description": "d", "minimum": 1}),
                json!({"anyOf": [{"type": "string", "description": "d"},
                    {"type": "integer", "description": "d", "minimum": 1}]}),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "integer"}], "title": "T"}),
                json!({"anyOf": [{"type": "string", "nullable": true}, {"type": "integer", "nullable": true}]}),
            ),
            (json!({"oneOf": [{"type": "string"}, {"type": "string"}]}), text.clone()),
            (json!({"anyOf": []}), text.clone()),
            (
                json!({"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                    {"properties": {"b": {"type": "integer"}}}]}),
                json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
                    "required": ["a"]}),
            ),
            (json!({"$ref": "https://example.com/x"}), json!({"type": "object"})),
            (json!({"$ref": "#/nothing"}), json!({"type": "object"})),
            (json!({"type": "string", "format": "uri"}), text.clone()),
            (json!({"type": "STRING"}), text),
        ] {
            assert_eq!(of(schema.clone()), want, "{schema}");
        }
        // Only properties that there are can be required.
        let odd = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b", 7, "a"]});
        assert_eq!(subset(&odd).unwrap()["required"], json!(["a"]));
    }

    #[test]
    fn p17_parts_that_refer_to_the_whole_are_visited_once() {
        // Fifty to the power of eight visits otherwise, at each of several layers.
        let all: Vec<Value> = (0..50).map(|_| json!({"$ref": "#/properties/a"})).collect();
        for key in COMBINED {
            let loops = json!({"type": "object", "properties": {"a": {*key: all}, "b": {"type": "integer"}}});
            assert!(subset(&loops).unwrap().to_string().len() < 1_000_000, "{key}");
            let top = json!({*key: all, "properties": {"a": {*key: all}, "b": {"type": "integer"}}});
            assert_eq!(object(&top)["properties"]["b"]["type"], "integer", "{key}");
            assert!(subset(&top).is_some(), "{key}");
        }
        // The same with a reference of its own in each.
        let names: Vec<String> = (0..50).map(|n| format!("d{n}")).collect();
        let each: Vec<Value> = names.iter().map(|n| json!({"$ref": format!("#/$defs/{n}")})).collect();
        let defs: Map<String, Value> = names.iter().map(|n| (n.clone(), json!({"allOf": each}))).collect();
        let web = json!({"type": "object", "properties": {"a": {"allOf": each}}, "$defs": defs});
        assert!(subset(&web).unwrap().to_string().len() < 1_000_000);
    }

    #[test]
    fn p17_lists_have_items_in_all_formats() {
        let data = json!({"enum": [{"type": "array"}], "default": {"type": "array"}});
        let schema = |list: Value| json!({"type": "object", "properties": {"x": list, "type": {"anyOf": [list]}, "examples": list, "y": data}});
        for kind in [json!("array"), json!(["null", "array"])] {
            let bare = schema(json!({"type": kind}));
            let full = schema(json!({"type": kind, "items": {}}));
            assert_eq!(*object(&bare), full);
            assert!(matches!(object(&full), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn p17_the_top_of_a_schema_is_one_object() {
        let fine = json!({"type": "object", "properties": {"a": {"anyOf": []}}});
        assert!(matches!(object(&fine), Cow::Borrowed(_)));
        let a = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        let b = json!({"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]});
        for (schema, names, required) in [
            (json!({"anyOf": [a, b]}), vec!["a", "b"], Value::Null),
            (json!({"allOf": [a, b], "type": "object"}), vec!["a", "b"], json!(["a", "b"])),
            (json!({"$ref": "#/$defs/A", "$defs": {"A": a}}), vec!["a"], json!(["a"])),
            (json!({"type": "object"}), vec![], Value::Null),
            (json!({"properties": {"a": {}}}), vec!["a"], Value::Null),
            (json!({"type": "string"}), vec![], Value::Null),
            (json!(null), vec![], Value::Null),
            (json!({"$ref": "#"}), vec![], Value::Null),
        ] {
            let out = object(&schema);
            let got: Vec<&str> = out["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(
                (got, out.get("required").cloned().unwrap_or_default()),
                (names, required),
                "{schema}"
            );
            assert!(out["type"] == "object" && COMBINED.iter().all(|key| out.get(*key).is_none()), "{out}");
        }
    }
}
