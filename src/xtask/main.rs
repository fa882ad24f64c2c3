//! Tasks for development: `cargo xtask TASK`; `TASKS` lists them.

#[cfg(target_os = "linux")]
mod battery;
mod bench;
mod deny;
mod flaky;
mod house;
mod long;
mod table;
mod texts;
mod tidy;
mod waits;
mod words;

use std::path::Path;
use std::process::{Command, ExitCode};

/// Name, description, and function: from the repository's folder to the problems found.
type Task = (&'static str, &'static str, fn(&Path) -> anyhow::Result<Vec<String>>);

/// All tasks.
const TASKS: &[Task] = &[
    ("tidy", "rules of the house that the compiler cannot check", tidy::run),
    ("words", "texts that are not in the table of texts that were read; --write adds them", table::run),
    ("house", "print the measures of the structure and their limits", house::print),
    ("deny", "licences and duplicate versions, by .config/deny.toml", deny::run),
    ("gallery", "every screen as a picture: gallery DIR; --help says more", gallery),
    ("fuzz", "hostile bytes against everything that reads them: fuzz TARGET|all|--list", fuzz),
    ("bench", "measure the budgets of the workbench and print the table", bench::run),
    (
        "flaky",
        "run added and changed tests, or those named, N times on a busy machine: flaky N [TEST ...]",
        flaky::run,
    ),
    (
        "long",
        "the tests that take too long for each run of CI; --whole adds those of half an hour and more",
        long::run,
    ),
    ("soak", "hours of mixed work in minutes, to see that nothing grows: soak --minutes N", bench::soak::run),
    #[cfg(target_os = "linux")]
    ("battery", "escapes and everyday jobs in sandboxes, ours and others", battery::run),
];

/// Runs `src/xtask/gallery`, which is a program of its own: the other tasks need not wait until the screen is built.
fn gallery(_root: &Path) -> anyhow::Result<Vec<String>> {
    let done = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "tiller-gallery", "--"])
        .args(std::env::args().skip(2))
        .status()?;
    Ok(if done.success() { Vec::new() } else { vec!["no pictures were written".into()] })
}

/// Runs `tests/fuzz`, built with optimisation.
fn fuzz(_root: &Path) -> anyhow::Result<Vec<String>> {
    let done = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--profile", "fuzz", "--package", "tiller-fuzz", "--"])
        .args(std::env::args().skip(2))
        .status()?;
    Ok(if done.success() { Vec::new() } else { vec!["there were failures".into()] })
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool without a screen")]
fn main() -> ExitCode {
    let asked = std::env::args().nth(1).unwrap_or_default();
    let Some((_, _, run)) = TASKS.iter().find(|(name, ..)| *name == asked) else {
        eprintln!("usage: cargo xtask TASK");
        for (name, help, _) in TASKS {
            eprintln!("  {name:8} {help}");
        }
        return ExitCode::from(2);
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match run(&root) {
        Ok(problems) if problems.is_empty() => {
            println!("{asked}: ok");
            ExitCode::SUCCESS
        }
        Ok(problems) => {
            for p in &problems {
                println!("{asked}: {p}");
            }
            println!("{asked}: {} problem(s)", problems.len());
            ExitCode::FAILURE
        }
        Err(e) => {
            eprintln!("{asked}: {e:#}");
            ExitCode::FAILURE
        }
    }
}
