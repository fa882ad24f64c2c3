//! The result of a run: for the model, and for the screen.

use tiller_protocol::tool::Display;
use tiller_protocol::{Part, ToolOutcome};

use super::run::{Ran, RunEnd};
use crate::ToolOutput;
use crate::foreign::printed;
use crate::shell::{BlockedAction, blocked_words};

/// Last lines of the output that the screen shows, in bytes.
const TAIL: usize = 2_000;

/// What is known after a run.
pub(super) struct Report {
    pub ran: Ran,
    pub out: String,
    pub err: String,
    /// Calls of one run.
    pub most: u32,
    /// Longest run, in seconds.
    pub limit: u64,
    /// What else the model has to know, a sentence without a full stop each.
    pub notes: Vec<String>,
    /// What the sandbox refused, where the script failed.
    pub blocked: Vec<BlockedAction>,
}

/// Sources that a frame names.
const NAMED: usize = 3;

/// The source of what a script prints that has read from these; `None`: there are none.
fn sources(foreign: &[String]) -> Option<String> {
    let named = foreign.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match foreign.len() {
        0 => None,
        n if n > NAMED => Some(format!("a script that read {named} and {} more", n - NAMED)),
        _ => Some(format!("a script that read {named}")),
    }
}

impl Report {
    /// Status in a word, outcome, and why.
    fn status(&self) -> (&'static str, ToolOutcome, Option<String>) {
        match &self.ran.end {
            RunEnd::Done(true) | RunEnd::Gone(0) => ("success", ToolOutcome::Ok, None),
            RunEnd::Done(false) => ("error", ToolOutcome::Error, None),
            RunEnd::Gone(code) => {
                ("error", ToolOutcome::Error, Some(format!("the process ended with exit code {code}")))
            }
            RunEnd::TimedOut => {
                ("timeout", ToolOutcome::TimedOut, Some(format!("ended after {} s", self.limit)))
            }
            RunEnd::Stopped => ("interrupted", ToolOutcome::Interrupted, Some("stopped by the user".into())),
            RunEnd::Broken(why) => {
                ("error", ToolOutcome::Error, Some(format!("the script was ended: {why}")))
            }
            RunEnd::NotShown(call) => (
                "error",
                ToolOutcome::Denied,
                Some(format!(
                    "stopped at `{call}`: the user was not shown this call, and the script makes other calls in each \
                     run, so the user is not asked again. What was done before it stays done"
                )),
            ),
        }
    }

    /// The output of the tool.
    pub(super) fn output(self) -> ToolOutput {
        let (status, outcome, why) = self.status();
        let seconds = self.ran.took.as_secs_f64();
        let mut text =
            format!("status: {status}\ntool_calls_made: {}\nduration_seconds: {seconds:.1}\n", self.ran.made);
        for note in why.iter().chain(&self.notes) {
            text.push_str(&format!("[{note}]\n"));
        }
        if !self.blocked.is_empty() {
            text.push_str(&format!("[The sandbox blocked {}]\n", blocked_words(&self.blocked)));
        }
        let source = sources(&self.ran.foreign);
        for (name, stream) in [("output", &self.out), ("errors", &self.err)] {
            if !stream.trim().is_empty() {
                let stream = printed(stream.trim_end().to_owned(), source.as_deref());
                text.push_str(&format!("{name}:\n{}\n", stream.trim_end()));
            }
        }
        text.truncate(text.trim_end().len());
        let shown = if self.err.trim().is_empty() { &self.out } else { &self.err };
        let mut tail = shown[shown.ceil_char_boundary(shown.len().saturating_sub(TAIL))..].to_owned();
        for note in why.iter().chain(&self.notes) {
            if !tail.is_empty() && !tail.ends_with('\n') {
                tail.push('\n');
            }
            tail.push_str(&format!("[{note}]"));
        }
        let display = Display::Calls { calls: self.ran.calls, most: self.most, tail };
        ToolOutput { content: vec![Part::Text { text }], display: Some(display), outcome }
    }
}
