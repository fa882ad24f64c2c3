//! Reads a screen as a person does, and presses keys only when the screen accepts them.

use std::time::Duration;

use tiller_testkit::Term;

use crate::common::{TIMEOUT, let_deafness_pass, poll};

/// Row and column of the first occurrence of `text`.
pub(crate) fn find(screen: &vt100::Screen, text: &str) -> Option<(u16, u16)> {
    let (_, columns) = screen.size();
    for (row, line) in screen.rows(0, columns.get()).enumerate() {
        if let Some(at) = line.find(text) {
            // Lines have no wide characters left of the text that tests look for.
            let column = line[..at].chars().count();
            return Some((u16::try_from(row).unwrap(), u16::try_from(column).unwrap()));
        }
    }
    None
}

/// The line of an agent in the panel or the list of agents, without what stands left of the panel. What the conversation
/// says of it (`Agent a1 is done`) is no such line.
pub(crate) fn agent_row(screen: &str, agent: &str) -> String {
    let in_line = |line: &str| {
        let before = line
            .match_indices(agent)
            .map(|(at, _)| &line[..at])
            .find(|b| b.ends_with(' ') && !b.ends_with("Agent "))?;
        Some(line[before.rfind('│').map_or(0, |at| at + '│'.len_utf8())..].to_owned())
    };
    screen.lines().find_map(in_line).unwrap_or_default()
}

fn face(screen: &vt100::Screen, text: &str) -> Option<String> {
    let (row, column) = find(screen, text)?;
    let cell = screen.cell(row, column)?;
    Some(format!(
        "{:?} {:?} {} {} {}",
        cell.fgcolor(),
        cell.bgcolor(),
        cell.bold(),
        cell.dim(),
        cell.inverse()
    ))
}

/// Whether one of these buttons has the focus. While buttons ignore keys, all look the same.
pub(crate) fn focused(screen: &vt100::Screen, buttons: &[&str]) -> bool {
    let faces: Vec<_> = buttons.iter().map(|b| face(screen, b)).collect();
    faces.iter().all(Option::is_some) && faces.iter().any(|f| *f != faces[0])
}

fn listens(screen: &vt100::Screen) -> bool {
    focused(screen, &["[n] no", "[c] say why", "[y] once"])
}

/// What every approval's title says.
pub(crate) const ASKED: &str = " wants to ";

/// What an approval on the screen is about: the command below its title, or the title with the path.
pub(crate) fn target(screen: &str) -> String {
    let mut lines = screen.lines().skip_while(|l| !l.contains(ASKED));
    let mut bare = || lines.next().unwrap_or_default().trim_matches(['▌', '▲', ' ']).to_owned();
    let title = bare();
    // Counts stand behind three blanks.
    let title = title.split("   ").next().unwrap_or_default().to_owned();
    if title.ends_with(':') { bare() } else { title }
}

/// Whether an approval on the screen is about `what`: in its title or below. The conversation above it may show the same
/// words, as the difference of an edit that was approved before.
fn asks_about(screen: &str, what: &str) -> bool {
    screen.rfind(ASKED).is_some_and(|at| {
        let title = screen[..at].rfind('\n').map_or(0, |end| end + 1);
        screen[title..].contains(what)
    })
}

/// Waits for the question about `what` until its buttons accept keys; returns the screen.
pub(crate) fn asked(term: &mut Term, what: &str) -> String {
    term.wait(&format!("the question about {what}"), |s| asks_about(s, what));
    // The words in the title of a folded question may be drawn after the others.
    let heard = poll(TIMEOUT, || {
        unfold(term);
        // A long text is read to its end first.
        let screen = term.screen();
        if screen.contains("after reading") || screen.contains("read to the end before approving") {
            crate::common::let_deafness_pass();
            term.keys("\x1b[6~");
            return None;
        }
        term.looks(listens).then_some(())
    });
    assert!(heard.is_some(), "no buttons that listen:\n{}", term.screen());
    term.screen()
}

/// The words in the title of a folded question.
pub(crate) const FOLDED: &str = "Ctrl-X a answers";

/// Gives the keys to a question that came while the test was typing.
pub(crate) fn unfold(term: &mut Term) {
    if term.screen().contains(FOLDED) {
        term.keys("\x18a");
        term.wait_gone(FOLDED);
    }
}

/// Waits for a dialog of the screen with this title until its buttons accept keys; answers with `key`.
pub(crate) fn confirm(term: &mut Term, title: &str, yes: &str, key: &str) {
    term.wait_text(title);
    term.wait_cells("buttons that listen", |s| focused(s, &["[n] no", yes]));
    term.keys(key);
}

/// As [`asked`], and answers with `key`.
pub(crate) fn answer(term: &mut Term, what: &str, key: &str) {
    asked(term, what);
    term.keys(key);
    term.wait(&format!("the end of the question about {what}"), |s| !asks_about(s, what));
}

