//! Rules that the compiler cannot check: file sizes, forbidden words in rooms, test files that no module lists,
//! built-in files that no list names.

use std::path::{Path, PathBuf};

use anyhow::Result;

/// Maximum lines of a file, tests excluded.
const LONG: usize = 600;

/// Forbidden words: a path prefix under `src/`, the words, the reason.
const ROOMS: &[(&str, &[&str], &str)] = &[
    ("src/engine/turn/machine", &["tokio::", "std::fs"], "a turn decides, the driver acts"),
    ("src/tui/model", &["crossterm::"], "models know no terminal"),
    ("src/tui/cell", &["crossterm::", "Color::"], "colours live in the theme"),
    ("src/tui/panel", &["Color::"], "colours live in the theme"),
    ("src/tui/dialog", &["Color::"], "colours live in the theme"),
    ("src/protocol", &["tokio::", "std::fs"], "the protocol is plain data"),
    ("src/permit", &["tokio::"], "policy is pure"),
    ("src/shell", &["tokio::", "std::fs"], "the grammar sees text only"),
    ("src/text", &["tokio::", "std::fs", "crossterm::", "ratatui::"], "text knows no terminal"),
    (
        "src/",
        &["Command::new(\"git\")"],
        "src/watch/git/command.rs builds every git command, so that nothing else runs",
    ),
];

/// What is at the top of the repository. What tools leave there is easily committed with the rest.
const TOP: &[&str] = &[
    ".cargo",
    ".ci",
    ".clippy.toml",
    ".config",
    ".gitignore",
    ".rustfmt.toml",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "WORDS.md",
    "assets",
    "build.rs",
    "keymaps",
    "skills",
    "src",
    "tests",
    "themes",
];

/// Words that start a process.
const STARTS: &[&str] = &[
    "Command::new(program",
    "process::Command",
    "CommandWrap::",
    "CommandBuilder::new(",
    "spawn_command(",
    "posix_spawn",
    ".spawn()",
    ".exec()",
];

/// Files and folders that may start processes. The table in `src/app/sandbox.rs` says what each starts and how that is
/// confined: a new one gets a row there, and runs through the sandbox unless it is the person's own.
const STARTERS: &[&str] = &[
    "src/tool/shell/processes/launch.rs",
    "src/tool/shell/processes/guardian.rs",
    "src/tool/shell/jobs/background.rs",
    "src/tool/shell/hosted.rs",
    "src/tool/browser/chromium/launch.rs",
    "src/tool/shell/local/mod.rs",
    "src/watch/git/command.rs",
    "src/terminals/",
    "src/sandbox/",
    "src/commands/batch/launch/",
    "src/commands/extensions/skills/trial/bench.rs",
    "src/external/check.rs",
    "src/app/agents.rs",
    "src/app/screen/editor.rs",
    "src/app/screen/statusline.rs",
    "src/detach/",
    "src/tui/dialog/reader/picture.rs",
    "src/tui/terminal/clipboard.rs",
    "src/provider/registry/key.rs",
    "src/xtask/",
];

/// Whether the code starts a process in a file that is not listed.
fn starts_unlisted(name: &str, code: &str) -> Option<&'static str> {
    if STARTERS.iter().any(|listed| name.starts_with(listed)) {
        return None;
    }
    // Threads are started by the same word.
    let of_process = |word: &str| word != ".spawn()" || code.contains("Command");
    let names = |word: &&&str| code.lines().any(|l| l.contains(**word) && !l.trim_start().starts_with("//"));
    STARTS.iter().filter(|word| of_process(word)).find(names).copied()
}

/// A line of a test that limits the time on the clock to less than ten seconds: a loaded machine exceeds it.
fn short_limit(line: &str) -> bool {
    let limits = |line: &str| {
        let Some((_, limit)) = line.split_once(" < ") else { return false };
        let number = |text: &str| text.chars().take_while(char::is_ascii_digit).count() == 1;
        let seconds = limit.split_once("from_secs(").map(|(_, n)| n);
        let bare = line.contains("as_secs() < ").then_some(limit);
        limit.contains("from_millis(") || seconds.or(bare).is_some_and(number)
    };
    line.contains("assert!(") && limits(line) && !line.contains("cpu") && !line.contains(" + SLACK")
}

/// The problems found, one line each.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in files(&root.join("src"), "rs")? {
        let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path)?;
        let is_test = is_test(&name);
        let code = without_tests(&text);
        let lines = code.lines().count();
        if !is_test && lines > LONG {
            problems.push(format!("{name}: {lines} lines; which two things does it do?"));
        }
        if !is_test && !name.starts_with("src/xtask") {
            crate::words::check(&name, code, &mut problems);
        }
        if let Some(word) = starts_unlisted(&name, code).filter(|_| !is_test) {
            problems.push(format!(
                "{name}: starts a process (`{word}`), but is not in the table of src/app/sandbox.rs"
            ));
        }
        if !name.starts_with("src/xtask/") {
            short_limits(&name, &text, &mut problems);
        }
        for (room, words, why) in ROOMS {
            if name.starts_with(room) && !is_test && !name.starts_with("src/xtask/") {
                for w in *words {
                    if code.lines().any(|l| l.contains(w) && !l.trim_start().starts_with("//")) {
                        problems.push(format!("{name}: names `{w}`, but {why}"));
                    }
                }
            }
        }
    }
    problems.extend(unknown_entries(root));
    problems.extend(conflicts(root));
    problems.extend(crate::house::check(root)?);
    crate::words::data(root, &mut problems)?;
    for room in ["tests/it", "tests/engine"] {
        for path in files(&root.join(room), "rs")? {
            unlisted(root, &root.join(room), &path, &mut problems)?;
            let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
            short_limits(&name, &std::fs::read_to_string(&path)?, &mut problems);
        }
    }
    Ok(problems)
}

