//! Detects rounds of calls that repeat with the same results.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use tiller_protocol::{Part, ToolCall};
use tiller_tool::output;

use super::state::CallResult;

/// Equal laps in a row after which the model gets a note.
pub const TELL: u32 = 3;
/// Rounds of the longest cycle that is detected: A B C A B C.
const CIRCLE: usize = 3;

/// What follows from the rounds so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    GoOn,
    /// Adds a note for the model that it repeats itself.
    Tell,
    /// Asks the user whether to continue, after this many equal laps in a row.
    Ask(u32),
}

/// A finished round of calls.
#[derive(Clone, Debug)]
struct Round {
    hash: u64,
    /// Names of its calls, for people.
    names: Vec<String>,
}

/// Compares each round of calls with those before it. A lap is one round, or a cycle of a few rounds.
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    /// Hash of the present round.
    now: DefaultHasher,
    names: Vec<String>,
    /// The newest rounds, the newest last.
    past: VecDeque<Round>,
    /// Rounds in a row that equal the one 1, 2 or 3 rounds before them.
    equal: [u32; CIRCLE],
    /// The model got its note about these laps.
    told: bool,
}

impl Repeats {
    /// Adds a finished call to the present round.
    pub fn call(&mut self, call: &ToolCall, result: &CallResult) {
        call.name.hash(&mut self.now);
        call.arguments.to_string().hash(&mut self.now);
        for part in &result.content {
            match part {
                Part::Text { text } => text.lines().for_each(|line| came_of_it(line, &mut self.now)),
                Part::Image { .. } => 0_u8.hash(&mut self.now),
            }
        }
        self.names.push(call.name.clone());
    }

    /// Ends the present round. `limit`: equal laps after which the user is asked; 0: never.
    pub fn round(&mut self, limit: u32) -> Verdict {
        let hash = std::mem::take(&mut self.now).finish();
        for (back, equal) in (1..).zip(&mut self.equal) {
            let before = self.past.len().checked_sub(back).and_then(|at| self.past.get(at));
            *equal = if before.is_some_and(|b| b.hash == hash) { equal.saturating_add(1) } else { 0 };
        }
        if self.past.len() == CIRCLE {
            self.past.pop_front();
        }
        self.past.push_back(Round { hash, names: std::mem::take(&mut self.names) });
        let (laps, _) = self.laps();
        self.told &= laps >= TELL;
        match laps {
            _ if limit > 0 && laps >= limit => Verdict::Ask(laps),
            TELL.. if !self.told => Verdict::Tell,
            _ => Verdict::GoOn,
        }
    }

    /// Records that the model got its note; until then each round requests it.
    pub fn told(&mut self) {
        self.told = true;
    }

    /// The most laps, and of how many rounds each is.
    fn laps(&self) -> (u32, usize) {
        let of = |(back, equal): (u32, &u32)| (equal.saturating_add(back) / back, back as usize);
        // Of equal counts, the shorter cycle.
        (1..).zip(&self.equal).map(of).reduce(|a, b| if b.0 > a.0 { b } else { a }).unwrap_or((1, 1))
    }

    /// Returns the names of the repeated calls, and resets the counts.
    pub fn take(&mut self) -> String {
        let (_, rounds) = self.laps();
        let past = std::mem::take(self).past;
        let mut names: Vec<String> = Vec::new();
        for name in past.into_iter().rev().take(rounds).rev().flat_map(|r| r.names) {
            let name: String = name.chars().take(60).collect();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    }
}

/// Hashes a line of a result, without durations and without the path of the full output.
fn came_of_it(line: &str, hash: &mut DefaultHasher) {
    if output::is_duration_note(line) {
        return;
    }
    let mut words = output::without_pointer(line).split_whitespace().peekable();
    while let Some(word) = words.next() {
        let timed = number(word) && words.peek().is_some_and(|next| unit(next));
        if !timed && !seconds(word) {
            word.hash(hash);
        }
    }
    '\n'.hash(hash);
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// `5`, `0.3`, `(12`.
fn number(word: &str) -> bool {
    let word = bare(word);
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// `s`, `ms`, `seconds,`.
fn unit(word: &str) -> bool {
    const UNITS: [&str; 12] =
        ["ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "min", "minute", "minutes"];
    UNITS.contains(&bare(word))
}

/// `0.3s`, `120ms`, `2s)`, `1m20s`.
fn seconds(word: &str) -> bool {
    let word = bare(word);
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(['s', 'm'])
        && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'h' | 'm' | 's' | 'n' | 'u' | 'µ'))
}

/// The note for the model.
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
        use Verdict::{Ask, GoOn, Tell};
        for (n, verdict) in (0..).zip([GoOn, GoOn, Tell, GoOn, GoOn, Ask(6)]) {
            let seen = round(&mut r, "make", &format!("failed in 0.{n}s"));
            assert_eq!(seen, verdict, "the time that it took is no difference");
            if seen == Tell {
                r.told();
            }
        }
        assert_eq!(r.take(), "terminal");
        assert_eq!(round(&mut r, "make", "failed in 1s"), GoOn, "a yes counts from the start");
    }

