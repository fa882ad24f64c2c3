//! Names and phrases that were replaced and must not come back: pictures for things, things spoken of as persons.

use super::crates::Room;

/// Type names that were pictures, and what says it.
const TYPES: &[(&str, &str)] = &[];

/// Phrases in comments that speak of a thing as a person, or need a second reading.
const PHRASES: &[&str] = &[];

/// The places, one line each.
pub(super) fn check(rooms: &[Room]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in rooms.iter().flat_map(|r| &r.files) {
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