/// Committed entries at the top that [`TOP`] does not list. None where there is no git, as in a downloaded archive.
fn unknown_entries(root: &Path) -> Vec<String> {
    let listed = std::process::Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
    let listed = listed.map(|out| out.stdout).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed);
    let tops: std::collections::BTreeSet<&str> =
        listed.split('\0').filter_map(|path| path.split('/').next()).filter(|top| !top.is_empty()).collect();
    let unknown = tops.into_iter().filter(|top| !TOP.contains(top));
    unknown
        .map(|top| format!("{top}: remove it from the repository, or list it in TOP of src/xtask/tidy.rs"))
        .collect()
}

/// Lines that a merge has left in committed files.
fn conflicts(root: &Path) -> Vec<String> {
    let marks = ["grep", "-nIE", "^(<{7}|>{7}|[|]{7}) "];
    let found = std::process::Command::new("git").args(marks).current_dir(root).output();
    let found = found.map(|out| out.stdout).unwrap_or_default();
    let lines = String::from_utf8_lossy(&found);
    lines.lines().map(|line| format!("{line}: resolve the conflict of the merge")).collect()
}

fn short_limits(name: &str, text: &str, problems: &mut Vec<String>) {
    let found = text.lines().enumerate().filter(|(_, line)| short_limit(line));
    problems.extend(found.map(|(n, _)| {
        format!(
            "{name}:{}: limits the time on the clock; limit `thread_cpu_time`, count, or wait for the condition",
            n + 1
        )
    }));
}

/// Whether a file holds tests only, by its path.
pub(crate) fn is_test(name: &str) -> bool {
    ["test", "/benches/", "/examples/", "/hostile/"].iter().any(|part| name.contains(part))
}

/// The code of a file without its tests.
pub(crate) fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or("")
}

/// Reports a test file that no `mod` line of its folder names: it would never run.
fn unlisted(root: &Path, room: &Path, path: &Path, problems: &mut Vec<String>) -> Result<()> {
    let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
    // `x/mod.rs` is the module `x` of the folder above.
    let (name, folder) = match (stem, path.parent()) {
        ("main", Some(folder)) if folder == room => return Ok(()),
        ("mod", Some(own)) => {
            (own.file_name().and_then(|s| s.to_str()).unwrap_or_default(), own.parent().unwrap_or(room))
        }
        (_, folder) => (stem, folder.unwrap_or(room)),
    };
    let list = folder.join(if folder == room { "main.rs" } else { "mod.rs" });
    let text = std::fs::read_to_string(&list).unwrap_or_default();
    if !text.lines().any(|l| l.trim_start_matches("pub(crate) ") == format!("mod {name};")) {
        let (path, list) = (path.strip_prefix(root)?.display(), list.strip_prefix(root)?.display());
        problems.push(format!("{path} is in no `mod` line of {list}"));
    }
    Ok(())
}

/// Files below `dir` with this suffix, sorted.
pub(crate) fn files(dir: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let (mut found, mut todo) = (Vec::new(), vec![dir.to_path_buf()]);
    while let Some(d) = todo.pop() {
        for e in std::fs::read_dir(&d)? {
            let e = e?;
            let path = e.path();
            if e.file_type()?.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|x| x == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_the_clock_is_found() {
        assert!(short_limit(r"assert!(took < Duration::from_millis(300));"));
        assert!(short_limit(r"assert!(began.elapsed() < Duration::from_secs(6), 1);"));
        assert!(short_limit(r"assert!(start.elapsed().as_secs() < 5);"));
        assert!(!short_limit(r"assert!(start.elapsed() < Duration::from_secs(60));"));
        assert!(!short_limit(r"assert!(cpu < Duration::from_millis(300));"));
        assert!(!short_limit(r"assert!(took >= Duration::from_millis(300));"));
    }

    #[test]
    fn a_start_of_a_process_elsewhere_is_refused() {
        let start = "let child = std::process::Command::new(\"x\").spawn()?;";
        assert_eq!(starts_unlisted("src/engine/hooks.rs", start), Some("process::Command"));
        assert_eq!(
            starts_unlisted("src/engine/hooks.rs", "CommandWrap::with_new(p, |c| {})"),
            Some("CommandWrap::")
        );
        assert_eq!(starts_unlisted("src/engine/hooks.rs", "// process::Command is not used here"), None);
        assert_eq!(starts_unlisted("src/app/agents.rs", start), None);
        assert_eq!(starts_unlisted("src/engine/hooks.rs", "std::thread::Builder::new().spawn()"), None);
    }
}
