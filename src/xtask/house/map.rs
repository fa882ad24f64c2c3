//! The map tells the truth: what `src/lib.rs` says that a crate may use is what its manifest uses, and the page of each crate
//! says what it may use and what is not there.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use super::crates::Room;

/// The differences, one line each.
///
/// # Errors
/// When a manifest or the map cannot be read.
pub(super) fn check(root: &Path, rooms: &[Room]) -> Result<Vec<String>> {
    let map = std::fs::read_to_string(root.join("src/lib.rs")).context("src/lib.rs")?;
    let mut problems = Vec::new();
    for room in rooms.iter().filter(|r| r.name != "tiller") {
        let manifest = std::fs::read_to_string(root.join("src").join(&room.name).join("Cargo.toml"))
            .with_context(|| format!("the manifest of {}", room.name))?;
        let page = room.files.iter().find(|f| f.module.is_empty()).map_or("", |f| f.text.as_str());
        problems.extend(differences(&room.name, &map, &manifest, page)?);
    }
    Ok(problems)
}

fn differences(room: &str, map: &str, manifest: &str, page: &str) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let used = used(manifest).with_context(|| format!("the manifest of {room}"))?;
    match permitted(room, map) {
        None => problems.push(format!("src/lib.rs: the table of rooms has no row for {room}")),
        Some(said) if said != used => problems.push(format!(
            "src/lib.rs: the row of {room} names {}, its manifest {}",
            list(&said),
            list(&used)
        )),
        Some(_) => {}
    }
    let page = page.lines().map_while(|l| l.strip_prefix("//!")).flat_map(str::split_whitespace);
    let page = page.collect::<Vec<_>>().join(" ").to_lowercase();
    for (words, what) in [
        (["may use", "no other room"], "what it may use"),
        (["not here", "is not here"], "what is not there"),
    ] {
        if !words.iter().any(|w| page.contains(w)) {
            problems.push(format!("src/{room}/lib.rs: the page of the room does not say {what}"));
        }
    }
    Ok(problems)
}

/// The crates of this project that a manifest uses, tests aside.
fn used(manifest: &str) -> Result<BTreeSet<String>> {
    let manifest: toml::Table = manifest.parse()?;
    let own = manifest.get("dependencies").into_iter();
    let systems = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let all = own.chain(systems.filter_map(|(_, of)| of.get("dependencies")));
    let names = all.filter_map(toml::Value::as_table).flat_map(toml::Table::keys);
    Ok(names.filter_map(|name| name.strip_prefix("tiller-")).map(str::to_owned).collect())
}

/// What the row of a crate in the table of `src/lib.rs` permits; `None`: there is no row.
fn permitted(room: &str, map: &str) -> Option<BTreeSet<String>> {
    let row = map.lines().filter_map(|line| line.strip_prefix("//! | ")).find_map(|line| {
        let cells: Vec<&str> = line.trim_end_matches('|').split('|').map(str::trim).collect();
        let [name, _, uses] = cells[..] else { return None };
        (name.trim_matches(['[', ']', '`']) == room).then_some(uses)
    })?;
    Some(row.split(", ").filter(|name| *name != "no other room").map(str::to_owned).collect())
}

fn list(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return "no other room".to_owned();
    }
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "//! | room | job | may use |\n//! | --- | --- | --- |\n//! | [`a`] | one | b, c |\n//! | `b` | two | no other room |\n";
    const PAGE: &str = "//! A room.\n//!\n//! May use: `b`. Not here: `c`.\n\nmod x;\n";

    #[test]
    fn a_map_that_differs_from_the_manifest_is_found() {
        let check = |room, manifest| differences(room, MAP, manifest, PAGE).unwrap();
        let both = "[dependencies]\ntiller-b.workspace = true\nserde = \"1\"\n[target.'cfg(unix)'.dependencies]\ntiller-c = {}\n[dev-dependencies]\ntiller-d = {}";
        assert!(check("a", both).is_empty());
        assert!(check("b", "[dependencies]\nserde = \"1\"").is_empty());
        assert_eq!(
            check("a", "[dependencies]\ntiller-b = {}"),
            ["src/lib.rs: the row of a names b, c, its manifest b"]
        );
        assert_eq!(check("b", both), ["src/lib.rs: the row of b names no other room, its manifest b, c"]);
        assert_eq!(check("e", ""), ["src/lib.rs: the table of rooms has no row for e"]);
    }

    #[test]
    fn a_page_that_does_not_say_what_is_not_there_is_found() {
        let check = |page| differences("b", MAP, "", page).unwrap().len();
        assert_eq!(check(PAGE), 0);
        assert_eq!(check("//! It uses no other room. What is not here:\n//! all else.\n"), 0);
        assert_eq!(check("//! May use: `b`.\n"), 1);
        assert_eq!(check("//! A room.\n\n// May use: `b`. Not here: `c`.\n"), 2);
    }
}
