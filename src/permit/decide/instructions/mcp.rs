//! Files of instructions that a call of an MCP server names.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tiller_shell::{Word, analyse};

use super::{among, is_named};
use crate::decide::{Policy, Request};
use crate::redact::names::words;
use crate::targets::surely_written;

/// The files of instructions that the arguments of a call of an MCP server name, and to which the user has not agreed. What the
/// tool does is not known: one whose name and arguments only speak of reading writes none.
pub(in crate::decide) fn named(
    policy: &Policy,
    request: &Request<'_>,
    tool: &str,
    arguments: &str,
) -> Vec<PathBuf> {
    let Ok(value) = serde_json::from_str::<Value>(arguments) else {
        return among(policy, request, &literal(arguments), &[]);
    };
    let reads = only_reads(tool) && only_asks(&value);
    let mut texts = Vec::new();
    texts_in(&value, &mut texts);
    // What is fetched from an address may be kept in a file.
    let address = |text: &&str| text.starts_with("http://") || text.starts_with("https://");
    if reads && !texts.iter().any(address) {
        return Vec::new();
    }
    let texts = texts.into_iter().filter(|text| !(reads && address(text)));
    let words: Vec<Word> = texts.flat_map(|text| words_of(policy, text)).collect();
    among(policy, request, &words, &[])
}

/// Bytes of the longest argument that may be a path, and of the longest that is read as a command.
const PATH: usize = 4 << 10;
const COMMAND: usize = 8 << 10;

/// The words of a text that may be paths of files which are written.
fn words_of(policy: &Policy, text: &str) -> Vec<Word> {
    let mut out = Vec::new();
    if text.len() > COMMAND {
        out.extend(literal(text));
    } else if text.contains(char::is_whitespace) && surely(text, &mut out) {
        for piece in text.split(['\n', ';', '&']) {
            if surely(piece, &mut out) && piece.contains('>') {
                out.extend(literal(piece));
            }
        }
    }
    for path in paths_of(text.trim()) {
        // With blanks it is a path where its folder is one.
        let folder = || policy.roots.workspace.join(&path).parent().is_some_and(Path::is_dir);
        if path.len() <= PATH && (!path.contains(char::is_whitespace) || folder()) {
            out.push(Word::fixed(path));
        }
    }
    out
}

/// Adds what a text surely writes if it is a command: of words that are none nothing else counts. True: it is not understood.
fn surely(text: &str, out: &mut Vec<Word>) -> bool {
    let analysis = analyse(text);
    out.extend(analysis.all_redirects().filter(|r| r.writes()).map(|r| r.target.clone()));
    out.extend(analysis.parts.iter().flat_map(surely_written));
    analysis.unclear.is_some()
}

/// The paths that a text may be: as it is, and as the address of a file (RFC 8089).
fn paths_of(text: &str) -> Vec<String> {
    if text.len() > 3 * PATH {
        return Vec::new();
    }
    let local = text.split_at_checked(5).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("file:"));
    let local = local.map(|(_, rest)| match rest.strip_prefix("//") {
        Some(rest) => rest.find('/').map_or(rest, |at| &rest[at..]),
        None => rest,
    });
    let mut out = Vec::new();
    let path = local.map(|rest| rest.split(['?', '#']).next().unwrap_or_default());
    for path in [local.unwrap_or(text), path.unwrap_or(text)] {
        // Twice: a server may decode what a client did already.
        let once = unescaped(path);
        let twice = once.as_deref().and_then(unescaped);
        out.push(path.to_owned());
        out.extend(once.into_iter().chain(twice));
    }
    out.sort();
    out.dedup();
    out
}

