//! Verb and target of a call that was read back from the store: the tools themselves are not known here.

use serde_json::Value;

/// What a tool's row says, from its name and arguments. Not yet clean.
pub fn describe(name: &str, arguments: &Value) -> (String, String) {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).map(str::to_owned);
    let first = || {
        let mut values = arguments.as_object().into_iter().flat_map(|o| o.values());
        values.find_map(Value::as_str).unwrap_or_default().to_owned()
    };
    let path = || text("path").or_else(|| text("file")).unwrap_or_else(first);
    let (verb, target) = match name {
        "read_file" => ("read", path()),
        "write_file" => ("write", path()),
        "edit_file" => ("edit", path()),
        "patch" => ("patch", patched(&text("patch").or_else(|| text("diff")).unwrap_or_default())),
        "list_dir" => ("list", path()),
        "search" => {
            ("search", text("pattern").or_else(|| text("query")).map_or_else(first, |p| format!("\"{p}\"")))
        }
        "terminal" => ("shell", text("command").unwrap_or_else(first)),
        "process" => ("process", text("action").unwrap_or_else(first)),
        "web_fetch" => ("fetch", text("url").unwrap_or_else(first)),
        "todo_write" | "todo_read" => ("todo", String::new()),
        "clarify" => ("ask", text("question").unwrap_or_else(first)),
        other => (other, first()),
    };
    (verb.to_owned(), target)
}

/// The files that a patch names.
fn patched(patch: &str) -> String {
    let mut files: Vec<&str> = patch.lines().filter_map(|l| l.strip_prefix("+++ b/")).collect();
    files.dedup();
    match files.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}
