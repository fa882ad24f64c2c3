//! Names in the workspace that are secret or protected files elsewhere, by hard links. A rule about the path of such a file
//! does not hold for them, so they get the same one.
//!
//! The workspace is read only if such a file has another name at all, which is seen by its number of links. What was found
//! is kept, and compared with these numbers before each command.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tiller_fs::links::{FileId, Files, linked_file};

use crate::policy::Policy;

/// Entries of the workspace that are looked at.
const ENTRIES: usize = 50_000;
/// Entries of the folders of secret files, and of protected ones.
const SECRETS: usize = 5_000;
const PROTECTED: usize = 5_000;
/// Secret files whose number of links is compared before each command; about 1 µs for each.
const COMPARED: usize = 300;
/// After this time the folders of secret files are read again, beside the next command.
const FRESH: Duration = Duration::from_secs(60);
/// Workspaces that are remembered.
const WORKSPACES: usize = 64;

/// A name in the workspace, and the file that it is.
pub type Link = (PathBuf, PathBuf);

/// Second names in a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HardLinks {
    /// Of secret files.
    pub secret: Vec<Link>,
    /// Of protected files.
    pub protected: Vec<Link>,
    /// There may be more: a secret file has another name, and the workspace has too many entries to find it.
    pub cut: bool,
}

/// What is known of one workspace.
struct Known {
    workspace: PathBuf,
    hidden: Vec<PathBuf>,
    secrets: Files,
    /// The first [`COMPARED`] secret files that had another name.
    linked: HashMap<FileId, PathBuf>,
    found: Arc<HardLinks>,
    read: Instant,
}

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

impl Policy {
    /// The second names in the workspace. Reads files: the first time up to some milliseconds, later about 0.3 ms.
    pub fn hard_links(&self) -> Arc<HardLinks> {
        // Others wait: they need the same answer.
        let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| known.is_of(self))
            && known.linked == linked(&known.secrets)
        {
            let found = Arc::clone(&known.found);
            if known.read.elapsed() > FRESH {
                self.refresh();
            }
            return found;
        }
        let known = Known::read(self);
        let found = Arc::clone(&known.found);
        all.retain(|known| !known.is_of(self));
        if all.len() >= WORKSPACES {
            all.remove(0);
        }
        all.push(known);
        found
    }

    /// The same policy for a workspace with such names: secret ones are hidden, protected ones are not written.
    #[must_use]
    pub fn with_hard_links(mut self) -> Self {
        let links = self.hard_links();
        self.hidden.extend(links.secret.iter().map(|(name, _)| name.clone()));
        self.protected.extend(links.protected.iter().map(|(name, _)| name.clone()));
        self
    }

    /// Reads everything again, on a thread. Without one it is tried again before the next command.
    fn refresh(&self) {
        let policy = self.clone();
        let read = move || {
            let known = Known::read(&policy);
            let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(old) = all.iter_mut().find(|known| known.is_of(&policy)) {
                *old = known;
            }
        };
        let _ = std::thread::Builder::new().name("tiller-links".into()).spawn(read);
    }
}

impl Known {
    fn is_of(&self, policy: &Policy) -> bool {
        self.workspace == policy.workspace && self.hidden == policy.hidden
    }

    fn read(policy: &Policy) -> Self {
        let secrets = Files::below(policy.hidden.iter().cloned(), SECRETS);
        let protected = policy.protected.iter().map(|path| policy.workspace.join(path));
        let protected = Files::below(protected, PROTECTED);
        let found = find(&policy.workspace, &secrets.linked(), &protected.linked());
        Self {
            workspace: policy.workspace.clone(),
            hidden: policy.hidden.clone(),
            linked: linked(&secrets),
            secrets,
            found: Arc::new(found),
            read: Instant::now(),
        }
    }
}

fn linked(secrets: &Files) -> HashMap<FileId, PathBuf> {
    let first = secrets.paths.iter().take(COMPARED);
    first.filter_map(|path| Some((linked_file(path)?, path.clone()))).collect()
}

/// Looks for other names of these files in the workspace.
fn find(
    workspace: &Path,
    secret: &HashMap<FileId, PathBuf>,
    protected: &HashMap<FileId, PathBuf>,
) -> HardLinks {
    let mut found = HardLinks::default();
    if secret.is_empty() && protected.is_empty() {
        return found;
    }
    let (mut folders, mut left) = (vec![workspace.to_owned()], ENTRIES);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if left == 0 {
                found.cut = true;
                folders.clear();
                break;
            }
            left -= 1;
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
                continue;
            }
            let Some(id) = linked_file(&path) else { continue };
            let other =
                |files: &HashMap<FileId, PathBuf>| files.get(&id).filter(|file| **file != path).cloned();
            match (other(secret), other(protected)) {
                (Some(file), _) => found.secret.push((path, file)),
                (None, Some(file)) => found.protected.push((path, file)),
                (None, None) => {}
            }
        }
    }
    found.secret.sort();
    found.protected.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Profile;

    struct Place {
        _tmp: tempfile::TempDir,
        top: PathBuf,
    }

    impl Place {
        fn new() -> Self {
            let tmp = tempfile::tempdir().unwrap();
            let top = tmp.path().canonicalize().unwrap();
            for folder in ["work/sub", "home/.ssh/keys"] {
                std::fs::create_dir_all(top.join(folder)).unwrap();
            }
            for (file, text) in [("home/.ssh/keys/id", "secret"), ("home/.bashrc", "rc"), ("work/a", "a")] {
                std::fs::write(top.join(file), text).unwrap();
            }
            std::fs::hard_link(top.join("work/a"), top.join("work/b")).unwrap();
            Self { _tmp: tmp, top }
        }

        fn policy(&self) -> Policy {
            Policy::new(Profile::Workspace, &self.top.join("work"), &self.top, Some(&self.top.join("home")))
        }

        fn link(&self, file: &str, name: &str) {
            std::fs::hard_link(self.top.join(file), self.top.join(name)).unwrap();
        }
    }

    #[test]
    fn second_names_of_secret_and_protected_files_are_found() {
        let place = Place::new();
        assert_eq!(
            *place.policy().hard_links(),
            HardLinks::default(),
            "two names of a file of the workspace"
        );
        // They are found though the workspace was read before.
        place.link("home/.ssh/keys/id", "work/sub/link");
        place.link("home/.bashrc", "work/rc");
        let found = place.policy().hard_links();
        let at = |name: &str| place.top.join(name);
        assert_eq!(found.secret, [(at("work/sub/link"), at("home/.ssh/keys/id"))]);
        assert_eq!(found.protected, [(at("work/rc"), at("home/.bashrc"))]);
        assert!(!found.cut);
        let policy = place.policy().with_hard_links();
        assert!(policy.hidden_paths().contains(&at("work/sub/link")));
        assert!(policy.protected_paths().contains(&at("work/rc")));
        std::fs::remove_file(at("work/sub/link")).unwrap();
        assert_eq!(place.policy().hard_links().secret, []);
    }

    /// Prints what it costs before a command.
    #[test]
    fn comparing_costs_little() {
        let place = Place::new();
        for n in 0..300 {
            std::fs::write(place.top.join(format!("home/.ssh/keys/{n}")), "x").unwrap();
        }
        let policy = place.policy();
        policy.hard_links();
        let start = Instant::now();
        for _ in 0..100 {
            policy.hard_links();
        }
        println!("{:?} before each command", start.elapsed() / 100);
    }
}
