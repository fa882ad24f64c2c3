//! What belongs to a project although it lies outside of its folder: the repository around it, the workspace of packages that
//! it is a member of, and the folders that its manifests name as dependencies.
//!
//! A folder counts if it holds a manifest itself. Read once for a session, at its start: an agent that changes a manifest
//! opens nothing by that.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::repository::{Repository, is_too_high};

/// Manifests that are read, and bytes of one.
const MANIFESTS: usize = 300;
const BYTES: u64 = 1 << 20;
/// Folders that one pattern of members stands for.
const MEMBERS: usize = 2_000;
/// Packages in one folder above which the whole folder counts, and paths at all.
const PACKAGES: usize = 64;
const PATHS: usize = 400;

/// Files of the folders above a project that its tools read there.
const ABOVE: &[&str] = &[
    ".cargo/config",
    ".cargo/config.toml",
    ".gitattributes",
    ".gitignore",
    ".ignore",
    ".rgignore",
    ".tool-versions",
    "Cargo.lock",
    "Cargo.toml",
    "go.work",
    "go.work.sum",
    "package-lock.json",
    "package.json",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "pyproject.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "tsconfig.base.json",
    "tsconfig.json",
    "yarn.lock",
];

/// A kind of manifest.
struct Kind {
    name: &'static str,
    /// The folders that it names; with `*` for some names.
    named: fn(&str) -> Vec<String>,
}

const KINDS: &[Kind] = &[
    Kind { name: "Cargo.toml", named: toml_paths },
    Kind { name: "pyproject.toml", named: toml_paths },
    Kind { name: "package.json", named: package_json },
    Kind { name: "pnpm-workspace.yaml", named: pnpm },
    Kind { name: "go.mod", named: go },
    Kind { name: "go.work", named: go },
];

/// Files and folders outside of `workspace` that belong to it.
pub(crate) fn beside(workspace: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut search =
        Search { workspace, home, seen: HashSet::new(), packages: HashMap::new(), found: Vec::new() };
    let mut repository = workspace.join(".git").symlink_metadata().is_ok();
    for above in workspace.ancestors().skip(1) {
        if search.is_too_high(above) {
            break;
        }
        search.found.extend(ABOVE.iter().map(|name| above.join(name)).filter(|path| path.exists()));
        if above.join("package.json").is_file() {
            search.found.push(above.join("node_modules"));
        }
        let git = above.join(".git");
        if !repository && git.symlink_metadata().is_ok() {
            repository = true;
            if let Some(found) = Repository::of(above, home) {
                search.found.extend(found.folders().map(Path::to_owned));
            }
            // Git compares all files of the repository with what it has of them.
            search.found.push(above.to_owned());
        }
        search.visit(above);
    }
    search.visit(workspace);
    search.few()
}

struct Search<'a> {
    workspace: &'a Path,
    home: Option<&'a Path>,
    /// Folders whose manifests were read.
    seen: HashSet<PathBuf>,
    /// Packages outside of the workspace by their folders.
    packages: HashMap<PathBuf, usize>,
    found: Vec<PathBuf>,
}

impl Search<'_> {
    fn is_too_high(&self, folder: &Path) -> bool {
        is_too_high(folder, self.home)
    }

    /// Reads the manifests of a folder, and of those that they name.
    fn visit(&mut self, folder: &Path) {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            if self.seen.len() >= MANIFESTS || !self.seen.insert(folder.clone()) {
                continue;
            }
            for kind in KINDS {
                let Some(text) = read(&folder.join(kind.name)) else { continue };
                for named in (kind.named)(&text) {
                    // A pattern stands for folders below it: one with `..` would name every other project.
                    let below = |to: &PathBuf| to.canonicalize().is_ok_and(|to| to.starts_with(&folder));
                    let members = expand(&folder, &named);
                    for member in members.iter().filter(|to| !named.contains('*') || below(to)) {
                        folders.extend(self.take(member));
                    }
                }
            }
        }
    }

    /// Returns the found paths in few ones, since each becomes arguments of a program: a folder with many packages of a project,
    /// which has a manifest there or above, stands for them.
    fn few(mut self) -> Vec<PathBuf> {
        let is_of_project = |folder: &Path| {
            let mut above = folder.ancestors().take_while(|above| !self.is_too_high(above));
            above.any(is_package)
        };
        let many = self.packages.iter().filter(|(folder, count)| **count > PACKAGES && is_of_project(folder));
        let many: Vec<PathBuf> = many.map(|(folder, _)| folder.clone()).collect();
        self.found.extend(many);
        let mut found = outermost(self.found);
        found.truncate(PATHS);
        found
    }

    /// A folder that a manifest names, if it holds a package.
    fn take(&mut self, named: &Path) -> Option<PathBuf> {
        let folder = named.canonicalize().ok()?;
        if !is_package(&folder) || self.is_too_high(&folder) {
            return None;
        }
        if !folder.starts_with(self.workspace) {
            if let Some(parent) = folder.parent() {
                *self.packages.entry(parent.to_owned()).or_default() += 1;
            }
            self.found.push(folder.clone());
        }
        Some(folder)
    }
}

