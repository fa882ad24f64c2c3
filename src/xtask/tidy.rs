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

/// Words that open a file by its path.
const OPENS: &[&str] = &["fs::read(", "fs::read_to_string(", "File::open(", "tokio::fs::"];

/// Rooms that read files for a model. They open what was judged, by `tiller_fs::beneath`: between the judgement of a path and
/// its opening a folder can be swapped with a link.
const READERS: &[&str] = &[
    "src/engine/",
    "src/external/",
    "src/hooks/",
    "src/mcp-server/",
    "src/memory/",
    "src/permit/",
    "src/plugins/",
    "src/skills/",
    "src/snapshot/scan/",
    "src/tool/",
    "src/watch/workspace/",
];

/// Files of these rooms that open by path, and why they may.
const OPENERS: &[(&str, &str)] = &[
    ("src/engine/crew/inputs.rs", "a hash: no byte of the file is shown"),
    ("src/external/environment.rs", "the user's settings of a program"),
    ("src/memory/tools/propose_change.rs", "the agent's own definition, of which the name is compared"),
    ("src/permit/paths/tracked.rs", "judges: no byte of the file is shown"),
    ("src/permit/read_only/program.rs", "judges: no byte of the file is shown"),
    ("src/skills/change/", "hashes; drafts in a folder of our own"),
    ("src/skills/packs/lock.rs", "a file of our own"),
    ("src/snapshot/scan/", "the index and the ignore rules of git: no byte of the files is shown"),
    ("src/tool/cx/workspace.rs", "the workspace itself"),
    ("src/tool/files/search.rs", "drafts, in a folder of our own; files by `beneath`"),
    ("src/tool/plan/write_plan.rs", "plans, in a folder of our own"),
    ("src/tool/proxy/tcp.rs", "the tables of sockets in /proc"),
    ("src/tool/shell/", "outputs in folders of our own"),
];

/// The first word of a reader for a model that opens a file by its path, where it may not.
fn opens_by_path(name: &str, code: &str) -> Option<&'static str> {
    let reads = READERS.iter().any(|room| name.starts_with(room));
    if !reads || name.ends_with("/build.rs") || OPENERS.iter().any(|(listed, _)| name.starts_with(listed)) {
        return None;
    }
    // Folders are opened to be flushed, and to begin a walk.
    let harmless =
        |line: &str| ["sync_all()", "open(\"/\")", "/proc/"].iter().any(|word| line.contains(word));
    let lines = || code.lines().filter(|line| !line.trim_start().starts_with("//") && !harmless(line));
    OPENS.iter().find(|word| lines().any(|line| line.contains(**word))).copied()
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
        if let Some(word) = opens_by_path(&name, code).filter(|_| !is_test) {
            problems.push(format!(
                "{name}: opens a file by its path (`{word}`); open what was judged with tiller_fs::beneath, or list \
                 the file in OPENERS of src/xtask/tidy.rs with a reason"
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
            let text = std::fs::read_to_string(&path)?;
            short_limits(&name, &text, &mut problems);
            crate::waits::check(&name, &text, &mut problems);
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

    #[test]
    fn x20_a_reader_that_opens_by_path_is_refused() {
        for code in [
            "std::fs::read(&path)",
            "let f = File::open(path)?;",
            "fs::read_to_string(p)",
            "tokio::fs::read(p)",
        ] {
            assert!(opens_by_path("src/engine/prompts/new.rs", code).is_some(), "{code}");
            assert_eq!(opens_by_path("src/tui/new.rs", code), None, "the screen reads nothing for a model");
            assert_eq!(opens_by_path("src/tool/plan/write_plan.rs", code), None);
        }
        for code in [
            "// fs::read(x)",
            "beneath::read(&judged, 9)",
            "File::open(dir)?.sync_all()",
            "File::open(\"/\")",
        ] {
            assert_eq!(opens_by_path("src/engine/prompts/new.rs", code), None, "{code}");
        }
        for (file, why) in OPENERS {
            assert!(READERS.iter().any(|room| file.starts_with(room)) && !why.is_empty(), "{file}");
        }
    }
}
