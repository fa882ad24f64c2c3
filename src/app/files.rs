//! The stores of snapshots and change sets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::schema::OnSnapshotFailure;
use tiller_engine::files::{Keeper, SnapshotOptions};
use tiller_protocol::{Notice, NoticeKind};
use tiller_snapshot::Limits;
use tiller_tool::files::Publishes;

use crate::app::Setup;

/// The folder of a project's snapshots: a recognisable name, made unique by a hash of the whole path.
pub(crate) fn store(data: &Path, project: &Path) -> PathBuf {
    let name: String = project
        .file_name()
        .map(|n| {
            n.to_string_lossy().chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect()
        })
        .unwrap_or_default();
    let name = name.trim_start_matches('.').chars().take(40).collect::<String>();
    let hash = blake3::hash(std::os::unix::ffi::OsStrExt::as_bytes(project.as_os_str())).to_hex();
    data.join("snapshots").join(format!("{name}-{}", &hash[..16]))
}

/// The keeper of snapshots for this setup; `None` when that is switched off.
pub(crate) fn keeper(setup: &Setup) -> Option<Keeper> {
    Some(Keeper::new(place(setup)?, Arc::clone(&setup.clock)))
}

/// The snapshot store for this setup; `None` when that is switched off.
pub(crate) fn place(setup: &Setup) -> Option<SnapshotOptions> {
    let c = &setup.config.config.snapshots;
    if !c.enabled {
        return None;
    }
    let home = (setup.env)("HOME").map(PathBuf::from);
    let config =
        (setup.env)("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| Some(home.clone()?.join(".config")));
    let limits = Limits {
        file_bytes: c.file_mb.saturating_mul(1 << 20),
        files: c.files,
        global_ignore: config.map(|c| c.join("git/ignore")),
        home,
        ..Limits::default()
    };
    Some(SnapshotOptions {
        workspace: setup.project.clone(),
        store: store(&setup.places.data, &setup.project),
        limits,
        quota: c.quota_mb.saturating_mul(1 << 20),
        ask: c.on_failure == OnSnapshotFailure::Ask,
    })
}

/// The folder in which change sets are recorded while they are published.
pub(crate) fn publishes(setup: &Setup) -> Publishes {
    Publishes::new(setup.places.data.join("publishing"))
}

/// Rolls back the change sets that a kill cut off, in any folder, and reports them.
pub(crate) fn taken_back(setup: &Setup) -> Vec<Notice> {
    let all = publishes(setup).recover();
    all.iter().map(|done| Notice::new(NoticeKind::Store, done.sentence())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_folder_has_a_store_of_its_own_with_a_plain_name() {
        let at = |p: &str| store(Path::new("/d"), Path::new(p)).display().to_string();
        assert!(at("/home/ann/api").starts_with("/d/snapshots/api-"), "{}", at("/home/ann/api"));
        assert_ne!(at("/a/x"), at("/b/x"));
        assert!(
            at("/w/..evil\n\u{1b}[31m").starts_with("/d/snapshots/evil31m-"),
            "{}",
            at("/w/..evil\n\u{1b}[31m")
        );
        assert!(at("/").starts_with("/d/snapshots/-"));
    }
}
