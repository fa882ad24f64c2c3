//! The files of a folder that a program could run, without their names being known.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use super::hashes;

/// Most files of one folder that are hashed; with more the user is asked in each session, and the stamps of the others count.
pub(super) const MOST_FILES: usize = 4_000;
/// Most names that are looked at.
const MOST_NAMES: usize = 60_000;
/// Bytes of a manifest that are read.
const MANIFEST: u64 = 256 << 10;
/// Deepest folder.
const DEPTH: usize = 24;

/// Endings of files that a program runs as code.
const ENDINGS: &[&str] = &[
    "sh", "bash", "zsh", "fish", "ksh", "csh", "py", "pyw", "pyi", "rb", "pl", "pm", "php", "js", "mjs",
    "cjs", "ts", "mts", "cts", "jsx", "tsx", "lua", "tcl", "awk", "sed", "r", "jl", "ps1", "bat", "cmd",
    "mk", "mak", "make", "cmake", "gradle", "kts", "groovy", "nix", "nu", "ex", "exs", "clj", "scm", "el",
    "vim", "jq", "bzl", "star", "just", "so", "node", "wasm", "jar", "pyc", "pyd", "pyz", "egg", "whl",
    "dll", "dylib",
];
/// Endings of files from which a program is built that then runs.
const SOURCES: &[&str] = &[
    "rs", "go", "c", "h", "cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "inc", "m", "mm", "s", "asm",
    "java", "kt", "scala", "swift", "cs", "fs", "fsx", "vb", "hs", "lhs", "ml", "mli", "zig", "d", "nim",
    "cr", "dart", "erl", "hrl", "v", "f90", "f95", "pas", "adb", "ads", "pyx", "pxd", "proto", "y", "l",
    "class",
];
/// Folders that a build or a test run fills, if a tag says so: they change with each one.
const BUILT: &[&str] =
    &["target", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox"];
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
    /// One hash of the stamps of those that are not listed.
    beyond: String,
}

impl Runnable {
    /// Those below `places`, which lie in `folder`; real paths. `builds`: files from which programs are built count, too.
    pub(super) fn below(folder: &Path, places: &[PathBuf], builds: bool) -> Self {
        let beyond = blake3::Hasher::new();
        let mut walk = Walk { folder, builds, found: Self::default(), left: MOST_NAMES, beyond };
        for place in places {
            walk.list(place, 0);
        }
        walk.found.beyond = walk.beyond.finalize().to_hex().to_string();
        walk.found
    }

    /// True if a compiler of Rust builds and runs code for itself here. `folder`: that of the paths. Where too much lies there to
    /// tell it is true as well.
    pub(super) fn builds_for_compiler(&self, folder: &Path) -> bool {
        self.too_much
            || self.files.keys().any(|name| {
                let path = folder.join(tiller_protocol::names::path(name));
                let file = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
                match file.as_deref() {
                    Some("build.rs") => true,
                    Some("cargo.toml") => manifest_builds(&path),
                    _ => false,
                }
            })
    }

    /// One for all. Where there were too many it differs from process to process, and from change to change.
    pub(super) fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (path, hash) in &self.files {
            hasher.update(path.as_bytes()).update(b"\0").update(hash.as_bytes()).update(b"\n");
        }
        if self.too_much {
            hasher.update(session().as_bytes()).update(self.beyond.as_bytes());
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

/// True for a manifest of macros, or one that names its build script, and for one that cannot be read.
fn manifest_builds(path: &Path) -> bool {
    let Ok(bytes) = tiller_fs::beneath::read(path, MANIFEST) else { return true };
    let text = String::from_utf8_lossy(&bytes).replace("proc-macro2", "");
    let is_script =
        |line: &str| line.trim_start().trim_matches('"').starts_with("build") && line.contains('=');
    bytes.len() as u64 == MANIFEST
        || ["proc-macro", "proc_macro"].iter().any(|word| text.contains(word))
        || text.lines().any(is_script)
}

struct Walk<'a> {
    folder: &'a Path,
    builds: bool,
    found: Runnable,
    beyond: blake3::Hasher,
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
        let is_built = place.file_name().is_some_and(|name| BUILT.iter().any(|built| name == *built));
        if depth > 0 && is_built && place.join("CACHEDIR.TAG").is_file() {
            return;
        }
        let mut entries: Vec<_> = entries.flatten().take(self.left + 1).collect();
        // The same ones are listed each time.
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            if self.left == 0 {
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
            } else if kind.is_file() && self.could_run(&name.to_string_lossy(), || entry.metadata().ok()) {
                self.add(&entry.path(), hashes::of);
            }
        }
    }

    /// A link, with what it leads to: a folder outside is not looked through.
    fn link(&mut self, path: &Path, name: &str) {
        let Ok(target) = std::fs::read_link(path) else { return };
        let target = tiller_protocol::names::written(&target);
        match path.canonicalize() {
            Ok(real) if real.is_dir() => {
                self.add(path, |_| blake3::hash(target.as_bytes()).to_hex().to_string());
            }
            Ok(real) if real.is_file() && self.could_run(name, || real.metadata().ok()) => {
                self.add(path, |_| {
                    let both = format!("{target}\0{}", hashes::of(&real));
                    blake3::hash(both.as_bytes()).to_hex().to_string()
                });
                self.stamp(&real);
            }
            _ => {}
        }
    }

    /// Lists a file, or counts its stamp where there are too many.
    fn add(&mut self, path: &Path, hash: impl FnOnce(&Path) -> String) {
        if self.found.files.len() >= MOST_FILES {
            self.found.too_much = true;
            self.beyond.update(path.as_os_str().as_encoded_bytes());
            return self.stamp(path);
        }
        let name = tiller_protocol::names::written(path.strip_prefix(self.folder).unwrap_or(path));
        self.found.files.insert(name, hash(path));
    }

    fn stamp(&mut self, path: &Path) {
        if self.found.too_much {
            self.beyond.update(format!("{:?}", hashes::Stamp::at(path)).as_bytes());
        }
    }

    fn could_run(&self, name: &str, meta: impl FnOnce() -> Option<Metadata>) -> bool {
        let name = name.to_lowercase();
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        let runs = |ending: &str| ENDINGS.contains(&ending) || self.builds && SOURCES.contains(&ending);
        NAMES.contains(&name.as_str())
            || ending.is_some_and(runs)
            || meta().is_some_and(|meta| meta.permissions().mode() & 0o111 != 0)
    }
}

/// A text that no other process has.
fn session() -> &'static str {
    static SESSION: OnceLock<String> = OnceLock::new();
    SESSION.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{} {}", std::process::id(), now.as_nanos())
    })
}
