//! A patch as one change for each file, for guards that judge files one by one.

use super::parse::{Line, Section, parse};

/// One file of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchedFile {
    /// As written in the patch.
    pub path: String,
    /// The lines that it replaces; `None`: the file is made.
    pub before: Option<String>,
    /// The lines in their place, or of the new file.
    pub after: String,
}

/// The files of a patch; none when it cannot be read, and then the tool refuses it.
pub fn files(text: &str) -> Vec<PatchedFile> {
    let mut all = Vec::new();
    for section in parse(text).unwrap_or_default() {
        match section {
            Section::Add { path, content } => all.push(PatchedFile { path, before: None, after: content }),
            Section::Delete { path } => {
                all.push(PatchedFile { path, before: Some(String::new()), after: String::new() });
            }
            Section::Update { path, to, hunks } => {
                let (mut before, mut after) = (String::new(), String::new());
                for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
                    let add = |text: &mut String, line: &str| {
                        text.push_str(line);
                        text.push('\n');
                    };
                    match line {
                        Line::Keep(line) => {
                            add(&mut before, line);
                            add(&mut after, line);
                        }
                        Line::Cut(line) => add(&mut before, line),
                        Line::Put(line) => add(&mut after, line),
                    }
                }
                let moved = to.map(|path| PatchedFile { path, before: None, after: after.clone() });
                all.push(PatchedFile { path, before: Some(before), after });
                all.extend(moved);
            }
        }
    }
    all
}
