//! Cases as jobs of a Kubernetes cluster: a manifest for each, applied with the person's `kubectl`.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{CaseEnd, CaseRun, EVENTS, LOOK, ended, output};
use crate::commands::args::Batch;

/// Type of the line after the events, with the exit code.
const EXIT: &str = "batch_exit";
/// Looks at a cluster that does not answer, before the case counts as lost.
const LOST: u32 = 120;

pub(in crate::commands::batch) struct Kubernetes {
    image: String,
    program: String,
    secret: Option<String>,
    /// Further arguments of `kubectl`, before the command.
    options: Vec<String>,
}

impl Kubernetes {
    pub(super) fn new(batch: &Batch, image: &str) -> Self {
        Self {
            image: image.to_owned(),
            program: batch.program.clone().unwrap_or_else(|| "tiller".into()),
            secret: batch.secret.clone(),
            options: batch.option.clone(),
        }
    }

    async fn kubectl(&self, args: &[&str], input: &[u8]) -> Result<String, String> {
        let mut all = self.options.clone();
        all.extend(args.iter().map(|a| (*a).to_owned()));
        output("kubectl", &all, input).await
    }

    pub(super) async fn run(&self, case: &CaseRun, stop: &CancellationToken) -> Result<CaseEnd, String> {
        // A job of this name that an earlier run has made stays as it is.
        let job = format!("job/{}", case.name);
        let known = self.kubectl(&["get", &job, "--ignore-not-found", "--output=name"], b"").await?;
        if known.trim().is_empty() {
            let manifest = self.manifest(case).to_string();
            self.kubectl(&["apply", "--filename=-"], manifest.as_bytes()).await?;
        }
        let mut silent = 0;
        loop {
            match self.kubectl(&["get", &job, "--output=json"], b"").await {
                Ok(said) if has_ended(&said) => break,
                Ok(_) => silent = 0,
                Err(why) if why.contains("NotFound") || why.contains("not found") || silent >= LOST => {
                    return Ok(CaseEnd::Result(Box::new(ended(&case.folder, None, &why))));
                }
                Err(_) => silent += 1,
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                // It goes on in the cluster.
                () = stop.cancelled() => return Ok(CaseEnd::Open),
            }
        }
        let events = self.kubectl(&["logs", &job, "--tail=-1"], b"").await?;
        std::fs::write(case.folder.join(EVENTS), &events)
            .map_err(|e| format!("{} cannot be written: {e}", case.folder.display()))?;
        let exit = events.lines().rev().find_map(exit_of);
        Ok(CaseEnd::Result(Box::new(ended(&case.folder, exit, "the job ended without a result"))))
    }

    /// The job is not needed once its result is stored.
    pub(super) async fn settle(&self, case: &CaseRun) {
        let job = format!("job/{}", case.name);
        let gone = self.kubectl(&["delete", &job, "--ignore-not-found", "--wait=false"], b"").await;
        if let Err(why) = gone {
            crate::commands::say_beside(&format!("the job {} stays in the cluster: {why}", case.name));
        }
    }

    fn manifest(&self, case: &CaseRun) -> Value {
        let script = format!(
            "printf %s \"$TILLER_BATCH_PROMPT\" | \"$0\" \"$@\"\n\
             printf '\\n{{\"type\":\"{EXIT}\",\"code\":%d}}\\n' \"$?\""
        );
        let mut command: Vec<String> = vec!["sh".into(), "-c".into(), script, self.program.clone()];
        command.extend(case.args.iter().cloned());
        let command: Vec<String> = command.iter().map(|word| literal(word)).collect();
        let secret: Vec<Value> =
            self.secret.iter().map(|name| json!({"secretRef": {"name": name}})).collect();
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": case.name, "labels": {"app": "tiller-batch"}},
            "spec": {
                // What failed is run again by the person's word only.
                "backoffLimit": 0,
                "template": {
                    "metadata": {"labels": {"app": "tiller-batch"}},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{
                            "name": "case",
                            "image": self.image,
                            "command": command,
                            "workingDir": case.work.is_absolute().then(|| case.work.display().to_string()),
                            "env": [{"name": "TILLER_BATCH_PROMPT", "value": literal(&case.prompt)}],
                            "envFrom": secret,
                        }],
                    },
                },
            },
        })
    }
}

/// A text in which the cluster replaces no `$(NAME)`.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

fn has_ended(job: &str) -> bool {
    let job: Value = serde_json::from_str(job).unwrap_or_default();
    let count = |name: &str| job["status"][name].as_u64().unwrap_or_default();
    count("succeeded") + count("failed") > 0
}

fn exit_of(line: &str) -> Option<i32> {
    let line: Value = serde_json::from_str(line).ok()?;
    let code = line["code"].as_i64().filter(|_| line["type"] == EXIT)?;
    i32::try_from(code).ok()
}
