//! Dialogs on the screen: recognised by rules of the adapter, answered by rule or by asking, each once.

use std::time::Duration;
use tiller_protocol::ToolVerb;

use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::driver::{DIALOG, Driver, RunEnd, STILL};
use super::scan::{Scan, marked};
use super::stability::same;
use super::typing::keys;
use crate::adapter::{Dialog, DialogOption, Kind};
use crate::choice::choose;
use crate::event::{AgentEvent, Answer, Choice, ChoiceKind, Question, ToolUse};

/// Time for a dialog to be drawn again in another size.
pub(super) const RESIZED: Duration = Duration::from_secs(2);
/// Time between two keys that move the selection of a list, while nothing is drawn.
pub(super) const STEP: Duration = Duration::from_secs(1);
/// Maximum number of keys that move the selection.
const STEPS: u32 = 30;

/// State of the dialog on the screen.
#[derive(Debug)]
pub(super) enum DialogState {
    None,
    /// Sent to the engine as a question.
    Asked {
        name: String,
        shown: String,
        answer: oneshot::Receiver<Answer>,
    },
    /// The selection of its list is being moved to the line of `option`; Enter follows when it is visible there.
    Moving {
        name: String,
        shown: String,
        option: Box<DialogOption>,
        steps: u32,
        at: Instant,
    },
    /// Answered; it must disappear. There is no second attempt.
    Answered {
        name: String,
        shown: String,
        at: Instant,
    },
}

impl Driver {
    /// Handles dialogs: answers by rule, or asks; each once.
    pub(super) async fn dialogs(&mut self, scan: &Scan, now: Instant) -> Result<(), RunEnd> {
        let screen = scan.text.as_str();
        let Some(dialog) = scan.dialog(&self.pty).cloned() else {
            // It disappeared, by our answer or by a person's keys; a waiting question is withdrawn.
            self.dialog = DialogState::None;
            return Ok(());
        };
        let shown = part(screen, &dialog);
        let resized = self.view.resized.is_some_and(|t| now.duration_since(t) < RESIZED);
        match &mut self.dialog {
            DialogState::Asked { name, shown: before, .. }
                if *name == dialog.name && (same(before, &shown) || resized) =>
            {
                // In another size it shows more or less of itself; it is the same question.
                *before = shown;
                return Ok(());
            }
            DialogState::Moving { name, shown: before, .. }
                if *name == dialog.name && same(before, &shown) =>
            {
                if self.moves(screen, now) {
                    return Ok(());
                }
                self.untaken(&dialog.name).await?;
            }
            DialogState::Answered { name, shown: before, at }
                if *name == dialog.name && same(before, &shown) =>
            {
                if now.duration_since(*at) < DIALOG {
                    return Ok(());
                }
                self.untaken(&dialog.name).await?;
            }
            // It is still being drawn.
            _ if now.duration_since(self.view.changed) < STILL => return Ok(()),
            // A different dialog than before, or the first.
            _ => {
                // Rules decide about its action, whatever the job approves.
                let auto = dialog.auto.as_ref().filter(|_| self.run.job.auto_approve && !dialog.permission);
                let rule = dialog.rule.as_ref().or(auto);
                if let Some(option) = rule.and_then(|id| dialog.option.iter().find(|o| o.id == *id)) {
                    self.choose(&dialog, shown, option, now);
                    return Ok(());
                }
            }
        }
        let options: Vec<Choice> = dialog.option.iter().map(choice).collect();
        let what = if dialog.permission {
            Question::Permission {
                tool: Box::new(tool(screen, &dialog)),
                shown: shown.clone(),
                diffs: Vec::new(),
                options,
                by_screen: true,
            }
        } else {
            Question::Choose { text: shown.clone(), options, free_text: false }
        };
        let answer = self.run.out.ask(None, what).await?;
        self.dialog = DialogState::Asked { name: dialog.name, shown, answer };
        Ok(())
    }

    async fn untaken(&mut self, name: &str) -> Result<(), RunEnd> {
        let note = format!("its dialog \"{name}\" did not accept the answer; it is waiting for you");
        Ok(self.run.out.send(AgentEvent::Note(note)).await?)
    }

