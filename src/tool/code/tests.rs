//! Scripts against real processes.

mod faults;
mod rules;
mod runs;

use serde_json::json;
use tiller_protocol::ToolOutcome;

use super::ExecuteCode;
use crate::ToolOutput;
use crate::testing::{Bench, text_of};

/// A bench whose scripts have the file tools and `terminal`; `None`: there is no python3 here.
pub(super) fn bench() -> Option<Bench> {
    let b = Bench::new();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut cx = b.cx.clone();
    let mut env = (*cx.child_env).clone();
    env.iter_mut().filter(|(name, _)| name == "PATH").for_each(|(_, value)| value.clone_from(&path));
    cx.child_env = std::sync::Arc::new(env);
    let b = Bench { cx, ..b };
    if super::find_python("python3", &b.cx.child_env, &b.root).is_none() {
        eprintln!("skipped: there is no python3");
        return None;
    }
    let tools: [&'static dyn crate::Tool; 5] = [
        &crate::files::ReadFile,
        &crate::files::WriteFile,
        &crate::files::Search,
        &crate::files::Patch,
        &crate::shell::Terminal,
    ];
    *tiller_protocol::lock(&b.ports.tools.0) = tools.to_vec();
    Some(b.limits(|limits| limits.code.time = std::time::Duration::from_secs(600)))
}

pub(super) async fn run(b: &Bench, code: &str) -> ToolOutput {
    b.call(&ExecuteCode, json!({"code": code})).await.unwrap()
}

/// Outcome and text of a run.
pub(super) async fn said(b: &Bench, code: &str) -> (ToolOutcome, String) {
    let out = run(b, code).await;
    (out.outcome, text_of(&out.content))
}

/// What the script printed.
pub(super) fn output(text: &str) -> &str {
    text.split_once("\noutput:\n").map_or("", |(_, rest)| rest.split("\nerrors:\n").next().unwrap_or(rest))
}
