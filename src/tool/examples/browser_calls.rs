//! Calls of the browser tools from standard input, each a line `{"tool": "click", "args": {...}}`; the result of each is a
//! line with a JSON text. For scripts that drive real pages: `tests/browser/miniwob.py`.

use std::io::{BufRead, Write};

use serde_json::Value;
use tiller_tool::browser::{BrowserSettings, tools};
use tiller_tool::testing::Bench;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let settings = BrowserSettings::local(&std::env::var("PATH").unwrap_or_default());
    let (bench, tools) = (Bench::new(), tools(settings));
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let call: Value = serde_json::from_str(&line?)?;
        let name = format!("browser_{}", call["tool"].as_str().unwrap_or_default());
        let said = match tools.iter().find(|t| t.name() == name) {
            Some(tool) => bench.say(*tool, call["args"].clone()).await,
            None => format!("error: there is no tool {name}"),
        };
        writeln!(out, "{}", Value::String(said))?;
        out.flush()?;
    }
    bench.cx.state.browser.end().await;
    Ok(())
}
