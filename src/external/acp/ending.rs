//! Classifies how a run ended.

use super::super::adapter::Adapter;
use super::super::event::{CUT_OFF, Ending, Status};
use super::super::run::Run;
use super::client::RequestFailure;
use super::session;
use tiller_rpc::Error;

/// The ending, from the result, the exit code and the error output.
pub(super) fn judge(
    result: Result<String, RequestFailure>,
    exit: Option<i32>,
    errors: &str,
    run: &Run,
) -> Ending {
    let adapter = &run.job.adapter;
    let last: Vec<&str> = errors.lines().rev().take(5).collect();
    let last = last.into_iter().rev().collect::<Vec<_>>().join("\n");
    let (status, why) = match result {
        Ok(stop) => match stop.as_str() {
            "end_turn" => (Status::Done, String::new()),
            "cancelled" => (Status::Cancelled, "stopped".into()),
            "refusal" => (Status::Failed, "it refused to continue".into()),
            "max_tokens" => (Status::Failed, CUT_OFF.into()),
            "max_turn_requests" => (Status::Failed, "it used up its requests for one turn".into()),
            other => (Status::Failed, format!("it stopped for an unknown reason: {other}")),
        },
        Err(RequestFailure::Error(e)) => (Status::Failed, login(adapter, &e, errors)),
        Err(RequestFailure::Ended) => {
            let why = match exit {
                Some(code) if code > 128 => format!("it was ended by signal {}", code - 128),
                Some(code) => format!("it ended with exit code {code} before it was done"),
                None => "it closed its output before it was done".into(),
            };
            let why = if last.is_empty() { why } else { format!("{why}: {last}") };
            (Status::Crashed, with_fix(adapter, why, errors))
        }
        Err(RequestFailure::Cancelled) => (Status::Cancelled, "stopped".into()),
        Err(RequestFailure::Wall) => {
            (Status::TimedOut, format!("it ran for longer than {} s", run.job.limits.wall.as_secs()))
        }
        Err(RequestFailure::Idle) => {
            (Status::TimedOut, format!("it was silent for {} s", run.job.limits.idle.as_secs()))
        }
        Err(RequestFailure::TooMuch) => {
            (Status::Failed, format!("it wrote more than {} MB", run.job.limits.output >> 20))
        }
    };
    Ending { exit, ..Ending::new(status, why) }
}

fn login(adapter: &Adapter, error: &Error, errors: &str) -> String {
    let why = error.text();
    if session::wants_login(error) && !adapter.auth.fix.is_empty() {
        return format!("{why}; it is not logged in: {}", adapter.auth.fix);
    }
    with_fix(adapter, why, errors)
}

fn with_fix(adapter: &Adapter, why: String, errors: &str) -> String {
    let all = format!("{why}\n{errors}");
    if adapter.auth.missing.iter().any(|p| p.found(&all)) {
        return format!("{why}; it is not logged in: {}", adapter.auth.fix);
    }
    why
}
