use std::collections::HashSet;

use serde_json::Value;

use super::*;

#[test]
fn the_list_holds() {
    let mut names = HashSet::new();
    for tool in ALL {
        let spec = tool.spec();
        assert_eq!(spec.name, tool.name());
        assert!(names.insert(spec.name.clone()), "{} appears twice", spec.name);
        assert!(!spec.description.trim().is_empty(), "{} has no help", spec.name);
        assert!(!tool.verb().word().is_empty() && !tool.toolset().is_empty());
        assert_eq!(spec.schema["type"], "object", "{}", spec.name);
        check(&spec.schema, &spec.name);
        for required in spec.schema["required"].as_array().into_iter().flatten() {
            assert!(spec.schema["properties"].get(required.as_str().unwrap()).is_some());
        }
    }
}

/// Only words that every vendor takes.
fn check(schema: &Value, tool: &str) {
    let words = ["type", "properties", "required", "description", "items", "enum", "minItems", "maxItems"];
    for (word, value) in schema.as_object().unwrap() {
        assert!(words.contains(&word.as_str()), "{tool}: {word}");
        match word.as_str() {
            "type" => assert!(value.is_string(), "{tool}: {value}"),
            "properties" => value.as_object().unwrap().values().for_each(|v| check(v, tool)),
            "items" => check(value, tool),
            _ => {}
        }
    }
}

#[test]
fn the_list_is_sorted_and_small() {
    let specs = specs(|_, _| true);
    assert!(specs.is_sorted_by(|a, b| a.name < b.name));
    let size = serde_json::to_string(&specs).unwrap().len();
    assert!(size <= 10 * 1024 + 128, "{size} bytes of tool list");
}
