//! Prints what a call of the persistent shell costs: `cargo run -p tiller-tool --features testing
//! --example shell_bench`.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and ends at the first fault")]

use std::time::{Duration, Instant};

use serde_json::json;
use tiller_tool::shell::Terminal;
use tiller_tool::testing::Bench;

const CALLS: usize = 2000;

#[tokio::main]
async fn main() {
    let bench = Bench::new();
    let begun = Instant::now();
    bench.call(&Terminal, json!({ "command": "true" })).await.unwrap();
    println!("first call, starts the shell   {:>8.0} µs", micros(begun.elapsed()));
    for command in ["true", "pwd; echo $?", "/bin/true"] {
        let cpu = cpu();
        let mut times = Vec::with_capacity(CALLS);
        for _ in 0..CALLS {
            let begun = Instant::now();
            bench.call(&Terminal, json!({ "command": command })).await.unwrap();
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let cpu = (self::cpu() - cpu).as_secs_f64() * 1e6 / CALLS as f64;
        println!(
            "{command:<16} p50 {:>6.0} µs   p95 {:>6.0} µs   own CPU {cpu:>5.0} µs a call",
            micros(times[CALLS / 2]),
            micros(times[CALLS * 95 / 100]),
        );
    }
    bench.cx.state.shells.shutdown().await;
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// User and system time of this process.
fn cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}
