//! A project's hooks: the file, and whether what it runs is still what the user trusted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::schema;
use tiller_permit::hook_files;
use tiller_permit::pin::{Pinning, Pins};
use tiller_permit::trust::{FolderConfig, discover_hooks};
use tiller_protocol::HookEvent;
use tiller_protocol::ask::{TrustItem, TrustKind};

use crate::list::{CheckHook, events};

/// The file in the project.
pub const PROJECT: &str = ".tiller/hooks.toml";
/// The folder for what they run.
const FOLDER: &str = ".tiller/hooks";

/// Reads the file.
///
/// # Errors
/// A sentence with the line.
pub fn read(text: &str) -> Result<schema::Hooks, String> {
    toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        // The first line says what; the rest would quote the text.
        format!("line {line}: {}", e.message().lines().next().unwrap_or("invalid TOML"))
    })
}

/// The command lines of hooks.
pub fn commands(hooks: &schema::Hooks) -> impl Iterator<Item = &str> {
    events(hooks).map(|(_, hook)| hook.command.as_str())
}

/// Compares what each of `hooks` in `folder` runs with `trusted`, what the user agreed to.
pub fn check(folder: &Path, hooks: &schema::Hooks, trusted: &[TrustItem]) -> CheckHook {
    let (folder, before) = (folder.to_owned(), trusted.to_vec());
    let mut pinning = Pinning::new(&folder);
    let pins: HashMap<String, Pins> =
        commands(hooks).map(|command| (command.to_owned(), pinning.command(command))).collect();
    let gone = gone(&folder, &before);
    Arc::new(move |event, hook| {
        if let Some(path) = &gone {
            return Err(path.clone());
        }
        let now = Pins::of(&folder, &hook.command);
        let is_pinned = |path: &str, read: bool| {
            now.files.contains_key(path) || !read && pins.values().any(|pins| pins.files.contains_key(path))
        };
        changed_beside(&folder, &before, (event, hook), &is_pinned).map_or(Ok(()), Err)?;
        let Some(then) = pins.get(&hook.command) else { return Err(PROJECT.to_owned()) };
        match now.changed(then, &before) {
            None => Ok(now.held(&folder)),
            Some(file) => Err(file),
        }
    })
}

/// A file outside of the folder of hooks that was there when the user agreed, and that no command finds any more.
fn gone(folder: &Path, before: &[TrustItem]) -> Option<String> {
    let files = before.iter().filter(|item| item.kind == TrustKind::Hook && !item.path.starts_with(FOLDER));
    let mut paths = files.map(|item| &item.path);
    paths.find(|path| folder.join(tiller_protocol::names::path(path)).symlink_metadata().is_err()).cloned()
}

/// The file of hooks, or a file beside it that the hook is known to use, where it is not as it was trusted. `is_pinned`: whether
/// the pins of commands tell of a file, which was `read` here.
fn changed_beside(
    folder: &Path,
    before: &[TrustItem],
    (event, hook): (HookEvent, &schema::Hook),
    is_pinned: &dyn Fn(&str, bool) -> bool,
) -> Option<String> {
    let now = discover_hooks(folder);
    let hash = |path: &str| now.found.iter().find(|f| f.item.path == path).map(|f| f.item.hash.as_str());
    let known = |path: &str| before.iter().find(|item| item.path == path).map(|item| item.hash.as_str());
    let text = String::from_utf8_lossy(now.bytes(PROJECT).unwrap_or_default()).into_owned();
    if now.too_much {
        return Some(PROJECT.to_owned());
    }
    let present = read(&text).unwrap_or_default();
    // A file that changed elsewhere is another hook's concern.
    let is_same = || events(&present).any(|(of, other)| of == event && other == hook);
    if hash(PROJECT) != known(PROJECT) && !is_same() {
        return Some(PROJECT.to_owned());
    }
    let own = Own::new(folder, hook, &present, &now);
    let paths = now.found.iter().map(|f| &f.item).chain(before).filter(|item| item.kind == TrustKind::Hook);
    // Of what lies elsewhere its command tells.
    let beside = paths.map(|item| item.path.as_str()).filter(|path| path.starts_with(FOLDER));
    let beside = beside.filter(|path| !is_pinned(path, now.bytes(path).is_some()));
    let mut paths = beside.filter(|path| own.concerns(path));
    paths.find(|path| hash(path) != known(path)).map(str::to_owned)
}

/// The text and files of one hook.
struct Own {
    /// The files that its command names.
    named: Vec<PathBuf>,
    /// The files that the commands of other hooks name.
    of_others: Vec<PathBuf>,
    /// The text of its files.
    texts: String,
}

impl Own {
    fn new(folder: &Path, hook: &schema::Hook, all: &schema::Hooks, now: &FolderConfig) -> Self {
        let named = hook_files::named(folder, &hook.command);
        let others = events(all).map(|(_, other)| other).filter(|other| *other != hook);
        let of_others = others.flat_map(|other| hook_files::named(folder, &other.command)).collect();
        let texts = now.found.iter().filter(|f| named.iter().any(|path| path == Path::new(&f.item.path)));
        let texts = texts.filter_map(|f| f.bytes.as_deref()).map(String::from_utf8_lossy).collect();
        Self { named, of_others, texts }
    }

