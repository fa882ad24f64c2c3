//! A launch, changed so that it runs confined.

use std::path::{Path, PathBuf};

use tiller_tool::shell::{CommandWatch, Confiner, Launch, Sandbox};

use crate::bubblewrap;
use crate::confinement::Confinement;
use crate::launcher::{MARK, Spec, Step};
use crate::policy::{Policy, Profile};
#[cfg(target_os = "linux")]
use crate::supervisor;

/// A way to confine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Landlock and seccomp.
    Landlock,
    /// Namespaces and read-only mounts, with Landlock and seccomp inside.
    Bubblewrap,
}

impl Method {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Landlock => "Landlock and seccomp",
            Self::Bubblewrap => "bubblewrap, Landlock and seccomp",
        }
    }

    /// All that this system has, the weaker one first.
    pub fn present(found: &Confinement) -> Vec<Self> {
        let landlock = (found.landlock > 0 && found.seccomp).then_some(Self::Landlock);
        let bubblewrap = (found.bubblewrap.is_some() && found.seccomp).then_some(Self::Bubblewrap);
        landlock.into_iter().chain(bubblewrap).collect()
    }

    /// The one for commands of this profile. Reading needs no mounts: Landlock alone is complete from version 6 on, and
    /// it starts faster. `None`: this system cannot confine.
    pub fn choose(found: &Confinement, profile: Profile) -> Option<Self> {
        let all = Self::present(found);
        if profile == Profile::Read && found.landlock >= 6 && all.contains(&Self::Landlock) {
            return Some(Self::Landlock);
        }
        all.last().copied()
    }
}

/// How this program starts itself as a launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    pub program: PathBuf,
    /// Arguments before those of the launcher.
    pub before: Vec<String>,
}

impl Launcher {
    /// The running program, whose `main` calls [`crate::launcher::run`] first.
    ///
    /// # Errors
    /// When the system does not tell its path.
    pub fn own() -> std::io::Result<Self> {
        // The link itself, where there is one: it stays right when the file is replaced by an update.
        let program = std::env::current_exe()?;
        Ok(Self { program, before: Vec::new() })
    }

    pub(crate) fn args(&self, spec: &Spec) -> Vec<String> {
        let mut args = self.before.clone();
        args.push(MARK.to_owned());
        args.push(spec.encode());
        args
    }
}

/// Confines what is launched through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confined {
    pub policy: Policy,
    pub method: Method,
    pub launcher: Launcher,
}

impl Confined {
    /// With the best method of this system. `None`: it has none, or the policy confines nothing.
    pub fn new(policy: &Policy) -> Option<Self> {
        if policy.profile == Profile::Off {
            return None;
        }
        let method = Method::choose(Confinement::find(), policy.profile)?;
        Some(Self { policy: policy.clone(), method, launcher: Launcher::own().ok()? })
    }

    /// Whether files have to be compared after the command, since the kernel cannot protect all of them.
    pub fn needs_quarantine(&self) -> bool {
        let missing = |path: &PathBuf| path.symlink_metadata().is_err();
        let protected = self.policy.protected_paths();
        match self.method {
            Method::Landlock => !protected.is_empty(),
            Method::Bubblewrap => protected.iter().any(missing),
        }
    }

    /// The launch of `step` in the sandbox.
    pub(crate) fn step(&self, launch: Launch, step: Step) -> Launch {
        self.change(launch, step, None)
    }

    /// The launch in the sandbox, with a supervisor where the system has them. What the command is refused goes to
    /// `watch`. Start it once, soon.
    pub fn watched(&self, launch: Launch, watch: &CommandWatch) -> Launch {
        #[cfg(target_os = "linux")]
        let supervisor = Confinement::find().notification.then(|| supervisor::start(self, watch)).flatten();
        #[cfg(not(target_os = "linux"))]
        let (supervisor, _) = (None, watch);
        self.change(launch, Step::Exec, supervisor)
    }

    pub(crate) fn change(&self, mut launch: Launch, step: Step, supervisor: Option<PathBuf>) -> Launch {
        let namespaces = self.method == Method::Bubblewrap;
        let command = step == Step::Exec;
        let spec = Spec { policy: self.policy.clone(), namespaces, supervisor: supervisor.clone(), step };
        let mut args = self.launcher.args(&spec);
        if command {
            args.push(launch.program.display().to_string());
            args.append(&mut launch.args);
        }
        launch.env.retain(|(name, _)| name != "TMPDIR");
        launch.env.push(("TMPDIR".into(), self.policy.scratch.display().to_string()));
        match (self.method, &Confinement::find().bubblewrap) {
            (Method::Bubblewrap, Some(program)) => {
                let visible: Vec<&Path> =
                    std::iter::once(self.launcher.program.as_path()).chain(supervisor.as_deref()).collect();
                let mut all = bubblewrap::arguments(&self.policy, &launch.folder, &visible);
                all.push(self.launcher.program.display().to_string());
                all.append(&mut args);
                Launch { program: program.clone(), args: all, ..launch }
            }
            _ => Launch { program: self.launcher.program.clone(), args, ..launch },
        }
    }
}

impl Sandbox for Confined {
    fn wrap(&self, launch: Launch) -> Launch {
        self.step(launch, Step::Exec)
    }
}

/// `launch` in the sandbox of `policy`. Where this system has none, it is a launch that fails with a message: nothing
/// runs unconfined by accident. Unchanged for [`Profile::Off`].
pub fn confined(launch: Launch, policy: &Policy) -> Launch {
    if policy.profile == Profile::Off {
        return launch;
    }
    match Confined::new(policy) {
        Some(confined) => confined.wrap(launch),
        None => Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), "echo 'tiller: this system has no sandbox' >&2; exit 126".into()],
            ..launch
        },
    }
}

/// Confines the shells and commands of a session; the folder for temporary files differs from launch to launch.
#[derive(Clone, Debug)]
pub struct SessionSandbox {
    /// Its workspace and scratch folder are replaced.
    policy: Policy,
}

impl SessionSandbox {
    /// Looks for the means of this system meanwhile, so that the first command does not wait for that.
    pub fn new(policy: Policy) -> Self {
        // Without the thread the first command looks.
        let _ = std::thread::Builder::new().name("tiller-sandbox".into()).spawn(Confinement::find);
        Self { policy }
    }
}

impl Confiner for SessionSandbox {
    /// Unchanged where this system cannot confine: then the rules alone decide, and `tiller doctor` says so.
    fn confine(&self, launch: Launch, workspace: &Path, scratch: &Path) -> Launch {
        let scratch = scratch.canonicalize().unwrap_or_else(|_| scratch.to_owned());
        let policy = Policy { scratch, workspace: workspace.to_owned(), ..self.policy.clone() };
        match Confined::new(&policy) {
            Some(confined) => confined.wrap(launch),
            None => launch,
        }
    }
}

#[cfg(test)]
#[path = "confine_tests.rs"]
mod tests;
