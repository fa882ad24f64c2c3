//! Detects rounds of calls that repeat with the same results.
//!
//! Two rounds are equal when their calls and results are, in any order. Of a command only what runs counts: comments, quoting and
//! white space do not. Of calls that failed also names of files, and the numbers of the call do not count: trying the same under
//! another name is no progress. A number of the result is a difference, unless the call has it or it is a place in a file. Calls of tools that do not exist are equal to each other. A call that succeeded
//! with other arguments, or with another result, is always something new.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use tiller_protocol::{Part, ToolCall};
use tiller_tool::output;

use super::state::CallResult;

/// Equal laps in a row after which the model gets a note.
pub const TELL: u32 = 3;
/// Rounds of the longest cycle that is detected: A B C A B C has three.
const CYCLE: usize = 8;
/// Arguments that hold commands or programs.
const COMMANDS: [&str; 4] = ["command", "cmd", "code", "script"];
/// A failure with fewer words does not say its reason, such as a search without a match.
const SAYS: usize = 2;
/// A number behind one of these words is a place in a file.
const PLACES: [&str; 8] = ["line", "Line", "lines", "column", "col", "row", "offset", "position"];

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
    /// Hashes of the calls of the present round.
    now: Vec<u64>,
    names: Vec<String>,
    /// The newest rounds, the newest last.
    past: VecDeque<Round>,
    /// Rounds in a row that equal the one 1, 2, 3 and more rounds before them.
    equal: [u32; CYCLE],
    /// The model got its note about these laps.
    told: bool,
}

impl Repeats {
    /// Adds a finished call to the present round. `known`: there is such a tool.
    pub fn call(&mut self, call: &ToolCall, result: &CallResult, known: bool) {
        self.now.push(if known { hash_of(call, result) } else { 0 });
        self.names.push(call.name.clone());
    }

    /// Ends the present round. `limit`: equal laps after which the user is asked; 0: never.
    pub fn round(&mut self, limit: u32) -> Verdict {
        let mut calls = std::mem::take(&mut self.now);
        calls.sort_unstable();
        let mut hash = DefaultHasher::new();
        calls.hash(&mut hash);
        let hash = hash.finish();
        for (back, equal) in (1..).zip(&mut self.equal) {
            let before = self.past.len().checked_sub(back).and_then(|at| self.past.get(at));
            *equal = if before.is_some_and(|b| b.hash == hash) { equal.saturating_add(1) } else { 0 };
        }
        if self.past.len() == CYCLE {
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

/// Hashes a call with its result: as they are when it succeeded, in outline when it failed and says why.
fn hash_of(call: &ToolCall, result: &CallResult) -> u64 {
    let mut hash = DefaultHasher::new();
    call.name.hash(&mut hash);
    // What the program adds, such as a hint about the plan, is no difference.
    let to = result.content.len().saturating_sub(result.added.after.len());
    let content = result.content.get(result.added.before..to).unwrap_or(&result.content);
    if !result.outcome.ok()
        && let Some(failure) = failure(call, content)
    {
        failure.hash(&mut hash);
        return hash.finish();
    }
    arguments(&call.arguments, "", None, &mut hash);
    call.malformed.hash(&mut hash);
    for part in content {
        match part {
            Part::Text { text } => text.lines().for_each(|line| came_of_it(line, &mut hash)),
            Part::Image { .. } => 0_u8.hash(&mut hash),
        }
    }
    hash.finish()
}

/// The outline of a failed call and of its result; `None`: the result does not say what failed.
fn failure(call: &ToolCall, content: &[Part]) -> Option<u64> {
    let mut hash = DefaultHasher::new();
    let mut given = HashSet::new();
    if call.malformed.is_none() {
        arguments(&call.arguments, "", Some(&mut given), &mut hash);
    }
    let texts =
        content.iter().filter_map(|part| if let Part::Text { text } = part { Some(text) } else { None });
    let mut said = 0;
    for line in texts.flat_map(|text| text.lines()).filter(|line| !line.starts_with('[')) {
        for word in outline_of(output::without_pointer(line)) {
            let numeric = number(word);
            said += usize::from(!numeric);
            match given.contains(word) {
                true if numeric => {}
                true => without_digits(word).hash(&mut hash),
                false => word.hash(&mut hash),
            }
        }
    }
    (said >= SAYS).then(|| hash.finish())
}

/// Hashes arguments. `key`: the name of the value. With `outline`, numbers and names of files are left out, and words with digits
/// are added to it, numbers too.
fn arguments(value: &Value, key: &str, mut outline: Option<&mut HashSet<String>>, hash: &mut DefaultHasher) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                key.hash(hash);
                arguments(value, key, outline.as_deref_mut(), hash);
            }
        }
        Value::Array(list) => {
            list.len().hash(hash);
            for value in list {
                arguments(value, key, outline.as_deref_mut(), hash);
            }
        }
        Value::String(text) => {
            let command = COMMANDS.contains(&key).then(|| without_comments(text));
            match (outline, command) {
                (Some(given), command) => {
                    for word in outline_of(command.as_ref().unwrap_or(text)) {
                        let plain = without_digits(word);
                        if !number(word) {
                            plain.hash(hash);
                        }
                        if plain != word {
                            // A result names the host of an address alone.
                            given.extend([word].into_iter().chain(word.split([':', '/'])).map(str::to_owned));
                        }
                    }
                }
                (None, Some(command)) => command.split_whitespace().for_each(|word| word.hash(hash)),
                (None, None) => text.hash(hash),
            }
        }
        Value::Number(number) if let Some(given) = &mut outline => drop(given.insert(number.to_string())),
        other => other.to_string().hash(hash),
    }
}

