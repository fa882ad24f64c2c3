//! Signs of the screen stand in one table, `src/text/sign.rs`, each with its ASCII form. Nothing else that is drawn
//! contains characters that are neither ASCII nor letters, or chooses between two forms of a sign by itself.

use super::crates::Room;
use crate::tidy::without_tests;

/// Rooms that draw.
const ROOMS: &[&str] = &["text", "tui"];

/// Files that may contain such characters, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("src/text/sign.rs", "the table"),
    ("src/text/wrap.rs", "characters that no row begins with"),
    ("src/tui/dialog/flow/graph.rs", "lines of a graph, with a table of their own"),
    ("src/tui/gallery/", "what an engine and programs say in the pictures"),
    ("src/tui/panel/conversation/empty.rs", "the wordmark"),
    ("src/tui/terminal/outside.rs", "the title of the window, which is no cell of the screen"),
    ("src/tui/theme/pixel.rs", "two pixels in one cell"),
];

/// The problems, one line each.
pub(super) fn check(rooms: &[Room]) -> Vec<String> {
    let files = rooms.iter().filter(|r| ROOMS.contains(&r.name.as_str())).flat_map(|r| &r.files);
    let files = files.filter(|f| !ALLOWED.iter().any(|(path, _)| f.path.starts_with(path)));
    files.flat_map(|f| of_text(&f.path, without_tests(&f.text))).collect()
}

/// The problems of a file.
fn of_text(path: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if let Some(sign) = code.chars().find(|c| !c.is_ascii() && !c.is_alphabetic()) {
            problems.push(format!("{path}:{}: the sign {sign} belongs into src/text/sign.rs", at + 1));
        }
        if ["ascii { \"", "ascii() { \"", "ascii { '", "ascii() { '"].iter().any(|form| code.contains(form)) {
            problems
                .push(format!("{path}:{}: the ASCII form of a sign belongs into src/text/sign.rs", at + 1));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_and_an_ascii_form_are_refused_outside_of_the_table() {
        let found = |line: &str| of_text("x.rs", line).len();
        assert_eq!(found("draw::text(buf, row, \"✓ done\", style);"), 1);
        assert_eq!(found("let bar = if cx.ascii { \"|\" } else { column };"), 1);
        assert_eq!(found("put('│');"), 1);
        assert_eq!(found("let word = \"naïve\"; // ✓ in a comment"), 0);
        assert_eq!(found("sign::OK.text(cx.ascii)"), 0);
    }
}