/// Presses a key until the screen satisfies `until`. A new dialog ignores keys at first: that time passes before the first
/// press. The next press comes late, since a busy program reads a key that was pressed once too often after the dialog is
/// gone, and takes it for another one: some time after the screen has changed, and much later if nothing has changed.
pub(crate) fn press_until(term: &mut Term, key: &str, until: impl Fn(&str) -> bool) {
    let_deafness_pass();
    let heard = poll(TIMEOUT, || {
        let before = term.screen();
        term.keys(key);
        let now = || until(&term.screen()).then_some(());
        let changed =
            poll(Duration::from_secs(15), || now().or_else(|| (term.screen() != before).then_some(())));
        changed.and_then(|()| poll(Duration::from_millis(1500), now))
    });
    assert!(heard.is_some(), "the key {key:?} has no effect; the screen was:\n{}", term.screen());
}

/// Presses a key that counts when it is pressed twice within three seconds, until the screen satisfies `until`. A busy program
/// may read the second press too late, and ask again.
pub(crate) fn press_again(term: &mut Term, key: &str, until: impl Fn(&str) -> bool) {
    let heard = poll(TIMEOUT, || {
        term.keys(key);
        poll(Duration::from_millis(1500), || until(&term.screen()).then_some(()))
    });
    assert!(heard.is_some(), "the key {key:?} does not count; the screen was:\n{}", term.screen());
}

/// Presses keys of a list that decide something, and waits until it is so. They count once the list was in sight for a moment.
/// They are pressed again only when they had no effect: what comes late would be decided about the next row as well.
pub(crate) fn decide(term: &mut Term, keys: &str, done: impl Fn(&Term) -> bool) {
    let heard = (0..4).any(|_| {
        let_deafness_pass();
        term.keys(keys);
        poll(Duration::from_secs(30), || done(term).then_some(())).is_some()
    });
    assert!(heard, "the keys {keys:?} have no effect; the screen was:\n{}", term.screen());
}

