//! Texts that come with the program name keys and commands that exist: shipped skills and packs, prompts, the README.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::registry;
use crate::keymap::{Chord, Keymap, preset, show};

/// The folders and files that are read, below the root of the repository. What has changed is described in `CHANGELOG.md`,
/// which may name keys of the past.
const TEXTS: &[&str] = &["README.md", "CONTRIBUTING.md", "skills", "assets", "src/tool"];

/// Folders at the root of a file system: paths such as `/home` are no commands.
const ROOTS: &[&str] = &[
    "bin", "boot", "data", "dev", "etc", "export", "home", "lib", "mnt", "nix", "opt", "proc", "root", "run",
    "sbin", "srv", "sys", "tmp", "usr", "var",
];

/// Commands that the README makes up as examples of a person's own.
const OWN: &[&str] = &["team:review", "review"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Markdown files and tours at and below `at`.
fn files(at: &Path, found: &mut Vec<PathBuf>) {
    if !at.is_dir() {
        let text = at.extension().is_some_and(|e| e == "md") || at.ends_with("tour.toml");
        return found.extend(text.then(|| at.to_owned()));
    }
    for entry in std::fs::read_dir(at).unwrap() {
        files(&entry.unwrap().path(), found);
    }
}

/// The names of `/` commands in a line: a slash at the start of a word, then a name. Paths have more behind it.
fn commands(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices('/') {
        let begins = line[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || "(\"`".contains(c));
        let rest = &line[at + 1..];
        let part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ":_-".contains(c);
        let end = rest.find(|c: char| !part(c)).unwrap_or(rest.len());
        let mut after = rest[end..].chars();
        let ends = match after.next() {
            None => true,
            Some('.') => after.next().is_none_or(char::is_whitespace),
            Some(c) => c.is_whitespace() || "`\"),;?!|".contains(c),
        };
        let name = rest[..end].trim_end_matches(':');
        if begins && ends && name.starts_with(|c: char| c.is_ascii_lowercase()) {
            found.push(name);
        }
    }
    found
}

/// A word without the brackets and punctuation around it, and whether something stands behind it. One character is a key.
fn bare(word: &str) -> (&str, &str) {
    if word.chars().count() == 1 {
        return (word, "");
    }
    let word = word.trim_start_matches(['(', '"']);
    let inner = word.trim_end_matches([',', '.', ';', ':', ')', '?', '!', '"']);
    // A key that is a sign itself: `Ctrl-,`.
    if inner.is_empty() || inner.ends_with('-') { (word, "") } else { (inner, &word[inner.len()..]) }
}

/// True when a word is a key with a modifier, or a function key.
fn is_chord(word: &str) -> bool {
    let modified = ["Ctrl", "Alt", "Shift", "Super"].iter().any(|name| {
        let rest = word.strip_prefix(name).and_then(|rest| rest.strip_prefix(['-', '+']));
        rest.is_some_and(|rest| !rest.is_empty())
    });
    let number = word.strip_prefix('F').filter(|n| n.len() <= 2);
    modified || number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// The keys in a line, each as it is pressed: `Ctrl-G`, `Ctrl-X r`. In `Ctrl-X r, T, f` the leader key stands for all.
fn keys(line: &str, leader: Chord) -> Vec<Result<Vec<Chord>, String>> {
    let line = line.replace('`', " ` ");
    let words: Vec<(&str, &str)> = line.split_whitespace().map(bare).collect();
    let chord = |word: &str| {
        // Some write `Ctrl+X`.
        let text = if word.len() > 1 { word.replace('+', "-") } else { word.to_owned() };
        Chord::parse(&text).map_err(|why| format!("{word}: {why}"))
    };
    let mut found = Vec::new();
    for (at, (word, behind)) in words.iter().enumerate().filter(|(_, (word, _))| is_chord(word)) {
        let first = match chord(word) {
            Ok(first) => first,
            Err(why) => {
                found.push(Err(why));
                continue;
            }
        };
        let mut more = words[at + 1..].iter().take(if first == leader && behind.is_empty() { 99 } else { 0 });
        let second = |word: &str| {
            let one = word.chars().count() == 1 && !["`", "|"].contains(&word);
            let named = word.starts_with(char::is_uppercase) && Chord::parse(word).is_ok();
            (one || is_chord(word) || named).then(|| chord(word))
        };
        let Some((follows, mut behind)) = more.next().and_then(|(word, b)| Some((second(word)?, *b))) else {
            found.push(Ok(vec![first]));
            continue;
        };
        found.push(follows.map(|next| vec![first, next]));
        while behind == "," {
            let Some((word, b)) = more.next().filter(|(word, _)| word.chars().count() == 1) else { break };
            found.push(chord(word).map(|next| vec![first, next]));
            behind = *b;
        }
    }
    found
}

/// Returns what a text names and the program does not have, with the numbers of the lines. `own`: commands besides the program's.
fn unknown(text: &str, map: &Keymap, own: &HashSet<String>) -> Vec<String> {
    let table = map.table();
    let bound = |keys: &[Chord]| keys == [map.leader] || table.iter().any(|row| row.keys == keys);
    let mut wrong = Vec::new();
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        // Blocks of code are for a shell, or files.
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for name in commands(line) {
            let known = registry().commands().exists(name) || own.contains(name);
            if !known && !ROOTS.contains(&name) {
                wrong.push(format!("{}: there is no command /{name}", at + 1));
            }
        }
        for keys in keys(line, map.leader) {
            match keys {
                Ok(keys) if bound(&keys) => {}
                Ok(keys) => wrong.push(format!("{}: nothing is bound to {}", at + 1, show(&keys))),
                Err(why) => wrong.push(format!("{}: {why}", at + 1)),
            }
        }
        // `/tree` (`Ctrl-X T`): both do the same.
        let spans: Vec<&str> = line.split('`').collect();
        for pair in spans.windows(3).filter(|pair| pair[1] == " (") {
            let command = pair[0].strip_prefix('/').and_then(|name| registry().commands().find(name));
            let pressed = keys(pair[2], map.leader);
            let (Some(action), [Ok(pressed)]) = (command.and_then(|c| c.action()), pressed.as_slice()) else {
                continue;
            };
            if !table.iter().any(|row| row.keys == *pressed && row.action == action) {
                wrong.push(format!("{}: {} is not the key of {}", at + 1, pair[2], pair[0]));
            }
        }
    }
    wrong
}

#[test]
fn shipped_texts_name_keys_and_commands_that_exist() {
    let map = preset(registry().words(), "default").unwrap();
    let mut texts = Vec::new();
    TEXTS.iter().for_each(|name| files(&root().join(name), &mut texts));
    let of_pack = |path: &&PathBuf| path.parent().is_some_and(|folder| folder.ends_with("commands"));
    let stem = |path: &PathBuf| path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let own: HashSet<String> = texts
        .iter()
        .filter(of_pack)
        .filter_map(stem)
        .chain(OWN.iter().map(|name| (*name).to_owned()))
        .collect();
    let mut wrong = Vec::new();
    for path in &texts {
        let name = path.strip_prefix(root()).unwrap().display();
        let found = unknown(&std::fs::read_to_string(path).unwrap(), &map, &own);
        wrong.extend(found.into_iter().map(|what| format!("{name}:{what}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // The texts are there, and what they name is found in them.
    assert!(texts.iter().filter(|path| path.ends_with("SKILL.md")).count() > 20, "{}", texts.len());
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let named: usize = readme.lines().map(|line| commands(line).len()).sum();
    let pressed: usize = readme.lines().map(|line| keys(line, map.leader).len()).sum();
    assert!(named > 30 && pressed > 40, "{named} commands, {pressed} keys");
}

#[test]
fn a_text_that_names_what_does_not_exist_is_found() {
    let map = preset(registry().words(), "default").unwrap();
    let wrong = |text: &str| unknown(text, &map, &HashSet::new());
    for fine in [
        "Open `/memory` or `/compare NAME`, then press Ctrl-X T (Ctrl-C twice quits).",
        "| Ctrl-X r, T, u, Ctrl-Z | rewind; suspend |",
        "`/tree` (`Ctrl-X T`) shows all; the leader is `Ctrl-X`, help is F1. Ctrl+X T is the same.",
        "Files are in /usr/bin, `/home` and src/tui; and/or is no command.",
        "```sh\ncurl localhost/health /memroy\n```",
    ] {
        assert_eq!(wrong(fine), Vec::<String>::new(), "{fine}");
    }
    assert_eq!(wrong("Fine.\nOpen `/memroy`."), ["2: there is no command /memroy"]);
    assert_eq!(
        wrong("Press Ctrl-X ~, then Alt-F9."),
        ["1: nothing is bound to Ctrl-X ~", "1: nothing is bound to Alt-F9"]
    );
    assert_eq!(wrong("| Ctrl-X r, ~ | rewind |"), ["1: nothing is bound to Ctrl-X ~"]);
    assert_eq!(wrong("Press Ctrl-Hello."), ["1: Ctrl-Hello: unknown key 'Hello'"]);
    assert_eq!(wrong("`/tree` (`Ctrl-X s`)"), ["1: Ctrl-X s is not the key of /tree"]);
}
