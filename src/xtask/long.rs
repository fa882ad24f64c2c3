//! The tests that take too long for each run of CI: `cargo xtask long [--whole]`.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

/// Tests that only print figures, or that `.ci/run` runs by their names.
const NO_TESTS: &[&str] = &["figures", "published", "at_most_one_line"];

/// Tests of half an hour and more: run with `--whole`.
const WHOLE: &[&str] = &[
    "room_tests::random",
    "_whole_",
    "a4_nobody",
    "s3_a_thousand",
    "s7_damage_full",
    "s12_half",
    "a_million_random",
];

/// Runs the long group, then the agent programs of other vendors in the versions with which the adapters were last seen to
/// work. The problems are the steps that failed.
///
/// # Errors
/// When an argument is unknown, or a step cannot be started.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let mut left_out = NO_TESTS.to_vec();
    match std::env::args().nth(2).as_deref() {
        None => left_out.extend(WHOLE),
        Some("--whole") => {}
        Some(other) => bail!("{other} is unknown: cargo xtask long [--whole]"),
    }
    say(&format!("left out: {}", left_out.join(", ")));
    let mut problems = Vec::new();
    let mut step = |name: &str, cargo: &mut Command| -> Result<()> {
        say(name);
        if !cargo.current_dir(root).status()?.success() {
            problems.push(format!("{name} failed"));
        }
        Ok(())
    };
    let mut ignored = Command::new(env!("CARGO"));
    ignored.args(["test", "--no-fail-fast", "--tests", "--", "--ignored"]);
    ignored.args(left_out.iter().flat_map(|name| ["--skip", name]));
    step("the long tests", &mut ignored)?;
    let pinned = Command::new(".ci/clis").current_dir(root).arg("pinned").output()?;
    say(String::from_utf8_lossy(&pinned.stderr).trim());
    let folders = String::from_utf8_lossy(&pinned.stdout).trim().to_owned();
    if pinned.status.success() && !folders.is_empty() {
        let mut programs = Command::new(env!("CARGO"));
        programs.args(["test", "--no-fail-fast", "--test", "it", "external::", "--", "--test-threads", "3"]);
        step("the pinned versions of other programs", programs.env("TILLER_TEST_CLIS", folders))?;
    }
    Ok(problems)
}

/// One line of progress.
#[expect(clippy::print_stdout, reason = "a command-line tool without a screen")]
fn say(line: &str) {
    if !line.is_empty() {
        println!("long: {line}");
    }
}