fn is_package(folder: &Path) -> bool {
    KINDS.iter().any(|kind| folder.join(kind.name).is_file())
}

/// Returns those that lie in no other one. A link may lead out of the folder that holds it.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup();
    let mut top: Option<PathBuf> = None;
    paths.retain(|path| {
        let inside = top.as_ref().is_some_and(|top| path.starts_with(top));
        if !inside {
            top = Some(path.clone());
        }
        !inside || path.is_symlink()
    });
    paths
}

fn read(path: &Path) -> Option<String> {
    use std::io::Read;
    let meta = path.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= BYTES)?;
    let mut text = String::with_capacity(meta.len() as usize);
    std::fs::File::open(path).ok()?.take(BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The folders that a pattern stands for.
fn expand(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut all = vec![if pattern.starts_with('/') { PathBuf::from("/") } else { folder.to_owned() }];
    for part in pattern.split('/').filter(|part| !part.is_empty() && *part != ".") {
        let Some((before, after)) = part.split_once('*') else {
            all.iter_mut().for_each(|path| path.push(part));
            continue;
        };
        let fits = |name: &str| name.starts_with(before) && name.ends_with(after.trim_start_matches('*'));
        let mut next = Vec::new();
        for folder in &all {
            let names =
                std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
            next.extend(names.filter(|name| name.to_str().is_some_and(fits)).map(|name| folder.join(name)));
        }
        if part == "**" {
            next.append(&mut all);
        }
        next.truncate(MEMBERS);
        all = next;
    }
    all
}

/// Every `path` and every member of a workspace, wherever it stands.
fn toml_paths(text: &str) -> Vec<String> {
    fn walk(value: &toml::Value, all: &mut Vec<String>) {
        match value {
            toml::Value::Table(table) => {
                for (name, value) in table {
                    match (name.as_str(), value) {
                        ("path", toml::Value::String(path)) => all.push(path.clone()),
                        ("members", toml::Value::Array(members)) => {
                            all.extend(
                                members.iter().filter_map(|member| member.as_str().map(str::to_owned)),
                            );
                        }
                        _ => walk(value, all),
                    }
                }
            }
            toml::Value::Array(values) => values.iter().for_each(|value| walk(value, all)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    if let Ok(table) = text.parse::<toml::Table>() {
        walk(&toml::Value::Table(table), &mut all);
    }
    all
}

/// Dependencies on folders, and the members of a workspace.
fn package_json(text: &str) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(text) else { return Vec::new() };
    let dependencies =
        ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "resolutions"]
            .into_iter()
            .filter_map(|kind| value.get(kind)?.as_object())
            .flat_map(|all| all.values().filter_map(serde_json::Value::as_str))
            .filter_map(|from| {
                ["file:", "link:", "portal:"].into_iter().find_map(|scheme| from.strip_prefix(scheme))
            });
    let workspaces = value.get("workspaces");
    let members = workspaces.and_then(|w| w.as_array().or_else(|| w.get("packages")?.as_array()));
    let members = members.into_iter().flatten().filter_map(serde_json::Value::as_str);
    dependencies.chain(members).map(str::to_owned).collect()
}

/// The list `packages`.
fn pnpm(text: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| !line.starts_with("packages:")).skip(1);
    let items = lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let items = items.map_while(|line| line.strip_prefix('-'));
    items.map(|item| item.trim().trim_matches(['\'', '"']).to_owned()).collect()
}

/// What `replace` and `use` name.
fn go(text: &str) -> Vec<String> {
    let words = text.lines().filter_map(|line| line.split("//").next()?.split_whitespace().last());
    let folders = words.map(|word| word.trim_matches('"'));
    folders.filter(|word| word.starts_with(['.', '/'])).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn what_manifests_name_belongs_to_the_project() {
        let tmp = tempfile::tempdir().unwrap();
        let home = tmp.path().canonicalize().unwrap();
        let at = |name: &str| home.join("src").join(name);
        let mut expected = Vec::new();
        for (file, text, named) in [
            ("Cargo.toml", "[dependencies]\na = { path = '../rust' }", "rust/Cargo.toml"),
            ("pyproject.toml", "[tool.uv.sources]\nb = { path = '../python' }", "python/pyproject.toml"),
            ("package.json", r#"{"devDependencies": {"c": "file:../node"}}"#, "node/package.json"),
            ("go.mod", "module x\nreplace d => ../go // note\n", "go/go.mod"),
            ("pnpm-workspace.yaml", "packages:\n  - '../pnpm'\nother: 1\n", "pnpm/package.json"),
        ] {
            write(&at("work").join(file), text);
            write(&at(named), "");
            expected.push(at(named).parent().unwrap().to_owned());
        }
        // By a dependency, and without a manifest of its own.
        write(
            &at("rust/Cargo.toml"),
            "[target.x.dependencies.e]\npath = '../deep'\n[y]\npath = '../notes'\n",
        );
        write(&at("deep/Cargo.toml"), "");
        write(&at("notes/diary"), "");
        write(&at("other/Cargo.toml"), "");
        // These name what holds everything.
        write(&home.join("Cargo.toml"), "");
        write(&at("deep/Cargo.toml"), "x = { path = '../..' }\ny = { path = '/' }");
        expected.push(at("deep"));
        expected.sort();
        assert_eq!(beside(&at("work"), Some(&home)), expected);
    }

    #[test]
    fn a_member_finds_its_workspace_and_the_repository_around_it() {
        let tmp = tempfile::tempdir().unwrap();
        let home = tmp.path().canonicalize().unwrap();
        let at = |name: &str| home.join("mono").join(name);
        for (file, text) in [
            ("package.json", r#"{"workspaces": ["packages/*"]}"#),
            ("packages/a/package.json", "{}"),
            ("packages/b/package.json", "{}"),
            ("packages/notes/diary", ""),
            ("node_modules/x/package.json", "{}"),
            ("private/diary", ""),
            (".git/HEAD", ""),
        ] {
            write(&at(file), text);
        }
        write(&home.join(".git/HEAD"), "");
        write(&home.join("package.json"), "{}");
        assert_eq!(beside(&at("packages/a"), Some(&home)), [at("")]);
        std::fs::remove_dir_all(at(".git")).unwrap();
        let expected = ["node_modules", "package.json", "packages/b"].map(at);
        assert_eq!(beside(&at("packages/a"), Some(&home)), expected);
        // Patterns that lead out of the folder stand for nothing.
        write(&at("packages/a/package.json"), r#"{"workspaces": ["../*", "../../*/*"]}"#);
        assert_eq!(beside(&at("packages/a"), Some(&home)), expected);
        // Many packages of one project are one folder; others are named each.
        for n in 0..200 {
            write(&at(&format!("packages/p{n}/package.json")), "{}");
        }
        assert_eq!(
            beside(&at("packages/a"), Some(&home)),
            ["node_modules", "package.json", "packages"].map(at)
        );
        let others: Vec<String> = (0..100).map(|n| format!("../../../code/x{n}")).collect();
        others.iter().for_each(|other| write(&at("packages/a").join(other).join("go.mod"), ""));
        write(&at("packages/a/go.work"), &others.join("\n"));
        let found = beside(&at("packages/a"), Some(&home));
        assert!(!found.contains(&home.join("code")) && found.contains(&home.join("code/x7")), "{found:?}");
    }
}
