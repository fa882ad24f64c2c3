//! Every escape of `tests/battery` in both of the sandbox's methods, and the everyday jobs.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tiller_battery::{Report, Sandbox, compare_escapes, compare_jobs, escapes, jobs};

use crate::common::TILLER;

/// What still gets out with Landlock and seccomp alone, and with bubblewrap as well. Each is an open defect: an entry is
/// removed with the change that closes it, and none is added.
const OPEN: [&[&str]; 2] = [&[], &[]];

/// The escapes that still get out here, with the best method that this machine has.
pub(super) fn open_escapes() -> &'static [&'static str] {
    let hidden = std::env::var("TILLER_TEST_BUBBLEWRAP").is_ok_and(|path| path == "none");
    OPEN[usize::from(!hidden && tiller_sandbox::Confinement::find().bubblewrap.is_some())]
}

/// The same for the profile `read`.
const OPEN_IN_READ: [&[&str]; 2] = [&[], &[]];

/// Jobs that do not run yet, by method.
const FAILING: [&[&str]; 2] = [&[], &[]];

/// The methods that this machine has, each with its place in the tables above.
fn methods(read: bool, folder: &Path) -> Vec<(usize, Sandbox)> {
    let tiller = |bubblewrap| Sandbox::Tiller { program: PathBuf::from(TILLER), bubblewrap, read };
    let all = [false, true].map(tiller);
    let mut found = Vec::new();
    for (at, sandbox) in all.into_iter().enumerate() {
        match sandbox.probe(folder) {
            Ok(()) => found.push((at, sandbox)),
            Err(why) => eprintln!("skipped: {} does not run here: {why}", sandbox.name()),
        }
    }
    found
}

/// Not in a folder for temporary files, which commands in a sandbox may write.
fn folder() -> tempfile::TempDir {
    tiller_testkit::lasting(env!("CARGO_TARGET_TMPDIR"))
}

/// All escapes in all methods, once for all tests.
fn escaped() -> &'static (Vec<(usize, Sandbox)>, Report) {
    static REPORT: OnceLock<(Vec<(usize, Sandbox)>, Report)> = OnceLock::new();
    REPORT.get_or_init(|| {
        let folder = folder();
        let methods = methods(false, folder.path());
        let sandboxes: Vec<Sandbox> = methods.iter().map(|(_, s)| s.clone()).collect();
        let mut escapes = escapes().unwrap();
        escapes.retain(|e| !sandboxes.is_empty() && !e.writes_workspace());
        let report = compare_escapes(&escapes, &sandboxes, folder.path(), &|_| {}).unwrap();
        for why in report.skipped() {
            eprintln!("skipped: {why}");
        }
        (methods, report)
    })
}

/// Compares what failed with the list of what is known to fail.
fn only_known(what: &str, failed: &[String], known: &[&str]) {
    let name = |line: &String| line.split(':').next().unwrap_or_default().to_owned();
    let names: Vec<String> = failed.iter().map(name).collect();
    for gone in known.iter().filter(|k| !names.contains(&(**k).to_owned())) {
        eprintln!("{what}: {gone} is listed, and is closed: remove it from the list");
    }
    let new: Vec<&String> = failed.iter().filter(|f| !known.contains(&name(f).as_str())).collect();
    assert!(new.is_empty(), "{what}: {new:#?}");
}

fn no_new_escape(method: usize) {
    let (methods, report) = escaped();
    let Some(column) = methods.iter().position(|(at, _)| *at == method) else { return };
    assert!(report.tried() >= 60, "{} escapes work here at all: {:#?}", report.tried(), report.skipped());
    let unseen = report.unobserved(column);
    assert!(unseen.is_empty(), "{unseen:?}");
    only_known(methods[column].1.name(), &report.with(column, true), OPEN[method]);
}

#[test]
fn no_new_escape_gets_out_of_landlock_and_seccomp() {
    no_new_escape(0);
}

#[test]
fn no_new_escape_gets_out_with_bubblewrap() {
    no_new_escape(1);
}

/// The profile of commands that run unasked: not even the workspace is written.
#[test]
fn no_new_escape_gets_out_of_the_profile_read() {
    let folder = folder();
    let methods = methods(true, folder.path());
    if methods.is_empty() {
        return;
    }
    let sandboxes: Vec<Sandbox> = methods.iter().map(|(_, s)| s.clone()).collect();
    let mut escapes = escapes().unwrap();
    escapes.retain(|e| {
        e.writes_workspace() || e.shows_secrets() || e.group == "network" || e.group == "processes"
    });
    let report = compare_escapes(&escapes, &sandboxes, folder.path(), &|_| {}).unwrap();
    assert!(report.tried() >= 40, "{:#?}", report.skipped());
    for (column, (method, sandbox)) in methods.iter().enumerate() {
        only_known(sandbox.name(), &report.with(column, true), OPEN_IN_READ[*method]);
    }
}

/// 95 % of the everyday jobs run without leaving the sandbox, and no more jobs fail than are known to.
#[test]
fn everyday_jobs_run_inside() {
    let folder = folder();
    let methods = methods(false, folder.path());
    if methods.is_empty() {
        return;
    }
    let sandboxes: Vec<Sandbox> = methods.iter().map(|(_, s)| s.clone()).collect();
    let report = compare_jobs(&jobs().unwrap(), &sandboxes, folder.path(), &|_| {}).unwrap();
    for why in report.skipped() {
        eprintln!("skipped: {why}");
    }
    for (column, (method, sandbox)) in methods.iter().enumerate() {
        only_known(sandbox.name(), &report.with(column, false), FAILING[*method]);
        let inside = report.with(column, true).len();
        assert!(inside * 100 >= report.tried() * 95, "{}: {inside} of {}", sandbox.name(), report.tried());
    }
}
