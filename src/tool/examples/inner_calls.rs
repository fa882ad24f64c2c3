//! Prints what a call of a tool costs a script, as the script itself sees it, without the engine's part (rules, audit,
//! entries): `cargo run -p tiller-tool --features testing --example inner_calls`.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and ends at the first fault")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tiller_tool::Tool;
use tiller_tool::code::ExecuteCode;
use tiller_tool::files::ReadFile;
use tiller_tool::testing::Bench;

const CALLS: u32 = 1_000;

#[tokio::main]
async fn main() {
    let mut bench = Bench::new();
    let mut env = (*bench.cx.child_env).clone();
    env.retain(|(name, _)| name != "PATH");
    env.push(("PATH".into(), std::env::var("PATH").unwrap_or_default()));
    bench.cx.child_env = Arc::new(env);
    let read: &'static dyn Tool = &ReadFile;
    bench.ports.tools.0.lock().unwrap().push(read);
    let bench = bench.limits(|limits| {
        limits.code.time = Duration::from_secs(600);
        limits.code.calls = CALLS;
    });
    std::fs::write(bench.root.join("a.txt"), "hello\n").unwrap();
    let code = format!(
        "import time\nfrom tiller_tools import *\ntook = []\nfor n in range({CALLS}):\n    began = time.perf_counter()\n    \
         read_file(path='a.txt')\n    took.append(time.perf_counter() - began)\ntook.sort()\n\
         print('p50 %.3f ms   p95 %.3f ms' % (took[len(took) // 2] * 1e3, took[len(took) * 95 // 100] * 1e3))\n"
    );
    println!("{}", bench.say(&ExecuteCode, json!({ "code": code })).await);
}