/// The words of the screen with one blank between them, without bars: texts as they were before they were wrapped. What
/// stands beside each other in one row follows each other.
pub(crate) fn words(screen: &str) -> String {
    screen
        .split(|c: char| c.is_whitespace() || matches!(c, '▌' | '│'))
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// As [`find`], without what the conversation says of an agent.
fn listed(screen: &vt100::Screen, text: &str) -> Option<(u16, u16)> {
    let (_, columns) = screen.size();
    let place = |(row, line): (usize, String)| {
        let at = line.match_indices(text).map(|(at, _)| at).find(|at| {
            let before = line[..*at].trim_end();
            !before.ends_with("Agent")
        })?;
        Some((u16::try_from(row).ok()?, u16::try_from(line[..at].chars().count()).ok()?))
    };
    screen.rows(0, columns.get()).enumerate().find_map(place)
}

/// Moves the selection of a list to the row with `text`: one key at a time, each only after the one before has taken
/// effect, so that no key is left when the row is reached. Rows may appear, vanish and move meanwhile.
pub(crate) fn choose(term: &mut Term, text: &str) {
    // The row of `text`, and the selected row in its column.
    let rows = |s: &vt100::Screen| {
        let (to, column) = listed(s, text)?;
        let inverse = |row: &u16| s.cell(*row, column).is_some_and(vt100::Cell::inverse);
        let height = s.size().0.get();
        let at = if inverse(&to) { Some(to) } else { (0..height).find(inverse) };
        Some((to, at))
    };
    let found = poll(TIMEOUT, || {
        let (to, at) = term.looks(rows)?;
        if at == Some(to) {
            return Some(());
        }
        term.keys(if at.is_some_and(|at| at < to) { "\x1b[B" } else { "\x1b[A" });
        // A busy program may take long. A selection that is not in sight may stay so after the key.
        let limit = Duration::from_secs(if at.is_some() { 15 } else { 2 });
        poll(limit, || term.looks(|s| rows(s).is_none_or(|(_, now)| now != at)).then_some(()));
        None
    });
    assert!(found.is_some(), "no row with {text} can be chosen:\n{}", term.screen());
}

/// The text before the cursor ends with `text`, wherever its line was wrapped.
fn typed(screen: &vt100::Screen, text: &str) -> bool {
    let bare = |s: &str| -> String { s.chars().filter(|c| !c.is_whitespace() && *c != '▌').collect() };
    let want = bare(text);
    let tail = want.char_indices().rev().nth(TAIL - 1).map_or(want.as_str(), |(at, _)| &want[at..]);
    let (row, column) = screen.cursor_position();
    let (_, columns) = screen.size();
    let row = usize::from(row);
    let here = screen.rows(0, column).nth(row).unwrap_or_default();
    // Panels stand right of it.
    let above = row.checked_sub(1).and_then(|row| screen.rows(0, columns.get()).nth(row)).unwrap_or_default();
    let above = above.split('│').next().unwrap_or_default().to_owned();
    !screen.hide_cursor() && bare(&(above + &here)).ends_with(tail)
}

/// Signs of a typed text that are compared.
const TAIL: usize = 20;

/// Types into the field that has the cursor, and waits until it holds the text. That the text is on the screen would not do: the
/// conversation or a list may have the same words.
pub(crate) fn type_in(term: &mut Term, text: &str) {
    term.keys(text);
    term.wait_cells(&format!("{text:?} before the cursor"), |s| typed(s, text));
}

/// Types a line and sends it, once the field shows it.
pub(crate) fn say(term: &mut Term, text: &str) {
    type_in(term, text);
    term.keys("\r");
}

/// A command of the agent runs: its row says so, or how long it has been silent.
pub(crate) fn shell_runs(screen: &str) -> bool {
    screen.lines().any(|l| l.contains("shell  ") && (l.contains("running") || l.contains("silent")))
}

/// Waits until no turn runs and nothing is typed, which the first hints show. (A frame may be read while it is half
/// drawn, so a missing text proves nothing.)
pub(crate) fn idle(term: &Term) -> String {
    term.wait("the end of the turn", |s| {
        s.lines().last().is_some_and(|l| l.trim_start().starts_with("Shift-Tab mode"))
    })
}

/// Waits until the composer holds a draft with these words: the hints say that Enter sends it. The conversation may have the same
/// words, and a draft that is put back comes after it.
pub(crate) fn drafted(term: &Term, words: &str) {
    term.wait(&format!("the draft {words:?}"), |s| {
        s.contains(words) && s.lines().last().is_some_and(|l| l.trim_start().starts_with("Enter send"))
    });
}

/// Quits, confirming if processes run in the background. Returns the exit code.
pub(crate) fn quit(term: &mut Term) -> u32 {
    // Either the question is shown, or the terminal is restored. Directly behind an Escape that was not read yet the key would be
    // another one: then it is pressed again.
    let asks = (0..6).find_map(|_| {
        term.keys("\x04");
        poll(Duration::from_secs(20), || {
            let asks = term.screen().contains("[y] quit");
            (asks || term.kept().is_empty()).then_some(asks)
        })
    });
    if asks == Some(true) {
        term.wait_cells("buttons that listen", |s| focused(s, &["[n] no", "[y] quit"]));
        term.keys("y");
    }
    term.wait_exit()
}

/// The text of a screen without parts that differ between runs: times, measures of width, the watcher's feed, the
/// header and the hints. The progress of the todo list comes first.
pub(crate) fn key_lines(screen: &str) -> String {
    let lines: Vec<&str> = screen.lines().collect();
    let inner = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default();
    let todo = inner.iter().find_map(|l| l.split("│Todo ").nth(1)).and_then(|t| t.split_whitespace().last());
    let mut left: Vec<String> = todo.map(|t| format!("Todo {t}")).into_iter().collect();
    for line in inner {
        // The panels begin at their border. Rules are lines without words.
        let words = steady(line.split('│').next().unwrap_or(line));
        if words.contains(|c: char| c.is_alphanumeric()) {
            left.push(words);
        }
    }
    assert!(!left.is_empty(), "no words on the screen:\n{screen}");
    left.join("\n")
}

/// One space between words, without times.
fn steady(line: &str) -> String {
    let time = |w: &str| {
        let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        w.strip_suffix('s').is_some_and(digits)
            || w.split_once(':').is_some_and(|(a, b)| digits(a) && digits(b))
    };
    // A time may stand before a colon: `thought 0.1s: ...`.
    line.split_whitespace()
        .map(|w| w.trim_end_matches(':'))
        .filter(|w| !time(w))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::typed;

    #[test]
    fn typed_text_stands_before_the_cursor_and_nowhere_else() {
        let size = |n| std::num::NonZeroU16::new(n).unwrap();
        let after = |drawn: &str, text: &str| {
            let mut parser = vt100::Parser::new(size(6), size(24), 0);
            parser.process(drawn.as_bytes());
            typed(parser.screen(), text)
        };
        assert!(after("go on\r\n▌ go on", "go on"));
        assert!(!after("go on\r\n▌ go", "go on"), "it stands above, and is not typed yet");
        assert!(!after("▌ go on\x1b[6;1Hhints", "go on"), "the cursor is elsewhere");
        // A line that was wrapped, with a panel beside it.
        assert!(after("▌ read all of it │ a1\r\n▌ and sum it up", "read all of it and sum it up"));
        assert!(!after("▌ read all of it\x1b[?25l", "read all of it"));
    }
}
