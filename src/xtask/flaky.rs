//! Runs tests again and again on a busy machine: `cargo xtask flaky N [TEST ...] [--base REV]`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// Limit of one round of one test program, far beyond the whole of its tests.
const ROUND: Duration = Duration::from_secs(1_800);
/// Time between two looks at a running test program.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the named tests, or those that were added or changed since `--base` (default: `HEAD`, so uncommitted changes), N
/// times each, while every processor is busy. The problems are the rounds in which a test failed.
///
/// # Errors
/// When the arguments are malformed, git or cargo fails, or there is no such test.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let mut args = std::env::args().skip(2);
    let rounds: u32 = args
        .next()
        .and_then(|n| n.parse().ok())
        .context("usage: cargo xtask flaky N [TEST ...] [--base REV]")?;
    let (mut names, mut base) = (BTreeSet::new(), "HEAD".to_owned());
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--base" => base = args.next().context("--base needs a revision")?,
            _ => drop(names.insert(arg)),
        }
    }
    let mut packages = BTreeSet::new();
    if names.is_empty() {
        for file in changed(root, &base)? {
            let found = tests_in(&std::fs::read_to_string(root.join(&file.path))?, &file.lines);
            if !found.is_empty() {
                packages.insert(package(root, &file.path)?);
            }
            names.extend(found);
        }
        if names.is_empty() {
            say(&format!("no test was added or changed since {base}"));
            return Ok(Vec::new());
        }
    }
    say(&format!("{} test(s): {}", names.len(), names.iter().cloned().collect::<Vec<_>>().join(", ")));
    let programs: Vec<Tests> = built(root, &packages)?
        .into_iter()
        .filter_map(|p| p.only(&names).transpose())
        .collect::<Result<_>>()?;
    ensure!(!programs.is_empty(), "there is no test of that name");
    let _busy = Busy::start();
    let mut problems = Vec::new();
    for round in 1..=rounds {
        for program in &programs {
            let begun = Instant::now();
            let failed = program.round()?;
            let seconds = begun.elapsed().as_secs();
            say(&format!(
                "round {round}: {}: {} test(s), {seconds} s, {} failed",
                program.name(),
                program.tests.len(),
                failed.len()
            ));
            problems.extend(failed.iter().map(|test| format!("round {round}: {test}")));
        }
    }
    Ok(problems)
}

/// One line of progress.
#[expect(clippy::print_stdout, reason = "a command-line tool without a screen")]
fn say(line: &str) {
    println!("flaky: {line}");
}

/// A file that changed, by its path below the repository, and the numbers of its new lines from 1 on.
struct Changed {
    path: PathBuf,
    lines: Vec<(usize, usize)>,
}

/// The Rust files that differ from `base`, those that git does not track yet among them.
fn changed(root: &Path, base: &str) -> Result<Vec<Changed>> {
    let git = |args: &[&str]| -> Result<String> {
        let out = Command::new("git").arg("-C").arg(root).args(args).stderr(Stdio::inherit()).output()?;
        ensure!(out.status.success(), "git {} failed", args.join(" "));
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    };
    let mut all: Vec<Changed> = Vec::new();
    for line in git(&["diff", "--no-ext-diff", "--no-color", "-U0", base, "--", "*.rs"])?.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            all.push(Changed { path: path.into(), lines: Vec::new() });
        } else if let (Some(hunk), Some(file)) = (line.strip_prefix("@@ "), all.last_mut()) {
            file.lines.extend(new_lines(hunk));
        }
    }
    for path in git(&["ls-files", "--others", "--exclude-standard", "--", "*.rs"])?.lines() {
        all.push(Changed { path: path.into(), lines: vec![(1, usize::MAX)] });
    }
    Ok(all)
}

/// First and last new line of a hunk: `-12,3 +14,2 @@`. Where lines were removed only, the ones around them.
fn new_lines(hunk: &str) -> Option<(usize, usize)> {
    let new = hunk.split(' ').find_map(|word| word.strip_prefix('+'))?;
    let (first, count) = new.split_once(',').unwrap_or((new, "1"));
    let (first, count): (usize, usize) = (first.parse().ok()?, count.parse().ok()?);
    Some(if count == 0 { (first, first + 1) } else { (first, first + count - 1) })
}

/// The names of the test functions of a file that have one of these lines. A function ends with the brace that stands as far
/// to the right as its attribute, as rustfmt writes it.
fn tests_in(text: &str, lines: &[(usize, usize)]) -> Vec<String> {
    let all: Vec<&str> = text.lines().collect();
    let is_attribute = |line: &str| {
        let line = line.trim_start();
        line.starts_with("#[test]") || line.starts_with("#[tokio::test")
    };
    let mut found = Vec::new();
    for (at, line) in all.iter().enumerate().filter(|(_, line)| is_attribute(line)) {
        let indent = &line[..line.len() - line.trim_start().len()];
        let end =
            all[at..].iter().position(|l| l.strip_prefix(indent) == Some("}")).map_or(all.len(), |n| at + n);
        let (first, last) = (at + 1, end + 1);
        let name = all[at..=end.min(all.len() - 1)].iter().find_map(|l| {
            let l = l.trim_start();
            let l = l.strip_prefix("async ").unwrap_or(l).strip_prefix("fn ")?;
            l.split(['(', '<']).next()
        });
        if lines.iter().any(|(from, to)| *from <= last && *to >= first) {
            found.extend(name.map(str::to_owned));
        }
    }
    found
}