/// The text with its percent escapes decoded; `None`: it has none.
fn unescaped(text: &str) -> Option<String> {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let digits =
            bytes.get(at + 1..at + 3).filter(|d| *byte == b'%' && d.iter().all(u8::is_ascii_hexdigit));
        let code =
            digits.and_then(|d| std::str::from_utf8(d).ok()).and_then(|d| u8::from_str_radix(d, 16).ok());
        out.push(code.unwrap_or(*byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    (out.len() < bytes.len()).then(|| String::from_utf8_lossy(&out).into_owned())
}

/// The words of a text that is not understood which have the name of a file of instructions, with its quotes and without.
fn literal(text: &str) -> Vec<Word> {
    let ends = |c: char| c.is_whitespace() || "<>|;&()[]{}=,:".contains(c);
    let quote = |c: char| matches!(c, '\'' | '"' | '`' | '\\');
    let bare: String = text.chars().filter(|c| !quote(*c)).collect();
    let words = text.split(|c| ends(c) || quote(c)).chain(bare.split(ends));
    words.filter(|word| is_named(Path::new(word))).map(Word::fixed).collect()
}

/// Words in the names of tools that read.
const READ: &[&str] = &[
    "read", "get", "list", "search", "find", "view", "show", "cat", "stat", "status", "diff", "fetch",
    "query", "head", "tail", "describe", "count", "lookup", "tree", "blame",
];

/// Words beside these that say what is read.
const READ_OF: &[&str] = &[
    "file",
    "files",
    "content",
    "contents",
    "text",
    "media",
    "multiple",
    "many",
    "all",
    "directory",
    "directories",
    "dir",
    "folder",
    "folders",
    "path",
    "paths",
    "info",
    "metadata",
    "log",
    "logs",
    "history",
    "allowed",
    "code",
    "symbol",
    "symbols",
    "lines",
    "line",
    "git",
    "github",
    "fs",
    "filesystem",
    "repo",
    "repository",
    "resource",
    "resources",
    "with",
    "sizes",
    "size",
    "by",
    "in",
    "of",
    "and",
    "or",
    "for",
    "from",
    "name",
    "names",
    "url",
    "page",
    "doc",
    "docs",
    "document",
    "documents",
    "item",
    "items",
    "commit",
    "commits",
    "branch",
];

/// Whether a tool reads by its name: each word of it is known, and one of them reads.
fn only_reads(tool: &str) -> bool {
    let all = words(tool);
    let any = |word: &String, list: &[&str]| list.contains(&word.as_str());
    tool.is_ascii()
        && all.iter().any(|word| any(word, READ))
        && all.iter().all(|word| any(word, READ) || any(word, READ_OF))
}

/// Words in the names of arguments that say what is read, and how much of it. Any other may be content, or where to put it.
const ASKED: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "name",
    "names",
    "uri",
    "url",
    "uris",
    "urls",
    "folder",
    "dir",
    "directory",
    "root",
    "cwd",
    "query",
    "pattern",
    "patterns",
    "regex",
    "glob",
    "include",
    "exclude",
    "ignore",
    "symbol",
    "encoding",
    "format",
    "sort",
    "order",
    "line",
    "lines",
    "start",
    "end",
    "offset",
    "limit",
    "head",
    "tail",
    "range",
    "view",
    "page",
    "cursor",
    "owner",
    "repo",
    "repository",
    "ref",
    "sha",
    "branch",
    "revision",
    "commit",
    "project",
    "id",
    "by",
    "relative",
    "absolute",
    "workspace",
    "max",
    "min",
    "type",
    "language",
];

/// Whether each argument that holds a text only says what is read.
fn only_asks(value: &Value) -> bool {
    let asked = |name: &str| {
        name.is_ascii() && !words(name).is_empty() && words(name).iter().all(|w| ASKED.contains(&w.as_str()))
    };
    match value {
        Value::Object(fields) => fields.iter().all(|(name, value)| {
            !holds_text(value) && !is_named(Path::new(name)) || asked(name) && only_asks(value)
        }),
        Value::Array(items) => items.iter().all(only_asks),
        _ => true,
    }
}

fn holds_text(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(items) => items.iter().any(holds_text),
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    }
}

/// Adds every text in a value, names of fields too.
fn texts_in<'v>(value: &'v Value, out: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => out.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts_in(item, out)),
        Value::Object(fields) => {
            for (name, value) in fields {
                out.push(name);
                texts_in(value, out);
            }
        }
        _ => {}
    }
}
