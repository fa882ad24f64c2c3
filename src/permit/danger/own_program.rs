//! Commands of Tiller itself. What a user runs by hand decides as the user: an agent must not accept its own entries of memory,
//! trust a folder, or start another agent with more rights.

use tiller_shell::Part;

/// Commands that have parts, of which those of [`SHOWS`] only show something.
const WITH_PARTS: [&str; 10] =
    ["agents", "hooks", "learnings", "mcp", "memory", "plugin", "sandbox", "sessions", "skills", "workflow"];
const SHOWS: [&str; 5] = ["compare", "list", "search", "show", "validate"];
/// Commands that only show something.
const SHOWN: [&str; 13] = [
    "--help",
    "--version",
    "-V",
    "-h",
    "audit",
    "completions",
    "config",
    "costs",
    "doctor",
    "help",
    "keys",
    "man",
    "ps",
];

/// Why a command of Tiller needs a yes: it changes something.
pub(super) fn own_program(part: &Part) -> Option<String> {
    if part.base() != "tiller" {
        return None;
    }
    // An option in front of them may have one of these words as its value.
    let word = |at: usize| part.args().get(at).map_or("", |word| word.text.as_str());
    let shows = SHOWN.contains(&word(0))
        || (WITH_PARTS.contains(&word(0)) && SHOWS.contains(&word(1)))
        || (word(0), word(1)) == ("trust", "--list");
    (!shows).then(|| "it changes rules, memory or sessions of Tiller, or starts agents".to_owned())
}
