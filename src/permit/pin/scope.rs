//! The files of a folder that a program could run, without their names being known.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use super::hashes;

/// Most files of one folder; with more the user is asked in each session.
pub(super) const MOST_FILES: usize = 4_000;
/// Most names that are looked at.
const MOST_NAMES: usize = 60_000;
/// Deepest folder.
const DEPTH: usize = 24;

/// Endings of files that a program runs as code.
const ENDINGS: &[&str] = &[
    "sh", "bash", "zsh", "fish", "ksh", "csh", "py", "pyw", "pyi", "rb", "pl", "pm", "php", "js", "mjs",
    "cjs", "ts", "mts", "cts", "jsx", "tsx", "lua", "tcl", "awk", "sed", "r", "jl", "ps1", "bat", "cmd",
    "mk", "mak", "make", "cmake", "gradle", "kts", "groovy", "nix", "nu", "ex", "exs", "clj", "scm", "el",
    "vim", "jq", "bzl", "star", "just", "so", "node", "wasm", "jar",
];
/// Names of files from which programs take what they run.
const NAMES: &[&str] = &[
    "makefile",
    "gnumakefile",
    "package.json",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "pytest.ini",
    "justfile",
    ".justfile",
    "taskfile.yml",
    "taskfile.yaml",
    "rakefile",
    "gemfile",
    "guardfile",
    "composer.json",
    "cargo.toml",
    "build.rs",
    "go.mod",
    "deno.json",
    "deno.jsonc",
    "bunfig.toml",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".lefthook.yml",
    ".lintstagedrc",
    ".eslintrc",
    ".eslintrc.json",
    ".eslintrc.yml",
    ".eslintrc.yaml",
    ".prettierrc",
    ".babelrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".envrc",
    ".env",
    "cmakelists.txt",
    "meson.build",
    "build",
    "build.bazel",
    "workspace",
    "workspace.bazel",
    "module.bazel",
    "pom.xml",
    "dockerfile",
    "docker-compose.yml",
    "compose.yaml",
    "compose.yml",
    "procfile",
    "vagrantfile",
    "jenkinsfile",
    "sconstruct",
    "wscript",
    "mise.toml",
    ".mise.toml",
    "turbo.json",
    "nx.json",
];

/// Files that could run, with their hashes; by paths relative to the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runnable {
    pub files: BTreeMap<String, String>,
    /// There were more than are listed.
    pub too_much: bool,
}

impl Runnable {
    /// Those below `places`, which lie in `folder`; real paths.
    pub(super) fn below(folder: &Path, places: &[PathBuf]) -> Self {
        let mut walk = Walk { folder, found: Self::default(), left: MOST_NAMES };
        for place in places {
            walk.list(place, 0);
        }
        walk.found
    }

    /// One for all. Where there were too many it differs from process to process.
    pub(super) fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (path, hash) in &self.files {
            hasher.update(path.as_bytes()).update(b"\0").update(hash.as_bytes()).update(b"\n");
        }
        if self.too_much {
            hasher.update(session().as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The first file in which two lists differ.
    pub(super) fn difference<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        let differs = |a: &'a Self, b: &'a Self| {
            let differs = |(path, hash): &(&String, &String)| b.files.get(*path) != Some(*hash);
            a.files.iter().find(differs).map(|(path, _)| path.as_str())
        };
        differs(self, other).or_else(|| differs(other, self))
    }
}

struct Walk<'a> {
    folder: &'a Path,
    found: Runnable,
    /// Names that may still be looked at.
    left: usize,
}

impl Walk<'_> {
    fn list(&mut self, place: &Path, depth: usize) {
        let Ok(entries) = std::fs::read_dir(place) else { return };
        if depth > DEPTH {
            self.found.too_much = true;
            return;
        }
        // What a build makes: it changes with each one.
        if depth > 0 && place.join("CACHEDIR.TAG").is_file() {
            return;
        }
        for entry in entries.flatten() {
            if self.left == 0 || self.found.files.len() >= MOST_FILES {
                self.found.too_much = true;
                return;
            }
            self.left -= 1;
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                if name != ".git" && name != "__pycache__" {
                    self.list(&entry.path(), depth + 1);
                }
            } else if kind.is_symlink() {
                self.link(&entry.path(), &name.to_string_lossy());
            } else if kind.is_file() && could_run(&name.to_string_lossy(), || entry.metadata().ok()) {
                self.add(&entry.path(), hashes::of(&entry.path()));
            }
        }
    }

    /// A link, with what it leads to: a folder outside is not looked through.
    fn link(&mut self, path: &Path, name: &str) {
        let Ok(target) = std::fs::read_link(path) else { return };
        let target = tiller_protocol::names::written(&target);
        match path.canonicalize() {
            Ok(real) if real.is_dir() => self.add(path, blake3::hash(target.as_bytes()).to_hex().to_string()),
            Ok(real) if real.is_file() && could_run(name, || real.metadata().ok()) => {
                let both = format!("{target}\0{}", hashes::of(&real));
                self.add(path, blake3::hash(both.as_bytes()).to_hex().to_string());
            }
            _ => {}
        }
    }

    fn add(&mut self, path: &Path, hash: String) {
        let name = tiller_protocol::names::written(path.strip_prefix(self.folder).unwrap_or(path));
        self.found.files.insert(name, hash);
    }
}

fn could_run(name: &str, meta: impl FnOnce() -> Option<Metadata>) -> bool {
    let name = name.to_lowercase();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    NAMES.contains(&name.as_str())
        || ending.is_some_and(|ending| ENDINGS.contains(&ending))
        || meta().is_some_and(|meta| meta.permissions().mode() & 0o111 != 0)
}

/// A text that no other process has.
fn session() -> &'static str {
    static SESSION: OnceLock<String> = OnceLock::new();
    SESSION.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{} {}", std::process::id(), now.as_nanos())
    })
}
