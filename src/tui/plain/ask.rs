//! Questions, read out with their answers by number.

use tiller_protocol::{Ask, AskBody, AskReply, Decision};

use super::Plain;

impl Plain {
    /// Reads a question out, with its answers by number. One at a time: an answer can only be for what
    /// was read out last.
    pub(crate) fn ask(&mut self, ask: &Ask) {
        if self.asked.is_some_and(|id| id != ask.id) {
            self.say("Another question waits.");
            return;
        }
        self.asked = Some(ask.id);
        self.sure = None;
        let yes = |text: &str| (text.to_owned(), AskReply::Yes { value: None });
        let no = |text: &str| (text.to_owned(), AskReply::Declined);
        self.choices = match &ask.body {
            AskBody::Permission(p) => {
                let name = self.model.path_of(&ask.agent);
                self.say(&format!("Permission: {name} wants to {}:\n{}", p.verb, p.shown));
                if let Some(diff) = &p.diff {
                    self.say(diff);
                }
                for e in &p.effects {
                    self.say(&format!("Effect: {e}"));
                }
                self.say(&format!("Rule: {}. Folder: {}. Reason: {}", p.rule, p.folder, p.why));
                let reply = |decision| AskReply::Permission { decision, hash: p.hash.clone() };
                let mut all = vec![
                    ("no".to_owned(), reply(Decision::Deny { comment: None })),
                    ("yes, once".to_owned(), reply(Decision::Once)),
                ];
                if let Some(pattern) = &p.always {
                    let pattern = pattern.clone();
                    let text = format!("yes, in this session, whatever matches {pattern}");
                    all.push((text, reply(Decision::Session { pattern: pattern.clone() })));
                    let text = format!("yes, always, whatever matches {pattern}");
                    all.push((text, reply(Decision::Always { pattern })));
                }
                all
            }
            AskBody::Clarify { question, choices, allow_freetext, .. } => {
                self.say(&format!("Question: {question}"));
                if *allow_freetext {
                    self.say("Any other text is an answer too.");
                }
                let mut all: Vec<_> = choices
                    .iter()
                    .map(|c| (c.clone(), AskReply::Choice { answers: vec![c.clone()] }))
                    .collect();
                all.push(no("no answer"));
                all
            }
            AskBody::Trust { folder, brings, .. } => {
                self.say(&format!("Trust: {folder} brings things that could run."));
                for b in brings {
                    self.say(&format!("It brings {}: {}, {}", b.kind, b.path, b.detail));
                }
                vec![no("not now"), yes("trust exactly these")]
            }
            AskBody::Budget { what, spent, limit } => {
                self.say(&format!("Budget: {what}: {spent} of {limit} is spent."));
                vec![no("stop"), yes("go on")]
            }
            AskBody::Plan { file, plan } => {
                self.say(&format!("Plan:\n{plan}\nIt is in {file}; you may change it there first."));
                self.say("Any other text says what to change.");
                vec![no("no, not yet"), ("drop it".into(), AskReply::Never), yes("work by it")]
            }
            AskBody::DeepTier { model, why } => {
                self.say(&format!("Expensive model: {model}, because {why}"));
                vec![no("no"), yes("use it")]
            }
            AskBody::Unpriced { model, why } => {
                self.say(&format!("Model without a known price: {model}; {why}"));
                vec![no("no"), yes("use it all the same")]
            }
            AskBody::SessionBusy { holder } => {
                self.say(&format!("This session is open in process {holder}."));
                vec![
                    ("only look".into(), AskReply::ReadOnly),
                    ("work on a branch of it".into(), AskReply::Branch),
                ]
            }
            AskBody::NotSaving { why } => {
                self.say(&format!("The session cannot be saved: {why}"));
                vec![no("stop"), yes("go on without saving")]
            }
        };
        let lines: Vec<String> =
            self.choices.iter().enumerate().map(|(i, (t, _))| format!("{}: {t}", i + 1)).collect();
        let why =
            if matches!(ask.body, AskBody::Permission(_)) { " 1 and a text says no and why." } else { "" };
        self.say(&format!("Type a number.{why}\n{}", lines.join("\n")));
    }
}
