//! Questions, read out with their answers by number.

use tiller_protocol::ask::{OutsideAnswer, budget_words};
use tiller_protocol::{Ask, AskBody, AskReply, Decision};

use super::Plain;

impl Plain {
    /// Prints a question with its numbered answers. One at a time: an answer is always for the question that was
    /// printed last.
    pub(crate) fn ask(&mut self, ask: &Ask) {
        if self.question.id.is_some_and(|id| id != ask.id) {
            self.say("Another question is waiting.");
            return;
        }
        self.question.id = Some(ask.id);
        self.question.unconfirmed = None;
        let yes = |text: &str| (text.to_owned(), AskReply::Yes { value: None });
        let no = |text: &str| (text.to_owned(), AskReply::Declined);
        self.question.choices = match &ask.body {
            AskBody::Permission(p) => {
                let name = self.model.path_of(&ask.agent);
                self.say(&format!("Permission: {name} wants to {}:\n{}", p.wants(), p.shown));
                if let Some(diff) = &p.diff {
                    self.say(diff);
                }
                if let Some(source) = &p.source {
                    self.say(&format!("From: {source}"));
                }
                for e in &p.effects {
                    self.say(&format!("Effect: {e}"));
                }
                self.say(&format!("Asked because: {}. Folder: {}. Reason: {}", p.rule, p.folder, p.why));
                let reply = |decision| AskReply::Permission { decision, hash: p.hash.clone() };
                let mut all = vec![("no".to_owned(), reply(Decision::Deny { comment: None }))];
                if p.outside != OutsideAnswer::Only {
                    all.push(("yes, once".to_owned(), reply(Decision::Once)));
                }
                if p.outside != OutsideAnswer::No {
                    all.push(("yes, outside the sandbox".to_owned(), reply(Decision::Outside)));
                }
                if let Some(pattern) = &p.always {
                    let pattern = pattern.clone();
                    let text = format!("yes, in this session, for calls that match {pattern}");
                    all.push((text, reply(Decision::Session { pattern: pattern.clone() })));
                    let text = format!("yes, always, for calls that match {pattern}");
                    all.push((text, reply(Decision::Always { pattern })));
                }
                all
            }
            AskBody::Clarify { question, choices, allow_freetext, .. } => {
                self.say(&format!("Question: {question}"));
                if *allow_freetext {
                    self.say("You can also type your own answer.");
                }
                let mut all: Vec<_> = choices
                    .iter()
                    .map(|c| (c.clone(), AskReply::Choice { answers: vec![c.clone()] }))
                    .collect();
                all.push(no("no answer"));
                all
            }
            AskBody::Trust { folder, brings, .. } => {
                self.say(&format!("Trust: {folder} contains files that can run programs or loosen rules."));
                for b in brings {
                    let gap = if b.detail.is_empty() { "" } else { ", " };
                    self.say(&format!("It contains {}: {}{gap}{}", b.title(), b.path, b.detail));
                }
                vec![no("not now"), yes("trust them in this form")]
            }
            AskBody::Budget { what, spent, limit, next } => {
                self.say(&format!("Budget: {what}: {}.", budget_words(spent, limit, next.as_deref())));
                vec![no("stop"), yes("continue")]
            }
            AskBody::Plan { file, plan } => {
                self.say(&format!("Plan:\n{plan}\nThe plan is in {file}; you can edit it there first."));
                self.say("Type any other text to request changes.");
                vec![no("no, not yet"), ("discard it".into(), AskReply::Never), yes("approve it")]
            }
            AskBody::DeepTier { model, why } => {
                self.say(&format!("Expensive model: {model}, because {why}"));
                vec![no("no"), yes("use it")]
            }
            AskBody::Repeats { calls, rounds } => {
                self.say(&format!("Repeated calls: same calls, same results, {rounds} times: {calls}"));
                vec![no("stop"), yes("continue")]
            }
            AskBody::Unpriced { model, why } => {
                self.say(&format!("Model without a known price: {model}; {why}"));
                vec![no("no"), yes("use it")]
            }
            AskBody::SessionBusy { holder } => {
                self.say(&format!("This session is open in process {holder}."));
                vec![
                    ("open read-only".into(), AskReply::ReadOnly),
                    ("continue on a branch of it".into(), AskReply::Branch),
                ]
            }
            AskBody::NotSaving { why } => {
                self.say(&format!("The session cannot be saved: {why}"));
                vec![no("stop"), yes("continue without saving")]
            }
        };
        let lines: Vec<String> =
            self.question.choices.iter().enumerate().map(|(i, (t, _))| format!("{}: {t}", i + 1)).collect();
        let why = if matches!(ask.body, AskBody::Permission(_)) {
            " To deny with a reason, type 1 and the reason."
        } else {
            ""
        };
        self.say(&format!("Type a number.{why}\n{}", lines.join("\n")));
        self.read_out();
    }
}
