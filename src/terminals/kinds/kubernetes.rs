//! A pod of a cluster, over the person's `kubectl`.

use async_trait::async_trait;
use tiller_tool::shell::Launch;

use super::{Failure, Kind, Setting, last_lines};

#[derive(Debug)]
pub(super) struct Kubernetes {
    base: Launch,
    pod: String,
    container: Option<String>,
    folder: String,
}

impl Kubernetes {
    pub(super) fn new(setting: &Setting<'_>) -> Result<Self, String> {
        let it = setting.terminal;
        let pod = it.pod.clone().unwrap_or_default();
        if pod.is_empty() || pod.starts_with('-') {
            return Err(format!(
                "set terminals.{}.pod, for instance \"builder-0\" or \"deploy/builder\"",
                setting.name
            ));
        }
        let mut base = setting.launch("kubectl")?;
        for (flag, value) in [("--context", &it.context), ("--namespace", &it.namespace)] {
            if let Some(value) = value {
                base.args.push(format!("{flag}={value}"));
            }
        }
        base.args.extend(it.options.iter().cloned());
        let folder = it.folder.clone().unwrap_or_else(|| "/work".into());
        Ok(Self { base, pod, container: it.container.clone(), folder })
    }
}

#[async_trait]
impl Kind for Kubernetes {
    fn connect(&self, script: &str, terminal: bool) -> Launch {
        let mut launch = self.base.clone();
        let flags = if terminal { "-it" } else { "-i" };
        launch.args.extend(["exec".into(), flags.into(), self.pod.clone()]);
        if let Some(container) = &self.container {
            launch.args.push(format!("--container={container}"));
        }
        launch.args.extend(["--", "sh", "-c", script].map(Into::into));
        launch
    }

    fn explain(&self, errors: &str) -> Failure {
        let said = last_lines(errors);
        let fixed = ["(NotFound)", "not found", "(Forbidden)", "(Unauthorized)", "must be logged in"];
        if fixed.iter().any(|part| errors.contains(part)) {
            return Failure::Refused(said);
        }
        Failure::Broken(said)
    }

    fn folder(&self) -> &str {
        &self.folder
    }
}