    /// True when the hook runs or reads this file: its command names it, or a file of its own does; or it lies beside such a
    /// file, and no other hook is known to use it.
    fn concerns(&self, path: &str) -> bool {
        let file = Path::new(path);
        let separates = |c: char| !c.is_alphanumeric() && !"_-".contains(c);
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        // Imports of some languages leave the ending out.
        let name = name.trim_start_matches('.').split('.').next().unwrap_or_default();
        self.named.iter().any(|named| named == file)
            || self.texts.split(separates).any(|word| word == name)
            || self.named.iter().any(|named| named.starts_with(FOLDER))
                && !self.of_others.iter().any(|of| of == file)
    }
}

#[cfg(test)]
mod tests {
    use tiller_permit::trust::discover;
    use tiller_protocol::ToolCatalog;

    use super::*;

    /// A file that is too large to be loaded is pinned by its content.
    #[test]
    fn a_large_file_of_a_hook_is_used_until_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let hooks = "[[before-tool-call]]\ncommand = \".tiller/hooks/guard\"\n[[agent-end]]\ncommand = \"sh .tiller/hooks/b.sh\"\n";
        std::fs::create_dir_all(dir.path().join(FOLDER)).unwrap();
        std::fs::write(dir.path().join(PROJECT), hooks).unwrap();
        std::fs::write(dir.path().join(".tiller/hooks/b.sh"), "exit 0\n").unwrap();
        let guard = |text: &str| {
            let text = format!("{text}\0{}", "x".repeat(300 << 10));
            std::fs::write(dir.path().join(".tiller/hooks/guard"), text).unwrap();
        };
        guard("one");
        let trusted = discover(dir.path(), &ToolCatalog::default()).items();
        let hooks = read(hooks).unwrap();
        let check = check(dir.path(), &hooks, &trusted);
        let said = || {
            let all = events(&hooks).map(|(event, hook)| check(event, hook).err().unwrap_or_default());
            all.collect::<Vec<_>>()
        };
        assert_eq!(said(), ["", ""]);
        guard("two");
        assert_eq!(said(), [".tiller/hooks/guard", ""]);
    }

    /// Each change is the concern of the hooks that use the file, and of no other one.
    #[test]
    fn a_change_concerns_the_hooks_that_use_the_file() {
        const HOOKS: &str = "[[before-tool-call]]\ncommand = \"sh .tiller/hooks/a.sh >>a.log\"\n\
            [[before-tool-call]]\ncommand = \"sh .tiller/hooks/b.sh\"\n[[notification]]\ncommand = \"true\"\n";
        const A: &str = ". .tiller/hooks/lib.sh; echo x >>.tiller/hooks/state\n";
        let names = |changed_file: Option<(&str, &str)>| {
            let dir = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = dir.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            };
            write(PROJECT, HOOKS);
            write(".tiller/hooks/a.sh", A);
            write(".tiller/hooks/b.sh", "exit 0\n");
            for path in [".tiller/hooks/lib.sh", ".tiller/hooks/state", ".tiller/hooks/b.log", "a.log"] {
                write(path, "1\n");
            }
            write(".tiller/hooks/lib.sh", "true\n");
            let trusted = discover(dir.path(), &ToolCatalog::default()).items();
            changed_file.into_iter().for_each(|(path, text)| write(path, text));
            let check = check(dir.path(), &read(HOOKS).unwrap(), &trusted);
            let all = read(HOOKS).unwrap();
            let found = events(&all).map(|(event, hook)| check(event, hook).err().unwrap_or_default());
            found.collect::<Vec<_>>()
        };
        let (a, b, lib) = (".tiller/hooks/a.sh", ".tiller/hooks/b.sh", ".tiller/hooks/lib.sh");
        assert_eq!(names(None), ["", "", ""]);
        assert_eq!(names(Some((a, &format!("{A}\n")))), [a, "", ""]);
        assert_eq!(names(Some((b, "2\n"))), ["", b, ""]);
        // It lies beside the other hook's file as well, and no command names it.
        assert_eq!(names(Some((lib, "2\n"))), [lib, lib, ""]);
        for written in [".tiller/hooks/state", ".tiller/hooks/b.log", "a.log"] {
            assert_eq!(names(Some((written, "2\n"))), ["", "", ""], "{written}");
        }
        let more = format!("{HOOKS}[[agent-end]]\ncommand = \"true\"\n");
        assert_eq!(names(Some((PROJECT, &more))), ["", "", ""]);
        let other = HOOKS.replace("sh .tiller/hooks/b.sh", "true");
        let now = names(Some((PROJECT, &other)));
        assert_eq!((now[0].as_str(), now[1].as_str()), ("", PROJECT));
        assert_eq!(names(Some((PROJECT, ""))), [PROJECT; 3]);
    }
}