/// A command or program without comments and quotes: a comment begins with `#` at the start of a word, outside of quotes. What a
/// command feeds to another program stays as it is.
fn without_comments(text: &str) -> String {
    if text.contains("<<") {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let (mut quote, mut before, mut comment) = (None, ' ', false);
    for c in text.chars() {
        if comment {
            comment = c != '\n';
        }
        match (quote, c) {
            _ if comment => {}
            (Some(open), c) if c == open && before != '\\' => quote = None,
            (None, '\'' | '"') if before != '\\' => quote = Some(c),
            (None, '#') if before.is_whitespace() || matches!(before, ';' | '&' | '|' | '(') => {
                comment = true
            }
            (_, '\\') => {}
            (_, c) => out.push(c),
        }
        before = c;
    }
    out
}

/// The words of a text without names of files, places in them, times and durations. An address of a server stays.
fn outline_of(text: &str) -> Vec<&str> {
    let split = |c: char| c.is_whitespace() || "\"'`;,()<>=".contains(c);
    let mut tokens = text.split(split).map(bare).filter(|token| !token.is_empty()).peekable();
    let mut out = Vec::new();
    // The word before says that a number is a place in a file.
    let mut place = false;
    while let Some(token) = tokens.next() {
        if token.contains("://") {
            out.push(token);
            place = false;
            continue;
        }
        let timed = number(token) && tokens.peek().is_some_and(|next| unit(next));
        if timed || seconds(token) || is_time(token) {
            continue;
        }
        for word in token.split(':').map(bare).filter(|word| !word.is_empty()) {
            if number(word) {
                if !place {
                    out.push(word);
                }
                continue;
            }
            let file = is_file(word);
            if !file && !is_mark(word) {
                out.push(word);
            }
            place = file || PLACES.contains(&word);
        }
    }
    out
}

fn without_digits(word: &str) -> String {
    word.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// `0x7f`, `3fa9c0`: an address in memory, or the beginning of a hash.
fn is_mark(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_alphanumeric())
}

/// `12:05:07.3`, `2026-11-30T12:05:07Z`, `2026-11-30`; also `12:5`, a line and a column.
fn is_time(token: &str) -> bool {
    let parts = token.chars().filter(|c| matches!(c, ':' | '-')).count();
    parts > usize::from(!token.contains(':'))
        && token.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | '-' | '.' | '+' | 'T' | 'Z'))
}

/// Returns true for a path, and for a name with an ending.
fn is_file(word: &str) -> bool {
    let ending = word.rsplit_once('.').map(|(_, ending)| ending);
    word.contains(['/', '\\']) || ending.is_some_and(|e| e.starts_with(|c: char| c.is_alphanumeric()))
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
#[path = "repeats_tests.rs"]
mod tests;
