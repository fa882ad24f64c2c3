//! How each sandbox starts a command.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::job::Job;
use crate::scene::Scene;

/// A sandbox. Programs of others are found by a path that is handed in.
#[derive(Clone, Debug)]
pub enum Sandbox {
    None,
    /// `tiller sandbox run`, with the profile `read` or `workspace`.
    Tiller {
        program: PathBuf,
        bubblewrap: bool,
        read: bool,
    },
    /// `codex sandbox`.
    Codex {
        program: PathBuf,
    },
    /// `srt`, the sandbox runtime.
    Runtime {
        program: PathBuf,
    },
}

/// Variable that names the `codex` to compare with.
const CODEX: &str = "TILLER_BATTERY_CODEX";
/// Variable that names the `srt` to compare with.
const RUNTIME: &str = "TILLER_BATTERY_SRT";

/// The value of TMPDIR in the sandbox runtime.
const RUNTIME_TEMPORARY: &str = "/tmp/claude";

impl Sandbox {
    /// The sandboxes of others that variables name.
    pub fn others() -> Vec<Self> {
        let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let codex = path(CODEX).map(|program| Self::Codex { program });
        codex.into_iter().chain(path(RUNTIME).map(|program| Self::Runtime { program })).collect()
    }

    /// Heading of its column.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tiller { bubblewrap: true, read: false, .. } => "tiller bwrap",
            Self::Tiller { bubblewrap: false, read: false, .. } => "tiller",
            Self::Tiller { bubblewrap: true, read: true, .. } => "read bwrap",
            Self::Tiller { bubblewrap: false, read: true, .. } => "read",
            Self::Codex { .. } => "codex",
            Self::Runtime { .. } => "srt",
        }
    }

    /// Whether it can run a command on this machine.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn probe(&self, root: &Path) -> Result<(), String> {
        let job = Job::trivial();
        match crate::run::work(&job, self, root) {
            Ok(outcome) if outcome.yes => Ok(()),
            Ok(outcome) => Err(outcome.said),
            Err(why) => Err(format!("{why:#}")),
        }
    }

    /// The words that start `command` in it. The workspace may be written, the network is off.
    pub(crate) fn words(&self, scene: &Scene, command: &[String]) -> Result<Vec<OsString>> {
        let mut words: Vec<OsString> = match self {
            Self::None => Vec::new(),
            Self::Tiller { program, bubblewrap, read } => {
                let how = if *bubblewrap { "bubblewrap" } else { "landlock" };
                let profile = if *read { "read" } else { "workspace" };
                let fixed = ["sandbox", "run", "--profile", profile, "--method", how];
                // The proxy for a domain that does not exist is one more thing to get out by.
                let proxy = if !read { &["--domain", "battery.example"][..] } else { &[] };
                std::iter::once(program.as_os_str())
                    .chain(fixed.iter().chain(proxy).chain(&["--"]).map(OsStr::new))
                    .map(OsStr::to_owned)
                    .collect()
            }
            Self::Codex { program } => {
                std::fs::create_dir_all(scene.own.join("codex"))?;
                let fixed = ["sandbox", "-c", "sandbox_mode=\"workspace-write\"", "--"];
                std::iter::once(program.as_os_str())
                    .chain(fixed.map(OsStr::new))
                    .map(OsStr::to_owned)
                    .collect()
            }
            Self::Runtime { program } => {
                // Its folder for temporary files, which the program around it makes.
                std::fs::create_dir_all(RUNTIME_TEMPORARY)?;
                let settings = scene.own.join("srt.json");
                let (work, home) = (scene.work.display(), scene.home.display());
                let text = format!(
                    "{{\"network\": {{\"allowedDomains\": [], \"deniedDomains\": []}}, \"filesystem\": {{\
                     \"denyRead\": [\"{home}/.ssh\", \"{home}/.aws\"], \"allowWrite\": [\"{work}\", \"{RUNTIME_TEMPORARY}\"], \"denyWrite\": []}}}}"
                );
                std::fs::write(&settings, text)?;
                let line: Vec<String> = command.iter().map(|w| quote(w)).collect();
                return Ok(vec![
                    program.clone().into(),
                    "-s".into(),
                    settings.into(),
                    "-c".into(),
                    line.join(" ").into(),
                ]);
            }
        };
        words.extend(command.iter().map(OsString::from));
        Ok(words)
    }
}

/// One word for a shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
