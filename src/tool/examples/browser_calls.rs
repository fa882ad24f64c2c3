//! Calls of the browser tools from standard input, each a line `{"tool": "click", "args": {...}}`; the result of each is a
//! line with a JSON text. For scripts that drive real pages: `tests/browser/miniwob.py`.
//!
//! `--rows N`: the times of calls on a page with a table of N rows instead, each with a link and a button.

use std::io::{BufRead, Read, Write};
use std::net::TcpListener;
use std::time::Instant;

use serde_json::{Value, json};
use tiller_tool::Tool;
use tiller_tool::browser::{BrowserSettings, tools};
use tiller_tool::testing::Bench;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let settings = BrowserSettings::local(&std::env::var("PATH").unwrap_or_default());
    let (bench, tools) = (Bench::new(), tools(settings));
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("--rows") {
        for rows in arguments.filter_map(|n| n.parse().ok()) {
            time_rows(&bench, &tools, rows).await?;
        }
        bench.cx.state.browser.end().await;
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let call: Value = serde_json::from_str(&line?)?;
        let said =
            call_tool(&bench, &tools, call["tool"].as_str().unwrap_or_default(), call["args"].clone()).await;
        writeln!(out, "{}", Value::String(said))?;
        out.flush()?;
    }
    bench.cx.state.browser.end().await;
    Ok(())
}

async fn call_tool(bench: &Bench, tools: &[&'static dyn Tool], name: &str, args: Value) -> String {
    let name = format!("browser_{name}");
    match tools.iter().find(|t| t.name() == name) {
        Some(tool) => bench.say(*tool, args).await,
        None => format!("error: there is no tool {name}"),
    }
}

/// Writes how long calls take on a page of so many rows.
async fn time_rows(bench: &Bench, tools: &[&'static dyn Tool], rows: usize) -> std::io::Result<()> {
    let row = |n| {
        format!("<tr><td>{n}<td><a href=\"/row/{n}\">Row {n}</a><td>text {n}<td><button>Edit</button></tr>")
    };
    let table: String = (1..=rows).map(row).collect();
    let page = format!(
        "<!doctype html><title>Rows</title><table><tr><th>No<th>Name<th>Text<th></tr>{table}</table>"
    );
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/", listener.local_addr()?);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                page.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(page.as_bytes()));
        }
    });
    let mut out = std::io::stdout().lock();
    let calls = [
        ("navigate", json!({ "url": url })),
        ("snapshot", json!({})),
        ("snapshot", json!({"changes": true})),
        ("scroll", json!({"to": "down"})),
    ];
    for (name, args) in calls {
        let begun = Instant::now();
        let said = call_tool(bench, tools, name, args).await;
        writeln!(out, "{rows} rows, {name}: {} ms, {} bytes", begun.elapsed().as_millis(), said.len())?;
    }
    Ok(())
}
