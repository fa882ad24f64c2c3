//! The files that the commands of hooks name, and those that they write.
//!
//! A file that a hook runs or reads is trusted with it; one that it writes, such as a log, is no part of that: it changes with each run.

use std::path::{Component, Path, PathBuf};

/// Variables that stand for the project's folder in the commands of hooks.
const FOLDER: &[&str] = &["TILLER_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "PWD"];

/// The paths in `text` that are run or read, relative to `folder`; they need not exist. `text` is a command, or a file of hooks.
pub fn named(folder: &Path, text: &str) -> Vec<PathBuf> {
    let text = in_folder(folder, text);
    let ranges: Vec<_> = targets(&text).into_iter().map(|(at, word)| at..at + word.len()).collect();
    let values = logs(&text);
    let is_written = |at: usize, word: &str| {
        ranges.iter().any(|range| range.contains(&at))
            || values.iter().any(|(from, value)| *from == at && *value == word)
    };
    let words = words(&text).filter(|(at, word)| !is_written(*at, word));
    let mut all: Vec<PathBuf> = words.filter_map(|(_, word)| inside(word)).collect();
    all.sort();
    all.dedup();
    all
}

/// The names, without folders, of files that `text` writes: a command, a file of hooks, or a script.
pub fn written(text: &str) -> Vec<String> {
    let (targets, logs) = (targets(text), logs(text));
    let name = |word: &str| word.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned);
    targets.into_iter().chain(logs).filter_map(|(_, word)| name(word)).collect()
}

/// Programs that run the file that is their first argument.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "node", "deno", "bun", "perl", "ruby",
    "php", ".", "source",
];
/// Words before a command.
const BEFORE: &[&str] = &[
    "if", "then", "else", "elif", "while", "until", "do", "!", "{", "exec", "env", "command", "time",
    "nohup", "run",
];

/// The files in `folder` that `command` runs: by their paths, or by an interpreter. Relative to it.
pub fn run(folder: &Path, command: &str) -> Vec<PathBuf> {
    let text = in_folder(folder, command);
    let mut all = Vec::new();
    for part in text.split([';', '|', '&', '\n', '(', ')', '`']) {
        let mut words = part.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        let is_before = |word: &str| BEFORE.contains(&word) || word.contains('=');
        let Some(program) = words.by_ref().find(|word| !is_before(word)) else { continue };
        let name = program.rsplit('/').next().unwrap_or(program);
        if INTERPRETERS.contains(&name) {
            all.extend(words.find(|word| !word.starts_with('-') && !is_before(word)).and_then(inside));
        }
        if program.contains('/') || program.starts_with('.') && program != "." {
            all.extend(inside(program));
        } else {
            // A file of this name beside the folder's others: `cd` or PATH may lead to it.
            all.extend(inside(program).filter(|path| path.extension().is_some()));
        }
    }
    all
}

/// The text with paths in `folder` relative to it.
fn in_folder(folder: &Path, text: &str) -> String {
    let mut text = text.to_owned();
    for variable in FOLDER {
        for written in [format!("${{{variable}}}"), format!("${variable}")] {
            text = text.replace(&format!("\"{written}\"/"), "").replace(&format!("{written}/"), "");
        }
    }
    let folder = folder.display().to_string();
    if folder.len() > 1 { text.replace(&format!("{folder}/"), "") } else { text }
}

/// The path of a word, if it can lie in the folder.
fn inside(word: &str) -> Option<PathBuf> {
    let path = PathBuf::from(word.strip_prefix("./").unwrap_or(word));
    let fits = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    (!word.is_empty() && path.components().all(fits)).then_some(path)
}

fn separates(c: char) -> bool {
    c.is_whitespace() || "\"'`;|&<>()=,$".contains(c)
}

/// All words, each with its place.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let at = |word: &str| word.as_ptr().addr() - text.as_ptr().addr();
    text.split(separates).filter(|word| !word.is_empty()).map(move |word| (at(word), word))
}

/// The word at the beginning of `text[from..]`, behind blanks, quotation marks and a backslash before one, with its place.
fn word_at(text: &str, from: usize) -> Option<(usize, &str)> {
    let rest = &text[from..];
    let start = from + rest.len() - rest.trim_start_matches([' ', '\t', '"', '\'', '\\']).len();
    let end = text[start..].find(separates).map_or(text.len(), |length| start + length);
    (end > start).then(|| (start, &text[start..end]))
}

/// The words that output is redirected to, or that `tee` writes. A variable stands for the value that the text gives it.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    for (at, _) in text.match_indices('>') {
        let rest = &text[at + 1..];
        // `>>` is found at its second sign; `>&2` is no file.
        let behind = at + 1 + rest.len() - rest.trim_start_matches(['|', ' ', '\t']).len();
        all.extend(target(text, behind));
    }
    for (at, _) in text.match_indices("tee ") {
        let begins = text[..at].chars().next_back().is_none_or(|c| separates(c) || c == '/');
        let mut next = begins.then_some(at + 3);
        while let Some(from) = next.take() {
            let ends = text[from..]
                .trim_start_matches([' ', '\t'])
                .starts_with(['\n', ';', '|', '&', '<', '>', ')']);
            let found = if ends { None } else { target(text, from) };
            next = found.map(|_| word_end(text, from));
            all.extend(found.filter(|(_, word)| !word.starts_with('-')));
        }
    }
    all
}

