//! Definitions for `@`: the first and last lines of functions, types and the like, found by keywords at the start of a
//! line. Without a grammar: what it misses can still be named by file and lines.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tiller_protocol::view::MentionKind;

use tiller_protocol::view::Mention;

/// Most files that are searched, bytes of one, and definitions that are kept.
const FILES: usize = 4_000;
const BYTES: u64 = 256 << 10;
const MOST: usize = 40_000;
/// Lines of one definition at most.
const LINES: usize = 300;
/// Lines of a preview.
const PREVIEW: usize = 12;

/// Endings of files that hold definitions.
const SOURCES: &[&str] = &[
    "rs", "py", "go", "js", "jsx", "mjs", "ts", "tsx", "java", "kt", "swift", "rb", "php", "cs", "scala",
    "ex", "exs", "lua", "zig", "sh",
];
/// Modifiers before the keyword.
const BEFORE: &[&str] = &[
    "pub",
    "export",
    "default",
    "async",
    "unsafe",
    "extern",
    "public",
    "private",
    "protected",
    "internal",
    "abstract",
    "final",
    "sealed",
    "static",
    "open",
    "override",
    "inline",
    "data",
    "local",
    "declare",
];
/// Keywords that begin a definition.
const KINDS: &[&str] = &[
    "fn",
    "struct",
    "enum",
    "trait",
    "union",
    "type",
    "macro_rules!",
    "class",
    "def",
    "func",
    "fun",
    "function",
    "interface",
    "object",
    "protocol",
    "module",
    "defmodule",
    "record",
    "const",
];

/// One definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    /// `fn`, `struct`, ...
    kind: &'static str,
    name: String,
    path: String,
    /// First and last line, from 1.
    lines: (usize, usize),
    bytes: u64,
    preview: String,
}

impl Symbol {
    /// A row of the list; attaching it attaches these lines of the file.
    pub(crate) fn mention(&self) -> Mention {
        Mention {
            kind: MentionKind::Described(format!("{} {}", self.kind, self.name)),
            name: format!("{}:{}-{}", self.path, self.lines.0, self.lines.1),
            size: Some(self.bytes),
            tokens: Some(crate::context::tokens::of_bytes(self.bytes)),
            preview: self.preview.clone(),
        }
    }

    /// Smaller is better; `None`: no match. Only names that contain the text as it is, since there are many.
    pub(crate) fn score(&self, text: &str) -> Option<usize> {
        let name = self.name.to_lowercase();
        let at = name.find(text)?;
        Some(at * 10 + (name.len() - text.len()))
    }
}

/// Definitions of these files, in order.
pub(crate) fn find(root: &Path, names: &[(String, bool)], over: &AtomicBool) -> Vec<Symbol> {
    let source = |name: &str| name.rsplit_once('.').is_some_and(|(_, end)| SOURCES.contains(&end));
    let mut all = Vec::new();
    for (name, _) in names.iter().filter(|(name, dir)| !dir && source(name)).take(FILES) {
        if over.load(Ordering::Acquire) || all.len() >= MOST {
            break;
        }
        let bytes = tiller_fs::beneath::read_below(root, Path::new(name), BYTES + 1).unwrap_or_default();
        if bytes.len() as u64 <= BYTES
            && let Ok(text) = String::from_utf8(bytes)
        {
            all.extend(of(name, &text));
        }
    }
    all.truncate(MOST);
    all
}

/// Definitions of one file.
fn of(path: &str, text: &str) -> Vec<Symbol> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let Some((kind, name)) = defined(line) else { continue };
        let last = end(&lines, n);
        all.push(Symbol {
            kind,
            name: name.to_owned(),
            path: path.to_owned(),
            lines: (n + 1, last + 1),
            bytes: lines[n..=last].iter().map(|l| l.len() as u64 + 1).sum(),
            preview: lines[n..=last.min(n + PREVIEW)].join("\n"),
        });
    }
    all
}

/// The kind and the name that a line defines.
fn defined(line: &str) -> Option<(&'static str, &str)> {
    let mut rest = line.trim_start();
    loop {
        let (word, after) = rest.split_once([' ', '\t'])?;
        let bare = word.split('(').next().unwrap_or(word);
        if let Some(kind) = KINDS.iter().find(|k| **k == word) {
            let mut name = after.trim_start();
            // Go's receiver stands before the name; `const fn` is a function.
            if name.starts_with('(') {
                name = name.split_once(')')?.1.trim_start();
            }
            if *kind == "const" && name.starts_with("fn ") {
                rest = name;
                continue;
            }
            let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
            return (end > 1).then(|| (*kind, &name[..end]));
        }
        if !BEFORE.contains(&bare) {
            return None;
        }
        rest = after.trim_start();
    }
}

/// The last line of the definition at `from`: it includes lines that are indented more, and the closing bracket.
fn end(lines: &[&str], from: usize) -> usize {
    let indent = |l: &str| l.len() - l.trim_start().len();
    let own = indent(lines[from]);
    let mut last = from;
    for (n, line) in lines.iter().enumerate().skip(from + 1).take(LINES) {
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        if indent(line) > own {
            last = n;
            continue;
        }
        let closes =
            text.starts_with(['}', ')', ']', '{']) || text.starts_with("end") || text.starts_with("where");
        if !closes {
            break;
        }
        last = n;
        if !text.ends_with('{') && !text.ends_with('(') && !text.starts_with("where") {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_from_their_first_to_their_last_line() {
        let rust = "use x;\n\npub(crate) async fn fetch(\n    url: &str,\n) -> u8 {\n    let a = 1;\n\n    a\n}\n\nstruct Unit;\nconst fn two() -> u8 { 2 }\nlet fn_like = 1;\n";
        let found: Vec<_> = of("a.rs", rust).into_iter().map(|s| (s.kind, s.name, s.lines)).collect();
        let want = [("fn", "fetch", (3, 9)), ("struct", "Unit", (11, 11)), ("fn", "two", (12, 12))];
        assert_eq!(found, want.map(|(k, n, l)| (k, n.to_owned(), l)));
        let python = "class Shop:\n    def buy(self):\n        return 1\n\n    def sell(self):\n        pass\n\nx = 1\n";
        let found: Vec<_> = of("a.py", python).into_iter().map(|s| (s.name, s.lines)).collect();
        let want = [("Shop", (1, 6)), ("buy", (2, 3)), ("sell", (5, 6))];
        assert_eq!(found, want.map(|(n, l)| (n.to_owned(), l)));
        let go = "func (s *Server) Serve(a int) error {\n\treturn nil\n}\n";
        assert_eq!(of("a.go", go)[0].mention().kind.to_string(), "func Serve");
        assert_eq!(of("a.go", go)[0].mention().name, "a.go:1-3");
    }
}
