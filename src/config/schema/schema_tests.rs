use serde_json::Value;

/// Calls `visit` with each object of the schema and the path to it.
fn walk(at: &str, value: &Value, visit: &mut impl FnMut(&str, &serde_json::Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(at, object);
            for (name, inner) in object {
                walk(&format!("{at}/{name}"), inner, visit);
            }
        }
        Value::Array(all) => {
            for (index, inner) in all.iter().enumerate() {
                walk(&format!("{at}/{index}"), inner, visit);
            }
        }
        _ => {}
    }
}

#[test]
fn every_setting_has_a_description() {
    let schema = schemars::schema_for!(crate::Config).to_value();
    let (mut settings, mut without) = (0, Vec::new());
    walk("", &schema, &mut |at, object| {
        let Some(Value::Object(properties)) = object.get("properties") else { return };
        for (name, property) in properties {
            settings += 1;
            let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
            if text.trim().is_empty() {
                without.push(format!("{at}/{name}"));
            }
        }
    });
    assert!(settings > 80, "{settings}");
    assert!(without.is_empty(), "{without:#?}");
}

#[test]
fn the_descriptions_use_plain_words() {
    /// Pictures for things, and the second name of the user.
    const OLD: [&str; 7] = ["yes", "deaf", "hold", "holds", "stand", "stands", "person"];
    let schema = schemars::schema_for!(crate::Config).to_value();
    let mut odd = Vec::new();
    walk("", &schema, &mut |at, object| {
        let Some(text) = object.get("description").and_then(Value::as_str) else { return };
        if text.split(|c: char| !c.is_alphanumeric()).any(|word| OLD.contains(&word.to_lowercase().as_str()))
        {
            odd.push(format!("{at}: {text}"));
        }
    });
    assert!(odd.is_empty(), "{odd:#?}");
}