/// The name of the package that the file belongs to.
fn package(root: &Path, file: &Path) -> Result<String> {
    #[derive(Deserialize)]
    struct Manifest {
        package: Package,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
    }
    let manifest =
        file.ancestors().skip(1).map(|folder| root.join(folder).join("Cargo.toml")).find(|m| m.is_file());
    let manifest = manifest.with_context(|| format!("{} belongs to no package", file.display()))?;
    Ok(toml::from_str::<Manifest>(&std::fs::read_to_string(manifest)?)?.package.name)
}

/// A test program and its tests.
struct Tests {
    program: PathBuf,
    /// The folder in which cargo runs it.
    folder: PathBuf,
    tests: Vec<String>,
}

/// Builds the test programs of these packages; of all, where none is named.
fn built(root: &Path, packages: &BTreeSet<String>) -> Result<Vec<Tests>> {
    #[derive(Deserialize)]
    struct Message {
        #[serde(default)]
        executable: Option<PathBuf>,
        #[serde(default)]
        manifest_path: Option<PathBuf>,
        #[serde(default)]
        profile: BTreeMap<String, serde_json::Value>,
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["test", "--no-run", "--message-format", "json-render-diagnostics"]);
    cargo.args(packages.iter().flat_map(|name| ["--package", name]));
    let out = cargo.stderr(Stdio::inherit()).output()?;
    ensure!(out.status.success(), "the tests cannot be built");
    let mut all = Vec::new();
    for line in String::from_utf8_lossy(&out.stdout).lines().filter(|line| line.contains("\"executable\":\""))
    {
        let message: Message = serde_json::from_str(line)?;
        let is_test = message.profile.get("test") == Some(&serde_json::Value::Bool(true));
        let folder = message.manifest_path.as_deref().and_then(Path::parent).map(Path::to_owned);
        if let (Some(program), Some(folder), true) = (message.executable, folder, is_test) {
            all.push(Tests { program, folder, tests: Vec::new() });
        }
    }
    Ok(all)
}

impl Tests {
    fn name(&self) -> String {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.rsplit_once('-').map_or(name.clone(), |(name, _)| name.to_owned())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    /// With the tests of these names, with or without the modules before them; `None`: it has none of them.
    fn only(mut self, names: &BTreeSet<String>) -> Result<Option<Self>> {
        let list = self.command().arg("--list").stderr(Stdio::null()).output()?;
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        let tests = list.lines().filter_map(|line| line.strip_suffix(": test"));
        let wanted = |test: &&str| {
            names.iter().any(|name| {
                test == name || test.strip_suffix(name.as_str()).is_some_and(|before| before.ends_with("::"))
            })
        };
        self.tests = tests.filter(wanted).map(str::to_owned).collect();
        Ok((!self.tests.is_empty()).then_some(self))
    }

    /// Runs its tests once, as `cargo test` does. Gives the names of those that failed.
    fn round(&self) -> Result<Vec<String>> {
        let log = tempfile::NamedTempFile::new()?;
        let mut child = self
            .command()
            .arg("--exact")
            .args(&self.tests)
            .stdout(log.reopen()?)
            .stderr(log.reopen()?)
            .spawn()
            .with_context(|| format!("{} cannot be started", self.program.display()))?;
        let begun = Instant::now();
        let status = loop {
            match child.try_wait()? {
                Some(status) => break status,
                None if begun.elapsed() > ROUND => {
                    child.kill()?;
                    bail!("{} did not end in {} s: {:?}", self.name(), ROUND.as_secs(), self.tests);
                }
                None => std::thread::park_timeout(LOOK),
            }
        };
        let text = String::from_utf8_lossy(&std::fs::read(log.path())?).into_owned();
        let name = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
        let mut failed: Vec<String> = text.lines().filter_map(name).collect();
        if !status.success() {
            text.lines().for_each(say);
            if failed.is_empty() {
                failed.push(format!("{} ended with {status}", self.name()));
            }
        }
        Ok(failed)
    }
}

/// Keeps every processor busy until it is dropped.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        for _ in 0..std::thread::available_parallelism().map_or(2, std::num::NonZero::get) {
            let over = Arc::clone(&over);
            std::thread::spawn(move || while !over.load(Ordering::Relaxed) {});
        }
        Self(over)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn help() {\n    1\n}\n\n#[test]\nfn one() {\n    help();\n}\n\nmod tests {\n    #[tokio::test(start_paused = true)]\n    \
                        #[ignore]\n    async fn two() {\n        if x {\n        }\n    }\n}\n";

    #[test]
    fn a_change_names_the_tests_that_it_touches() {
        let named = |lines: &[(usize, usize)]| tests_in(FILE, lines);
        assert_eq!(named(&[(1, 3)]), Vec::<String>::new());
        assert_eq!(named(&[(7, 7)]), ["one"]);
        assert_eq!(named(&[(5, 5), (15, 15)]), ["one", "two"]);
        assert_eq!(named(&[(1, usize::MAX)]), ["one", "two"]);
    }

    #[test]
    fn the_new_lines_of_a_hunk_are_read() {
        assert_eq!(new_lines("-12,3 +14,2 @@ fn x() {"), Some((14, 15)));
        assert_eq!(new_lines("-12 +14 @@"), Some((14, 14)));
        assert_eq!(new_lines("-12,3 +11,0 @@"), Some((11, 12)));
    }
}
