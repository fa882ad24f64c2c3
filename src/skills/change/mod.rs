//! Changes to the skills of the user and the project: planned, shown as a difference, applied as a whole, and kept as
//! versions that can be restored.
//!
//! | file | holds |
//! | --- | --- |
//! | `plan` | what a request would change, checked and screened |
//! | `apply` | the change on disk: under a lock, old or new, never half |
//! | `draft` | a planned state as a folder of its own, to be tried before it is accepted |
//! | `leftovers` | what a change that was cut off left, and how it is removed |
//! | `tree` | a skill's folder as a whole, to compare two states of it |
//! | `versions` | every state that a change replaced |

mod apply;
mod draft;
pub(crate) mod leftovers;
mod plan;
mod tree;
mod versions;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::schema::SkillApproval;
use tiller_protocol::Clock;

pub use plan::{Act, Plan, Request};
pub use versions::Version;

/// Where a skill is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    User,
    Project,
}

impl Scope {
    /// As it is written in a call and on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// Why a text may not become part of a skill, as a sentence without a full stop; `None`: it may.
pub type Screen = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What changes skills.
#[derive(Clone)]
pub struct Editor(pub(crate) Arc<EditorSettings>);

/// What an [`Editor`] needs.
pub struct EditorSettings {
    /// The folder of the user's skills.
    pub user: PathBuf,
    /// The folder of the project's skills; `None`: there is none, or it is not trusted.
    pub project: Option<PathBuf>,
    /// Where versions are kept.
    pub versions: PathBuf,
    /// Where planned states are laid out to be tried; `None`: they cannot be tried.
    pub drafts: Option<PathBuf>,
    pub approve: SkillApproval,
    pub screen: Screen,
    pub clock: Arc<dyn Clock>,
    /// Called before each step that changes the disk. Tests end the process in it.
    pub step: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Editor {
    /// An editor with these settings.
    pub fn new(settings: EditorSettings) -> Self {
        Self(Arc::new(settings))
    }

    /// Whether agents may write skills.
    pub fn approve(&self) -> SkillApproval {
        self.0.approve
    }

    /// The folder of the skills of a scope.
    fn place(&self, scope: Scope) -> Result<&PathBuf, String> {
        match scope {
            Scope::User => Ok(&self.0.user),
            Scope::Project => {
                let place = self.0.project.as_ref().ok_or_else(|| "there is no project here".to_owned())?;
                // A link there leads out of the project, to where no question says that a skill is written.
                let is_link = |path: &&Path| path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
                match place.parent().into_iter().chain([place.as_path()]).find(is_link) {
                    Some(link) => {
                        Err(format!("{} is a link: make it a folder of the project", link.display()))
                    }
                    None => Ok(place),
                }
            }
        }
    }

    fn step(&self) {
        if let Some(step) = &self.0.step {
            step();
        }
    }
}
