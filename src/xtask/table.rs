//! The table of texts: every label, hint and error of the source, one file for each room, in `.config/texts`. A text
//! that is new or changed shows there alone, without the code around it, so that it is read to its end before it is
//! committed.
//!
//! A text is a string literal of at least two words or a capitalised word, or a doc comment that becomes help or a
//! description. Not listed: single lower-case words, which are mostly identifiers, SQL, sequences for the
//! terminal, and the texts of data files, whose own differences show them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

use crate::texts;

/// The folder of the tables, relative to the repository.
const FOLDER: &str = ".config/texts";

/// First words of SQL.
const SQL: &[&str] = &[
    "ALTER",
    "BEGIN",
    "CREATE",
    "DELETE",
    "DROP",
    "INSERT",
    "PRAGMA",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "UPDATE",
    "WITH",
];

/// Texts of each room with their first place, `file:line`.
type Rooms = BTreeMap<String, BTreeMap<String, String>>;

/// Compares the source with the tables; with `--write` as the argument after the task, writes them.
///
/// # Errors
/// When a file cannot be read or written.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let rooms = read(root)?;
    let folder = root.join(FOLDER);
    if std::env::args().nth(2).as_deref() == Some("--write") {
        write(&folder, &rooms)?;
        return Ok(Vec::new());
    }
    compare(&folder, &rooms)
}

/// All texts of the source, tests and this program left out.
fn read(root: &Path) -> Result<Rooms> {
    let mut rooms = Rooms::new();
    for path in crate::tidy::files(&root.join("src"), "rs")? {
        let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
        let tests = ["src/xtask", "src/external/fake.rs", "src/tui/scene.rs"];
        if crate::tidy::is_test(&name)
            || tests.iter().any(|t| name.starts_with(t))
            || name.contains("/gallery/")
        {
            continue;
        }
        let room = name.split('/').nth(1).filter(|room| !room.ends_with(".rs")).unwrap_or("main").to_owned();
        let code = std::fs::read_to_string(&path)?;
        let table = rooms.entry(room).or_default();
        for (line, text) in of_code(crate::tidy::without_tests(&code)) {
            table.entry(text).or_insert_with(|| format!("{name}:{line}"));
        }
    }
    Ok(rooms)
}

/// The texts of one file, each on one line.
fn of_code(code: &str) -> Vec<texts::Text> {
    let literals =
        texts::literals(code).into_iter().map(|(line, text)| (line, text[1..text.len() - 1].to_owned()));
    let literals = literals.filter(|(_, text)| is_read(text));
    let all = literals.chain(texts::printed_docs(code));
    all.map(|(line, text)| (line, text.split_whitespace().collect::<Vec<_>>().join(" "))).collect()
}

/// Whether a person or a model reads the literal.
fn is_read(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let Some(first) = words.next() else { return false };
    // SQL, and sequences for the terminal.
    if SQL.contains(&first) || text.contains("x1b[") {
        return false;
    }
    let is_word = |word: &str| word.chars().any(char::is_alphabetic) || word.contains('{');
    let is_label =
        first.starts_with(|c: char| c.is_uppercase()) && first.contains(|c: char| c.is_lowercase());
    match text.split_whitespace().filter(|word| is_word(word)).count() {
        0 => false,
        1 => is_label,
        _ => text.chars().any(char::is_alphabetic),
    }
}

/// The differences between the source and the tables, one line each.
fn compare(folder: &Path, rooms: &Rooms) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for (room, texts) in rooms {
        let path = folder.join(room).with_extension("txt");
        let table = std::fs::read_to_string(&path).unwrap_or_default();
        let table: BTreeSet<&str> = table.lines().collect();
        for (text, place) in texts.iter().filter(|(text, _)| !table.contains(text.as_str())) {
            problems.push(format!("{place}: {text:?} is not in {FOLDER}/{room}.txt"));
        }
        for text in table.iter().filter(|text| !texts.contains_key(**text)) {
            problems.push(format!("{FOLDER}/{room}.txt: {text:?} is no longer in the source"));
        }
    }
    for path in crate::tidy::files(folder, "txt").context(FOLDER)? {
        let room = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        if !rooms.contains_key(&room) {
            problems.push(format!("{FOLDER}/{room}.txt: there is no such room"));
        }
    }
    if !problems.is_empty() {
        problems.push("read each new text to its end, then run: cargo xtask words --write".to_owned());
    }
    Ok(problems)
}

fn write(folder: &Path, rooms: &Rooms) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    for (room, texts) in rooms.iter().filter(|(_, texts)| !texts.is_empty()) {
        let lines: String = texts.keys().flat_map(|text| [text.as_str(), "\n"]).collect();
        std::fs::write(folder.join(room).with_extension("txt"), lines)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_two_words_or_is_a_label() {
        for text in ["two words", "{} entries", "Settings", "Not\nnow", "a {name}"] {
            assert!(is_read(text), "{text}");
        }
        for text in [
            "word",
            "session_id",
            "{}: {}",
            "SELECT id FROM entries",
            "x1b[?25h x1b[m",
            "{name}",
            "-- ",
            "ID",
            " ",
        ] {
            assert!(!is_read(text), "{text}");
        }
    }

    #[test]
    fn a_text_is_one_line_and_help_is_a_text() {
        let code = "let a = \"one\n   two\";\n#[derive(Args)]\npub struct A {\n    /// Print\n    /// it\n    pub all: bool,\n}\n";
        let expected = [(1, "one two"), (5, "Print it")].map(|(n, t)| (n, t.to_owned()));
        assert_eq!(of_code(code), expected);
    }

    #[test]
    fn a_new_text_and_one_that_is_gone_are_found_until_the_table_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let rooms = |text: &str| {
            let texts = BTreeMap::from([(text.to_owned(), "src/engine/x.rs:3".to_owned())]);
            Rooms::from([("engine".to_owned(), texts)])
        };
        write(folder.path(), &rooms("it was stopped")).unwrap();
        assert_eq!(compare(folder.path(), &rooms("it was stopped")).unwrap(), Vec::<String>::new());
        let found = compare(folder.path(), &rooms("it was ended")).unwrap();
        let expected = [
            "src/engine/x.rs:3: \"it was ended\" is not in .config/texts/engine.txt",
            ".config/texts/engine.txt: \"it was stopped\" is no longer in the source",
            "read each new text to its end, then run: cargo xtask words --write",
        ];
        assert_eq!(found, expected);
        let found = compare(folder.path(), &Rooms::new()).unwrap();
        assert_eq!(found[0], ".config/texts/engine.txt: there is no such room");
    }
}
