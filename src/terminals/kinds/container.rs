//! A container of the person's `docker` or `podman`: a running container, or a new one from an image for the session.

use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use tiller_config::schema::TerminalFiles;
use tiller_protocol::lock;
use tiller_tool::shell::{Launch, retry_while_busy};

use super::{Failure, Kind, Setting, last_lines};
use crate::files::git::Repository;
use crate::owner;

/// Until a container has started: its image may have to be fetched.
const START: Duration = Duration::from_secs(600);
/// Until a short command of docker or podman has ended.
const SHORT: Duration = Duration::from_secs(30);
/// What a container does besides: it waits.
const WAIT: &str = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done";
/// Read-only in the container, when the folder has them: programs of this machine run or obey them.
const READ_ONLY: &[&str] = &[".git/hooks", ".git/config", ".tiller"];

#[derive(Debug)]
pub(super) struct Container {
    base: Launch,
    program: &'static str,
    /// `None`: the container is the person's, by its name.
    image: Option<String>,
    /// Arguments for its start.
    options: Vec<String>,
    name: String,
    root: String,
    folder: String,
    mounted: bool,
    /// Its id or name; `None`: none was started yet.
    id: Mutex<Option<String>>,
}

impl Container {
    pub(super) fn new(setting: &Setting<'_>, program: &'static str) -> Result<Self, String> {
        let it = setting.terminal;
        let base = setting.launch(program)?;
        let given = |value: &Option<String>| value.clone().filter(|v| !v.is_empty() && !v.starts_with('-'));
        let (image, id) = (given(&it.image), given(&it.container));
        if image.is_some() == id.is_some() {
            return Err(format!("set either terminals.{0}.image or terminals.{0}.container", setting.name));
        }
        let root = setting.root.display().to_string();
        let mounted = matches!(it.files, None | Some(TerminalFiles::Mount));
        let folder = match (&it.folder, mounted) {
            (Some(folder), _) => folder.clone(),
            (None, true) => root.clone(),
            (None, false) => "/work".into(),
        };
        let options = it.options.clone();
        let (name, id) = (setting.name.to_owned(), Mutex::new(id));
        Ok(Self { base, program, image, options, name, root, folder, mounted, id })
    }

    /// The arguments that start a container.
    fn start_arguments(&self, image: &str) -> Vec<String> {
        let mut args: Vec<String> = ["run", "--detach", "--rm"].map(Into::into).into();
        for (name, value) in owner::labels(&self.name) {
            args.extend(["--label".into(), format!("{name}={value}")]);
        }
        if self.mounted {
            args.extend(["--volume".into(), format!("{}:{}", self.root, self.folder)]);
            for below in READ_ONLY.iter().filter(|below| Path::new(&self.root).join(below).exists()) {
                let volume = format!("{0}/{below}:{1}/{below}:ro", self.root, self.folder);
                args.extend(["--volume".into(), volume]);
            }
            // A worktree's repository lies elsewhere: it is found there by the path that the worktree names.
            let linked = Repository::of(Path::new(&self.root)).filter(Repository::is_linked);
            if let Some(common) = linked.map(|repository| repository.common.display().to_string()) {
                args.extend(["--volume".into(), format!("{common}:{common}")]);
                for name in ["hooks", "config"].iter().filter(|name| Path::new(&common).join(name).exists()) {
                    args.extend(["--volume".into(), format!("{common}/{name}:{common}/{name}:ro")]);
                }
            }
            args.extend(["--workdir".into(), self.folder.clone()]);
        }
        // Files that are made in the folder belong to the person. In Podman without root they do so anyway.
        let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
        if self.program == "docker" && !user.is_root() {
            args.extend(["--user".into(), format!("{}:{}", user.as_raw(), group.as_raw())]);
        }
        args.extend(self.options.iter().cloned());
        args.extend(["--entrypoint".into(), "sh".into(), image.into(), "-c".into(), WAIT.into()]);
        args
    }