    /// Types the engine's answer to a dialog, only while that very dialog is on the screen.
    pub(super) async fn answer(&mut self, answer: Answer) -> Result<(), RunEnd> {
        let DialogState::Asked { name, shown, .. } = std::mem::replace(&mut self.dialog, DialogState::None)
        else {
            return Ok(());
        };
        let scan = Scan::new(self.pane.screen.visible(), &self.pty);
        let dialog = scan.dialog(&self.pty).cloned();
        let Some(dialog) = dialog.filter(|d| d.name == name && same(&part(&scan.text, d), &shown)) else {
            let note = format!("its dialog \"{name}\" changed before it was answered; nothing was typed");
            self.run.out.send(AgentEvent::Note(note)).await?;
            return Ok(());
        };
        let options: Vec<Choice> = dialog.option.iter().map(choice).collect();
        let chosen = choose(&options, &answer).and_then(|c| dialog.option.iter().find(|o| o.id == c.id));
        match chosen {
            Some(option) => self.choose(&dialog, shown, option, Instant::now()),
            None => {
                self.press(keys("<esc>"));
                self.dialog = DialogState::Answered { name, shown, at: Instant::now() };
            }
        }
        Ok(())
    }

    /// Selects an option of the dialog on the screen.
    fn choose(&mut self, dialog: &Dialog, shown: String, option: &DialogOption, now: Instant) {
        let name = dialog.name.clone();
        if option.line.is_none() {
            self.press(keys(&option.keys));
            self.dialog = DialogState::Answered { name, shown, at: now };
            return;
        }
        let at = now.checked_sub(STEP).unwrap_or(now);
        self.dialog = DialogState::Moving { name, shown, option: Box::new(option.clone()), steps: 0, at };
    }

    /// Moves the selection one line closer to the option, or confirms it there. False: it is not possible.
    fn moves(&mut self, screen: &str, now: Instant) -> bool {
        let DialogState::Moving { name, shown, option, steps, at } = &mut self.dialog else { return false };
        let Some(pattern) = &option.line else { return false };
        let lines: Vec<&str> = screen.lines().collect();
        let wanted = lines.iter().rposition(|l| pattern.found(l));
        let chosen = lines.iter().rposition(|l| marked(l, &self.pty));
        let (Some(wanted), Some(chosen)) = (wanted, chosen) else { return false };
        if wanted == chosen {
            let (name, shown) = (name.clone(), shown.clone());
            self.press(keys("<enter>"));
            self.dialog = DialogState::Answered { name, shown, at: now };
            return true;
        }
        // The last key has an effect when the screen was drawn after it; otherwise it is repeated after a while.
        if self.view.changed <= *at && now.duration_since(*at) < STEP {
            return true;
        }
        if *steps >= STEPS {
            return false;
        }
        *steps += 1;
        *at = now;
        self.press(keys(if wanted < chosen { "<up>" } else { "<down>" }));
        true
    }
}

/// The engine's answer to the open dialog; a rejection when no answer will come.
pub(super) async fn answered(dialog: &mut DialogState) -> Answer {
    match dialog {
        DialogState::Asked { answer, .. } => answer.await.unwrap_or(Answer::Kind(ChoiceKind::RejectOnce)),
        _ => std::future::pending().await,
    }
}

/// Its action, as far as the screen shows it.
fn tool(screen: &str, dialog: &Dialog) -> ToolUse {
    let command = dialog.command.iter().find_map(|p| p.group(screen));
    let command = command.map(|c| c.lines().map(str::trim).collect::<Vec<_>>().join("\n"));
    let known = ToolUse { name: dialog.name.clone(), verb: ToolVerb::Tool, ..ToolUse::default() };
    match command.filter(|c| !c.trim().is_empty()) {
        Some(command) => {
            ToolUse { verb: ToolVerb::Shell, args: json!({"command": command}), target: command, ..known }
        }
        None => known,
    }
}

/// The text of a dialog: from the paragraph before its first line to its end, without lines below the options.
fn part(screen: &str, dialog: &Dialog) -> String {
    let lines: Vec<&str> = screen.lines().collect();
    let first = lines.iter().position(|l| dialog.all.iter().any(|p| p.found(l))).unwrap_or(0);
    let from = first.saturating_sub(12);
    // Frames are left out, since they would take all the room of a line.
    let words = |l: &&str| l.chars().any(char::is_alphanumeric);
    let shown: Vec<&str> = lines[from..].iter().map(|l| l.trim_end()).skip_while(|l| !words(l)).collect();
    let to = shown.iter().rposition(words).map_or(0, |at| at + 1);
    shown[..to].join("\n").trim().to_owned()
}

fn choice(o: &DialogOption) -> Choice {
    let kind = match o.kind {
        Kind::AllowOnce => ChoiceKind::AllowOnce,
        Kind::AllowAlways => ChoiceKind::AllowAlways,
        Kind::RejectOnce => ChoiceKind::RejectOnce,
        Kind::RejectAlways => ChoiceKind::RejectAlways,
        Kind::Other => ChoiceKind::Other,
    };
    Choice { id: o.id.clone(), name: o.name.clone(), kind }
}

#[cfg(test)]
#[path = "dialogs_tests.rs"]
mod tests;