    /// The notes that the program's own tools add differ each time and are ignored.
    #[test]
    fn how_long_it_took_and_where_the_whole_is_kept_are_no_difference() {
        use Verdict::{Ask, GoOn, Tell};
        let six = [GoOn, GoOn, Tell, GoOn, GoOn, Ask(6)];
        let all = |said: &dyn Fn(usize) -> String| {
            let mut r = Repeats::default();
            let seen: Vec<Verdict> = (0..6)
                .map(|n| {
                    let verdict = round(&mut r, "make", &said(n));
                    if verdict == Tell {
                        r.told();
                    }
                    verdict
                })
                .collect();
            seen
        };
        assert_eq!(all(&|n| format!("FAILED\n[exit 1]\n[took {}.{n} s]", 5 + n)), six);
        // A build near five seconds gets the line only at times.
        assert_eq!(all(&|n| format!("FAILED\n[exit 1]{}", ["", "\n[took 5.1 s]"][n % 2])), six);
        assert_eq!(all(&|n| format!("Ran 3 tests in {n}.25 seconds, or {n}m{n}s ({n} ms)")), six);
        let whole = |n| format!("read_file can page the whole: /state/spill/c{n}.txt");
        let cut = |n| output::cut_middle(&"a line of it\n".repeat(100), 400, &whole(n)).unwrap();
        assert_eq!(all(&cut), six);
        assert_eq!(all(&|n| format!("a\n[... about 9.0 MB left out; {} ...]\nz", whole(n))), six);
        assert_eq!(all(&|n| format!("[binary output, 9.0 MB, not shown; {}]\n", whole(n))), six);
        assert_ne!(all(&|n| format!("{n} of 50 MB done")), six);
        assert_ne!(all(&|n| format!("[... {n} KB, 7 lines left out; {} ...]", whole(n))), six);
    }

    #[test]
    fn a_circle_of_two_or_three_calls_is_seen() {
        for circle in [&["a", "b"][..], &["a", "b", "c"], &["a", "a", "b"]] {
            let mut r = Repeats::default();
            let mut told = 0;
            let asked = (1..100).find(|n| match round(&mut r, circle[(n - 1) % circle.len()], "as ever") {
                Verdict::GoOn => false,
                Verdict::Tell => {
                    r.told();
                    told = *n;
                    false
                }
                Verdict::Ask(laps) => laps == 6,
            });
            assert_eq!((told, asked), (3 * circle.len(), Some(6 * circle.len())), "{circle:?}");
        }
        // Four calls in a circle are work on four things.
        let mut r = Repeats::default();
        assert!((0..100).all(|n| round(&mut r, &(n % 4).to_string(), "as ever") == Verdict::GoOn));
    }

    #[test]
    fn a_note_that_could_not_be_given_is_given_a_round_later() {
        let mut r = Repeats::default();
        let seen: Vec<Verdict> = (0..4).map(|_| round(&mut r, "make", "no")).collect();
        assert_eq!(seen[2..], [Verdict::Tell, Verdict::Tell], "a message was on its way");
        r.told();
        assert_eq!(round(&mut r, "make", "no"), Verdict::GoOn);
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
