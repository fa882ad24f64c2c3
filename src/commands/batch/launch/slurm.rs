//! Cases as jobs of a Slurm cluster, by the person's `sbatch`. The folder of the results is shared with the cluster.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::{CaseEnd, CaseRun, ERRORS, EVENTS, LOOK, PROMPT, ended, line, output, quote, set_aside};

/// The script of the job.
const SCRIPT: &str = "job.sh";
/// The number of the job.
const JOB: &str = "job";
/// Written by the job: it has begun, and its exit code.
const BEGUN: &str = "begun";
pub(super) const EXIT: &str = "exit";
/// Looks at the folder for each look at the queue.
const QUEUE: u32 = 10;
/// A job without an exit code that the queue does not know this many times in a row is lost. What a job has written may
/// arrive late over a network.
const LOST: u32 = 3;

pub(in crate::commands::batch) struct Slurm {
    pub(super) program: String,
    /// Further arguments of `sbatch`.
    pub(super) options: Vec<String>,
}

impl Slurm {
    pub(super) async fn run(&self, case: &CaseRun, stop: &CancellationToken) -> Result<CaseEnd, String> {
        let folder = &case.folder;
        if !self.is_submitted(case).await? {
            self.submit(case).await?;
        }
        let (mut looks, mut unknown) = (0, 0);
        loop {
            if let Some(exit) = exit_of(folder) {
                return Ok(CaseEnd::Result(Box::new(ended(folder, Some(exit), "the job failed"))));
            }
            if unknown >= LOST {
                let job = std::fs::read_to_string(folder.join(JOB)).unwrap_or_default();
                let lost = format!("the job {job} ended without a result");
                return Ok(CaseEnd::Result(Box::new(ended(folder, None, &lost))));
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                // It stays in the queue.
                () = stop.cancelled() => return Ok(CaseEnd::Open),
            }
            looks += 1;
            if looks % QUEUE == 0 {
                unknown = match queued(case).await {
                    Ok(true) => 0,
                    Ok(false) => unknown + 1,
                    // The cluster does not answer now.
                    Err(_) => unknown,
                };
            }
        }
    }

    /// Whether an earlier run has submitted it, even when it was killed before it could note the number of the job.
    async fn is_submitted(&self, case: &CaseRun) -> Result<bool, String> {
        let left = |name: &str| case.folder.join(name).exists();
        if left(JOB) || left(BEGUN) {
            return Ok(true);
        }
        if !left(SCRIPT) {
            return Ok(false);
        }
        queued(case).await
    }

    async fn submit(&self, case: &CaseRun) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("{} cannot be written: {e}", case.folder.display());
        // Those of an attempt before, where the batch was killed while it set them aside.
        set_aside(&case.folder).map_err(failed)?;
        for name in [EVENTS, ERRORS] {
            std::fs::write(case.folder.join(name), "").map_err(failed)?;
        }
        std::fs::write(case.folder.join(PROMPT), &case.prompt).map_err(failed)?;
        std::fs::write(case.folder.join(SCRIPT), self.script(case)).map_err(failed)?;
        let mut args: Vec<String> =
            ["--parsable", "--no-requeue", "--output=/dev/null", "--error=/dev/null"].map(Into::into).into();
        args.push(format!("--job-name={}", case.name));
        args.extend(self.options.iter().cloned());
        args.push(case.folder.join(SCRIPT).display().to_string());
        let said = output("sbatch", &args, b"").await?;
        // With several clusters, their name follows.
        let job = said.trim().split(';').next().unwrap_or_default();
        std::fs::write(case.folder.join(JOB), job).map_err(failed)
    }

    /// What the job runs. Where a job is started a second time, it does nothing.
    fn script(&self, case: &CaseRun) -> String {
        let folder = quote(&case.folder.display().to_string());
        let work = quote(&case.work.display().to_string());
        let run = line(&self.program, &case.args);
        format!(
            "#!/bin/sh\nd={folder}\nmkdir \"$d/{BEGUN}\" 2>/dev/null || exit 0\n\
             cd {work} && {run} <\"$d/{PROMPT}\" >\"$d/{EVENTS}\" 2>>\"$d/{ERRORS}\"\n\
             echo $? >\"$d/{EXIT}.new\"\nmv \"$d/{EXIT}.new\" \"$d/{EXIT}\"\n"
        )
    }
}

fn exit_of(folder: &Path) -> Option<i32> {
    std::fs::read_to_string(folder.join(EXIT)).ok()?.trim().parse().ok()
}

/// Whether the queue has the job of this case.
async fn queued(case: &CaseRun) -> Result<bool, String> {
    let name = format!("--name={}", case.name);
    let said = output("squeue", &["--noheader".into(), "--format=%i".into(), name], b"").await?;
    Ok(!said.trim().is_empty())
}