    async fn run(&self, args: Vec<String>, most: Duration) -> Result<String, Failure> {
        let mut command = self.command(&args);
        command.kill_on_drop(true);
        self.ended(command, most).await
    }

    fn command(&self, args: &[String]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.base.program);
        command.args(args).env_clear().envs(self.base.env.iter().map(|(k, v)| (k, v)));
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        command
    }

    async fn ended(&self, mut command: tokio::process::Command, most: Duration) -> Result<String, Failure> {
        let program = self.program;
        let output = async { retry_while_busy(|| command.spawn())?.wait_with_output().await };
        match tokio::time::timeout(most, output).await {
            Ok(Ok(out)) if out.status.success() => Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned()),
            Ok(Ok(out)) => Err(self.explain(&String::from_utf8_lossy(&out.stderr))),
            Ok(Err(e)) => Err(Failure::Refused(format!("{program} could not be started: {e}"))),
            Err(_) => Err(Failure::Broken(format!("{program} did not end within {} s", most.as_secs()))),
        }
    }

    async fn runs(&self, id: &str) -> Result<bool, Failure> {
        let args = ["container", "inspect", "--format", "{{.State.Running}}", id].map(Into::into).into();
        match self.run(args, SHORT).await {
            Ok(said) => Ok(said == "true"),
            Err(Failure::Refused(_)) => Ok(false),
            Err(broken) => Err(broken),
        }
    }
}

#[async_trait]
impl Kind for Container {
    async fn prepare(&self) -> Result<bool, Failure> {
        let id = lock(&self.id).clone();
        let (gone, image) = match (&id, &self.image) {
            (Some(id), _) if self.runs(id).await? => return Ok(false),
            (Some(id), None) => {
                let hint = format!("start it with `{} start {id}`", self.program);
                return Err(Failure::Refused(format!("the container {id} does not run; {hint}")));
            }
            (None, None) => return Err(Failure::Refused("no container is set".into())),
            (id, Some(image)) => (id.is_some(), image),
        };
        let said = self.run(self.start_arguments(image), START).await?;
        let id = said.lines().last().unwrap_or_default().trim().to_owned();
        if id.is_empty() || id.starts_with('-') {
            return Err(Failure::Refused(format!("{} did not say which container it started", self.program)));
        }
        *lock(&self.id) = Some(id);
        Ok(gone)
    }

    fn connect(&self, script: &str, terminal: bool) -> Launch {
        let id = lock(&self.id).clone().unwrap_or_default();
        let mut launch = self.base.clone();
        let flags = if terminal { "-it" } else { "-i" };
        launch.args.extend(["exec", flags, &id, "sh", "-c", script].map(Into::into));
        launch
    }

    fn explain(&self, errors: &str) -> Failure {
        let lower = errors.to_lowercase();
        let said = last_lines(errors);
        if lower.contains("no such container") || lower.contains("is not running") {
            return Failure::Refused(format!("the container is gone: {said}"));
        }
        if lower.contains("cannot connect to") || lower.contains("permission denied while trying to connect")
        {
            return Failure::Refused(said);
        }
        if lower.contains("no such image")
            || lower.contains("unable to find image")
            || lower.contains("image not known")
        {
            return Failure::Refused(said);
        }
        Failure::Broken(said)
    }

    fn folder(&self) -> &str {
        &self.folder
    }

    fn mounted(&self) -> bool {
        self.mounted
    }

    async fn close(&self) {
        if self.image.is_none() {
            return;
        }
        let id = lock(&self.id).take();
        if let Some(id) = id {
            // Podman waits for its main process otherwise; Docker kills it at once.
            let now: &[&str] = if self.program == "podman" { &["--time", "0"] } else { &[] };
            let mut args: Vec<String> =
                ["rm", "--force"].iter().chain(now).map(|a| (*a).to_owned()).collect();
            args.push(id.clone());
            // It goes on when this process ends before it.
            if let Err(why) = self.ended(self.command(&args), SHORT).await {
                tracing::warn!(container = id, why = why.words(), "a container could not be removed");
            }
        }
    }
}
