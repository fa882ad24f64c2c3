//! Reports changes of settings, keys and themes to screen and engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tiller_watch::folder::Folder;

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FolderChange {
    /// Whether the screen depends on it, too.
    pub(crate) screen: bool,
}

/// Watches the settings folder until the values are dropped, and the targets of files that are symbolic links (people
/// keep their settings elsewhere). Without the folder (a read-only home) there is nothing to watch.
pub(crate) fn watch(config: &Path, tell: impl Fn(FolderChange) + Clone + Send + 'static) -> Vec<Folder> {
    use std::os::unix::fs::DirBuilderExt as _;
    if std::fs::DirBuilder::new().recursive(true).mode(0o700).create(config).is_err() {
        return Vec::new();
    }
    let Ok(real) = config.canonicalize() else { return Vec::new() };
    let mut out: Vec<Folder> = one(
        &real.clone(),
        {
            let real = real.clone();
            move |path| matters(&real, path)
        },
        tell.clone(),
    )
    .into_iter()
    .collect();
    for (file, place) in links(&real) {
        let about = if file.starts_with("themes") { Some(true) } else { kind(&file) };
        let Some((folder, screen)) = place.parent().zip(about) else { continue };
        let target = place.clone();
        out.extend(one(folder, move |path| (path == target).then_some(screen), tell.clone()));
    }
    out
}

fn one(
    folder: &Path,
    matters: impl Fn(&Path) -> Option<bool> + Send + 'static,
    tell: impl Fn(FolderChange) + Send + 'static,
) -> Option<Folder> {
    let screen = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&screen);
    let heard = move |path: &Path| {
        let about = matters(path);
        if about == Some(true) {
            seen.store(true, Ordering::SeqCst);
        }
        about.is_some()
    };
    // Related changes are reported once: that the screen is affected is remembered until then.
    Folder::watch(folder, heard, move || tell(FolderChange { screen: screen.swap(false, Ordering::SeqCst) }))
        .inspect_err(|why| tracing::warn!(why, "changes to the settings cannot be detected"))
        .ok()
}

/// Files of the settings folder that are symbolic links, by their names, and their targets.
fn links(config: &Path) -> Vec<(PathBuf, PathBuf)> {
    let names = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let all = names(config).chain(names(&config.join("themes")));
    all.filter(|p| p.is_symlink())
        .filter_map(|p| Some((p.strip_prefix(config).ok()?.to_owned(), p.canonicalize().ok()?)))
        .filter(|(_, to)| to.is_file())
        .collect()
}

/// Whether the file is relevant, and whether the screen depends on it.
fn matters(config: &Path, path: &Path) -> Option<bool> {
    kind(path.strip_prefix(config).ok()?)
}

/// Rules are read where they are used.
fn kind(name: &Path) -> Option<bool> {
    if name == Path::new(tiller_config::FILE) || name == Path::new("keys.toml") || name.starts_with("themes")
    {
        return Some(true);
    }
    (name == Path::new("credentials.toml") || name.starts_with("agents")).then_some(false)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn only_what_screen_and_engine_are_made_from_matters() {
        let at = |name: &str| matters(Path::new("/c"), &Path::new("/c").join(name));
        for name in ["config.toml", "keys.toml", "themes/x.toml"] {
            assert_eq!(at(name), Some(true));
        }
        assert_eq!(at("credentials.toml"), Some(false), "the engine's alone");
        assert_eq!((at("permissions.yaml"), at("config.toml.new7")), (None, None));
        assert_eq!(matters(Path::new("/c"), Path::new("/d/config.toml")), None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "polls with a deadline")]
    fn a_file_that_is_a_link_is_followed() {
        let tmp = tempfile::tempdir().unwrap();
        let (home, dots) = (tmp.path().join("config"), tmp.path().join("dots"));
        std::fs::create_dir(&home).unwrap();
        std::fs::create_dir(&dots).unwrap();
        std::fs::write(dots.join("tiller.toml"), "a").unwrap();
        std::os::unix::fs::symlink(dots.join("tiller.toml"), home.join("config.toml")).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&told);
        let watches = watch(&home, move |c| into.lock().unwrap().push(c));
        assert_eq!(watches.len(), 2);
        std::fs::write(dots.join("other"), "not ours").unwrap();
        std::fs::write(dots.join("next"), "b").unwrap();
        std::fs::rename(dots.join("next"), dots.join("tiller.toml")).unwrap();
        let end = Instant::now() + Duration::from_secs(90);
        while told.lock().unwrap().is_empty() {
            assert!(Instant::now() < end, "the change was not told");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(told.lock().unwrap()[0], FolderChange { screen: true });
    }
}
