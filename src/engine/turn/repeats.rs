//! Rounds of calls that repeat: a model that makes the same calls and gets the same results goes round in circles.

use std::hash::{DefaultHasher, Hash, Hasher};

use tiller_protocol::{Part, ToolCall};

use super::state::CallResult;

/// Equal rounds in a row after which the model gets a note.
pub const TELL: u32 = 3;

/// What the rounds so far ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    GoOn,
    /// Adds a note for the model that it repeats itself.
    Tell,
    /// The person is asked whether it goes on. So many equal rounds in a row.
    Ask(u32),
}

/// Compares each round of calls with the one before it.
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    /// Of the round that runs.
    now: DefaultHasher,
    /// Names of its calls, for people.
    names: Vec<String>,
    last: Option<u64>,
    /// Equal rounds in a row.
    rounds: u32,
}

impl Repeats {
    /// A call of the present round has its result.
    pub fn call(&mut self, call: &ToolCall, result: &CallResult) {
        call.name.hash(&mut self.now);
        call.arguments.to_string().hash(&mut self.now);
        for part in &result.content {
            match part {
                // How long it took is not what came of it.
                Part::Text { text } => {
                    text.split_whitespace().filter(|w| !seconds(w)).for_each(|w| w.hash(&mut self.now))
                }
                Part::Image { .. } => 0_u8.hash(&mut self.now),
            }
        }
        self.names.push(call.name.clone());
    }

    /// The present round is over. `limit`: equal rounds after which the person is asked; 0: never.
    pub fn round(&mut self, limit: u32) -> Verdict {
        let round = std::mem::take(&mut self.now).finish();
        self.rounds = if self.last == Some(round) { self.rounds.saturating_add(1) } else { 1 };
        self.last = Some(round);
        if limit > 0 && self.rounds >= limit {
            return Verdict::Ask(self.rounds);
        }
        self.names.clear();
        if self.rounds == TELL { Verdict::Tell } else { Verdict::GoOn }
    }

    /// The calls that repeat, and a fresh count of their rounds.
    pub fn take(&mut self) -> String {
        self.rounds = 0;
        let mut names = std::mem::take(&mut self.names);
        names.dedup();
        names.iter().map(|n| n.chars().take(60).collect::<String>()).collect::<Vec<_>>().join(", ")
    }
}

/// `0.3s`, `120ms`, `2s)`.
fn seconds(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let number = word.trim_end_matches('s').trim_end_matches('m');
    number.len() < word.len() && !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// For the model.
pub fn told() -> String {
    format!(
        "You have made the same tool calls with the same results {TELL} times in a row. Repeating them again will \
         not change the result: try something else, or say what prevents it."
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tiller_protocol::ToolOutcome;

    use super::*;

    fn round(r: &mut Repeats, arguments: &str, said: &str) -> Verdict {
        let call = ToolCall {
            id: String::new(),
            name: "terminal".into(),
            arguments: json!({"command": arguments}),
            malformed: None,
            vendor: None,
        };
        r.call(&call, &CallResult::text(ToolOutcome::Ok, said));
        r.round(6)
    }

    #[test]
    fn equal_rounds_are_told_after_three_and_asked_about_after_six() {
        let mut r = Repeats::default();
        let seen: Vec<Verdict> =
            (0..6).map(|n| round(&mut r, "make", &format!("failed in 0.{n}s"))).collect();
        use Verdict::{Ask, GoOn, Tell};
        assert_eq!(seen, [GoOn, GoOn, Tell, GoOn, GoOn, Ask(6)], "the time that it took is no difference");
        assert_eq!(r.take(), "terminal");
        assert_eq!(round(&mut r, "make", "failed in 1s"), GoOn, "a yes counts from the start");
    }

    #[test]
    fn another_result_or_another_call_begins_again() {
        let mut r = Repeats::default();
        for n in 0..50 {
            assert_eq!(round(&mut r, "make", &format!("{n} of 50 done")), Verdict::GoOn);
            assert_eq!(round(&mut r, &format!("test {n}"), "ok"), Verdict::GoOn);
        }
        let never = (0..20).map(|_| r.round(0)).filter(|v| matches!(v, Verdict::Ask(_))).count();
        assert_eq!(never, 0);
    }
}
