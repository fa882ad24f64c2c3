//! A scripted external agent, for tests of code that consumes its events.

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
