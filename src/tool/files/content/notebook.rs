//! Jupyter notebooks as text: cells with their outputs, instead of JSON.

use serde_json::Value;

use crate::output::{cut_middle, human};
use crate::text::clean;

/// Bytes of one output that are shown.
const OUTPUT: usize = 4_000;

/// The cells; `None` when it is not a notebook.
pub(crate) fn render(bytes: &[u8]) -> Option<String> {
    let book: Value = serde_json::from_slice(bytes).ok()?;
    let cells = book.get("cells")?.as_array()?;
    let mut out = String::new();
    for (n, cell) in cells.iter().enumerate() {
        let kind = cell["cell_type"].as_str().unwrap_or("unknown");
        let count = cell["execution_count"].as_u64().map(|c| format!(" [{c}]")).unwrap_or_default();
        out.push_str(&format!("--- cell {} {kind}{count}\n{}\n", n + 1, joined(&cell["source"]).trim_end()));
        for output in cell["outputs"].as_array().into_iter().flatten() {
            out.push_str("--- output\n");
            out.push_str(shown(output).trim_end());
            out.push('\n');
        }
    }
    Some(out)
}

/// Text in notebooks is a string or a list of lines.
fn joined(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

fn shown(output: &Value) -> String {
    let text = match output["output_type"].as_str().unwrap_or_default() {
        "stream" => joined(&output["text"]),
        "error" => {
            let trace = joined(&output["traceback"]);
            let name = format!("{}: {}", joined(&output["ename"]), joined(&output["evalue"]));
            if trace.is_empty() { name } else { format!("{name}\n{trace}") }
        }
        _ => data(&output["data"]),
    };
    let text = clean(text.as_bytes());
    cut_middle(&text, OUTPUT, "the full output is in the notebook's JSON").unwrap_or(text)
}

fn data(data: &Value) -> String {
    let plain = joined(&data["text/plain"]);
    let others = data.as_object().into_iter().flatten().filter(|(kind, _)| *kind != "text/plain");
    let others: Vec<String> =
        others.map(|(kind, v)| format!("[{kind}, {}]", human(joined(v).len() as u64))).collect();
    format!("{plain}\n{}", others.join(" "))
}
