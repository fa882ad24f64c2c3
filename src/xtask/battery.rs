//! Escapes and everyday jobs in Tiller's sandbox, beside the sandboxes of others: a table on standard output.
//!
//! `TILLER_BATTERY_CODEX` and `TILLER_BATTERY_SRT` name the executables to compare with. `--no-build`: the binary that is
//! there; `--only escapes`, `--only jobs`, or `--only read`: escapes from the profile `read`; a word: only the rows whose names contain it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "figures for people, on standard output")]

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use tiller_battery::{Sandbox, compare_escapes, compare_jobs, escapes, jobs};

/// Runs them and prints the tables. The problems are the escapes from Tiller's sandbox.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let args: Vec<String> = std::env::args().skip(2).collect();
    let root = root.canonicalize()?;
    if !args.iter().any(|a| a == "--no-build") {
        let status = Command::new(env!("CARGO")).args(["build", "--quiet"]).current_dir(&root).status()?;
        ensure!(status.success(), "the program cannot be built");
    }
    let only = args.iter().position(|a| a == "--only").and_then(|at| args.get(at + 1)).cloned();
    let wanted = |what: &str| only.as_deref().is_none_or(|o| o == what);
    let word = args.iter().find(|a| !a.starts_with("--") && only.as_ref() != Some(*a)).cloned();
    let named = |name: &str| word.as_deref().is_none_or(|w| name.contains(w));

    let folder = root.join("target/battery");
    let program = root.join("target/debug/tiller");
    let read = only.as_deref() == Some("read");
    let mut sandboxes: Vec<Sandbox> = [false, true]
        .map(|bubblewrap| Sandbox::Tiller { program: program.clone(), bubblewrap, read })
        .into_iter()
        .chain(if read { Vec::new() } else { Sandbox::others() })
        .collect();
    sandboxes.retain(|s| match s.probe(&folder) {
        Ok(()) => true,
        Err(why) => {
            println!("{} cannot be tried here: {why}", s.name());
            false
        }
    });
    let mut problems = Vec::new();
    if wanted("escapes") || read {
        let all = escapes()?.into_iter().filter(|e| named(&e.name) && (read || !e.writes_workspace()));
        let all: Vec<_> = all.collect();
        let report = compare_escapes(&all, &sandboxes, &folder, &|row| eprintln!("{row}"))?;
        println!("{report}");
        for (column, sandbox) in sandboxes.iter().enumerate() {
            if matches!(sandbox, Sandbox::Tiller { .. }) {
                problems.extend(
                    report.with(column, true).into_iter().map(|e| format!("{}: {e}", sandbox.name())),
                );
            }
        }
    }
    if wanted("jobs") {
        let all: Vec<_> = jobs()?.into_iter().filter(|j| named(&j.name)).collect();
        let report = compare_jobs(&all, &sandboxes, &folder, &|row| eprintln!("{row}"))?;
        println!("{report}");
        for (column, sandbox) in sandboxes.iter().enumerate() {
            for failed in report.with(column, false) {
                println!("{}: {failed}", sandbox.name());
            }
        }
    }
    let _ = std::fs::remove_dir(&folder);
    Ok(problems)
}
