//! Unknown screens that do not change: they may show a question that no rule of the adapter recognises.

use std::time::Duration;

use tokio::time::Instant;

/// Words with which programs offer a choice, in lower case.
const OFFERS: &[&str] = &[
    "enter to ",
    "press enter",
    "enter confirm",
    "enter continue",
    "enter select",
    "esc to cancel",
    "to confirm",
    "to select",
    "(y/n)",
    "[y/n]",
    "(yes/no)",
    "press any key",
    "any key to continue",
    "y/n]",
    "y/n)",
];

/// The words of a screen, without parts that change by themselves: spinners, clocks, counters of time, frames and
/// glyphs.
pub(super) fn words(screen: &str) -> String {
    let mut out = String::new();
    for word in screen.split_whitespace() {
        if clock(word) {
            continue;
        }
        let plain: String = word.chars().filter(|c| c.is_alphanumeric()).collect();
        if !plain.is_empty() {
            out.push_str(&plain);
            out.push(' ');
        }
    }
    out
}

/// `12s`, `(3m`, `1.5s)`, `16:05`, `42%`: a number that changes by itself.
fn clock(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '%');
    let digits = word.trim_start_matches(|c: char| c.is_ascii_digit() || ".:".contains(c));
    let figure = word.len() > digits.len() && word.starts_with(|c: char| c.is_ascii_digit());
    figure && (matches!(digits, "s" | "ms" | "m" | "h" | "%") || digits.is_empty() && word.contains(':'))
}

/// Whether two scans show the same dialog. Digits count: `rm 1` is not `rm 2`.
pub(super) fn same(a: &str, b: &str) -> bool {
    words(a) == words(b)
}

/// Whether a screen seems to offer a choice, whatever program drew it.
pub(super) fn offers(screen: &str) -> bool {
    let small = screen.to_lowercase();
    OFFERS.iter().any(|o| small.contains(o)) || lists(screen)
}

/// Marks of the selected line.
const MARKS: &[char] = &['❯', '›', '▸', '▶', '→', '●', '◉'];

/// Whether it ends with numbered lines of which one is marked, in any language. Such a list further up can be part of
/// the conversation: the mark of a composer looks the same.
fn lists(screen: &str) -> bool {
    let frame = |c: char| c.is_whitespace() || ('\u{2500}'..='\u{257f}').contains(&c) || c == '|';
    let lines: Vec<&str> = screen.lines().map(|l| l.trim_matches(frame)).collect();
    let number = |line: &str| {
        let line = line.trim_start_matches(MARKS).trim_start();
        let digits = line.chars().take_while(char::is_ascii_digit).count();
        let n: u32 = line[..digits].parse().ok()?;
        line[digits..].starts_with(['.', ')']).then_some(n)
    };
    let follows = |at: &usize| {
        let (line, next) = (lines[*at], lines[at + 1]);
        let one_more = number(line).zip(number(next)).is_some_and(|(a, b)| a.checked_add(1) == Some(b));
        one_more && (line.starts_with(MARKS) || next.starts_with(MARKS))
    };
    let Some(at) = (0..lines.len().saturating_sub(1)).rfind(follows) else { return false };
    let below = lines[at + 2..].iter().filter(|l| number(l).is_none());
    below.filter(|l| l.chars().any(char::is_alphanumeric)).count() <= 1
}

/// How long the words on the screen have been the same.
#[derive(Debug)]
pub(super) struct Stability {
    words: String,
    since: Instant,
    /// When it was last drawn, also with the same words.
    drawn: Instant,
    /// The notice that this screen waits for the person was sent.
    pub reported: bool,
}

impl Stability {
    pub(super) fn new(now: Instant) -> Self {
        Self { words: String::new(), since: now, drawn: now, reported: false }
    }

    /// Records a drawing.
    pub(super) fn drawn(&mut self, screen: &str, now: Instant) {
        self.drawn = now;
        let words = words(screen);
        if words != self.words {
            (self.words, self.since, self.reported) = (words, now, false);
        }
    }

    /// Restarts the time after an action of a person.
    pub(super) fn touched(&mut self, now: Instant) {
        (self.since, self.drawn, self.reported) = (now, now, false);
    }

    /// When the screen counts as waiting for a person, if nothing changes until then. `works`: it shows the mark of
    /// work, which may be stale; `None`: never.
    pub(super) fn due(&self, screen: &str, works: bool, patience: Duration) -> Option<Instant> {
        if self.words.is_empty() {
            return None;
        }
        // A changing mark of work is trusted, unless the screen offers a choice.
        let from = if works && !offers(screen) { self.drawn } else { self.since };
        Some(from + patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_by_itself_is_no_change_and_a_digit_is() {
        for (a, b) in [
            ("✻ Thinking… (3s · esc to interrupt)", "✶ Thinking… (14s · esc to interrupt)"),
            ("⠋ Working 1m 2s", "⠙ Working 1m 9s"),
            ("❯ Yes\n  No", "  Yes\n❯ No"),
            ("12% done 16:05", "99% done 16:06"),
        ] {
            assert!(same(a, b), "{a} | {b}");
        }
        for (a, b) in
            [("$ rm 1", "$ rm 2"), ("1. Yes", "2. Yes"), ("rm a", "rm b"), ("cut 3 files", "cut 4 files")]
        {
            assert!(!same(a, b), "{a} | {b}");
        }
    }

    #[test]
    fn a_still_screen_is_due_and_one_that_works_is_not_unless_it_offers_a_choice() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let patience = Duration::from_millis(3000);
        let mut screen = Stability::new(start);
        assert_eq!(screen.due("", false, patience), None, "an empty screen asks nothing");
        screen.drawn("⠋ strange words", at(100));
        screen.drawn("⠙ strange words", at(2000));
        assert_eq!(screen.due("⠙ strange words", false, patience), Some(at(3100)));
        assert_eq!(screen.due("⠙ strange words", true, patience), Some(at(5000)), "its mark of work moves");
        let asks = "⠙ strange words (y/n)";
        assert_eq!(screen.due(asks, true, patience), Some(at(3100)), "a choice beside a wheel");
        for list in [
            "❯ 1. Free\n  2. Pro",
            "  1. Gratis\n❯ 2. Pro\n  3. Max\n\n Intro ↵",
            "│ › 1) 无料 │\n│   2) 有料 │\n╰───╯",
        ] {
            assert!(offers(list), "{list}");
        }
        assert_eq!(screen.due("⠙ esc to interrupt\n❯ 1. Free\n  2. Pro", true, patience), Some(at(3100)));
        for work in [
            "1. read it\n2. change it",
            "❯ 1. read it\n  2. change it\n\n⠙ Working\n\n❯\n? for shortcuts",
            "❯ 3. alone\n  words",
        ] {
            assert!(!offers(work), "{work}");
        }
        screen.drawn("⠹ other words", at(2500));
        assert_eq!(screen.due("⠹ other words", false, patience), Some(at(5500)));
    }
}
