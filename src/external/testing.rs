//! A scripted external agent, for tests of code that consumes its events; readers of what programs report and draw.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::control::{Command, Control, DriverControl};
use super::event::{AgentEvent, Ending, Status};

/// One step of a script.
#[allow(clippy::large_enum_variant, reason = "a script is short")]
#[derive(Debug)]
pub enum Step {
    Say(AgentEvent),
    /// Waits for a message to it, which counts as delivered; returns it as text, after `> `.
    Listen,
    /// Waits until it is stopped.
    Hang,
}

/// Plays `steps`, then ends with `text`. Stopping it ends it as cancelled.
pub fn scripted(steps: Vec<Step>, text: &str) -> (Control, mpsc::Receiver<AgentEvent>) {
    let (control, driver) = Control::new();
    let (tx, rx) = mpsc::channel(256);
    tokio::spawn(play(steps.into(), text.to_owned(), driver, tx));
    (control, rx)
}

async fn play(
    mut steps: VecDeque<Step>,
    text: String,
    mut control: DriverControl,
    out: mpsc::Sender<AgentEvent>,
) {
    let ending = |status, why: &str| {
        AgentEvent::Ended(Ending {
            status,
            text: text.clone(),
            exit: (status == Status::Done).then_some(0),
            why: why.into(),
            files: Vec::new(),
        })
    };
    while let Some(step) = steps.pop_front() {
        let stopped = match step {
            Step::Say(said) => {
                tokio::select! {
                    biased;
                    () = control.soft.cancelled() => true,
                    () = control.hard.cancelled() => true,
                    sent = out.send(said) => sent.is_err(),
                }
            }
            Step::Listen | Step::Hang => {
                let listens = matches!(step, Step::Listen);
                tokio::select! {
                    biased;
                    () = control.soft.cancelled() => true,
                    () = control.hard.cancelled() => true,
                    Some(Command::Say { id, text }) = control.commands.recv(), if listens => {
                        let _ = out.send(AgentEvent::Delivered { id }).await;
                        let _ = out.send(AgentEvent::Text(format!("> {text}"))).await;
                        false
                    }
                }
            }
        };
        if stopped {
            let _ = out.send(ending(Status::Cancelled, "stopped")).await;
            return;
        }
    }
    let _ = out.send(ending(Status::Done, "")).await;
}

/// The names of the formats of [`Reports`].
pub const FORMATS: [&str; 6] = ["acp", "claude", "codex", "gemini", "opencode", "text"];

/// Reads what a program reports, line by line, without the program.
pub struct Reports(Reader);

enum Reader {
    Acp(Box<crate::acp::updates::Updates>),
    Records(Box<dyn crate::headless::Records>),
}

impl Reports {
    /// For a format of [`FORMATS`].
    pub fn new(format: &str) -> Self {
        match crate::headless::reader_for_tests(format) {
            Some(records) => Self(Reader::Records(records)),
            None => Self(Reader::Acp(Box::default())),
        }
    }

    /// The events of a line.
    pub fn line(&mut self, line: &[u8]) -> Vec<AgentEvent> {
        let text = String::from_utf8_lossy(line);
        let mut out = Vec::new();
        match &mut self.0 {
            Reader::Records(records) => records.line(&text, &mut out),
            Reader::Acp(updates) => match tiller_rpc::Message::read_lenient(&text) {
                Some(tiller_rpc::Message::Notification { params, .. }) => {
                    updates.take(&params["update"], &mut out)
                }
                Some(tiller_rpc::Message::Request { params, .. }) => {
                    updates.call(&params["toolCall"], &mut out);
                }
                _ => {}
            },
        }
        out
    }

    /// The answer so far; of some programs only at the end.
    pub fn text(&mut self) -> String {
        match &mut self.0 {
            Reader::Records(records) => records.report(Some(0)).text,
            Reader::Acp(updates) => updates.text.clone(),
        }
    }
}

pub use crate::pty::testing::Pane;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Receipt;

    #[tokio::test]
    async fn a_script_is_played_listens_and_stops() {
        let (control, mut said) =
            scripted(vec![Step::Say(AgentEvent::Text("a".into())), Step::Listen, Step::Hang], "all");
        assert!(matches!(said.recv().await, Some(AgentEvent::Text(t)) if t == "a"));
        let Receipt::Queued { id } = control.say("hello") else { panic!("queued") };
        assert!(matches!(said.recv().await, Some(AgentEvent::Delivered { id: d }) if d == id));
        assert!(matches!(said.recv().await, Some(AgentEvent::Text(t)) if t == "> hello"));
        control.stop(false);
        assert!(matches!(said.recv().await, Some(AgentEvent::Ended(e)) if e.status == Status::Cancelled));
        assert!(said.recv().await.is_none());
        assert!(matches!(control.say("late"), Receipt::Missed { .. }));
    }
}
