//! Replaced names and phrases that must not come back: pictures for things, things described as persons.

use super::crates::Room;

/// Replaced type names, and their replacements.
const TYPES: &[(&str, &str)] = &[
    ("Ears", "Listener"),
    ("Purse", "Reservations"),
    ("Rung", "EscapeStep"),
    ("Wish", "LayoutRequest, or Request"),
    ("purse", "reservations"),
    ("rope", "wake_pipe"),
];

/// Phrases in comments that describe a thing as a person, or need a second reading.
const PHRASES: &[&str] = &[
    "whoever",
    "the model is told",
    "the person is told",
    "the agent is told",
    "it was told to",
    "was told of",
];

/// The problems, one line each.
pub(super) fn check(rooms: &[Room]) -> Vec<String> {
    let mut problems = Vec::new();
    // This file contains the lists.
    let files = rooms.iter().flat_map(|r| &r.files).filter(|f| !f.path.ends_with("house/names.rs"));
    for file in files {
        for (at, line) in file.text.lines().enumerate() {
            for (old, new) in TYPES {
                if line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == *old) {
                    problems.push(format!("{}:{}: the name {old} was replaced by {new}", file.path, at + 1));
                }
            }
            let comment = line.find("//").map_or("", |i| &line[i..]);
            for phrase in PHRASES.iter().filter(|p| comment.contains(**p)) {
                problems.push(format!("{}:{}: \"{phrase}\": name the subject", file.path, at + 1));
            }
        }
    }
    problems
}
