//! Replaced names and phrases that must not come back: pictures for things, things described as persons.

use super::crates::Room;

/// Replaced type names, and their replacements.
const TYPES: &[(&str, &str)] = &[
    ("Ears", "Listener"),
    ("NotTaken", "TakeConflict"),
    ("Outsiders", "OutsideChanges"),
    ("Purse", "Reservations"),
    ("Rung", "EscapeStep"),
    ("Signalled", "SignalledProcesses"),
    ("Wish", "LayoutRequest, or Request"),
    ("purse", "reservations"),
    ("rope", "wake_pipe"),
];

/// Phrases in comments that describe a thing as a person, or need a second reading. They must not stand in any room.
const PHRASES: &[&str] = &[
    "whoever",
    "nobody who",
    "the model is told",
    "the person is told",
    "the agent is told",
    "it was told to",
    "was told of",
    "are told that",
];

/// Further phrases, checked in all rooms but [`NOT_CLEAN`].
const CLEAN_PHRASES: &[&str] = &[
    "somebody",
    "is told",
    "was told",
    "of ours",
    "so many",
    "for so long",
    "at most so much",
    "is none of",
    "none of our business",
    "looks at what",
    "hears of",
    "nobody",
];

/// Rooms in which some of [`CLEAN_PHRASES`] are left.
const NOT_CLEAN: &[&str] = &["tui"];

/// The problems, one line each.
pub(super) fn check(rooms: &[Room]) -> Vec<String> {
    let mut problems = Vec::new();
    // This file contains the lists.
    let files = rooms.iter().flat_map(|r| r.files.iter().map(move |f| (r, f)));
    for (room, file) in files.filter(|(_, f)| !f.path.ends_with("house/names.rs")) {
        let more: &[&str] = if NOT_CLEAN.contains(&room.name.as_str()) { &[] } else { CLEAN_PHRASES };
        for (at, line) in file.text.lines().enumerate() {
            for (old, new) in TYPES {
                if line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == *old) {
                    problems.push(format!("{}:{}: the name {old} was replaced by {new}", file.path, at + 1));
                }
            }
            let comment = line.find("//").map_or("", |i| &line[i..]);
            for phrase in PHRASES.iter().chain(more).filter(|p| comment.contains(**p)) {
                problems.push(format!("{}:{}: \"{phrase}\": name the subject", file.path, at + 1));
            }
        }
    }
    problems
}