/// The end of the word behind `from`, with a quotation mark behind it.
fn word_end(text: &str, from: usize) -> usize {
    let rest = &text[from..];
    let start = from + rest.len() - rest.trim_start_matches([' ', '\t', '"', '\'', '\\', '$', '{']).len();
    let end = text[start..].find(separates).map_or(text.len(), |length| start + length);
    let rest = &text[end..];
    end + rest.len() - rest.trim_start_matches(['"', '\'']).len()
}

/// The file at `from`: a word, or the value of a variable.
fn target(text: &str, from: usize) -> Option<(usize, &str)> {
    let rest = text[from..].trim_start_matches([' ', '\t', '"', '\'', '\\']);
    let Some(variable) = rest.strip_prefix('$') else { return word_at(text, from) };
    let variable = variable.strip_prefix('{').unwrap_or(variable);
    let end = variable.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(variable.len());
    let (name, behind) = variable.split_at(end);
    let behind = behind.strip_prefix('}').unwrap_or(behind);
    if behind.starts_with('/') {
        return word_at(text, text.len() - behind.len() + 1);
    }
    let assigned = format!("{name}=");
    let (at, _) = text.match_indices(assigned.as_str()).find(|(at, _)| {
        !name.is_empty()
            && text[..*at].chars().next_back().is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
    })?;
    word_at(text, at + assigned.len())
}

/// The values of options for a log or for output.
fn logs(text: &str) -> Vec<(usize, &str)> {
    let all: Vec<_> = words(text).collect();
    let is_option = |word: &str| {
        let long = word.strip_prefix("--").is_some_and(|name| name.contains("log") || name.contains("out"));
        long || word == "-o"
    };
    all.windows(2).filter(|pair| is_option(pair[0].1)).map(|pair| pair[1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        named(Path::new("/w"), text).iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn what_is_run_is_named_and_what_is_written_is_not() {
        for (text, runs, writes) in [
            ("sh tools/guard.sh", "tools/guard.sh", ""),
            ("./guard.sh --strict", "guard.sh", ""),
            ("sh \"$TILLER_PROJECT_DIR/tools/guard.sh\"", "tools/guard.sh", ""),
            ("sh \"${TILLER_PROJECT_DIR}\"/tools/guard.sh", "tools/guard.sh", ""),
            ("/w/tools/guard.sh", "tools/guard.sh", ""),
            ("sh guard.sh >> hook.log", "guard.sh", "hook.log"),
            ("sh guard.sh >hook.log 2>&1", "guard.sh", "hook.log"),
            ("sh guard.sh 2>> \"logs/hook.log\"", "guard.sh", "hook.log"),
            ("sh guard.sh | tee -a hook.log other.log; true", "guard.sh", "other.log"),
            ("LOG=hook.log; sh guard.sh >>\"$LOG\"", "guard.sh", "hook.log"),
            ("sh guard.sh >> \"$TILLER_PROJECT_DIR/hook.log\"", "guard.sh", "hook.log"),
            ("guard.sh --log hook.log", "guard.sh", "hook.log"),
            ("guard.sh --log-file=hook.log", "guard.sh", "hook.log"),
            ("cat >guard.sh; sh guard.sh", "guard.sh", "guard.sh"),
        ] {
            assert!(paths(text).contains(&runs.to_owned()), "{text}: {:?}", paths(text));
            let written = written(text);
            assert!(writes.is_empty() || written.contains(&writes.to_owned()), "{text}: {written:?}");
            let is_log = |name: &String| name.contains(".log");
            assert!(!paths(text).iter().any(is_log), "{text}: {:?}", paths(text));
        }
        for text in ["sh /etc/x", "sh ../x", ""] {
            assert!(!paths(text).iter().any(|path| path.ends_with('x')), "{text}");
        }
        assert_eq!(paths("sh guard.log"), ["guard.log", "sh"]);
    }

    #[test]
    fn what_a_command_runs_is_found() {
        for (command, files) in [
            ("sh tools/guard.sh", &["tools/guard.sh"][..]),
            ("exec ./tools/guard --strict", &["tools/guard"]),
            ("A=1 python3 -u 'tools/guard.py' src/a.py", &["tools/guard.py"]),
            ("if sh a.sh; then node b.js >c.log; fi", &["a.sh", "b.js"]),
            ("\"$TILLER_PROJECT_DIR/tools/guard.sh\" x", &["tools/guard.sh"]),
            ("/w/tools/guard.sh | . lib.sh", &["tools/guard.sh", "lib.sh"]),
            ("prettier --check README.md", &[]),
            ("cargo test --manifest-path Cargo.toml", &[]),
            ("echo no >&2; exit 2", &[]),
            ("/usr/bin/env true", &[]),
        ] {
            let found: Vec<_> =
                run(Path::new("/w"), command).iter().map(|p| p.display().to_string()).collect();
            assert_eq!(found, files, "{command}");
        }
    }
}
