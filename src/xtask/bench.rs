//! Measures the budgets marked K with the release binary, a scripted model server and a real terminal.
//!
//! A budget is a ratio to other programs measured on the same machine; here Tiller's figure is shown with the absolute
//! budget of a 2-core machine, so the ratios are meaningful on a calm machine only. `--quick`: fewer repeats;
//! `--no-build`: the existing binary; a word: only the cases whose names contain it. `tests`: the figures of single
//! parts, printed by tests named `figures`.
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "figures for people, on standard output"
)]

mod agents;
mod rig;
mod screen;
pub(crate) mod soak;
mod store;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use rig::figures::{Figures, Unit};
use rig::model::Model;

/// Name and function of each case.
type Case = (&'static str, fn(&Bench, &mut Figures) -> Result<()>);

const CASES: &[Case] = &[
    ("size", size),
    ("sandbox", sandbox),
    ("startup", screen::start::screen),
    ("headless", screen::start::headless),
    ("idle", screen::replies::idle),
    ("keys", screen::keys::rested),
    ("keys-stream", screen::keys::streaming),
    ("keys-full", screen::keys::full),
    ("pane", screen::pane::pane),
    ("flood", screen::replies::flood),
    ("pace", screen::replies::paced),
    ("tools", agents::tools::calls),
    ("outputs", agents::tools::outputs),
    ("crew", agents::crew::crew),
    ("crew-memory", agents::crew::memory),
    ("search", store::search::search),
    ("search-speed", store::speed::speed),
    ("search-first", store::reach::first),
    ("oldest", store::reach::oldest),
    ("tree", screen::tree::browse),
    ("branches", screen::branches::moves),
    ("transfer", store::transfer::transfer),
];

/// The environment of all cases.
struct Bench {
    binary: PathBuf,
    model: Model,
    quick: bool,
    ids: Cell<u32>,
}

impl Bench {
    /// The number of repeats: in a full run, in a quick one.
    fn pick(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// A word that has not been on a screen before.
    fn id(&self) -> String {
        self.ids.set(self.ids.get() + 1);
        format!("k{}e", self.ids.get())
    }
}

/// Waits in real time, as a person does between two keys.
#[expect(clippy::disallowed_methods, reason = "real time is what is measured here")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Builds, measures, prints; the problems are the missed budgets.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let args: Vec<String> = std::env::args().skip(2).collect();
    let has = |flag: &str| args.iter().any(|a| a == flag);
    let only: Vec<&String> = args.iter().filter(|a| !a.starts_with('-')).collect();
    if only.iter().any(|o| *o == "tests") {
        return figures_of_tests(root);
    }
    let binary = binary(root, !has("--no-build"))?;
    let bench = Bench { binary, model: Model::start(), quick: has("--quick"), ids: Cell::new(0) };
    let mut out = Figures::default();
    let mut problems = Vec::new();
    for (name, case) in CASES {
        if only.is_empty() || only.iter().any(|o| name.contains(o.as_str())) {
            eprintln!("bench: {name}");
            // A case that fails does not prevent the others.
            if let Err(e) = case(&bench, &mut out) {
                problems.push(format!("{name} could not be measured: {e:#}"));
            }
        }
    }
    print!("{}", out.table());
    problems.extend(out.missed());
    Ok(problems)
}

/// Runs the tests that only print figures, optimised and one after the other.
fn figures_of_tests(root: &Path) -> Result<Vec<String>> {
    let done = Command::new(env!("CARGO"))
        .args(["test", "--release", "--locked", "--no-fail-fast", "--tests", "--"])
        .args(["--ignored", "figures", "--nocapture", "--test-threads=1"])
        .current_dir(root)
        .status()?;
    Ok(if done.success() { Vec::new() } else { vec!["a test that prints figures failed".into()] })
}

/// The release binary, built first.
fn binary(root: &Path, build: bool) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    if build {
        let done = Command::new(env!("CARGO"))
            .args(["build", "--release", "--locked", "--package=tiller"])
            .current_dir(root)
            .status()?;
        if !done.success() {
            bail!("the release build failed");
        }
    }
    let path = target.join("release/tiller");
    path.canonicalize().with_context(|| format!("no program at {}", path.display()))
}

fn size(b: &Bench, out: &mut Figures) -> Result<()> {
    out.add("binary", b.binary.metadata()?.len() as f64 / f64::from(1 << 20), Unit::Mib, 20.0);
    Ok(())
}

/// What the start of a command costs more in the sandbox than without, in each way that this machine has.
fn sandbox(b: &Bench, out: &mut Figures) -> Result<()> {
    let folder = tempfile::env::temp_dir();
    let rounds = b.pick(100, 20);
    let median = |words: &[&str]| -> Result<f64> {
        let mut times = Vec::new();
        for _ in 0..rounds {
            let began = std::time::Instant::now();
            let status = Command::new(words[0]).args(&words[1..]).current_dir(&folder).status()?;
            times.push(began.elapsed().as_secs_f64() * 1000.0);
            if !status.success() {
                bail!("it ended with {status}");
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    };
    let plain = median(&["/bin/true"])?;
    let tiller = b.binary.display().to_string();
    for (profile, method) in [("read", "landlock"), ("workspace", "landlock"), ("workspace", "bubblewrap")] {
        let words = [&tiller, "sandbox", "run", "--profile", profile, "--method", method, "--", "/bin/true"];
        match median(&words) {
            Ok(time) => out.add(format!("sandbox {profile} {method}"), time - plain, Unit::Ms, 10.0),
            Err(why) => eprintln!("bench: sandbox {profile} {method}: {why:#}"),
        }
    }
    Ok(())
}
