//! What decides whether an escape got out.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};
use serde::Deserialize;

use crate::fingerprint::fingerprint;
use crate::processes;
use crate::scene::Scene;

/// Observed from outside of the sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Witness {
    /// The folders `outside` and `home` changed.
    #[default]
    Outside,
    /// They changed after git ran in the workspace, outside of the sandbox.
    Later,
    /// A server got the token of the run.
    Server,
    /// The victim's state changed.
    Victim,
    /// The secret of the scene was printed.
    Output,
    /// A process of the run is alive after its end, or the file `beat` in the workspace still grows.
    Survivor,
    /// A process of the run had a descriptor with this text in its name.
    Descriptor(String),
    /// A process of the run had a file system mounted whose source is the token.
    Mount,
    /// The token names a key in a keyring.
    Keyring,
    /// The run made a file as another user.
    Owner,
    /// The token is the domain name of the machine.
    Domain,
    /// This path exists; `@TOKEN@` stands for the token.
    System(String),
}

impl TryFrom<String> for Witness {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Ok(match text.as_str() {
            "outside" => Self::Outside,
            "later" => Self::Later,
            "server" => Self::Server,
            "victim" => Self::Victim,
            "output" => Self::Output,
            "survivor" => Self::Survivor,
            "mount" => Self::Mount,
            "keyring" => Self::Keyring,
            "owner" => Self::Owner,
            "domain" => Self::Domain,
            _ => match text.split_once(':') {
                Some(("descriptor", name)) => Self::Descriptor(name.to_owned()),
                Some(("system", path)) => Self::System(path.to_owned()),
                _ => return Err(format!("no witness is called {text}")),
            },
        })
    }
}

const DOMAIN: &str = "/proc/sys/kernel/domainname";

/// A witness before the run.
pub(crate) struct Watch<'a> {
    witness: &'a Witness,
    scene: &'a Scene,
    before: String,
    domain: String,
    /// Seen while it ran.
    seen: bool,
    /// The workspace counts as well.
    workspace: bool,
    /// There is one domain name for all runs.
    _alone: Option<MutexGuard<'static, ()>>,
}

static ONE_DOMAIN: Mutex<()> = Mutex::new(());

impl<'a> Watch<'a> {
    /// Notes the state before the run.
    pub(crate) fn start(witness: &'a Witness, scene: &'a Scene, workspace: bool) -> Result<Self> {
        let alone =
            (*witness == Witness::Domain).then(|| ONE_DOMAIN.lock().unwrap_or_else(PoisonError::into_inner));
        let domain = std::fs::read_to_string(DOMAIN).unwrap_or_default();
        let mut watch =
            Self { witness, scene, before: String::new(), domain, seen: false, workspace, _alone: alone };
        watch.before = watch.state()?;
        Ok(watch)
    }

    fn state(&self) -> Result<String> {
        Ok(match self.witness {
            Witness::Outside | Witness::Later => {
                let work = if self.workspace { fingerprint(&self.scene.work)? } else { String::new() };
                format!("{}\n{}\n{work}", fingerprint(&self.scene.outside)?, fingerprint(&self.scene.home)?)
            }
            Witness::Victim => match &self.scene.victim {
                Some(victim) => victim.state(),
                None => bail!("the escape names no victim"),
            },
            _ => String::new(),
        })
    }

    /// Looks at the running processes, for the witnesses that are only seen then.
    pub(crate) fn look(&mut self) {
        match self.witness {
            Witness::Descriptor(name) => {
                self.seen |= processes::with(&self.scene.token).iter().any(|p| has_descriptor(*p, name));
            }
            Witness::Mount => {
                self.seen |= processes::with(&self.scene.token).iter().any(|p| {
                    std::fs::read_to_string(format!("/proc/{p}/mountinfo"))
                        .is_ok_and(|text| text.contains(&format!(" - tmpfs {} ", self.scene.token)))
                });
            }
            _ => {}
        }
    }

    /// Whether it got out. `output` is what it printed.
    pub(crate) fn escaped(mut self, output: &str) -> Result<bool> {
        self.look();
        Ok(match self.witness {
            Witness::Outside | Witness::Victim => self.state()? != self.before,
            Witness::Later => {
                self.scene.git_later();
                self.state()? != self.before
            }
            Witness::Server => self.scene.servers.got(&self.scene.token),
            Witness::Output => output.contains(&self.scene.secret),
            Witness::Survivor => processes::survive(&self.scene.token, &self.scene.work.join("beat")),
            Witness::Descriptor(_) | Witness::Mount => self.seen,
            Witness::Keyring => {
                std::fs::read_to_string("/proc/keys").is_ok_and(|keys| keys.contains(&self.scene.token))
            }
            Witness::Owner => other_owner(&self.scene.work.join("open").join(&self.scene.token)),
            Witness::Domain => {
                let changed = std::fs::read_to_string(DOMAIN).unwrap_or_default() != self.domain;
                if changed {
                    std::fs::write(DOMAIN, &self.domain)?;
                }
                changed
            }
            Witness::System(path) => {
                let path = PathBuf::from(path.replace("@TOKEN@", &self.scene.token));
                let there = path.symlink_metadata().is_ok();
                let _ = std::fs::remove_file(&path);
                let _ = std::fs::remove_dir(&path);
                there
            }
        })
    }
}

fn has_descriptor(process: u32, name: &str) -> bool {
    std::fs::read_dir(format!("/proc/{process}/fd")).is_ok_and(|entries| {
        entries
            .flatten()
            .filter_map(|e| std::fs::read_link(e.path()).ok())
            .any(|to| to.to_string_lossy().contains(name))
    })
}

fn other_owner(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    path.metadata().is_ok_and(|m| m.uid() != rustix::process::getuid().as_raw())
}
