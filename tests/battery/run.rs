//! One run of an escape or a job in one sandbox.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::escape::Escape;
use crate::job::Job;
use crate::sandbox::Sandbox;
use crate::scene::Scene;
use crate::witness::Watch;

/// Limit of an escape.
const ESCAPE: Duration = Duration::from_secs(12);
/// Limit of a job.
const JOB: Duration = Duration::from_secs(90);
/// Time between two looks at what runs.
const LOOK: Duration = Duration::from_millis(15);

const TERMINAL: &str = include_str!("terminal.py");

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// An escape got out, by its witness; a job ended well.
    pub yes: bool,
    /// The last line that it printed.
    pub said: String,
    pub time: Duration,
}

/// Runs an escape in `sandbox`, in a scene below `root`.
///
/// # Errors
/// When the scene cannot be made or observed. A sandbox that refuses is no error.
pub fn attempt(escape: &Escape, sandbox: &Sandbox, root: &Path) -> Result<Outcome> {
    let scene = Scene::new(root, escape.victim)?;
    if let Some(before) = &escape.before {
        scene.shell(before)?;
    }
    let (interpreter, suffix, script) = escape.script();
    let file = scene.work.join(format!(".{}.{suffix}", scene.token));
    std::fs::write(&file, scene.fill(&script))?;
    let command = [interpreter.to_owned(), file.display().to_string()];
    let mut words = sandbox.words(&scene, &command)?;
    if escape.terminal {
        let wrapper = scene.own.join("terminal.py");
        std::fs::write(&wrapper, TERMINAL)?;
        words.splice(0..0, [OsString::from("python3"), wrapper.into()]);
    }
    let mut watch = Watch::start(&escape.witness, &scene, escape.writes_workspace())?;
    let (_, output, time) = run(&scene, &words, ESCAPE, || watch.look())?;
    let yes = watch.escaped(&output)?;
    Ok(Outcome { yes, said: last_line(&output), time })
}

/// Runs a job in `sandbox`, in a scene below `root`.
///
/// # Errors
/// When the scene cannot be made.
pub fn work(job: &Job, sandbox: &Sandbox, root: &Path) -> Result<Outcome> {
    let scene = Scene::new(root, false)?;
    let file = scene.work.join(format!(".{}.sh", scene.token));
    std::fs::write(&file, scene.fill(&format!("set -e\n{}", job.shell)))?;
    let words = sandbox.words(&scene, &["bash".to_owned(), file.display().to_string()])?;
    let (status, output, time) = run(&scene, &words, JOB, || {})?;
    Ok(Outcome { yes: status.is_some_and(|s| s.success()), said: last_line(&output), time })
}

/// Runs `words` in the workspace. Gives the status (`None`: it took too long and was ended), what it printed, and the time.
fn run(
    scene: &Scene,
    words: &[OsString],
    limit: Duration,
    mut look: impl FnMut(),
) -> Result<(Option<ExitStatus>, String, Duration)> {
    let (program, args) = words.split_first().context("no command")?;
    let printed = scene.own.join("printed");
    let out = File::create(&printed)?;
    let start = Instant::now();
    let mut child = scene
        .program(program)
        .args(args)
        .stdin(Stdio::null())
        .stderr(out.try_clone()?)
        .stdout(out)
        .process_group(0)
        .spawn()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > limit {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
            break None;
        }
        look();
        std::thread::sleep(LOOK);
    };
    let time = start.elapsed();
    let output = String::from_utf8_lossy(&std::fs::read(&printed)?).into_owned();
    Ok((status, output, time))
}

fn last_line(output: &str) -> String {
    let line = output.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(200).collect()
}
