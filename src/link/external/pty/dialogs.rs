//! Dialogs on the screen: recognised by rules of the adapter, answered by rule or asked, each once.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::driver::{DIALOG, Driver, STILL, Stop};
use super::typing::keys;
use crate::external::adapter::{Dialog, DialogOption, Kind};
use crate::external::choice::choose;
use crate::external::said::{Answer, Choice, ChoiceKind, Question, Said, ToolUse};

/// For a dialog to be drawn again in another size.
const RESIZED: Duration = Duration::from_secs(2);

/// A dialog that is on the screen.
#[derive(Debug)]
pub(super) enum Open {
    None,
    /// Asked of the engine.
    Asked {
        name: String,
        shown: String,
        answer: oneshot::Receiver<Answer>,
    },
    /// Answered; it has to go. There is no second try.
    Answered {
        name: String,
        shown: String,
        at: Instant,
    },
}

impl Driver {
    /// Dialogs: answered by rule, or asked; each once.
    pub(super) async fn dialogs(&mut self, screen: &str, now: Instant) -> Result<(), Stop> {
        let found = self.pty.dialog.iter().find(|d| d.all.iter().all(|p| p.found(screen))).cloned();
        let Some(dialog) = found else {
            // It went: by our answer, or by a person's keys; a question that waits is withdrawn.
            self.dialog = Open::None;
            return Ok(());
        };
        let shown = part(screen, &dialog);
        let resized = self.resized.is_some_and(|t| now.duration_since(t) < RESIZED);
        match &mut self.dialog {
            Open::Asked { name, shown: before, .. }
                if *name == dialog.name && (same(before, &shown) || resized) =>
            {
                // In another size it shows more or less of itself; it is the same question.
                *before = shown;
                return Ok(());
            }
            Open::Answered { name, shown: before, at } if *name == dialog.name && same(before, &shown) => {
                if now.duration_since(*at) < DIALOG {
                    return Ok(());
                }
                let note = format!("its dialog \"{name}\" did not take the answer; it waits for you");
                self.run.out.send(Said::Note(note)).await?;
            }
            // It is still being drawn.
            _ if now.duration_since(self.changed) < STILL => return Ok(()),
            // Another than before, or the first.
            _ => {
                let auto = dialog.auto.as_ref().filter(|_| self.run.job.auto_approve);
                let rule = dialog.rule.as_ref().or(auto);
                if let Some(option) = rule.and_then(|id| dialog.option.iter().find(|o| o.id == *id)) {
                    self.press(keys(&option.keys));
                    self.dialog = Open::Answered { name: dialog.name.clone(), shown, at: now };
                    return Ok(());
                }
            }
        }
        let options: Vec<Choice> = dialog.option.iter().map(choice).collect();
        let what = if dialog.permission {
            let tool = ToolUse { name: dialog.name.clone(), verb: "tool".into(), ..ToolUse::default() };
            let tool = Box::new(tool);
            Question::Permission { tool, shown: shown.clone(), diffs: Vec::new(), options }
        } else {
            Question::Choose { text: shown.clone(), options, free_text: false }
        };
        let answer = self.run.out.ask(None, what).await?;
        self.dialog = Open::Asked { name: dialog.name, shown, answer };
        Ok(())
    }

    /// The engine's answer to a dialog. It is typed only while that very dialog is on the screen.
    pub(super) async fn answer(&mut self, answer: Answer) -> Result<(), Stop> {
        let Open::Asked { name, shown, .. } = std::mem::replace(&mut self.dialog, Open::None) else {
            return Ok(());
        };
        let screen = self.pane.screen.lock().visible();
        let dialog = self.pty.dialog.iter().find(|d| d.all.iter().all(|p| p.found(&screen))).cloned();
        let Some(dialog) = dialog.filter(|d| d.name == name && same(&part(&screen, d), &shown)) else {
            let note = format!("its dialog \"{name}\" changed before it was answered; nothing was typed");
            self.run.out.send(Said::Note(note)).await?;
            return Ok(());
        };
        let options: Vec<Choice> = dialog.option.iter().map(choice).collect();
        let chosen = choose(&options, &answer).and_then(|c| dialog.option.iter().find(|o| o.id == c.id));
        let typed = chosen.map_or_else(|| "<esc>".to_owned(), |o| o.keys.clone());
        self.press(keys(&typed));
        self.dialog = Open::Answered { name, shown, at: Instant::now() };
        Ok(())
    }
}

/// The answer of the engine to the open dialog. When nobody will answer: no.
pub(super) async fn answered(dialog: &mut Open) -> Answer {
    match dialog {
        Open::Asked { answer, .. } => answer.await.unwrap_or(Answer::Kind(ChoiceKind::RejectOnce)),
        _ => std::future::pending().await,
    }
}

/// What a dialog shows: from the paragraph before its first line to its end, without what is below the options.
fn part(screen: &str, dialog: &Dialog) -> String {
    let lines: Vec<&str> = screen.lines().collect();
    let first = lines.iter().position(|l| dialog.all.iter().any(|p| p.found(l))).unwrap_or(0);
    let from = first.saturating_sub(12);
    // Frames around it say nothing, and would be all that a line for it has room for.
    let words = |l: &&str| l.chars().any(char::is_alphanumeric);
    let shown: Vec<&str> = lines[from..].iter().map(|l| l.trim_end()).skip_while(|l| !words(l)).collect();
    let to = shown.iter().rposition(words).map_or(0, |at| at + 1);
    shown[..to].join("\n").trim().to_owned()
}

/// Whether two looks show the same dialog: spinners and clocks around it do not count.
fn same(a: &str, b: &str) -> bool {
    let letters = |s: &str| s.chars().filter(|c| c.is_alphabetic()).collect::<String>();
    letters(a) == letters(b)
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
mod tests {
    use super::*;
    use crate::external::adapter::Adapters;

    #[test]
    fn what_is_shown_of_a_dialog_begins_and_ends_with_words() {
        let claude = Adapters::new(&[]).get("claude").unwrap();
        let dialog = &claude.pty.as_ref().unwrap().dialog[0];
        let screen =
            "\n──────\n Quick safety check: yes?\n\n ❯ 1. Yes, I trust this folder\n   2. No, exit\n──────\n";
        let shown = part(screen, dialog);
        assert!(shown.starts_with("Quick safety check") && shown.ends_with("2. No, exit"), "{shown}");
        assert_eq!(part("──\n──", dialog), "");
    }
}
